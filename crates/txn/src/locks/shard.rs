//! Where the locks of a tree are found: in shards with a mutex each. Trees that are made one after
//! the other have shards of their own.
use weir_base::{TreeId, rank};

use crate::by_txn::ByTree;

use super::sync::{Guard, Mutex};
use super::tally::{Size, Tally};
use super::tree_locks::TreeLocks;

type Trees = ByTree<TreeLocks>;

/// The locks of all trees.
pub(super) struct Shards {
    shards: Box<[Mutex<rank::LockShard, Trees>]>,
    pub(super) tally: Tally,
}

/// A shard whose mutex is held.
pub(super) struct Locked<'a>(Guard<'a, Trees>);

impl Shards {
    pub(super) fn new(size: Size) -> Self {
        let shards = (0..size.shards).map(|_| Mutex::new(Trees::default())).collect();
        Shards { shards, tally: Tally::new(size) }
    }

    /// Whether there is nothing at all and nothing is counted.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty()) && self.tally.is_zero()
    }

    /// The number of the shard for this tree.
    pub(super) fn shard_of(&self, tree: TreeId) -> usize {
        tree.0 as usize & (self.shards.len() - 1)
    }

    /// Locks the shard with this number. Several are locked in ascending order only.
    pub(super) fn lock_nth(&self, shard: usize) -> Locked<'_> {
        Locked(self.shards[shard].lock())
    }

    /// Shows the locks of all trees that have any.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&TreeLocks)) {
        self.shards.iter().for_each(|shard| shard.lock().values().for_each(&mut *visit));
    }

    pub(super) fn lock(&self, tree: TreeId) -> Locked<'_> {
        self.lock_nth(self.shard_of(tree))
    }
}

impl Locked<'_> {
    /// The locks of a tree, if there are any.
    pub(super) fn find(&self, tree: TreeId) -> Option<&TreeLocks> {
        self.0.get(&tree)
    }

    /// Does something with the locks of a tree, which are created if need be and removed if nothing
    /// is locked afterwards.
    pub(super) fn with<T>(&mut self, tree: TreeId, act: impl FnOnce(&mut TreeLocks) -> T) -> T {
        let locks = self.0.entry(tree).or_insert_with(|| TreeLocks::new(tree));
        let result = act(locks);
        if locks.is_empty() {
            self.0.remove(&tree);
        }
        result
    }
}
