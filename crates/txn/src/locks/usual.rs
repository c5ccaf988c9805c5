//! The usual request in few steps: a key in a tree of which nobody has or wants a range, and that
//! nobody waits for.
use std::sync::Arc;

use super::kind::Kind;
use super::owner::Owner;
use super::place::Target;
use super::tally::Tally;
use super::tree_locks::TreeLocks;

impl TreeLocks {
    /// As `in_the_way` and then `grant`, where the key's own entry decides. `None`: it does not, or
    /// somebody is in the way. `Some(false)`: the transaction has ended.
    pub(super) fn grant_at_once(
        &mut self,
        owner: &Arc<Owner>,
        key: &[u8],
        kind: Kind,
        tally: &Tally,
    ) -> Option<bool> {
        if !self.ranges.is_empty() || !self.range_waits.is_empty() {
            return None;
        }
        let tree = self.tree;
        // The name before the row: the map lends names only together with rows that stay as they
        // are.
        let Some((name, _)) = self.rows.get_key_value(key) else {
            let name: Arc<[u8]> = Arc::from(key);
            let is_open = owner.note(Target::Row(tree, Arc::clone(&name)));
            if is_open {
                tally.key_added(tree, key);
                tally.held.add(1);
                self.rows.entry(name).or_default().add(owner, kind);
            }
            return Some(is_open);
        };
        let name = Arc::clone(name);
        let row = self.rows.get_mut(key)?;
        if !row.waiting.is_empty() || row.blocker(owner.id(), kind).is_some() {
            return None;
        }
        if row.strengthen(owner.id(), kind) {
            return Some(true);
        }
        let is_open = owner.note(Target::Row(tree, name));
        if is_open {
            tally.held.add(1);
            row.add(owner, kind);
        }
        Some(is_open)
    }
}
