//! The table: registering, asking, waiting, ending.
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use weir_base::{Clock, Counter, SystemClock, TreeId, TxnId};

use super::kind::{Kind, Place, Target, hash};
use super::owner::{Outcome, Owner, Registry};
use super::queue::ToWake;
use super::refused::Refused;
use super::shard::{Shards, Size};

/// Whether a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// At most so long; `Duration::MAX` is for ever.
    Until(Duration),
}

/// What the table has done, and what is in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LockStats {
    /// Requests that had to wait.
    pub waits: u64,
    /// Microseconds waited, of all waits that are over.
    pub wait_micros: u64,
    /// Waits ended as victims of a deadlock.
    pub deadlocks: u64,
    /// Waits ended by their limit.
    pub timeouts: u64,
    /// Waits ended by [`LockTable::kill`].
    pub kills: u64,
    /// Pairs of a transaction and a place where it holds explicit locks, now.
    pub held: u64,
    /// Transactions that wait, now.
    pub waiting: u64,
    /// Gap locks held, now.
    pub gaps: u64,
}

#[derive(Default)]
struct Counts {
    waits: Counter,
    wait_micros: Counter,
    deadlocks: Counter,
    timeouts: Counter,
    kills: Counter,
}

/// The explicit locks of transactions, and those who wait for them.
pub struct LockTable {
    pub(super) shards: Shards,
    registry: Registry,
    clock: Arc<dyn Clock>,
    counts: Counts,
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl LockTable {
    /// An empty table that measures waits by the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty table that measures waits by this clock. Limits are slept by the machine's.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::with_size(Size::USUAL, clock)
    }

    pub(super) fn with_size(size: Size, clock: Arc<dyn Clock>) -> Self {
        let (shards, registry) = (Shards::new(size), Registry::new());
        LockTable { shards, registry, clock, counts: Counts::default() }
    }

    /// Makes a transaction known, before it writes its first row or asks for its first lock. What
    /// is returned may be kept to count its work without a lookup.
    ///
    /// # Panics
    /// If it is known already.
    pub fn register(&self, id: TxnId) -> Arc<Owner> {
        self.registry.add(id)
    }

    /// Ends a transaction: releases what it holds and hands it to the next waiters, in order.
    /// Called when everyone who looks at its rows already sees that it has committed or rolled
    /// back: those who waited for it look again. Does nothing for one that is not known.
    pub fn end(&self, id: TxnId) {
        let Some(owner) = self.registry.remove(id) else { return };
        let mut to_wake = ToWake::new();
        for target in owner.close() {
            self.shards.lock(target.hash).with_target(&target, |queue| {
                queue.release(id, &self.shards.gauges, &mut to_wake);
            });
        }
        wake(&to_wake);
    }

    /// Notes that a transaction has changed `rows` more rows; [`Owner::add_work`] does it without a
    /// lookup.
    pub fn add_work(&self, id: TxnId, rows: u64) {
        if let Some(owner) = self.registry.find(id) {
            owner.add_work(rows);
        }
    }

    /// Takes a lock, and if need be waits for it. No latch is held meanwhile.
    ///
    /// `writer` is the active transaction that the row's stamp names: its lock is made explicit
    /// first, so that requests queue behind it, unless it has ended meanwhile. A row that `id`
    /// itself has written is its own already. After `Ok` the caller looks at the row again: it, or
    /// the gap, may have changed before the lock was got.
    ///
    /// # Errors
    /// [`Refused`], after which nothing of the request is left.
    ///
    /// # Panics
    /// If `id` is not registered.
    pub fn acquire(
        &self,
        id: TxnId,
        tree: TreeId,
        place: Place<'_>,
        kind: Kind,
        writer: Option<TxnId>,
        wait: Wait,
    ) -> Result<(), Refused> {
        if kind.is_row() && writer == Some(id) {
            return Ok(());
        }
        let owner = self.registry.find(id).expect("transactions are registered before they lock");
        let writer = writer.filter(|_| kind.is_row()).and_then(|w| self.registry.find(w));
        let limit = match wait {
            Wait::No => None,
            Wait::Until(limit) => Some(limit),
        };
        let request = Request { tree, place, kind, writer: writer.as_ref() };
        match self.request(&owner, &request, limit.is_some())? {
            None => Ok(()),
            Some(target) => self.wait_for(&owner, &target, limit.unwrap_or_default()),
        }
    }

    /// Takes a lock or queues for it, and ends the deadlocks that this makes: `Some` says where
    /// `owner` waits, or waited if that is over already.
    pub(super) fn request(
        &self,
        owner: &Arc<Owner>,
        request: &Request<'_>,
        may_wait: bool,
    ) -> Result<Option<Arc<Target>>, Refused> {
        let Request { tree, place, kind, writer } = *request;
        let (id, gauges) = (owner.id(), &self.shards.gauges);
        let hash = hash(tree, place);
        let mut delayed = SmallVec::new();
        let result = self.shards.lock(hash).with(hash, tree, place, |queue| {
            if let Some(writer) = writer
                && !queue.holds(writer.id(), Kind::RowExclusive)
                // In vain if it has closed its list: then its rows say by now that it has ended.
                && queue.grant(writer, Kind::RowExclusive, gauges)
            {
                delayed = queue.waiters(Kind::RowExclusive.conflicts());
            }
            let Some(holder) = queue.in_the_way(id, kind) else {
                let granted = queue.grant(owner, kind, gauges);
                assert!(granted, "transaction {id} has ended and asks for a lock");
                return Ok(None);
            };
            if !may_wait {
                return Err(Refused::WouldWait { holder });
            }
            if !queue.enqueue(owner, kind, gauges) {
                self.counts.kills.add(1);
                return Err(Refused::Killed);
            }
            self.counts.waits.add(1);
            Ok(Some(Arc::clone(&queue.target)))
        });
        // Its own circles first: a bystander may be in a longer one that is gone with them.
        if let Ok(Some(_)) = result {
            self.end_deadlocks(owner);
        }
        // These wait for the writer too now, which they did not know of when they began.
        delayed.iter().for_each(|owner: &Arc<Owner>| self.end_deadlocks(owner));
        result
    }

    /// Sleeps until the wait of `owner` on `target` is over, at most for `limit`.
    fn wait_for(
        &self,
        owner: &Arc<Owner>,
        target: &Arc<Target>,
        limit: Duration,
    ) -> Result<(), Refused> {
        let begun = self.clock.now_micros();
        let outcome = owner.sleep(limit).or_else(|| {
            // Whoever takes it out of the queue first says how the wait ended: a grant may win.
            self.end_wait(owner.id(), target, |holder| Outcome::TimedOut { holder });
            owner.take_outcome()
        });
        let waited_micros = self.clock.now_micros().saturating_sub(begun);
        self.counts.wait_micros.add(waited_micros);
        match outcome.expect("a wait ends when it has left its queue") {
            Outcome::Granted => Ok(()),
            Outcome::TimedOut { holder } => {
                self.counts.timeouts.add(1);
                Err(Refused::TimedOut { holder, waited: Duration::from_micros(waited_micros) })
            }
            Outcome::Deadlock { cycle } => {
                self.counts.deadlocks.add(1);
                Err(Refused::Deadlock { cycle })
            }
            Outcome::Killed => {
                self.counts.kills.add(1);
                Err(Refused::Killed)
            }
        }
    }

    /// Takes the waiter `id` out of the queue of `target`, if it is still there.
    pub(super) fn end_wait(
        &self,
        id: TxnId,
        target: &Arc<Target>,
        outcome: impl FnOnce(TxnId) -> Outcome,
    ) {
        let mut to_wake = ToWake::new();
        self.shards.lock(target.hash).with_target(target, |queue| {
            queue.withdraw(id, outcome, &self.shards.gauges, &mut to_wake);
        });
        wake(&to_wake);
    }

    /// Whether `id` would have to wait for `kind`: another transaction holds an explicit lock that
    /// conflicts, or waits for one and comes first. For writers and readers under a leaf's latch:
    /// one load when nothing is locked in the bucket, else a short mutex; never waits, never
    /// allocates. False says that [`LockTable::acquire`] would succeed at once (row writers apart).
    #[inline]
    #[must_use]
    pub fn blocks(&self, id: TxnId, tree: TreeId, place: Place<'_>, kind: Kind) -> bool {
        match self.shards.used(tree, place) {
            None => false,
            Some(hash) => {
                let mut shard = self.shards.lock(hash);
                shard.find(hash, tree, place).is_some_and(|q| q.in_the_way(id, kind).is_some())
            }
        }
    }

    /// Ends the wait of a transaction with [`Refused::Killed`]. If it does not wait now, its next
    /// wait ends so, unless [`LockTable::clear_kill`] comes first: a kill that arrives just before
    /// a wait begins is not lost.
    pub fn kill(&self, id: TxnId) {
        if let Some(owner) = self.registry.find(id)
            && let Some(target) = owner.kill()
        {
            self.end_wait(id, &target, |_| Outcome::Killed);
        }
    }

    /// Forgets a kill that came too late for the statement it was meant for. Called when a
    /// statement begins.
    pub fn clear_kill(&self, id: TxnId) {
        if let Some(owner) = self.registry.find(id) {
            owner.clear_kill();
        }
    }

    /// What was done so far and what is held now.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        let (counts, gauges) = (&self.counts, &self.shards.gauges);
        LockStats {
            waits: counts.waits.get(),
            wait_micros: counts.wait_micros.get(),
            deadlocks: counts.deadlocks.get(),
            timeouts: counts.timeouts.get(),
            kills: counts.kills.get(),
            held: gauges.held.get(),
            waiting: gauges.waiting.get(),
            gaps: gauges.gaps(),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) tree: TreeId,
    pub(super) place: Place<'a>,
    pub(super) kind: Kind,
    /// The row's writer, whose lock is made explicit.
    pub(super) writer: Option<&'a Arc<Owner>>,
}

/// Wakes those whose waits have ended, when no lock of the table is held.
pub(super) fn wake(owners: &ToWake) {
    owners.iter().for_each(|owner| owner.wake());
}
