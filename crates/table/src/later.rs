//! Entries that are written after their rows: those of many rows at once, in the order in which
//! they lie. An index that keeps several of a row, one for each word of it, is written to all over
//! by each row; of many rows, those for one leaf come one behind the other.
use weir::{NewRow, Txn};

use crate::entry::{Entry, put_stored_key, put_stored_value};
use crate::error::Error;
use crate::raw::RawTable;
use crate::several::Entries;

/// The entries of a row in an index that keeps several of each.
#[derive(Clone, Copy, Debug)]
pub struct RowEntries<'e> {
    /// The row's primary key.
    pub key: &'e [u8],
    /// The entries, as [`crate::put_entry`] makes them.
    pub entries: &'e [u8],
}

/// An entry as it is to lie in the tree: where its key and its value are, which lie together.
struct Late {
    /// The beginning of the key, zeros behind a shorter one: most are told apart by it.
    front: u128,
    at: usize,
    key_len: usize,
    value_len: usize,
}

fn front(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = key.len().min(bytes.len());
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
}

/// Entries of many rows, and the bytes of their keys and values.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    all: Vec<Late>,
}

impl Gathered {
    fn of(rows: &[RowEntries<'_>]) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        for row in rows {
            let entries = Entry { payload: row.entries, ..Entry::default() };
            Entries::of_kind(true, entries).try_for_each(|entry| {
                gathered.push(row.key, entry?);
                Ok::<(), Error>(())
            })?;
        }
        Ok(gathered)
    }

    fn push(&mut self, primary: &[u8], entry: Entry<'_>) {
        let at = self.bytes.len();
        put_stored_key(primary, entry, &mut self.bytes);
        let key_len = self.bytes.len() - at;
        put_stored_value(false, primary, entry, &mut self.bytes);
        let value_len = self.bytes.len() - at - key_len;
        self.all.push(Late { front: front(&self.bytes[at..at + key_len]), at, key_len, value_len });
    }

    fn sort(&mut self) {
        let key = |late: &Late| &self.bytes[late.at..late.at + late.key_len];
        self.all.sort_unstable_by(|a, b| a.front.cmp(&b.front).then_with(|| key(a).cmp(key(b))));
    }

    fn rows(&self) -> Vec<NewRow<'_>> {
        let row = |late: &Late| {
            let bytes = &self.bytes[late.at..late.at + late.key_len + late.value_len];
            bytes.split_at(late.key_len)
        };
        self.all.iter().map(row).collect()
    }
}

impl RawTable {
    /// Adds the entries of rows that this transaction has inserted, with none in this index, by
    /// [`RawTable::insert`]: all, or nothing if it fails. Until then the index lacks the rows for
    /// this transaction, too, and they must be neither changed nor removed, nor committed.
    ///
    /// # Errors
    /// [`Error::Input`] of an index that has one entry of each row; [`Error::Duplicate`] if a row
    /// has one of them already; [`Error::Changed`], [`Error::Store`].
    pub fn add_entries(
        &self,
        txn: &mut Txn,
        index: usize,
        rows: &[RowEntries<'_>],
    ) -> Result<(), Error> {
        let Some(info) = self.info.indexes.get(index).filter(|info| info.several) else {
            return Err(Error::Input(format!("index {index} does not keep several entries")));
        };
        self.lock_definition(txn)?;
        if info.building {
            return self.statement(txn, |txn| {
                rows.iter().try_for_each(|row| {
                    let entries = Entry { payload: row.entries, ..Entry::default() };
                    self.add(txn, index, row.key, entries)
                })
            });
        }
        let mut gathered = Gathered::of(rows)?;
        gathered.sort();
        let rows = gathered.rows();
        self.statement(txn, |txn| match txn.insert_all(&self.indexes[index], &rows) {
            Err(weir::Error::Duplicate) => Err(Error::Duplicate { index: Some(index) }),
            done => Ok(done?),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::several::put_entry;

    proptest! {
        #[test]
        fn entries_come_in_the_order_of_their_keys(
            rows in prop::collection::vec(
                (
                    prop::collection::vec(0u8..3, 1..4),
                    prop::collection::btree_set(prop::collection::vec(0u8..2, 0..20), 0..6),
                ),
                0..6,
            ),
        ) {
            let rows = rows.into_iter().map(|(key, words)| {
                let mut entries = Vec::new();
                words.iter().for_each(|word| put_entry(&mut entries, word, b"p"));
                (key, words, entries)
            });
            let rows = rows.collect::<Vec<_>>();
            let mut keys = Vec::new();
            for (key, words, _) in &rows {
                keys.extend(words.iter().map(|word| [&word[..], key].concat()));
            }
            keys.sort();
            let given = rows.iter().map(|(key, _, entries)| RowEntries { key, entries });
            let mut gathered = Gathered::of(&given.collect::<Vec<_>>()).expect("well-formed");
            gathered.sort();
            let sorted = gathered.rows();
            prop_assert!(sorted.iter().map(|(key, _)| *key).eq(keys.iter().map(|key| &key[..])));
            prop_assert!(sorted.iter().all(|(_, value)| value.ends_with(b"p")));
        }
    }
}
