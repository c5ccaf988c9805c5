//! What is locked in one tree: who holds which keys and ranges, and who waits, in order. Everything
//! here is called under the mutex of the tree's shard.
use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::owner::{Outcome, Owner};
use super::place::{Place, Span, Target};
use super::tally::Tally;

/// A transaction that holds a key.
pub(super) struct Held {
    pub(super) owner: Arc<Owner>,
    pub(super) kind: Kind,
}

/// A transaction that holds a range. Ranges of one owner and kind never touch.
struct HeldRange {
    held: Held,
    span: Span,
}

/// The order in which waiters are served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    /// `false`: somebody waits for what it holds, and it would wait for them. It goes before all
    /// others and waits for holders only.
    pub(super) in_turn: bool,
    ticket: u64,
}

/// A transaction that waits.
pub(super) struct Waiting {
    pub(super) owner: Arc<Owner>,
    pub(super) kind: Kind,
    pub(super) rank: Rank,
}

/// One that waits for a range.
struct RangeWaiting {
    waiting: Waiting,
    span: Span,
}

/// Who holds one key and waits for it.
#[derive(Default)]
pub(super) struct Row {
    pub(super) granted: SmallVec<[Held; 1]>,
    /// By rank.
    pub(super) waiting: Vec<Waiting>,
}

/// Owners whose wait has ended: to be woken when no lock of the table is held any more.
pub(super) type ToWake = Vec<Arc<Owner>>;

/// The locks of one tree.
pub(super) struct TreeLocks {
    tree: TreeId,
    rows: BTreeMap<Arc<[u8]>, Row>,
    ranges: Vec<HeldRange>,
    /// By rank.
    range_waits: Vec<RangeWaiting>,
    next_ticket: u64,
}

impl TreeLocks {
    pub(super) fn new(tree: TreeId) -> Self {
        let (rows, ranges, range_waits) = (BTreeMap::new(), Vec::new(), Vec::new());
        TreeLocks { tree, rows, ranges, range_waits, next_ticket: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.ranges.is_empty() && self.range_waits.is_empty()
    }

    pub(super) fn has_range_waits(&self) -> bool {
        !self.range_waits.is_empty()
    }

    pub(super) fn row(&self, key: &[u8]) -> Option<&Row> {
        self.rows.get(key)
    }

    fn rows_in<'s>(&'s self, place: Place<'s>) -> impl Iterator<Item = (&'s Arc<[u8]>, &'s Row)> {
        self.rows.range::<[u8], _>(place.bounds())
    }

    /// All that others hold in a place.
    pub(super) fn holders<'s>(&'s self, place: Place<'s>) -> impl Iterator<Item = &'s Held> {
        let keys = self.rows_in(place).flat_map(|(_, row)| row.granted.iter());
        let ranges = self.ranges.iter().filter(move |range| range.span.meets(place));
        keys.chain(ranges.map(|range| &range.held))
    }

    /// All who wait for a place, or for a part of it or more, and for what each waits. Not by rank.
    pub(super) fn waiters<'s>(
        &'s self,
        place: Place<'s>,
    ) -> impl Iterator<Item = (&'s Waiting, Place<'s>)> {
        let keys = self
            .rows_in(place)
            .flat_map(|(key, row)| row.waiting.iter().map(move |w| (w, Place::Key(key))));
        let ranges = self.range_waits.iter().filter(move |range| range.span.meets(place));
        keys.chain(ranges.map(|range| (&range.waiting, range.span.place())))
    }

    /// Whether `id` has what `kind` would give.
    pub(super) fn covers(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        let suits = |held: &Held| held.owner.id() == id && held.kind.covers(kind);
        let row = match place {
            Place::Key(key) => self.rows.get(key),
            Place::Range { .. } => None,
        };
        row.is_some_and(|row| row.granted.iter().any(suits))
            || self.ranges.iter().any(|range| suits(&range.held) && range.span.covers(place))
    }

    /// Another holder that `id` waits for if it asks for `kind`.
    pub(super) fn blocking_holder(
        &self,
        id: TxnId,
        place: Place<'_>,
        kind: Kind,
    ) -> Option<(TxnId, Kind)> {
        let in_the_way = |h: &&Held| h.owner.id() != id && kind.conflicts_with(h.kind);
        self.holders(place).find(in_the_way).map(|h| (h.owner.id(), h.kind))
    }

    /// Waiters that `id` would wait for, those before `rank` if given, did it not go first.
    pub(super) fn blocking_waiters<'s>(
        &'s self,
        id: TxnId,
        place: Place<'s>,
        kind: Kind,
        rank: Option<Rank>,
    ) -> impl Iterator<Item = (&'s Waiting, Place<'s>)> {
        self.waiters(place).filter(move |(w, _)| {
            w.owner.id() != id
                && kind.conflicts_with(w.kind)
                && rank.is_none_or(|rank| w.rank < rank)
        })
    }

    /// Whom `id` would wait for if it asked for `kind` now. What decides here decides for everyone:
    /// who is told that nobody is in the way gets the lock at once.
    pub(super) fn in_the_way(&self, id: TxnId, place: Place<'_>, kind: Kind) -> Option<TxnId> {
        if let Some((holder, _)) = self.blocking_holder(id, place, kind) {
            return Some(holder);
        }
        let (waiter, _) = self.blocking_waiters(id, place, kind, None).next()?;
        if self.goes_first(id, place, kind) { None } else { Some(waiter.owner.id()) }
    }

    /// Whether one of those whom `id` would wait for waits, directly or not, for what it holds.
    fn goes_first(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        if let (Place::Key(key), true) = (place, self.range_waits.is_empty()) {
            return self.goes_first_at(id, key, kind);
        }
        let mut open: SmallVec<[(&Waiting, Place<'_>); 8]> =
            self.blocking_waiters(id, place, kind, None).collect();
        let mut seen: SmallVec<[u64; 8]> = open.iter().map(|(w, _)| w.rank.ticket).collect();
        while let Some((waiter, place)) = open.pop() {
            let (me, kind, rank) = (waiter.owner.id(), waiter.kind, waiter.rank);
            let on = |h: &Held| h.owner.id() == id && kind.conflicts_with(h.kind);
            if self.holders(place).any(on) {
                return true;
            }
            if !rank.in_turn {
                continue;
            }
            for (earlier, place) in self.blocking_waiters(me, place, kind, Some(rank)) {
                if earlier.owner.id() != id && !seen.contains(&earlier.rank.ticket) {
                    seen.push(earlier.rank.ticket);
                    open.push((earlier, place));
                }
            }
        }
        false
    }

    /// As `goes_first`, while nobody waits for a range: in one pass.
    fn goes_first_at(&self, id: TxnId, key: &[u8], kind: Kind) -> bool {
        let mine = self.holders(Place::Key(key)).filter(|h| h.owner.id() == id);
        let (Some(mine), Some(row)) = (mine.map(|h| h.kind).max(), self.rows.get(key)) else {
            return false;
        };
        // The most that those ask for who wait for `id`.
        let mut behind: Option<Kind> = None;
        for w in row.waiting.iter().filter(|w| w.owner.id() != id) {
            let is_behind = w.rank.in_turn && behind.is_some_and(|b| w.kind.conflicts_with(b));
            if is_behind || w.kind.conflicts_with(mine) {
                if kind.conflicts_with(w.kind) {
                    return true;
                }
                behind = behind.max(Some(w.kind));
            }
        }
        false
    }

    fn row_mut(&mut self, key: &[u8], tally: &Tally) -> (Arc<[u8]>, &mut Row) {
        let name = match self.rows.get_key_value(key) {
            Some((name, _)) => Arc::clone(name),
            None => {
                tally.key_added(self.tree, key);
                Arc::from(key)
            }
        };
        let row = self.rows.entry(Arc::clone(&name)).or_default();
        (name, row)
    }

    fn tidy_row(&mut self, key: &[u8], tally: &Tally) {
        if self.rows.get(key).is_some_and(|row| row.granted.is_empty() && row.waiting.is_empty()) {
            self.rows.remove(key);
            tally.key_removed(self.tree, key);
        }
    }

    /// Gives `kind` to `owner`, whoever else holds something. False: the transaction has ended.
    pub(super) fn grant(
        &mut self,
        owner: &Arc<Owner>,
        place: Place<'_>,
        kind: Kind,
        tally: &Tally,
    ) -> bool {
        if self.covers(owner.id(), place, kind) {
            return true;
        }
        match place {
            Place::Key(key) => self.grant_key(owner, key, kind, tally),
            Place::Range { from, to } => self.grant_range(owner, from, to, kind, tally),
        }
    }

    fn grant_key(&mut self, owner: &Arc<Owner>, key: &[u8], kind: Kind, tally: &Tally) -> bool {
        let tree = self.tree;
        let (name, row) = self.row_mut(key, tally);
        if let Some(held) = row.granted.iter_mut().find(|h| h.owner.id() == owner.id()) {
            held.kind = kind;
            return true;
        }
        let is_open = owner.note(Target::Row(tree, name));
        if is_open {
            tally.held.add(1);
            row.granted.push(Held { owner: Arc::clone(owner), kind });
        } else {
            self.tidy_row(key, tally);
        }
        is_open
    }

    fn grant_range(
        &mut self,
        owner: &Arc<Owner>,
        from: &[u8],
        to: Option<&[u8]>,
        kind: Kind,
        tally: &Tally,
    ) -> bool {
        let id = owner.id();
        let is_known = self.ranges.iter().any(|range| range.held.owner.id() == id);
        if !is_known && !owner.note(Target::Ranges(self.tree)) {
            return false;
        }
        let mine = |held: &Held| held.owner.id() == id && held.kind == kind;
        // The usual case: a scan goes on, and what it has becomes longer.
        let touches = |r: &HeldRange| mine(&r.held) && r.span.touches(from, to);
        let Some(first) = self.ranges.iter().position(touches) else {
            let held = Held { owner: Arc::clone(owner), kind };
            self.ranges.push(HeldRange { held, span: Span::new(from, to) });
            tally.ranges.add(1);
            tally.range_added(self.tree);
            return true;
        };
        // Others of its own that touch the new part touch each other only through it.
        let mut at = first + 1;
        while at < self.ranges.len() {
            if touches(&self.ranges[at]) {
                let gone = self.ranges.swap_remove(at).span;
                let Place::Range { from, to } = gone.place() else { unreachable!() };
                self.ranges[first].span.absorb(from, to);
                tally.ranges.sub(1);
                tally.range_removed(self.tree);
            } else {
                at += 1;
            }
        }
        self.ranges[first].span.absorb(from, to);
        true
    }

    /// Lets `owner` wait. `None`: it has been killed.
    pub(super) fn enqueue(
        &mut self,
        owner: &Arc<Owner>,
        place: Place<'_>,
        kind: Kind,
        tally: &Tally,
    ) -> Option<Target> {
        let in_turn = !self.goes_first(owner.id(), place, kind);
        let rank = Rank { in_turn, ticket: self.next_ticket };
        let waiting = Waiting { owner: Arc::clone(owner), kind, rank };
        let target = match place {
            Place::Key(key) => Target::Row(self.tree, self.row_mut(key, tally).0),
            Place::Range { .. } => Target::Ranges(self.tree),
        };
        if !owner.begin_wait(&target) {
            if let Place::Key(key) = place {
                self.tidy_row(key, tally);
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
            }
            Place::Range { from, to } => {
                let at = self.range_waits.partition_point(|w| w.waiting.rank < rank);
                self.range_waits.insert(at, RangeWaiting { waiting, span: Span::new(from, to) });
                tally.range_added(self.tree);
            }
        }
        Some(target)
    }

    /// Takes away what `id` holds at `target`; the next get theirs.
    pub(super) fn release(
        &mut self,
        id: TxnId,
        target: &Target,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) {
        match target {
            Target::Row(_, key) => {
                let Some(row) = self.rows.get_mut(key) else { return };
                let Some(at) = row.granted.iter().position(|h| h.owner.id() == id) else { return };
                row.granted.remove(at);
                tally.held.sub(1);
                self.promote(Place::Key(key), tally, to_wake);
            }
            Target::Ranges(_) => {
                let mut gone = Vec::new();
                while let Some(at) = self.ranges.iter().position(|r| r.held.owner.id() == id) {
                    gone.push(self.ranges.swap_remove(at).span);
                    tally.ranges.sub(1);
                    tally.range_removed(self.tree);
                }
                gone.iter().for_each(|span| self.promote(span.place(), tally, to_wake));
            }
        }
    }

    /// For what the waiter `id` waits at `target`, if it does.
    pub(super) fn find_waiter<'s>(
        &'s self,
        id: TxnId,
        target: &'s Target,
    ) -> Option<(&'s Waiting, Place<'s>)> {
        let is = |w: &Waiting| w.owner.id() == id;
        match target {
            Target::Row(_, key) => {
                let waiter = self.rows.get(key)?.waiting.iter().find(|w| is(w))?;
                Some((waiter, Place::Key(key)))
            }
            Target::Ranges(_) => {
                let waiter = self.range_waits.iter().find(|w| is(&w.waiting))?;
                Some((&waiter.waiting, waiter.span.place()))
            }
        }
    }

    /// Takes the waiter `id` out of the queue; and its range, if it waits for one.
    fn take_waiter(
        &mut self,
        id: TxnId,
        target: &Target,
        tally: &Tally,
    ) -> Option<(Waiting, Option<Span>)> {
        let is = |w: &Waiting| w.owner.id() == id;
        let taken = match target {
            Target::Row(_, key) => {
                let waiting = &mut self.rows.get_mut(key)?.waiting;
                let at = waiting.iter().position(is)?;
                (waiting.remove(at), None)
            }
            Target::Ranges(_) => {
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
        target: &Target,
        outcome: impl FnOnce(TxnId) -> Outcome,
        tally: &Tally,
        to_wake: &mut ToWake,
    ) -> bool {
        let Some((waiter, place)) = self.find_waiter(id, target) else { return false };
        let holder = self.blockers_of(waiter, place).next().map(|(owner, ..)| owner.id());
        debug_assert!(holder.is_some(), "{id} waits and nobody is in the way");
        let Some((gone, span)) = self.take_waiter(id, target, tally) else { return false };
        gone.owner.end_wait(outcome(holder.unwrap_or(TxnId::NONE)));
        to_wake.push(gone.owner);
        let place = match (target, &span) {
            (Target::Row(_, key), _) => Place::Key(key),
            (_, Some(span)) => span.place(),
            (_, None) => return true,
        };
        self.promote(place, tally, to_wake);
        true
    }

    /// Something has gone from `place`: grants every waiter whom nobody is in the way of any more,
    /// in order.
    fn promote(&mut self, place: Place<'_>, tally: &Tally, to_wake: &mut ToWake) {
        if self.range_waits.is_empty() {
            // Who waits for one key has nothing to do with who waits for another.
            match place {
                Place::Key(key) => self.promote_key(key, tally, to_wake),
                Place::Range { .. } => {
                    let waited = self.rows_in(place).filter(|(_, row)| !row.waiting.is_empty());
                    let keys: Vec<_> = waited.map(|(key, _)| Arc::clone(key)).collect();
                    keys.iter().for_each(|key| self.promote_key(key, tally, to_wake));
                }
            }
            return;
        }
        let tree = self.tree;
        let mut all: Vec<(Rank, TxnId, Target)> = Vec::new();
        for (key, row) in self.rows_in(place) {
            let target = || Target::Row(tree, Arc::clone(key));
            all.extend(row.waiting.iter().map(|w| (w.rank, w.owner.id(), target())));
        }
        for RangeWaiting { waiting, span } in &self.range_waits {
            if span.meets(place) {
                all.push((waiting.rank, waiting.owner.id(), Target::Ranges(tree)));
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
                (Target::Row(_, key), _) => Place::Key(key),
                (_, Some(span)) => span.place(),
                (_, None) => continue,
            };
            let granted = self.grant(&waiter.owner, place, kind, tally);
            debug_assert!(granted, "a waiting transaction has not ended");
            waiter.owner.end_wait(Outcome::Granted);
            to_wake.push(waiter.owner);
            if let Target::Row(_, key) = target {
                // Who has a range around the key needs no entry.
                self.tidy_row(key, tally);
            }
        }
        if let Place::Key(key) = place {
            self.tidy_row(key, tally);
        }
    }

    /// As `promote`, while nobody waits for a range: a long queue costs its length at most.
    fn promote_key(&mut self, key: &[u8], tally: &Tally, to_wake: &mut ToWake) {
        let mut at = 0;
        // What those ask for at most who go on waiting: later ones do not overtake them.
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
            let Some(row) = self.rows.get_mut(key) else { return };
            let owner = row.waiting.remove(at).owner;
            tally.waiting.sub(1);
            let granted = self.grant(&owner, Place::Key(key), kind, tally);
            debug_assert!(granted, "a waiting transaction has not ended");
            owner.end_wait(Outcome::Granted);
            to_wake.push(owner);
        }
        self.tidy_row(key, tally);
    }

    /// Those whose waits conflict with `kind` at `place`, other than `id`.
    pub(super) fn waiting_for(
        &self,
        id: TxnId,
        place: Place<'_>,
        kind: Kind,
    ) -> SmallVec<[Arc<Owner>; 4]> {
        let waiters = self.blocking_waiters(id, place, kind, None);
        waiters.map(|(w, _)| Arc::clone(&w.owner)).collect()
    }
}
