//! Decides when and how hard to write dirty pages, and how fast redo may grow. `policy::decide` is
//! one pure function from what was seen to what to do, used unchanged by the engine, the simulator
//! (`tests/it`) and the lab. Knows nothing of trees.
#![forbid(unsafe_code)]
mod admission;
mod batch_cost;
mod capacity;
mod error;
mod forecast;
mod histogram;
pub mod lab;
mod pacing;
mod policy;
mod policy_admission;
mod policy_full_disk;
mod policy_pause;
mod policy_plan;
mod record;
mod sweep;
mod tick;
mod worker;

pub use admission::{Admission, AdmissionStats};
pub use error::WorkerError;
pub use histogram::AgeHistogram;
pub use pacing::{Hand, LANES, Pacing};
pub use policy::{State, decide};
pub use record::{
    CONTROL_FILE, COPY_BYTES, Control, ControlError, ControlFile, Copy, FORMAT, choose, copies,
    read_copies,
};
pub use tick::{Limits, TickView, Verdict};
pub use worker::{Checkpointer, OldestNeeded, ProcessorsBusy, Refresh};
