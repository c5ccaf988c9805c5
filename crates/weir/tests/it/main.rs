//! The engine as its users see it.
mod again;
mod basics;
mod dropped;
mod faults;
mod faults_device;
mod flip;
mod hosts;
mod large;
mod old_snapshots;
mod prepared_locks;
mod ranges;
mod recovery;
mod support;
mod transactions;
mod updates;
mod visit;
mod warm;
