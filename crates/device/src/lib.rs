//! Blocks in and out: the [`Volume`] and [`BlockFile`] traits and the devices behind them: real
//! files, a throttled disk, a simulated disk that crashes, one that fails by script, one whose
//! writes take long, and one that only reads what lies below; and how much memory the
//! process may use. Knows nothing of pages.
#![deny(unsafe_code)]
mod atomic;
#[allow(unsafe_code)]
mod batch;
mod bucket;
mod cached;
mod delay;
mod device;
mod fault;
mod file;
mod layer;
mod lock;
mod memory;
mod order;
mod overlay;
mod owner;
mod pipe;
mod probe;
mod processors;
mod sim;
mod sim_disk;
mod sim_image;
mod spec;
#[allow(unsafe_code)]
mod sys;
mod throttle;
#[allow(unsafe_code)]
mod uring;

pub use bucket::Bucket;
pub use delay::DelayedVolume;
pub use device::{BlockFile, IoStats, ReadOp, Volume, WriteOp};
pub use fault::{Fault, FaultyVolume, OpKind, Outcome, Rule, RuleId, When};
pub use file::FileVolume;
pub use layer::Layer;
pub use lock::{InUse, forget_cached, try_lock_file};
pub use memory::memory_bytes;
pub use overlay::OverlayVolume;
pub use owner::give_to_owner_of;
pub use pipe::{PipeEnd, PipeStart};
pub use probe::punches_holes;
pub use processors::Processors;
pub use sim::{AtomicPromise, CrashMode, SimVolume};
pub use spec::{DiskSpec, DiskSpecError, RateChange};
pub use throttle::ThrottledVolume;
