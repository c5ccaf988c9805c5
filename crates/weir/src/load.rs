//! Filling an empty tree, entry by entry.
use weir_btree::TreeError;
use weir_redo::Durability;

use crate::error::Error;
use crate::tree::Tree;

/// A tree that is being filled. Dropped before [`Load::finish`], it leaves the tree empty.
pub struct Load {
    tree: Tree,
    raw: Option<weir_txn::Load>,
}

impl Tree {
    /// Begins to fill this tree, which must be empty, with entries in ascending key order. Until it
    /// has ended, a transaction that changes a row of the tree waits.
    ///
    /// # Errors
    /// [`Error::Input`] when the tree is not empty; as [`Tree::put`].
    pub fn load(&self) -> Result<Load, Error> {
        self.engine.check_writable()?;
        let raw = self.engine.auto.begin_load(&self.raw);
        let raw = raw.map_err(|e| self.engine.failed(e.into()))?;
        Ok(Load { tree: self.clone(), raw: Some(raw) })
    }

    /// Fills this tree, which must be empty, from entries in ascending key order: faster and denser
    /// than putting them one by one. All or nothing; durable when it returns. Returns their number.
    ///
    /// # Errors
    /// [`Error::Input`] when the tree is not empty or the keys are not ascending; as [`Tree::put`].
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        sorted: impl Iterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        let mut load = self.load()?;
        for (key, value) in sorted {
            load.push(key.as_ref(), value.as_ref())?;
        }
        load.finish(Durability::Synced)
    }
}

impl Load {
    /// Adds an entry, whose key is above all before it.
    ///
    /// # Errors
    /// [`Error::Input`] when it is not; as [`Tree::put`]. The tree is empty as before, and nothing
    /// more can be added.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let engine = &self.tree.engine;
        let Some(raw) = &mut self.raw else {
            return Err(Error::Input(TreeError::Stopped("this load has failed before".into())));
        };
        let Err(why) = engine.auto.load(raw, key, value) else { return Ok(()) };
        let why = match self.raw.take() {
            Some(raw) => engine.auto.abandon_load(raw, why),
            None => why,
        };
        Err(engine.failed(why.into()))
    }

    /// How many entries it was given so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.raw.as_ref().map_or(0, weir_txn::Load::count)
    }

    /// Ends it: the tree has all entries, as durably as asked. Returns their number.
    ///
    /// # Errors
    /// As [`Load::push`].
    pub fn finish(mut self, durability: Durability) -> Result<u64, Error> {
        let engine = &self.tree.engine;
        let Some(raw) = self.raw.take() else {
            return Err(Error::Input(TreeError::Stopped("this load has failed before".into())));
        };
        let (count, end) = engine.auto.finish_load(raw).map_err(|e| engine.failed(e.into()))?;
        engine.commit(end, durability)?;
        Ok(count)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.tree.engine.auto.forget_load(raw);
        }
    }
}
