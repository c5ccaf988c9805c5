//! Writes that are transactions of their own: one row as one group of the log where that can be, or
//! a batch.
pub(crate) mod batch;
pub(crate) mod load;

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use weir_base::Lsn;
use weir_btree::{Action, Change, KeysAhead, Tree, Value};
use weir_change::Header;
use weir_page::Flags;

use crate::auto::batch::{Batch, BatchOp};
use crate::background::Background;
use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::locks::{Kind, Wait};
use crate::session::change::Intent;
use crate::session::commit::Due;
use crate::session::txn::{Isolation, Txn};

/// How long a change that is a transaction by itself waits for a row.
pub(crate) const LOCK_WAIT: Wait = Wait::Until(Duration::from_secs(50));

/// Runs writes that are committed when they return.
pub struct AutoCommit {
    context: Arc<Context>,
    background: Arc<Background>,
}

impl AutoCommit {
    /// Writes in this context; what they leave to do is for `background`.
    #[must_use]
    pub fn new(context: Arc<Context>, background: Arc<Background>) -> Self {
        AutoCommit { context, background }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    /// Inserts a row or replaces its value. Returns the end of its log: durable once the log is
    /// durable up to there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<Lsn, TxnError> {
        let end = if value.len() > tree.max_inline_value(key.len()) {
            self.auto(tree, key, Intent::Put(value))?.1
        } else {
            let short = Value { bytes: value, flags: Flags::NONE };
            match self.one(tree, key, One::Put(short))? {
                Some(end) => end,
                None => self.auto(tree, key, Intent::Put(value))?.1,
            }
        };
        Ok(end.unwrap_or_else(|| self.context.log_end()))
    }

    /// Removes a row. `None`: it was not there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<Option<Lsn>, TxnError> {
        if let Some(end) = self.one(tree, key, One::Delete)? {
            return Ok(end);
        }
        let (was_there, end) = self.auto(tree, key, Intent::Delete)?;
        Ok(end.filter(|_| was_there))
    }

    /// One row, one group: a transaction that needs no undo, and leaves no older version. Returns
    /// the end of its log if something was changed; `None`: another transaction may need the older
    /// version, or has the row, and it has to be done as a transaction.
    fn one(&self, tree: &Tree, key: &[u8], one: One<'_>) -> Result<Option<Option<Lsn>>, TxnError> {
        let registry = self.context.registry();
        if registry.gate.is_closed() {
            return Ok(None);
        }
        let mut waits = 0;
        while !self.context.has_room(&mut waits)? {}
        let value_len = if let One::Put(value) = one { value.bytes.len() } else { 0 };
        self.context.admit(ROW_BYTES + (key.len() + value_len) as u64)?;
        let id = registry.number()?;
        let change = Change::single(Header { txn: Some(id), commits: true, ..Header::default() });
        loop {
            let latched = tree.latch_row(key)?;
            let Some(entered) = registry.gate.enter() else { return Ok(None) };
            let row = latched.row();
            // TXN-1. What it leaves to be freed is for a transaction with a name.
            if row.is_some_and(|r| registry.is_open(r.stamp.writer) || r.flags.overflow)
                || self.context.locks().blocks(id, tree.id(), key, Kind::Exclusive)
            {
                return Ok(None);
            }
            let action = match one {
                One::Put(value) => Action::Put(value),
                One::Delete if row.is_none_or(|row| row.flags.deleted) => return Ok(Some(None)),
                One::Delete => Action::Remove,
            };
            let applied = latched.apply(&change, action)?;
            // No snapshot waits while the tree does.
            drop(entered);
            if let Some(written) = tree.settle(key, applied)? {
                return Ok(Some(written.span.map(|span| span.end)));
            }
        }
    }

    /// One change as a transaction of its own.
    fn auto(
        &self,
        tree: &Tree,
        key: &[u8],
        intent: Intent<'_>,
    ) -> Result<(bool, Option<Lsn>), TxnError> {
        let mut did = false;
        let end = self.transact(|txn| {
            did = txn.change(&self.context, tree, key, intent)?;
            Ok(())
        })?;
        Ok((did, end))
    }

    /// Applies a batch. Returns the end of its log.
    ///
    /// # Errors
    /// [`TxnError`]; all rows are as they were.
    pub fn write(&self, batch: &Batch) -> Result<Lsn, TxnError> {
        let end = self.transact(|txn| {
            let (mut ops, mut ahead) = (batch.ops.iter(), KeysAhead::default());
            while let Some(((id, key), op)) = ops.next() {
                let tree = &batch.trees[id];
                let rest = ops.clone().take_while(|((of, _), _)| of == id);
                let keys = iter::once(key).chain(rest.map(|((_, key), _)| key));
                ahead.come_to(tree, keys.map(Vec::as_slice));
                let intent = match op {
                    BatchOp::Put(value) => Intent::Put(value),
                    BatchOp::Delete => Intent::Delete,
                };
                txn.change(&self.context, tree, key, intent)?;
            }
            Ok(())
        })?;
        Ok(end.unwrap_or_else(|| self.context.log_end()))
    }

    /// Runs `work` as a transaction and commits it; if it fails all is rolled back.
    fn transact(
        &self,
        work: impl FnOnce(&mut Txn) -> Result<(), TxnError>,
    ) -> Result<Option<Lsn>, TxnError> {
        let mut txn = Txn::new(Isolation::ReadCommitted, LOCK_WAIT);
        match work(&mut txn).and_then(|()| txn.commit(&self.context)) {
            Ok(ended) => {
                self.background.after(ended.due);
                Ok(ended.end)
            }
            Err(first) => Err(self.rolled_back_after(&mut txn, first)),
        }
    }

    /// Rolls everything back after a failure. Tells of it, and of what else failed.
    pub(crate) fn rolled_back_after(&self, txn: &mut Txn, first: TxnError) -> TxnError {
        let why = txn.rolled_back_after(&self.context, first);
        self.background.after(Due::ROLLBACK);
        why
    }
}

/// A change of one row that is a transaction by itself.
#[derive(Clone, Copy)]
enum One<'a> {
    /// Insert it or replace its value, which lies in the leaf.
    Put(Value<'a>),
    /// Remove it if it is there.
    Delete,
}
