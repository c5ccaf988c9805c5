//! Deadlocks: found when a wait begins, ended at the expense of the transaction that has written
//! least; of several, of the one whose wait has closed the circle, and then of the youngest.
//!
//! The search locks one shard at a time, so what it finds may have been true only in parts. A
//! circle is therefore looked at again with all its shards locked before a victim is chosen.
//! What it does not find is not there: a circle stays until a search ends it, its last wait begins
//! after the others, and the search starts from that wait.
use std::cmp::Reverse;
use std::sync::Arc;

use weir_base::TxnId;

use crate::by_txn::ByTxn;

use super::blockers::Blocker;
use super::lock_error::Edge;
use super::owner::{Outcome, Owner};
use super::shard::Locked;
use super::table::{LockTable, wake};
use super::tree_locks::ToWake;

/// Transactions each of which waits for the next, and the last for the first.
type Circle = Vec<Arc<Owner>>;

struct Node {
    owner: Arc<Owner>,
    /// Position of its waiter.
    waiter: usize,
}

impl LockTable {
    /// Ends every circle of waits that goes through `start`, whose wait has just begun.
    ///
    /// No transaction can wait for one that holds nothing and has only now come to the end of its
    /// queue, as most do that wait for a hot row. A transaction that comes to wait for it later
    /// searches then.
    pub(super) fn end_new_deadlocks(&self, start: &Arc<Owner>) {
        if !start.holds_nothing() {
            self.end_deadlocks(start);
        }
    }

    /// Ends every circle of waits that goes through `start`.
    pub(super) fn end_deadlocks(&self, start: &Arc<Owner>) {
        while let Some(circle) = self.circle_through(start) {
            // `None`: a part of it has dissolved, but there may be another.
            let rather = self.rather_victim(&circle);
            if self.end_circle(&circle, rather) == Some(start.id()) {
                return;
            }
        }
    }

    /// The victim of a circle, if the listener chooses one.
    fn rather_victim(&self, circle: &[Arc<Owner>]) -> Option<TxnId> {
        let listener = self.listener.get()?;
        let mut rather: Option<TxnId> = None;
        for one in circle.iter().map(|owner| owner.id()) {
            let before = |other| other != one && listener.is_rather_victim(one, other);
            let better = match rather {
                Some(rather) => before(rather),
                None => circle.iter().any(|other| before(other.id())),
            };
            if better {
                rather = Some(one);
            }
        }
        rather
    }

    /// A circle of waits through `start`, if there is one.
    fn circle_through(&self, start: &Arc<Owner>) -> Option<Circle> {
        let mut nodes = vec![Node { owner: Arc::clone(start), waiter: 0 }];
        let mut seen: ByTxn<usize> = ByTxn::from_iter([(start.id(), 0)]);
        let mut open = vec![0];
        let mut blockers = Vec::new();
        while let Some(at) = open.pop() {
            self.blockers_of(&nodes[at].owner, &mut blockers);
            for Blocker { owner, waiter, is_done } in blockers.drain(..) {
                let waiter = seen[&waiter];
                if owner.id() == start.id() {
                    return Some(way_back(&nodes, waiter));
                }
                if seen.contains_key(&owner.id()) {
                    continue;
                }
                seen.insert(owner.id(), nodes.len());
                if !is_done {
                    open.push(nodes.len());
                }
                nodes.push(Node { owner, waiter });
            }
        }
        None
    }

    pub(super) fn blockers_of(&self, owner: &Owner, found: &mut Vec<Blocker>) {
        if let Some(target) = owner.waits_on()
            && let Some(locks) = self.shards.lock(target.tree()).find(target.tree())
        {
            locks.all_before(owner.id(), &target, found);
        }
    }

    /// Chooses the victim of a circle, `rather` if it is given, and ends its wait, if all the
    /// circle's waits still are.
    pub(super) fn end_circle(&self, circle: &[Arc<Owner>], rather: Option<TxnId>) -> Option<TxnId> {
        let targets: Vec<_> = circle.iter().map(|o| o.waits_on()).collect::<Option<_>>()?;
        let mut numbers: Vec<usize> =
            targets.iter().map(|t| self.shards.shard_of(t.tree())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut locked: Vec<Locked<'_>> =
            numbers.iter().map(|&n| self.shards.lock_nth(n)).collect();
        let place_of = |tree| {
            let number = self.shards.shard_of(tree);
            numbers.binary_search(&number).expect("the shards of all targets are locked")
        };

        let mut edges: Vec<Edge> = Vec::with_capacity(circle.len());
        for (i, target) in targets.iter().enumerate() {
            let holder = circle[(i + 1) % circle.len()].id();
            let tree = target.tree();
            let locks = locked[place_of(tree)].find(tree)?;
            edges.push(locks.edge(tree, target, circle[i].id(), holder)?);
        }
        // The circle begins with the transaction whose wait has closed it.
        let (at, victim) = circle.iter().enumerate().min_by_key(|(at, owner)| {
            (Some(owner.id()) != rather, owner.weight(), *at != 0, Reverse(owner.id()))
        })?;
        // The report begins with the victim.
        edges.rotate_left(at);
        let mut to_wake = ToWake::new();
        let target = &targets[at];
        locked[place_of(target.tree())].with(target.tree(), |locks| {
            let outcome = |_| Outcome::Deadlock { cycle: edges };
            locks.withdraw(victim.id(), target, outcome, &self.shards.tally, &mut to_wake)
        });
        drop(locked);
        wake(&to_wake);
        Some(victim.id())
    }
}

/// The way from the first node to the one at `at`.
fn way_back(nodes: &[Node], mut at: usize) -> Circle {
    let mut circle = vec![Arc::clone(&nodes[at].owner)];
    while at != 0 {
        at = nodes[at].waiter;
        circle.push(Arc::clone(&nodes[at].owner));
    }
    circle.reverse();
    circle
}
