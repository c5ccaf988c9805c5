//! What can go wrong between a page and the disk.
use std::io;
use std::sync::Arc;

use thiserror::Error;
use weir_base::{Lsn, PageNo};
use weir_page::Damage;
use weir_redo::RedoError;

/// Why a page could not be had or written.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The bytes on disk are not the page that was asked for. The rest of the database is readable.
    #[error("page {page} in '{file}' at byte {offset} is damaged: {found}")]
    Damaged {
        /// Which page.
        page: PageNo,
        /// The file it lies in.
        file: String,
        /// Where it begins in that file.
        offset: u64,
        /// What is wrong with it.
        found: Damage,
    },
    /// A page and what the log has for it do not belong together.
    #[error(
        "page {page} cannot be brought up to date: the log's change at position {lsn} does not \
         apply to it: {cause}"
    )]
    Behind {
        /// Which page.
        page: PageNo,
        /// Which change: where its group ends.
        lsn: Lsn,
        /// Why not.
        cause: String,
    },
    /// What says where the pages lie is not what was written: none of them can be found.
    #[error("{what} in '{file}' at byte {offset} is damaged: {cause}")]
    StoreDamaged {
        /// Which part of the store.
        what: String,
        /// The file it lies in.
        file: &'static str,
        /// Where it begins in that file.
        offset: u64,
        /// How it shows.
        cause: String,
    },
    /// A page number that no page can have (beyond the end of the database).
    #[error("page {0} does not exist: the database is not that large")]
    NoSuchPage(PageNo),
    /// The device refused a read, a write or a sync.
    #[error("{what} failed: {cause}")]
    Device {
        /// The operation and the file.
        what: String,
        /// What the operating system said.
        cause: Arc<io::Error>,
    },
    /// The log refused, so the page may not be written.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// The pool cannot have so much memory, or not now: it has what it had.
    #[error("{0}")]
    Size(String),
    /// A device failed earlier; the engine only reads what it still has.
    #[error("the engine has halted after a device failure: {0}")]
    Halted(String),
}

impl PoolError {
    /// Wraps an I/O error with what was being done.
    pub fn device(what: impl Into<String>, cause: io::Error) -> Self {
        PoolError::Device { what: what.into(), cause: Arc::new(cause) }
    }

    /// Whether the disk had no room left.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        let PoolError::Device { cause, .. } = self else { return false };
        cause.kind() == io::ErrorKind::StorageFull
    }
}
