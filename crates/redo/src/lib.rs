//! The redo log: makes groups of opaque bytes durable in order, with lock-free appending and group
//! commit, in recycled files whose total size may change while it runs; and reads them back after a
//! crash. Knows nothing of pages.
#![deny(unsafe_code)] // Allowed in `ring` alone.
mod block;
mod chunk;
mod claims;
mod error;
mod fill;
mod gather;
mod held_log;
mod holds;
mod image;
mod log;
mod open;
mod position;
mod read;
mod reader;
mod recent;
mod recycle;
#[allow(unsafe_code)]
mod ring;
mod rounds;
mod scan;
mod segment;
mod shrink;
mod stats;
mod survey;
mod sync;
mod table;
mod wait;
mod write;

pub use chunk::{Chunk, GroupAt};
pub use error::{RedoError, Result};
pub use held_log::LogHold;
pub use image::{LogImage, whole_groups};
pub use log::{BUFFER_MIN, Durability, GROUP_BODY_MAX, GROUP_BODY_MIN, Log, LogConfig};
pub use position::Span;
pub use reader::Reader;
pub use scan::{ScanEnd, ScanOptions, scan, scan_chunks};
pub use segment::SegmentInfo;
pub use stats::RedoStats;
pub use survey::{
    BlockRun, BlockState, FileSurvey, HeaderSurvey, chunks_as_far_as_they_go,
    scan_as_far_as_it_goes, survey,
};
