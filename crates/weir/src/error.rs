//! Errors, as callers get them.
use std::io;

use thiserror::Error;
use weir_base::PageNo;
use weir_btree::TreeError;
use weir_checkpoint::WorkerError;
use weir_crypt::CryptError;
use weir_pool::PoolError;
use weir_redo::RedoError;
use weir_space::SpaceError;
use weir_txn::TxnError;

use crate::details::{DamagedPlace, Details};

/// Why an operation failed. Unless it says otherwise, nothing was changed and other operations go
/// on.
#[derive(Debug, Error)]
pub enum Error {
    /// A setting has a value that is not possible.
    #[error("{0}")]
    Config(String),
    /// The directory is not what opening expects.
    #[error("{0}")]
    Directory(String),
    /// A name that no tree can have, or that another one has.
    #[error("{0}")]
    Name(String),
    /// A key or value is too long, or not in order.
    #[error(transparent)]
    Input(TreeError),
    /// To wait for a commit behind the end of the log: of another database, or none.
    #[error("no commit ends at position {0} of the log: it is of another database, or of none")]
    Position(weir_base::Lsn),
    /// What was given belongs to something else: a tree or a snapshot to another database, a cursor
    /// to another transaction.
    #[error("{0}")]
    Foreign(&'static str),
    /// The disk is full. Reads go on; writes go on once there is room again.
    #[error(transparent)]
    DiskFull(Details),
    /// Something on disk is not what was written ([`Details::place`] says where, as far as that is
    /// known). The rest of the database stays readable.
    #[error(transparent)]
    Damaged(Details),
    /// The engine has halted after a device failure: nothing that was acknowledged is lost; open
    /// the database again once the device is well.
    #[error("the engine has halted: {0}")]
    Halted(String),
    /// The database, or a backup, is encrypted, and its key is missing or another one; or there is
    /// no key to encrypt with. Nothing was touched.
    #[error(transparent)]
    Key(CryptError),
    /// The database has been closed ([`crate::Db::close`]): this handle is good for nothing any
    /// more.
    #[error("the database has been closed")]
    Closed,
    /// The database was opened before this process was forked from the one that has it open, which
    /// alone may use it: this handle is good for nothing here.
    #[error(
        "the database was opened before this process was forked: only the process that opened it \
         may use it, or a process that opens it for itself when that one has closed it"
    )]
    Forked,
    /// The database has been opened to be read alone ([`crate::Config::read_only`]).
    #[error("the database has been opened to be read alone: nothing can be changed")]
    ReadOnly,
    /// The database has been opened with this step of a forced recovery
    /// ([`crate::Config::force_recovery`]): nothing can be changed, nor copied as if it were whole.
    #[error(
        "the database has been opened with force_recovery={0}, to read what can be read of it: \
         nothing can be changed. Dump what is to be kept, or have 'weir salvage' make a new \
         database of the files, and open it without"
    )]
    ForcedRecovery(u8),
    /// The device or the operating system refused.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// The answer.
        #[source]
        cause: io::Error,
    },
    /// The tree has been dropped, or what made it was rolled back: this handle is good for nothing
    /// any more.
    #[error("{0}")]
    NoTree(String),
    /// A row with this key is there already.
    #[error("there is a row with this key already")]
    Duplicate,
    /// A transaction failed for a reason of its own.
    #[error(transparent)]
    Transaction(TxnError),
}

impl Error {
    /// Whether the same transaction, begun anew, may well succeed: it met another one.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Transaction(TxnError::Lock(_) | TxnError::Conflict))
    }

    /// Whether it was chosen to resolve a deadlock: it has been rolled back as a whole.
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Error::Transaction(TxnError::Lock(weir_txn::LockError::Deadlock { .. })))
    }

    pub(crate) fn io(what: impl Into<String>, cause: io::Error) -> Self {
        if cause.kind() == io::ErrorKind::StorageFull {
            let words = format!("{}: {cause}", what.into());
            return Error::DiskFull(Details::of(cause).reworded(words));
        }
        Error::Io { what: what.into(), cause }
    }
}

fn of_page(page: PageNo) -> DamagedPlace {
    DamagedPlace { page: Some(page.0), ..DamagedPlace::default() }
}

impl From<PoolError> for Error {
    fn from(e: PoolError) -> Self {
        match e {
            PoolError::Damaged { page, ref file, offset, .. } => {
                let (file, offset) = (Some(file.clone()), Some(offset));
                let place = DamagedPlace { file, offset, page: Some(page.0) };
                Error::Damaged(Details::of(e).at(place))
            }
            PoolError::StoreDamaged { file, offset, .. } => {
                let (file, offset) = (Some(file.to_owned()), Some(offset));
                Error::Damaged(Details::of(e).at(DamagedPlace { file, offset, page: None }))
            }
            PoolError::NoSuchPage(page) | PoolError::Behind { page, .. } => {
                Error::Damaged(Details::of(e).at(of_page(page)))
            }
            PoolError::Halted(why) => Error::Halted(why),
            PoolError::Size(words) => Error::Config(words),
            PoolError::Redo(e) => e.into(),
            PoolError::Device { .. } if e.is_disk_full() => Error::DiskFull(Details::of(e)),
            PoolError::Device { what, cause } => {
                Error::Io { what, cause: io::Error::new(cause.kind(), cause) }
            }
        }
    }
}

impl From<RedoError> for Error {
    fn from(e: RedoError) -> Self {
        match e {
            RedoError::Halted { cause } => Error::Halted(cause.to_string()),
            RedoError::Io { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Error::DiskFull(Details::of(e))
            }
            RedoError::Io { .. } => {
                Error::Io { what: "the redo log".into(), cause: io::Error::other(e) }
            }
            RedoError::UsedUp { .. } => Error::Halted(e.to_string()),
            RedoError::TooLarge { .. } => Error::Config(e.to_string()),
            RedoError::Damaged { ref file, offset, .. } => {
                let (file, offset) = (Some(file.clone()), Some(offset));
                Error::Damaged(Details::of(e).at(DamagedPlace { file, offset, page: None }))
            }
            RedoError::Foreign { ref file, .. }
            | RedoError::Format { ref file, .. }
            | RedoError::Exists { ref file } => {
                let place = DamagedPlace { file: Some(file.clone()), ..DamagedPlace::default() };
                Error::Damaged(Details::of(e).at(place))
            }
            RedoError::Missing { .. } | RedoError::Full { .. } => Error::Damaged(Details::of(e)),
        }
    }
}

impl From<SpaceError> for Error {
    fn from(e: SpaceError) -> Self {
        match e {
            SpaceError::DiskFull(_) | SpaceError::TooLarge(_) => Error::DiskFull(Details::of(e)),
            SpaceError::Pool(e) => e.into(),
            SpaceError::Redo(e) => e.into(),
        }
    }
}

impl From<TreeError> for Error {
    fn from(e: TreeError) -> Self {
        match e {
            TreeError::Pool(e) => e.into(),
            TreeError::Space(e) => e.into(),
            TreeError::Redo(e) => e.into(),
            TreeError::Stopped(why) => Error::Halted(why),
            TreeError::Gone(_) => Error::NoTree(e.to_string()),
            TreeError::Damaged { page, .. } => Error::Damaged(Details::of(e).at(of_page(page))),
            TreeError::KeyTooLong { .. }
            | TreeError::ValueTooLong(_)
            | TreeError::NotAscending(_)
            | TreeError::NotEmpty => Error::Input(e),
        }
    }
}

impl From<TxnError> for Error {
    fn from(e: TxnError) -> Self {
        match e {
            TxnError::Tree(e) => e.into(),
            TxnError::Redo(e) => e.into(),
            TxnError::Duplicate => Error::Duplicate,
            TxnError::RollbackFailed { .. } => rollback_failed(e),
            TxnError::TooLarge { .. }
            | TxnError::NumbersUsedUp { .. }
            | TxnError::TooManyLocks { .. }
            | TxnError::Lock(_)
            | TxnError::Conflict
            | TxnError::Ended => Error::Transaction(e),
        }
    }
}

/// As what kept the changes from being rolled back, in the words for both failures.
fn rollback_failed(e: TxnError) -> Error {
    let words = e.to_string();
    let TxnError::RollbackFailed { then, .. } = e else { return Error::Transaction(e) };
    match Error::from(*then) {
        Error::DiskFull(details) => Error::DiskFull(details.reworded(words)),
        Error::Damaged(details) => Error::Damaged(details.reworded(words)),
        Error::Halted(_) => Error::Halted(words),
        Error::Io { cause, .. } => Error::Io { what: words, cause },
        other => other,
    }
}

impl From<WorkerError> for Error {
    fn from(e: WorkerError) -> Self {
        match e {
            WorkerError::Pool(e) => e.into(),
            WorkerError::Redo(e) => e.into(),
            WorkerError::Control(cause) => Error::Io {
                what: "writing the control file".into(),
                cause: io::Error::new(cause.kind(), cause),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_rollback_is_reported_with_both_causes() {
        let full = || TxnError::from(SpaceError::TooLarge(9));
        for (then, is_full) in [(full(), true), (TreeError::Stopped("it".into()).into(), false)] {
            let failed =
                TxnError::RollbackFailed { first: TxnError::Conflict.into(), then: then.into() };
            let error = Error::from(failed);
            assert_eq!(is_full, matches!(error, Error::DiskFull(_)));
            assert_eq!(!is_full, matches!(error, Error::Halted(_)));
            assert!(error.to_string().contains(&TxnError::Conflict.to_string()), "{error}");
        }
    }
}
