//! Changes that are written together.
use std::collections::BTreeMap;

use weir_base::TreeId;
use weir_btree::Tree;

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum BatchOp {
    /// Insert the row or replace its value.
    Put(Vec<u8>),
    /// Remove the row if it is there.
    Delete,
}

/// Changes that become lasting together or not at all. A later change of a key replaces an earlier
/// one.
#[derive(Clone, Default)]
pub struct Batch {
    pub(crate) trees: BTreeMap<TreeId, Tree>,
    pub(crate) ops: BTreeMap<(TreeId, Vec<u8>), BatchOp>,
}

impl Batch {
    /// Adds a change.
    pub fn add(&mut self, tree: &Tree, key: &[u8], op: BatchOp) {
        self.trees.entry(tree.id()).or_insert_with(|| tree.clone());
        self.ops.insert((tree.id(), key.to_vec()), op);
    }

    /// Keys changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.trees.clear();
    }
}
