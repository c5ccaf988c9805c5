//! The queue of a tree: coming to wait, and getting what one waited for, or not.
use std::sync::Arc;

use weir_base::TxnId;

use super::kind::Kind;
use super::owner::{Outcome, Owner};
use super::place::{LockTarget, Place, Span};
use super::tally::Tally;
use super::tree_locks::{RangeWaiting, Rank, Stage, ToWake, TreeLocks, Waiting};

/// How often others may have passed one that was notified, before it looks, that it takes the key
/// all the same: fewer come where transactions are long, and a nap would only delay it.
const PASSES_MAX: u32 = 6;

impl TreeLocks {
    /// Lets `owner` wait. `None`: it has been killed.
    pub(super) fn enqueue(
        &mut self,
        owner: &Arc<Owner>,
        place: Place<'_>,
        kind: Kind,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) -> Option<LockTarget> {
        let in_turn = !self.goes_first(owner.id(), place, kind);
        let rank = Rank { in_turn, ticket: self.next_ticket };
        let stage = match (place, kind) {
            (Place::Key(_), Kind::Exclusive) if in_turn => Stage::Asleep,
            _ => Stage::Fair,
        };
        let waiting = Waiting { owner: Arc::clone(owner), kind, rank, stage };
        let target = match place {
            Place::Key(key) => LockTarget::Row(self.tree, self.row_mut(key, tally).0),
            Place::Range { .. } => LockTarget::Ranges(self.tree),
        };
        if !owner.begin_wait(&target) {
            if let Place::Key(key) = place {
                self.remove_row_if_empty(key, tally);
            }
            return None;
        }
        self.next_ticket += 1;
        tally.waiting.add(1);
        match place {
            Place::Key(key) => {
                let (_, row) = self.row_mut(key, tally);
                let at = row.waiting.partition_point(|w| w.rank < rank);
                row.waiting.insert(at, waiting);
                self.note_waited(key);
            }
            Place::Range { from, to } => {
                let at = self.range_waits.partition_point(|w| w.waiting.rank < rank);
                self.range_waits.insert(at, RangeWaiting { waiting, span: Span::new(from, to) });
                tally.range_added(self.tree);
            }
        }
        if !in_turn {
            self.notify_reporters(owner.id(), place, kind, to_wake);
        }
        Some(target)
    }

    /// Takes away what `id` holds at `target`; the next get theirs.
    pub(super) fn release(
        &mut self,
        id: TxnId,
        target: &LockTarget,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) {
        match target {
            LockTarget::Row(_, key) => {
                let Some(row) = self.rows.get_mut(key) else { return };
                let Some(at) = row.granted.iter().position(|h| h.id == id) else { return };
                let held = row.granted.remove(at);
                self.own_keys.remove(id, key, held.kind);
                tally.held_removed(key);
                if row.waiting.is_empty() && self.range_waits.is_empty() {
                    if row.granted.is_empty() {
                        self.rows.remove(key);
                        tally.key_removed(self.tree, key);
                    }
                    return;
                }
                self.promote(Place::Key(key), tally, to_wake);
            }
            LockTarget::Ranges(_) => {
                let (count, gone) = self.ranges.remove(id);
                tally.ranges_removed(self.tree, count);
                // All at once, from the first to the last: those that wait are served by rank.
                if let Some(span) = gone {
                    self.promote(span.place(), tally, to_wake);
                }
            }
        }
    }

    /// For what the waiter `id` waits at `target`, if it does.
    pub(super) fn find_waiter<'s>(
        &'s self,
        id: TxnId,
        target: &'s LockTarget,
    ) -> Option<(&'s Waiting, Place<'s>)> {
        let is = |w: &Waiting| w.owner.id() == id;
        match target {
            LockTarget::Row(_, key) => {
                let waiter = self.rows.get(key)?.waiting.iter().find(|w| is(w))?;
                Some((waiter, Place::Key(key)))
            }
            LockTarget::Ranges(_) => {
                let waiter = self.range_waits.iter().find(|w| is(&w.waiting))?;
                Some((&waiter.waiting, waiter.span.place()))
            }
        }
    }

    /// Takes the waiter `id` out of the queue; and its range, if it waits for one.
    fn take_waiter(
        &mut self,
        id: TxnId,
        target: &LockTarget,
        tally: &Tally,
    ) -> Option<(Waiting, Option<Span>)> {
        let is = |w: &Waiting| w.owner.id() == id;
        let taken = match target {
            LockTarget::Row(_, key) => {
                let waiting = &mut self.rows.get_mut(key)?.waiting;
                let at = waiting.iter().position(is)?;
                let taken = waiting.remove(at);
                self.note_waited(key);
                (taken, None)
            }
            LockTarget::Ranges(_) => {
                let at = self.range_waits.iter().position(|w| is(&w.waiting))?;
                let RangeWaiting { waiting, span } = self.range_waits.remove(at);
                tally.range_removed(self.tree);
                (waiting, Some(span))
            }
        };
        tally.waiting.sub(1);
        Some(taken)
    }

    /// Ends the wait of `id`, if it waits at `target`, as `outcome` says of a transaction it waited
    /// for.
    pub(super) fn withdraw(
        &mut self,
        id: TxnId,
        target: &LockTarget,
        outcome: impl FnOnce(TxnId) -> Outcome,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) -> bool {
        let Some((waiter, place)) = self.find_waiter(id, target) else { return false };
        let holder = self.blockers_of(waiter, place).next().map(|(owner, ..)| owner.id());
        let Some((gone, span)) = self.take_waiter(id, target, tally) else { return false };
        gone.owner.end_wait(outcome(holder.unwrap_or(TxnId::NONE)));
        to_wake.push(gone.owner);
        let place = match (target, &span) {
            (LockTarget::Row(_, key), _) => Place::Key(key),
            (_, Some(span)) => span.place(),
            (_, None) => return true,
        };
        self.promote(place, tally, to_wake);
        true
    }

    /// `id` has `kind` at `place` now, or comes first there: those that wait for it too, tell for
    /// which transactions they wait, and sleep, look again. A transaction that is about to look or
    /// naps tells after that.
    pub(super) fn notify_reporters(
        &self,
        id: TxnId,
        place: Place<'_>,
        kind: Kind,
        to_wake: &mut ToWake,
    ) {
        let waiters = self.blocking_waiters(id, place, kind, None);
        waiters.for_each(|(waiter, _)| waiter.notify_reporter(to_wake));
    }

    /// As `notify_reporters`, when `id` has what it waited for: a transaction that waits in turn
    /// knew of it.
    fn notify_first_reporters(
        &self,
        id: TxnId,
        place: Place<'_>,
        kind: Kind,
        to_wake: &mut ToWake,
    ) {
        let waiters = self.blocking_waiters(id, place, kind, None);
        let first = waiters.filter(|(waiter, _)| !waiter.rank.in_turn);
        first.for_each(|(waiter, _)| waiter.notify_reporter(to_wake));
    }

    /// Something has gone from `place`: grants every waiter that no transaction is in the way of
    /// any more, in order.
    fn promote(&mut self, place: Place<'_>, tally: &Tally, to_wake: &mut ToWake) {
        if self.range_waits.is_empty() {
            // A transaction that waits for one key has nothing to do with a transaction that waits
            // for another.
            match place {
                Place::Key(key) => self.promote_key(key, tally, to_wake),
                Place::Range { .. } => {
                    let keys: Vec<_> =
                        self.waited_in(place).map(|(key, _)| Arc::clone(key)).collect();
                    keys.iter().for_each(|key| self.promote_key(key, tally, to_wake));
                }
            }
            return;
        }
        let tree = self.tree;
        let mut all: Vec<(Rank, TxnId, LockTarget)> = Vec::new();
        for (key, row) in self.waited_in(place) {
            let target = || LockTarget::Row(tree, Arc::clone(key));
            all.extend(row.waiting.iter().map(|w| (w.rank, w.owner.id(), target())));
        }
        for RangeWaiting { waiting, span } in &self.range_waits {
            if span.meets(place) {
                all.push((waiting.rank, waiting.owner.id(), LockTarget::Ranges(tree)));
            }
        }
        all.sort_unstable_by_key(|(rank, ..)| *rank);
        for (_, id, target) in &all {
            let Some((waiter, place)) = self.find_waiter(*id, target) else { continue };
            if self.blockers_of(waiter, place).next().is_some() {
                continue;
            }
            let kind = waiter.kind;
            let Some((waiter, span)) = self.take_waiter(*id, target, tally) else { continue };
            let place = match (target, &span) {
                (LockTarget::Row(_, key), _) => Place::Key(key),
                (_, Some(span)) => span.place(),
                (_, None) => continue,
            };
            let granted = self.grant(&waiter.owner, place, kind, tally);
            debug_assert!(granted, "a waiting transaction has not ended");
            waiter.owner.end_wait(Outcome::Granted);
            self.notify_first_reporters(*id, place, kind, to_wake);
            to_wake.push(waiter.owner);
            if let LockTarget::Row(_, key) = target {
                // A transaction that has a range around the key needs no entry.
                self.remove_row_if_empty(key, tally);
            }
        }
        if let Place::Key(key) = place {
            self.remove_row_if_empty(key, tally);
        }
    }

    /// As `promote`, while no transaction waits for a range: a long queue costs its length at most.
    fn promote_key(&mut self, key: &[u8], tally: &Tally, to_wake: &mut ToWake) {
        let mut at = 0;
        // What those ask for at most that go on waiting: later ones do not overtake them.
        let mut wanted: Option<Kind> = None;
        while let Some(waiter) = self.rows.get(key).and_then(|row| row.waiting.get(at)) {
            let kind = waiter.kind;
            let overtakes =
                waiter.rank.in_turn && wanted.is_some_and(|wanted| kind.conflicts_with(wanted));
            if overtakes || self.blocking_holder(waiter.owner.id(), Place::Key(key), kind).is_some()
            {
                wanted = wanted.max(Some(kind));
                at += 1;
                continue;
            }
            if waiter.stage != Stage::Fair && self.holders(key).next().is_none() {
                self.release_unfair(key, at, to_wake);
                return;
            }
            let Some(row) = self.rows.get_mut(key) else { return };
            let owner = row.waiting.remove(at).owner;
            self.note_waited(key);
            tally.waiting.sub(1);
            let granted = self.grant(&owner, Place::Key(key), kind, tally);
            debug_assert!(granted, "a waiting transaction has not ended");
            owner.end_wait(Outcome::Granted);
            self.notify_first_reporters(owner.id(), Place::Key(key), kind, to_wake);
            to_wake.push(owner);
        }
        self.remove_row_if_empty(key, tally);
    }

    /// No transaction holds the key, and the waiter at `at` could have it: the transaction that is
    /// there first gets it, that one or a newcomer.
    fn release_unfair(&mut self, key: &[u8], at: usize, to_wake: &mut ToWake) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let waiter = &mut row.waiting[at];
        if waiter.stage == Stage::Asleep {
            waiter.stage = Stage::Notified;
            row.passed.set(0);
            waiter.owner.notify();
            to_wake.push(Arc::clone(&waiter.owner));
        }
    }

    /// The waiter `id` looks whether it can have what it waits for. `is_last`: it will not look
    /// again, and takes what it can.
    pub(super) fn look(
        &mut self,
        id: TxnId,
        target: &LockTarget,
        is_last: bool,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) -> Next {
        let Some((waiter, place)) = self.find_waiter(id, target) else { return Next::Ended };
        let (kind, stage) = (waiter.kind, waiter.stage);
        let is_free = self.blockers_of(waiter, place).next().is_none();
        let LockTarget::Row(_, key) = target else { return Next::Sleep };
        let is_busy = || self.rows.get(key).is_some_and(|row| row.passed.get() > PASSES_MAX);
        if is_free && (is_last || stage != Stage::Notified || !is_busy()) {
            let Some((gone, _)) = self.take_waiter(id, target, tally) else { return Next::Ended };
            let granted = self.grant(&gone.owner, Place::Key(key), kind, tally);
            debug_assert!(granted, "a waiting transaction has not ended");
            gone.owner.end_wait(Outcome::Granted);
            self.notify_first_reporters(id, Place::Key(key), kind, to_wake);
            self.remove_row_if_empty(key, tally);
            return Next::Ended;
        }
        let (stage, next) = match stage {
            Stage::Notified => (Stage::Spinning, Next::Nap),
            Stage::Spinning => (Stage::Fair, Next::Sleep),
            same => (same, Next::Sleep),
        };
        let waiter = self
            .rows
            .get_mut(key)
            .and_then(|row| row.waiting.iter_mut().find(|w| w.owner.id() == id));
        if let Some(waiter) = waiter {
            waiter.stage = stage;
        }
        next
    }
}

/// What a waiter does that has looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Its wait is over.
    Ended,
    /// It looks again soon.
    Nap,
    /// It sleeps until it is woken.
    Sleep,
}
