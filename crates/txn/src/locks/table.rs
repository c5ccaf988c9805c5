//! The table: registering, asking, ending.
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use smallvec::SmallVec;
use weir_base::{Clock, Counter, SystemClock, TreeId, TxnId};

use super::kind::Kind;
use super::lock_error::LockError;
use super::owner::{Outcome, Owner, Registry};
use super::place::{LockTarget, Place};
use super::shard::Shards;
use super::sleep::WaitListener;
use super::sync::{Ordering, fence};
use super::tally::Size;
use super::tree_locks::ToWake;

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
    /// Pairs of a transaction and a key that it holds explicitly, now.
    pub held: u64,
    /// Transactions that wait, now.
    pub waiting: u64,
    /// Ranges held, now. Those of one transaction that touch count as one.
    pub ranges: u64,
    /// Bytes of memory that what is held takes, about.
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    waits: Counter,
    pub(super) wait_micros: Counter,
    pub(super) deadlocks: Counter,
    pub(super) timeouts: Counter,
    pub(super) kills: Counter,
}

/// The explicit locks of transactions, and those that wait for them.
pub struct LockTable {
    pub(super) shards: Shards,
    pub(super) registry: Registry,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counts: Counts,
    pub(super) listener: OnceLock<Arc<dyn WaitListener>>,
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
        let (counts, listener) = (Counts::default(), OnceLock::new());
        LockTable { shards, registry, clock, counts, listener }
    }

    /// Tells `listener` of all waits from now on. `false`: there is one already.
    pub fn set_listener(&self, listener: Arc<dyn WaitListener>) -> bool {
        self.listener.set(listener).is_ok()
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
    /// Called when every reader of its rows already sees that it has committed or rolled
    /// back: those that waited for it look again. Does nothing for one that is not known.
    pub fn end(&self, id: TxnId) {
        let Some(owner) = self.registry.remove(id) else { return };
        let mut to_wake = ToWake::new();
        for target in owner.close() {
            self.shards.lock(target.tree()).with(target.tree(), |locks| {
                locks.release(id, &target, &self.shards.tally, &mut to_wake);
            });
        }
        wake(&to_wake);
    }

    /// Releases the locks of keys that `owner` has come to hold between two marks
    /// ([`Owner::mark`]), in trees of which `wanted` is true: of rows that it has looked at and
    /// wants nothing of. What it held before it keeps, also if it has asked again; the places of
    /// all others stay, so that their marks are good. The lock of a row that it has written may be
    /// among them, made explicit by a transaction that waits for it: a transaction that is woken
    /// looks at the row again, and makes it anew.
    pub fn release_between(
        &self,
        owner: &Owner,
        marks: Range<usize>,
        wanted: impl Fn(TreeId) -> bool,
    ) {
        let mut to_wake = ToWake::new();
        for target in owner.take_rows_between(marks, wanted) {
            self.shards.lock(target.tree()).with(target.tree(), |locks| {
                locks.release(owner.id(), &target, &self.shards.tally, &mut to_wake);
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
    /// `writer` is the active transaction that the stamp of a key's row names: its lock is made
    /// explicit first, so that requests queue behind it, unless it has ended meanwhile. A row that
    /// `id` itself has written is its own already. After `Ok` the caller looks at the rows again:
    /// they may have changed before the lock was got. A range does not wait for writers whose locks
    /// are not explicit: a transaction that scans it meets their rows.
    ///
    /// # Errors
    /// [`LockError`], after which nothing of the request is left.
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
    ) -> Result<(), LockError> {
        let owner = self.registry.find(id).expect("transactions are registered before they lock");
        self.acquire_as(&owner, tree, place, kind, writer, wait)
    }

    /// As [`LockTable::acquire`], for a transaction that has kept what [`LockTable::register`]
    /// returned.
    ///
    /// # Errors
    /// As [`LockTable::acquire`].
    pub fn acquire_as(
        &self,
        owner: &Arc<Owner>,
        tree: TreeId,
        place: Place<'_>,
        kind: Kind,
        writer: Option<TxnId>,
        wait: Wait,
    ) -> Result<(), LockError> {
        if writer == Some(owner.id()) || place.is_empty() {
            return Ok(());
        }
        let writer = writer.and_then(|w| self.registry.find(w));
        let limit = match wait {
            Wait::No => None,
            Wait::Until(limit) => Some(limit),
        };
        let request = Request { tree, place, kind, writer: writer.as_ref() };
        if let Some(target) = self.request(owner, &request, limit.is_some())? {
            self.wait_for(owner, &target, limit.unwrap_or_default())?;
        }
        owner.add_grant();
        // The lock before the look at the page; a transaction that holds a latch goes the other way
        // round.
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Takes a lock or queues for it, and ends the deadlocks that this makes: `Some` says where
    /// `owner` waits, or waited if that is over already.
    pub(super) fn request(
        &self,
        owner: &Arc<Owner>,
        request: &Request<'_>,
        may_wait: bool,
    ) -> Result<Option<LockTarget>, LockError> {
        let Request { tree, place, kind, writer } = *request;
        let (id, tally) = (owner.id(), &self.shards.tally);
        let (mut delayed, mut to_wake) = (SmallVec::new(), ToWake::new());
        let result = self.shards.lock(tree).with(tree, |locks| {
            if locks.is_dropped {
                return Err(LockError::Dropped);
            }
            if let Some(writer) = writer
                && !locks.covers(writer.id(), place, Kind::Exclusive)
                // In vain if it has closed its list: then its rows say by now that it has ended.
                && locks.grant(writer, place, Kind::Exclusive, tally)
            {
                delayed = locks.waiting_for(writer.id(), place, Kind::Exclusive);
                locks.notify_reporters(writer.id(), place, Kind::Exclusive, &mut to_wake);
            }
            if let (Place::Key(key), None) = (place, writer)
                && let Some(granted) = locks.grant_at_once(owner, key, kind, tally)
            {
                assert!(granted, "transaction {id} has ended and asks for a lock");
                return Ok(None);
            }
            let Some(holder) = locks.in_the_way(id, place, kind) else {
                let granted = locks.grant(owner, place, kind, tally);
                assert!(granted, "transaction {id} has ended and asks for a lock");
                // It may have passed some that wait.
                locks.notify_reporters(id, place, kind, &mut to_wake);
                return Ok(None);
            };
            if !may_wait {
                return Err(LockError::WouldWait { holder });
            }
            let Some(target) = locks.enqueue(owner, place, kind, tally, &mut to_wake) else {
                self.counts.kills.add(1);
                return Err(LockError::Killed);
            };
            self.counts.waits.add(1);
            Ok(Some(target))
        });
        wake(&to_wake);
        // Its own circles first: a bystander may be in a longer one that is gone with them.
        if let Ok(Some(_)) = result {
            self.end_new_deadlocks(owner);
        }
        // These wait for the writer too now, which they did not know of when they began. If it does
        // not wait itself there is no circle yet, and it searches when it comes to wait.
        if writer.is_some_and(|writer| writer.is_waiting()) {
            delayed.iter().for_each(|owner: &Arc<Owner>| self.end_deadlocks(owner));
        }
        result
    }

    /// Whether `id` would have to wait for `kind` of this key: another transaction holds it
    /// explicitly, or a range around it, in a way that conflicts, or waits for that and comes
    /// first. For writers and readers under a leaf's latch: two loads when no transaction holds or
    /// wants a key of its bucket or a range of its tree, else a short mutex; never waits. False
    /// says that
    /// [`LockTable::acquire`] would succeed at once (row writers apart).
    #[inline]
    #[must_use]
    pub fn blocks(&self, id: TxnId, tree: TreeId, key: &[u8], kind: Kind) -> bool {
        !self.shards.tally.is_free(tree, key) && self.blocks_surely(id, tree, key, kind)
    }

    /// Whether a transaction may hold or want this key, or a range of its tree, explicitly: two
    /// loads.
    #[inline]
    #[must_use]
    pub fn may_be_wanted(&self, tree: TreeId, key: &[u8]) -> bool {
        !self.shards.tally.is_free(tree, key)
    }

    fn blocks_surely(&self, id: TxnId, tree: TreeId, key: &[u8], kind: Kind) -> bool {
        let locked = self.shards.lock(tree);
        locked
            .find(tree)
            .is_some_and(|l| l.is_dropped || l.in_the_way(id, Place::Key(key), kind).is_some())
    }

    /// The drop of this tree has committed: until [`LockTable::forget_tree`], the transaction that
    /// asks for a lock is refused, and writers are blocked until they ask. Called before the
    /// transaction that drops it releases its lock of the whole tree.
    pub fn tree_dropped(&self, tree: TreeId) {
        self.shards.lock(tree).with(tree, |locks| {
            if !std::mem::replace(&mut locks.is_dropped, true) {
                self.shards.tally.range_added(tree);
            }
        });
    }

    /// The pages of a dropped tree are free, and its root says so to all that come.
    pub fn forget_tree(&self, tree: TreeId) {
        self.shards.lock(tree).with(tree, |locks| {
            if std::mem::replace(&mut locks.is_dropped, false) {
                self.shards.tally.range_removed(tree);
            }
        });
    }

    /// Whether the tree has been dropped and not been forgotten: one load as a rule.
    #[must_use]
    pub fn is_dropped(&self, tree: TreeId) -> bool {
        self.shards.tally.has_ranges(tree)
            && self.shards.lock(tree).find(tree).is_some_and(|locks| locks.is_dropped)
    }

    /// Ends the wait of a transaction with [`LockError::Killed`]. If it does not wait now, its next
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

    /// Bytes of memory that what is held takes, about: one load.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shards.tally.bytes.get()
    }

    /// What was done so far and what is held now.
    #[must_use]
    pub fn stats(&self) -> LockStats {
        let (counts, tally) = (&self.counts, &self.shards.tally);
        LockStats {
            waits: counts.waits.get(),
            wait_micros: counts.wait_micros.get(),
            deadlocks: counts.deadlocks.get(),
            timeouts: counts.timeouts.get(),
            kills: counts.kills.get(),
            held: tally.held.get(),
            waiting: tally.waiting.get(),
            ranges: tally.ranges.get(),
            bytes: tally.bytes.get(),
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
