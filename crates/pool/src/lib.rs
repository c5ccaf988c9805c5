//! Which pages are in memory, which threads may touch them, and how dirty ones reach the disk.
//! Knows nothing of trees or transactions, and nothing of *when* to write: the checkpoint floor
//! decides that.
mod access;
mod ahead;
mod ahead_pages;
mod ahead_thread;
mod backoff;
mod damages;
mod dirty;
mod dirty_entries;
mod era;
mod error;
mod evict;
mod frame;
mod free;
mod guard;
mod in_flight;
mod in_place;
mod latch;
mod log_structured;
mod mend;
#[cfg(loom)]
pub mod model;
mod neighbours;
mod pending;
mod pending_list;
mod pool;
mod read_in;
mod recent;
mod refill;
mod resize;
mod room;
mod scrub;
mod stats;
mod store;
mod table;
mod torn_write;
mod warm;
mod warm_list;
mod warm_plan;
mod write_back;

pub use ahead_pages::AheadRead;
pub use ahead_thread::AheadBatch;
pub use damages::{Mended, PageFinding, RebuildPage, ScrubStats};
pub use dirty::AgeCounts;
pub use era::ERA_PAGES;
pub use error::PoolError;
pub use guard::{Exclusive, Optimistic, PageToken};
pub use in_flight::Cause;
pub use in_place::{IN_PLACE_FILE, InPlaceStore};
pub use log_structured::{LogStructuredStore, RebuiltStore};
pub use neighbours::Neighbours;
pub use pending_list::PageRedo;
pub use pool::{PageUse, Pool, PoolConfig, Residence};
pub use room::{ROOM_KEPT_PAGES, Room};
pub use scrub::OnDisk;
pub use stats::PoolStats;
pub use store::{
    IsDirty, Kept, NoteGrowth, PageCodec, PageStore, PageWrite, Placed, StoreLook, StoreRead,
};
pub use torn_write::{DoubleWriteConfig, DoubleWriteMode, PageCopy, Repair};
pub use warm_list::WarmList;
pub use warm_plan::WarmPlan;
pub use weir_logstore::{ROOT_FILE, SEGMENTS_FILE};
pub use write_back::Written;
