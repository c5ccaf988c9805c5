//! Indexes that keep several entries of a row: one for each word of it, say.
//!
//! A row of such an index still has one [`Entry`], in whose payload they all lie, in the order of
//! their keys and no key twice: the length of a key (a varint), the key, the length of a payload,
//! the payload. They are stored each by itself, as entries of an index that is not unique. A row
//! may have none.
use weir_base::varint;

use crate::descriptor::IndexInfo;
use crate::entry::Entry;
use crate::error::Error;

/// Appends an entry to those of a row. They come in the order of their keys.
pub fn put_entry(all: &mut Vec<u8>, key: &[u8], payload: &[u8]) {
    varint::put(all, key.len() as u64);
    all.extend_from_slice(key);
    varint::put(all, payload.len() as u64);
    all.extend_from_slice(payload);
}

/// The entries of a row as they are stored: the one that it has, or the several in it.
pub(crate) struct Entries<'e> {
    /// Not taken apart yet.
    rest: &'e [u8],
    before: Option<&'e [u8]>,
    /// Of an index that has one.
    one: Option<Entry<'e>>,
}

impl<'e> Entries<'e> {
    pub(crate) fn of(index: &IndexInfo, entry: Entry<'e>) -> Entries<'e> {
        Entries::of_kind(index.several, entry)
    }

    pub(crate) fn of_kind(several: bool, entry: Entry<'e>) -> Entries<'e> {
        let (rest, one) = if several { (entry.payload, None) } else { (&[][..], Some(entry)) };
        Entries { rest, before: None, one }
    }

    fn take(&mut self) -> Result<Entry<'e>, Error> {
        let malformed = || Error::Input("the entries of a row are malformed".into());
        let mut bytes = || {
            let len = varint::take(&mut self.rest).and_then(|len| usize::try_from(len).ok());
            let (taken, rest) = self.rest.split_at_checked(len?)?;
            self.rest = rest;
            Some(taken)
        };
        let (key, payload) = (bytes().ok_or_else(malformed)?, bytes().ok_or_else(malformed)?);
        if self.before.is_some_and(|before| before >= key) {
            return Err(Error::Input("the entries of a row are not in the order of keys".into()));
        }
        self.before = Some(key);
        Ok(Entry { key, has_null: false, payload })
    }
}

impl<'e> Iterator for Entries<'e> {
    type Item = Result<Entry<'e>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(one) = self.one.take() {
            return Some(Ok(one));
        }
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.rest = &[];
        }
        Some(taken)
    }
}

/// What becomes of an entry when its row is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change<'e> {
    Remove(Entry<'e>),
    Add(Entry<'e>),
    /// The key stays.
    Replace(Entry<'e>, Entry<'e>),
}

/// Goes through what differs between two rows' entries, in the order of their keys.
pub(crate) fn changes<'e>(
    was: Entries<'e>,
    is: Entries<'e>,
    mut visit: impl FnMut(Change<'e>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut was, mut is) = (was.peekable(), is.peekable());
    loop {
        let order = match (was.peek(), is.peek()) {
            (None, None) => return Ok(()),
            (Some(Err(_)), _) | (_, None) => std::cmp::Ordering::Less,
            (_, Some(Err(_))) | (None, _) => std::cmp::Ordering::Greater,
            (Some(Ok(was)), Some(Ok(is))) => was.key.cmp(is.key),
        };
        let old = if order.is_le() { was.next().transpose()? } else { None };
        let new = if order.is_ge() { is.next().transpose()? } else { None };
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => visit(Change::Replace(old, new))?,
            (Some(old), None) => visit(Change::Remove(old))?,
            (None, Some(new)) => visit(Change::Add(new))?,
            (None, None) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Map = BTreeMap<Vec<u8>, Vec<u8>>;

    fn map() -> impl Strategy<Value = Map> {
        let bytes = || prop::collection::vec(0u8..4, 0..4);
        prop::collection::btree_map(bytes(), bytes(), 0..8)
    }

    fn packed(map: &Map) -> Vec<u8> {
        let mut all = Vec::new();
        map.iter().for_each(|(key, payload)| put_entry(&mut all, key, payload));
        all
    }

    fn entries(packed: &[u8]) -> Entries<'_> {
        Entries::of_kind(true, Entry { payload: packed, ..Entry::default() })
    }

    proptest! {
        #[test]
        fn entries_come_back_and_changes_lead_from_one_row_to_the_other(was in map(), is in map()) {
            let (before, after) = (packed(&was), packed(&is));
            let back: Result<Map, Error> = entries(&before)
                .map(|entry| entry.map(|e| (e.key.to_vec(), e.payload.to_vec())))
                .collect();
            prop_assert_eq!(&back.expect("well-formed"), &was);
            let mut now = was.clone();
            let mut same = true;
            changes(entries(&before), entries(&after), |change| {
                match change {
                    Change::Remove(old) => same &= now.remove(old.key).is_some(),
                    Change::Add(new) => {
                        same &= now.insert(new.key.to_vec(), new.payload.to_vec()).is_none();
                    }
                    Change::Replace(old, new) => {
                        same &= old.key == new.key && old.payload != new.payload;
                        now.insert(new.key.to_vec(), new.payload.to_vec());
                    }
                }
                Ok(())
            }).expect("well-formed");
            prop_assert!(same);
            prop_assert_eq!(now, is);
        }

        #[test]
        fn any_bytes_give_entries_in_order_or_an_error(
            bytes in prop::collection::vec(0u8..5, 0..30),
        ) {
            let mut before: Option<Vec<u8>> = None;
            for entry in entries(&bytes) {
                let Ok(entry) = entry else { break };
                prop_assert!(before.is_none_or(|before| before[..] < *entry.key));
                before = Some(entry.key.to_vec());
            }
        }
    }

    #[test]
    fn keys_out_of_order_and_twice_are_refused() {
        for keys in [[b"b", b"a"], [b"a", b"a"]] {
            let mut all = Vec::new();
            keys.iter().for_each(|key| put_entry(&mut all, *key, b""));
            let last = entries(&all).last();
            assert!(matches!(last, Some(Err(Error::Input(_)))), "{last:?}");
        }
    }
}
