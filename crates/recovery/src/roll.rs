//! Which groups of the log tell what transactions without an end have left: found in passing while
//! the log is read. Nearly all transactions end soon, so what the groups say is looked at only when
//! the end of the log is reached (`Analysis`), for those that are left.
use std::collections::BTreeMap;

use weir_base::{TreeId, TxnId};
use weir_change::{Header, Op};

use crate::chains::Place;
use crate::contents::{Open, Stretch};

/// What a group says besides changes of pages.
#[derive(Clone, Copy, Default)]
pub(crate) struct Said {
    /// How to roll it back.
    undo: bool,
    /// What a commit leaves to do.
    purge: bool,
    /// Anything else of its transaction.
    other: bool,
}

impl Said {
    /// Whether a group that says so must be known if its transaction has no end.
    pub(crate) fn is_anything(self) -> bool {
        self.undo || self.purge || self.other
    }

    /// Takes in an operation.
    #[inline]
    pub(crate) fn take(&mut self, op: &Op<'_>) {
        match op {
            op if op.is_undo() => self.undo = true,
            Op::Purge(_) => self.purge = true,
            Op::Prepared { .. } | Op::Undone { .. } | Op::UndoReset => self.other = true,
            _ => {}
        }
    }
}

/// A transaction's groups, in the order of the log. A stretch that is not read stands for all that
/// it has of them.
#[derive(Default)]
struct Groups {
    places: Vec<Place>,
    /// One of them says what its commit leaves to do.
    has_purge: bool,
}

impl Groups {
    /// Adds one; one that is there already counts once.
    #[inline]
    fn add(&mut self, group: Place) {
        let is_in = |last: &mut Place| last.ends_with(group) || last.extend(group);
        if !self.places.last_mut().is_some_and(is_in) {
            self.places.push(group);
        }
    }
}

impl Groups {
    fn open(&self, txn: TxnId) -> Open {
        Open { txn, has_purge: self.has_purge }
    }
}

/// The transactions that have no end yet.
#[derive(Default)]
pub(crate) struct Roll {
    open: BTreeMap<TxnId, Groups>,
    /// One more than the greatest transaction number seen.
    pub(crate) next_txn: TxnId,
    /// One more than the greatest tree number seen.
    pub(crate) next_tree: TreeId,
}

impl Roll {
    /// With these open from before, of whose groups it is known only that they lie before `place`.
    pub(crate) fn of(open: &[Open], place: Place) -> Roll {
        let groups = |o: &Open| Groups { places: vec![place], has_purge: o.has_purge };
        Roll { open: open.iter().map(|o| (o.txn, groups(o))).collect(), ..Roll::default() }
    }

    /// All that are open, ascending.
    pub(crate) fn all(&self) -> Vec<Open> {
        self.open.iter().map(|(&txn, groups)| groups.open(txn)).collect()
    }

    /// The transaction, if it is open.
    pub(crate) fn get(&self, txn: TxnId) -> Option<Open> {
        self.open.get(&txn).map(|groups| groups.open(txn))
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Forgets those that have said nothing from this stretch on.
    pub(crate) fn forget_before(&mut self, stretch: u32) {
        self.open.retain(|_, groups| groups.places.last().is_some_and(|p| p.chunk >= stretch));
    }

    /// Takes in a tree whose page is made.
    #[inline]
    pub(crate) fn take_op(&mut self, op: &Op<'_>) {
        if let Op::Init { tree, .. } = op {
            self.next_tree = self.next_tree.max(TreeId(tree.0.saturating_add(1)));
        }
    }

    /// Takes in a stretch by what was written down of it.
    pub(crate) fn take_stretch(&mut self, stretch: &Stretch, place: Place) {
        self.next_txn = self.next_txn.max(stretch.next_txn);
        self.next_tree = self.next_tree.max(stretch.next_tree);
        for txn in &stretch.ended {
            self.open.remove(txn);
        }
        for open in &stretch.open {
            let groups = self.open.entry(open.txn).or_default();
            groups.add(place);
            groups.has_purge |= open.has_purge;
        }
    }

    /// Takes a group in. Returns which transaction has ended, with the first place known of that
    /// one.
    #[inline]
    pub(crate) fn take(
        &mut self,
        header: &Header,
        group: Place,
        said: Said,
    ) -> Option<(TxnId, Place)> {
        let txn = header.txn?;
        self.next_txn = self.next_txn.max(TxnId(txn.0 + 1));
        // A transaction that commits is never rolled back.
        let undo = said.undo && !header.commits;
        if undo || said.purge || said.other {
            let open = self.open.entry(txn).or_default();
            open.add(group);
            open.has_purge |= said.purge;
        }
        if !(header.commits || header.ended) || self.open.is_empty() {
            return None;
        }
        match self.open.get_mut(&txn) {
            Some(open) if open.has_purge && !header.ended => {
                // That it has committed must be known, too.
                open.add(group);
                None
            }
            _ => {
                let groups = self.open.remove(&txn)?;
                groups.places.first().map(|&first| (txn, first))
            }
        }
    }

    /// The groups of those without an end, each transaction's in the order of the log.
    pub(crate) fn into_places(self) -> impl Iterator<Item = (TxnId, Place)> {
        let of_one = |(txn, open): (TxnId, Groups)| open.places.into_iter().map(move |p| (txn, p));
        self.open.into_iter().flat_map(of_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_kept_of_those_without_an_end() {
        let header = |txn| Header { txn: Some(TxnId(txn)), ..Header::default() };
        let commits = |txn| Header { commits: true, ..header(txn) };
        let ended = |txn| Header { ended: true, ..header(txn) };
        let (undo, purge) =
            (Said { undo: true, ..Said::default() }, Said { purge: true, ..Said::default() });
        let mut roll = Roll::default();
        let groups = [
            (header(1), undo),
            (header(2), undo),
            (commits(3), undo),
            (header(2), Said::default()),
            (header(1), undo),
            (commits(2), Said::default()),
            (header(4), purge),
            (commits(4), Said::default()),
            (commits(5), purge),
            (ended(5), Said::default()),
            (commits(6), purge),
        ];
        for (at, (header, said)) in (10..).zip(groups) {
            roll.take(&header, Place { chunk: 0, at, len: 1 }, said);
        }
        assert_eq!(roll.next_txn, TxnId(7));
        let places: Vec<_> = roll.into_places().map(|(_, place)| (place.at, place.len)).collect();
        assert_eq!(places, [(10, 1), (14, 1), (16, 2), (20, 1)]);
    }
}
