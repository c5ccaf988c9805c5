//! How much there is: what statistics show, and what lets writers pass with a load where nothing
//! is locked.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::TreeId;

use super::place::hash;
use super::ranges::Grown;
use super::sync::{AtomicU32, Ordering};

/// How large the table is; powers of two.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Mutexes, each for the trees that fall to it.
    pub(super) shards: usize,
    /// Counts of keys.
    pub(super) buckets: usize,
}

impl Size {
    /// 16 KiB of counts.
    #[cfg(not(loom))]
    pub(super) const USUAL: Size = Size { shards: 64, buckets: 4096 };
    /// As little as shows everything: loom counts every object.
    #[cfg(loom)]
    pub(super) const USUAL: Size = Size { shards: 2, buckets: 2 };
}

/// What holding one key takes in the maps of rows, of owners' keys and of owners' places, all of
/// them half full, the key's own bytes apart. Ranges take about as much.
pub(super) const LOCK_BYTES: u64 = 240;

/// A number that goes up and down, for statistics: nothing is decided by it, so that loom need not
/// follow it.
#[derive(Default)]
pub(super) struct Gauge(AtomicU64);

impl Gauge {
    pub(super) fn add(&self, n: u64) {
        weir_base::lines::wrote("the lock table's counts");
        self.0.fetch_add(n, Relaxed);
    }
    pub(super) fn sub(&self, n: u64) {
        weir_base::lines::wrote("the lock table's counts");
        self.0.fetch_sub(n, Relaxed);
    }
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What there is now. The counts change under the mutex of the tree.
///
/// Sequentially consistent: a locker counts its lock and then, behind a fence, looks whether the
/// page of the row is still the same; a writer takes the latch of the page, which is of the same
/// order, and then looks here. Readers take no latch, so nothing else orders the two.
pub(super) struct Tally {
    /// Pairs of a transaction and a key that it holds.
    pub(super) held: Gauge,
    /// Ranges held.
    pub(super) ranges: Gauge,
    /// Memory for what is held: a key's bytes, and [`LOCK_BYTES`] for each key and each range.
    pub(super) bytes: Gauge,
    /// Transactions that wait.
    pub(super) waiting: Gauge,
    /// Keys with a queue, by hash.
    keys: Box<[AtomicU32]>,
    /// Ranges held or waited for, and dropped trees, by tree.
    trees: Box<[AtomicU32]>,
}

impl Tally {
    pub(super) fn new(size: Size) -> Self {
        assert!(size.shards.is_power_of_two() && size.buckets.is_power_of_two());
        let zeros = |n: usize| (0..n).map(|_| AtomicU32::new(0)).collect();
        Tally {
            held: Gauge::default(),
            ranges: Gauge::default(),
            bytes: Gauge::default(),
            waiting: Gauge::default(),
            keys: zeros(size.buckets),
            trees: zeros(size.shards),
        }
    }

    fn key(&self, tree: TreeId, key: &[u8]) -> &AtomicU32 {
        &self.keys[(hash(tree, key) >> 32) as usize & (self.keys.len() - 1)]
    }

    fn tree(&self, tree: TreeId) -> &AtomicU32 {
        &self.trees[tree.0 as usize & (self.trees.len() - 1)]
    }

    /// A transaction has come to hold a key.
    pub(super) fn held_added(&self, key: &[u8]) {
        self.held.add(1);
        self.bytes.add(LOCK_BYTES + key.len() as u64);
    }

    /// A transaction holds a key no more.
    pub(super) fn held_removed(&self, key: &[u8]) {
        self.held.sub(1);
        self.bytes.sub(LOCK_BYTES + key.len() as u64);
    }

    /// The key has a queue from now on.
    pub(super) fn key_added(&self, tree: TreeId, key: &[u8]) {
        self.key(tree, key).fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn key_removed(&self, tree: TreeId, key: &[u8]) {
        self.key(tree, key).fetch_sub(1, Ordering::SeqCst);
    }

    /// One more range is held in the tree, or waited for.
    pub(super) fn range_added(&self, tree: TreeId) {
        self.tree(tree).fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn range_removed(&self, tree: TreeId) {
        self.tree(tree).fetch_sub(1, Ordering::SeqCst);
    }

    /// As many more ranges are held in the tree, or fewer; before any transaction may take the
    /// count for none in between, those that came are counted.
    pub(super) fn ranges_changed(&self, tree: TreeId, grown: Grown) {
        self.ranges.add(u64::from(grown.added));
        self.bytes.add(LOCK_BYTES * u64::from(grown.added));
        self.tree(tree).fetch_add(grown.added, Ordering::SeqCst);
        self.ranges_removed(tree, grown.gone);
    }

    /// So many ranges are held no more.
    pub(super) fn ranges_removed(&self, tree: TreeId, count: u32) {
        self.ranges.sub(u64::from(count));
        self.bytes.sub(LOCK_BYTES * u64::from(count));
        self.tree(tree).fetch_sub(count, Ordering::SeqCst);
    }

    /// Whether ranges may be held or wanted in the tree.
    pub(super) fn has_ranges(&self, tree: TreeId) -> bool {
        self.tree(tree).load(Ordering::SeqCst) != 0
    }

    /// Whether certainly no transaction holds or wants this key: two loads.
    #[inline]
    pub(super) fn is_free(&self, tree: TreeId, key: &[u8]) -> bool {
        self.tree(tree).load(Ordering::SeqCst) == 0
            && self.key(tree, key).load(Ordering::SeqCst) == 0
    }

    #[cfg(test)]
    pub(super) fn is_zero(&self) -> bool {
        let zero = |counts: &[AtomicU32]| counts.iter().all(|n| n.load(Ordering::SeqCst) == 0);
        zero(&self.keys) && zero(&self.trees)
    }
}
