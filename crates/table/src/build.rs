//! Adding an index while writers go on.
//!
//! 1. One transaction makes the index's trees and says in the descriptor that it is being built. It
//!    waits for all writers that do not know of the index; those after it note their changes in the
//!    index's delta ([`crate::delta`]). A snapshot is taken before it commits: no writer is under
//!    way then.
//! 2. The entries of that snapshot's rows are sorted and loaded into the base, and the delta is
//!    brought into it as far as writers have come. No row is locked and none waited for.
//! 3. One transaction, beside no writer, brings in the rest and says that the index is complete.
//!    Snapshots from before do not use it (TABLE-4).
//!
//! What fails or crashes in between is removed: by the one that fails, or by the next opening.
use std::sync::atomic::Ordering;

use weir::{Durability, PageCodec, PlantedBug, Tree, Txn};

use crate::catalog::{IndexSpec, Tables, ask_codec, building, name_key, new_index, number};
use crate::check::MakeAnyEntry;
use crate::delta::bring;
use crate::descriptor::TableInfo;
use crate::entry::{EntryBuf, stored_key, stored_value};
use crate::error::Error;
use crate::fill::Filling;
use crate::fold::{is_folded, unfold};
use crate::raw::{Build, NO_TREE};
use crate::redefine::Redefinition;
use crate::several::Entries;

/// Makes an index entry of a row: gets the primary key, the row and an empty entry.
pub type MakeEntry<'m> = dyn FnMut(&[u8], &[u8], &mut EntryBuf) -> Result<(), Error> + 'm;

/// Is asked again and again whether to go on with what takes long.
pub type GoOn<'m> = dyn FnMut() -> bool + 'm;

pub(crate) fn ask(go_on: &mut GoOn<'_>) -> Result<(), Error> {
    if go_on() { Ok(()) } else { Err(Error::Interrupted) }
}

impl Tables {
    /// Adds an index to a table while others write to it. `make` gives a row's entry; writers give
    /// theirs themselves, for which they open the table again when they get
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
        let id = match self.announce(table, std::slice::from_ref(spec), None) {
            Err(Error::IndexExists(_)) => return Ok(false),
            announced => announced?,
        };
        let mut make =
            |_: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| make(key, row, entry);
        let too_early = self.shared.db.has_planted(PlantedBug::IndexTooEarly);
        let built = if too_early {
            self.complete(id).and_then(|()| self.fill_late(id, &spec.name, &mut make))
        } else {
            self.fill(id, &mut make, &mut || true).and_then(|()| self.complete(id))
        };
        let built = match built {
            Err(Error::Duplicate { .. }) => {
                let info = self.shared.load(id)?;
                Err(Error::Duplicate { index: info.and_then(|info| info.index(&spec.name)) })
            }
            built => built,
        };
        if built.is_err() {
            // Best effort: if this fails too, the next opening does it.
            let _ = self.remove_unfinished(id);
        }
        built.map(|()| true)
    }

    /// Makes indexes that are empty and out of use, when all that write to the table have ended;
    /// the transaction that writes to it from then on keeps them up. [`Tables::fill_indexes`] and
    /// [`Tables::finish_indexes`] come next, or [`Tables::abandon_indexes`]; the next opening drops
    /// what was not finished. For a host that changes definitions of its own at the same moment.
    /// `codec`: what their trees ask for, as [`Redefinition::codec`] has it.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::IndexExists`], [`Error::Definition`], [`Error::Store`]; nothing
    /// was made.
    pub fn announce_indexes(
        &self,
        table: &str,
        specs: &[IndexSpec],
        codec: Option<Option<PageCodec>>,
    ) -> Result<(), Error> {
        self.announce(table, specs, codec).map(|_| ())
    }

    /// Gives the announced indexes their entries while others write to the table, without a lock on
    /// any row. `make` gets the place of an index among those that are being built. It ends
    /// early when a writer has met a duplicate: [`Tables::finish_indexes`] says so. `go_on` is
    /// asked for each row. Called again it brings in what writers have changed since.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Interrupted`], [`Error::Store`], and what `make` fails with;
    /// [`Error::Duplicate`] with the place among those that are being built when the row that
    /// `make` was asked for last has another one's key; [`Error::Definition`] when the indexes
    /// were not announced by this process.
    pub fn fill_indexes(
        &self,
        table: &str,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let id = self.shared.catalog.get(&name_key(table))?;
        let id = number(&id.ok_or_else(|| Error::NoTable(table.to_string()))?)?;
        self.fill(id, make, go_on)
    }

    /// Brings all indexes that are being built into use, drops others and gives the table another
    /// definition, all in one transaction, durable when it returns.
    ///
    /// # Errors
    /// As [`Tables::finish_indexes_of`].
    pub fn finish_indexes(
        &self,
        table: &str,
        definition: &[u8],
        drop: &[&str],
    ) -> Result<(), Error> {
        self.finish_indexes_of(
            &[Redefinition { table, definition, ..Redefinition::default() }],
            drop,
        )
    }

    /// As [`Tables::finish_indexes`], of several tables, the parts of one, that have indexes of the
    /// same names: all of them or none.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::NoIndex`], [`Error::IndexExists`], [`Error::Store`];
    /// [`Error::Duplicate`] with the place among those that are being built when a writer has met
    /// one. Nothing was changed.
    pub fn finish_indexes_of(
        &self,
        tables: &[Redefinition<'_>],
        drop: &[&str],
    ) -> Result<(), Error> {
        let (mut txn, mut finished) = (self.begin(), Vec::with_capacity(tables.len()));
        for new in tables {
            let info = self.lock_table(&mut txn, new.table)?;
            let mut info = info.ok_or_else(|| Error::NoTable(new.table.to_string()))?;
            self.bring_rest(&mut txn, &mut info)?;
            for name in drop {
                let at = info.index(name).ok_or_else(|| Error::NoIndex((*name).to_string()))?;
                let index = info.indexes.remove(at);
                txn.drop_tree(&info.tree_name(index.tree))?;
            }
            new.bring_into(&mut info)?;
            ask_codec(&mut txn, &info, new.codec)?;
            info.version += 1;
            finished.push(info);
        }
        self.put_to_use(txn, finished)
    }

    /// Brings the rest of the deltas into their bases, which are the indexes' trees from then on.
    fn bring_rest(&self, txn: &mut Txn, info: &mut TableInfo) -> Result<(), Error> {
        if !info.indexes.iter().any(|index| index.building) {
            return Ok(());
        }
        // No writer is under way now.
        if let Some(nth) = self.failed(info) {
            return Err(Error::Duplicate { index: Some(nth) });
        }
        let state = self.shared.state(info.id);
        let too_early = self.shared.db.has_planted(PlantedBug::IndexTooEarly);
        if !matches!(*state.build.lock(), Build::Loaded) && !too_early {
            return Err(Error::Definition("an index is to be used that was not filled".into()));
        }
        let mut nth = 0;
        for at in 0..info.indexes.len() {
            if !info.indexes[at].building {
                continue;
            }
            let name = info.tree_name(info.indexes[at].tree);
            let delta = self.shared.db.tree(&name)?.ok_or(Error::Changed)?;
            let base = base_of(self, info, at)?;
            let mut cursor = txn.cursor(&delta);
            let mut on = cursor.seek_first(txn)?;
            while on {
                if !bring(txn, &base, cursor.key(), cursor.value())? {
                    return Err(Error::Duplicate { index: Some(nth) });
                }
                on = cursor.next(txn)?;
            }
            txn.drop_tree(&name)?;
            info.indexes[at].tree += 1;
            nth += 1;
        }
        Ok(())
    }

    /// Commits descriptors in which what was built is in use.
    fn put_to_use(&self, mut txn: Txn, mut infos: Vec<TableInfo>) -> Result<(), Error> {
        for info in &mut infos {
            for index in info.indexes.iter_mut().filter(|index| index.building) {
                (index.building, index.since) = (false, info.version);
            }
            self.shared.store(&mut txn, info)?;
        }
        infos.iter().for_each(|info| self.shared.altering(info.id));
        txn.commit_durably(Durability::Synced)?;
        for info in &infos {
            self.shared.altered(info.id);
            *self.shared.state(info.id).build.lock() = Build::None;
        }
        Ok(())
    }

    /// Drops what [`Tables::announce_indexes`] or [`Tables::announce_rewrite`] has made and no
    /// transaction has finished. If there
    /// is nothing, no transaction is waited for.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn abandon_indexes(&self, table: &str) -> Result<(), Error> {
        let Some(id) = self.shared.catalog.get(&name_key(table))? else { return Ok(()) };
        let info = self.shared.load(number(&id)?)?;
        match info.filter(TableInfo::is_being_built) {
            Some(info) => {
                // Whether or not the rest can go now: what it sees is kept for no transaction.
                *self.shared.state(info.id).build.lock() = Build::None;
                self.remove_unfinished(info.id)
            }
            None => Ok(()),
        }
    }

    /// The number of the table.
    fn announce(
        &self,
        table: &str,
        specs: &[IndexSpec],
        codec: Option<Option<PageCodec>>,
    ) -> Result<u64, Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.is_being_built() {
            return Err(building());
        }
        let codec = codec.map_or_else(|| self.codec_in(&mut txn, &info), Ok)?;
        for spec in specs {
            let index = new_index(&mut info, spec, true)?;
            for tree in index.trees() {
                txn.create_tree_with(&info.tree_name(tree), codec)?;
            }
            info.indexes.push(index);
        }
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        let state = self.shared.state(info.id);
        state.build_failed.store(NO_TREE, Ordering::SeqCst);
        // All that have written have ended, and no transaction has begun to.
        let snapshot = self.shared.db.snapshot();
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        *state.build.lock() = Build::From(snapshot);
        Ok(info.id)
    }

    fn fill(
        &self,
        id: u64,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let table = self.open_id(id)?;
        let state = table.state.clone();
        let snapshot = match std::mem::take(&mut *state.build.lock()) {
            Build::From(snapshot) => Some(snapshot),
            Build::Loaded => None,
            Build::None | Build::AsOf(_) => {
                return Err(Error::Definition(
                    "an index is to be filled that was not announced".into(),
                ));
            }
        };
        let indexes = table.info.indexes.iter().enumerate();
        let bases = indexes.filter(|(_, index)| index.building);
        let bases = bases.map(|(at, _)| Ok((at, base_of(self, &table.info, at)?)));
        let bases = bases.collect::<Result<_, Error>>()?;
        let mut filling = Filling { tables: self, table, bases, make, go_on };
        if let Some(snapshot) = snapshot {
            filling.load(&snapshot)?;
        }
        filling.catch_up()?;
        *state.build.lock() = Build::Loaded;
        Ok(())
    }

    fn complete(&self, id: u64) -> Result<(), Error> {
        let mut txn = self.begin();
        let mut info = self.lock_id(&mut txn, id)?.ok_or(Error::Changed)?;
        self.bring_rest(&mut txn, &mut info)?;
        info.version += 1;
        self.put_to_use(txn, vec![info])
    }

    /// The planted bug: the rows' entries come when the index is in use already.
    fn fill_late(&self, id: u64, name: &str, make: &mut MakeAnyEntry<'_>) -> Result<(), Error> {
        let table = self.open_id(id)?;
        let at = table.index(name)?;
        let mut keys = Vec::new();
        let mut cursor = table.primary.cursor();
        let mut on = cursor.seek_first()?;
        while on {
            let value = if is_folded(cursor.key()) { cursor.value()?.to_vec() } else { Vec::new() };
            keys.push(unfold(cursor.key(), &value)?.0.into_owned());
            on = cursor.next()?;
        }
        for key in keys {
            let (mut txn, mut row) = (self.shared.begin(), Vec::new());
            if table.get_for_share(&mut txn, &key, &mut row)? {
                let mut entry = EntryBuf::default();
                make(0, &key, &row, &mut entry)?;
                let index = &table.info.indexes[at];
                for entry in Entries::of(index, entry.as_entry()) {
                    let entry = entry?;
                    let place = stored_key(index.unique, &key, entry);
                    let value = stored_value(index.unique, &key, entry);
                    txn.put(&table.indexes[at], &place, &value)?;
                }
            }
            let _ = txn.commit()?;
        }
        Ok(())
    }

    /// The place, among those that are being built, of the index in which a writer has met a
    /// duplicate.
    pub(crate) fn failed(&self, info: &TableInfo) -> Option<usize> {
        let tree = self.shared.state(info.id).build_failed.load(Ordering::SeqCst);
        info.indexes.iter().filter(|index| index.building).position(|index| index.tree == tree)
    }
}

pub(crate) fn base_of(tables: &Tables, info: &TableInfo, at: usize) -> Result<Tree, Error> {
    let name = info.tree_name(info.indexes[at].tree + 1);
    tables.shared.db.tree(&name)?.ok_or(Error::Changed)
}
