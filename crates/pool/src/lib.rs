//! Which pages are in memory, which threads may touch them, and how dirty ones reach the disk.
//! Knows nothing of trees or transactions, and nothing of *when* to write: the checkpoint floor
//! decides that.
mod backoff;
mod dirty;
mod error;
mod evict;
mod frame;
mod free;
mod guard;
mod in_place;
mod latch;
#[cfg(loom)]
pub mod model;
mod neighbours;
mod pending;
mod pool;
mod read_in;
mod recent;
mod store;
mod table;
mod torn_write;
mod warm_list;
mod warm_plan;
mod write_back;

pub use dirty::AgeCounts;
pub use error::PoolError;
pub use guard::{Exclusive, Optimistic, PageToken};
pub use in_place::{ERA_PAGES, InPlaceStore};
pub use neighbours::Neighbours;
pub use pending::PageRedo;
pub use pool::{Pool, PoolConfig, PoolStats, Residence};
pub use store::{NoteGrowth, PageStore, PageWrite, StoreRead};
pub use torn_write::{DoubleWriteConfig, DoubleWriteMode, Repair};
pub use warm_list::WarmList;
pub use warm_plan::WarmPlan;
pub use write_back::{Cause, Written};
