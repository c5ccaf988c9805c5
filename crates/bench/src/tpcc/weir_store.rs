//! Transactions of `weir::Db` for the embedded backend.
use super::backend::Why;
use super::store::{Access, Edit, Isolation, Stop, Transactional, Txn};
use crate::durability::Durability;
use crate::engine::{Engine, durability};
use anyhow::Result;
use weir::{Commit, LockError, Tree, TxnError, TxnOptions};

impl Transactional for Engine {
    type Txn<'a> = weir::Txn;
    type Ticket = Commit;

    /// Whatever it is going to do: a reader that changes nothing has no lock and no log anyway.
    fn begin(&self, _: Access, isolation: Isolation) -> Result<weir::Txn> {
        let isolation = match isolation {
            Isolation::ReadCommitted => weir::Isolation::ReadCommitted,
            Isolation::RepeatableRead => weir::Isolation::RepeatableRead,
            Isolation::Snapshot => weir::Isolation::Snapshot,
            Isolation::Serializable => weir::Isolation::Serializable,
        };
        Ok(self.db().begin(TxnOptions { isolation, ..TxnOptions::default() }))
    }

    fn wait(&self, ticket: Commit, asked: Durability) -> Result<()> {
        Ok(self.db().wait(ticket, durability(asked))?)
    }

    fn is_synced(&self, ticket: Commit) -> bool {
        self.db().is_durable(ticket)
    }
}

fn stop(error: weir::Error) -> Stop {
    match &error {
        weir::Error::Transaction(TxnError::Lock(refused)) => Stop::Retry(match refused {
            LockError::Deadlock { .. } => Why::Deadlock,
            LockError::TimedOut { .. } | LockError::WouldWait { .. } => Why::LockTimeout,
            _ => Why::Other,
        }),
        weir::Error::Transaction(TxnError::Conflict) => Stop::Retry(Why::WriteConflict),
        _ => Stop::Failed(error.into()),
    }
}

impl Txn<Tree> for weir::Txn {
    type Ticket = Commit;

    fn get(&mut self, tree: &Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        self.get_into(tree, key, out).map_err(stop)
    }

    fn insert(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        weir::Txn::insert(self, tree, key, value).map_err(stop)
    }

    fn update(&mut self, tree: &Tree, key: &[u8], edit: &mut Edit<'_>) -> Result<bool, Stop> {
        weir::Txn::update(self, tree, key, edit).map_err(stop)
    }

    fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<bool, Stop> {
        weir::Txn::delete(self, tree, key).map_err(stop)
    }

    fn scan(
        &mut self,
        tree: &Tree,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Stop> {
        let mut cursor = self.cursor(tree);
        let mut on = cursor.seek(self, from).map_err(stop)?;
        while on && visit(cursor.key(), cursor.value()) {
            on = cursor.next(self).map_err(stop)?;
        }
        Ok(())
    }

    fn last_below(&mut self, tree: &Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        out.clear();
        let mut cursor = self.cursor(tree);
        let found = cursor.seek_before(self, key).map_err(stop)?;
        out.extend_from_slice(cursor.key());
        Ok(found)
    }

    fn commit(self) -> Result<Commit, Stop> {
        weir::Txn::commit(self).map_err(stop)
    }

    fn rollback(self) -> Result<(), Stop> {
        weir::Txn::rollback(self).map_err(stop)
    }
}
