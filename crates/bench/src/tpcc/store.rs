//! What the embedded backend asks of a store beyond [`Target`]: transactions over its trees.
use super::backend::Why;
use crate::durability::Durability;
use crate::target::Target;
use anyhow::{Result, bail};
use std::str::FromStr;

/// A store with transactions.
pub trait Transactional: Target {
    /// One of them. Dropped without a commit it is rolled back.
    type Txn<'a>: Txn<Self::Table, Ticket = Self::Ticket>
    where
        Self: 'a;

    /// What a commit gives: it can be waited for.
    type Ticket: Copy + Send;

    /// Begins one.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn begin(&self, access: Access, isolation: Isolation) -> Result<Self::Txn<'_>>;

    /// Returns when this commit is as durable as asked.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn wait(&self, ticket: Self::Ticket, durability: Durability) -> Result<()>;

    /// Whether this commit is synced.
    fn is_synced(&self, ticket: Self::Ticket) -> bool;
}

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read from one snapshot.
    Read,
    /// Change rows, too.
    Write,
}

/// What transactions see of each other. All of these keep TPC-C consistent: it changes rows to what
/// they were committed as last. (To read what is not committed clause 3.4.1 allows no transaction
/// but Stock-Level: the others meet orders without their lines.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Each read sees what is committed then.
    ReadCommitted,
    /// All reads see one snapshot, changes are made to what was committed last.
    #[default]
    RepeatableRead,
    /// All reads see one snapshot, and a change to a row that is newer is refused.
    Snapshot,
    /// As one after the other: reads lock what they read, and the absence of what they do not find.
    Serializable,
}

impl FromStr for Isolation {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "read-committed" => Isolation::ReadCommitted,
            "repeatable-read" => Isolation::RepeatableRead,
            "snapshot" => Isolation::Snapshot,
            "serializable" => Isolation::Serializable,
            _ => bail!(
                "'{text}' is no isolation; choose read-committed, repeatable-read, snapshot, \
                 serializable"
            ),
        })
    }
}

/// Why an operation did not do what it was asked to.
#[derive(Debug)]
pub enum Stop {
    /// The transaction must be rolled back and may be tried again.
    Retry(Why),
    /// The store reports this.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Stop::Failed(error)
    }
}

/// Makes a new value from an old one: see [`Txn::update`].
pub type Edit<'a> = dyn FnMut(&[u8], &mut Vec<u8>) -> bool + 'a;

/// A transaction. Reads see one snapshot and the transaction's own changes; changes are made to
/// what was committed last.
pub trait Txn<T> {
    /// See [`Transactional::Ticket`].
    type Ticket;

    /// Replaces `out` by the key's value; false when it is absent.
    ///
    /// # Errors
    /// [`Stop`], as everywhere here.
    fn get(&mut self, tree: &T, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;

    /// Adds a row whose key is not there.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn insert(&mut self, tree: &T, key: &[u8], value: &[u8]) -> Result<(), Stop>;

    /// Makes a row's value from the old one, as it was committed last, and keeps others from
    /// changing it: `edit` gets the old value and an empty buffer, and says whether to keep what it
    /// has written there. It may be called more than once. False when there is no row.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn update(&mut self, tree: &T, key: &[u8], edit: &mut Edit<'_>) -> Result<bool, Stop>;

    /// Removes a row as it was committed last; false when there is none.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn delete(&mut self, tree: &T, key: &[u8]) -> Result<bool, Stop>;

    /// Visits rows with keys not below `from`, upwards, until `visit` says false.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn scan(
        &mut self,
        tree: &T,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Stop>;

    /// Replaces `out` by the greatest key below `key`; false when there is none.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn last_below(&mut self, tree: &T, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;

    /// Ends it: others see its changes; durable once the ticket is.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn commit(self) -> Result<Self::Ticket, Stop>;

    /// Ends it and rolls its changes back.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn rollback(self) -> Result<(), Stop>;
}
