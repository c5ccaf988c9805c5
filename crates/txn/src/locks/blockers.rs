//! The transactions that a waiter waits for: for the search for deadlocks, and for reports.
use std::sync::Arc;

use smallvec::SmallVec;
use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::lock_error::Edge;
use super::owner::Owner;
use super::place::{LockTarget, Place};
use super::tree_locks::{Row, TreeLocks, Waiting};

/// A transaction that a waiter waits for, directly or through earlier waiters of the same key.
pub(super) struct Blocker {
    pub(super) owner: Arc<Owner>,
    /// The transaction that waits for it directly.
    pub(super) waiter: TxnId,
    /// It is itself an earlier waiter, and what it waits for is in the same answer.
    pub(super) is_done: bool,
}

impl TreeLocks {
    /// The transactions that a waiter waits for directly: which, by what, and whether that one
    /// waits for it too.
    pub(super) fn blockers_of<'s>(
        &'s self,
        waiter: &'s Waiting,
        place: Place<'s>,
    ) -> impl Iterator<Item = (&'s Arc<Owner>, Kind, bool)> {
        let (id, kind, rank) = (waiter.owner.id(), waiter.kind, waiter.rank);
        let holders = self.holders_against(id, place, kind).map(|h| (&h.owner, h.kind, false));
        let earlier = rank.in_turn.then(|| self.blocking_waiters(id, place, kind, Some(rank)));
        holders.chain(earlier.into_iter().flatten().map(|(w, _)| (&w.owner, w.kind, true)))
    }

    /// How `waiter` waits at `target` for `holder`, if it does.
    pub(super) fn edge(
        &self,
        tree: TreeId,
        target: &LockTarget,
        waiter: TxnId,
        holder: TxnId,
    ) -> Option<Edge> {
        let (waiting, place) = self.find_waiter(waiter, target)?;
        let mut blockers = self.blockers_of(waiting, place);
        let (_, held, queued) = blockers.find(|(owner, ..)| owner.id() == holder)?;
        let (wanted, place) = (waiting.kind, place.into());
        Some(Edge { waiter, wanted, tree, place, holder, held, queued })
    }

    /// Those that `id` waits for at `target`. While no transaction waits for a range these are all,
    /// also through earlier waiters, in one pass: a long queue costs its length, not the square of
    /// it.
    pub(super) fn all_before(&self, id: TxnId, target: &LockTarget, found: &mut Vec<Blocker>) {
        if let LockTarget::Row(_, key) = target
            && !self.has_range_waits()
        {
            if let Some(row) = self.row(key) {
                self.all_before_in(row, key, id, found);
            }
            return;
        }
        let Some((waiting, place)) = self.find_waiter(id, target) else { return };
        found.extend(self.blockers_of(waiting, place).map(|(owner, ..)| Blocker {
            owner: Arc::clone(owner),
            waiter: id,
            is_done: false,
        }));
    }

    fn all_before_in(&self, row: &Row, key: &[u8], id: TxnId, found: &mut Vec<Blocker>) {
        let Some(at) = row.waiting.iter().position(|w| w.owner.id() == id) else { return };
        let mut asking: SmallVec<[&Waiting; 8]> = SmallVec::new();
        asking.push(&row.waiting[at]);
        for w in row.waiting[..at].iter().rev() {
            let by = asking.iter().find(|a| a.rank.in_turn && a.kind.conflicts_with(w.kind));
            let Some(waiter) = by.map(|a| a.owner.id()) else { continue };
            found.push(Blocker { owner: Arc::clone(&w.owner), waiter, is_done: true });
            // One stands for all that ask alike: if it is itself the holder that only they would
            // wait for, that one has been found already, as a waiter.
            if !asking.iter().any(|a| a.kind == w.kind && a.rank.in_turn == w.rank.in_turn) {
                asking.push(w);
            }
        }
        for h in self.holders(key) {
            let waits =
                |a: &&&Waiting| a.kind.conflicts_with(h.kind) && a.owner.id() != h.owner.id();
            if let Some(by) = asking.iter().find(waits) {
                let (owner, waiter) = (Arc::clone(&h.owner), by.owner.id());
                found.push(Blocker { owner, waiter, is_done: false });
            }
        }
    }
}
