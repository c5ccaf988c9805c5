//! Filling a new table that no other transaction knows yet: rows are loaded in the order in which
//! they come, index entries are sorted, and loaded at the end.
//!
//! Rows mostly come in the order of their primary keys. From the first that does not, they are
//! inserted by the caller's transaction, one by one. What a crash leaves of the table is the
//! caller's to drop.
use weir::{Durability, Load, Sorter, Txn};

use crate::build::{GoOn, ask};
use crate::entry::{primary_of, put_stored_value, whole_key};
use crate::error::Error;
use crate::fold::{in_tree, with_tail};
use crate::raw::{RawTable, RowImage};
use crate::several::Entries;

/// A table that is being filled. Dropped before [`Copy::finish`] it leaves the table with some of
/// its rows, or none, and without their index entries.
pub struct Copy {
    table: RawTable,
    rows: Option<Load>,
    last: Vec<u8>,
    sorters: Vec<Sorter>,
    value: Vec<u8>,
}

impl RawTable {
    /// Begins to fill this table, which must be empty and which no other transaction reads or
    /// writes until
    /// [`Copy::finish`]: not by any other handle either.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Input`] when there are rows.
    pub fn copy(&self) -> Result<Copy, Error> {
        let many = self.indexes.len();
        let sorters = (0..many).map(|_| self.shared.db.sorter(many)).collect();
        let rows = Some(self.primary.load()?);
        Ok(Copy { table: self.clone(), rows, last: Vec::new(), sorters, value: Vec::new() })
    }
}

impl Copy {
    /// Takes a row. `txn` inserts it if it does not come in order.
    ///
    /// # Errors
    /// [`Error::Duplicate`] of the primary key alone; [`Error::Input`], [`Error::Store`].
    pub fn push(&mut self, txn: &mut Txn, row: RowImage<'_>) -> Result<(), Error> {
        self.table.check_entries(row.entries)?;
        let (key, value) = (in_tree(row.key), with_tail(row.key, row.row));
        let count = self.rows.as_ref().map_or(0, Load::count);
        if count > 0 && *key == *self.last {
            return Err(Error::Duplicate { index: None });
        }
        if count > 0
            && *key < *self.last
            && let Some(rows) = self.rows.take()
        {
            rows.finish(Durability::Lazy)?;
        }
        match &mut self.rows {
            Some(rows) => {
                rows.push(&key, &value)?;
                self.last.clear();
                self.last.extend_from_slice(&key);
            }
            None => self.table.insert_row(txn, row)?,
        }
        for (at, sorter) in self.sorters.iter_mut().enumerate() {
            let index = &self.table.info.indexes[at];
            for entry in Entries::of(index, row.entries[at]) {
                let (unique, entry) = (index.unique, entry?);
                self.value.clear();
                put_stored_value(unique, row.key, entry, &mut self.value);
                sorter.push(&in_tree(&whole_key(unique, row.key, entry)), &self.value)?;
            }
        }
        Ok(())
    }

    /// Ends it: the table has all rows and their entries, as durably as what is committed durably
    /// later. `go_on` is asked for each entry. `twice` is set, with [`Error::Duplicate`], to the
    /// primary key of a row whose key of that index is another's.
    ///
    /// # Errors
    /// [`Error::Duplicate`], [`Error::Interrupted`], [`Error::Store`].
    pub fn finish(self, go_on: &mut GoOn<'_>, twice: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(rows) = self.rows {
            rows.finish(Durability::Lazy)?;
        }
        for (at, sorter) in self.sorters.into_iter().enumerate() {
            let (mut sorted, mut load) = (sorter.sorted()?, self.table.indexes[at].load()?);
            let mut before = Vec::new();
            while let Some((key, value)) = sorted.step()? {
                ask(go_on)?;
                if load.count() > 0 && key == before {
                    *twice = primary_of(key, value)?;
                    return Err(Error::Duplicate { index: Some(at) });
                }
                load.push(key, value)?;
                before.clear();
                before.extend_from_slice(key);
            }
            load.finish(Durability::Lazy)?;
        }
        Ok(())
    }
}
