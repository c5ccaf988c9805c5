//! The locks of a prepared transaction, as bytes that outlive a restart: in the record that says
//! so, or, when they are many, in a chain of pages that the record names.
//!
//! | bytes | what |
//! |---|---|
//! | 0, then entries | the locks |
//! | 1, first page, mark, length | where they are |
//!
//! An entry: tree, 2 * shape + kind, key; of a range with an end, that too. Shapes: a key, a range
//! without an end, a range with one. Kinds: share, exclusive. Numbers are varints, keys have their
//! length before them.

use weir_base::{PageNo, TreeId, varint};
use weir_btree::{ChainHead, Env, TreeError};

use crate::locks::{Kind, Place, PlaceBuf};

/// What is locked, and how.
pub(crate) type Lock = (TreeId, PlaceBuf, Kind);

/// What was written down.
///
/// # Errors
/// [`TreeError::Damaged`], and those of reading pages.
pub(crate) fn read(env: &Env, bytes: &[u8]) -> Result<Vec<Lock>, TreeError> {
    let chains = env.chains();
    let damaged = || chains.damaged(PageNo::NONE, "a prepared transaction's locks cannot be read");
    let stored;
    let mut entries = match bytes.split_first() {
        None => return Ok(Vec::new()),
        Some((0, entries)) => entries,
        Some((1, mut place)) => {
            let chain = chain_at(&mut place).ok_or_else(damaged)?;
            let mut bytes = Vec::new();
            if !chains.fetch(&chain, &mut bytes)? {
                return Err(damaged());
            }
            stored = bytes;
            stored.get(1..).ok_or_else(damaged)?
        }
        Some(_) => return Err(damaged()),
    };
    let mut locks = Vec::new();
    while !entries.is_empty() {
        locks.push(decode(&mut entries).ok_or_else(damaged)?);
    }
    Ok(locks)
}

/// Says where the locks are, in the place of them.
pub(crate) fn encode_chain(chain: ChainHead) -> Vec<u8> {
    let mut place = vec![1];
    for number in [u64::from(chain.first.0), chain.mark, chain.len] {
        varint::put(&mut place, number);
    }
    place
}

fn chain_at(place: &mut &[u8]) -> Option<ChainHead> {
    let first = PageNo(u32::try_from(varint::take(place)?).ok()?);
    let mark = varint::take(place)?;
    Some(ChainHead { first, mark, len: varint::take(place)? })
}

/// Writes one lock down.
pub(crate) fn encode(tree: TreeId, place: Place<'_>, kind: Kind, out: &mut Vec<u8>) {
    let (shape, keys): (u64, [Option<&[u8]>; 2]) = match place {
        Place::Key(key) => (0, [Some(key), None]),
        Place::Range { from, to: None } => (1, [Some(from), None]),
        Place::Range { from, to: Some(to) } => (2, [Some(from), Some(to)]),
    };
    varint::put(out, tree.0);
    varint::put(out, 2 * shape + u64::from(kind == Kind::Exclusive));
    for key in keys.into_iter().flatten() {
        varint::put(out, key.len() as u64);
        out.extend_from_slice(key);
    }
}

fn decode(bytes: &mut &[u8]) -> Option<Lock> {
    let tree = TreeId(varint::take(bytes)?);
    let tag = varint::take(bytes)?;
    let kind = if tag & 1 == 0 { Kind::Share } else { Kind::Exclusive };
    let from = take_key(bytes)?;
    let place = match tag >> 1 {
        0 => PlaceBuf::Key(from),
        1 => PlaceBuf::Range { from, to: None },
        2 => PlaceBuf::Range { from, to: Some(take_key(bytes)?) },
        _ => return None,
    };
    Some((tree, place, kind))
}

fn take_key(bytes: &mut &[u8]) -> Option<Box<[u8]>> {
    let len = usize::try_from(varint::take(bytes)?).ok()?;
    let (key, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_come_back_as_they_were_and_garbage_does_not() {
        let key = |text: &str| -> Box<[u8]> { text.as_bytes().into() };
        let all = [
            (TreeId(3), PlaceBuf::Key(key("k")), Kind::Share),
            (TreeId(3), PlaceBuf::Key(key("")), Kind::Exclusive),
            (TreeId(1 << 40), PlaceBuf::Range { from: key(""), to: None }, Kind::Exclusive),
            (TreeId(4), PlaceBuf::Range { from: key("a"), to: Some(key("b\0")) }, Kind::Share),
        ];
        let mut bytes = Vec::new();
        for (tree, place, kind) in &all {
            encode(*tree, place.as_place(), *kind, &mut bytes);
        }
        let mut rest = &bytes[..];
        for lock in &all {
            assert_eq!(decode(&mut rest).as_ref(), Some(lock));
        }
        assert!(rest.is_empty());
        assert_eq!(decode(&mut &bytes[..2]), None);
        assert_eq!(decode(&mut &[1u8, 9, 0][..]), None, "no such shape");
    }
}
