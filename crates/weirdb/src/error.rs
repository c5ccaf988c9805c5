//! Errors, as callers get them: by what can be done about it.
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why an operation failed. Unless the variant says otherwise nothing was changed, and everything
/// else goes on. Its [`source`](StdError::source) is what the layers below have said, down to the
/// operating system.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transaction met another one: begin it anew ([`Error::is_retryable`],
    /// [`Db::transact`](crate::Db::transact)).
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// There is a row with this key, or a tree with this name, already.
    #[error("{0} already")]
    Exists(String),
    /// The tree was dropped, or what made it was rolled back: this handle of it is good for nothing
    /// any more.
    #[error("{0}")]
    NoTree(String),
    /// Something was given that cannot be: a key or value that is too long, entries out of order, a
    /// handle or savepoint of something else. The same call fails again.
    #[error("{0}")]
    InvalidInput(String),
    /// The transaction has ended: a deadlock has ended it.
    #[error("the transaction has ended")]
    TransactionOver,
    /// One transaction does more than fits into memory or log; in smaller ones, it fits.
    #[error("{0}")]
    TooLarge(String),
    /// The disk is full. Reads go on; writes go on when there is room again.
    #[error("the disk is full under {}: {source}", path.display())]
    #[non_exhaustive]
    DiskFull {
        /// The database's directory.
        path: PathBuf,
        /// What could not be done.
        source: Cause,
    },
    /// Something on disk is not what was written. Other rows can be read; what is lost must come
    /// from a backup.
    #[error("the database is damaged: {source}")]
    #[non_exhaustive]
    Damaged {
        /// The file in the database's directory, if known.
        file: Option<String>,
        /// The byte in that file, if known.
        offset: Option<u64>,
        /// The page, if it is one, and is known.
        page: Option<u32>,
        /// What was found.
        source: Cause,
    },
    /// A device has failed, or a thread of the engine: nothing is written any more, and what was
    /// acknowledged is not lost. Rows in memory can be read. Close the database, and open it again
    /// once the device is well. Of a commit that failed so it is not known whether it survives.
    #[error("the database has halted: {cause}")]
    #[non_exhaustive]
    Halted {
        /// What failed first.
        cause: String,
    },
    /// The database has been closed ([`Db::close`](crate::Db::close)).
    #[error("the database has been closed")]
    Closed,
    /// The database was opened before this process was forked: only the process that opened it may
    /// use it. What the child does with its copies of the handles changes nothing.
    #[error(
        "the database was opened before this process was forked: only the process that opened it \
         may use it, or a process that opens it for itself when that one has closed it"
    )]
    Forked,
    /// The database was opened to be read only ([`Config::read_only`](crate::Config::read_only),
    /// [`Config::force_recovery`](crate::Config::force_recovery)).
    #[error("the database was opened to be read only")]
    ReadOnly,
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A key or a value is not what the tree's types say.
    #[error("what is stored in the tree is not of its type: {0}")]
    Decode(#[source] Cause),
    /// A key is missing or another one, or none can be had now.
    #[error(transparent)]
    Key(Cause),
    /// The operating system refused.
    #[error("{what}: {source}")]
    #[non_exhaustive]
    Io {
        /// What was being done.
        what: String,
        /// The answer.
        source: io::Error,
    },
}

/// In which way a transaction met another one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// Another transaction has changed the row since this one's snapshot was taken. This one can
    /// only be rolled back.
    #[error("another transaction has changed the row since this one began")]
    Changed,
    /// Several transactions waited in a circle, and this one was rolled back.
    #[error("{0}")]
    Deadlock(String),
    /// Another transaction had the row locked for all the time that this one waits. The transaction
    /// goes on.
    #[error("another transaction had the row locked, for {waited:?}")]
    #[non_exhaustive]
    LockTimeout {
        /// How long this one waited.
        waited: Duration,
    },
    /// Another transaction has the row locked, and this one was not to wait. The transaction goes
    /// on.
    #[error("another transaction has the row locked")]
    Locked,
    /// The wait for a lock was interrupted. The transaction goes on.
    #[error("the wait for a lock was interrupted")]
    Interrupted,
}

/// Why a database could not be opened. Nothing of what lies there was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is open already, in this process or another one.
    #[error("the database in {} is open already{}", dir.display(), by(*.pid))]
    #[non_exhaustive]
    DatabaseLocked {
        /// Its directory.
        dir: PathBuf,
        /// The process that has it open, if known.
        pid: Option<u32>,
    },
    /// The directory does not hold what it should: no database, or one where none was expected, or
    /// other files, or it is none.
    #[error("{}: {why}", dir.display())]
    #[non_exhaustive]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A setting that is not possible.
    #[error("{0}")]
    Config(String),
    /// It is encrypted, and its key is missing or another one; or no key can be had to encrypt it.
    #[error("{}: {source}", dir.display())]
    #[non_exhaustive]
    Key {
        /// Its directory.
        dir: PathBuf,
        /// Which key is needed.
        source: Cause,
    },
    /// What is there is damaged: restore it from a backup.
    #[error("the database in {} is damaged: {source}", dir.display())]
    #[non_exhaustive]
    Damaged {
        /// Its directory.
        dir: PathBuf,
        /// The file, if known.
        file: Option<String>,
        /// The byte in that file, if known.
        offset: Option<u64>,
        /// The page, if it is one, and is known.
        page: Option<u32>,
        /// What was found.
        source: Cause,
    },
    /// The disk is full.
    #[error("the disk is full under {}: {source}", dir.display())]
    #[non_exhaustive]
    DiskFull {
        /// The directory.
        dir: PathBuf,
        /// What could not be done.
        source: Cause,
    },
    /// The operating system refused: no permission, media that cannot be written, a device that
    /// fails.
    #[error("{}: {what}: {source}", dir.display())]
    #[non_exhaustive]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What was being done.
        what: String,
        /// The answer.
        source: io::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => ", by this process".into(),
        Some(pid) => format!(", by process {pid}"),
        None => String::new(),
    }
}

/// What the layers below have said.
pub struct Cause(pub(crate) Box<dyn StdError + Send + Sync>);

impl Cause {
    /// Of anything.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Cause(cause.into())
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl Error {
    /// Whether the same transaction, begun anew, may well succeed: it met another one.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Conflict(_))
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        let kind = match &e {
            Error::Exists(_) => io::ErrorKind::AlreadyExists,
            Error::DiskFull { .. } | Error::Open(OpenError::DiskFull { .. }) => {
                io::ErrorKind::StorageFull
            }
            Error::Damaged { .. } | Error::Decode(_) | Error::Open(OpenError::Damaged { .. }) => {
                io::ErrorKind::InvalidData
            }
            Error::InvalidInput(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, e)
    }
}
