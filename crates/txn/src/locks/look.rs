//! Showing what is locked to the transaction that asks: for people, nothing is decided by it.
use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::place::Place;
use super::table::LockTable;

/// A lock that a transaction holds or waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenLock<'a> {
    /// The tree.
    pub tree: TreeId,
    /// What in it.
    pub place: Place<'a>,
    /// The transaction.
    pub owner: TxnId,
    /// Whether others may share it.
    pub kind: Kind,
    /// Whether it is only waited for.
    pub is_waiting: bool,
}

impl LockTable {
    /// Shows the explicit locks and the waiters, one shard after the other: each is as it was at
    /// one moment, all together are not. A row that was written and that no transaction waits for
    /// has no entry. A shard's mutex is held while `visit` looks: it must be quick and take no
    /// lock.
    pub fn visit(&self, visit: &mut dyn FnMut(SeenLock<'_>)) {
        self.shards.visit(&mut |locks| {
            let tree = locks.tree;
            let mut show = |place, owner, kind, is_waiting| {
                visit(SeenLock { tree, place, owner, kind, is_waiting });
            };
            for (key, row) in &locks.rows {
                row.granted.iter().for_each(|h| show(Place::Key(key), h.owner.id(), h.kind, false));
                row.waiting.iter().for_each(|w| show(Place::Key(key), w.owner.id(), w.kind, true));
            }
            for (held, place) in locks.ranges.iter() {
                show(place, held.owner.id(), held.kind, false);
            }
            for wait in &locks.range_waits {
                show(wait.span.place(), wait.waiting.owner.id(), wait.waiting.kind, true);
            }
        });
    }
}
