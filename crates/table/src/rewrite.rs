//! Writing a table's rows anew, with another key or other columns if wanted, while writers go on.
//!
//! 1. One transaction makes trees for the rows and indexes to come, and a **log**. It waits for all
//!    writers that do not know of it; those after it note in the log the key of each row that they
//!    change, and the transaction's number. A snapshot is taken before it commits.
//! 2. What becomes of that snapshot's rows is loaded. Then, again and again: a newer snapshot is
//!    taken, and each row of the log that differs between the two is brought in
//!    ([`crate::rewrite_changes`]). No row is locked and none waited for.
//! 3. One transaction, beside no writer, brings in the rest and gives the table its new trees.
//!    Snapshots from before get [`Error::Changed`] (TABLE-4).
//!
//! What was made of a row is found by making it once more of the older snapshot's row. All rows
//! that differ are taken out before any is put in: what is put in is the state of one moment, and
//! two rows with one key are two rows that had it at once.
//!
//! What fails or crashes in between is removed: by the caller, or by the next opening.
use weir::{Durability, PageCodec, Snapshot, Sorter, Tree, Txn};

use crate::build::{GoOn, ask};
use crate::catalog::{IndexSpec, Tables, ask_codec, building, name_key, new_index, number};
use crate::descriptor::{IndexInfo, Rewriting, TableInfo};
use crate::entry::{EntryBuf, put_stored_value, stored_key, whole_key};
use crate::error::Error;
use crate::fold::{in_tree, unfold, with_tail};
use crate::raw::{Build, RawTable};
use crate::redefine::Redefinition;
use crate::several::Entries;

/// The rest, which may be brought in while writers wait.
const REST_ROWS: usize = 1_000;
/// How often the log is gone through if writers change more than that each time.
const PASSES_MAX: usize = 20;

/// What becomes of a row.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RowBuf {
    /// Its primary key.
    pub key: Vec<u8>,
    /// Its other columns.
    pub row: Vec<u8>,
    /// An entry for each index to come, in their order.
    pub entries: Vec<EntryBuf>,
}

/// Makes a row of the new table: gets the place of the table among those that are written anew
/// together, the primary key and the row as they are, and an empty row with as many empty entries
/// as the new table has indexes. The same for the same row, whenever it is asked.
pub type MakeRow<'m> = dyn FnMut(usize, &[u8], &[u8], &mut RowBuf) -> Result<(), Error> + 'm;

impl Tables {
    /// Begins to write a table's rows anew, when all that write to it have ended. `indexes`: all
    /// that it is to have. `codec`: what its new trees ask for, as [`Redefinition::codec`] has it.
    /// [`Tables::fill_rewrite`] and [`Tables::finish_rewrite`] come next, or
    /// [`Tables::abandon_indexes`]; the next opening drops what was not finished.
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::Definition`], also while an index is being built;
    /// [`Error::IndexExists`] for two of one name; [`Error::Store`]. Nothing was made.
    pub fn announce_rewrite(
        &self,
        table: &str,
        indexes: &[IndexSpec],
        codec: Option<Option<PageCodec>>,
    ) -> Result<(), Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.is_being_built() {
            return Err(building());
        }
        let mut then = TableInfo { indexes: Vec::new(), ..info.clone() };
        for spec in indexes {
            let index = new_index(&mut then, spec, false)?;
            then.indexes.push(index);
        }
        let (log, rows) = (then.claim_tree(), then.claim_tree());
        info.next_tree = then.next_tree;
        let rewriting = Rewriting { log, rows, indexes: then.indexes };
        let codec = codec.map_or_else(|| self.codec_in(&mut txn, &info), Ok)?;
        for tree in rewriting.trees() {
            txn.create_tree_with(&info.tree_name(tree), codec)?;
        }
        info.rewriting = Some(rewriting);
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        // All that have written have ended, and no transaction has begun to.
        let snapshot = self.shared.db.snapshot();
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        *self.shared.state(info.id).build.lock() = Build::From(snapshot);
        Ok(())
    }

    /// Makes the rows of the new table and their entries while others write to the table, without a
    /// lock on any row. `in_order`: the new keys are in the order of the old ones: rows need not be
    /// sorted. `make` gets place 0. `go_on` is asked for each row and each entry. Called
    /// again it brings in what writers have changed since.
    ///
    /// # Errors
    /// [`Error::Duplicate`] with the place of the new index, `None` for the primary key: `make` was
    /// asked last for a row that has another one's key. [`Error::Definition`] when this process has
    /// not announced it; [`Error::Input`] when rows are not in order after all; [`Error::NoTable`],
    /// [`Error::Interrupted`], [`Error::Store`], and what `make` fails with. Then it can only be
    /// abandoned.
    pub fn fill_rewrite(
        &self,
        table: &str,
        in_order: bool,
        make: &mut MakeRow<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let id = self.shared.catalog.get(&name_key(table))?;
        let id = number(&id.ok_or_else(|| Error::NoTable(table.to_string()))?)?;
        let table = self.open_id(id)?;
        let state = table.state.clone();
        let begun = std::mem::take(&mut *state.build.lock());
        let mut rewrite = Rewrite::of(self, table, 0, make, go_on)?;
        let mut known = match begun {
            Build::From(snapshot) => {
                rewrite.load(&snapshot, in_order)?;
                snapshot
            }
            Build::AsOf(snapshot) => snapshot,
            Build::None | Build::Loaded => return Err(not_filled()),
        };
        for _ in 0..PASSES_MAX {
            let now = self.shared.db.snapshot();
            let changed = rewrite.catch_up(&known, &now)?;
            known = now;
            if changed < REST_ROWS {
                break;
            }
        }
        *state.build.lock() = Build::AsOf(known);
        Ok(())
    }

    /// Brings in the rest and puts the rows that were written anew in the place of the old ones,
    /// with another definition; of several tables, the parts of one, all of them or none. `make` is
    /// gets the place in the list.
    ///
    /// # Errors
    /// As [`Tables::fill_rewrite`]. Nothing was changed.
    pub fn finish_rewrite(
        &self,
        tables: &[Redefinition<'_>],
        make: &mut MakeRow<'_>,
    ) -> Result<(), Error> {
        let (mut txn, mut finished) = (self.begin(), Vec::with_capacity(tables.len()));
        let mut go_on = || true;
        for (nth, new) in tables.iter().enumerate() {
            let info = self.lock_table(&mut txn, new.table)?;
            let mut info = info.ok_or_else(|| Error::NoTable(new.table.to_string()))?;
            let table = self.open_id(info.id)?;
            if table.info.version != info.version {
                return Err(Error::Changed);
            }
            let mut before = self.as_it_was(&table)?;
            let mut rewrite = Rewrite::of(self, table, nth, &mut *make, &mut go_on)?;
            rewrite.bring_rest(&mut before, &mut txn)?;
            self.exchange(&mut txn, &mut info)?;
            new.bring_into(&mut info)?;
            ask_codec(&mut txn, &info, new.codec)?;
            self.shared.store(&mut txn, &info)?;
            finished.push(info.id);
        }
        finished.iter().for_each(|&id| self.shared.altering(id));
        txn.commit_durably(Durability::Synced)?;
        for &id in &finished {
            self.shared.altered(id);
            *self.shared.state(id).build.lock() = Build::None;
        }
        Ok(())
    }

    /// A reader of the rows of which the new ones are made so far.
    fn as_it_was(&self, table: &RawTable) -> Result<Txn, Error> {
        let begun = std::mem::take(&mut *table.state.build.lock());
        let Build::AsOf(known) = begun else { return Err(not_filled()) };
        let reader = self.shared.db.begin_at(&known);
        *table.state.build.lock() = Build::AsOf(known);
        Ok(reader?)
    }

    /// The trees that were filled in the place of those that there were.
    pub(crate) fn exchange(&self, txn: &mut Txn, info: &mut TableInfo) -> Result<(), Error> {
        let Some(rewriting) = info.rewriting.take() else { return Err(not_filled()) };
        for tree in info.tree_names() {
            txn.drop_tree(&tree)?;
        }
        txn.drop_tree(&info.tree_name(rewriting.log))?;
        info.version += 1;
        info.since = info.version;
        info.tree = rewriting.rows;
        info.indexes = rewriting.indexes;
        info.indexes.iter_mut().for_each(|index| index.since = info.version);
        self.forget_samples(txn, info.id)
    }
}

fn not_filled() -> Error {
    Error::Definition("a table is to be written anew that was not announced, or not filled".into())
}

/// An index of the table to come.
pub(crate) struct NewIndex {
    pub(crate) unique: bool,
    pub(crate) several: bool,
    pub(crate) tree: Tree,
}

/// A table that is being written anew, and what the caller has to say to it.
pub(crate) struct Rewrite<'f, 'm, 'g> {
    pub(crate) tables: &'f Tables,
    pub(crate) table: RawTable,
    /// Its place among those that are written anew together.
    pub(crate) place: usize,
    pub(crate) log: Tree,
    pub(crate) rows: Tree,
    pub(crate) indexes: Vec<NewIndex>,
    pub(crate) make: &'f mut MakeRow<'m>,
    pub(crate) go_on: &'f mut GoOn<'g>,
    pub(crate) made: RowBuf,
}

impl<'f, 'm, 'g> Rewrite<'f, 'm, 'g> {
    fn of(
        tables: &'f Tables,
        table: RawTable,
        place: usize,
        make: &'f mut MakeRow<'m>,
        go_on: &'f mut GoOn<'g>,
    ) -> Result<Self, Error> {
        let rewriting = table.info.rewriting.as_ref().ok_or_else(not_filled)?;
        let db = &tables.shared.db;
        let tree = |number| db.tree(&table.info.tree_name(number))?.ok_or(Error::Changed);
        let (log, rows) = (tree(rewriting.log)?, tree(rewriting.rows)?);
        let new = |index: &IndexInfo| {
            let (unique, several) = (index.unique, index.several);
            Ok(NewIndex { unique, several, tree: tree(index.tree)? })
        };
        let indexes = rewriting.indexes.iter().map(new);
        let indexes = indexes.collect::<Result<Vec<_>, Error>>()?;
        let made =
            RowBuf { entries: vec![EntryBuf::default(); indexes.len()], ..RowBuf::default() };
        Ok(Rewrite { tables, table, place, log, rows, indexes, make, go_on, made })
    }

    /// What becomes of a row as it lies in the tree, in `made`.
    pub(crate) fn make_of(&mut self, tree_key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (key, row) = unfold(tree_key, value)?;
        self.made.key.clear();
        self.made.row.clear();
        self.made.entries.iter_mut().for_each(EntryBuf::clear);
        (self.make)(self.place, &key, row, &mut self.made)?;
        if self.made.entries.len() == self.indexes.len() {
            return Ok(());
        }
        Err(Error::Input("a row of the new table has not an entry for each index".into()))
    }

    /// Loads what becomes of the rows that the snapshot sees.
    fn load(&mut self, snapshot: &Snapshot, in_order: bool) -> Result<(), Error> {
        let db = self.tables.shared.db.clone();
        let many = self.indexes.len() + usize::from(!in_order);
        let mut sorters: Vec<Sorter> = (0..many).map(|_| db.sorter(many)).collect();
        let (mut load, mut value) = (Some(self.rows.load()?), Vec::new());
        let mut txn = db.begin_at(snapshot)?;
        let mut cursor = txn.cursor(&self.table.primary);
        let mut on = cursor.seek_first(&mut txn)?;
        while on {
            ask(self.go_on)?;
            self.make_of(cursor.key(), cursor.value())?;
            let made = &self.made;
            let (key, row) = (in_tree(&made.key), with_tail(&made.key, &made.row));
            match &mut load {
                Some(load) if in_order => load.push(&key, &row)?,
                _ => sorters[self.indexes.len()].push(&key, &row)?,
            }
            for (nth, entry) in made.entries.iter().enumerate() {
                let unique = self.indexes[nth].unique;
                for entry in Entries::of_kind(self.indexes[nth].several, entry.as_entry()) {
                    let entry = entry?;
                    value.clear();
                    put_stored_value(unique, &made.key, entry, &mut value);
                    sorters[nth].push(&in_tree(&whole_key(unique, &made.key, entry)), &value)?;
                }
            }
            on = cursor.next(&mut txn)?;
        }
        drop(cursor);
        if let Some(load) = load.take_if(|_| in_order) {
            load.finish(Durability::Lazy)?;
        }
        drop(load);
        // The rows first: their keys are looked at before those of other indexes.
        for (nth, sorter) in sorters.into_iter().enumerate().rev() {
            self.load_one(&mut txn, nth, sorter)?;
        }
        Ok(())
    }

    /// Loads a tree with what was sorted for it: of an index, or the rows behind them all.
    fn load_one(&mut self, txn: &mut Txn, nth: usize, sorter: Sorter) -> Result<(), Error> {
        let tree = self.indexes.get(nth).map_or(&self.rows, |index| &index.tree);
        let (mut sorted, mut load, mut before) = (sorter.sorted()?, tree.load()?, Vec::new());
        while let Some((key, value)) = sorted.step()? {
            ask(self.go_on)?;
            if key == before && load.count() > 0 {
                let twice = key.to_vec();
                return Err(self.duplicate(txn, nth, &twice));
            }
            load.push(key, value)?;
            before.clear();
            before.extend_from_slice(key);
        }
        load.finish(Durability::Lazy)?;
        Ok(())
    }

    /// Asks for the second row of those that have this key, last. Goes through all of them.
    fn duplicate(&mut self, txn: &mut Txn, nth: usize, twice: &[u8]) -> Error {
        let index = (nth < self.indexes.len()).then_some(nth);
        let mut find = || {
            let mut cursor = txn.cursor(&self.table.primary);
            let (mut found, mut on) = (0, cursor.seek_first(txn)?);
            while on {
                self.make_of(cursor.key(), cursor.value())?;
                let key = match index {
                    None => in_tree(&self.made.key),
                    Some(at) => {
                        let entry = self.made.entries[at].as_entry();
                        stored_key(self.indexes[at].unique, &self.made.key, entry)
                    }
                };
                found += usize::from(*key == *twice);
                if found == 2 {
                    break;
                }
                on = cursor.next(txn)?;
            }
            Ok(())
        };
        match find() {
            Ok(()) => Error::Duplicate { index },
            Err(e) => e,
        }
    }
}
