//! The policy under simulated loads and disks: single-threaded, deterministic, in simulated time.
//! `cargo test -p weir-checkpoint --test it -- --nocapture --test-threads=1` prints the tables of
//! the README; with `WEIR_SIM_SECONDS=1` every second of every run.
mod bursts;
mod canary;
mod decide;
mod echo;
mod latency;
mod model;
mod report;
mod scenario;
mod stalls;
mod suite;
