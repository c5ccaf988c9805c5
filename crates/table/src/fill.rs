//! Giving indexes that are built their entries, while writers go on.
use std::sync::atomic::Ordering;

use weir::{Durability, Snapshot, Sorter, Tree, Txn};

use crate::build::{GoOn, ask};
use crate::catalog::Tables;
use crate::check::MakeAnyEntry;
use crate::delta::bring;
use crate::entry::{EntryBuf, primary_of, put_stored_value, whole_key};
use crate::error::Error;
use crate::fold::{in_tree, unfold};
use crate::raw::{NO_TREE, RawTable};
use crate::scan::Lock;
use crate::several::Entries;

/// Rows of the delta brought into the base in one transaction.
const BATCH_ROWS: usize = 256;
/// The rest of the delta, which may be brought in while writers wait.
const REST_ROWS: usize = 1_000;
/// How often the delta is gone through if writers add more than that each time.
const PASSES_MAX: usize = 20;

/// Indexes that are being filled, and what the caller has to say to it.
pub(crate) struct Filling<'f, 'm, 'g> {
    pub(crate) tables: &'f Tables,
    pub(crate) table: RawTable,
    /// The places in the table of those that are being built, each with its base.
    pub(crate) bases: Vec<(usize, Tree)>,
    pub(crate) make: &'f mut MakeAnyEntry<'m>,
    pub(crate) go_on: &'f mut GoOn<'g>,
}

impl Filling<'_, '_, '_> {
    /// Then the rest need not be done: finishing says so.
    fn has_failed(&self) -> bool {
        let tree = self.table.state.build_failed.load(Ordering::Relaxed);
        tree != NO_TREE && self.tables.failed(&self.table.info).is_some()
    }

    /// Loads the bases with the entries of the rows that the snapshot sees.
    pub(crate) fn load(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        let db = &self.tables.shared.db;
        let many = self.bases.len();
        let mut sorters: Vec<Sorter> = (0..many).map(|_| db.sorter(many)).collect();
        let mut txn = db.begin_at(snapshot)?;
        let (mut entry, mut value) = (EntryBuf::default(), Vec::new());
        let mut cursor = txn.cursor(&self.table.primary);
        let mut on = cursor.seek_first(&mut txn)?;
        while on {
            ask(self.go_on)?;
            if self.has_failed() {
                return Ok(());
            }
            let (key, row) = unfold(cursor.key(), cursor.value())?;
            for (nth, sorter) in sorters.iter_mut().enumerate() {
                let index = &self.table.info.indexes[self.bases[nth].0];
                entry.clear();
                (self.make)(nth, &key, row, &mut entry)?;
                for entry in Entries::of(index, entry.as_entry()) {
                    let entry = entry?;
                    value.clear();
                    put_stored_value(index.unique, &key, entry, &mut value);
                    sorter.push(&in_tree(&whole_key(index.unique, &key, entry)), &value)?;
                }
            }
            on = cursor.next(&mut txn)?;
        }
        for (nth, sorter) in sorters.into_iter().enumerate() {
            if !self.has_failed() {
                self.load_one(&mut txn, nth, sorter)?;
            }
        }
        Ok(())
    }

    fn load_one(&mut self, txn: &mut Txn, nth: usize, sorter: Sorter) -> Result<(), Error> {
        let (mut sorted, mut before) = (sorter.sorted()?, Vec::new());
        let mut load = self.bases[nth].1.load()?;
        while let Some((key, value)) = sorted.step()? {
            ask(self.go_on)?;
            if key == before && load.count() > 0 {
                let (key, value) = (key.to_vec(), value.to_vec());
                return Err(self.duplicate(txn, nth, &key, &value));
            }
            load.push(key, value)?;
            before.clear();
            before.extend_from_slice(key);
        }
        // The commit that says that the index is complete comes later, and is durable.
        load.finish(Durability::Lazy)?;
        Ok(())
    }

    /// The entry's row is the one that was asked for last.
    fn duplicate(&mut self, txn: &mut Txn, nth: usize, key: &[u8], value: &[u8]) -> Error {
        let mut made = || {
            let (primary, mut row) = (primary_of(key, value)?, Vec::new());
            if self.table.read(txn, &primary, Lock::Plain, &mut row)? {
                (self.make)(nth, &primary, &row, &mut EntryBuf::default())?;
            }
            Ok(())
        };
        match made() {
            Ok(()) => Error::Duplicate { index: Some(nth) },
            Err(e) => e,
        }
    }

    /// Brings the deltas into the bases until little is left.
    pub(crate) fn catch_up(&mut self) -> Result<(), Error> {
        for nth in 0..self.bases.len() {
            for _ in 0..PASSES_MAX {
                if self.has_failed() || self.pass(nth)? < REST_ROWS {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Goes through a delta once. Returns how many rows of it are in the base now; what others have
    /// locked is left to a later pass.
    fn pass(&mut self, nth: usize) -> Result<usize, Error> {
        let (mut brought, mut from) = (0, Vec::new());
        loop {
            ask(self.go_on)?;
            let (done, next) = self.batch(nth, &from)?;
            brought += done;
            match next {
                Some(next) => from = next,
                None => return Ok(brought),
            }
        }
    }

    /// How many rows, and the key that the next batch begins with.
    fn batch(&mut self, nth: usize, from: &[u8]) -> Result<(usize, Option<Vec<u8>>), Error> {
        let (at, base) = (self.bases[nth].0, self.bases[nth].1.clone());
        let delta = &self.table.indexes[at];
        let mut txn = self.tables.shared.begin();
        let mut cursor = txn.cursor_for_update(delta);
        cursor.skip_locked();
        let (mut rows, mut on) = (Vec::new(), cursor.seek(&mut txn, from)?);
        while on && rows.len() < BATCH_ROWS {
            rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
            on = cursor.next(&mut txn)?;
        }
        let next = on.then(|| cursor.key().to_vec());
        drop(cursor);
        for (key, value) in &rows {
            if !bring(&mut txn, &base, key, value)? {
                return Err(self.duplicate(&mut txn, nth, key, &value[1..]));
            }
            txn.delete(delta, key)?;
        }
        // Durable before the commit that says that the index is complete, which comes later.
        let _ = txn.commit()?;
        Ok((rows.len(), next))
    }
}
