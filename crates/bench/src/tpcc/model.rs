//! Transactions on the store in memory, one at a time: what the others are compared with.
use super::backend::Why;
use super::store::{Access, Edit, Isolation, Stop, Transactional, Txn};
use crate::durability::Durability;
use crate::fake::{Fake, FakeTable};
use anyhow::{Result, anyhow, bail};
use parking_lot::MutexGuard;
use std::cell::Cell;
use std::ops::Bound::{Excluded, Included, Unbounded};

thread_local! {
    /// So many operations from now a transaction is refused, once.
    static REFUSE_IN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Lets the operation after `operations` others of this thread be refused.
pub(crate) fn refuse_in(operations: u32) {
    REFUSE_IN.set(Some(operations));
}

pub(crate) struct ModelTxn<'a> {
    access: Access,
    /// What the rows were before, oldest first.
    undo: Vec<(FakeTable, Vec<u8>, Option<Vec<u8>>)>,
    ended: bool,
    _alone: MutexGuard<'a, ()>,
}

impl Transactional for Fake {
    type Txn<'a> = ModelTxn<'a>;
    type Ticket = ();

    fn begin(&self, access: Access, _: Isolation) -> Result<ModelTxn<'_>> {
        Ok(ModelTxn { access, undo: Vec::new(), ended: false, _alone: self.begin_alone() })
    }

    fn wait(&self, (): (), _: Durability) -> Result<()> {
        if self.never_syncs() { bail!("the disk is on fire") } else { Ok(()) }
    }

    fn is_synced(&self, (): ()) -> bool {
        !self.never_syncs()
    }
}

impl ModelTxn<'_> {
    fn change(&mut self, tree: &FakeTable, key: &[u8], value: Option<&[u8]>) -> bool {
        assert_eq!(self.access, Access::Write, "a reader changes a row");
        let mut rows = tree.rows().write();
        let before = match value {
            Some(value) => rows.insert(key.to_vec(), value.to_vec()),
            None => rows.remove(key),
        };
        let existed = before.is_some();
        self.undo.push((tree.clone(), key.to_vec(), before));
        existed
    }

    fn roll_back(&mut self) {
        while let Some((tree, key, before)) = self.undo.pop() {
            let mut rows = tree.rows().write();
            match before {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
    }
}

impl Drop for ModelTxn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.roll_back();
        }
    }
}

fn refused() -> Result<(), Stop> {
    match REFUSE_IN.get() {
        Some(0) => {
            REFUSE_IN.set(None);
            Err(Stop::Retry(Why::Deadlock))
        }
        left => {
            REFUSE_IN.set(left.map(|left| left - 1));
            Ok(())
        }
    }
}

impl Txn<FakeTable> for ModelTxn<'_> {
    type Ticket = ();

    fn get(&mut self, tree: &FakeTable, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop> {
        out.clear();
        let rows = tree.rows().read();
        let found = rows.get(key);
        out.extend_from_slice(found.map_or(&[][..], |value| value));
        Ok(found.is_some())
    }

    fn insert(&mut self, tree: &FakeTable, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        refused()?;
        if self.change(tree, key, Some(value)) {
            return Err(Stop::Failed(anyhow!("key {key:02x?} is there already")));
        }
        Ok(())
    }

    fn update(&mut self, tree: &FakeTable, key: &[u8], edit: &mut Edit<'_>) -> Result<bool, Stop> {
        refused()?;
        let Some(old) = tree.rows().read().get(key).cloned() else { return Ok(false) };
        let mut new = Vec::new();
        // Twice, because it may be.
        edit(&old, &mut new);
        new.clear();
        if edit(&old, &mut new) {
            self.change(tree, key, Some(&new));
        }
        Ok(true)
    }

    fn delete(&mut self, tree: &FakeTable, key: &[u8]) -> Result<bool, Stop> {
        refused()?;
        Ok(self.change(tree, key, None))
    }

    fn scan(
        &mut self,
        tree: &FakeTable,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Stop> {
        let rows = tree.rows().read();
        for (key, value) in rows.range::<[u8], _>((Included(from), Unbounded)) {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn last_below(
        &mut self,
        tree: &FakeTable,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Stop> {
        out.clear();
        let rows = tree.rows().read();
        let last = rows.range::<[u8], _>((Unbounded, Excluded(key))).next_back();
        out.extend_from_slice(last.map_or(&[][..], |(key, _)| key));
        Ok(last.is_some())
    }

    fn commit(mut self) -> Result<(), Stop> {
        self.ended = true;
        Ok(())
    }

    fn rollback(mut self) -> Result<(), Stop> {
        self.roll_back();
        self.ended = true;
        Ok(())
    }
}
