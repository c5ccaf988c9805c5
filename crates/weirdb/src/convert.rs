//! What the engine says, in the words of this interface.
use std::path::{Path, PathBuf};

use weir::{Details, LockError, TxnError};

use crate::error::{Cause, Conflict, Error, OpenError};

/// Of an open database in this directory.
pub(crate) fn error(dir: &Path, e: weir::Error) -> Error {
    match e {
        weir::Error::Duplicate => Error::Exists("there is a row with this key".into()),
        weir::Error::NoTree(why) => Error::NoTree(why),
        weir::Error::Config(what) | weir::Error::Directory(what) | weir::Error::Name(what) => {
            Error::InvalidInput(what)
        }
        weir::Error::Foreign(what) => Error::InvalidInput(what.into()),
        weir::Error::Input(e) => Error::InvalidInput(e.to_string()),
        weir::Error::Position(_) => Error::InvalidInput(e.to_string()),
        weir::Error::DiskFull(details) => {
            Error::DiskFull { path: dir.to_path_buf(), source: Cause::new(details) }
        }
        weir::Error::Damaged(details) => {
            let (file, offset, page) = place(&details);
            Error::Damaged { file, offset, page, source: Cause::new(details) }
        }
        weir::Error::Halted(cause) => Error::Halted { cause },
        weir::Error::Closed => Error::Closed,
        weir::Error::Forked => Error::Forked,
        weir::Error::ReadOnly | weir::Error::ForcedRecovery(_) => Error::ReadOnly,
        weir::Error::Io { what, cause } => Error::Io { what, source: cause },
        weir::Error::Key(_) => Error::Key(Cause::new(e)),
        weir::Error::Transaction(e) => of_transaction(dir, e),
    }
}

fn of_transaction(dir: &Path, e: TxnError) -> Error {
    match e {
        TxnError::Conflict => Conflict::Changed.into(),
        TxnError::Lock(refused) => match refused {
            LockError::WouldWait { .. } => Conflict::Locked.into(),
            LockError::TimedOut { waited, .. } => Conflict::LockTimeout { waited }.into(),
            LockError::Deadlock { .. } => Conflict::Deadlock(refused.to_string()).into(),
            LockError::Killed => Conflict::Interrupted.into(),
            LockError::Dropped => Error::NoTree(refused.to_string()),
        },
        TxnError::Ended => Error::TransactionOver,
        TxnError::Duplicate => Error::Exists("there is a row with this key".into()),
        TxnError::TooLarge { .. }
        | TxnError::NumbersUsedUp { .. }
        | TxnError::TooManyLocks { .. } => Error::TooLarge(e.to_string()),
        TxnError::RollbackFailed { .. } => Error::Halted { cause: e.to_string() },
        TxnError::Tree(e) => error(dir, e.into()),
        TxnError::Redo(e) => error(dir, e.into()),
    }
}

fn place(details: &Details) -> (Option<String>, Option<u64>, Option<u32>) {
    let place = details.place().clone();
    (place.file, place.offset, place.page)
}

/// Of opening the database in this directory.
pub(crate) fn open_error(dir: PathBuf, e: weir::Error) -> OpenError {
    match e {
        weir::Error::Config(why) => OpenError::Config(why),
        weir::Error::Directory(why) => OpenError::Directory { dir, why },
        e @ weir::Error::Key(_) => OpenError::Key { dir, source: Cause::new(e) },
        weir::Error::DiskFull(details) => OpenError::DiskFull { dir, source: Cause::new(details) },
        weir::Error::Damaged(details) => {
            let (file, offset, page) = place(&details);
            OpenError::Damaged { dir, file, offset, page, source: Cause::new(details) }
        }
        weir::Error::Io { what, cause } => {
            let in_use = cause.get_ref().and_then(|e| e.downcast_ref::<weir::InUse>());
            match in_use {
                Some(in_use) => OpenError::DatabaseLocked { dir, pid: in_use.pid },
                None => OpenError::Io { dir, what, source: cause },
            }
        }
        // Nothing else is said of an opening, but of a device that fails in the middle of it.
        e => {
            let what = "opening the database".into();
            OpenError::Io { dir, what, source: std::io::Error::other(e) }
        }
    }
}
