//! What the embedded backend asks of a store beyond [`Target`]: transactions over its trees.
use super::backend::{Ticket, Why};
use crate::options::Durability;
use crate::target::Target;
use anyhow::Result;

/// A store with transactions.
pub trait Transactional: Target {
    /// One of them. Dropped without a commit it is rolled back.
    type Txn<'a>: Txn<Self::Table>
    where
        Self: 'a;

    /// Begins one.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn begin(&self, access: Access) -> Result<Self::Txn<'_>>;

    /// Returns when everything up to this ticket is as durable as asked.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn wait(&self, ticket: Ticket, durability: Durability) -> Result<()>;

    /// Up to which ticket everything is synced.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn synced(&self) -> Result<Ticket>;
}

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read from one snapshot.
    Read,
    /// Change rows, too.
    Write,
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

/// A transaction. Reads see one snapshot and the transaction's own changes; a locked read sees what
/// was committed last.
pub trait Txn<T> {
    /// Replaces `out` by the key's value; false when it is absent.
    ///
    /// # Errors
    /// [`Stop`], as everywhere here.
    fn get(&mut self, tree: &T, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;

    /// As [`Txn::get`], of the row as it was committed last, which nobody else can change until
    /// this transaction ends.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn get_for_update(&mut self, tree: &T, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;

    /// Adds a row whose key is not there.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn insert(&mut self, tree: &T, key: &[u8], value: &[u8]) -> Result<(), Stop>;

    /// Replaces a row's value.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn update(&mut self, tree: &T, key: &[u8], value: &[u8]) -> Result<(), Stop>;

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
    fn commit(self) -> Result<Ticket, Stop>;

    /// Ends it and takes its changes back.
    ///
    /// # Errors
    /// See [`Txn::get`].
    fn rollback(self) -> Result<(), Stop>;
}
