//! Keys that are too long for a page.
//!
//! A key of more than [`HEAD_BYTES`] is **folded**: it lies in its tree under its first bytes and a
//! SHA-256 of all of it, and its other bytes, the tail, stand in front of the value behind their
//! length (a varint). No other key in a tree has the length of a folded one. Keys that differ in
//! their first bytes are in order there; those that do not are a **run**, in the order of their
//! sums, and a walk sorts them ([`crate::run`]). See `docs/decisions/long-keys.md`.
use std::borrow::Cow;

use sha2::{Digest, Sha256};
use weir_base::varint;

use crate::error::Error;
use crate::key::after_prefix;

/// Bytes of a sum: two keys that have the same one are not found.
const SUM_BYTES: usize = 32;
/// The longest key that lies in its tree as it is. A folded one is as long as the longest key of
/// the smallest page (`weir_page::max_key_len`), so that it fits any.
pub(crate) const HEAD_BYTES: usize = 1200 - SUM_BYTES;

/// Whether a key is folded.
pub(crate) fn is_long(key: &[u8]) -> bool {
    key.len() > HEAD_BYTES
}

/// The key under which another lies in a tree.
pub(crate) fn in_tree(key: &[u8]) -> Cow<'_, [u8]> {
    if !is_long(key) {
        return Cow::Borrowed(key);
    }
    Cow::Owned([&key[..HEAD_BYTES], &Sha256::digest(key)].concat())
}

/// Whether a key in a tree stands for a longer one.
pub(crate) fn is_folded(tree_key: &[u8]) -> bool {
    tree_key.len() == HEAD_BYTES + SUM_BYTES
}

/// The first bytes of a folded key, which those of its run have in common.
pub(crate) fn head(tree_key: &[u8]) -> &[u8] {
    &tree_key[..HEAD_BYTES.min(tree_key.len())]
}

/// Appends what stands in front of the value of a key: nothing, unless it is folded.
pub(crate) fn put_tail(key: &[u8], value: &mut Vec<u8>) {
    if is_long(key) {
        let tail = &key[HEAD_BYTES..];
        varint::put(value, tail.len() as u64);
        value.extend_from_slice(tail);
    }
}

/// The value of a key as it lies in its tree.
pub(crate) fn with_tail<'v>(key: &[u8], value: &'v [u8]) -> Cow<'v, [u8]> {
    if !is_long(key) {
        return Cow::Borrowed(value);
    }
    let mut whole = Vec::with_capacity(key.len() + value.len());
    put_tail(key, &mut whole);
    whole.extend_from_slice(value);
    Cow::Owned(whole)
}

/// The tail of a folded key, and the value behind it.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn split_tail(value: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let mut rest = value;
    let parts = varint::take(&mut rest)
        .and_then(|len| usize::try_from(len).ok())
        .and_then(|len| rest.split_at_checked(len));
    parts.ok_or_else(|| Error::Damaged("a value has no tail of its long key".into()))
}

/// The key as it was given, of a key in a tree, and the value that was given with it.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn unfold<'e>(
    tree_key: &'e [u8],
    value: &'e [u8],
) -> Result<(Cow<'e, [u8]>, &'e [u8]), Error> {
    if !is_folded(tree_key) {
        return Ok((Cow::Borrowed(tree_key), value));
    }
    let (tail, value) = split_tail(value)?;
    Ok((Cow::Owned([head(tree_key), tail].concat()), value))
}

/// Takes the tail away from in front of the value that was read under a key.
///
/// # Errors
/// [`Error::Damaged`] when it is another key's.
pub(crate) fn drop_tail(key: &[u8], value: &mut Vec<u8>) -> Result<(), Error> {
    if !is_long(key) {
        return Ok(());
    }
    let (tail, rest) = split_tail(value)?;
    if tail != &key[HEAD_BYTES..] {
        return Err(Error::Damaged("a long key has another one's tail".into()));
    }
    let start = value.len() - rest.len();
    value.drain(..start);
    Ok(())
}

/// A bound from which on a tree has all keys that are not below `from`, and perhaps others that
/// begin with the same bytes.
pub(crate) fn lower(from: &[u8]) -> &[u8] {
    head(from)
}

/// The same for a bound above; `None`: none.
pub(crate) fn upper(to: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !is_long(to) {
        return Some(Cow::Borrowed(to));
    }
    after_prefix(head(to)).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys around the limit that often begin alike.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let tail = prop::collection::vec(prop_oneof![Just(0u8), Just(255u8)], 0..4);
        (HEAD_BYTES - 2..HEAD_BYTES + 40, any::<bool>(), tail).prop_map(|(len, high, tail)| {
            [vec![if high { 255 } else { 7 }; len - tail.len()], tail].concat()
        })
    }

    proptest! {
        #[test]
        fn keys_and_values_come_back(
            key in key(),
            value in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let (at, mut there) = (in_tree(&key), with_tail(&key, &value).into_owned());
            prop_assert_eq!(is_folded(&at), is_long(&key));
            let (full, rest) = unfold(&at, &there).expect("well-formed");
            prop_assert_eq!((&full[..], rest), (&key[..], &value[..]));
            drop_tail(&key, &mut there).expect("its own tail");
            prop_assert_eq!(there, value);
        }

        #[test]
        fn bounds_leave_nothing_out(a in key(), b in key()) {
            let at = in_tree(&a);
            if a >= b {
                prop_assert!(&*at >= lower(&b));
            } else {
                prop_assert!(upper(&b).is_none_or(|to| *at < *to));
            }
        }

        #[test]
        fn keys_of_other_heads_keep_their_order(a in key(), b in key()) {
            // No key is the beginning of another.
            let (a, b) = ([&a[..], &[1, 0]].concat(), [&b[..], &[1, 0]].concat());
            if head(&a) != head(&b) {
                prop_assert_eq!(in_tree(&a).cmp(&in_tree(&b)), a.cmp(&b));
            }
        }

        #[test]
        fn any_bytes_have_a_tail_or_an_error(value in prop::collection::vec(any::<u8>(), 0..30)) {
            if let Ok((tail, rest)) = split_tail(&value) {
                prop_assert!(tail.len() + rest.len() < value.len());
            }
        }
    }

    #[test]
    fn the_tail_of_another_key_is_damage() {
        let (one, other) = (vec![1; HEAD_BYTES + 5], [vec![1; HEAD_BYTES + 4], vec![2]].concat());
        let mut there = with_tail(&one, b"value").into_owned();
        assert!(matches!(drop_tail(&other, &mut there), Err(Error::Damaged(_))));
        assert_ne!(in_tree(&one), in_tree(&other));
    }
}
