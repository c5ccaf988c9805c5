//! What writers have changed while rows were written anew, brought into the new ones.
use weir::{PlantedBug, Snapshot, Txn};

use crate::build::ask;
use crate::entry::{stored_key, stored_value};
use crate::error::Error;
use crate::fold::{in_tree, with_tail};
use crate::rewrite::Rewrite;
use crate::several::Entries;

/// Changed rows that are brought in by one transaction.
const BATCH_ROWS: usize = 256;

impl Rewrite<'_, '_, '_> {
    /// Brings in what has changed between two snapshots. Returns how many rows that were.
    pub(crate) fn catch_up(&mut self, then: &Snapshot, now: &Snapshot) -> Result<usize, Error> {
        let db = self.tables.shared.db.clone();
        let (mut before, mut after) = (db.begin_at(then)?, db.begin_at(now)?);
        let mut changed = 0;
        for puts in [false, true] {
            let (mut count, mut from) = (0, Some(Vec::new()));
            while let Some(key) = from.take() {
                ask(self.go_on)?;
                let batch = self.changed(&mut before, &mut after, &key)?;
                let mut txn = self.tables.shared.begin();
                for change in &batch.rows {
                    if puts { self.put(&mut txn, change)? } else { self.take(&mut txn, change)? }
                }
                count += batch.rows.len();
                // Durable before the commit that makes it the table, which comes later.
                let _ = txn.commit()?;
                from = batch.next;
            }
            changed = count;
        }
        Ok(changed)
    }

    /// Brings in what has changed since a snapshot, beside no writer.
    pub(crate) fn bring_rest(&mut self, before: &mut Txn, txn: &mut Txn) -> Result<(), Error> {
        if self.tables.shared.db.has_planted(PlantedBug::RewriteWithoutRest) {
            return Ok(());
        }
        for puts in [false, true] {
            let mut from = Some(Vec::new());
            while let Some(key) = from.take() {
                let batch = self.changed(before, txn, &key)?;
                for change in &batch.rows {
                    if puts { self.put(txn, change)? } else { self.take(txn, change)? }
                }
                from = batch.next;
            }
        }
        Ok(())
    }

    /// Rows of the log, from a key on, that are not what they were. One whose latest change was in
    /// the log before is not looked at: while writers wait, no more rows are read than they have
    /// changed since.
    fn changed(&self, before: &mut Txn, after: &mut Txn, from: &[u8]) -> Result<Batch, Error> {
        let (mut rows, mut looked) = (Vec::new(), 0);
        let (mut earlier, mut cursor) = (before.cursor(&self.log), after.cursor(&self.log));
        let mut is_noted = earlier.seek(before, from)?;
        let mut on = cursor.seek(after, from)?;
        while on && looked < BATCH_ROWS {
            while is_noted && earlier.key() < cursor.key() {
                is_noted = earlier.next(before)?;
            }
            let known = is_noted && earlier.key() == cursor.key();
            if !known || earlier.value() != cursor.value() {
                looked += 1;
                let key = cursor.key().to_vec();
                let (mut was, mut is) = (Vec::new(), Vec::new());
                let was = before.get_into(&self.table.primary, &key, &mut was)?.then_some(was);
                let is = after.get_into(&self.table.primary, &key, &mut is)?.then_some(is);
                if was != is {
                    rows.push(Change { key, was, is });
                }
            }
            on = cursor.next(after)?;
        }
        Ok(Batch { rows, next: on.then(|| cursor.key().to_vec()) })
    }

    /// Takes out what was made of the row that there was.
    fn take(&mut self, txn: &mut Txn, change: &Change) -> Result<(), Error> {
        let Some(was) = &change.was else { return Ok(()) };
        self.make_of(&change.key, was)?;
        let mut there = txn.delete(&self.rows, &in_tree(&self.made.key))?;
        for (index, entry) in self.indexes.iter().zip(&self.made.entries) {
            for entry in Entries::of_kind(index.several, entry.as_entry()) {
                let key = stored_key(index.unique, &self.made.key, entry?);
                there &= txn.delete(&index.tree, &key)?;
            }
        }
        if there {
            return Ok(());
        }
        Err(Error::Damaged("what was made of a row is not in the rows written anew".into()))
    }

    /// Puts in what becomes of the row that there is.
    fn put(&mut self, txn: &mut Txn, change: &Change) -> Result<(), Error> {
        let Some(is) = &change.is else { return Ok(()) };
        self.make_of(&change.key, is)?;
        let (key, made) = (&self.made.key, &self.made);
        let stored = |done, index| match done {
            Err(weir::Error::Duplicate) => Err(Error::Duplicate { index }),
            done => Ok(done?),
        };
        stored(txn.insert(&self.rows, &in_tree(key), &with_tail(key, &made.row)), None)?;
        for (nth, (index, entry)) in self.indexes.iter().zip(&made.entries).enumerate() {
            for entry in Entries::of_kind(index.several, entry.as_entry()) {
                let (unique, entry) = (index.unique, entry?);
                let (at, value) =
                    (stored_key(unique, key, entry), stored_value(unique, key, entry));
                stored(txn.insert(&index.tree, &at, &value), Some(nth))?;
            }
        }
        Ok(())
    }
}

/// A row that writers have changed, by its key in the tree, as it lay there and as it lies there.
struct Change {
    key: Vec<u8>,
    was: Option<Vec<u8>>,
    is: Option<Vec<u8>>,
}

struct Batch {
    rows: Vec<Change>,
    /// The key that the next batch begins with.
    next: Option<Vec<u8>>,
}
