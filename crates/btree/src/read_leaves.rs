//! Reading the leaves that many keys belong to, before a thread looks at one after the other: the
//! disk does many things at a time, and the thread waits once.
use weir_base::{PageNo, ThreadCounts};

use crate::descend::DescentTarget;
use crate::read_ahead::LEAVES_MAX;
use crate::tree::Tree;

/// Keys whose leaves are looked for at once, at most.
const KEYS_MAX: usize = 4096;
/// Keys before the next attempt where no leaf could be read.
const KEYS_PAUSE: usize = 16;

/// What a thread knows of the leaves of keys that it comes to one after the other, in ascending
/// order.
#[derive(Default, Debug)]
pub struct KeysAhead {
    /// The leaves of so many of the next keys have been looked for.
    left: usize,
    /// The last look found absent leaves: the next will as well.
    is_worth: bool,
    /// Pages that the thread had read when it came to the last key.
    pages_read: Option<u64>,
}

impl KeysAhead {
    /// Before the thread looks at the first of `keys`, those that are left: reads leaves of theirs
    /// if it had to wait for the last one's. In memory that costs a look at a counter of the
    /// thread's.
    pub fn come_to<'k>(&mut self, tree: &Tree, keys: impl Iterator<Item = &'k [u8]>) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        let pages_read = || ThreadCounts::of_this_thread().pages_read;
        if self.is_worth || self.pages_read.is_some_and(|before| pages_read() > before) {
            let read = tree.read_leaves(keys.take(KEYS_MAX));
            self.is_worth = read.pages > 0;
            let looked_for = if self.is_worth { read.keys } else { read.keys.max(KEYS_PAUSE) };
            self.left = looked_for.saturating_sub(1);
        }
        self.pages_read = Some(pages_read());
    }
}

/// What [`Tree::read_leaves`] has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LeavesRead {
    /// The leaves of so many of the first keys were in memory, or have been read.
    pub keys: usize,
    /// Leaves that have been read.
    pub pages: u64,
}

impl Tree {
    /// Reads those of the leaves that `keys` belong to which are absent, at once: of so many of the
    /// first keys as the result says. The keys are in ascending order. Nothing is held over the
    /// read, and what cannot be read is left to the thread that comes to it, which has the error.
    pub fn read_leaves<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> LeavesRead {
        let pool = &self.env.pool;
        let most = pool.ahead_max().min(LEAVES_MAX);
        let (mut absent, mut first_keys) = (Vec::new(), Vec::new());
        let (mut looked_at, mut last) = (0, None);
        for key in keys {
            let Some(leaf) = self.leaf_of(key) else { break };
            if last != Some(leaf) && !pool.is_resident(leaf) {
                if absent.len() == most {
                    break;
                }
                absent.push(leaf);
                first_keys.push(looked_at);
            }
            last = Some(leaf);
            looked_at += 1;
        }
        // One leaf is read as soon by the thread that wants it.
        if absent.len() < 2 {
            return LeavesRead { keys: looked_at, pages: 0 };
        }
        let read = pool.read_ahead(&absent);
        let keys = first_keys.get(read.looked_at).copied().unwrap_or(looked_at);
        LeavesRead { keys, pages: read.arrived }
    }

    /// The leaf that the key belongs to, without a look at it. `None`: the root is a leaf, or nodes
    /// above it are being changed, or cannot be read.
    fn leaf_of(&self, key: &[u8]) -> Option<PageNo> {
        let descend = || self.try_descend(DescentTarget::Key(key), 1);
        self.above_leaves(descend, |node| node.child(node.child_index(key)))
    }
}
