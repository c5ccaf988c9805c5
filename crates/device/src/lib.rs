//! Blocks in and out: the [`Volume`] and [`BlockFile`] traits and the devices behind them: real
//! files, a throttled disk, a simulated disk that crashes, and one that fails by script. Knows
//! nothing of pages.
mod batch;
mod device;
mod file;
mod sim;
mod sim_disk;
mod sim_image;
mod sys;
mod uring;

pub use device::{BlockFile, IoStats, ReadOp, Volume, WriteOp};
pub use file::FileVolume;
pub use sim::{CrashMode, SimVolume};
