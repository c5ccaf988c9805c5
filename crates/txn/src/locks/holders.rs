//! The holders of something in a place, found without a look at all that is held there: a tree may
//! have millions of locked rows, and the transaction that writes asks under a leaf's latch.
use weir_base::TxnId;

use super::kind::Kind;
use super::lock_holder::LockHolder;
use super::place::Place;
use super::tree_locks::{Row, TreeLocks};

/// Of so many rows in a range all holders are looked at; where there are more, all owners are.
/// In tests both happens among the few keys of a model.
const FEW: usize = if cfg!(test) { 2 } else { 16 };

impl TreeLocks {
    /// All rows in a place: as many as there may be, so only for a transaction that stops early.
    fn rows_in<'s>(&'s self, place: Place<'s>) -> impl Iterator<Item = &'s Row> {
        self.rows.range::<[u8], _>(place.bounds()).map(|(_, row)| {
            #[cfg(test)]
            self.looked.set(self.looked.get() + 1);
            row
        })
    }

    /// All that hold a key, or a range around it.
    pub(super) fn holders<'s>(&'s self, key: &'s [u8]) -> impl Iterator<Item = &'s LockHolder> {
        let row = self.rows.get(key).into_iter().flat_map(|row| row.granted.iter());
        row.chain(self.ranges.holders(Place::Key(key)))
    }

    /// Those but `id` that hold something in a place that is in the way of `kind`. In a range with
    /// many rows each of its owners is shown once.
    pub(super) fn holders_against<'s>(
        &'s self,
        id: TxnId,
        place: Place<'s>,
        kind: Kind,
    ) -> impl Iterator<Item = &'s LockHolder> {
        let are_few = matches!(place, Place::Key(_)) || self.rows_in(place).nth(FEW).is_none();
        let rows = are_few.then(|| self.rows_in(place).flat_map(|row| row.granted.iter()));
        let owners = (!are_few).then(|| self.own_keys.against(place, kind));
        let keys = rows.into_iter().flatten().chain(owners.into_iter().flatten());
        keys.chain(self.ranges.holders(place))
            .filter(move |h| h.id != id && kind.conflicts_with(h.kind))
    }

    /// Whether `id` holds something in a place that is in the way of `kind`.
    pub(super) fn holds_against(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        let on = |h: &LockHolder| h.id == id && kind.conflicts_with(h.kind);
        self.own_keys.holds(id, place, kind) || self.ranges.holders(place).any(on)
    }

    /// Another holder that `id` waits for if it asks for `kind`.
    pub(super) fn blocking_holder(
        &self,
        id: TxnId,
        place: Place<'_>,
        kind: Kind,
    ) -> Option<(TxnId, Kind)> {
        let in_row = match place {
            Place::Key(key) => self.rows.get(key).and_then(|row| row.blocker(id, kind)),
            Place::Range { .. } => None,
        };
        let found = in_row.or_else(|| self.holders_against(id, place, kind).next());
        found.map(|h| (h.id, h.kind))
    }
}
