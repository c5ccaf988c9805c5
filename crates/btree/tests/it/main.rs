//! Trees over a pool, a space and a log on a simulated disk.
mod ahead;
mod bulk;
mod chains;
mod compact;
mod cursors;
mod model;
mod shape;
mod support;
mod threads;
