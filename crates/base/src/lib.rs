//! Words that every floor shares: positions, names, sizes, aligned memory, checksums, time,
//! counters, the engine's health, locks and their one order. Knows nothing of what stands above it.
mod aligned;
mod array;
mod checksum;
mod clock;
mod fork;
mod health;
mod heap;
pub mod held;
mod ids;
pub mod lines;
pub mod lock;
mod mapping;
pub mod rank;
mod size;
mod stat;
mod thread_counts;
mod unique;
pub mod varint;

pub use aligned::{ALIGN, AlignedBuf, align_down, align_up};
pub use array::LargeArray;
pub use checksum::{checksum, checksum_more};
pub use clock::{Clock, ManualClock, SystemClock};
pub use fork::Home;
pub use health::{Health, Listener, Notice};
pub use heap::{spare_address_space, trim_heap};
pub use ids::{DbId, Era, Lsn, PageNo, TreeId, TxnId};
pub use mapping::{HUGE_PAGE, LargeBuf, Mapping};
pub use size::{SizeError, format_size, parse_size};
pub use stat::{Counter, Stats};
pub use thread_counts::ThreadCounts;
pub use unique::unique_number;
