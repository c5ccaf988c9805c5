//! The policy under simulated loads and disks: single-threaded, deterministic, in simulated time.
mod model;
mod report;
mod scenario;
mod steady;
