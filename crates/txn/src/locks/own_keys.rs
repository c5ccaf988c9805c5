//! The keys that are held in one tree, by their holders: what one owner has in a range is found in
//! a search, however many others hold there.
use std::collections::BTreeSet;
use std::sync::Arc;

use weir_base::TxnId;

use crate::by_txn::ByTxn;

use super::kind::Kind;
use super::lock_holder::LockHolder;
use super::owner::Owner;
use super::place::Place;

/// All keys that are held, as the rows' lists of holders say.
#[derive(Default)]
pub(super) struct OwnKeys {
    owners: ByTxn<Own>,
}

/// What one owner holds; never nothing.
struct Own {
    shared: OfKind,
    alone: OfKind,
}

struct OfKind {
    held: LockHolder,
    keys: BTreeSet<Arc<[u8]>>,
}

impl Own {
    fn new(owner: &Arc<Owner>) -> Self {
        let of = |kind| OfKind { held: LockHolder::new(owner, kind), keys: BTreeSet::new() };
        Own { shared: of(Kind::Share), alone: of(Kind::Exclusive) }
    }

    fn of(&mut self, kind: Kind) -> &mut BTreeSet<Arc<[u8]>> {
        match kind {
            Kind::Share => &mut self.shared.keys,
            Kind::Exclusive => &mut self.alone.keys,
        }
    }

    /// What of it is in `place` and in the way of `asked`.
    fn against(&self, place: Place<'_>, asked: Kind) -> Option<&LockHolder> {
        let is = |of: &&OfKind| {
            asked.conflicts_with(of.held.kind)
                && of.keys.range::<[u8], _>(place.bounds()).next().is_some()
        };
        [&self.alone, &self.shared].into_iter().find(is).map(|of| &of.held)
    }
}

impl OwnKeys {
    /// `owner` has come to hold a key that it did not hold.
    pub(super) fn add(&mut self, owner: &Arc<Owner>, key: &Arc<[u8]>, kind: Kind) {
        let own = self.owners.entry(owner.id()).or_insert_with(|| Own::new(owner));
        own.of(kind).insert(Arc::clone(key));
    }

    /// `id` holds a key alone that it has shared.
    pub(super) fn strengthen(&mut self, id: TxnId, key: &[u8]) {
        if let Some(own) = self.owners.get_mut(&id)
            && let Some(key) = own.shared.keys.take(key)
        {
            own.alone.keys.insert(key);
        }
    }

    /// `id` holds a key no more.
    pub(super) fn remove(&mut self, id: TxnId, key: &[u8], kind: Kind) {
        if let Some(own) = self.owners.get_mut(&id) {
            own.of(kind).remove(key);
            if own.shared.keys.is_empty() && own.alone.keys.is_empty() {
                self.owners.remove(&id);
            }
        }
    }

    /// Whether `id` holds any key.
    pub(super) fn has(&self, id: TxnId) -> bool {
        self.owners.contains_key(&id)
    }

    /// Whether `id` holds a key in `place` that is in the way of `asked`.
    pub(super) fn holds(&self, id: TxnId, place: Place<'_>, asked: Kind) -> bool {
        self.owners.get(&id).is_some_and(|own| own.against(place, asked).is_some())
    }

    /// The holders of keys in `place` that are in the way of `asked`: each once, by the strongest.
    pub(super) fn against<'s>(
        &'s self,
        place: Place<'s>,
        asked: Kind,
    ) -> impl Iterator<Item = &'s LockHolder> {
        self.owners.values().filter_map(move |own| own.against(place, asked))
    }

    /// All of it, in order.
    #[cfg(all(test, not(loom)))]
    pub(super) fn all(&self) -> BTreeSet<(TxnId, Kind, Arc<[u8]>)> {
        let of = |own: &OfKind| {
            let (id, kind) = (own.held.id, own.held.kind);
            own.keys.iter().map(|key| (id, kind, Arc::clone(key))).collect::<Vec<_>>()
        };
        self.owners.values().flat_map(|own| [of(&own.shared), of(&own.alone)]).flatten().collect()
    }
}
