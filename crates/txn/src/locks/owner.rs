//! A transaction as the lock table knows it: what it holds, and what it waits for.
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use weir_base::{TreeId, TxnId, rank};

use crate::by_txn::ByTxn;

use super::lock_error::Edge;
use super::place::LockTarget;
use super::sync::{AtomicU64, Condvar, Guard, Mutex, Ordering};

/// Keys that weigh as much as a row that was changed: about as many as a page has.
const GRANTS_A_ROW: u64 = 64;

/// A registered transaction.
pub struct Owner {
    id: TxnId,
    /// Rows changed.
    work: AtomicU64,
    /// Keys and ranges asked for and got, since it began.
    grants: AtomicU64,
    state: Mutex<rank::LockOwner, State>,
    /// Its thread sleeps here. A transaction waits for one lock at a time.
    wake: Condvar,
}

/// Most transactions lock a table's definition and one or two of its rows.
pub(super) type Targets = SmallVec<[LockTarget; 3]>;

/// In the place of what was released before others that came later.
const RELEASED: LockTarget = LockTarget::Ranges(TreeId(0));

pub(super) struct State {
    /// It has ended: nothing may be added to `locks` any more.
    closed: bool,
    /// Its present wait, or the next one, is to end.
    killed: bool,
    /// It reports to its listener for which transactions it waits, and has to be notified of those
    /// that come into its way.
    reports: bool,
    /// The keys that it holds, and the trees of which it holds ranges.
    locks: Targets,
    /// How many of `locks` are [`RELEASED`]: others are still found by their places.
    released: usize,
    wait: Wait,
}

/// Its wait. `On` becomes `Ended` under the mutex of the target's shard, as its entry leaves the
/// queue.
enum Wait {
    None,
    /// `notified`: it is to look whether it can have what it waits for.
    On {
        target: LockTarget,
        notified: bool,
    },
    Ended(Outcome),
}

/// Why one that slept does so no more.
pub(super) enum Woken {
    /// Its wait is over.
    Ended(Outcome),
    /// It is to look whether it can have what it waits for.
    Notified,
    /// The time has passed.
    Late,
}

/// How a wait ended.
pub(super) enum Outcome {
    Granted,
    TimedOut { holder: TxnId },
    Deadlock { cycle: Vec<Edge> },
    Killed,
}

impl Owner {
    fn new(id: TxnId) -> Self {
        let (closed, killed, reports) = (false, false, false);
        let (locks, wait) = (Targets::new(), Wait::None);
        let state = State { closed, killed, reports, locks, released: 0, wait };
        let (work, grants) = (AtomicU64::new(0), AtomicU64::new(0));
        Owner { id, work, grants, state: Mutex::new(state), wake: Condvar::new() }
    }

    /// The transaction's number.
    #[must_use]
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Notes that it has changed `rows` more rows.
    #[inline]
    pub fn add_work(&self, rows: u64) {
        self.work.fetch_add(rows, Ordering::Relaxed);
    }

    /// Notes that it has got a key or a range.
    #[inline]
    pub(super) fn add_grant(&self) {
        self.grants.fetch_add(1, Ordering::Relaxed);
    }

    /// How many keys and ranges it has got, those released since and those got again counted too.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.grants.load(Ordering::Relaxed)
    }

    /// Notes how many rows it has changed so far.
    #[inline]
    pub fn set_work(&self, rows: u64) {
        self.work.store(rows, Ordering::Relaxed);
    }

    /// What its end in a deadlock would throw away: the rows that it has changed, and one for each
    /// 64 keys that it has got. A statement that goes through a large table and changes few of its
    /// rows would else be the victim of every transaction of one row that it meets, again and again
    /// without an end (InnoDB counts the pages on which a transaction has locks).
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.work().saturating_add(self.grants() / GRANTS_A_ROW)
    }

    /// Rows that it has changed.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// A point for [`super::LockTable::release_between`]; it stays where it is.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.state.lock().locks.len()
    }

    /// Forgets the rows that it has come to hold something at between two marks, in trees of which
    /// `wanted` is true, and returns them.
    pub(super) fn take_rows_between(
        &self,
        marks: Range<usize>,
        wanted: impl Fn(TreeId) -> bool,
    ) -> Targets {
        let mut state = self.state.lock();
        let mut rows = Targets::new();
        for at in marks.start..marks.end.min(state.locks.len()) {
            if matches!(&state.locks[at], LockTarget::Row(tree, _) if wanted(*tree)) {
                rows.push(std::mem::replace(&mut state.locks[at], RELEASED));
                state.released += 1;
            }
        }
        while state.released > 0 && state.locks.last() == Some(&RELEASED) {
            state.locks.pop();
            state.released -= 1;
        }
        rows
    }

    /// Notes that it holds something at `target`, unless it has ended.
    pub(super) fn note(&self, target: LockTarget) -> bool {
        let mut state = self.state.lock();
        if !state.closed {
            state.locks.push(target);
        }
        !state.closed
    }

    /// Lets nothing be added any more; returns where it holds something.
    pub(super) fn close(&self) -> Targets {
        let mut state = self.state.lock();
        debug_assert!(matches!(state.wait, Wait::None), "a waiting transaction cannot end");
        state.closed = true;
        state.take_released_out();
        std::mem::take(&mut state.locks)
    }

    /// Whether it holds nothing: then no transaction waits for it but a transaction that queues
    /// behind it.
    pub(super) fn holds_nothing(&self) -> bool {
        let state = self.state.lock();
        state.locks.len() == state.released
    }

    /// Where it holds something.
    pub(super) fn targets(&self) -> Targets {
        let state = self.state.lock();
        state.locks.iter().filter(|target| **target != RELEASED).cloned().collect()
    }

    /// Begins a wait, unless it has been killed. Called under the mutex of the target's shard.
    pub(super) fn begin_wait(&self, target: &LockTarget) -> bool {
        let mut state = self.state.lock();
        debug_assert!(matches!(state.wait, Wait::None), "one wait at a time");
        if std::mem::take(&mut state.killed) {
            return false;
        }
        state.wait = Wait::On { target: target.clone(), notified: false };
        true
    }

    /// Ends its wait. Called under the mutex of the target's shard; the caller wakes it afterwards.
    pub(super) fn end_wait(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        debug_assert!(matches!(state.wait, Wait::On { .. }), "it waits while it is in a queue");
        if matches!(outcome, Outcome::Killed) {
            state.killed = false;
        }
        state.wait = Wait::Ended(outcome);
    }

    pub(super) fn wake(&self) {
        self.wake.wake();
    }

    /// Where it waits.
    pub(super) fn waits_on(&self) -> Option<LockTarget> {
        match &self.state.lock().wait {
            Wait::On { target, .. } => Some(target.clone()),
            _ => None,
        }
    }

    /// Whether it waits.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state.lock().wait, Wait::On { .. })
    }

    /// Says that its present wait or the next one is to end; returns where it waits.
    pub(super) fn kill(&self) -> Option<LockTarget> {
        let mut state = self.state.lock();
        state.killed = true;
        match &state.wait {
            Wait::On { target, .. } => Some(target.clone()),
            _ => None,
        }
    }

    pub(super) fn clear_kill(&self) {
        self.state.lock().killed = false;
    }

    /// Tells it to look whether it can have what it waits for. Called under the mutex of the
    /// target's shard; the caller wakes it afterwards.
    pub(super) fn notify(&self) {
        match &mut self.state.lock().wait {
            Wait::On { notified, .. } => *notified = true,
            _ => debug_assert!(false, "only a waiter is notified"),
        }
    }

    /// Notes whether it reports to a listener for which transactions it waits.
    pub(super) fn set_reports(&self, reports: bool) {
        self.state.lock().reports = reports;
    }

    /// Notifies it if it reports for which transactions it waits. Called under the mutex of the
    /// target's shard; the caller wakes it afterwards.
    pub(super) fn notify_reporter(&self) -> bool {
        let mut state = self.state.lock();
        let reports = state.reports;
        match &mut state.wait {
            Wait::On { notified, .. } if reports => {
                *notified = true;
                true
            }
            _ => false,
        }
    }

    /// Whether it has been notified and has not looked.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_notified(&self) -> bool {
        matches!(self.state.lock().wait, Wait::On { notified: true, .. })
    }

    /// Whether it has been notified since it was asked last.
    #[cfg(all(test, not(loom)))]
    pub(super) fn take_notice(&self) -> bool {
        match &mut self.state.lock().wait {
            Wait::On { notified, .. } => std::mem::take(notified),
            _ => false,
        }
    }

    /// Sleeps until its wait is over or it is notified, at most for `limit`.
    pub(super) fn sleep(&self, limit: Duration) -> Woken {
        let mut state = self.state.lock();
        loop {
            if let Some(woken) = woken(&mut state) {
                return woken;
            }
            let (after, timed_out) = self.wake.wait(state, limit);
            state = after;
            if timed_out {
                return woken(&mut state).unwrap_or(Woken::Late);
            }
        }
    }

    /// Sleeps for `time`, or until its wait is over.
    pub(super) fn nap(&self, time: Duration) -> Woken {
        // Loom's conditions know no time: there, a nap is over as soon as it begins.
        if cfg!(loom) {
            return woken(&mut self.state.lock()).unwrap_or(Woken::Late);
        }
        self.sleep(time)
    }

    /// How its wait ended, if it has.
    pub(super) fn take_outcome(&self) -> Option<Outcome> {
        taken(&mut self.state.lock())
    }
}

impl State {
    fn take_released_out(&mut self) {
        if std::mem::take(&mut self.released) > 0 {
            self.locks.retain(|target| *target != RELEASED);
        }
    }
}

fn woken(state: &mut Guard<'_, State>) -> Option<Woken> {
    match &mut state.wait {
        Wait::On { notified, .. } => std::mem::take(notified).then_some(Woken::Notified),
        _ => taken(state).map(Woken::Ended),
    }
}

fn taken(state: &mut Guard<'_, State>) -> Option<Outcome> {
    if !matches!(state.wait, Wait::Ended(_)) {
        return None;
    }
    match std::mem::replace(&mut state.wait, Wait::None) {
        Wait::Ended(outcome) => Some(outcome),
        _ => None,
    }
}

#[cfg(not(loom))]
const PARTS: usize = 64;
#[cfg(loom)]
const PARTS: usize = 1;

type Part = ByTxn<Arc<Owner>>;

/// The registered transactions by number.
pub(super) struct Registry {
    parts: Box<[Mutex<rank::LockOwners, Part>]>,
}

impl Registry {
    pub(super) fn new() -> Self {
        Registry { parts: (0..PARTS).map(|_| Mutex::new(Part::default())).collect() }
    }
    fn part(&self, id: TxnId) -> Guard<'_, Part> {
        // Numbers are given in sequence: their lowest bits spread them evenly.
        self.parts[id.0 as usize % PARTS].lock()
    }
    pub(super) fn add(&self, id: TxnId) -> Arc<Owner> {
        let owner = Arc::new(Owner::new(id));
        let before = self.part(id).insert(id, Arc::clone(&owner));
        assert!(before.is_none(), "transaction {id} is registered already");
        owner
    }
    pub(super) fn find(&self, id: TxnId) -> Option<Arc<Owner>> {
        self.part(id).get(&id).cloned()
    }
    pub(super) fn remove(&self, id: TxnId) -> Option<Arc<Owner>> {
        self.part(id).remove(&id)
    }
}
