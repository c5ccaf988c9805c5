//! Writers over trees, a pool and a log on a simulated disk.
mod archive;
mod batches;
mod chains;
mod failures;
mod gate;
mod losers;
mod purge;
mod runs;
mod small_log;
mod stored;
mod support;
mod threads;
