//! What the laboratory (`weir-lab`) needs to put other engines' flushing policies in the place of
//! this one's. Not part of the interface: it changes without notice.
pub use weir_checkpoint::lab::{LabSetup, Look, Orders, Policy};
pub use weir_checkpoint::{AgeHistogram, TickView};
pub use weir_pool::Neighbours;

/// Makes a policy, once for each opening.
pub type MakeSetup = dyn Fn() -> LabSetup + Send + Sync;
