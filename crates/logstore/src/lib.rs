//! A page store that writes out of place: segments that are filled from front to back, a map from
//! page numbers to places, no doublewrite; pages packed with zstd, and a cleaner.
//!
//! The protocol is `docs/decisions/log-structured.md`, and `tests/crash_model` crashes a model of
//! it.
#![forbid(unsafe_code)]

mod adapt;
mod append;
mod checkpoint;
mod clean;
mod codec;
mod core;
mod error;
pub mod format;
pub mod ids;
mod map;
pub mod policy;
pub mod policy_codec;
mod read;
mod rebuild;
mod recover;
mod room;
mod root_file;
mod segments;
mod shrink;
mod stats;
mod store;
mod stream;
mod upkeep;
mod write;

pub use core::SEGMENTS_FILE;

pub use clean::{Cleaned, Dirty, NeverDirty};
pub use codec::Packing;
pub use error::StoreError;
pub use read::PageRead;
pub use rebuild::{Known, Rebuilt};
pub use root_file::ROOT_FILE;
pub use stats::LogStoreStats;
pub use store::{LogStore, LogStoreConfig, Observed};
pub use upkeep::{Act, Kept, Upkeep};
pub use write::PageImage;
