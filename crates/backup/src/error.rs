//! Why a backup cannot be written or read.
use std::io;

use thiserror::Error;

/// An error of a backup. Each says at which byte of the stream.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The stream could not be read or written.
    #[error("at byte {at} of the backup: {cause}")]
    Io {
        /// Where in the stream.
        at: u64,
        /// The answer of the operating system.
        #[source]
        cause: io::Error,
    },
    /// It does not begin as a backup does.
    #[error("this is not a backup of Weir: it does not begin as one")]
    NotABackup,
    /// Another version's.
    #[error(
        "the backup has format {found}, this version of Weir reads format {}: use the version that \
         wrote it",
        crate::FORMAT
    )]
    OtherFormat {
        /// What was found.
        found: u32,
    },
    /// The stream ends too early.
    #[error(
        "the backup was cut short: it ends at byte {at}, before its end was written; make it anew"
    )]
    CutShort {
        /// How long it is.
        at: u64,
    },
    /// The process that made it could not finish it.
    #[error("the backup was not finished: {why}")]
    Failed {
        /// Why, as that process says.
        why: String,
    },
    /// Bytes are not what was written.
    #[error("the backup is damaged at byte {at}: {what}; use another one")]
    Damaged {
        /// Where in the stream.
        at: u64,
        /// What was found.
        what: String,
    },
}
