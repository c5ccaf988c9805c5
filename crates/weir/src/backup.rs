//! What a caller of a backup gives and gets.
use std::io::Read;

use weir_backup::{BackupError, Begin, Reader};
use weir_base::{DbId, Lsn};

use crate::details::Details;
use crate::error::Error;

/// Another backup of the same database: the next one needs only what was changed since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupBase {
    pub(crate) db: DbId,
    pub(crate) id: u64,
    pub(crate) era: u64,
    pub(crate) checkpoint: Lsn,
}

impl BackupBase {
    /// Reads it from that backup's beginning.
    ///
    /// # Errors
    /// [`Error::Damaged`] and others when it is none.
    pub fn read(backup: impl Read) -> Result<BackupBase, Error> {
        Ok(BackupBase::of(Reader::open(backup)?.begin()))
    }

    pub(crate) fn of(begin: &Begin) -> BackupBase {
        let Begin { id, control, .. } = *begin;
        let (db, era, checkpoint) = (control.db, control.era.number, control.checkpoint);
        BackupBase { db, id, era, checkpoint }
    }
}

/// How to back up.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackupOptions {
    /// Pages that were not changed since that backup are left out.
    pub since: Option<BackupBase>,
    /// Bytes to read per second at most; `None`: all that the disk gives while the database is
    /// idle, and little while it is at work.
    pub bytes_per_second: Option<u64>,
    /// When all is there, it goes on with the log that is written from then on, until `progress`
    /// says `false`: any moment since can be restored ([`crate::RestorePoint`]).
    pub follow: bool,
}

/// How far a backup is.
#[derive(Clone, Copy, Debug)]
pub struct BackupProgress {
    /// Pages gone through.
    pub pages: u64,
    /// Pages that there are to go through.
    pub pages_of: u64,
    /// Bytes written.
    pub bytes: u64,
    /// All is there, and the log is followed.
    pub follows: bool,
}

/// A backup that is whole.
#[derive(Clone, Copy, Debug)]
pub struct BackedUp {
    /// Where its log begins.
    pub from: Lsn,
    /// The state that it holds: all that was committed up to here.
    pub end: Lsn,
    /// Pages in it.
    pub pages: u64,
    /// Bytes of log in it.
    pub log_bytes: u64,
    /// All bytes.
    pub bytes: u64,
}

impl From<BackupError> for Error {
    fn from(e: BackupError) -> Self {
        match e {
            BackupError::Io { at, cause } => {
                Error::io(format!("reading or writing the backup at byte {at}"), cause)
            }
            BackupError::OtherFormat { .. } | BackupError::NotABackup => {
                Error::Config(e.to_string())
            }
            BackupError::CutShort { .. }
            | BackupError::Failed { .. }
            | BackupError::Damaged { .. } => Error::Damaged(Details::of(e)),
        }
    }
}
