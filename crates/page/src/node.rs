//! Reading a node of a tree: header fields, search, rows and children. Total on any bytes (PAGE-5).
use crate::bytes::{Bytes, cut};
use crate::header::{
    COUNT, DATA_LEN, GARBAGE, HEADER_BYTES, HEAP_START, KIND, Kind, LEVEL, LINK, LSN, MARKS,
    PAGE_NO, PREFIX_LEN, PREFIX_OFF, TREE,
};
use crate::limits::usable;
use std::cmp::Ordering;
use weir_base::{Lsn, PageNo, TreeId, TxnId};

/// Bytes of a slot: offset, suffix length, value length with flags (2 each), head (4).
pub(crate) const SLOT_BYTES: usize = 10;
/// Bytes of a row's stamp: 6 of the writer, 4 of the sequence number.
pub(crate) const STAMP_BYTES: usize = 10;
/// Bytes of a child's number in an inner entry.
pub(crate) const CHILD_BYTES: usize = 4;
pub(crate) const SLOT_KEY_LEN: usize = 2;
pub(crate) const SLOT_VAL: usize = 4;
pub(crate) const SLOT_HEAD: usize = 6;
pub(crate) const VAL_DELETED: u16 = 1 << 15;
pub(crate) const VAL_OVERFLOW: u16 = 1 << 14;
pub(crate) const VAL_LEN: u16 = VAL_OVERFLOW - 1;

/// Which transaction wrote a row last, and with which of its changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Stamp {
    /// The transaction; 48 bits are kept.
    pub writer: TxnId,
    /// The number of the change within the transaction.
    pub seq: u32,
}

/// What a row's slot says besides its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Flags {
    /// The row is deleted, but still here for those that may see it.
    pub deleted: bool,
    /// What the leaf holds is a reference to overflow pages.
    pub overflow: bool,
}

impl Flags {
    /// A row that is neither deleted nor elsewhere.
    pub const NONE: Flags = Flags { deleted: false, overflow: false };
    /// A row whose value lies in overflow pages.
    pub const OVERFLOW: Flags = Flags { deleted: false, overflow: true };

    /// Bit 0 deleted, bit 1 overflow.
    #[must_use]
    pub fn to_bits(self) -> u8 {
        u8::from(self.deleted) | (u8::from(self.overflow) << 1)
    }

    /// The reverse of `to_bits`; other bits count for nothing.
    #[must_use]
    pub fn from_bits(bits: u8) -> Flags {
        Flags { deleted: bits & 1 != 0, overflow: bits & 2 != 0 }
    }

    pub(crate) fn to_val(self) -> u16 {
        (u16::from(self.deleted) * VAL_DELETED) | (u16::from(self.overflow) * VAL_OVERFLOW)
    }
}

/// The first four bytes of a key's suffix as a number that orders as they do; short ones padded
/// with zeros.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    if let Some(four) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*four);
    }
    let byte = |at: usize| suffix.get(at).map_or(0, |&byte| u32::from(byte) << (24 - 8 * at));
    byte(0) | byte(1) | byte(2)
}

/// A page read as a node. Header fields can be read of any page.
#[derive(Clone, Copy)]
pub struct Node<B> {
    bytes: B,
}

impl<B: Bytes> Node<B> {
    /// The node in these bytes. Nothing is checked here.
    #[inline]
    pub fn new(bytes: B) -> Node<B> {
        Node { bytes }
    }

    /// The bytes that are read.
    #[inline]
    pub fn bytes(self) -> B {
        self.bytes
    }

    /// What the page is used for; `None` when it says nothing known.
    #[inline]
    pub fn kind(self) -> Option<Kind> {
        Kind::from_u8(self.bytes.u8_at(KIND))
    }

    /// Whether this is a node with children.
    #[inline]
    pub fn is_inner(self) -> bool {
        self.bytes.u8_at(KIND) == Kind::Inner as u8
    }

    /// Whether this is a node with rows.
    #[inline]
    pub fn is_leaf(self) -> bool {
        self.bytes.u8_at(KIND) == Kind::Leaf as u8
    }

    /// Whether this is a node of this tree and level: what a parent says of its child.
    #[inline]
    pub fn is_node_of(self, tree: TreeId, level: u8) -> bool {
        let kind = if level == 0 { Kind::Leaf } else { Kind::Inner };
        self.bytes.u8_at(KIND) == kind as u8 && self.level() == level && self.tree() == tree
    }

    /// Height above the leaves, which have 0.
    #[inline]
    pub fn level(self) -> u8 {
        self.bytes.u8_at(LEVEL)
    }

    /// The page's own number.
    #[inline]
    pub fn page_no(self) -> PageNo {
        PageNo(self.bytes.u32_at(PAGE_NO))
    }

    /// End of the redo group that changed the page last.
    #[inline]
    pub fn lsn(self) -> Lsn {
        Lsn(self.bytes.u64_at(LSN))
    }

    /// The tree that the page belongs to.
    #[inline]
    pub fn tree(self) -> TreeId {
        TreeId(self.bytes.u64_at(TREE))
    }

    /// An inner node's leftmost child, an overflow page's successor.
    #[inline]
    pub fn link(self) -> PageNo {
        PageNo(self.bytes.u32_at(LINK))
    }

    /// Rows marked deleted.
    #[inline]
    pub fn marks(self) -> usize {
        usize::from(self.bytes.u16_at(MARKS))
    }

    /// Bytes in use behind the header of an overflow page, at most those that there are.
    #[inline]
    pub fn data_len(self) -> usize {
        usize::from(self.bytes.u16_at(DATA_LEN)).min(self.bytes.size().saturating_sub(HEADER_BYTES))
    }

    /// Appends an overflow page's data.
    pub fn data_into(self, out: &mut Vec<u8>) {
        self.data_behind_into(0, out);
    }

    /// Appends an overflow page's data behind its first `skipped` bytes.
    pub fn data_behind_into(self, skipped: usize, out: &mut Vec<u8>) {
        let len = self.data_len().saturating_sub(skipped);
        self.bytes.append_to(HEADER_BYTES + skipped, len, out);
    }

    /// Rows of a leaf, separators of an inner node (it has one child more). Never more than the
    /// page has room for.
    #[inline]
    pub fn count(self) -> usize {
        usize::from(self.bytes.u16_at(COUNT))
            .min(self.bytes.size().saturating_sub(HEADER_BYTES) / SLOT_BYTES)
    }

    /// Bytes of the prefix that all keys of the page share and that is stored once.
    #[inline]
    pub fn prefix_len(self) -> usize {
        usize::from(self.bytes.u16_at(PREFIX_LEN))
    }

    #[inline]
    pub(crate) fn prefix_off(self) -> usize {
        usize::from(self.bytes.u16_at(PREFIX_OFF))
    }

    #[inline]
    pub(crate) fn heap_start(self) -> usize {
        usize::from(self.bytes.u16_at(HEAP_START))
    }

    #[inline]
    pub(crate) fn garbage(self) -> usize {
        usize::from(self.bytes.u16_at(GARBAGE))
    }

    /// Bytes that new entries can have, after compaction if need be.
    #[inline]
    pub fn free_bytes(self) -> usize {
        usable(self.bytes.size().max(HEADER_BYTES)).saturating_sub(self.used_bytes())
    }

    /// Bytes that entries, slots and the prefix take.
    #[inline]
    pub fn used_bytes(self) -> usize {
        let heap = self.bytes.size().saturating_sub(self.heap_start());
        (self.count() * SLOT_BYTES + heap).saturating_sub(self.garbage())
    }

    #[inline]
    pub(crate) fn slot_at(self, slot: usize) -> usize {
        HEADER_BYTES + slot * SLOT_BYTES
    }

    #[inline]
    pub(crate) fn entry_off(self, slot: usize) -> usize {
        usize::from(self.bytes.u16_at(self.slot_at(slot)))
    }

    /// Bytes of the key behind the page's prefix.
    #[inline]
    pub(crate) fn suffix_len(self, slot: usize) -> usize {
        usize::from(self.bytes.u16_at(self.slot_at(slot) + SLOT_KEY_LEN))
    }

    #[inline]
    pub(crate) fn val(self, slot: usize) -> u16 {
        self.bytes.u16_at(self.slot_at(slot) + SLOT_VAL)
    }

    #[inline]
    pub(crate) fn head(self, slot: usize) -> u32 {
        self.bytes.u32_at(self.slot_at(slot) + SLOT_HEAD)
    }

    /// Bytes of the entry in the heap behind its suffix.
    #[inline]
    pub(crate) fn body_len(self, slot: usize) -> usize {
        if self.is_inner() { CHILD_BYTES } else { STAMP_BYTES + self.value_len(slot) }
    }

    /// Where `key` stands: `Ok` with its slot, or `Err` with the slot that it would take.
    ///
    /// # Errors
    /// `Err` is the answer "not here", with the number of keys that are smaller.
    #[inline]
    pub fn search(self, key: &[u8]) -> Result<usize, usize> {
        let count = self.count();
        let prefix_len = self.prefix_len();
        let mut suffix = key;
        if prefix_len != 0 {
            let start = &key[..prefix_len.min(key.len())];
            match self.bytes.compare(self.prefix_off(), prefix_len, start) {
                Ordering::Equal => suffix = key.get(prefix_len..).unwrap_or_default(),
                Ordering::Greater => return Err(0),
                Ordering::Less => return Err(count),
            }
        }
        let head = head_of(suffix);
        let low = self.first_head(0, count, i64::from(head));
        if low >= count || self.head(low) != head {
            return Err(low);
        }
        match self.compare_behind_head(low, suffix) {
            Ordering::Equal => Ok(low),
            Ordering::Greater => Err(low),
            Ordering::Less => self.search_alike(low + 1, count, head, suffix),
        }
    }

    /// The first slot in `low..high` whose head is at least `bound`. Steps by arithmetic instead of
    /// branches: they cannot be predicted, and a miss costs more than a whole step. (A shift of the
    /// difference, because the compiler turns a comparison back into a branch.)
    #[inline(always)]
    fn first_head(self, low: usize, high: usize, bound: i64) -> usize {
        let mut base = low;
        let mut left = high - low;
        while left > 1 {
            let half = left / 2;
            let below = (i64::from(self.head(base + half)) - bound) >> 63;
            base += half & below as usize;
            left -= half;
        }
        base + usize::from(left == 1 && i64::from(self.head(base)) < bound)
    }

    /// Goes on among the slots from `low` whose heads equal that of `suffix`.
    fn search_alike(
        self,
        mut low: usize,
        count: usize,
        head: u32,
        suffix: &[u8],
    ) -> Result<usize, usize> {
        let mut high = self.first_head(low, count, i64::from(head) + 1);
        while low < high {
            let mid = low + (high - low) / 2;
            match self.compare_behind_head(mid, suffix) {
                Ordering::Equal => return Ok(mid),
                Ordering::Less => low = mid + 1,
                Ordering::Greater => high = mid,
            }
        }
        Err(low)
    }

    /// Orders the slot's suffix against one with an equal head. When either has at most four bytes
    /// it is the other's beginning padded with zeros, so that the lengths decide.
    #[inline]
    fn compare_behind_head(self, slot: usize, suffix: &[u8]) -> Ordering {
        let len = self.suffix_len(slot);
        if len <= 4 || suffix.len() <= 4 {
            return len.cmp(&suffix.len());
        }
        self.bytes.compare(self.entry_off(slot) + 4, len - 4, &suffix[4..])
    }

    /// Which child of an inner node leads to `key`: 0 is the leftmost.
    #[inline]
    pub fn child_index(self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(slot) => slot + 1,
            Err(slot) => slot,
        }
    }

    /// Child `index` of an inner node, 0 (the leftmost) to `count`.
    #[inline]
    pub fn child(self, index: usize) -> PageNo {
        if index == 0 {
            return self.link();
        }
        let slot = index - 1;
        PageNo(self.bytes.u32_at(self.entry_off(slot) + self.suffix_len(slot)))
    }

    /// Puts the slot's whole key in `out`, replacing what was there.
    pub fn key_into(self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        self.bytes.append_to(self.prefix_off(), self.prefix_len(), out);
        self.bytes.append_to(self.entry_off(slot), self.suffix_len(slot), out);
    }

    /// The slot's whole key.
    pub fn key(self, slot: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.key_len(slot));
        self.key_into(slot, &mut out);
        out
    }

    /// Bytes of the slot's whole key.
    #[inline]
    pub fn key_len(self, slot: usize) -> usize {
        self.prefix_len() + self.suffix_len(slot)
    }

    /// Orders the slot's whole key against `key`.
    pub fn compare_key(self, slot: usize, key: &[u8]) -> Ordering {
        let prefix_len = self.prefix_len();
        let start = &key[..prefix_len.min(key.len())];
        self.bytes.compare(self.prefix_off(), prefix_len, start).then_with(|| {
            let suffix = key.get(prefix_len..).unwrap_or_default();
            self.bytes.compare(self.entry_off(slot), self.suffix_len(slot), suffix)
        })
    }

    /// Puts the row's value (as it lies in the leaf) in `out`, replacing what was there.
    #[inline]
    pub fn value_into(self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        self.bytes.append_to(self.value_off(slot), self.value_len(slot), out);
    }

    /// Bytes of the row's value in the leaf.
    #[inline]
    pub fn value_len(self, slot: usize) -> usize {
        usize::from(self.val(slot) & VAL_LEN)
    }

    #[inline]
    pub(crate) fn stamp_off(self, slot: usize) -> usize {
        self.entry_off(slot) + self.suffix_len(slot)
    }

    #[inline]
    pub(crate) fn value_off(self, slot: usize) -> usize {
        self.stamp_off(slot) + STAMP_BYTES
    }

    /// The transaction that wrote the row last.
    #[inline]
    pub fn stamp(self, slot: usize) -> Stamp {
        let off = self.stamp_off(slot);
        Stamp {
            writer: TxnId(self.bytes.u64_at(off) & TxnId::MAX.0),
            seq: self.bytes.u32_at(off + 6),
        }
    }

    /// What the row's slot says of it.
    #[inline]
    pub fn flags(self, slot: usize) -> Flags {
        let val = self.val(slot);
        Flags { deleted: val & VAL_DELETED != 0, overflow: val & VAL_OVERFLOW != 0 }
    }

    /// Whether the row is marked deleted.
    #[inline]
    pub fn is_deleted(self, slot: usize) -> bool {
        self.flags(slot).deleted
    }

    /// Whether the row's value lies in overflow pages.
    #[inline]
    pub fn is_overflow(self, slot: usize) -> bool {
        self.flags(slot).overflow
    }
}

impl<'a> Node<&'a [u8]> {
    /// The prefix that all keys of the page share.
    #[inline]
    pub fn prefix(self) -> &'a [u8] {
        cut(self.bytes, self.prefix_off(), self.prefix_len())
    }

    /// The slot's key behind the prefix.
    #[inline]
    pub fn suffix(self, slot: usize) -> &'a [u8] {
        cut(self.bytes, self.entry_off(slot), self.suffix_len(slot))
    }

    /// The row's value as it lies in the leaf.
    #[inline]
    pub fn value(self, slot: usize) -> &'a [u8] {
        cut(self.bytes, self.value_off(slot), self.value_len(slot))
    }

    /// An overflow page's data.
    #[inline]
    pub fn data(self) -> &'a [u8] {
        cut(self.bytes, HEADER_BYTES, self.data_len())
    }
}
