//! Changes that are applied together without a transaction.
use std::fmt;

use crate::tree::Tree;

// Three batches, on purpose: of `weir_txn`, which knows no handles; of `weir`, which refuses trees
// of another database; and this one, whose signatures outlast both.
/// Changes to trees of one database that are applied together ([`Db::apply`](crate::Db::apply)):
/// all of them or none. Cheaper than a transaction, as nothing is read or locked before. A later
/// change of a key replaces an earlier one.
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) raw: weir::Batch,
}

impl Batch {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds: insert the row or replace its value.
    pub fn put(&mut self, tree: &Tree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.raw.put(&tree.raw, key.as_ref(), value.as_ref());
    }

    /// Adds: remove the row if it is there.
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) {
        self.raw.delete(&tree.raw, key.as_ref());
    }

    /// Rows that it changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.raw.clear();
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).finish_non_exhaustive()
    }
}
