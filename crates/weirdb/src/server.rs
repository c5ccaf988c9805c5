//! What a program that serves many clients needs besides: to see which transaction waits for
//! which lock and to end a wait, statements at
//! [`Isolation::ReadCommitted`](crate::Isolation::ReadCommitted), all numbers there are for a
//! monitoring system, and a bound on the time that opening takes. For the feature `server`; the
//! methods are those of [`Db`] and [`WriteTxn`].
//!
//! ```
//! # fn main() -> Result<(), weirdb::Error> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! # let db = weirdb::Db::open(dir.path())?;
//! # let accounts = db.open_tree("accounts")?;
//! let mut txn = db.write();
//! let number = txn.number()?;
//! txn.get_for_update(&accounts, "alice")?;
//! let held = db.locks()?;
//! assert!(held[0].owner == number && held[0].tree == "accounts" && !held[0].is_waiting);
//! // Another thread, when the client has gone: the wait of that transaction ends.
//! db.interrupt(number);
//! # Ok(())
//! # }
//! ```
use std::fmt;

use crate::db::Db;
use crate::error::Error;
use crate::options::LockWait;
use crate::shared::entered;
use crate::write::WriteTxn;

/// The number of a transaction in its database: [`WriteTxn::number`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TxnNumber(u64);

impl TxnNumber {
    /// As a number, for people and for logs.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TxnNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A lock that a transaction holds or waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Lock {
    /// The transaction.
    pub owner: TxnNumber,
    /// The tree's name; none if it was dropped meanwhile.
    pub tree: String,
    /// The key, or the first of a range.
    pub key: Vec<u8>,
    /// Whether it is a range.
    pub is_range: bool,
    /// The first key behind the range; `None`: it has no end.
    pub to: Option<Vec<u8>>,
    /// Whether others may share it.
    pub is_shared: bool,
    /// Whether it is only waited for.
    pub is_waiting: bool,
}

/// A number about the database, and what it means.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, as Prometheus wants names, with the unit at its end: `weir_checkpoint_age_bytes`.
    pub name: String,
    /// Whether it only grows while the database is open; otherwise it is a level.
    pub is_counter: bool,
    /// In what it is counted; seconds and bytes are never scaled.
    pub unit: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Its value now. May be infinite: no limit.
    pub value: f64,
}

impl Db {
    /// The explicit locks, each as it was at some moment of the call. A row that a transaction has
    /// written is its own without one, until another waits for it.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`] when the trees' names cannot be read; [`Error::Closed`].
    pub fn locks(&self) -> Result<Vec<Lock>, Error> {
        let seen = self.inner.raw.locks().map_err(|e| self.inner.fails(e))?;
        let shown = seen.into_iter().map(|lock| Lock {
            owner: TxnNumber(lock.owner.0),
            tree: lock.tree,
            key: lock.key,
            is_range: lock.is_range,
            to: lock.to,
            is_shared: lock.is_shared,
            is_waiting: lock.is_waiting,
        });
        Ok(shown.collect())
    }

    /// Ends the wait for a lock of a transaction, or its next one: the call that waits fails with
    /// [`Conflict::Interrupted`](crate::Conflict::Interrupted), and the transaction goes on. Any
    /// thread may call it. Does nothing when the transaction has ended.
    pub fn interrupt(&self, txn: TxnNumber) {
        self.inner.raw.cancel_lock_wait(weir::TxnId(txn.0));
    }

    /// All numbers there are: the same ones in the same order, each time.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        self.inner.raw.visit_metrics(&mut |metric, value| {
            all.push(Metric {
                name: metric.name,
                is_counter: metric.kind == weir::MetricKind::Counter,
                unit: metric.unit,
                help: metric.help,
                value,
            });
        });
        all
    }

    /// Keeps the checkpoint young enough that opening after a crash takes at most about so many
    /// seconds, at the price of more page writes; 0: the log's capacity alone decides. Until the
    /// next opening.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for what is no number, or below 0.
    pub fn set_recovery_seconds(&self, seconds: f64) -> Result<(), Error> {
        self.inner.raw.set_recovery_seconds(seconds).map_err(|e| self.inner.fails(e))
    }
}

impl WriteTxn {
    /// Its number, given now if it has none yet: for [`Db::interrupt`], and as [`Db::locks`] shows
    /// it.
    ///
    /// # Errors
    /// [`Error::TransactionOver`], [`Error::Closed`].
    pub fn number(&mut self) -> Result<TxnNumber, Error> {
        self.with(weir::Txn::number).map(|number| TxnNumber(number.0))
    }

    /// Takes the snapshot now that its first read would take.
    pub fn take_snapshot(&mut self) {
        entered(self.raw()).take_snapshot();
    }

    /// Begins a statement: at [`Isolation::ReadCommitted`](crate::Isolation::ReadCommitted) all its
    /// reads without locks come from one snapshot taken now, until the next statement or
    /// [`WriteTxn::end_statement`]. An interruption that came too late for the one before is
    /// forgotten.
    pub fn begin_statement(&mut self) {
        entered(self.raw()).begin_statement();
    }

    /// Gives the snapshot of [`WriteTxn::begin_statement`] up, so that it holds back no cleaning.
    pub fn end_statement(&mut self) {
        entered(self.raw()).end_statement();
    }

    /// How long it waits for a lock from now on.
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        entered(self.raw()).set_lock_wait(wait.raw());
    }
}
