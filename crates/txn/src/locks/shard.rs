//! Where queues are found: by hash, in shards with a mutex each, and counted in buckets so that
//! asking about a place where nothing is locked is one load.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Gauge64, Ordering::Relaxed};

use smallvec::SmallVec;
use weir_base::TreeId;

use super::kind::{Place, Target, hash};
use super::queue::Queue;
use super::sync::{AtomicU32, AtomicU64, Guard, Mutex, Ordering};

/// How large the table is; powers of two. A bucket belongs to one shard.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) shards: usize,
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

/// A number that goes up and down, for statistics: nothing is decided by it, so that loom need not
/// follow it.
#[derive(Default)]
pub(super) struct Gauge(Gauge64);

impl Gauge {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }
    pub(super) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Relaxed);
    }
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What there is now.
pub(super) struct Gauges {
    /// Pairs of a transaction and a place where it holds something.
    pub(super) held: Gauge,
    /// Transactions that wait.
    pub(super) waiting: Gauge,
    /// Gap locks held. Decides whether splitting and joining gaps does anything.
    gaps: AtomicU64,
}

impl Gauges {
    fn new() -> Self {
        Gauges { held: Gauge::default(), waiting: Gauge::default(), gaps: AtomicU64::new(0) }
    }
    pub(super) fn gaps_add(&self, n: u64) {
        self.gaps.fetch_add(n, Ordering::SeqCst);
    }
    pub(super) fn gaps_sub(&self, n: u64) {
        self.gaps.fetch_sub(n, Ordering::SeqCst);
    }
    #[inline]
    pub(super) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::SeqCst)
    }
}

/// Hashes are hashed already.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64");
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The queues of the places that fall into one shard, by hash. Nearly always one for each hash.
type Queues = HashMap<u64, SmallVec<[Queue; 1]>, BuildHasherDefault<AsIs>>;

/// The queues of all places where something is locked.
pub(super) struct Shards {
    shards: Box<[Mutex<Queues>]>,
    /// Queues in each bucket; changed under the mutex of the bucket's shard.
    counts: Box<[AtomicU32]>,
    pub(super) gauges: Gauges,
}

/// A shard whose mutex is held.
pub(super) struct Locked<'a> {
    queues: Guard<'a, Queues>,
    all: &'a Shards,
}

impl Shards {
    pub(super) fn new(size: Size) -> Self {
        assert!(size.shards.is_power_of_two() && size.buckets.is_power_of_two());
        assert!(size.shards <= size.buckets, "a bucket belongs to one shard");
        Shards {
            shards: (0..size.shards).map(|_| Mutex::new(Queues::default())).collect(),
            counts: (0..size.buckets).map(|_| AtomicU32::new(0)).collect(),
            gauges: Gauges::new(),
        }
    }

    /// Whether there is no queue at all and no bucket counts one.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
            && self.counts.iter().all(|count| count.load(Ordering::SeqCst) == 0)
    }

    fn bucket(&self, hash: u64) -> usize {
        // From bit 32 up: the map takes its own bits from both ends of the hash.
        (hash >> 32) as usize & (self.counts.len() - 1)
    }

    /// The number of the shard for this hash.
    pub(super) fn shard_of(&self, hash: u64) -> usize {
        self.bucket(hash) & (self.shards.len() - 1)
    }

    /// Locks the shard with this number. Several are locked in ascending order only.
    pub(super) fn lock_nth(&self, shard: usize) -> Locked<'_> {
        Locked { queues: self.shards[shard].lock(), all: self }
    }

    pub(super) fn lock(&self, hash: u64) -> Locked<'_> {
        self.lock_nth(self.shard_of(hash))
    }

    /// The hash of a place; `None` if certainly nothing is locked there.
    #[inline]
    pub(super) fn used(&self, tree: TreeId, place: Place<'_>) -> Option<u64> {
        let hash = hash(tree, place);
        // Sequentially consistent, like the count's changes: a locker counts its queue and then
        // looks at the row, a writer looks here and then changes the row. Latches order the two as
        // well; this makes it true also for who reads the row without one.
        let count = self.counts[self.bucket(hash)].load(Ordering::SeqCst);
        (count != 0).then_some(hash)
    }
}

impl Locked<'_> {
    /// The queue of a place, if there is one.
    pub(super) fn find(&mut self, hash: u64, tree: TreeId, place: Place<'_>) -> Option<&mut Queue> {
        let same_hash = self.queues.get_mut(&hash)?;
        same_hash.iter_mut().find(|q| q.target.is(tree, place))
    }

    pub(super) fn find_target(&mut self, target: &Arc<Target>) -> Option<&mut Queue> {
        let same_hash = self.queues.get_mut(&target.hash)?;
        same_hash.iter_mut().find(|q| q.target == *target)
    }

    /// Does something with the queue of a place, which is created if need be and removed if nothing
    /// is in it afterwards.
    pub(super) fn with<T>(
        &mut self,
        hash: u64,
        tree: TreeId,
        place: Place<'_>,
        act: impl FnOnce(&mut Queue) -> T,
    ) -> T {
        let all = self.all;
        let same_hash = self.queues.entry(hash).or_default();
        let at = same_hash.iter().position(|q| q.target.is(tree, place)).unwrap_or_else(|| {
            all.counts[all.bucket(hash)].fetch_add(1, Ordering::SeqCst);
            same_hash.push(Queue::new(Target::new(hash, tree, place)));
            same_hash.len() - 1
        });
        let result = act(&mut same_hash[at]);
        if same_hash[at].is_empty() {
            same_hash.swap_remove(at);
            if same_hash.is_empty() {
                self.queues.remove(&hash);
            }
            all.counts[all.bucket(hash)].fetch_sub(1, Ordering::SeqCst);
        }
        result
    }

    pub(super) fn with_target<T>(
        &mut self,
        target: &Target,
        act: impl FnOnce(&mut Queue) -> T,
    ) -> T {
        self.with(target.hash, target.tree, target.place(), act)
    }
}
