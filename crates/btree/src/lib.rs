//! Ordered bytes: B+trees of variable-length keys and values over the pool. Knows nothing of
//! transactions beyond the stamp that a row carries.
#![forbid(unsafe_code)]
mod bulk;
mod chain;
mod check;
mod compact;
mod cursor;
mod descend;
mod drop_tree;
mod error;
mod estimate;
mod merge;
mod move_chain;
mod overflow;
mod read_ahead;
mod read_leaves;
mod run;
mod size;
mod split;
mod tree;
mod write;

pub use bulk::Loader;
pub use check::TreeReport;
pub use compact::CompactStep;
pub use cursor::Cursor;
pub use error::TreeError;
pub use move_chain::Moves;
pub use overflow::{Admit, Ahead, ChainHead, ChainWriter, Chains, Run, Steps};
pub use read_leaves::{KeysAhead, LeavesRead};
pub use run::LatchedRun;
pub use size::TreeSize;
pub use tree::{Env, LeafState, RowHead, Tree};
pub use write::{Action, Applied, Change, LatchedRow, Row, Value, Written};
