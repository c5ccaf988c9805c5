//! What is locked in one tree: which transaction holds which keys and ranges, and which would wait
//! for which. Everything here is called under the mutex of the tree's shard.
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;
use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::lock_holder::LockHolder;
use super::own_keys::OwnKeys;
use super::owner::Owner;
use super::place::{LockTarget, Place, Span};
use super::ranges::Ranges;
use super::tally::Tally;

/// The order in which waiters are served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank {
    /// `false`: a transaction waits for what it holds, and it would wait for them. It goes before
    /// all others and waits for holders only.
    pub(super) in_turn: bool,
    pub(super) ticket: u64,
}

/// How far a waiter for a key alone and in turn has come. All others are fair from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Until the key is free of holders and it is the first.
    Asleep,
    /// Notified to look whether the key is still free.
    Notified,
    /// The key was busy when it looked: it looks again in a moment.
    Spinning,
    /// A transaction that comes from now on waits for it.
    Fair,
}

/// The waiting transaction.
pub(super) struct Waiting {
    pub(super) owner: Arc<Owner>,
    pub(super) kind: Kind,
    pub(super) rank: Rank,
    pub(super) stage: Stage,
}

impl Waiting {
    /// Lets it look again, if it sleeps and tells for which transactions it waits.
    pub(super) fn notify_reporter(&self, to_wake: &mut ToWake) {
        let sleeps = matches!(self.stage, Stage::Asleep | Stage::Fair);
        if sleeps && self.owner.notify_reporter() {
            to_wake.push(Arc::clone(&self.owner));
        }
    }
}

/// One that waits for a range.
pub(super) struct RangeWaiting {
    pub(super) waiting: Waiting,
    pub(super) span: Span,
}

/// The holders of one key, and the waiters for it.
#[derive(Default)]
pub(super) struct Row {
    /// Those that hold it alone (several only while locks of writers are made explicit) before
    /// those that share it: with a row that many share, no transaction is in the way of one more at
    /// first sight.
    pub(super) granted: SmallVec<[LockHolder; 1]>,
    /// By rank.
    pub(super) waiting: Vec<Waiting>,
    /// How often a transaction may have gone before the first waiter since that was notified.
    pub(super) passed: Cell<u32>,
}

impl Row {
    /// Another holder that `id` waits for if it asks for `kind`.
    pub(super) fn blocker(&self, id: TxnId, kind: Kind) -> Option<&LockHolder> {
        let mut in_the_way = self.granted.iter().take_while(|h| kind.conflicts_with(h.kind));
        in_the_way.find(|h| h.id != id)
    }

    /// Gives `kind` to `id`, if it holds something here.
    pub(super) fn strengthen(&mut self, id: TxnId, kind: Kind) -> bool {
        let Some(at) = self.granted.iter().position(|h| h.id == id) else { return false };
        if self.granted[at].kind < kind {
            self.granted[at].kind = kind;
            self.granted[..=at].rotate_right(1);
        }
        true
    }

    /// Adds a holder.
    pub(super) fn add(&mut self, owner: &Arc<Owner>, kind: Kind) {
        let held = LockHolder::new(owner, kind);
        match kind {
            Kind::Share => self.granted.push(held),
            Kind::Exclusive => self.granted.insert(0, held),
        }
    }
}

/// Owners whose wait has ended or that are notified: to be woken when no lock of the table is held
/// any more.
pub(super) type ToWake = Vec<Arc<Owner>>;

/// The locks of one tree.
pub(super) struct TreeLocks {
    pub(super) tree: TreeId,
    pub(super) rows: BTreeMap<Arc<[u8]>, Row>,
    /// What `rows` says of holders, by holder.
    pub(super) own_keys: OwnKeys,
    /// The keys of `rows` that a transaction waits for.
    pub(super) waited: BTreeSet<Arc<[u8]>>,
    pub(super) ranges: Ranges,
    /// By rank.
    pub(super) range_waits: Vec<RangeWaiting>,
    pub(super) next_ticket: u64,
    /// The tree has been dropped: no transaction gets anything here any more.
    pub(super) is_dropped: bool,
    /// Rows looked at on the way through ranges.
    #[cfg(test)]
    pub(super) looked: Cell<usize>,
}

impl TreeLocks {
    pub(super) fn new(tree: TreeId) -> Self {
        TreeLocks {
            tree,
            rows: BTreeMap::new(),
            own_keys: OwnKeys::default(),
            waited: BTreeSet::new(),
            ranges: Ranges::default(),
            range_waits: Vec::new(),
            next_ticket: 0,
            is_dropped: false,
            #[cfg(test)]
            looked: Cell::new(0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.ranges.is_empty()
            && self.range_waits.is_empty()
            && !self.is_dropped
    }

    pub(super) fn has_range_waits(&self) -> bool {
        !self.range_waits.is_empty()
    }

    pub(super) fn row(&self, key: &[u8]) -> Option<&Row> {
        self.rows.get(key)
    }

    /// The rows in a place that a transaction waits for.
    pub(super) fn waited_in<'s>(
        &'s self,
        place: Place<'s>,
    ) -> impl Iterator<Item = (&'s Arc<[u8]>, &'s Row)> {
        let keys = self.waited.range::<[u8], _>(place.bounds());
        keys.filter_map(|key| self.rows.get_key_value(key))
    }

    /// All that wait for a place, or for a part of it or more, and for what each waits. Not by
    /// rank.
    pub(super) fn waiters<'s>(
        &'s self,
        place: Place<'s>,
    ) -> impl Iterator<Item = (&'s Waiting, Place<'s>)> {
        let keys = self
            .waited_in(place)
            .flat_map(|(key, row)| row.waiting.iter().map(move |w| (w, Place::Key(key))));
        let ranges = self.range_waits.iter().filter(move |range| range.span.meets(place));
        keys.chain(ranges.map(|range| (&range.waiting, range.span.place())))
    }

    /// Whether `id` has what `kind` would give.
    pub(super) fn covers(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        let suits = |held: &LockHolder| held.id == id && held.kind.covers(kind);
        let row = match place {
            Place::Key(key) => self.rows.get(key),
            Place::Range { .. } => None,
        };
        row.is_some_and(|row| row.granted.iter().any(suits)) || self.ranges.covers(id, place, kind)
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

    /// The transactions that `id` would wait for if it asked for `kind` now. What decides here
    /// decides for all: a transaction that finds that no transaction is in the way gets the
    /// lock at once.
    pub(super) fn in_the_way(&self, id: TxnId, place: Place<'_>, kind: Kind) -> Option<TxnId> {
        if let Some((holder, _)) = self.blocking_holder(id, place, kind) {
            return Some(holder);
        }
        let unfair = self.unfair_row(place, kind);
        let bars = |(w, _): &(&Waiting, Place<'_>)| unfair.is_none() || w.stage == Stage::Fair;
        let Some((waiter, _)) = self.blocking_waiters(id, place, kind, None).find(bars) else {
            unfair.inspect(|row| row.passed.set(row.passed.get() + 1));
            return None;
        };
        if self.goes_first(id, place, kind) { None } else { Some(waiter.owner.id()) }
    }

    /// The row, if a transaction that asks for this may go before those that wait there and do not
    /// bar: the first of them was notified that the key is free. Only for requests of the key
    /// alone: sharers would pass for ever while others share.
    fn unfair_row(&self, place: Place<'_>, kind: Kind) -> Option<&Row> {
        let Place::Key(key) = place else { return None };
        let row = self.rows.get(key).filter(|_| kind == Kind::Exclusive)?;
        let first = row.waiting.first()?;
        matches!(first.stage, Stage::Notified | Stage::Spinning).then_some(row)
    }

    /// Whether one of those that `id` would wait for waits, directly or not, for what it holds.
    pub(super) fn goes_first(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        if let (Place::Key(key), true) = (place, self.range_waits.is_empty()) {
            return self.goes_first_at(id, key, kind);
        }
        if !self.own_keys.has(id) && !self.ranges.has(id) {
            return false;
        }
        let mut open: SmallVec<[(&Waiting, Place<'_>); 8]> =
            self.blocking_waiters(id, place, kind, None).collect();
        let mut seen: SmallVec<[u64; 8]> = open.iter().map(|(w, _)| w.rank.ticket).collect();
        while let Some((waiter, place)) = open.pop() {
            let (me, kind, rank) = (waiter.owner.id(), waiter.kind, waiter.rank);
            if self.holds_against(id, place, kind) {
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

    /// As `goes_first`, while no transaction waits for a range: in one pass.
    fn goes_first_at(&self, id: TxnId, key: &[u8], kind: Kind) -> bool {
        let mine = self.holders(key).filter(|h| h.id == id);
        let (Some(mine), Some(row)) = (mine.map(|h| h.kind).max(), self.rows.get(key)) else {
            return false;
        };
        // The most that any waiter for `id` asks for.
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

    pub(super) fn row_mut(&mut self, key: &[u8], tally: &Tally) -> (Arc<[u8]>, &mut Row) {
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

    pub(super) fn remove_row_if_empty(&mut self, key: &[u8], tally: &Tally) {
        if self.rows.get(key).is_some_and(|row| row.granted.is_empty() && row.waiting.is_empty()) {
            self.rows.remove(key);
            tally.key_removed(self.tree, key);
        }
    }

    /// A transaction has come to wait for this key, or does so no more.
    pub(super) fn note_waited(&mut self, key: &[u8]) {
        match self.rows.get_key_value(key).filter(|(_, row)| !row.waiting.is_empty()) {
            Some((name, row)) if row.waiting.len() == 1 => drop(self.waited.insert(name.clone())),
            Some(_) => {}
            None => drop(self.waited.remove(key)),
        }
    }

    /// Gives `kind` to `owner`, whichever other transaction holds something. False: the transaction
    /// has ended.
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

    /// As `grant`, of a key.
    pub(super) fn grant_key(
        &mut self,
        owner: &Arc<Owner>,
        key: &[u8],
        kind: Kind,
        tally: &Tally,
    ) -> bool {
        let tree = self.tree;
        let known = self.rows.get_key_value(key).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| Arc::from(key));
        let row = self.rows.get_mut(key);
        let is_new = row.is_none();
        if row.is_some_and(|row| row.strengthen(owner.id(), kind)) {
            if kind == Kind::Exclusive {
                self.own_keys.strengthen(owner.id(), key);
            }
            return true;
        }
        let is_open = owner.note(LockTarget::Row(tree, Arc::clone(&name)));
        if is_open {
            if is_new {
                tally.key_added(tree, key);
            }
            tally.held_added(key);
            self.own_keys.add(owner, &name, kind);
            self.rows.entry(name).or_default().add(owner, kind);
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
        if !self.ranges.has(id) && !owner.note(LockTarget::Ranges(self.tree)) {
            return false;
        }
        let grown = self.ranges.add(owner, from, to, kind);
        tally.ranges_changed(self.tree, grown);
        true
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
