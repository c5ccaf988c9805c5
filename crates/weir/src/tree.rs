//! A tree as users see it.
use std::sync::Arc;

use weir_btree::{KeysAhead, Tree as RawTree, TreeReport, TreeSize};
use weir_redo::Durability;
use weir_txn::{Snapshot, View};

use crate::cursor::Cursor;
use crate::engine::Engine;
use crate::error::Error;

/// An ordered map of byte strings, durable. Cloning gives another handle of the same.
#[derive(Clone)]
pub struct Tree {
    pub(crate) engine: Arc<Engine>,
    pub(crate) raw: RawTree,
}

impl Tree {
    /// The value at `key`, `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], [`Error::Closed`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// As [`Tree::get`], into memory of the caller's, emptied first. `false`: there is none. Sees
    /// what is committed; of a row that a transaction has changed and not yet committed, what was
    /// there before.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        self.engine.check_here()?;
        Ok(self.engine.context.read(&self.raw, key, None, View::Latest, out)?)
    }

    /// Before a thread looks at the first of `keys`, those in ascending order that it has still to
    /// look at: reads leaves of theirs at once if it had to wait for the last one's.
    #[doc(hidden)]
    pub fn come_to<'k>(&self, ahead: &mut KeysAhead, keys: impl Iterator<Item = &'k [u8]>) {
        ahead.come_to(&self.raw, keys);
    }

    /// About how many rows have keys from `from` on and below `to` (`None`: to the end), also those
    /// that are not committed or not gone yet: exact within a page, otherwise off by as much as
    /// pages differ. Takes two looks down the tree, however many rows there are.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64, Error> {
        self.engine.check_here()?;
        Ok(self.raw.estimate(from, to)?)
    }

    /// About how many pages the tree has, from a few looks down it: exact for a small tree, but for
    /// long values; otherwise off by as much as pages differ.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn size(&self) -> Result<TreeSize, Error> {
        self.engine.check_here()?;
        Ok(self.raw.size()?)
    }

    /// The key that lies about `nth` of `of` equal distances into the tree, committed or not:
    /// evenly spread keys to sample, each for one look down the tree. `None`: there is none there.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn key_at(&self, nth: u32, of: u32) -> Result<Option<Vec<u8>>, Error> {
        self.engine.check_here()?;
        Ok(self.raw.key_at(nth, of)?)
    }

    /// Inserts a row or replaces its value; returns when it is as durable as asked.
    ///
    /// # Errors
    /// [`Error::Input`] for keys and values that are too long, [`Error::DiskFull`],
    /// [`Error::Halted`] and others; the row is as it was, unless the engine has halted: then it is
    /// the old or the new when the database is opened again.
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        self.engine.check_writable()?;
        let end = self
            .engine
            .auto
            .put(&self.raw, key, value)
            .map_err(|e| self.engine.failed(e.into()))?;
        self.engine.commit(end, durability)
    }

    /// Removes a row; returns, when it is as durable as asked, whether it was there.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        self.engine.check_writable()?;
        let deleted = self.engine.auto.delete(&self.raw, key);
        match deleted.map_err(|e| self.engine.failed(e.into()))? {
            Some(end) => self.engine.commit(end, durability).map(|()| true),
            None => Ok(false),
        }
    }

    /// A cursor that stands nowhere yet.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.clone(), None)
    }

    /// As [`Tree::cursor`], over the rows that a snapshot shows, which it holds.
    ///
    /// # Errors
    /// [`Error::Foreign`] when the snapshot is of another database.
    pub fn cursor_at(&self, snapshot: &Snapshot) -> Result<Cursor, Error> {
        self.check_owns(snapshot)?;
        Ok(Cursor::new(self.clone(), Some(snapshot.clone())))
    }

    /// As [`Tree::get_into`], of the row as a snapshot shows it.
    ///
    /// # Errors
    /// As [`Tree::get`]; [`Error::Foreign`] when the snapshot is of another database.
    pub fn get_at(
        &self,
        snapshot: &Snapshot,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.engine.check_here()?;
        self.check_owns(snapshot)?;
        let view = View::At(snapshot.number());
        Ok(self.engine.context.read(&self.raw, key, None, view, out)?)
    }

    fn check_owns(&self, snapshot: &Snapshot) -> Result<(), Error> {
        if snapshot.is_of(&self.engine.registry) {
            return Ok(());
        }
        Err(Error::Foreign("the snapshot is of another database"))
    }

    /// Checks the whole tree; `visit` gets the rows of each leaf.
    ///
    /// # Errors
    /// [`Error::Damaged`] for the first damage found.
    pub fn check(&self, visit: &mut dyn FnMut(u64)) -> Result<TreeReport, Error> {
        self.engine.check_here()?;
        Ok(self.raw.check(visit)?)
    }
}
