//! An entry of an index as it lies in the index's tree.
//!
//! | entry | key in the tree | value |
//! |---|---|---|
//! | of a unique index, no NULL | index key | length of primary key, primary key, payload |
//! | any other | index key, primary key | length of index key, payload |
//!
//! A length is a varint of twice the length, one more in an entry of the first kind. So entries are
//! ordered by index key, then by primary key, and a unique key without NULLs has one place only.
//! What is said of the key in the tree is true before it is folded ([`crate::fold`]).
use std::borrow::Cow;

use weir_base::varint;

use crate::error::Error;
use crate::fold::{HEAD_BYTES, in_tree, is_long, put_tail, unfold};

/// What an index keeps of one row, encoded by the caller.
///
/// Index keys compare as bytes, and none may be the beginning of another. A key with a NULL must
/// differ from all keys without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry<'a> {
    /// The index key.
    pub key: &'a [u8],
    /// Whether a column of it is NULL: then it equals no other key.
    pub has_null: bool,
    /// What else a covering read needs.
    pub payload: &'a [u8],
}

/// An entry in memory of its own, to be filled again and again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryBuf {
    /// See [`Entry::key`].
    pub key: Vec<u8>,
    /// See [`Entry::has_null`].
    pub has_null: bool,
    /// See [`Entry::payload`].
    pub payload: Vec<u8>,
}

impl EntryBuf {
    /// The entry.
    #[must_use]
    pub fn as_entry(&self) -> Entry<'_> {
        Entry { key: &self.key, has_null: self.has_null, payload: &self.payload }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.key.clear();
        self.payload.clear();
        self.has_null = false;
    }
}

/// The key of an entry in the index's tree.
pub(crate) fn stored_key<'a>(unique: bool, primary: &[u8], entry: Entry<'a>) -> Cow<'a, [u8]> {
    match whole_key(unique, primary, entry) {
        Cow::Borrowed(key) => in_tree(key),
        Cow::Owned(key) if is_long(&key) => Cow::Owned(in_tree(&key).into_owned()),
        Cow::Owned(key) => Cow::Owned(key),
    }
}

/// The key before it is folded.
pub(crate) fn whole_key<'a>(unique: bool, primary: &[u8], entry: Entry<'a>) -> Cow<'a, [u8]> {
    if unique && !entry.has_null {
        return Cow::Borrowed(entry.key);
    }
    Cow::Owned([entry.key, primary].concat())
}

/// The primary key of a stored entry.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn primary_of(tree_key: &[u8], value: &[u8]) -> Result<Vec<u8>, Error> {
    let (key, value) = unfold(tree_key, value)?;
    Ok(Parts::of(&key, value)?.primary.to_vec())
}

/// As [`stored_key`] of an entry that is not unique, appended to memory of the caller's.
pub(crate) fn put_stored_key(primary: &[u8], entry: Entry<'_>, key: &mut Vec<u8>) {
    if entry.key.len() + primary.len() <= HEAD_BYTES {
        key.extend_from_slice(entry.key);
        key.extend_from_slice(primary);
    } else {
        key.extend_from_slice(&stored_key(false, primary, entry));
    }
}

pub(crate) fn stored_value(unique: bool, primary: &[u8], entry: Entry<'_>) -> Vec<u8> {
    let mut value = Vec::new();
    put_stored_value(unique, primary, entry, &mut value);
    value
}

/// As [`stored_value`], into memory of the caller's.
pub(crate) fn put_stored_value(
    unique: bool,
    primary: &[u8],
    entry: Entry<'_>,
    value: &mut Vec<u8>,
) {
    if entry.key.len() + primary.len() > HEAD_BYTES {
        put_tail(&whole_key(unique, primary, entry), value);
    }
    if unique && !entry.has_null {
        varint::put(value, (primary.len() as u64) << 1 | 1);
        value.extend_from_slice(primary);
    } else {
        varint::put(value, (entry.key.len() as u64) << 1);
    }
    value.extend_from_slice(entry.payload);
}

/// An entry as it was stored, but for the folding of its key, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) primary: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl<'a> Parts<'a> {
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn of(key: &'a [u8], value: &'a [u8]) -> Result<Parts<'a>, Error> {
        let damaged = || Error::Damaged("an entry of an index is malformed".into());
        let mut rest = value;
        let head = varint::take(&mut rest).ok_or_else(damaged)?;
        let len = usize::try_from(head >> 1).map_err(|_| damaged())?;
        if head & 1 == 1 {
            let (primary, payload) = rest.split_at_checked(len).ok_or_else(damaged)?;
            return Ok(Parts { key, primary, payload });
        }
        let (key, primary) = key.split_at_checked(len).ok_or_else(damaged)?;
        Ok(Parts { key, primary, payload: rest })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some are folded alone, some only with the other.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let len = prop_oneof![0..200usize, HEAD_BYTES - 200..HEAD_BYTES + 200];
        len.prop_flat_map(|len| prop::collection::vec(any::<u8>(), len))
    }

    proptest! {
        #[test]
        fn entries_come_back(
            unique in any::<bool>(),
            has_null in any::<bool>(),
            key in key(),
            primary in key(),
            payload in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let entry = Entry { key: &key, has_null, payload: &payload };
            let at = stored_key(unique, &primary, entry);
            let value = stored_value(unique, &primary, entry);
            let parts = Parts { key: &key, primary: &primary, payload: &payload };
            let (whole, rest) = unfold(&at, &value).expect("well-formed");
            prop_assert_eq!(Parts::of(&whole, rest).expect("well-formed"), parts);
            prop_assert_eq!(primary_of(&at, &value).expect("well-formed"), &primary[..]);
            let mut put = Vec::new();
            put_stored_key(&primary, entry, &mut put);
            prop_assert_eq!(put, stored_key(false, &primary, entry).into_owned());
        }

        #[test]
        fn any_bytes_give_an_entry_or_an_error(
            key in prop::collection::vec(any::<u8>(), 0..9),
            value in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            if let Ok(parts) = Parts::of(&key, &value) {
                prop_assert!(parts.key.len() <= key.len());
                prop_assert!(parts.primary.len() + parts.payload.len() <= key.len() + value.len());
            }
        }
    }
}
