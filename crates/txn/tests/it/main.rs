//! Writers over trees, a pool and a log on a simulated disk.
mod batches;
mod failures;
mod small_log;
mod support;
mod threads;
