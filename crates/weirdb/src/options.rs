//! How a transaction runs, and what a commit promises.
use std::time::Duration;

/// What a commit has promised when it returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The log is handed over within a second: a crash of the process or of the machine may lose
    /// the last commits of that time, the newest first, and nothing else.
    Lazy,
    /// The operating system has the log: a crash of the process loses nothing, one of the machine
    /// as with [`Durability::Lazy`].
    Written,
    /// The log is on stable storage: no crash loses the commit.
    #[default]
    Synced,
}

impl Durability {
    pub(crate) fn raw(self) -> weir::Durability {
        match self {
            Durability::Lazy => weir::Durability::Lazy,
            Durability::Written => weir::Durability::Written,
            Durability::Synced => weir::Durability::Synced,
        }
    }
}

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// Each read sees what is committed when it begins.
    ReadCommitted,
    /// Reads come from one snapshot; locking reads and writes work on what is committed now, so
    /// that a value that was read without a lock may be out of date when it is written.
    RepeatableRead,
    /// Reads come from one snapshot, and writing a row that another transaction has changed since
    /// fails with [`Conflict::Changed`](crate::Conflict::Changed): no update is lost. Two
    /// transactions that each read what the other writes may both commit.
    #[default]
    Snapshot,
    /// As if transactions ran one after the other: reads lock the rows and ranges that they read.
    Serializable,
}

impl Isolation {
    fn raw(self) -> weir::Isolation {
        match self {
            Isolation::ReadCommitted => weir::Isolation::ReadCommitted,
            Isolation::RepeatableRead => weir::Isolation::RepeatableRead,
            Isolation::Snapshot => weir::Isolation::Snapshot,
            Isolation::Serializable => weir::Isolation::Serializable,
        }
    }
}

/// How long a transaction waits for a row that another one has locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LockWait {
    /// Not at all.
    Never,
    /// At most so long.
    AtMost(Duration),
    /// Until it gets it, or a deadlock is found.
    Forever,
}

impl LockWait {
    pub(crate) fn raw(self) -> weir::Wait {
        match self {
            LockWait::Never => weir::Wait::No,
            LockWait::AtMost(time) => weir::Wait::Until(time),
            LockWait::Forever => weir::Wait::Until(Duration::MAX),
        }
    }
}

/// How a transaction runs. Unless told otherwise: at [`Isolation::Snapshot`], waiting up to ten
/// seconds for a lock, as durable as the database's [`Config`](crate::Config) says, and
/// [`Db::transact`](crate::Db::transact) runs it up to a hundred times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnOptions {
    isolation: Isolation,
    lock_wait: LockWait,
    pub(crate) durability: Option<Durability>,
    pub(crate) attempts: u32,
}

impl Default for TxnOptions {
    fn default() -> Self {
        TxnOptions {
            isolation: Isolation::default(),
            lock_wait: LockWait::AtMost(Duration::from_secs(10)),
            durability: None,
            attempts: 100,
        }
    }
}

impl TxnOptions {
    /// The usual.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it sees of others.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        TxnOptions { isolation, ..self }
    }

    /// How long it waits for a lock before the call fails.
    #[must_use]
    pub fn lock_wait(self, lock_wait: LockWait) -> Self {
        TxnOptions { lock_wait, ..self }
    }

    /// What its commit promises.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        TxnOptions { durability: Some(durability), ..self }
    }

    /// How often [`Db::transact`](crate::Db::transact) runs it at most, when it meets others; at
    /// least once.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        TxnOptions { attempts: attempts.max(1), ..self }
    }

    pub(crate) fn raw(&self) -> weir::TxnOptions {
        let (isolation, lock_wait) = (self.isolation.raw(), self.lock_wait.raw());
        weir::TxnOptions { isolation, lock_wait }
    }

    /// Whether reads take locks.
    pub(crate) fn reads_lock(&self) -> bool {
        self.isolation == Isolation::Serializable
    }
}
