//! Rows that are inserted into one leaf under one latch, in one group: of many that come in the
//! order of their keys, those that go there.
use weir_change::{Before, Group, Header, HeldPage, Op};
use weir_page::{Flags, Node};

use crate::descend::{DescentTarget, Fences};
use crate::error::TreeError;
use crate::tree::Tree;

/// A leaf, latched for rows to be inserted in the order of their keys.
pub struct LatchedRun<'t> {
    tree: &'t Tree,
    group: Group<'t>,
    leaf: HeldPage,
    /// Where the range of the leaf ends.
    end: Option<Vec<u8>>,
}

impl Tree {
    /// Latches the leaf that would have a row at `key`, for rows from there on. Their changes are
    /// those of the header's transaction, and can be rolled back.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn latch_run(&self, key: &[u8], header: Header) -> Result<LatchedRun<'_>, TreeError> {
        self.check_key(key)?;
        // BTREE-7
        self.env.pool.log().check()?;
        let mut fences = Fences::default();
        loop {
            let arrived = self.try_descend_fenced(DescentTarget::Key(key), &mut fences)?;
            let Some(arrived) = arrived else { continue };
            arrived.node.touch();
            let Some(leaf) = arrived.node.upgrade() else { continue };
            let mut group = Group::begin(Header { undo: true, ..header });
            let leaf = group.hold(leaf);
            return Ok(LatchedRun { tree: self, group, leaf, end: fences.high });
        }
    }
}

impl LatchedRun<'_> {
    fn node(&self) -> Node<&[u8]> {
        self.group.page(self.leaf).node()
    }

    /// Where a row goes, whose key is greater than those of all before it. `None`: not here; or it
    /// is there, marked or not; or it lacks room, or needs a chain.
    #[must_use]
    pub fn place(&self, key: &[u8], value_len: usize) -> Option<usize> {
        let is_behind = self.end.as_deref().is_some_and(|end| key >= end);
        if is_behind
            || key.len() > self.tree.max_key_len()
            || value_len > self.tree.max_inline_value(key.len())
        {
            return None;
        }
        let slot = self.node().search(key).err()?;
        self.node().fits_row(slot, key, value_len).then_some(slot)
    }

    /// Inserts a row at its place, as the `seq`-th change of the transaction.
    /// [`LatchedRun::commit`] must follow.
    pub fn insert(&mut self, slot: usize, seq: u32, key: &[u8], value: &[u8]) {
        let page = self.group.page(self.leaf).page();
        let op = Op::Insert { page, key, seq, flags: Flags::NONE, value };
        self.group.note_undo(self.tree.id(), key, seq, Before::Absent, &op);
        self.group.apply_at(self.leaf, &op, Some(slot));
    }

    /// Logs what was inserted, and releases the latch.
    ///
    /// # Errors
    /// [`TreeError`] when the log has halted.
    pub fn commit(self) -> Result<(), TreeError> {
        if !self.group.is_empty() {
            self.group.commit(self.tree.env.pool.log())?;
        }
        Ok(())
    }
}
