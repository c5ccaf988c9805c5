//! The engine as its users see it.
mod basics;
mod faults;
mod faults_device;
mod flip;
mod support;
mod transactions;
