//! What an operation does to its page: the one function for forward work and for recovery
//! (CHANGE-2).
use crate::op::Op;
use std::cmp::Ordering;
use thiserror::Error;
use weir_base::TxnId;
use weir_page::{
    Full, HEADER_BYTES, Kind, LoadError, Moved, Node, NodeMut, Stamp, format, set_data_len,
    set_link,
};

/// Why an operation does not apply to its page; the page is as it was. Forward work asks before it
/// makes an operation, so in recovery this means that the page or the log is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ApplyError {
    /// The page is of another kind, or of none.
    #[error("{op} does not apply to a page of kind {found:?}")]
    Kind {
        /// The operation's name.
        op: &'static str,
        /// The page's kind.
        found: Option<Kind>,
    },
    /// The key is not in the page.
    #[error("{op}: the key is not in the page")]
    Missing {
        /// The operation's name.
        op: &'static str,
    },
    /// The separator is in the page already.
    #[error("the separator is in the page already")]
    Exists,
    /// A range lies outside what it is in.
    #[error("{op}: range ends at {end}, beyond {limit}")]
    Range {
        /// The operation's name.
        op: &'static str,
        /// Where the range ends, in bytes or bits.
        end: usize,
        /// The last end that is possible.
        limit: usize,
    },
    /// There is no room.
    #[error(transparent)]
    Full(#[from] Full),
    /// Rows cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Applies `op` to its page: `page` holds the bytes of `op.page()`. Rows it changes get `writer`,
/// the group's transaction. The page's LSN and checksum are the caller's. Operations that change no
/// page do nothing.
///
/// # Errors
/// `ApplyError`, with the page unchanged.
pub fn apply(op: &Op<'_>, writer: TxnId, page: &mut [u8]) -> Result<(), ApplyError> {
    apply_at(op, writer, page, None)
}

/// As `apply`, with the slot that a search for the operation's key gave (its own, or the one that
/// it would take).
///
/// # Errors
/// `ApplyError`, with the page unchanged.
#[inline]
pub fn apply_at(
    op: &Op<'_>,
    writer: TxnId,
    page: &mut [u8],
    slot: Option<usize>,
) -> Result<(), ApplyError> {
    match *op {
        Op::Insert { .. }
        | Op::Update { .. }
        | Op::Patch { .. }
        | Op::Flip { .. }
        | Op::Restamp { .. }
        | Op::Remove { .. } => apply_row(op, writer, page, slot),
        Op::InsertChild { .. }
        | Op::RemoveChild { .. }
        | Op::Load { .. }
        | Op::TruncateFrom { .. } => apply_node(op, page, slot),
        Op::Undo { .. }
        | Op::UndoPages { .. }
        | Op::UndoTree { .. }
        | Op::UndoStored(_)
        | Op::Prepared { .. }
        | Op::Undone { .. }
        | Op::UndoReset
        | Op::Purge(_) => Ok(()),
        _ => apply_page(op, page),
    }
}

/// Where the key stands in the page, or would stand.
#[inline]
fn find(page: &[u8], key: &[u8], slot: Option<usize>) -> Result<usize, usize> {
    let node = Node::new(page);
    let found = match slot {
        Some(slot) if slot < node.count() && node.compare_key(slot, key) == Ordering::Equal => {
            Ok(slot)
        }
        Some(slot) => Err(slot),
        None => node.search(key),
    };
    debug_assert_eq!(found, node.search(key), "the slot given is not the key's");
    found
}

fn within(op: &'static str, start: usize, len: usize, limit: usize) -> Result<(), ApplyError> {
    let end = start.saturating_add(len);
    if end <= limit { Ok(()) } else { Err(ApplyError::Range { op, end, limit }) }
}

fn of_kind(op: &'static str, page: &[u8], allowed: &[Kind]) -> Result<(), ApplyError> {
    match Node::new(page).kind() {
        Some(kind) if allowed.contains(&kind) => Ok(()),
        found => Err(ApplyError::Kind { op, found }),
    }
}

fn apply_row(
    op: &Op<'_>,
    writer: TxnId,
    page: &mut [u8],
    slot: Option<usize>,
) -> Result<(), ApplyError> {
    let name = op.name();
    of_kind(name, page, &[Kind::Leaf])?;
    let found = find(page, op.key().unwrap_or_default(), slot);
    let mut node = NodeMut::new(page);
    if let Op::Insert { key, seq, flags, value, .. } = *op {
        let stamp = Stamp { writer, seq };
        match found {
            Ok(slot) => node.replace(slot, stamp, flags, value)?,
            Err(slot) => node.insert(slot, key, stamp, flags, value)?,
        }
        return Ok(());
    }
    let slot = found.map_err(|_| ApplyError::Missing { op: name })?;
    match *op {
        Op::Update { seq, offset, removed, bytes, .. } => {
            within(name, offset, removed, node.node().value_len(slot))?;
            node.splice(slot, Stamp { writer, seq }, offset, removed, bytes)?;
        }
        Op::Patch { seq, flags, patches, .. } => {
            within(name, 0, patches.end(), node.node().value_len(slot))?;
            patches.apply(node.patch(slot, Stamp { writer, seq }, flags));
        }
        Op::Flip { seq, flags, flips, .. } => {
            within(name, 0, flips.end(), node.node().value_len(slot))?;
            flips.flip(node.patch(slot, Stamp { writer, seq }, flags));
        }
        Op::Restamp { stamp, .. } => node.splice(slot, stamp, 0, 0, &[])?,
        _ => node.remove(slot),
    }
    Ok(())
}

fn apply_node(op: &Op<'_>, page: &mut [u8], slot: Option<usize>) -> Result<(), ApplyError> {
    let name = op.name();
    let inner_only = matches!(op, Op::InsertChild { .. } | Op::RemoveChild { .. });
    of_kind(name, page, if inner_only { &[Kind::Inner] } else { &[Kind::Inner, Kind::Leaf] })?;
    if let Op::Load { rows, .. } = *op {
        return Ok(NodeMut::new(page).load(Moved::parse(rows)?)?);
    }
    let found = find(page, op.key().unwrap_or_default(), slot);
    let mut node = NodeMut::new(page);
    match (*op, found) {
        (Op::InsertChild { key, child, .. }, Err(slot)) => {
            node.insert_child_at(slot, key, child)?
        }
        (Op::InsertChild { .. }, Ok(_)) => return Err(ApplyError::Exists),
        (Op::RemoveChild { .. }, Ok(slot)) => node.remove_child(slot),
        (Op::RemoveChild { .. }, Err(_)) => return Err(ApplyError::Missing { op: name }),
        (_, Ok(slot) | Err(slot)) => node.truncate(slot),
    }
    Ok(())
}

fn apply_page(op: &Op<'_>, page: &mut [u8]) -> Result<(), ApplyError> {
    let name = op.name();
    let room = page.len() - HEADER_BYTES;
    match *op {
        Op::Init { page: page_no, kind, level, tree } => format(page, kind, level, tree, page_no),
        Op::SetLink { link, .. } => {
            of_kind(name, page, &[Kind::Inner, Kind::Overflow])?;
            set_link(page, link);
        }
        Op::OverflowData { next, bytes, .. } => {
            of_kind(name, page, &[Kind::Overflow])?;
            within(name, 0, bytes.len(), room)?;
            set_link(page, next);
            set_data_len(page, bytes.len());
            let (data, unused) = page[HEADER_BYTES..].split_at_mut(bytes.len());
            data.copy_from_slice(bytes);
            unused.fill(0);
        }
        Op::MapSet { first_bit, count, value, .. } => {
            of_kind(name, page, &[Kind::SpaceMap])?;
            let (first, count) = (first_bit as usize, count as usize);
            within(name, first, count, room * 8)?;
            set_bits(&mut page[HEADER_BYTES..], first, count, value);
        }
        Op::WriteAt { offset, bytes, .. } => {
            of_kind(name, page, &[Kind::Meta])?;
            within(name, offset, bytes.len(), page.len())?;
            if offset < HEADER_BYTES {
                return Err(ApplyError::Range { op: name, end: offset, limit: HEADER_BYTES });
            }
            page[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        _ => {}
    }
    Ok(())
}

fn set_bits(bytes: &mut [u8], first: usize, count: usize, value: bool) {
    for bit in first..first + count {
        let mask = 1 << (bit % 8);
        if value {
            bytes[bit / 8] |= mask;
        } else {
            bytes[bit / 8] &= !mask;
        }
    }
}

/// Whether a bit of a space map is set; `None` beyond the page.
#[must_use]
pub fn map_bit(page: &[u8], bit: u32) -> Option<bool> {
    let byte = page.get(HEADER_BYTES + bit as usize / 8)?;
    Some(byte >> (bit % 8) & 1 != 0)
}
