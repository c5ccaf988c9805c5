//! Gaps that are cut in two by a new key, or become one when a key is removed: who had locked the
//! old gap has locked the new ones. Called under the latch of the leaf that changes.
use std::sync::Arc;

use weir_base::TreeId;

use super::kind::{Kind, Place, hash};
use super::owner::Owner;
use super::table::LockTable;

impl LockTable {
    /// A new key cuts the gap before `next` in two: who has locked that gap gets the one before
    /// `new_key` too. One load when no gap is locked anywhere.
    #[inline]
    pub fn gap_split(&self, tree: TreeId, new_key: &[u8], next: Place<'_>) {
        if self.shards.gauges.gaps() != 0 {
            self.inherit(tree, next, &[Kind::Gap], Place::Key(new_key));
        }
    }

    /// A removed key makes one gap of two: who has locked the row `removed` or the gap before it
    /// gets the gap before `next`. What it had stays too, for the key may come back. One load when
    /// nothing is locked in the key's bucket.
    #[inline]
    pub fn gap_join(&self, tree: TreeId, removed: &[u8], next: Place<'_>) {
        let kinds = [Kind::Gap, Kind::RowShare, Kind::RowExclusive];
        self.inherit(tree, Place::Key(removed), &kinds, next);
    }

    /// Who holds one of `kinds` at `from` gets a gap lock at `to`, whoever wants to insert there.
    fn inherit(&self, tree: TreeId, from: Place<'_>, kinds: &[Kind], to: Place<'_>) {
        let Some(from_hash) = self.shards.used(tree, from) else { return };
        // One shard at a time: who locks the gap `from` only after this looks at the leaf
        // afterwards, and finds that the gaps have changed.
        let heirs = match self.shards.lock(from_hash).find(from_hash, tree, from) {
            Some(queue) => queue.holders(kinds),
            None => return,
        };
        if heirs.is_empty() {
            return;
        }
        let hash = hash(tree, to);
        let inserters = self.shards.lock(hash).with(hash, tree, to, |queue| {
            for heir in &heirs {
                // In vain for one that has ended meanwhile.
                queue.grant(heir, Kind::Gap, &self.shards.gauges);
            }
            queue.waiters(Kind::Gap.conflicts())
        });
        // They wait for more transactions than when they began: that may have closed a circle.
        inserters.iter().for_each(|owner: &Arc<Owner>| self.end_deadlocks(owner));
    }
}
