//! Where a full node is cut, and the questions of space that a tree asks before it changes a page.
//!
//! Why a cut always exists (PAGE-7): let the entries, the incoming one in its place, be cut after
//! the longest run that fits into one page. The run and the entry behind it overflow the page. All
//! entries together are less than a page and one entry, so what lies behind the run is less than
//! two entries, and two always fit (`max_entry`). Rebuilt pages never take more than their entries
//! at full key length, so prefixes only help.
use crate::limits::usable;
use crate::moved::merged_bytes;
use crate::node::{CHILD_BYTES, Node, SLOT_BYTES, STAMP_BYTES};
use crate::rebuild::shared;

/// The change that a full page has no room for.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// A new row, with the slot that `search` gave.
    Row {
        /// Where it would stand.
        slot: usize,
        /// Its whole key.
        key: &'a [u8],
        /// Bytes of its value in the leaf.
        value_len: usize,
    },
    /// A row that is there gets a value of this length.
    Value {
        /// Where it stands.
        slot: usize,
        /// Bytes of its new value in the leaf.
        value_len: usize,
    },
    /// A new separator with its child, with the slot that `search` gave.
    Child {
        /// Where it would stand.
        slot: usize,
        /// The separator.
        key: &'a [u8],
    },
}

/// Where to cut a full node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// In a leaf: the first slot that moves to the right page (may be `count`: only the incoming
    /// row goes there; or 0: all rows do). In an inner node: the slot whose separator moves up and
    /// whose child becomes the right node's leftmost; slots behind it move right. A side may be
    /// left without separators, with one child, when keys are huge.
    pub at: usize,
    /// Whether the incoming entry belongs in the right page.
    pub incoming_right: bool,
}

/// The entries of a node with the incoming one among them.
struct Planned<'a> {
    node: Node<&'a [u8]>,
    incoming: Incoming<'a>,
}

impl Planned<'_> {
    /// The slot of a new entry; `None` when an existing one grows.
    fn new_slot(&self) -> Option<usize> {
        match self.incoming {
            Incoming::Row { slot, .. } | Incoming::Child { slot, .. } => Some(slot),
            Incoming::Value { .. } => None,
        }
    }

    fn count(&self) -> usize {
        self.node.count() + usize::from(self.new_slot().is_some())
    }

    /// The node's slot of an entry, or `None` for the new one.
    fn old_slot(&self, index: usize) -> Option<usize> {
        match self.new_slot() {
            Some(new) if index == new => None,
            Some(new) if index > new => Some(index - 1),
            _ => Some(index),
        }
    }

    fn key(&self, index: usize) -> Vec<u8> {
        match (self.old_slot(index), self.incoming) {
            (Some(slot), _) => self.node.key(slot),
            (None, Incoming::Row { key, .. } | Incoming::Child { key, .. }) => key.to_vec(),
            (None, Incoming::Value { .. }) => Vec::new(),
        }
    }

    /// Bytes of an entry at full key length, with its slot.
    fn bytes(&self, index: usize) -> usize {
        match (self.old_slot(index), self.incoming) {
            (Some(slot), Incoming::Value { slot: grown, value_len }) if slot == grown => {
                SLOT_BYTES + self.node.key_len(slot) + STAMP_BYTES + value_len
            }
            (Some(slot), _) => SLOT_BYTES + self.node.key_len(slot) + self.node.body_len(slot),
            (None, Incoming::Child { key, .. }) => SLOT_BYTES + key.len() + CHILD_BYTES,
            (None, Incoming::Row { key, value_len, .. }) => {
                SLOT_BYTES + key.len() + STAMP_BYTES + value_len
            }
            (None, Incoming::Value { .. }) => 0,
        }
    }

    /// Whether entries `low..high`, `whole` bytes at full key length, fit into a page.
    fn fits(&self, low: usize, high: usize, whole: usize) -> bool {
        let room = usable(self.node.bytes().len());
        if whole <= room || high - low < 2 {
            return whole <= room;
        }
        whole - shared(&self.key(low), &self.key(high - 1)) * (high - low - 1) <= room
    }

    /// Where the right side begins when the left one has `left` entries: an inner node's middle one
    /// moves up.
    fn right_of(&self, left: usize) -> usize {
        left + usize::from(self.node.is_inner())
    }

    /// Whether the left side may have this many entries.
    fn allows(&self, left: usize, sums: &[usize]) -> bool {
        let count = self.count();
        let right = self.right_of(left);
        if self.node.is_inner() {
            // The new separator has no slot yet that could name it, so it never is the one that
            // moves up.
            if right > count || self.old_slot(left).is_none() {
                return false;
            }
        } else if left == 0 || left >= count {
            return false;
        }
        self.fits(0, left, sums[left]) && self.fits(right, count, sums[count] - sums[right])
    }
}

impl Node<&[u8]> {
    /// Where to cut this node so that the incoming change fits on its side: in the middle by bytes,
    /// or near the end when the new entry is the last, as it is for ascending keys, so that those
    /// fill their pages. `None` only when an entry is larger than `max_entry`, or when there is
    /// nothing to cut.
    #[must_use]
    pub fn split_point(self, incoming: Incoming<'_>) -> Option<Split> {
        let planned = Planned { node: self, incoming };
        let count = planned.count();
        let mut sums = Vec::with_capacity(count + 1);
        sums.push(0);
        for index in 0..count {
            sums.push(sums[index] + planned.bytes(index));
        }
        let ascending = planned.new_slot() == Some(self.count());
        let wanted = if ascending { sums[count] / 10 * 9 } else { sums[count] / 2 };
        let near = sums.partition_point(|&sum| sum < wanted);
        // The nearest allowed number of entries on the left.
        let left = (0..=count)
            .flat_map(|away| [near.checked_sub(away), Some(near + away)])
            .flatten()
            .find(|&left| left <= count && planned.allows(left, &sums))?;
        let new = planned.new_slot();
        let at = match planned.old_slot(left) {
            Some(slot) => slot.min(self.count()),
            None => left,
        };
        let incoming_right = match incoming {
            Incoming::Value { slot, .. } => slot >= at,
            _ => new.is_some_and(|slot| slot >= left),
        };
        Some(Split { at, incoming_right })
    }

    /// Whether a row with this key and value length can be inserted at `slot`.
    #[must_use]
    pub fn fits_row(self, slot: usize, key: &[u8], value_len: usize) -> bool {
        self.prefix_to_fit(slot, key, STAMP_BYTES + value_len).is_some()
    }

    /// Whether a separator can be inserted at `slot`.
    #[must_use]
    pub fn fits_child(self, slot: usize, separator: &[u8]) -> bool {
        self.prefix_to_fit(slot, separator, CHILD_BYTES).is_some()
    }

    /// Whether the row at `slot` can have a value of this length.
    #[must_use]
    pub fn fits_value(self, slot: usize, value_len: usize) -> bool {
        let old_len = self.value_len(slot);
        let used = self.used_with_prefix(self.prefix_with(0, None));
        value_len <= old_len || used + value_len - old_len <= usable(self.bytes().len())
    }
}

/// Whether all entries of two neighbours fit into one page. For inner nodes `separator` is the key
/// between them, which comes down with the right one's leftmost child; leaves don't use it.
#[must_use]
pub fn merged_fits(left: Node<&[u8]>, right: Node<&[u8]>, separator: &[u8]) -> bool {
    merged_bytes(left, right, separator) <= usable(left.bytes().len())
}

/// The shortest key `k` with `left_last < k <= right_first`: all that a parent needs to know.
#[must_use]
pub fn separator<'a>(left_last: &[u8], right_first: &'a [u8]) -> &'a [u8] {
    &right_first[..(shared(left_last, right_first) + 1).min(right_first.len())]
}
