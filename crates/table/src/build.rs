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
use std::time::Duration;

use weir::{Durability, PlantedBug, Refused, Txn, TxnError, TxnOptions, Wait};

use crate::catalog::{IndexSpec, Tables, building, name_key, new_index, number};
use crate::check::MakeAnyEntry;
use crate::descriptor::TableInfo;
use crate::entry::EntryBuf;
use crate::error::Error;
use crate::fold::{is_folded, unfold};
use crate::raw::{NO_TREE, RawTable};

/// Rows locked together. Fewer would commit more often, more would hold writers up for longer.
const BATCH_ROWS: usize = 256;
/// How often a batch is tried again after a deadlock.
const ATTEMPTS_MAX: usize = 100;
/// How long a row is waited for while others before it are locked, for which somebody may wait.
const WAIT_AMONG_OTHERS: Duration = Duration::from_millis(50);
/// How long it is waited for alone before the caller is asked whether to go on. Each time it stands
/// behind all who want the row anew.
const WAIT_ALONE: Duration = Duration::from_millis(500);

/// Makes an index entry of a row: gets the primary key, the row and an empty entry.
pub type MakeEntry<'m> = dyn FnMut(&[u8], &[u8], &mut EntryBuf) -> Result<(), Error> + 'm;

/// Is asked again and again whether to go on with what takes long.
pub type GoOn<'m> = dyn FnMut() -> bool + 'm;

pub(crate) fn ask(go_on: &mut GoOn<'_>) -> Result<(), Error> {
    if go_on() { Ok(()) } else { Err(Error::Interrupted) }
}

/// An index that is being filled, and what the caller has to say to it.
struct Filling<'f, 'm, 'g> {
    tables: &'f Tables,
    table: &'f RawTable,
    at: usize,
    make: &'f mut MakeEntry<'m>,
    go_on: &'f mut GoOn<'g>,
}

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
        let (id, tree) = match self.announce(table, std::slice::from_ref(spec)) {
            Err(Error::IndexExists(_)) => return Ok(false),
            announced => announced?,
        };
        let too_early = self.shared.db.has_planted(PlantedBug::IndexTooEarly);
        let built = if too_early {
            self.complete(id, tree).and_then(|()| self.fill(id, tree, make, &mut || true))
        } else {
            self.fill(id, tree, make, &mut || true).and_then(|()| self.complete(id, tree))
        };
        if built.is_err() {
            // Best effort: if this fails too, the next opening does it.
            let _ = self.remove_unfinished(id);
        }
        built.map(|()| true)
    }

    /// Makes indexes that are empty and out of use, when all who write to the table have ended;
    /// whoever writes to it from then on keeps them up. [`Tables::fill_indexes`] and
    /// [`Tables::finish_indexes`] come next, or [`Tables::abandon_indexes`]; the next opening drops
    /// what was not finished. For a host that changes definitions of its own at the same moment.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::IndexExists`], [`Error::Definition`], [`Error::Store`]; nothing
    /// was made.
    pub fn announce_indexes(&self, table: &str, specs: &[IndexSpec]) -> Result<(), Error> {
        self.announce(table, specs).map(|_| ())
    }

    /// Gives the announced indexes their entries while others write to the table. `make` is told
    /// the place of an index among those that are being built. It ends early when a writer has met
    /// a duplicate: [`Tables::finish_indexes`] says so. `go_on` is asked for each row, and twice a
    /// second while one is waited for.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Interrupted`], [`Error::Store`], and what `make` fails with;
    /// [`Error::Duplicate`] with the place among those that are being built when the row that
    /// `make` was asked for last has another one's key.
    pub fn fill_indexes(
        &self,
        table: &str,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let info = self.open_raw(table)?.info;
        let building = info.indexes.iter().filter(|index| index.building);
        for (nth, index) in building.enumerate() {
            let mut make_nth =
                |key: &[u8], row: &[u8], entry: &mut EntryBuf| make(nth, key, row, entry);
            self.fill(info.id, index.tree, &mut make_nth, go_on).map_err(|e| match e {
                Error::Duplicate { .. } => Error::Duplicate { index: Some(nth) },
                e => e,
            })?;
        }
        Ok(())
    }

    /// Brings all indexes that are being built into use, drops others and gives the table another
    /// definition, all in one transaction, durable when it returns.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::NoIndex`], [`Error::Store`]; [`Error::Duplicate`] with the
    /// place among those that are being built when a writer has met one. Nothing was changed.
    pub fn finish_indexes(
        &self,
        table: &str,
        definition: &[u8],
        drop: &[&str],
    ) -> Result<(), Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if let Some(at) = self.failed(&info) {
            let nth = info.indexes[..at].iter().filter(|index| index.building).count();
            return Err(Error::Duplicate { index: Some(nth) });
        }
        for name in drop {
            let at = info.index(name).ok_or_else(|| Error::NoIndex((*name).to_string()))?;
            let index = info.indexes.remove(at);
            txn.drop_tree(&info.tree_name(index.tree))?;
        }
        info.version += 1;
        info.definition = definition.to_vec();
        for index in info.indexes.iter_mut().filter(|index| index.building) {
            (index.building, index.since) = (false, info.version);
        }
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(())
    }

    /// Drops what [`Tables::announce_indexes`] has made and nobody has finished. If there is
    /// nothing, nobody is waited for.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn abandon_indexes(&self, table: &str) -> Result<(), Error> {
        let Some(id) = self.shared.catalog.get(&name_key(table))? else { return Ok(()) };
        let info = self.shared.load(number(&id)?)?;
        match info.filter(|info| info.indexes.iter().any(|index| index.building)) {
            Some(info) => self.remove_unfinished(info.id),
            None => Ok(()),
        }
    }

    /// The numbers of the table and of the first new index's tree.
    fn announce(&self, table: &str, specs: &[IndexSpec]) -> Result<(u64, u64), Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.indexes.iter().any(|index| index.building) {
            return Err(building());
        }
        let first = info.next_tree;
        for spec in specs {
            let index = new_index(&mut info, spec, true)?;
            txn.create_tree(&info.tree_name(index.tree))?;
            info.indexes.push(index);
        }
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        self.shared.state(info.id).build_failed.store(NO_TREE, Ordering::SeqCst);
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok((info.id, first))
    }

    /// Where the index is in the table's order is looked up each time: others may have changed it.
    fn fill(
        &self,
        id: u64,
        tree: u64,
        make: &mut MakeEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let table = self.open_id(id)?;
        let at = table.info.index_of(tree).ok_or(Error::Changed)?;
        let mut filling = Filling { tables: self, table: &table, at, make, go_on };
        let mut keys = Vec::new();
        let mut cursor = table.primary.cursor();
        let mut on = cursor.seek_first()?;
        while on {
            let value = if is_folded(cursor.key()) { cursor.value()?.to_vec() } else { Vec::new() };
            keys.push(unfold(cursor.key(), &value)?.0.into_owned());
            on = cursor.next()?;
            if keys.len() == BATCH_ROWS || !on {
                filling.fill_batch(&keys)?;
                keys.clear();
                if self.failed(&table.info).is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn complete(&self, id: u64, tree: u64) -> Result<(), Error> {
        let mut txn = self.begin();
        let mut info = self.lock_id(&mut txn, id)?.ok_or(Error::Changed)?;
        // No writer is under way now.
        if let Some(at) = self.failed(&info) {
            return Err(Error::Duplicate { index: Some(at) });
        }
        let at = info.index_of(tree).ok_or(Error::Changed)?;
        info.version += 1;
        (info.indexes[at].building, info.indexes[at].since) = (false, info.version);
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(id);
        Ok(())
    }

    /// The place of the index in which a writer has met a duplicate, if it is being built.
    fn failed(&self, info: &TableInfo) -> Option<usize> {
        let tree = self.shared.state(info.id).build_failed.load(Ordering::SeqCst);
        info.index_of(tree).filter(|&at| info.indexes[at].building)
    }
}

impl Filling<'_, '_, '_> {
    /// Waits for each row as long as whoever changes definitions waits for who is in the way.
    fn fill_batch(&mut self, mut keys: &[Vec<u8>]) -> Result<(), Error> {
        let limit = match self.tables.lock_wait.unwrap_or(TxnOptions::default().lock_wait) {
            Wait::No => Duration::ZERO,
            Wait::Until(limit) => limit,
        };
        let (mut waited, mut deadlocks) = (Duration::ZERO, 0);
        while !keys.is_empty() {
            let wait = WAIT_ALONE.min(limit.saturating_sub(waited));
            match self.begin_batch(keys, wait) {
                Ok(done) => (keys, waited) = (&keys[done..], Duration::ZERO),
                Err(Error::Store(e)) if e.is_deadlock() && deadlocks < ATTEMPTS_MAX => {
                    deadlocks += 1;
                }
                Err(Error::Store(e)) if is_taken(&e) && waited + wait < limit => waited += wait,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Gives so many of the rows their entries as can be had without a long wait, but the first is
    /// waited for. Whoever wants one of those before a row that is taken gets it.
    fn begin_batch(&mut self, keys: &[Vec<u8>], wait: Duration) -> Result<usize, Error> {
        let mut txn = self.tables.shared.begin();
        txn.set_lock_wait(wait_for(wait));
        let mut done = 0;
        for key in keys {
            match self.row(&mut txn, key) {
                Err(Error::Store(e)) if done > 0 && is_taken(&e) => break,
                entered => entered?,
            }
            txn.set_lock_wait(wait_for(wait.min(WAIT_AMONG_OTHERS)));
            done += 1;
        }
        // Durable before the commit that says that the index is complete, which comes later.
        let _ = txn.commit()?;
        Ok(done)
    }

    fn row(&mut self, txn: &mut Txn, key: &[u8]) -> Result<(), Error> {
        ask(self.go_on)?;
        let (mut row, mut entry) = (Vec::new(), EntryBuf::default());
        if !self.table.get_for_share(txn, key, &mut row)? {
            return Ok(());
        }
        (self.make)(key, &row, &mut entry)?;
        if self.table.add_entry(txn, self.at, key, entry.as_entry())? {
            return Ok(());
        }
        Err(Error::Duplicate { index: Some(self.at) })
    }
}

fn wait_for(limit: Duration) -> Wait {
    if limit.is_zero() { Wait::No } else { Wait::Until(limit) }
}

/// Whether somebody else has the row, and had it all the while.
fn is_taken(e: &weir::Error) -> bool {
    use Refused::{TimedOut, WouldWait};
    matches!(e, weir::Error::Transaction(TxnError::Lock(TimedOut { .. } | WouldWait { .. })))
}
