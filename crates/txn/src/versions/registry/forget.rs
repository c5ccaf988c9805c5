//! The registry as purging, pruning and archiving know it: what a reader may still ask about, and
//! how the others are forgotten.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_base::TxnId;
use weir_page::Stamp;

use super::{Inner, Registry};
use crate::record::txn_record::{PURGE_TASKS_MAX, State, TxnRecord};
use crate::versions::archive::OldReadView;

/// Ended transactions whose versions could be archived, oldest first.
pub(crate) struct Archivable {
    /// They, and others between them.
    pub(crate) batch: Vec<Arc<TxnRecord>>,
    /// The number up to which they were looked for.
    pub(crate) looked: u64,
    /// Snapshots that do not see the last of them: number, and from which transaction on all began
    /// after it.
    pub(crate) snapshots: Vec<(u64, TxnId)>,
}

impl Registry {
    /// Takes up to `max` ended transactions that all snapshots, and all to come, see the end of.
    /// They stay known until [`Registry::forget`]. Those that leave much to do wait for a caller
    /// that asks for `heavy` ones, and hold nothing up. Ends before what the others left to do
    /// passes
    /// [`PURGE_TASKS_MAX`].
    pub(crate) fn take_purgeable(&self, max: usize, heavy: bool, out: &mut Vec<Arc<TxnRecord>>) {
        let mut inner = self.inner.lock();
        let horizon = self.horizon(&inner);
        let mut left = 0;
        while out.len() < max
            && let Some((number, record)) = inner.ended.front().filter(|(n, _)| *n <= horizon)
        {
            let (takes_long, tasks) = (record.takes_long(), record.tasks());
            if !takes_long && left + tasks > PURGE_TASKS_MAX {
                break;
            }
            let Some(record) = inner.ended.remove(number) else { break };
            if takes_long {
                inner.heavy.push_back(record);
                continue;
            }
            left += tasks;
            out.push(record);
        }
        if heavy {
            let some = (max - out.len()).min(inner.heavy.len());
            out.extend(inner.heavy.drain(..some));
        }
    }

    /// Something has kept this one from being completed: later, and behind others that wait.
    pub(crate) fn complete_later(&self, record: &Arc<TxnRecord>) {
        self.inner.lock().heavy.push_back(record.clone());
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

    /// Retries at up to `max` ended transactions, oldest first, each once; not at the newest half
    /// of them, nor at more than `lag` of the newest. `None`: there is none, or no snapshot.
    pub(crate) fn archivable(&self, max: usize, lag: u64) -> Option<Archivable> {
        let inner = self.inner.lock();
        let last = self.last_commit.load(Ordering::Acquire);
        let from = inner.archived.max(self.horizon(&inner)) + 1;
        let to = last.saturating_sub(lag.min(inner.ended.len() / 2));
        if from > to {
            return None;
        }
        let (batch, looked) = inner.ended.some(from, to, max);
        let newest = batch.last().and_then(|record| record.number()).unwrap_or(0);
        let snapshots = inner.snapshots.range(..newest);
        let snapshots = snapshots.map(|(&number, held)| (number, held.bound)).collect();
        Some(Archivable { batch, looked, snapshots })
    }

    /// Retries at up to `max` ended transactions that some snapshot does not see the end of, oldest
    /// first, each once, and returns those that have left something to do, but no large works.
    /// `None`: all have been looked at.
    pub(crate) fn to_gather(&self, max: usize) -> Option<Vec<Arc<TxnRecord>>> {
        let mut inner = self.inner.lock();
        let from = inner.gathered.max(self.horizon(&inner)) + 1;
        let to = self.last_commit.load(Ordering::Acquire);
        if from > to {
            return None;
        }
        let (mut some, looked) = inner.ended.some(from, to, max);
        inner.gathered = looked;
        some.retain(|record| record.tasks() > 0 && !record.is_heavy());
        Some(some)
    }

    /// What the snapshot `at` does not see, named without commit numbers: all from `bound` on, and
    /// those before it that were under way when it was taken. Only while `at` is held: then all
    /// that have ended since are known here.
    pub(crate) fn view_of(&self, at: u64, bound: TxnId) -> OldReadView {
        let mut open: Vec<TxnId> = self.inner.lock().open.range(..bound).copied().collect();
        let mut from = at + 1;
        loop {
            let inner = self.inner.lock();
            let last = self.last_commit.load(Ordering::Acquire);
            let (some, looked) = inner.ended.some(from, last, 1024);
            open.extend(some.iter().map(|record| record.id()).filter(|id| *id < bound));
            // All that come later began later than the snapshot.
            if looked >= last || inner.ended.floor_at(looked).is_some_and(|floor| floor >= bound) {
                break;
            }
            from = looked + 1;
        }
        OldReadView::new(at, bound, open)
    }

    /// All ended ones up to this number have been archived, or are to stay.
    pub(crate) fn set_archived(&self, number: u64) {
        self.inner.lock().archived = number;
    }

    /// Forgets transactions that have been archived.
    pub(crate) fn forget_archived(&self, all: &[Arc<TxnRecord>]) {
        // A few at a time: transactions that begin or end wait meanwhile.
        for some in all.chunks(16) {
            let mut inner = self.inner.lock();
            for record in some {
                // Unless it is being purged, or is gone already.
                if record.number().is_some_and(|number| inner.ended.remove(number).is_some()) {
                    self.remove(&mut inner, record.id());
                }
            }
            self.raise_low(&inner);
        }
    }

    /// Whether a snapshot of this number is held.
    pub(crate) fn is_held(&self, at: u64) -> bool {
        self.inner.lock().snapshots.contains_key(&at)
    }

    /// Whether all snapshots, and all to come, see what `writer` did: then it is purged, or may be.
    /// Whether it is known any more says nothing: it is forgotten only with others of its turn, and
    /// what it left to do may be done by one of those (TXN-15).
    pub(crate) fn is_visible_to_all(&self, writer: TxnId) -> bool {
        if self.is_old(writer) {
            return true;
        }
        let Some(record) = self.find(writer) else { return !self.archive.is_hidden(writer) };
        let State::Committed(number) = record.state() else { return false };
        number <= self.horizon(&self.inner.lock())
    }

    /// The number of the youngest old snapshot, if neither it nor an older one wants what `record`
    /// remembers: what a row was before each of its changes was archived before, as far as they
    /// need it. Where rows change again and again beside an old snapshot, that is most of them.
    /// `too_soon` is for the simulator to find: all count as archived.
    pub(crate) fn spent_for(&self, record: &TxnRecord, too_soon: bool) -> Option<u64> {
        let archive = &self.archive;
        // Read first: a snapshot that becomes old meanwhile may see what these do not.
        let old = archive.newest();
        if old == 0 || record.stored_changes() > 0 {
            return None;
        }
        let is_archived = |before: Stamp| {
            before.writer == record.id()
                || too_soon
                || (archive.is_hidden_from_all(before.writer) && self.find(before.writer).is_none())
        };
        let mut changes = 1..=record.changes();
        let spent = changes.all(|seq| record.stamp_in_memory(seq).is_none_or(is_archived));
        spent.then_some(old)
    }

    /// Forgets transactions that every transaction sees the end of, and that nothing is left to do
    /// for.
    pub(crate) fn forget(&self, all: &[Arc<TxnRecord>]) {
        let mut inner = self.inner.lock();
        for record in all {
            self.remove(&mut inner, record.id());
        }
        self.raise_low(&inner);
    }

    /// Takes up to `max` committed transactions whose versions some snapshot may need, oldest
    /// first, each once; and the snapshots held. Only those that `lag` more have followed.
    pub(crate) fn take_prunable(&self, max: usize, lag: u64) -> (Vec<Arc<TxnRecord>>, Vec<u64>) {
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
    pub(crate) fn drop_hollow(&self, all: &[Arc<TxnRecord>]) {
        if all.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        for record in all {
            // Not when it is being purged, or has something left to do.
            if let Some(number) = record.number()
                && !inner.pins.has(record.id())
                && inner.ended.remove(number).is_some()
            {
                self.remove(&mut inner, record.id());
            }
        }
        self.raise_low(&inner);
    }
}
