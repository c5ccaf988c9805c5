//! The queue of one place: who holds what there, and who waits, in order. Everything here is called
//! under the lock of the place's shard.
use std::sync::Arc;

use smallvec::SmallVec;
use weir_base::TxnId;

use super::kind::{Kind, Modes, Target};
use super::owner::{Outcome, Owner};
use super::refused::Edge;
use super::shard::Gauges;

/// A transaction that holds something here.
struct Held {
    owner: Arc<Owner>,
    modes: Modes,
}

/// A transaction that waits here.
struct Waiting {
    owner: Arc<Owner>,
    kind: Kind,
    /// It held something of the same class when it asked: it goes before those who do not, and
    /// waits for holders only. Else it would wait for those who wait for it.
    upgrade: bool,
}

/// Owners whose wait has ended: to be woken when no lock of the table is held any more.
pub(super) type ToWake = Vec<Arc<Owner>>;

/// Someone whom a waiter waits for, directly or through earlier waiters of the same queue.
pub(super) struct Blocker {
    pub(super) owner: Arc<Owner>,
    /// Who waits for it directly.
    pub(super) waiter: TxnId,
    /// It is itself an earlier waiter of this queue: whom it waits for is in the same answer.
    pub(super) waits_here: bool,
}

/// The queue of one place.
pub(super) struct Queue {
    pub(super) target: Arc<Target>,
    granted: SmallVec<[Held; 1]>,
    waiting: Vec<Waiting>,
}

impl Queue {
    pub(super) fn new(target: Target) -> Self {
        Queue { target: Arc::new(target), granted: SmallVec::new(), waiting: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.waiting.is_empty()
    }

    fn modes_of(&self, id: TxnId) -> Modes {
        self.granted.iter().find(|h| h.owner.id() == id).map_or(Modes::NONE, |h| h.modes)
    }

    /// Whether `id` has what `kind` would give.
    pub(super) fn holds(&self, id: TxnId, kind: Kind) -> bool {
        self.modes_of(id).cover(kind)
    }

    fn position(&self, id: TxnId) -> Option<usize> {
        self.waiting.iter().position(|w| w.owner.id() == id)
    }

    /// Whether `id` asks for more of what it has.
    fn upgrades(&self, id: TxnId, kind: Kind) -> bool {
        self.modes_of(id).meets(kind.class())
    }

    /// Another holder that `id` waits for if it asks for `kind`.
    fn blocking_holder(&self, id: TxnId, kind: Kind) -> Option<&Held> {
        let conflicts = kind.conflicts();
        self.granted.iter().find(|h| h.modes.meets(conflicts) && h.owner.id() != id)
    }

    /// Whom `id` would wait for if it asked for `kind` now. What decides here decides for everyone:
    /// who is told that nobody is in the way gets the lock at once.
    pub(super) fn in_the_way(&self, id: TxnId, kind: Kind) -> Option<TxnId> {
        if let Some(holder) = self.blocking_holder(id, kind) {
            return Some(holder.owner.id());
        }
        let other = |w: &&Waiting| kind.conflicts_with(w.kind) && w.owner.id() != id;
        let waiter = self.waiting.iter().find(other)?;
        if self.upgrades(id, kind) { None } else { Some(waiter.owner.id()) }
    }

    /// Gives `kind` to `owner`, whoever else holds something. False: the transaction has ended.
    pub(super) fn grant(&mut self, owner: &Arc<Owner>, kind: Kind, gauges: &Gauges) -> bool {
        let modes = match self.granted.iter_mut().find(|h| h.owner.id() == owner.id()) {
            Some(held) => &mut held.modes,
            None => {
                if !owner.note(&self.target) {
                    return false;
                }
                gauges.held.add(1);
                self.granted.push(Held { owner: Arc::clone(owner), modes: Modes::NONE });
                &mut self.granted.last_mut().expect("just pushed").modes
            }
        };
        if !modes.cover(kind) {
            *modes = modes.and(kind);
            if kind == Kind::Gap {
                gauges.gaps_add(1);
            }
        }
        true
    }

    /// Lets `owner` wait. False: it has been killed.
    pub(super) fn enqueue(&mut self, owner: &Arc<Owner>, kind: Kind, gauges: &Gauges) -> bool {
        if !owner.begin_wait(&self.target) {
            return false;
        }
        let upgrade = self.upgrades(owner.id(), kind);
        let at = if upgrade {
            self.waiting.iter().position(|w| !w.upgrade).unwrap_or(self.waiting.len())
        } else {
            self.waiting.len()
        };
        self.waiting.insert(at, Waiting { owner: Arc::clone(owner), kind, upgrade });
        gauges.waiting.add(1);
        true
    }

    /// Takes away what `id` holds; the next in the queue get theirs.
    pub(super) fn release(&mut self, id: TxnId, gauges: &Gauges, to_wake: &mut ToWake) {
        if let Some(at) = self.granted.iter().position(|h| h.owner.id() == id) {
            let held = self.granted.remove(at);
            gauges.held.sub(1);
            if held.modes.has(Kind::Gap) {
                gauges.gaps_sub(1);
            }
            self.promote(gauges, to_wake);
        }
    }

    /// Ends the wait of `id`, if it waits here, as `outcome` says of a transaction it waited for.
    pub(super) fn withdraw(
        &mut self,
        id: TxnId,
        outcome: impl FnOnce(TxnId) -> Outcome,
        gauges: &Gauges,
        to_wake: &mut ToWake,
    ) -> bool {
        let Some(at) = self.position(id) else { return false };
        let holder = self.directly_before(at).map_or(TxnId::NONE, |(id, ..)| id);
        let gone = self.waiting.remove(at);
        gauges.waiting.sub(1);
        gone.owner.end_wait(outcome(holder));
        to_wake.push(gone.owner);
        self.promote(gauges, to_wake);
        true
    }

    /// Grants every waiter whom nobody is in the way of any more, in order.
    fn promote(&mut self, gauges: &Gauges, to_wake: &mut ToWake) {
        let mut at = 0;
        // What those ask for who go on waiting: later ones do not overtake them.
        let mut wanted = Modes::NONE;
        while at < self.waiting.len() {
            let Waiting { owner, kind, upgrade } = &self.waiting[at];
            let (kind, overtakes) = (*kind, !upgrade && kind.conflicts().meets(wanted));
            if overtakes || self.blocking_holder(owner.id(), kind).is_some() {
                wanted = wanted.and(kind);
                at += 1;
                continue;
            }
            let owner = self.waiting.remove(at).owner;
            gauges.waiting.sub(1);
            let granted = self.grant(&owner, kind, gauges);
            debug_assert!(granted, "a waiting transaction has not ended");
            owner.end_wait(Outcome::Granted);
            to_wake.push(owner);
        }
    }

    /// The owners that hold one of `kinds`.
    pub(super) fn holders(&self, kinds: &[Kind]) -> SmallVec<[Arc<Owner>; 4]> {
        let any = |h: &&Held| kinds.iter().any(|&k| h.modes.has(k));
        self.granted.iter().filter(any).map(|h| Arc::clone(&h.owner)).collect()
    }

    /// Those who wait for one of `kinds`.
    pub(super) fn waiters(&self, kinds: Modes) -> SmallVec<[Arc<Owner>; 4]> {
        let of_kind = self.waiting.iter().filter(|w| kinds.has(w.kind));
        of_kind.map(|w| Arc::clone(&w.owner)).collect()
    }

    /// Someone whom the waiter at position `at` waits for: who, by what, and whether queued.
    fn directly_before(&self, at: usize) -> Option<(TxnId, Kind, bool)> {
        let Waiting { owner, kind, .. } = &self.waiting[at];
        self.blockers_of(at, None).next().or_else(|| {
            // Only while `promote` has yet to run can nobody be in the way.
            debug_assert!(false, "{} waits for {kind} and nobody is in the way", owner.id());
            None
        })
    }

    /// Whom the waiter at position `at` waits for directly; only `whom` if given.
    fn blockers_of(
        &self,
        at: usize,
        whom: Option<TxnId>,
    ) -> impl Iterator<Item = (TxnId, Kind, bool)> {
        let Waiting { owner, kind, upgrade } = &self.waiting[at];
        let (me, conflicts) = (owner.id(), kind.conflicts());
        let meant = move |id: TxnId| id != me && whom.is_none_or(|whom| whom == id);
        let holders = self
            .granted
            .iter()
            .filter(move |h| meant(h.owner.id()))
            .filter_map(move |h| Some((h.owner.id(), h.modes.first_in(conflicts)?, false)));
        let earlier = if *upgrade { &[] } else { &self.waiting[..at] };
        let earlier = earlier.iter().filter(move |w| meant(w.owner.id()) && conflicts.has(w.kind));
        holders.chain(earlier.map(|w| (w.owner.id(), w.kind, true)))
    }

    /// How `waiter` waits for `holder` here, if it does.
    pub(super) fn edge(&self, waiter: TxnId, holder: TxnId) -> Option<Edge> {
        let at = self.position(waiter)?;
        let (_, held, queued) = self.blockers_of(at, Some(holder)).next()?;
        let (wanted, tree) = (self.waiting[at].kind, self.target.tree);
        let place = self.target.place_buf();
        Some(Edge { waiter, wanted, tree, place, holder, held, queued })
    }

    /// Everyone whom `id` waits for here, directly or through earlier waiters, in one pass: a long
    /// queue costs its length, not the square of it.
    pub(super) fn all_before(&self, id: TxnId, found: &mut Vec<Blocker>) {
        let Some(at) = self.position(id) else { return };
        let mut asking: SmallVec<[&Waiting; 8]> = SmallVec::new();
        asking.push(&self.waiting[at]);
        for w in self.waiting[..at].iter().rev() {
            let by = asking.iter().find(|a| !a.upgrade && a.kind.conflicts_with(w.kind));
            let Some(waiter) = by.map(|a| a.owner.id()) else { continue };
            found.push(Blocker { owner: Arc::clone(&w.owner), waiter, waits_here: true });
            // One stands for all that ask alike: if it is itself the holder that only they would
            // wait for, that one has been found already, as a waiter.
            if !asking.iter().any(|a| a.kind == w.kind && a.upgrade == w.upgrade) {
                asking.push(w);
            }
        }
        for h in &self.granted {
            let waits =
                |a: &&&Waiting| h.modes.meets(a.kind.conflicts()) && a.owner.id() != h.owner.id();
            if let Some(by) = asking.iter().find(waits) {
                let (owner, waiter) = (Arc::clone(&h.owner), by.owner.id());
                found.push(Blocker { owner, waiter, waits_here: false });
            }
        }
    }
}
