//! Rows that move to another page in a split, a merge or a bulk load, with their stamps and marks,
//! as bytes.
//!
//! Layout: node (0 leaf, 1 inner), prefix length, prefix, count, then each entry: suffix length,
//! suffix, and for a leaf flags, writer, seq, value length, value; for an inner node the child.
//! Lengths and numbers are varints.
use crate::edit::{Full, NodeMut};
use crate::limits::usable;
use crate::node::{CHILD_BYTES, Flags, Node, SLOT_BYTES, STAMP_BYTES, Stamp};
use crate::rebuild::{best_prefix, shared};
use std::ops::Range;
use thiserror::Error;
use weir_base::{PageNo, TxnId, varint};

/// Why moved rows could not be loaded; the page is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LoadError {
    /// They do not fit.
    #[error(transparent)]
    Full(#[from] Full),
    /// The bytes are not moved rows.
    #[error("moved rows are malformed at byte {0}")]
    Malformed(usize),
    /// Rows for a leaf were given to an inner node, or the reverse.
    #[error("moved rows are of another kind of node")]
    Kind,
    /// Their keys are not in order, or not all on one side of the page's own.
    #[error("moved rows are out of order")]
    Order,
}

/// One moved entry. The key is `Moved::prefix` and then `suffix`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MovedRow<'a> {
    /// The key behind the common prefix.
    pub suffix: &'a [u8],
    /// A row's flags; none for a separator.
    pub flags: Flags,
    /// A row's stamp; the default for a separator.
    pub stamp: Stamp,
    /// A row's value; empty for a separator.
    pub value: &'a [u8],
    /// A separator's child; `PageNo::NONE` for a row.
    pub child: PageNo,
}

/// Moved rows, decoded as they are walked over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved<'a> {
    /// Whether the entries are separators with children.
    pub inner: bool,
    /// What all keys begin with.
    pub prefix: &'a [u8],
    /// How many entries there are.
    pub count: usize,
    entries: &'a [u8],
    size: usize,
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(varint::take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(bytes)?).ok()
}

fn take_row<'a>(bytes: &mut &'a [u8], inner: bool) -> Option<MovedRow<'a>> {
    let suffix = take_bytes(bytes)?;
    let (flags, stamp, value, child) = (Flags::NONE, Stamp::default(), &[][..], PageNo::NONE);
    let mut row = MovedRow { suffix, flags, stamp, value, child };
    if inner {
        row.child = PageNo(take_u32(bytes)?);
    } else {
        let (&flags, rest) = bytes.split_first()?;
        *bytes = rest;
        row.flags = (flags < 4).then(|| Flags::from_bits(flags))?;
        let writer = TxnId(varint::take(bytes)?);
        row.stamp =
            Stamp { writer: (writer <= TxnId::MAX).then_some(writer)?, seq: take_u32(bytes)? };
        row.value = take_bytes(bytes)?;
    }
    Some(row)
}

/// What a load needs to know of the rows before it touches the page.
struct Measure<'a> {
    first: &'a [u8],
    last: &'a [u8],
    /// Bytes of suffixes and bodies.
    entry_bytes: usize,
}

impl<'a> Moved<'a> {
    /// Reads the beginning; entries are decoded as they are walked over.
    ///
    /// # Errors
    /// `Malformed`.
    pub fn parse(bytes: &'a [u8]) -> Result<Moved<'a>, LoadError> {
        Self::begin(bytes).ok_or(LoadError::Malformed(0))
    }

    fn begin(bytes: &'a [u8]) -> Option<Moved<'a>> {
        let (&kind, mut rest) = bytes.split_first()?;
        let inner = (kind < 2).then_some(kind == 1)?;
        let prefix = take_bytes(&mut rest)?;
        let count = usize::try_from(varint::take(&mut rest)?).ok()?;
        Some(Moved { inner, prefix, count, entries: rest, size: bytes.len() })
    }

    /// The entries in key order. After a malformed one, with its offset, the walk ends.
    pub fn rows(self) -> impl Iterator<Item = Result<MovedRow<'a>, LoadError>> {
        let (mut rest, mut left) = (self.entries, self.count);
        std::iter::from_fn(move || {
            if left == 0 {
                // Bytes behind the last entry are an error of their own.
                let more = !std::mem::take(&mut rest).is_empty();
                return more.then_some(Err(LoadError::Malformed(self.size - 1)));
            }
            let offset = self.size - rest.len();
            left -= 1;
            let row = take_row(&mut rest, self.inner).ok_or(LoadError::Malformed(offset));
            if row.is_err() {
                (rest, left) = (&[], 0);
            }
            Some(row)
        })
    }

    fn measure(self) -> Result<Measure<'a>, LoadError> {
        let mut measure = Measure { first: &[], last: &[], entry_bytes: 0 };
        for (index, row) in self.rows().enumerate() {
            let row = row?;
            if index == 0 {
                measure.first = row.suffix;
            } else if row.suffix <= measure.last {
                return Err(LoadError::Order);
            }
            measure.last = row.suffix;
            let body = if self.inner { CHILD_BYTES } else { STAMP_BYTES + row.value.len() };
            measure.entry_bytes += row.suffix.len() + body;
        }
        Ok(measure)
    }
}

impl Node<&[u8]> {
    /// Appends the entries of these slots as moved rows.
    pub fn dump(self, slots: Range<usize>, out: &mut Vec<u8>) {
        let slots = slots.start..slots.end.min(self.count());
        out.push(u8::from(self.is_inner()));
        put_bytes(out, self.prefix());
        varint::put(out, slots.len() as u64);
        for slot in slots {
            put_bytes(out, self.suffix(slot));
            if self.is_inner() {
                varint::put(out, u64::from(self.child(slot + 1).0));
            } else {
                let stamp = self.stamp(slot);
                out.push(self.flags(slot).to_bits());
                varint::put(out, stamp.writer.0);
                varint::put(out, u64::from(stamp.seq));
                put_bytes(out, self.value(slot));
            }
        }
    }
}

impl NodeMut<'_> {
    /// Adds moved rows, which must lie all before or all after the page's own, and lays the page
    /// out anew with the longest prefix. Rows of a split go to an empty page; rows of a merge to
    /// one that has some.
    ///
    /// # Errors
    /// `LoadError`, with the page unchanged.
    pub fn load(&mut self, moved: Moved<'_>) -> Result<(), LoadError> {
        let node = self.node();
        if node.is_inner() != moved.inner || !(node.is_inner() || node.is_leaf()) {
            return Err(LoadError::Kind);
        }
        let measure = moved.measure()?;
        if moved.count == 0 {
            return Ok(());
        }
        let whole = |suffix: &[u8]| [moved.prefix, suffix].concat();
        let (mut first, mut last) = (whole(measure.first), whole(measure.last));
        let own = node.count();
        let mut slot = 0;
        if own != 0 {
            let (own_first, own_last) = (node.key(0), node.key(own - 1));
            if own_last < first {
                (slot, first) = (own, own_first);
            } else if last < own_first {
                last = own_last;
            } else {
                return Err(LoadError::Order);
            }
        }
        let prefix_len = best_prefix(&first, &last, own + moved.count);
        let moved_bytes = measure.entry_bytes + moved.count * (moved.prefix.len() + SLOT_BYTES);
        let own_bytes = if own == 0 { prefix_len } else { node.used_with_prefix(prefix_len) };
        if own_bytes + moved_bytes - moved.count * prefix_len > usable(self.page.len()) {
            return Err(Full.into());
        }
        self.rebuild(&first[..prefix_len], None);
        self.place_moved(slot, moved, prefix_len)
    }

    /// Puts rows at `slot` and on; the page has been laid out with a prefix of this length and has
    /// room.
    fn place_moved(
        &mut self,
        slot: usize,
        moved: Moved<'_>,
        prefix_len: usize,
    ) -> Result<(), LoadError> {
        self.open_slots(slot, moved.count);
        let give_back = moved.prefix.get(prefix_len..).unwrap_or_default();
        let take = prefix_len.saturating_sub(moved.prefix.len());
        let mut suffix = Vec::new();
        for (slot, row) in (slot..).zip(moved.rows()) {
            let row = row?;
            suffix.clear();
            suffix.extend_from_slice(give_back);
            suffix.extend_from_slice(&row.suffix[take..]);
            if moved.inner {
                let off = self.place(slot, &suffix, CHILD_BYTES);
                self.page[off..off + CHILD_BYTES].copy_from_slice(&row.child.0.to_le_bytes());
            } else {
                let off = self.place(slot, &suffix, STAMP_BYTES + row.value.len());
                self.put_stamp(off, row.stamp);
                let value = off + STAMP_BYTES;
                self.page[value..value + row.value.len()].copy_from_slice(row.value);
                self.put_val(slot, row.flags, row.value.len());
                self.add_marks(0, u16::from(row.flags.deleted));
            }
        }
        Ok(())
    }
}

/// Bytes that the entries of two neighbouring nodes take in one page, with `separator` (and the
/// right one's leftmost child) between them for inner nodes.
pub(crate) fn merged_bytes(left: Node<&[u8]>, right: Node<&[u8]>, separator: &[u8]) -> usize {
    let inner = left.is_inner();
    let count = left.count() + right.count() + usize::from(inner);
    let whole = left.used_with_prefix(0) + right.used_with_prefix(0);
    let between = if inner { SLOT_BYTES + separator.len() + CHILD_BYTES } else { 0 };
    let first = [left, right].into_iter().find(|node| node.count() != 0);
    let last = [right, left].into_iter().find(|node| node.count() != 0);
    let (Some(first), Some(last)) = (first, last) else {
        return whole + between;
    };
    let mut prefix_len =
        if count < 2 { 0 } else { shared(&first.key(0), &last.key(last.count() - 1)) };
    if inner {
        prefix_len = prefix_len.min(shared(&first.key(0), separator));
    }
    whole + between - prefix_len * count.saturating_sub(1)
}

/// How many entries of `right` may come to its neighbour `left`, from the first on, until that is
/// filled to `most` bytes or another one does not fit: rows of a leaf, children of an inner node,
/// with `separator` between the two. All of them (`entries`): the two fit into one page.
#[must_use]
pub fn fill_from(left: Node<&[u8]>, right: Node<&[u8]>, separator: &[u8], most: usize) -> usize {
    let (own, page_room) = (left.count(), usable(left.bytes().len()));
    // The key that comes with the entry: an inner node's first child comes with the separator.
    let key = |at: usize| match (right.is_inner(), at) {
        (false, _) => right.key(at),
        (true, 0) => separator.to_vec(),
        (true, _) => right.key(at - 1),
    };
    let mut first = (own > 0).then(|| left.key(0));
    let (mut whole, mut used) = (left.used_with_prefix(0), left.used_bytes());
    for at in 0..entries(right) {
        if used >= most {
            return at;
        }
        let key = key(at);
        let body = if right.is_inner() { CHILD_BYTES } else { right.body_len(at) };
        whole += SLOT_BYTES + key.len() + body;
        let prefix = match &first {
            Some(first) => shared(first, &key),
            None => 0,
        };
        first.get_or_insert(key);
        used = whole - prefix * (own + at);
        if used > page_room {
            return at;
        }
    }
    entries(right)
}

/// Rows of a leaf, children of an inner node.
#[must_use]
pub fn entries(node: Node<&[u8]>) -> usize {
    node.count() + usize::from(node.is_inner())
}
