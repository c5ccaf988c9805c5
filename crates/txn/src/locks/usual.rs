//! The usual request in few steps: a key in a tree of which no transaction has or wants a range,
//! and that no transaction waits for.
use std::sync::Arc;

use super::kind::Kind;
use super::owner::Owner;
use super::tally::Tally;
use super::tree_locks::TreeLocks;

impl TreeLocks {
    /// As `in_the_way` and then `grant`, where the key's own entry decides. `None`: it does not, or
    /// a transaction is in the way. `Some(false)`: the transaction has ended.
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
        if let Some(row) = self.rows.get(key)
            && (!row.waiting.is_empty() || row.blocker(owner.id(), kind).is_some())
        {
            return None;
        }
        Some(self.grant_key(owner, key, kind, tally))
    }
}
