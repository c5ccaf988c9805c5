//! What can go wrong between a page and its segment.
use std::io;
use std::sync::Arc;

use thiserror::Error;
use weir_base::{DbId, PageNo};

/// Why a page could not be had or written, or the store not opened.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The bytes on disk are not what was written there. The rest of the store is readable.
    #[error("{what} in '{file}' at byte {offset} is damaged: {cause}")]
    Damaged {
        /// Which part of the store.
        what: String,
        /// The file it lies in.
        file: &'static str,
        /// Where it begins in that file.
        offset: u64,
        /// How it shows.
        cause: &'static str,
    },
    /// A page number beyond those that there is room for.
    #[error("page {0} does not exist: the store is not that large")]
    NoSuchPage(PageNo),
    /// The page was never written, or was freed.
    #[error("page {0} was never written, or was freed")]
    Absent(PageNo),
    /// The device refused a read, a write or a sync.
    #[error("{what} failed: {cause}")]
    Device {
        /// The operation and the file.
        what: String,
        /// What the operating system said.
        cause: Arc<io::Error>,
    },
    /// No segment can be had: the disk is full, and cleaning would give nothing. Nothing was
    /// changed.
    #[error(
        "the store is full: {live_bytes} of {bytes} bytes are in use, and the disk has no room"
    )]
    Full {
        /// Bytes of blocks that are needed.
        live_bytes: u64,
        /// Bytes of all segments.
        bytes: u64,
    },
    /// A device failed earlier; the store only reads.
    #[error("the store has halted after a device failure: {0}")]
    Halted(String),
    /// The files are another store's.
    #[error("the store bears the number {found}, and {expected} was expected")]
    OtherStore {
        /// The number that was expected.
        expected: DbId,
        /// The number that was found.
        found: DbId,
    },
    /// Another version's store.
    #[error("the store has format {0}: use the version that wrote it")]
    OtherFormat(u32),
    /// A configuration that no store can have.
    #[error("a store cannot be so: {0}")]
    Config(&'static str),
}

impl StoreError {
    /// Wraps an I/O error with what was being done.
    pub(crate) fn device(what: impl Into<String>, cause: io::Error) -> Self {
        StoreError::Device { what: what.into(), cause: Arc::new(cause) }
    }

    /// Whether the disk had no room left.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            StoreError::Full { .. } => true,
            StoreError::Device { cause, .. } => cause.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }
}
