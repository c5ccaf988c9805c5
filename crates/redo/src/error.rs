//! What can go wrong with the log, and what to do then.
use std::io;
use std::sync::Arc;
use thiserror::Error;
use weir_base::{DbId, Lsn};

/// An error of the redo log. Each names the file and the place.
#[derive(Debug, Error)]
pub enum RedoError {
    /// An earlier write or sync failed. Nothing is acknowledged any more; the database must be
    /// closed, the device repaired, and the database opened again.
    #[error(
        "the redo log has halted, nothing is written any more: {cause}; \
         repair the device and open the database again"
    )]
    Halted {
        /// What failed first.
        cause: Arc<str>,
    },
    /// The device refused an operation.
    #[error("cannot {operation} {file} at offset {offset}: {source}")]
    Io {
        /// The verb: read, write, sync, create, remove, open.
        operation: &'static str,
        /// The file's name in its volume.
        file: String,
        /// The byte position in the file.
        offset: u64,
        /// The device's own words.
        source: io::Error,
    },
    /// Bytes in the log are not what was written.
    #[error("the redo log is damaged in {file} at offset {offset}: {what}; {advice}")]
    Damaged {
        /// The file's name in its volume.
        file: String,
        /// The byte position in the file.
        offset: u64,
        /// What was found.
        what: String,
        /// What to do.
        advice: &'static str,
    },
    /// A file of another database lies in the volume.
    #[error(
        "{file} belongs to the database {found}, not to {expected}; \
         put back the files that belong together"
    )]
    Foreign {
        /// The file's name in its volume.
        file: String,
        /// Whose it is.
        found: DbId,
        /// Whose it should be.
        expected: DbId,
    },
    /// A file was written by a version of Weir that this one does not know.
    #[error(
        "{file} has log format {found}; this version reads format {known}; \
         open the database with the version that wrote it"
    )]
    Format {
        /// The file's name in its volume.
        file: String,
        /// The format found.
        found: u32,
        /// The format that this version reads.
        known: u32,
    },
    /// The log has reached the last position that a file of it can name: 8 EiB, 292 years at
    /// 1 GB/s. What is there can be read and copied.
    #[error(
        "the log's positions are used up: it is at {at}; copy the database (weir copy): the copy \
         begins a log of its own"
    )]
    UsedUp {
        /// Where the log ends.
        at: Lsn,
    },
    /// A log file that must be there is missing.
    #[error(
        "no log file holds the position {lsn} ({what}); put the missing redo file back, or restore \
         the database from a backup"
    )]
    Missing {
        /// The position that no file holds.
        lsn: Lsn,
        /// How it is known that the position was written.
        what: &'static str,
    },
    /// A log was to be created where one lies already.
    #[error("{file} exists already; a new log is created only where there is none")]
    Exists {
        /// The file's name in its volume.
        file: String,
    },
    /// A group of redo is larger than any can be.
    #[error(
        "a group of {bytes} bytes of redo is above the limit of {limit} bytes; change less at once"
    )]
    TooLarge {
        /// The group's size.
        bytes: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// No file may be created: the log has as many as it can have.
    #[error("the redo log has {files} files and may not have more; the checkpoint must advance")]
    Full {
        /// How many there are.
        files: usize,
    },
}

/// The advice that goes with most damage.
pub(crate) const RESTORE: &str =
    "changes after this point cannot be recovered from this copy; restore the file or a backup";

/// The verb of what failed while a file was made; no other operation has it.
pub(crate) const CREATE: &str = "create";

impl RedoError {
    /// Whether a new file could not be had, be it for want of space, of quota or of descriptors.
    /// The log goes on with the files that there are: nothing of what it holds was touched.
    #[must_use]
    pub fn is_lack_of_space(&self) -> bool {
        matches!(self, RedoError::Full { .. } | RedoError::Io { operation: CREATE, .. })
    }

    pub(crate) fn io(operation: &'static str, file: &str, offset: u64, source: io::Error) -> Self {
        RedoError::Io { operation, file: file.to_owned(), offset, source }
    }

    pub(crate) fn damaged(file: &str, offset: u64, what: impl Into<String>) -> Self {
        RedoError::Damaged { file: file.to_owned(), offset, what: what.into(), advice: RESTORE }
    }
}

/// Shorthand of this crate.
pub type Result<T, E = RedoError> = std::result::Result<T, E>;
