//! Adding an index while writers go on.
//!
//! 1. One transaction makes the index's tree and says in the descriptor that it is being built. It
//!    waits for all writers that do not know of the index; those after it keep the index up.
//! 2. The rows are walked in primary key order. Each batch locks its rows against writers, reads
//!    them as committed now, and adds the entries that are not there yet.
//! 3. One transaction says that the index is complete. Snapshots from before do not use it
//!    (TABLE-4).
//!
//! What fails or crashes in between is removed: by the one who fails, or by the next opening.
use std::sync::atomic::Ordering;

use weir::Durability;

use crate::catalog::{IndexSpec, Tables, building, new_index};
use crate::entry::EntryBuf;
use crate::error::Error;
use crate::raw::{RawTable, TableState};

/// Rows locked together. Fewer would commit more often, more would hold writers up for longer.
const BATCH_ROWS: usize = 256;
/// How often a batch is tried again after a deadlock or a lock wait that was too long.
const ATTEMPTS_MAX: usize = 100;

/// Makes an index entry of a row: gets the primary key, the row and an empty entry.
pub type MakeEntry<'m> = dyn FnMut(&[u8], &[u8], &mut EntryBuf) -> Result<(), Error> + 'm;

impl Tables {
    /// Adds an index to a table while others write to it. `make` gives a row's entry; writers give
    /// theirs themselves, for which they open the table again when they are told
    /// [`Error::Changed`]. `false`: there is an index of this name already.
    ///
    /// # Errors
    /// [`Error::Duplicate`] when the index is to be unique and two rows have the same key, also
    /// if only for a moment; [`Error::NoTable`], [`Error::Definition`], [`Error::Store`], and what
    /// `make` fails with. The table is as it was.
    pub fn add_index_raw(
        &self,
        table: &str,
        spec: &IndexSpec,
        make: &mut MakeEntry<'_>,
    ) -> Result<bool, Error> {
        let Some((id, at)) = self.announce(table, spec)? else { return Ok(false) };
        let built = self.fill(id, at, make).and_then(|()| self.complete(id, &spec.name, at));
        if built.is_err() {
            // Best effort: if this fails too, the next opening does it.
            let _ = self.remove_unfinished(id);
        }
        built.map(|()| true)
    }

    fn announce(&self, table: &str, spec: &IndexSpec) -> Result<Option<(u64, usize)>, Error> {
        let mut txn = self.shared.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.indexes.iter().any(|index| index.building) {
            return Err(building());
        }
        if info.index(&spec.name).is_some() {
            return Ok(None);
        }
        let index = new_index(&mut info, spec, true)?;
        txn.create_tree(&info.tree_name(index.tree))?;
        info.indexes.push(index);
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        self.shared.state(info.id).build_failed.store(false, Ordering::SeqCst);
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(Some((info.id, info.indexes.len() - 1)))
    }

    fn fill(&self, id: u64, at: usize, make: &mut MakeEntry<'_>) -> Result<(), Error> {
        let table = self.open_id(id)?;
        let mut keys = Vec::new();
        let mut cursor = table.primary.cursor();
        let mut on = cursor.seek_first()?;
        while on {
            keys.push(cursor.key().to_vec());
            on = cursor.next()?;
            if keys.len() == BATCH_ROWS || !on {
                self.fill_batch(&table, at, &keys, make)?;
                keys.clear();
            }
        }
        Ok(())
    }

    fn fill_batch(
        &self,
        table: &RawTable,
        at: usize,
        keys: &[Vec<u8>],
        make: &mut MakeEntry<'_>,
    ) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            match self.try_batch(table, at, keys, make) {
                Err(Error::Store(e)) if e.is_retryable() && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                }
                // Large keys, or a small log.
                Err(Error::Store(weir::Error::Transaction(weir::TxnError::TooLarge {
                    ..
                }))) if keys.len() > 1 => {
                    let (first, second) = keys.split_at(keys.len() / 2);
                    self.fill_batch(table, at, first, make)?;
                    return self.fill_batch(table, at, second, make);
                }
                done => return done,
            }
        }
    }

    fn try_batch(
        &self,
        table: &RawTable,
        at: usize,
        keys: &[Vec<u8>],
        make: &mut MakeEntry<'_>,
    ) -> Result<(), Error> {
        let mut txn = self.shared.begin();
        let (mut row, mut entry) = (Vec::new(), EntryBuf::default());
        for key in keys {
            if !table.get_for_share(&mut txn, key, &mut row)? {
                continue;
            }
            entry.clear();
            make(key, &row, &mut entry)?;
            table.add(&mut txn, at, key, entry.as_entry())?;
        }
        check_building(&table.state, at)?;
        // Durable before the commit that says that the index is complete, which comes later.
        let _ = txn.commit()?;
        Ok(())
    }

    fn complete(&self, id: u64, name: &str, at: usize) -> Result<(), Error> {
        let mut txn = self.shared.begin();
        let mut info = self.lock_id(&mut txn, id)?.ok_or(Error::Changed)?;
        // No writer is under way now.
        check_building(&self.shared.state(id), at)?;
        info.version += 1;
        let version = info.version;
        let index = info.indexes.iter_mut().find(|index| index.name == name && index.building);
        let index = index.ok_or(Error::Changed)?;
        (index.building, index.since) = (false, version);
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(id);
        Ok(())
    }
}

fn check_building(state: &TableState, at: usize) -> Result<(), Error> {
    if state.build_failed.load(Ordering::SeqCst) {
        return Err(Error::Duplicate { index: Some(at) });
    }
    Ok(())
}
