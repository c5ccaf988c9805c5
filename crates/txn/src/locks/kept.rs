//! What a prepared transaction holds, to be written down, and given back to it after a restart.
use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::lock_holder::LockHolder;
use super::place::{LockTarget, Place, PlaceBuf};
use super::table::LockTable;
use super::tree_locks::TreeLocks;

impl LockTable {
    /// All that `id` holds explicitly, now.
    #[must_use]
    pub fn held_by(&self, id: TxnId) -> Vec<(TreeId, PlaceBuf, Kind)> {
        let mut all = Vec::new();
        self.each_held(id, &mut |tree, place, kind| all.push((tree, place.into(), kind)));
        all
    }

    /// Tells of all that `id` holds explicitly, now; with a mutex of the table held.
    pub fn each_held(&self, id: TxnId, tell: &mut dyn FnMut(TreeId, Place<'_>, Kind)) {
        for target in self.registry.find(id).map(|owner| owner.targets()).unwrap_or_default() {
            let (tree, shard) = (target.tree(), self.shards.lock(target.tree()));
            let Some(locks) = shard.find(tree) else { continue };
            let mine = |held: &LockHolder| held.id == id;
            match &target {
                LockTarget::Row(_, key) => {
                    let granted = locks.row(key).into_iter().flat_map(|row| &row.granted);
                    let held = granted.filter(|held| mine(held));
                    held.for_each(|held| tell(tree, Place::Key(key), held.kind));
                }
                LockTarget::Ranges(_) => {
                    let ranges = locks.ranges.iter().filter(|(held, _)| mine(held));
                    ranges.for_each(|(held, place)| tell(tree, place, held.kind));
                }
            }
        }
    }

    /// Gives back what [`LockTable::held_by`] has shown, whatever other transactions hold
    /// there: a transaction that has locked a range for sharing and was refused a row of it keeps
    /// the range beside the row's writer. Called before any transaction can ask for anything.
    ///
    /// # Panics
    /// If `id` is not registered, or has ended.
    pub fn give_back(&self, id: TxnId, tree: TreeId, place: Place<'_>, kind: Kind) {
        let owner = self.registry.find(id).expect("transactions are registered before they lock");
        let tally = &self.shards.tally;
        let grant = |locks: &mut TreeLocks| locks.grant(&owner, place, kind, tally);
        let granted = self.shards.lock(tree).with(tree, grant);
        assert!(granted, "transaction {id} has ended and is given a lock");
    }
}
