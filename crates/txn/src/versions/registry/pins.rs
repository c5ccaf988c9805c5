//! Where the log must be kept from, by transaction and by position: asked some hundred times a
//! second, under the registry's mutex, while an old snapshot may have a hundred thousand of them
//! kept.
use std::collections::{BTreeMap, BTreeSet};

use weir_base::{Lsn, TxnId};

/// The first record that recovery would need of each transaction.
#[derive(Default)]
pub(super) struct Pins {
    of: BTreeMap<TxnId, Lsn>,
    /// The same, by position.
    by_lsn: BTreeSet<(Lsn, TxnId)>,
}

impl Pins {
    pub(super) fn insert(&mut self, id: TxnId, from: Lsn) {
        if let Some(before) = self.of.insert(id, from) {
            self.by_lsn.remove(&(before, id));
        }
        self.by_lsn.insert((from, id));
    }

    pub(super) fn remove(&mut self, id: TxnId) {
        if let Some(from) = self.of.remove(&id) {
            self.by_lsn.remove(&(from, id));
        }
    }

    pub(super) fn has(&self, id: TxnId) -> bool {
        self.of.contains_key(&id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(super) fn oldest(&self) -> Option<Lsn> {
        self.by_lsn.first().map(|(from, _)| *from)
    }

    /// Those before `lsn`, oldest first.
    pub(super) fn before(&self, lsn: Lsn) -> impl Iterator<Item = TxnId> {
        self.by_lsn.range(..(lsn, TxnId(0))).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_known_by_transaction_and_by_position() {
        let mut pins = Pins::default();
        assert!(pins.is_empty() && pins.oldest().is_none());
        for (id, from) in [(1, 100), (2, 200), (3, 200), (1, 300), (4, 50)] {
            pins.insert(TxnId(id), Lsn(from));
        }
        assert_eq!(pins.oldest(), Some(Lsn(50)));
        pins.remove(TxnId(4));
        pins.remove(TxnId(4));
        assert_eq!(pins.oldest(), Some(Lsn(200)));
        assert_eq!(pins.before(Lsn(200)).count(), 0);
        assert_eq!(pins.before(Lsn(300)).collect::<Vec<_>>(), [TxnId(2), TxnId(3)]);
        assert!(pins.has(TxnId(1)) && !pins.has(TxnId(4)));
        [1, 2, 3].into_iter().for_each(|id| pins.remove(TxnId(id)));
        assert!(pins.is_empty() && pins.by_lsn.is_empty());
    }
}
