//! All transactions that somebody may still ask about: numbers, who is under way, commit numbers,
//! snapshots, and where the log must be kept from.
//!
//! A snapshot is one commit number (D6): taking it copies no list. A row whose writer is not in the
//! registry any more was written by a transaction that everybody sees.
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use weir_base::{Lsn, TxnId};

use crate::archive::{Archive, OldView};
use crate::ended::Ended;
use crate::gate::Gate;
use crate::past::{Past, State};

const SHARDS: usize = 64;

/// Transactions whose numbers have the same remainder.
type Shard = RwLock<HashMap<TxnId, Arc<Past>, BuildHasherDefault<NumberHasher>>>;

/// Numbers are given out one after another: scattering them is enough.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// The registry.
pub struct Registry {
    next: AtomicU64,
    /// Rows of writers below this number are seen by everybody.
    low: AtomicU64,
    last_commit: AtomicU64,
    open: AtomicU64,
    pub(crate) gate: Gate,
    /// Where old snapshots find versions of transactions that are known here no more.
    pub(crate) archive: Archive,
    shards: Box<[Shard]>,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Those under way.
    open: BTreeSet<TxnId>,
    /// Where the first record is that recovery would need to take one back, or to complete it.
    pins: BTreeMap<TxnId, Lsn>,
    /// Snapshots, by their commit numbers.
    snapshots: BTreeMap<u64, Held>,
    /// Ended, by the number that they ended with.
    ended: Ended,
    /// Those of them that all snapshots see the end of, and that leave much to do.
    heavy: VecDeque<Arc<Past>>,
    /// Those of `ended` up to here have been looked at by `prune`.
    pruned: u64,
    /// And those up to here by who archives them.
    archived: u64,
}

/// A snapshot that is held.
struct Held {
    /// So many times.
    count: u32,
    /// Transactions from this number on began after it was taken.
    bound: TxnId,
}

/// Ended transactions whose versions could be archived, oldest first.
pub(crate) struct Archivable {
    /// They, and others between them.
    pub(crate) batch: Vec<Arc<Past>>,
    /// The number up to which they were looked for.
    pub(crate) looked: u64,
    /// Snapshots that do not see the last of them: number, and from which transaction on all began
    /// after it.
    pub(crate) snapshots: Vec<(u64, TxnId)>,
}

/// What `Registry::stats` tells.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegistryStats {
    /// Transactions under way.
    pub open: u64,
    /// Transactions that have ended and that somebody may still have to look behind: the length of
    /// the history.
    pub history: u64,
    /// Snapshots held.
    pub snapshots: u64,
    /// How many commits the oldest snapshot lies back.
    pub oldest_snapshot_commits: u64,
    /// Bytes of memory that ended transactions take, versions included.
    pub version_bytes: u64,
    /// Versions that lie in trees for old snapshots.
    pub archived_versions: u64,
}

impl Registry {
    /// Nothing is under way; the next transaction gets `next`.
    #[must_use]
    pub fn new(next: TxnId) -> Self {
        let next = next.0.max(1);
        Registry {
            next: AtomicU64::new(next),
            low: AtomicU64::new(next),
            last_commit: AtomicU64::new(1),
            open: AtomicU64::new(0),
            gate: Gate::default(),
            archive: Archive::default(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            inner: Mutex::new(Inner {
                open: BTreeSet::new(),
                pins: BTreeMap::new(),
                snapshots: BTreeMap::new(),
                ended: Ended::new(2),
                heavy: VecDeque::new(),
                pruned: 0,
                archived: 0,
            }),
        }
    }

    fn shard(&self, id: TxnId) -> &Shard {
        &self.shards[id.0 as usize % SHARDS]
    }

    /// A number for a change that is one group of the log and leaves no older version: it is never
    /// seen open.
    #[inline]
    #[must_use]
    pub fn number(&self) -> TxnId {
        TxnId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next transaction gets.
    #[must_use]
    pub fn next(&self) -> TxnId {
        TxnId(self.next.load(Ordering::Relaxed))
    }

    /// Opens a transaction. It holds the log only from [`Registry::pin`] on.
    #[must_use]
    pub fn open(&self) -> Arc<Past> {
        // The number is taken under the mutex, so that `low` never passes one that is not known
        // yet.
        let mut inner = self.inner.lock();
        let id = self.number();
        let past = Arc::new(Past::new(id));
        inner.open.insert(id);
        self.shard(id).write().insert(id, past.clone());
        self.open.fetch_add(1, Ordering::SeqCst);
        past
    }

    /// Registers a transaction that recovery found open; its records begin at `from`.
    pub fn reopen(&self, id: TxnId, from: Lsn) {
        let mut inner = self.inner.lock();
        if let Entry::Vacant(place) = self.shard(id).write().entry(id) {
            place.insert(Arc::new(Past::new(id)));
            self.open.fetch_add(1, Ordering::SeqCst);
        }
        inner.open.insert(id);
        inner.pins.insert(id, from);
        let low = self.low.load(Ordering::SeqCst).min(id.0);
        self.low.store(low, Ordering::SeqCst);
    }

    /// Says that what recovery needs of `id` lies at or after `from`: said before the first record
    /// is in the log, and again when it has been carried forward.
    pub fn pin(&self, id: TxnId, from: Lsn) {
        self.inner.lock().pins.insert(id, from);
    }

    /// Says that recovery needs nothing of `id` any more.
    pub fn unpin(&self, id: TxnId) {
        self.inner.lock().pins.remove(&id);
    }

    /// Ends a transaction as committed: all see its changes who take their snapshot from now on.
    /// What its commit left to do keeps its pin. Returns its commit number.
    pub fn commit(&self, past: &Arc<Past>) -> u64 {
        let unpin = {
            let work = past.work.lock();
            past.set_heavy(work.is_heavy());
            work.todo.is_empty()
        };
        self.conclude(past, true, unpin)
    }

    /// Ends a transaction as taken back, after its rows have been restored.
    pub fn abort(&self, past: &Arc<Past>) {
        self.conclude(past, false, true);
    }

    fn conclude(&self, past: &Arc<Past>, committed: bool, unpin: bool) -> u64 {
        let bytes = past.memory_bytes();
        let mut inner = self.inner.lock();
        let number = self.last_commit.load(Ordering::Relaxed) + 1;
        past.set_end(number, committed);
        // After the transaction says so itself: a snapshot of this number sees it.
        self.last_commit.store(number, Ordering::Release);
        self.open.fetch_sub(1, Ordering::SeqCst);
        if unpin {
            inner.pins.remove(&past.id());
        }
        let floor = inner.open.first().copied().unwrap_or(past.id());
        inner.open.remove(&past.id());
        inner.ended.push(past.clone(), floor, bytes);
        number
    }

    /// Ends a transaction that wrote no row that anybody could want older versions of, and forgets
    /// it.
    pub fn end(&self, id: TxnId) {
        let mut inner = self.inner.lock();
        if self.remove(&mut inner, id) {
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
        self.raise_low(&inner);
    }

    /// Knows a transaction no more; `raise_low` is to follow.
    fn remove(&self, inner: &mut Inner, id: TxnId) -> bool {
        inner.open.remove(&id);
        inner.pins.remove(&id);
        self.shard(id).write().remove(&id).is_some()
    }

    /// Some are known no more: rows of more writers are everybody's.
    fn raise_low(&self, inner: &Inner) {
        let open = inner.open.first().map_or_else(|| self.next().0, |first| first.0);
        let low = inner.ended.floor().map_or(open, |floor| floor.0.min(open));
        self.low.store(low.min(self.archive.floor().0), Ordering::SeqCst);
    }

    /// Whether everybody sees what `writer` wrote. `false` says nothing.
    #[inline]
    #[must_use]
    pub fn is_old(&self, writer: TxnId) -> bool {
        writer.0 < self.low.load(Ordering::Acquire)
    }

    /// The transaction, if it is known.
    #[must_use]
    pub fn find(&self, id: TxnId) -> Option<Arc<Past>> {
        self.shard(id).read().get(&id).cloned()
    }

    /// Whether `id` is under way.
    #[inline]
    #[must_use]
    pub fn is_open(&self, id: TxnId) -> bool {
        !self.is_old(id)
            && self.open.load(Ordering::SeqCst) != 0
            && self.shard(id).read().get(&id).is_some_and(|past| past.state() == State::Open)
    }

    /// All that are under way but `id`.
    #[must_use]
    pub(crate) fn others(&self, id: TxnId) -> Vec<Arc<Past>> {
        let open: Vec<TxnId> = self.inner.lock().open.iter().copied().collect();
        let others = open.into_iter().filter(|other| *other != id);
        others.filter_map(|other| self.find(other)).filter(|p| p.state() == State::Open).collect()
    }

    /// Takes a snapshot: sees all that has committed by now, and nothing else.
    #[must_use]
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        self.gate.close();
        let mut inner = self.inner.lock();
        let number = self.last_commit.load(Ordering::Acquire);
        // Numbers of transactions are taken under this mutex, and those of single changes inside
        // the gate.
        let held = || Held { count: 0, bound: self.next() };
        inner.snapshots.entry(number).or_insert_with(held).count += 1;
        drop(inner);
        Snapshot { registry: self.clone(), number }
    }

    /// The oldest record that somebody needs: the checkpoint may not pass it.
    #[must_use]
    pub fn oldest(&self) -> Option<Lsn> {
        self.inner.lock().pins.values().min().copied()
    }

    /// Where the first record lies that `id` needs.
    #[must_use]
    pub fn first_of(&self, id: TxnId) -> Option<Lsn> {
        self.inner.lock().pins.get(&id).copied()
    }

    /// Those whose records begin before `lsn`.
    #[must_use]
    pub fn pinned_before(&self, lsn: Lsn) -> Vec<TxnId> {
        let inner = self.inner.lock();
        inner.pins.iter().filter(|(_, from)| **from < lsn).map(|(id, _)| *id).collect()
    }

    /// How many transactions are open.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.open.load(Ordering::SeqCst)
    }

    /// Whether none is open, and none is left to be completed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.inner.lock().pins.is_empty()
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        let inner = self.inner.lock();
        let last = self.last_commit.load(Ordering::Acquire);
        RegistryStats {
            // Who made the archive is nobody to be told of.
            open: self.len().saturating_sub(self.archive.cohorts().len() as u64),
            history: inner.ended.len() + inner.heavy.len() as u64,
            snapshots: inner.snapshots.values().map(|held| u64::from(held.count)).sum(),
            oldest_snapshot_commits: inner.snapshots.keys().next().map_or(0, |s| last - s),
            version_bytes: inner.ended.bytes(),
            archived_versions: self.archive.versions(),
        }
    }

    /// Takes up to `max` ended transactions that all snapshots, and all to come, see the end of.
    /// They stay known until [`Registry::forget`]. Those that leave much to do wait for who asks
    /// for `heavy` ones, and hold nobody up.
    pub(crate) fn take_purgeable(&self, max: usize, heavy: bool, out: &mut Vec<Arc<Past>>) {
        let mut inner = self.inner.lock();
        let horizon = self.horizon(&inner);
        while out.len() < max
            && let Some((number, _)) = inner.ended.front().filter(|(number, _)| *number <= horizon)
            && let Some(past) = inner.ended.remove(number)
        {
            if past.is_heavy() { inner.heavy.push_back(past) } else { out.push(past) }
        }
        if heavy {
            let some = (max - out.len()).min(inner.heavy.len());
            out.extend(inner.heavy.drain(..some));
        }
    }

    /// What has ended up to this number is seen by all snapshots, and all to come.
    fn horizon(&self, inner: &Inner) -> u64 {
        let last = || self.last_commit.load(Ordering::Acquire);
        inner.snapshots.keys().next().copied().unwrap_or_else(last)
    }

    /// Whether some ended transaction is seen by all snapshots.
    pub(crate) fn has_purgeable(&self) -> bool {
        let inner = self.inner.lock();
        let horizon = self.horizon(&inner);
        !inner.heavy.is_empty() || inner.ended.front().is_some_and(|(number, _)| number <= horizon)
    }

    /// Bytes of memory that ended transactions take.
    pub(crate) fn version_bytes(&self) -> u64 {
        self.inner.lock().ended.bytes()
    }

    /// Looks at up to `max` ended transactions, oldest first, each once; not at the newest half of
    /// them, nor at more than `lag` of the newest. `None`: there is none, or no snapshot.
    pub(crate) fn archivable(&self, max: usize, lag: u64) -> Option<Archivable> {
        let inner = self.inner.lock();
        let last = self.last_commit.load(Ordering::Acquire);
        let from = inner.archived.max(self.horizon(&inner)) + 1;
        let to = last.saturating_sub(lag.min(inner.ended.len() / 2));
        if from > to {
            return None;
        }
        let (batch, looked) = inner.ended.some(from, to, max);
        let newest = batch.last().and_then(|past| past.number()).unwrap_or(0);
        let snapshots = inner.snapshots.range(..newest);
        let snapshots = snapshots.map(|(&number, held)| (number, held.bound)).collect();
        Some(Archivable { batch, looked, snapshots })
    }

    /// What the snapshot `at` does not see, told without commit numbers: all from `bound` on, and
    /// those before it that were under way when it was taken. Only while `at` is held: then all
    /// that have ended since are known here.
    pub(crate) fn view_of(&self, at: u64, bound: TxnId) -> OldView {
        let mut open: Vec<TxnId> = self.inner.lock().open.range(..bound).copied().collect();
        let mut from = at + 1;
        loop {
            let inner = self.inner.lock();
            let last = self.last_commit.load(Ordering::Acquire);
            let (some, looked) = inner.ended.some(from, last, 1024);
            open.extend(some.iter().map(|past| past.id()).filter(|id| *id < bound));
            // All that come later began later than the snapshot.
            if looked >= last || inner.ended.floor_at(looked).is_some_and(|floor| floor >= bound) {
                break;
            }
            from = looked + 1;
        }
        OldView::new(at, bound, open)
    }

    /// All ended ones up to this number have been archived, or are to stay.
    pub(crate) fn set_archived(&self, number: u64) {
        self.inner.lock().archived = number;
    }

    /// Forgets transactions that have been archived.
    pub(crate) fn forget_archived(&self, all: &[Arc<Past>]) {
        // A few at a time: everybody who begins or ends waits meanwhile.
        for some in all.chunks(16) {
            let mut inner = self.inner.lock();
            for past in some {
                // Unless it is being purged, or is gone already.
                if past.number().is_some_and(|number| inner.ended.remove(number).is_some()) {
                    self.remove(&mut inner, past.id());
                }
            }
            self.raise_low(&inner);
        }
    }

    /// Whether a snapshot of this number is held.
    pub(crate) fn is_held(&self, at: u64) -> bool {
        self.inner.lock().snapshots.contains_key(&at)
    }

    /// Whether `writer` is known no more because all snapshots see its end.
    pub(crate) fn is_everybodys(&self, writer: TxnId) -> bool {
        self.is_old(writer) || (self.find(writer).is_none() && !self.archive.is_hidden(writer))
    }

    /// Forgets transactions that everybody sees the end of, and that nothing is left to do for.
    pub(crate) fn forget(&self, all: &[Arc<Past>]) {
        let mut inner = self.inner.lock();
        for past in all {
            self.remove(&mut inner, past.id());
        }
        self.raise_low(&inner);
    }

    /// Takes up to `max` committed transactions whose versions some snapshot may need, oldest
    /// first, each once; and the snapshots held. Only those that `lag` more have followed.
    pub(crate) fn take_prunable(&self, max: usize, lag: u64) -> (Vec<Arc<Past>>, Vec<u64>) {
        let mut inner = self.inner.lock();
        let last = self.last_commit.load(Ordering::Acquire);
        let from = inner.pruned + 1;
        let to = last.saturating_sub(lag);
        if from > to || inner.snapshots.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (some, looked) = inner.ended.some(from, to, max);
        inner.pruned = looked;
        (some, inner.snapshots.keys().copied().collect())
    }

    /// Forgets committed transactions of which no row and no version is left.
    pub(crate) fn drop_hollow(&self, all: &[Arc<Past>]) {
        if all.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        for past in all {
            // Not when it is being purged, or has something left to do.
            if let Some(number) = past.number()
                && !inner.pins.contains_key(&past.id())
                && inner.ended.remove(number).is_some()
            {
                self.remove(&mut inner, past.id());
            }
        }
        self.raise_low(&inner);
    }
}

/// A moment: sees all that was committed then, for as long as it is held.
pub struct Snapshot {
    registry: Arc<Registry>,
    number: u64,
}

impl Snapshot {
    /// The newest commit number that it sees.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Clone for Snapshot {
    /// The same moment once more: snapshots can be shared between sessions.
    fn clone(&self) -> Self {
        self.registry.gate.close();
        if let Some(held) = self.registry.inner.lock().snapshots.get_mut(&self.number) {
            held.count += 1;
        }
        Snapshot { registry: self.registry.clone(), number: self.number }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut inner = self.registry.inner.lock();
        let mut is_last = false;
        if let Some(held) = inner.snapshots.get_mut(&self.number) {
            held.count -= 1;
            is_last = held.count == 0;
        }
        if is_last {
            inner.snapshots.remove(&self.number);
        }
        drop(inner);
        if is_last {
            self.registry.archive.leave(self.number);
        }
        self.registry.gate.reopen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_transactions_hold_the_checkpoint_and_their_rows() {
        let registry = Arc::new(Registry::new(TxnId(5)));
        assert_eq!(registry.oldest(), None);
        let (first, second) = (registry.open(), registry.open());
        registry.pin(first.id(), Lsn(100));
        registry.pin(second.id(), Lsn(200));
        assert!(registry.is_open(first.id()) && !registry.is_open(registry.number()));
        assert_eq!(registry.oldest(), Some(Lsn(100)));
        registry.pin(first.id(), Lsn(300));
        assert_eq!(registry.oldest(), Some(Lsn(200)));
        assert_eq!(registry.pinned_before(Lsn(250)), [second.id()]);
        registry.abort(&second);
        assert!(!registry.is_open(second.id()));
        assert_eq!(registry.oldest(), Some(Lsn(300)));
    }

    #[test]
    fn the_ended_are_known_as_long_as_a_snapshot_may_ask() {
        let registry = Arc::new(Registry::new(TxnId(5)));
        let writer = registry.open();
        let before = registry.snapshot();
        let number = registry.commit(&writer);
        assert!(before.number() < number);
        let mut out = Vec::new();
        registry.take_purgeable(9, true, &mut out);
        assert!(out.is_empty(), "a snapshot does not see it");
        let after = registry.snapshot();
        assert!(after.number() >= number);
        assert_eq!(registry.stats().snapshots, 2);
        drop(before);
        registry.take_purgeable(9, true, &mut out);
        assert_eq!(out.len(), 1);
        assert!(!registry.is_old(writer.id()) && registry.find(writer.id()).is_some());
        registry.forget(&out);
        assert!(registry.is_old(writer.id()) && registry.find(writer.id()).is_none());
    }
}
