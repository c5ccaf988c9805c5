//! All transactions that a reader may still ask about: numbers, which are under way, commit
//! numbers, snapshots, and where the log must be kept from.
//!
//! A snapshot is one commit number: taking it copies no list. A row whose writer is not in the
//! registry any more was written by a transaction that is visible to all.
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::{Mutex, RwLock};
use weir_base::{Home, Lsn, TxnId, lines, rank};

use crate::by_txn::ByTxn;
use crate::error::TxnError;
use crate::record::txn_record::{State, TxnRecord};
use crate::record::work::Left;
use crate::versions::archive::Archive;
use crate::versions::ended::Ended;
use crate::versions::gate::Gate;

mod forget;
mod pins;
mod snapshot;
mod weights;

pub(crate) use forget::Archivable;
use pins::Pins;
pub use snapshot::Snapshot;
use weights::Weights;

const SHARDS: usize = 64;

/// Transactions whose numbers have the same remainder.
type Shard = RwLock<rank::TransactionShard, ByTxn<Arc<TxnRecord>>>;

/// The registry.
pub struct Registry {
    next: AtomicU64,
    /// Rows of writers below this number are seen by every transaction.
    low: AtomicU64,
    last_commit: AtomicU64,
    open: AtomicU64,
    pub(crate) gate: Gate,
    /// Where old snapshots find versions of transactions that are known here no more.
    pub(crate) archive: Archive,
    shards: Box<[Shard]>,
    weights: Weights,
    inner: Mutex<rank::Transactions, Inner>,
    home: Home,
}

struct Inner {
    /// Those under way.
    open: BTreeSet<TxnId>,
    /// Where the first record is that recovery would need to roll one back, or to complete it.
    pins: Pins,
    /// Snapshots, by their commit numbers.
    snapshots: BTreeMap<u64, HeldSnapshot>,
    /// Ended, by the number that they ended with.
    ended: Ended,
    /// Those of them that all snapshots see the end of, and that leave much to do.
    heavy: VecDeque<Arc<TxnRecord>>,
    /// Those of `ended` up to here have been looked at by `prune`.
    pruned: u64,
    /// And those up to here by archiving.
    archived: u64,
    /// And those up to here by gathering what they have left to do.
    gathered: u64,
}

/// A snapshot that is held.
struct HeldSnapshot {
    /// So many times.
    count: u32,
    /// Transactions from this number on began after it was taken.
    bound: TxnId,
}

/// What `Registry::stats` tells.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegistryStats {
    /// Transactions under way.
    pub open: u64,
    /// Transactions that have ended and that a reader may still have to look behind: the length of
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
    /// Bytes of log that logging all open transactions again takes, to within a few KiB each.
    pub open_bytes: u64,
    /// Bytes of log that what committed ones have left to do takes.
    pub left_bytes: u64,
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
            weights: Weights::default(),
            inner: Mutex::new(Inner {
                open: BTreeSet::new(),
                pins: Pins::default(),
                snapshots: BTreeMap::new(),
                ended: Ended::new(2),
                heavy: VecDeque::new(),
                pruned: 0,
                archived: 0,
                gathered: 0,
            }),
            home: Home::here(),
        }
    }

    fn shard(&self, id: TxnId) -> &Shard {
        &self.shards[id.0 as usize % SHARDS]
    }

    /// A number for a change that is one group of the log and leaves no older version: it is never
    /// seen open.
    ///
    /// # Errors
    /// [`TxnError::NumbersUsedUp`].
    #[inline]
    pub fn number(&self) -> Result<TxnId, TxnError> {
        lines::wrote("the next transaction number");
        let id = TxnId(self.next.fetch_add(1, Ordering::Relaxed));
        if id > TxnId::MAX {
            // Counting does not go on beyond what a row can hold, however often it is asked for.
            self.next.store(TxnId::MAX.0 + 1, Ordering::Relaxed);
            return Err(TxnError::no_more_transactions());
        }
        Ok(id)
    }

    /// The number that the next transaction gets.
    #[must_use]
    pub fn next(&self) -> TxnId {
        TxnId(self.next.load(Ordering::Relaxed))
    }

    /// Opens a transaction. It holds the log only from [`Registry::pin`] on.
    ///
    /// # Errors
    /// [`TxnError::NumbersUsedUp`].
    pub fn open(&self) -> Result<Arc<TxnRecord>, TxnError> {
        self.open_pinned(None)
    }

    /// As [`Registry::open`], and as [`Registry::pin`] where `from` says so.
    pub(crate) fn open_pinned(&self, from: Option<Lsn>) -> Result<Arc<TxnRecord>, TxnError> {
        // The number is taken under the mutex, so that `low` never passes one that is not known
        // yet.
        let mut inner = self.inner.lock();
        let id = self.number()?;
        let record = Arc::new(TxnRecord::new(id));
        inner.open.insert(id);
        if let Some(from) = from {
            inner.pins.insert(id, from);
            record.set_first(Some(from));
        }
        self.shard(id).write().insert(id, record.clone());
        lines::wrote("the number of open transactions");
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(record)
    }

    /// Registers a transaction that recovery found open; its records begin at `from`.
    pub fn reopen(&self, id: TxnId, from: Lsn) {
        let mut inner = self.inner.lock();
        match self.shard(id).write().entry(id) {
            Entry::Occupied(place) => place.get().set_first(Some(from)),
            Entry::Vacant(place) => {
                place.insert(Arc::new(TxnRecord::new(id))).set_first(Some(from));
                lines::wrote("the number of open transactions");
                self.open.fetch_add(1, Ordering::SeqCst);
            }
        }
        inner.open.insert(id);
        inner.pins.insert(id, from);
        let low = self.low.load(Ordering::SeqCst).min(id.0);
        self.low.store(low, Ordering::SeqCst);
    }

    /// Says that what recovery needs of `record` lies at or after `from`: before the first record
    /// is in the log, and after its undo has been logged again.
    pub fn pin(&self, record: &TxnRecord, from: Lsn) {
        let mut inner = self.inner.lock();
        inner.pins.insert(record.id(), from);
        record.set_first(Some(from));
    }

    /// As [`Registry::pin`], for a thread that logs again and may come late: one that is forgotten,
    /// or that recovery needs nothing of any more, is not pinned again. Nothing would unpin it.
    pub(crate) fn repin(&self, record: &TxnRecord, from: Lsn) {
        let mut inner = self.inner.lock();
        if inner.pins.has(record.id()) {
            inner.pins.insert(record.id(), from);
            record.set_first(Some(from));
        }
    }

    /// Says that recovery needs nothing of `record` any more.
    pub fn unpin(&self, record: &TxnRecord) {
        let mut inner = self.inner.lock();
        inner.pins.remove(record.id());
        record.set_first(None);
    }

    /// Ends a transaction as committed: snapshots from now on see its changes. What its commit left
    /// to do keeps its pin. Returns its commit number.
    ///
    /// `spent_for`: no snapshot of this number or an older one wants what it remembers. If there is
    /// no younger one either, it is forgotten at once.
    pub(crate) fn commit(
        &self,
        record: &Arc<TxnRecord>,
        left: Left,
        spent_for: Option<u64>,
    ) -> u64 {
        record.set_left(left.is_heavy, left.tasks);
        self.weights.end(record, left.bytes);
        let unpin = left.tasks == 0;
        self.conclude(record, true, unpin, spent_for.filter(|_| unpin))
    }

    /// Ends a transaction as rolled back, after its rows have been restored.
    pub fn abort(&self, record: &Arc<TxnRecord>) {
        self.weights.end(record, 0);
        self.conclude(record, false, true, None);
    }

    fn conclude(
        &self,
        record: &Arc<TxnRecord>,
        committed: bool,
        unpin: bool,
        spent_for: Option<u64>,
    ) -> u64 {
        let bytes = record.memory_bytes();
        let mut inner = self.inner.lock();
        let number = self.last_commit.load(Ordering::Relaxed) + 1;
        record.set_end(number, committed);
        // After the transaction says so itself: a snapshot of this number sees it.
        lines::wrote("the last commit number");
        self.last_commit.store(number, Ordering::Release);
        lines::wrote("the number of open transactions");
        self.open.fetch_sub(1, Ordering::SeqCst);
        if unpin {
            inner.pins.remove(record.id());
            record.set_first(None);
        }
        let floor = inner.open.first().copied().unwrap_or(record.id());
        inner.open.remove(&record.id());
        inner.ended.push(record.clone(), floor, bytes);
        let newest = inner.snapshots.range(..number).next_back().map(|(&at, _)| at);
        if newest.is_some_and(|at| spent_for.is_some_and(|old| at <= old)) {
            // As if it had been archived.
            inner.ended.remove(number);
            self.remove(&mut inner, record.id());
            self.raise_low(&inner);
        }
        number
    }

    /// Ends a transaction that wrote no row that any transaction could want older versions of, and
    /// forgets it.
    pub fn end(&self, id: TxnId) {
        let mut inner = self.inner.lock();
        if self.remove(&mut inner, id) {
            lines::wrote("the number of open transactions");
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
        self.raise_low(&inner);
    }

    /// Knows a transaction no more; `raise_low` is to follow.
    fn remove(&self, inner: &mut Inner, id: TxnId) -> bool {
        inner.open.remove(&id);
        inner.pins.remove(id);
        let gone = self.shard(id).write().remove(&id);
        let Some(record) = gone else { return false };
        // A thread that has found it before sees that there is nothing to log again.
        record.set_first(None);
        self.weights.set(&record, record.state(), 0);
        true
    }

    /// Some are known no more: rows of more writers are visible to all.
    fn raise_low(&self, inner: &Inner) {
        let open = inner.open.first().map_or_else(|| self.next().0, |first| first.0);
        let low = inner.ended.floor().map_or(open, |floor| floor.0.min(open));
        lines::wrote("the lowest known transaction");
        self.low.store(low.min(self.archive.floor().0), Ordering::SeqCst);
    }

    /// Whether every transaction sees what `writer` wrote. `false` says nothing.
    #[inline]
    #[must_use]
    pub fn is_old(&self, writer: TxnId) -> bool {
        writer < self.low()
    }

    /// Every transaction sees what writers below this number wrote.
    #[inline]
    pub(crate) fn low(&self) -> TxnId {
        TxnId(self.low.load(Ordering::Acquire))
    }

    /// The transaction, if it is known.
    #[must_use]
    pub fn find(&self, id: TxnId) -> Option<Arc<TxnRecord>> {
        self.shard(id).read().get(&id).cloned()
    }

    /// Whether `id` is under way.
    #[inline]
    #[must_use]
    pub fn is_open(&self, id: TxnId) -> bool {
        !self.is_old(id)
            && self.open.load(Ordering::SeqCst) != 0
            && self.shard(id).read().get(&id).is_some_and(|record| record.state() == State::Open)
    }

    /// All that are under way but `id`.
    #[must_use]
    pub(crate) fn others(&self, id: TxnId) -> Vec<Arc<TxnRecord>> {
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
        let held = || HeldSnapshot { count: 0, bound: self.next() };
        inner.snapshots.entry(number).or_insert_with(held).count += 1;
        drop(inner);
        lines::wrote("the registry's reference count");
        Snapshot::new(self.clone(), number)
    }

    /// The oldest record that recovery needs: the checkpoint may not pass it.
    #[must_use]
    pub fn oldest(&self) -> Option<Lsn> {
        self.inner.lock().pins.oldest()
    }

    /// Those whose records begin before `lsn`.
    #[must_use]
    pub fn pinned_before(&self, lsn: Lsn) -> Vec<TxnId> {
        self.inner.lock().pins.before(lsn).collect()
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
            // The makers of the archive are not counted.
            open: self.len().saturating_sub(self.archive.groups().len() as u64),
            history: inner.ended.len() + inner.heavy.len() as u64,
            snapshots: inner.snapshots.values().map(|held| u64::from(held.count)).sum(),
            oldest_snapshot_commits: inner.snapshots.keys().next().map_or(0, |s| last - s),
            version_bytes: inner.ended.bytes(),
            archived_versions: self.archive.versions(),
            open_bytes: self.open_bytes(),
            left_bytes: self.left_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(registry: &Registry) -> Arc<TxnRecord> {
        registry.open().expect("a number")
    }

    #[test]
    fn numbers_end_where_a_row_has_no_room_for_more() {
        let registry = Registry::new(TxnId(TxnId::MAX.0 - 1));
        assert_eq!(opened(&registry).id(), TxnId(TxnId::MAX.0 - 1));
        assert_eq!(registry.number().expect("the last"), TxnId::MAX);
        for _ in 0..3 {
            assert!(matches!(registry.number(), Err(TxnError::NumbersUsedUp { .. })));
            assert!(registry.open().is_err());
            assert_eq!(registry.next().0, TxnId::MAX.0 + 1);
        }
    }

    #[test]
    fn open_transactions_hold_the_checkpoint_and_their_rows() {
        let registry = Arc::new(Registry::new(TxnId(5)));
        assert_eq!(registry.oldest(), None);
        let (first, second) = (opened(&registry), opened(&registry));
        registry.pin(&first, Lsn(100));
        registry.pin(&second, Lsn(200));
        assert!(
            registry.is_open(first.id()) && !registry.is_open(registry.number().expect("a number"))
        );
        assert_eq!(registry.oldest(), Some(Lsn(100)));
        registry.pin(&first, Lsn(300));
        assert_eq!(registry.oldest(), Some(Lsn(200)));
        assert_eq!(registry.pinned_before(Lsn(250)), [second.id()]);
        registry.abort(&second);
        assert!(!registry.is_open(second.id()));
        assert_eq!(registry.oldest(), Some(Lsn(300)));
    }

    #[test]
    fn one_that_needs_nothing_any_more_is_not_pinned_again() {
        let registry = Arc::new(Registry::new(TxnId(5)));
        let (first, second) = (opened(&registry), opened(&registry));
        [&first, &second].into_iter().for_each(|record| registry.pin(record, Lsn(100)));
        // A thread that logs again has found them both before this.
        registry.end(first.id());
        registry.abort(&second);
        [&first, &second].into_iter().for_each(|record| registry.repin(record, Lsn(200)));
        assert!(registry.oldest().is_none() && registry.is_empty());
        assert!(first.first().is_none() && second.first().is_none());
    }

    #[test]
    fn the_ended_are_known_as_long_as_a_snapshot_may_ask() {
        let registry = Arc::new(Registry::new(TxnId(5)));
        let writer = opened(&registry);
        let before = registry.snapshot();
        let number = registry.commit(&writer, Left::default(), None);
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
