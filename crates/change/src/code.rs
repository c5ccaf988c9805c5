//! Groups as bytes.
//!
//! A body is a header (flags, transaction when flag 1 is set) and operations: a tag (`TAG_`) and
//! its fields in the order of `Op`. Numbers and lengths are varints; keys are whole keys.
use crate::flips::Flips;
use crate::op::{Before, Header, Op, Purge, Stored};
use crate::patches::Patches;
use thiserror::Error;
use weir_base::{PageNo, TreeId, TxnId, varint};
use weir_page::{Flags, Kind, Stamp};

/// A body has at least this many bytes, so that its frame can hold what the log needs.
pub const BODY_BYTES_MIN: usize = 7;

const TAG_NOP: u8 = 0;
const TAG_INIT: u8 = 1;
const TAG_INSERT: u8 = 2;
const TAG_PATCH: u8 = 3;
const TAG_UPDATE: u8 = 4;
const TAG_RESTAMP: u8 = 7;
const TAG_REMOVE: u8 = 8;
const TAG_INSERT_CHILD: u8 = 9;
const TAG_REMOVE_CHILD: u8 = 10;
const TAG_SET_LINK: u8 = 11;
const TAG_LOAD: u8 = 12;
const TAG_TRUNCATE_FROM: u8 = 13;
const TAG_OVERFLOW_DATA: u8 = 14;
const TAG_MAP_SET: u8 = 15;
const TAG_MAP_CLEAR: u8 = 16;
const TAG_WRITE_AT: u8 = 17;
const TAG_UNDO_ABSENT: u8 = 18;
const TAG_UNDO_ROW: u8 = 19;
const TAG_UNDO_PAGES: u8 = 22;
const TAG_PURGE_CHAIN: u8 = 23;
const TAG_PURGE_ROW: u8 = 24;
const TAG_PURGE_TREE: u8 = 25;
const TAG_UNDONE: u8 = 26;
const TAG_UNDO_RESET: u8 = 27;
const TAG_UNDO_TREE: u8 = 28;
const TAG_PREPARED: u8 = 29;
const TAG_UNDO_STORED: u8 = 30;
const TAG_PURGE_STORED: u8 = 31;
/// Undo of the operation that follows, which has key and number.
const TAG_UNDO_NEXT_ABSENT: u8 = 32;
const TAG_UNDO_NEXT_ROW: u8 = 33;
const TAG_FLIP: u8 = 34;

const GROUP_TXN: u64 = 1;
const GROUP_COMMITS: u64 = 2;
const GROUP_ENDED: u64 = 4;
const GROUP_UNDO: u64 = 8;

/// The bytes are not a group's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("malformed redo group at byte {offset} of its body")]
pub struct DecodeError {
    /// Where the part begins that cannot be read.
    pub offset: usize,
}

impl Header {
    /// Appends the header: the beginning of a body.
    pub fn encode(self, out: &mut Vec<u8>) {
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        let flags = bit(self.txn.is_some(), GROUP_TXN)
            | bit(self.commits, GROUP_COMMITS)
            | bit(self.ended, GROUP_ENDED)
            | bit(self.undo, GROUP_UNDO);
        varint::put(out, flags);
        if let Some(txn) = self.txn {
            varint::put(out, txn.0);
        }
    }

    #[inline]
    fn take(bytes: &mut &[u8]) -> Option<Header> {
        let flags = varint::take(bytes)?;
        if flags > GROUP_TXN | GROUP_COMMITS | GROUP_ENDED | GROUP_UNDO {
            return None;
        }
        let txn = if flags & GROUP_TXN != 0 { Some(take_txn(bytes)?) } else { None };
        Some(Header {
            txn,
            commits: flags & GROUP_COMMITS != 0,
            ended: flags & GROUP_ENDED != 0,
            undo: flags & GROUP_UNDO != 0,
        })
    }
}

/// Splits a body into its header and its operations.
///
/// # Errors
/// When the header cannot be read. The operations are read, and may fail, as they are walked over.
#[inline]
pub fn decode(body: &[u8]) -> Result<(Header, Ops<'_>), DecodeError> {
    let mut rest = body;
    let header = Header::take(&mut rest).ok_or(DecodeError { offset: 0 })?;
    Ok((header, Ops { rest, body_len: body.len() }))
}

impl Op<'_> {
    /// Pads a body to the length that the log asks for: the last step of making one.
    pub fn pad(body: &mut Vec<u8>) {
        let len = body.len().max(BODY_BYTES_MIN);
        body.resize(len, TAG_NOP);
    }

    /// Appends the operation.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put { out };
        match *self {
            Op::Init { page, kind, level, tree } => {
                put.head(TAG_INIT, page);
                put.out.extend_from_slice(&[kind as u8, level]);
                put.number(tree.0);
            }
            Op::Insert { page, key, seq, flags, value } => {
                put.row(TAG_INSERT, page, key, seq);
                put.out.push(flags.to_bits());
                put.bytes(value);
            }
            Op::Update { page, key, seq, offset, removed, bytes } => {
                put.row(TAG_UPDATE, page, key, seq);
                put.number(offset as u64);
                put.number(removed as u64);
                put.bytes(bytes);
            }
            Op::Patch { page, key, seq, flags, patches } => {
                put.row(TAG_PATCH, page, key, seq);
                put.out.push(flags.to_bits());
                patches.put(put.out);
            }
            Op::Flip { page, tree, key, seq, flags, old_flags, stamp, flips } => {
                put.row(TAG_FLIP, page, key, seq);
                put.number(tree.0);
                put.stamp(stamp);
                put.out.push(flags.to_bits() | old_flags.to_bits() << 2);
                flips.put(put.out);
            }
            Op::Restamp { page, key, stamp } => {
                put.keyed(TAG_RESTAMP, page, key);
                put.stamp(stamp);
            }
            Op::Remove { page, key } => put.keyed(TAG_REMOVE, page, key),
            Op::InsertChild { page, key, child } => {
                put.keyed(TAG_INSERT_CHILD, page, key);
                put.number(u64::from(child.0));
            }
            Op::RemoveChild { page, key } => put.keyed(TAG_REMOVE_CHILD, page, key),
            Op::SetLink { page, link } => {
                put.head(TAG_SET_LINK, page);
                put.link(link);
            }
            Op::Load { page, rows } => put.keyed(TAG_LOAD, page, rows),
            Op::TruncateFrom { page, key } => put.keyed(TAG_TRUNCATE_FROM, page, key),
            Op::OverflowData { page, next, bytes } => {
                put.head(TAG_OVERFLOW_DATA, page);
                put.link(next);
                put.bytes(bytes);
            }
            Op::MapSet { page, first_bit, count, value } => {
                put.head(if value { TAG_MAP_SET } else { TAG_MAP_CLEAR }, page);
                put.number(u64::from(first_bit));
                put.number(u64::from(count));
            }
            Op::WriteAt { page, offset, bytes } => {
                put.head(TAG_WRITE_AT, page);
                put.number(offset as u64);
                put.bytes(bytes);
            }
            Op::Undo { tree, key, seq, before } => put.undo(tree, key, seq, before),
            Op::UndoPages { first, count } => {
                put.head(TAG_UNDO_PAGES, first);
                put.number(u64::from(count));
            }
            Op::Purge(Purge::Chain { first, mark }) => {
                put.out.push(TAG_PURGE_CHAIN);
                put.link(first);
                put.out.extend_from_slice(&mark.to_le_bytes());
            }
            Op::Purge(Purge::Row { tree, key }) => {
                put.out.push(TAG_PURGE_ROW);
                put.number(tree.0);
                put.bytes(key);
            }
            Op::Purge(Purge::Tree { tree, root }) => {
                put.out.push(TAG_PURGE_TREE);
                put.number(tree.0);
                put.number(u64::from(root.0));
            }
            Op::Purge(Purge::Stored(stored)) => put.stored(TAG_PURGE_STORED, stored),
            Op::UndoStored(stored) => put.stored(TAG_UNDO_STORED, stored),
            Op::Prepared { xid, held } => {
                put.out.push(TAG_PREPARED);
                put.bytes(xid);
                put.bytes(held);
            }
            Op::UndoTree { tree, root } => {
                put.out.push(TAG_UNDO_TREE);
                put.number(tree.0);
                put.number(u64::from(root.0));
            }
            Op::Undone { entries } => {
                put.out.push(TAG_UNDONE);
                put.number(u64::from(entries));
            }
            Op::UndoReset => put.out.push(TAG_UNDO_RESET),
        }
    }
}

impl Before<'_> {
    /// Appends the note that rolls an operation of a row in `tree` back; the operation, which has
    /// key and number, must be appended next.
    pub(crate) fn encode_for_next(self, tree: TreeId, out: &mut Vec<u8>) {
        let mut put = Put { out };
        let tag = match self {
            Before::Absent => TAG_UNDO_NEXT_ABSENT,
            Before::Row { .. } => TAG_UNDO_NEXT_ROW,
        };
        put.out.push(tag);
        put.number(tree.0);
        put.before(self);
    }
}

/// Fields on their way into a body.
struct Put<'o> {
    out: &'o mut Vec<u8>,
}

impl Put<'_> {
    #[inline]
    fn number(&mut self, number: u64) {
        varint::put(self.out, number);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    fn head(&mut self, tag: u8, page: PageNo) {
        self.out.push(tag);
        self.number(u64::from(page.0));
    }

    fn stored(&mut self, tag: u8, stored: Stored) {
        self.head(tag, stored.first);
        self.out.extend_from_slice(&stored.mark.to_le_bytes());
        for number in [stored.len, stored.entries, stored.tasks, stored.last_seq] {
            self.number(u64::from(number));
        }
    }

    /// No page is one byte this way.
    fn link(&mut self, link: PageNo) {
        self.number(u64::from(link.0.wrapping_add(1)));
    }

    #[inline]
    fn keyed(&mut self, tag: u8, page: PageNo, key: &[u8]) {
        self.head(tag, page);
        self.bytes(key);
    }

    #[inline]
    fn row(&mut self, tag: u8, page: PageNo, key: &[u8], seq: u32) {
        self.keyed(tag, page, key);
        self.number(u64::from(seq));
    }

    fn undo(&mut self, tree: TreeId, key: &[u8], seq: u32, before: Before<'_>) {
        let tag = match before {
            Before::Absent => TAG_UNDO_ABSENT,
            Before::Row { .. } => TAG_UNDO_ROW,
        };
        self.out.push(tag);
        self.number(tree.0);
        self.bytes(key);
        self.number(u64::from(seq));
        self.before(before);
    }

    fn before(&mut self, before: Before<'_>) {
        if let Before::Row { flags, stamp, bytes } = before {
            self.stamp(stamp);
            self.out.push(flags.to_bits());
            self.bytes(bytes);
        }
    }

    fn stamp(&mut self, stamp: Stamp) {
        self.number(stamp.writer.0);
        self.number(u64::from(stamp.seq));
    }
}

/// The operations of a body, decoded as they are walked over. After one that cannot be read the
/// walk ends.
#[derive(Clone)]
pub struct Ops<'a> {
    rest: &'a [u8],
    body_len: usize,
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let offset = self.body_len - self.rest.len();
            let (&tag, rest) = self.rest.split_first()?;
            self.rest = rest;
            if tag == TAG_NOP {
                continue;
            }
            let op = take_op(tag, &mut self.rest);
            if op.is_none() {
                self.rest = &[];
            }
            return Some(op.ok_or(DecodeError { offset }));
        }
    }
}

#[inline]
fn take_size(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint::take(bytes)?).ok()
}

#[inline]
fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(bytes)?).ok()
}

#[inline]
fn take_tree(bytes: &mut &[u8]) -> Option<TreeId> {
    varint::take(bytes).map(TreeId)
}

#[inline]
fn take_page(bytes: &mut &[u8]) -> Option<PageNo> {
    take_u32(bytes).map(PageNo)
}

#[inline]
fn take_link(bytes: &mut &[u8]) -> Option<PageNo> {
    take_u32(bytes).map(|link| PageNo(link.wrapping_sub(1)))
}

#[inline]
fn take_txn(bytes: &mut &[u8]) -> Option<TxnId> {
    varint::take(bytes).map(TxnId).filter(|&txn| txn <= TxnId::MAX)
}

#[inline]
fn take_u8(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

#[inline]
fn take_flags(bytes: &mut &[u8]) -> Option<Flags> {
    take_u8(bytes).filter(|&bits| bits < 4).map(Flags::from_bits)
}

#[inline]
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_size(bytes)?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[inline]
fn take_op<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<Op<'a>> {
    match tag {
        TAG_INSERT..=TAG_REMOVE => take_row(tag, rest),
        TAG_UNDO_ABSENT | TAG_UNDO_ROW => take_undo(tag, rest),
        TAG_UNDO_NEXT_ABSENT | TAG_UNDO_NEXT_ROW => take_undo_of_next(tag, rest),
        TAG_FLIP => take_flip(rest),
        TAG_UNDO_PAGES => Some(Op::UndoPages { first: take_page(rest)?, count: take_u32(rest)? }),
        TAG_PURGE_CHAIN => {
            let first = take_link(rest)?;
            let (mark, after) = rest.split_first_chunk()?;
            *rest = after;
            Some(Op::Purge(Purge::Chain { first, mark: u64::from_le_bytes(*mark) }))
        }
        TAG_PURGE_ROW => {
            let tree = take_tree(rest)?;
            Some(Op::Purge(Purge::Row { tree, key: take_bytes(rest)? }))
        }
        TAG_PURGE_TREE => {
            let (tree, root) = (take_tree(rest)?, take_page(rest)?);
            Some(Op::Purge(Purge::Tree { tree, root }))
        }
        TAG_PURGE_STORED => Some(Op::Purge(Purge::Stored(take_stored(rest)?))),
        TAG_UNDO_STORED => Some(Op::UndoStored(take_stored(rest)?)),
        TAG_PREPARED => Some(Op::Prepared { xid: take_bytes(rest)?, held: take_bytes(rest)? }),
        TAG_UNDO_TREE => {
            let (tree, root) = (take_tree(rest)?, take_page(rest)?);
            Some(Op::UndoTree { tree, root })
        }
        TAG_UNDONE => Some(Op::Undone { entries: take_u32(rest)? }),
        TAG_UNDO_RESET => Some(Op::UndoReset),
        _ => take_structure(tag, rest),
    }
}

#[inline]
fn take_row<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let (page, key) = (take_page(rest)?, take_bytes(rest)?);
    Some(match tag {
        TAG_REMOVE => Op::Remove { page, key },
        TAG_RESTAMP => Op::Restamp { page, key, stamp: take_stamp(rest)? },
        TAG_INSERT => {
            let (seq, flags) = (take_u32(rest)?, take_flags(rest)?);
            Op::Insert { page, key, seq, flags, value: take_bytes(rest)? }
        }
        TAG_UPDATE => {
            let seq = take_u32(rest)?;
            let (offset, removed) = (take_size(rest)?, take_size(rest)?);
            Op::Update { page, key, seq, offset, removed, bytes: take_bytes(rest)? }
        }
        TAG_PATCH => {
            let (seq, flags) = (take_u32(rest)?, take_flags(rest)?);
            Op::Patch { page, key, seq, flags, patches: Patches::take(rest)? }
        }
        _ => return None,
    })
}

fn take_stored(rest: &mut &[u8]) -> Option<Stored> {
    let first = take_page(rest)?;
    let (mark, after) = rest.split_first_chunk()?;
    *rest = after;
    let mark = u64::from_le_bytes(*mark);
    let (len, entries) = (take_u32(rest)?, take_u32(rest)?);
    let (tasks, last_seq) = (take_u32(rest)?, take_u32(rest)?);
    Some(Stored { first, mark, len, entries, tasks, last_seq })
}

#[inline]
fn take_stamp(rest: &mut &[u8]) -> Option<Stamp> {
    Some(Stamp { writer: take_txn(rest)?, seq: take_u32(rest)? })
}

fn take_undo<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let (tree, key, seq) = (take_tree(rest)?, take_bytes(rest)?, take_u32(rest)?);
    if tag == TAG_UNDO_ABSENT {
        return Some(Op::Undo { tree, key, seq, before: Before::Absent });
    }
    let (stamp, flags) = (take_stamp(rest)?, take_flags(rest)?);
    let before = Before::Row { flags, stamp, bytes: take_bytes(rest)? };
    Some(Op::Undo { tree, key, seq, before })
}

/// Undo that says only what the operation behind it, which stays there, does not.
#[inline]
fn take_undo_of_next<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let tree = take_tree(rest)?;
    if tag == TAG_UNDO_NEXT_ABSENT {
        let (key, seq) = next_row(rest)?.change()?;
        return Some(Op::Undo { tree, key, seq, before: Before::Absent });
    }
    let (stamp, flags) = (take_stamp(rest)?, take_flags(rest)?);
    let before = Before::Row { flags, stamp, bytes: take_bytes(rest)? };
    let (key, seq) = next_row(rest)?.change()?;
    Some(Op::Undo { tree, key, seq, before })
}

/// Looks at the operation that follows, which is one of a row.
#[inline]
fn next_row<'a>(rest: &'a [u8]) -> Option<Op<'a>> {
    let (&tag, mut fields) = rest.split_first()?;
    (TAG_INSERT..=TAG_REMOVE).contains(&tag).then(|| take_row(tag, &mut fields))?
}

#[inline]
fn take_flip<'a>(rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let (page, key, seq) = (take_page(rest)?, take_bytes(rest)?, take_u32(rest)?);
    let (tree, stamp, bits) = (take_tree(rest)?, take_stamp(rest)?, take_u8(rest)?);
    if bits >= 16 {
        return None;
    }
    let (flags, old_flags) = (Flags::from_bits(bits & 3), Flags::from_bits(bits >> 2));
    Some(Op::Flip { page, tree, key, seq, flags, old_flags, stamp, flips: Flips::take(rest)? })
}

fn take_structure<'a>(tag: u8, rest: &mut &'a [u8]) -> Option<Op<'a>> {
    let page = take_page(rest)?;
    Some(match tag {
        TAG_INIT => {
            let (kind, level) = (Kind::from_u8(take_u8(rest)?)?, take_u8(rest)?);
            if (level > 0) != (kind == Kind::Inner) {
                return None;
            }
            Op::Init { page, kind, level, tree: take_tree(rest)? }
        }
        TAG_INSERT_CHILD => {
            let key = take_bytes(rest)?;
            Op::InsertChild { page, key, child: take_page(rest)? }
        }
        TAG_REMOVE_CHILD => Op::RemoveChild { page, key: take_bytes(rest)? },
        TAG_SET_LINK => Op::SetLink { page, link: take_link(rest)? },
        TAG_LOAD => Op::Load { page, rows: take_bytes(rest)? },
        TAG_TRUNCATE_FROM => Op::TruncateFrom { page, key: take_bytes(rest)? },
        TAG_OVERFLOW_DATA => {
            let next = take_link(rest)?;
            Op::OverflowData { page, next, bytes: take_bytes(rest)? }
        }
        TAG_MAP_SET | TAG_MAP_CLEAR => {
            let (first_bit, count) = (take_u32(rest)?, take_u32(rest)?);
            Op::MapSet { page, first_bit, count, value: tag == TAG_MAP_SET }
        }
        TAG_WRITE_AT => {
            let offset = take_size(rest)?;
            Op::WriteAt { page, offset, bytes: take_bytes(rest)? }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo_and(op: &Op<'_>, before: Before<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        Header { undo: true, ..Header::default() }.encode(&mut body);
        before.encode_for_next(TreeId(7), &mut body);
        op.encode(&mut body);
        body
    }

    #[test]
    fn undo_of_what_follows_reads_as_if_it_said_all() {
        let (page, key, seq, flags) = (PageNo(300), &b"key"[..], 9, Flags::NONE);
        let (old, new) = (b"one", b"another");
        let stamp = Stamp { writer: TxnId(5), seq: 3 };
        let insert = Op::Insert { page, key, seq, flags, value: new };
        let update = Op::Update { page, key, seq, offset: 1, removed: 2, bytes: b"x" };
        let row = Before::Row { flags, stamp, bytes: old };
        for (op, before) in [(insert, Before::Absent), (insert, row), (update, row)] {
            let body = undo_and(&op, before);
            let (_, ops) = decode(&body).expect("a header");
            let read: Vec<_> = ops.collect::<Result<_, _>>().expect("two operations");
            assert_eq!(read, [Op::Undo { tree: TreeId(7), key, seq, before }, op]);
            // Cut short anywhere it is never half of the two.
            for cut in 2..body.len() {
                let read = decode(&body[..cut]).expect("a header").1.collect::<Result<Vec<_>, _>>();
                assert!(read.is_err(), "{op:?} cut at {cut}");
            }
            let mut whole = Vec::new();
            read.iter().for_each(|op| op.encode(&mut whole));
            assert!(body.len() < whole.len());
        }
    }

    #[test]
    fn undo_of_an_operation_without_undo_is_refused() {
        let (page, key) = (PageNo(300), &b"key"[..]);
        for op in [Op::Remove { page, key }, Op::SetLink { page, link: page }, Op::UndoReset] {
            let body = undo_and(&op, Before::Absent);
            let (_, mut ops) = decode(&body).expect("a header");
            assert!(ops.next().is_some_and(|op| op.is_err()), "{op:?}");
        }
    }
}
