//! Changing a node. Every function is deterministic: the same call on the same bytes gives the same
//! bytes (PAGE-1).
use crate::header::{
    COUNT, GARBAGE, HEADER_BYTES, HEAP_START, Kind, MARKS, format, put_u16, put_u32, set_link,
};
use crate::node::{
    CHILD_BYTES, Flags, Node, SLOT_BYTES, SLOT_HEAD, SLOT_KEY_LEN, SLOT_VAL, STAMP_BYTES, Stamp,
    VAL_DELETED, VAL_LEN, head_of,
};
use thiserror::Error;
use weir_base::{PageNo, TreeId};

/// The page has no room for the change, not even compacted; it is as it was. Split it
/// (`Node::split_point`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("no room in the page")]
pub struct Full;

/// A node that can be changed. Slots given must exist, and page bytes must be structurally sound
/// (`check`): anything else is a bug of the caller and panics.
pub struct NodeMut<'a> {
    pub(crate) page: &'a mut [u8],
}

impl<'a> NodeMut<'a> {
    /// The node in this page.
    #[inline]
    pub fn new(page: &'a mut [u8]) -> NodeMut<'a> {
        NodeMut { page }
    }

    /// Makes `page` an empty node.
    pub fn format(
        page: &'a mut [u8],
        kind: Kind,
        level: u8,
        tree: TreeId,
        page_no: PageNo,
    ) -> NodeMut<'a> {
        format(page, kind, level, tree, page_no);
        NodeMut { page }
    }

    /// The node as a reader sees it.
    #[inline]
    #[must_use]
    pub fn node(&self) -> Node<&[u8]> {
        Node::new(&*self.page)
    }

    /// Inserts a row at `slot`, which `search` gave for `key`.
    ///
    /// # Errors
    /// `Full`, with the page unchanged.
    pub fn insert(
        &mut self,
        slot: usize,
        key: &[u8],
        stamp: Stamp,
        flags: Flags,
        value: &[u8],
    ) -> Result<(), Full> {
        let off = self.open_slot(slot, key, STAMP_BYTES + value.len())?;
        self.put_stamp(off, stamp);
        self.page[off + STAMP_BYTES..off + STAMP_BYTES + value.len()].copy_from_slice(value);
        self.put_val(slot, flags, value.len());
        self.add_marks(0, u16::from(flags.deleted));
        Ok(())
    }

    /// Inserts a separator at the slot that `search` gives for it, with the child that begins
    /// there.
    ///
    /// # Errors
    /// `Full`, with the page unchanged.
    pub fn insert_child(&mut self, separator: &[u8], child: PageNo) -> Result<(), Full> {
        let (Ok(slot) | Err(slot)) = self.node().search(separator);
        self.insert_child_at(slot, separator, child)
    }

    /// Inserts a separator at `slot`, which `search` gave for it.
    ///
    /// # Errors
    /// `Full`, with the page unchanged.
    pub fn insert_child_at(
        &mut self,
        slot: usize,
        separator: &[u8],
        child: PageNo,
    ) -> Result<(), Full> {
        let off = self.open_slot(slot, separator, CHILD_BYTES)?;
        put_u32(self.page, off, child.0);
        Ok(())
    }

    /// Removes the separator at `slot` and the child behind it.
    pub fn remove_child(&mut self, slot: usize) {
        self.remove(slot);
    }

    /// Sets an inner node's leftmost child.
    pub fn set_leftmost(&mut self, child: PageNo) {
        set_link(self.page, child);
    }

    /// Replaces `removed` bytes of the row's value from `offset` on by `bytes`. In place unless the
    /// value grows.
    ///
    /// # Errors
    /// `Full`, with the page unchanged.
    ///
    /// # Panics
    /// When the range lies outside the value.
    #[inline]
    pub fn splice(
        &mut self,
        slot: usize,
        stamp: Stamp,
        offset: usize,
        removed: usize,
        bytes: &[u8],
    ) -> Result<(), Full> {
        let node = self.node();
        let (old_len, stamp_off) = (node.value_len(slot), node.stamp_off(slot));
        assert!(offset + removed <= old_len, "a splice outside the value");
        if bytes.len() > removed {
            return self.splice_longer(slot, stamp, offset, removed, bytes);
        }
        self.put_stamp(stamp_off, stamp);
        let at = stamp_off + STAMP_BYTES + offset;
        self.page[at..at + bytes.len()].copy_from_slice(bytes);
        if bytes.len() < removed {
            let shrunk = removed - bytes.len();
            let tail = at + removed..stamp_off + STAMP_BYTES + old_len;
            self.page.copy_within(tail, at + bytes.len());
            let flags = self.node().flags(slot);
            self.put_val(slot, flags, old_len - shrunk);
            self.add_garbage(shrunk);
        }
        Ok(())
    }

    #[cold]
    fn splice_longer(
        &mut self,
        slot: usize,
        stamp: Stamp,
        offset: usize,
        removed: usize,
        bytes: &[u8],
    ) -> Result<(), Full> {
        let old = self.node().value(slot);
        let flags = self.node().flags(slot);
        let mut value = Vec::with_capacity(old.len() + bytes.len());
        value.extend_from_slice(&old[..offset]);
        value.extend_from_slice(bytes);
        value.extend_from_slice(&old[offset + removed..]);
        self.replace(slot, stamp, flags, &value)
    }

    /// Gives the row at `slot` another stamp, flags and value.
    ///
    /// # Errors
    /// `Full`, with the page unchanged.
    pub fn replace(
        &mut self,
        slot: usize,
        stamp: Stamp,
        flags: Flags,
        value: &[u8],
    ) -> Result<(), Full> {
        let node = self.node();
        let old_len = node.value_len(slot);
        let old_flags = node.flags(slot);
        let off = if value.len() <= old_len {
            let off = node.stamp_off(slot);
            self.add_garbage(old_len - value.len());
            off
        } else {
            self.move_entry(slot, STAMP_BYTES + value.len())?
        };
        self.put_stamp(off, stamp);
        self.page[off + STAMP_BYTES..off + STAMP_BYTES + value.len()].copy_from_slice(value);
        self.put_val(slot, flags, value.len());
        self.add_marks(u16::from(old_flags.deleted), u16::from(flags.deleted));
        Ok(())
    }

    /// Gives the row at `slot` another stamp and flags, and its value out, to change bytes of it.
    #[inline]
    pub fn patch(&mut self, slot: usize, stamp: Stamp, flags: Flags) -> &mut [u8] {
        let node = self.node();
        let (old, len, off) = (node.flags(slot), node.value_len(slot), node.stamp_off(slot));
        self.put_stamp(off, stamp);
        if old != flags {
            self.put_val(slot, flags, len);
            self.add_marks(u16::from(old.deleted), u16::from(flags.deleted));
        }
        &mut self.page[off + STAMP_BYTES..][..len]
    }

    /// Removes the entry at `slot`.
    pub fn remove(&mut self, slot: usize) {
        let node = self.node();
        let count = node.count();
        assert!(slot < count, "no slot {slot} in a page of {count}");
        let deleted = u16::from(node.is_leaf() && node.is_deleted(slot));
        let (off, len) = (node.entry_off(slot), node.suffix_len(slot) + node.body_len(slot));
        self.add_marks(deleted, 0);
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        let end = HEADER_BYTES + count * SLOT_BYTES;
        self.page.copy_within(at + SLOT_BYTES..end, at);
        put_u16(self.page, COUNT, count - 1);
        if count == 1 {
            self.reset_heap();
        } else {
            self.free_heap(off, len);
        }
    }

    /// Removes all entries from `slot` on and lays the rest out anew: what stays of a node that was
    /// split.
    pub fn truncate(&mut self, slot: usize) {
        let node = self.node();
        let count = node.count();
        assert!(slot <= count, "no slot {slot} in a page of {count}");
        if node.is_leaf() {
            let deleted = (slot..count).filter(|&gone| node.is_deleted(gone)).count();
            self.add_marks(deleted as u16, 0);
        }
        put_u16(self.page, COUNT, slot);
        if slot == 0 {
            self.reset_heap();
        }
        // Also when nothing was removed, so that the result depends on what remains alone.
        self.compact();
    }

    /// Makes room for a new entry at `slot` and fills in its slot and suffix; gives the offset of
    /// its body.
    pub(crate) fn open_slot(
        &mut self,
        slot: usize,
        key: &[u8],
        body_len: usize,
    ) -> Result<usize, Full> {
        let node = self.node();
        let count = node.count();
        assert!(slot <= count, "no slot {slot} in a page of {count}");
        let end = HEADER_BYTES + count * SLOT_BYTES;
        let contiguous = node.heap_start().saturating_sub(end);
        let mut prefix_len = node.prefix_len();
        let in_order = (prefix_len == 0 || key.starts_with(node.prefix()))
            && contiguous >= SLOT_BYTES + key.len() - prefix_len + body_len;
        // Pages that grow entry by entry would keep the short prefix of their beginning, and with
        // it heads that are all alike; looking again whenever the count doubles costs little.
        let stale =
            count >= 8 && count.is_power_of_two() && node.prefix_with(slot, Some(key)) > prefix_len;
        if !in_order || stale {
            prefix_len = node.prefix_to_fit(slot, key, body_len).ok_or(Full)?;
            let prefix = self.prefix_bytes(prefix_len, key);
            self.rebuild(&prefix, None);
        }
        self.open_slots(slot, 1);
        Ok(self.place(slot, &key[prefix_len..], body_len))
    }

    /// Takes heap space for an entry, fills in its suffix and its slot (value length and flags
    /// zero); gives the offset of its body. There must be room.
    pub(crate) fn place(&mut self, slot: usize, suffix: &[u8], body_len: usize) -> usize {
        let off = self.node().heap_start() - suffix.len() - body_len;
        put_u16(self.page, HEAP_START, off);
        self.page[off..off + suffix.len()].copy_from_slice(suffix);
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        put_u16(self.page, at, off);
        put_u16(self.page, at + SLOT_KEY_LEN, suffix.len());
        put_u16(self.page, at + SLOT_VAL, 0);
        put_u32(self.page, at + SLOT_HEAD, head_of(suffix));
        off + suffix.len()
    }

    /// Gives the entry at `slot` a larger body elsewhere in the page; gives its offset. The new
    /// body's content and the slot's value length are the caller's to write.
    fn move_entry(&mut self, slot: usize, body_len: usize) -> Result<usize, Full> {
        let node = self.node();
        let (off, suffix_len, old_body) =
            (node.entry_off(slot), node.suffix_len(slot), node.body_len(slot));
        let val = node.val(slot);
        let contiguous = node.heap_start() - (HEADER_BYTES + node.count() * SLOT_BYTES);
        let suffix;
        if contiguous >= suffix_len + body_len {
            suffix = node.suffix(slot).to_vec();
            self.free_heap(off, suffix_len + old_body);
        } else {
            let prefix_len = node.prefix_with(0, None);
            let used = node.used_with_prefix(prefix_len);
            if used + body_len - old_body > self.page.len() - HEADER_BYTES {
                return Err(Full);
            }
            suffix = node.key(slot)[prefix_len..].to_vec();
            let prefix = self.prefix_bytes(prefix_len, &[]);
            self.rebuild(&prefix, Some(slot));
        }
        let body = self.place(slot, &suffix, body_len);
        // `place` cleared what it does not know.
        put_u16(self.page, HEADER_BYTES + slot * SLOT_BYTES + SLOT_VAL, usize::from(val));
        Ok(body)
    }

    /// Gives heap bytes back: to the gap when they adjoin it, else to the garbage that a compaction
    /// collects.
    fn free_heap(&mut self, off: usize, len: usize) {
        if off == self.node().heap_start() {
            put_u16(self.page, HEAP_START, off + len);
        } else {
            self.add_garbage(len);
        }
    }

    fn add_garbage(&mut self, len: usize) {
        let garbage = self.node().garbage();
        put_u16(self.page, GARBAGE, garbage + len);
    }

    pub(crate) fn add_marks(&mut self, fewer: u16, more: u16) {
        if fewer != more {
            let marks = self.node().marks() + usize::from(more);
            put_u16(self.page, MARKS, marks.saturating_sub(usize::from(fewer)));
        }
    }

    #[inline]
    pub(crate) fn put_stamp(&mut self, off: usize, stamp: Stamp) {
        let bytes = &mut self.page[off..off + STAMP_BYTES];
        bytes[..6].copy_from_slice(&stamp.writer.0.to_le_bytes()[..6]);
        bytes[6..].copy_from_slice(&stamp.seq.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_val(&mut self, slot: usize, flags: Flags, len: usize) {
        debug_assert!(len <= usize::from(VAL_LEN));
        debug_assert!(flags.to_val() & VAL_DELETED == 0 || self.node().is_leaf());
        put_u16(
            self.page,
            HEADER_BYTES + slot * SLOT_BYTES + SLOT_VAL,
            len | usize::from(flags.to_val()),
        );
    }
}
