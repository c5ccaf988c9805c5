//! The tables of a database. Their descriptors are rows of the tree `weir.tables`; each change of a
//! definition is one transaction, durable when it returns.
//!
//! | key | value |
//! |---|---|
//! | `n` name | the table's number |
//! | `d` number | its descriptor |
//! | `v` number | its version; writers of the table have a share of this row's lock |
//! | `a` number, `r` number | ends of stretches of auto-increment numbers and row ids |
//! | `s` number, tree | what sampling found |
//! | `i` | the number of the next table |
use std::sync::Arc;

use weir::{Db, Durability, PageCodec, Txn, Wait};

use crate::descriptor::{IndexInfo, Rewriting, TableInfo};
use crate::error::Error;
use crate::raw::{Build, Checked, Locked, RawTable};
use crate::redefine::Rename;
use crate::shared::{Shared, key_of};

const CATALOG: &str = "weir.tables";
const NEXT_ID: &[u8] = b"i";
const NAME_BYTES_MAX: usize = 512;

/// The tables of a database. Cloning gives another handle of the same. There must be one of these
/// for an open database, with its clones: they share in memory what numbers were given out.
#[derive(Clone)]
pub struct Tables {
    pub(crate) shared: Arc<Shared>,
    /// How long changes of definitions wait; `None`: as long as any transaction.
    pub(crate) lock_wait: Option<Wait>,
}

/// An index to be made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexSpec {
    /// Its name, unique in the table.
    pub name: String,
    /// Whether two rows may have the same key.
    pub unique: bool,
    /// Whether it keeps several entries of a row, or none ([`crate::put_entry`]); then it is not
    /// unique.
    pub several: bool,
    /// Bytes of the caller's that say how its keys are made.
    pub definition: Vec<u8>,
}

pub(crate) fn name_key(name: &str) -> Vec<u8> {
    [b"n", name.as_bytes()].concat()
}

impl Tables {
    /// The tables of this database. Indexes whose building was cut short by a crash are removed, as
    /// [`Tables::drop_unfinished`] does it, without waiting; not where the database is only read.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    pub fn open(db: &Db) -> Result<Tables, Error> {
        let catalog = db.open_tree(CATALOG)?;
        let states = weir_base::lock::Mutex::default();
        let shared = Arc::new(Shared { db: db.clone(), catalog, states });
        let tables = Tables { shared, lock_wait: None };
        if !db.is_read_only() {
            tables.drop_unfinished(Wait::No)?;
        }
        Ok(tables)
    }

    /// Removes indexes whose building was cut short by a crash; not while one is being built. A
    /// caller that has written to such a table and is prepared since keeps its indexes until that
    /// is decided: after `wait` they are left, kept up by all that write, until this is called once
    /// more.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    pub fn drop_unfinished(&self, wait: Wait) -> Result<(), Error> {
        for id in self.ids()? {
            if let Some(info) = self.shared.load(id)?
                && info.is_being_built()
            {
                match self.with_lock_wait(wait).remove_unfinished(id) {
                    Err(Error::Store(e)) if e.is_retryable() => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// The database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.shared.db
    }

    /// The same tables, whose definitions are changed by one that waits at most so long for each
    /// transaction that writes to a table. [`weir::Error::Transaction`] with a refusal says that it
    /// was too long; then nothing was changed.
    #[must_use]
    pub fn with_lock_wait(&self, wait: Wait) -> Tables {
        Tables { shared: Arc::clone(&self.shared), lock_wait: Some(wait) }
    }

    /// A transaction that changes a definition.
    pub(crate) fn begin(&self) -> Txn {
        let mut txn = self.shared.begin();
        if let Some(wait) = self.lock_wait {
            txn.set_lock_wait(wait);
        }
        txn
    }

    /// Writes down how far auto-increment numbers really have been given out, so that there is no
    /// gap after a database closed in order. The last of all handles of tables to be dropped does
    /// it as well; [`Db::close`] does not, and called before that it leaves the gap of a crash.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn settle_numbers(&self) -> Result<(), Error> {
        self.shared.settle_numbers()
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        self.each(b'n', |key, _| {
            names.push(String::from_utf8_lossy(key).into_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// Opens a table of encoded rows.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Store`], [`Error::Damaged`].
    pub fn open_raw(&self, name: &str) -> Result<RawTable, Error> {
        // Once more if a transaction alters it just now.
        for _ in 0..100 {
            let Some(id) = self.shared.catalog.get(&name_key(name))? else { break };
            let opened = self.open_id(number(&id)?);
            if !matches!(opened, Err(Error::Changed)) {
                return opened;
            }
        }
        Err(Error::NoTable(name.to_string()))
    }

    /// Opens a table by its number.
    ///
    /// # Errors
    /// [`Error::Changed`] when it is not there or is being altered now.
    pub(crate) fn open_id(&self, id: u64) -> Result<RawTable, Error> {
        let state = self.shared.state(id);
        let info = self.shared.load(id)?.ok_or(Error::Changed)?;
        let tree = |number| self.shared.db.tree(&info.tree_name(number))?.ok_or(Error::Changed);
        let primary = tree(info.tree)?;
        let indexes = info.indexes.iter().map(|index| tree(index.tree));
        let indexes = indexes.collect::<Result<_, Error>>()?;
        let log = info.rewriting.as_ref().map(|rewriting| tree(rewriting.log)).transpose()?;
        let shared = self.shared.clone();
        let (version_key, checked, locked) =
            (key_of(b'v', id), Checked::default(), Locked::default());
        let info = Arc::new(info);
        Ok(RawTable { shared, state, info, primary, indexes, log, version_key, checked, locked })
    }

    /// Makes a table of encoded rows. `false`: there is one of this name already.
    ///
    /// # Errors
    /// [`Error::Definition`], [`Error::Store`]; nothing was made.
    pub fn create_raw(
        &self,
        name: &str,
        definition: &[u8],
        indexes: &[IndexSpec],
    ) -> Result<bool, Error> {
        self.create_raw_with(name, definition, indexes, None)
    }

    /// As [`Tables::create_raw`], of a table whose pages, those of its indexes too, are packed by
    /// this codec from the first on: table and codec in one transaction.
    ///
    /// # Errors
    /// As [`Tables::create_raw`].
    pub fn create_raw_with(
        &self,
        name: &str,
        definition: &[u8],
        indexes: &[IndexSpec],
        codec: Option<PageCodec>,
    ) -> Result<bool, Error> {
        check_name(name)?;
        let mut txn = self.begin();
        let mut value = Vec::new();
        if txn.get_for_update(&self.shared.catalog, &name_key(name), &mut value)? {
            return Ok(false);
        }
        let id = self.next_id(&mut txn)?;
        let mut info = TableInfo {
            id,
            version: 1,
            definition: definition.to_vec(),
            layouts: Vec::new(),
            indexes: Vec::new(),
            tree: 0,
            next_tree: 1,
            since: 1,
            rewriting: None,
        };
        for spec in indexes {
            let index = new_index(&mut info, spec, false)?;
            info.indexes.push(index);
        }
        for tree in info.tree_names() {
            txn.create_tree_with(&tree, codec)?;
        }
        txn.insert(&self.shared.catalog, &name_key(name), &id.to_le_bytes())?;
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(true)
    }

    /// Drops a table, when all that write to it have ended. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Store`]; the table is there.
    pub fn drop_table(&self, name: &str) -> Result<bool, Error> {
        let mut txn = self.begin();
        let Some(info) = self.lock_table(&mut txn, name)? else { return Ok(false) };
        for tree in info.tree_names() {
            txn.drop_tree(&tree)?;
        }
        let catalog = &self.shared.catalog;
        txn.delete(catalog, &name_key(name))?;
        for kind in *b"dvar" {
            txn.delete(catalog, &key_of(kind, info.id))?;
        }
        self.forget_samples(&mut txn, info.id)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.states.lock().remove(&info.id);
        Ok(true)
    }

    /// Gives a table another name. Its handles stay good. `false`: there is none of the old name.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::Definition`], [`Error::Store`]; nothing was changed.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool, Error> {
        self.rename_with(from, to, &[], Rename::Whole)
    }

    /// Removes all rows by giving the table new trees, when all that write to it have ended; with
    /// them go its layouts. Its auto-increment goes on where it was. `false`: there is no such
    /// table.
    ///
    /// # Errors
    /// [`Error::Definition`] while an index of the table is being built; [`Error::Store`]; nothing
    /// was changed.
    pub fn truncate(&self, name: &str) -> Result<bool, Error> {
        self.empty(name, None)
    }

    /// As [`Tables::truncate`], but its auto-increment begins anew, with `next`: at once with the
    /// rows, or neither.
    ///
    /// # Errors
    /// As [`Tables::truncate`].
    pub fn begin_anew(&self, name: &str, next: u64) -> Result<bool, Error> {
        self.empty(name, Some(next))
    }

    fn empty(&self, name: &str, next: Option<u64>) -> Result<bool, Error> {
        let mut txn = self.begin();
        let Some(mut info) = self.lock_table(&mut txn, name)? else { return Ok(false) };
        if info.is_being_built() {
            return Err(building());
        }
        let codec = self.codec_in(&mut txn, &info)?;
        for tree in info.tree_names() {
            txn.drop_tree(&tree)?;
        }
        info.version += 1;
        info.since = info.version;
        info.layouts.clear();
        info.tree = info.claim_tree();
        for at in 0..info.indexes.len() {
            info.indexes[at].tree = info.claim_tree();
            info.indexes[at].since = info.version;
        }
        for tree in info.tree_names() {
            txn.create_tree_with(&tree, codec)?;
        }
        self.forget_samples(&mut txn, info.id)?;
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        match next {
            None => txn.commit_durably(Durability::Synced)?,
            Some(next) => {
                self.shared.state(info.id).numbers.reset(txn, &self.shared.catalog, next)?;
            }
        }
        self.shared.altered(info.id);
        Ok(true)
    }

    /// Has pages of a table and of its indexes, also of those that it gets later, packed by another
    /// codec, or as the store chooses (`None`), from their next write on: none is written for that,
    /// and where pages are not packed it has no effect. `false`: there is no such table.
    ///
    /// # Errors
    /// [`Error::Store`]; nothing was changed.
    pub fn set_codec(&self, name: &str, codec: Option<PageCodec>) -> Result<bool, Error> {
        let mut txn = self.begin();
        let (mut id, mut value) = (Vec::new(), Vec::new());
        // Trees come and go under the locks of these two rows; writers' shares are of a third.
        let catalog = &self.shared.catalog;
        if !txn.get_for_update(catalog, &name_key(name), &mut id)?
            || !txn.get_for_update(catalog, &key_of(b'd', number(&id)?), &mut value)?
        {
            return Ok(false);
        }
        ask_codec(&mut txn, &TableInfo::decode(&value)?, Some(codec))?;
        txn.commit_durably(Durability::Synced)?;
        Ok(true)
    }

    /// The codec that a table asks for, `None`: as the store chooses.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Store`].
    pub fn codec(&self, name: &str) -> Result<Option<PageCodec>, Error> {
        let mut txn = self.begin();
        let found = self.shared.catalog.get(&name_key(name))?;
        let info = found.map(|id| self.shared.load(number(&id)?)).transpose()?.flatten();
        let info = info.ok_or_else(|| Error::NoTable(name.to_string()))?;
        self.codec_in(&mut txn, &info)
    }

    /// The codec that new trees of a table ask for: that of its rows.
    pub(crate) fn codec_in(
        &self,
        txn: &mut Txn,
        info: &TableInfo,
    ) -> Result<Option<PageCodec>, Error> {
        Ok(txn.codec(&info.tree_name(info.tree))?.flatten())
    }

    /// Drops an index, when all that write to the table have ended. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Definition`] while an index of the table, be it another, is being built;
    /// [`Error::NoTable`], [`Error::Store`]; nothing was changed.
    pub fn drop_index(&self, table: &str, index: &str) -> Result<bool, Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.index(index).is_none() {
            return Ok(false);
        }
        if info.is_being_built() {
            return Err(building());
        }
        self.drop_indexes(txn, &mut info, |other| other.name == index)?;
        Ok(true)
    }

    /// Drops the indexes that building has left unfinished, and what was to be the rows anew.
    pub(crate) fn remove_unfinished(&self, id: u64) -> Result<(), Error> {
        let mut txn = self.begin();
        if let Some(mut info) = self.lock_id(&mut txn, id)? {
            for tree in info.rewriting.take().iter().flat_map(Rewriting::trees) {
                txn.drop_tree(&info.tree_name(tree))?;
            }
            self.drop_indexes(txn, &mut info, |index| index.building)?;
            *self.shared.state(id).build.lock() = Build::None;
        }
        Ok(())
    }

    pub(crate) fn drop_indexes(
        &self,
        mut txn: Txn,
        info: &mut TableInfo,
        is_to_go: impl Fn(&IndexInfo) -> bool,
    ) -> Result<(), Error> {
        for index in info.indexes.iter().filter(|index| is_to_go(index)) {
            for tree in index.trees() {
                txn.drop_tree(&info.tree_name(tree))?;
            }
        }
        info.indexes.retain(|index| !is_to_go(index));
        info.version += 1;
        self.shared.store(&mut txn, info)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(())
    }

    /// Locks a table against writers and other changes of its definition.
    pub(crate) fn lock_table(&self, txn: &mut Txn, name: &str) -> Result<Option<TableInfo>, Error> {
        let mut id = Vec::new();
        if !txn.get_for_update(&self.shared.catalog, &name_key(name), &mut id)? {
            return Ok(None);
        }
        self.lock_id(txn, number(&id)?)
    }

    pub(crate) fn lock_id(&self, txn: &mut Txn, id: u64) -> Result<Option<TableInfo>, Error> {
        let (catalog, mut value) = (&self.shared.catalog, Vec::new());
        // This row first: writers hold shares of it, and of nothing else here.
        if !txn.get_for_update(catalog, &key_of(b'v', id), &mut value)?
            || !txn.get_for_update(catalog, &key_of(b'd', id), &mut value)?
        {
            return Ok(None);
        }
        TableInfo::decode(&value).map(Some)
    }

    fn next_id(&self, txn: &mut Txn) -> Result<u64, Error> {
        let (catalog, mut value) = (&self.shared.catalog, Vec::new());
        let there = txn.get_for_update(catalog, NEXT_ID, &mut value)?;
        let id = if there { number(&value)? } else { 1 };
        txn.put(catalog, NEXT_ID, &(id + 1).to_le_bytes())?;
        Ok(id)
    }

    fn ids(&self) -> Result<Vec<u64>, Error> {
        let mut ids = Vec::new();
        self.each(b'd', |id, _| {
            let id = id.try_into().map(u64::from_be_bytes);
            ids.push(id.map_err(|_| Error::Damaged("a key of the catalog is malformed".into()))?);
            Ok(())
        })?;
        Ok(ids)
    }

    /// Visits the committed rows of one kind: key without the kind, value.
    pub(crate) fn each(
        &self,
        kind: u8,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut cursor = self.shared.catalog.cursor();
        let mut on = cursor.seek(&[kind])?;
        while on {
            let key = cursor.key().to_vec();
            let Some((&first, rest)) = key.split_first() else { break };
            if first != kind {
                break;
            }
            visit(rest, cursor.value()?)?;
            on = cursor.next()?;
        }
        Ok(())
    }

    pub(crate) fn forget_samples(&self, txn: &mut Txn, id: u64) -> Result<(), Error> {
        let prefix = key_of(b's', id);
        let mut keys = Vec::new();
        self.each(b's', |rest, _| {
            if rest.starts_with(&prefix[1..]) {
                keys.push([b"s", rest].concat());
            }
            Ok(())
        })?;
        for key in keys {
            txn.delete(&self.shared.catalog, &key)?;
        }
        self.shared.state(id).samples.forget();
        Ok(())
    }
}

pub(crate) fn new_index(
    info: &mut TableInfo,
    spec: &IndexSpec,
    building: bool,
) -> Result<IndexInfo, Error> {
    check_name(&spec.name)?;
    if info.index(&spec.name).is_some() {
        return Err(Error::IndexExists(spec.name.clone()));
    }
    if spec.unique && spec.several {
        let words = "an index that keeps several entries of a row is not unique";
        return Err(Error::Definition(words.into()));
    }
    let tree = info.claim_tree();
    if building {
        info.claim_tree();
    }
    Ok(IndexInfo {
        name: spec.name.clone(),
        unique: spec.unique,
        several: spec.several,
        definition: spec.definition.clone(),
        building,
        tree,
        since: info.version,
    })
}

pub(crate) fn building() -> Error {
    Error::Definition("an index of the table is being built; try again when it is done".into())
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let len = name.len();
    Err(Error::Definition(format!("a name has 1 to {NAME_BYTES_MAX} bytes; this one has {len}")))
}

pub(crate) fn number(bytes: &[u8]) -> Result<u64, Error> {
    let number = bytes.try_into().map(u64::from_le_bytes);
    number.map_err(|_| Error::Damaged("a number in the catalog is not 8 bytes long".into()))
}

/// Has all trees of a table ask for another codec, if one is given.
pub(crate) fn ask_codec(
    txn: &mut Txn,
    info: &TableInfo,
    codec: Option<Option<PageCodec>>,
) -> Result<(), Error> {
    let Some(codec) = codec else { return Ok(()) };
    for tree in info.tree_names() {
        txn.set_codec(&tree, codec)?;
    }
    Ok(())
}
