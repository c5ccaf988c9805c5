//! A table of rows and keys that the caller has encoded: one tree of rows and any number of
//! indexes, kept in agreement by every statement.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_base::lock::Mutex;
use weir_base::rank;

use weir::{Extent, Isolation, Savepoint, Snapshot, Tree, Txn};

use crate::descriptor::TableInfo;
use crate::entry::{Entry, primary_of, stored_key, stored_value};
use crate::error::Error;
use crate::fold::{drop_tail, in_tree, is_long, with_tail};
use crate::scan::Lock;
use crate::sequence::Sequence;
use crate::several::{Change, Entries, changes};
use crate::shared::Shared;
use crate::stats::Samples;

/// No index's tree.
pub(crate) const NO_TREE: u64 = u64::MAX;

/// What all handles of one table share.
pub(crate) struct TableState {
    /// Changes of its definition since the database was opened, its making included, twice; one
    /// more while a change is under way. Above 0, a transaction may have a snapshot from before.
    pub(crate) altered: AtomicU64,
    /// The tree of the unique index that is being built in which a writer has met a duplicate;
    /// [`NO_TREE`].
    pub(crate) build_failed: AtomicU64,
    /// How far the building of indexes has come.
    pub(crate) build: Mutex<rank::IndexBuild, Build>,
    pub(crate) samples: Samples,
    pub(crate) numbers: Sequence,
    pub(crate) row_ids: Sequence,
}

/// The building of indexes, from their announcement on.
#[derive(Default)]
pub(crate) enum Build {
    /// None is under way, or none of this process's.
    #[default]
    None,
    /// Announced: the rows as they were then, before any transaction wrote to the delta.
    From(Snapshot),
    /// The base has the entries of those rows.
    Loaded,
    /// Rows that are written anew are those of this snapshot.
    AsOf(Snapshot),
}

/// A handle of a table, good until the table's definition changes.
#[derive(Clone)]
pub struct RawTable {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<TableState>,
    pub(crate) info: Arc<TableInfo>,
    pub(crate) primary: Tree,
    pub(crate) indexes: Vec<Tree>,
    /// Where writers note which rows they change, while the table is written anew.
    pub(crate) log: Option<Tree>,
    pub(crate) version_key: [u8; 9],
    pub(crate) checked: Checked,
    pub(crate) locked: Locked,
}

/// The latest transaction that has locked the definition through this handle, and holds the lock
/// until it ends; 0: none. Numbers are never used again.
#[derive(Default)]
pub(crate) struct Locked(AtomicU64);

impl Clone for Locked {
    fn clone(&self) -> Self {
        Locked(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// What a handle has found out about the snapshots that know its definition: all from a number on,
/// as long as `altered` is what it was then.
#[derive(Default)]
pub(crate) struct Checked(Mutex<rank::CheckedDefinition, Option<(u64, u64)>>);

impl Clone for Checked {
    /// Not shared: threads with handles of their own do not meet here.
    fn clone(&self) -> Self {
        Checked(Mutex::new(*self.0.lock()))
    }
}

/// A row with its index entries.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// The primary key.
    pub key: &'a [u8],
    /// The row.
    pub row: &'a [u8],
    /// One entry for each index, in the table's order, those being built included.
    pub entries: &'a [Entry<'a>],
}

impl RawTable {
    /// Its definition as this handle knows it.
    #[must_use]
    pub fn info(&self) -> &TableInfo {
        &self.info
    }

    /// The place of an index of this name.
    ///
    /// # Errors
    /// [`Error::NoIndex`]; also when it is still being built.
    pub fn index(&self, name: &str) -> Result<usize, Error> {
        let at = self.info.index(name).filter(|&at| !self.info.indexes[at].building);
        at.ok_or_else(|| Error::NoIndex(name.to_string()))
    }

    /// Inserts a row and its entries: all, or nothing if it fails.
    ///
    /// # Errors
    /// [`Error::Duplicate`] names the first unique index in order that has the key already;
    /// [`Error::Changed`], [`Error::Store`], [`Error::Input`].
    pub fn insert(&self, txn: &mut Txn, row: RowImage<'_>) -> Result<(), Error> {
        self.check_entries(row.entries)?;
        self.lock_definition(txn)?;
        self.insert_locked(txn, row)
    }

    pub(crate) fn insert_locked(&self, txn: &mut Txn, row: RowImage<'_>) -> Result<(), Error> {
        self.statement(txn, |txn| {
            self.insert_row(txn, row)?;
            (0..self.indexes.len()).try_for_each(|at| self.add(txn, at, row.key, row.entries[at]))
        })
    }

    /// Turns one row into another, its key included: all, or nothing if it fails. `old` is the row
    /// as this transaction has read it with a lock.
    ///
    /// # Errors
    /// As [`RawTable::insert`]; [`Error::Damaged`] when the old row or an entry of it is not there.
    pub fn update(&self, txn: &mut Txn, old: RowImage<'_>, new: RowImage<'_>) -> Result<(), Error> {
        self.check_entries(old.entries)?;
        self.check_entries(new.entries)?;
        self.lock_definition(txn)?;
        self.update_locked(txn, old, new)
    }

    pub(crate) fn update_locked(
        &self,
        txn: &mut Txn,
        old: RowImage<'_>,
        new: RowImage<'_>,
    ) -> Result<(), Error> {
        self.statement(txn, |txn| {
            let moved = old.key != new.key;
            if moved {
                self.remove_row(txn, old.key)?;
                self.insert_row(txn, new)?;
            } else if old.row != new.row {
                let (was, is) = (with_tail(old.key, old.row), with_tail(new.key, new.row));
                txn.replace(&self.primary, &in_tree(new.key), &was, &is)?;
                self.note(txn, &in_tree(new.key))?;
            }
            for at in 0..self.indexes.len() {
                let (was, is) = (old.entries[at], new.entries[at]);
                if !moved && was == is {
                    continue;
                }
                let index = &self.info.indexes[at];
                let stays = !moved && was.key == is.key && was.has_null == is.has_null;
                if index.several && !moved {
                    self.change(txn, at, new.key, was, is)?;
                } else if stays && !index.building {
                    self.replace(txn, at, new.key, is)?;
                } else {
                    self.remove(txn, at, old.key, was)?;
                    self.add(txn, at, new.key, is)?;
                }
            }
            Ok(())
        })
    }

    /// Turns the several entries of a row, whose key stays, into others.
    fn change(
        &self,
        txn: &mut Txn,
        at: usize,
        key: &[u8],
        was: Entry<'_>,
        is: Entry<'_>,
    ) -> Result<(), Error> {
        let index = &self.info.indexes[at];
        changes(Entries::of(index, was), Entries::of(index, is), |change| match change {
            Change::Remove(was) => self.remove_one(txn, at, key, was),
            Change::Add(is) => self.add_one(txn, at, key, is),
            Change::Replace(was, is) if index.building => {
                self.remove_one(txn, at, key, was)?;
                self.add_one(txn, at, key, is)
            }
            Change::Replace(_, is) => self.replace(txn, at, key, is),
        })
    }

    /// Removes a row, whose bytes are not looked at, and its entries: all, or nothing if it fails.
    ///
    /// # Errors
    /// As [`RawTable::update`].
    pub fn delete(&self, txn: &mut Txn, old: RowImage<'_>) -> Result<(), Error> {
        self.check_entries(old.entries)?;
        self.lock_definition(txn)?;
        self.delete_locked(txn, old)
    }

    pub(crate) fn delete_locked(&self, txn: &mut Txn, old: RowImage<'_>) -> Result<(), Error> {
        self.statement(txn, |txn| {
            self.remove_row(txn, old.key)?;
            (0..self.indexes.len())
                .try_for_each(|at| self.remove(txn, at, old.key, old.entries[at]))
        })
    }

    /// Reads a row as the transaction sees it into `out`. `false`: it sees none.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`].
    pub fn get(&self, txn: &mut Txn, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        self.check_view(txn, self.info.since)?;
        self.read(txn, key, Lock::Plain, out)
    }

    /// As [`RawTable::get`], of a long row only its first bytes
    /// ([`crate::RawScan::set_fronts`]).
    ///
    /// # Errors
    /// As [`RawTable::get`].
    pub fn get_front(&self, txn: &mut Txn, key: &[u8], out: &mut Vec<u8>) -> Result<Extent, Error> {
        if is_long(key) {
            // What is left of the key stands in front of the row, and may be longer than a front.
            let found = self.get(txn, key, out)?;
            return Ok(if found { Extent::Whole } else { Extent::Nothing });
        }
        self.check_view(txn, self.info.since)?;
        Ok(txn.get_front(&self.primary, key, out)?)
    }

    /// Locks a key for this transaction alone, whether or not there is a row, and reads the row as
    /// committed last. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`].
    pub fn get_for_update(
        &self,
        txn: &mut Txn,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.lock_definition(txn)?;
        self.read(txn, key, Lock::Update, out)
    }

    /// As [`RawTable::get_for_update`], with a lock that others may share.
    ///
    /// # Errors
    /// As [`RawTable::get_for_update`].
    pub fn get_for_share(
        &self,
        txn: &mut Txn,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.lock_definition(txn)?;
        self.read(txn, key, Lock::Share, out)
    }

    /// Reads a row, for a transaction that has looked at the definition.
    pub(crate) fn read(
        &self,
        txn: &mut Txn,
        key: &[u8],
        lock: Lock,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let (tree, at) = (&self.primary, in_tree(key));
        let found = match lock {
            Lock::Plain => txn.get_into(tree, &at, out)?,
            Lock::Share => txn.get_for_share(tree, &at, out)?,
            Lock::Update => txn.get_for_update(tree, &at, out)?,
        };
        if found {
            drop_tail(key, out)?;
        }
        Ok(found)
    }

    /// Locks an index key without NULLs of a unique index, whether or not there is a row, and reads
    /// the primary key of its row as committed last: the current read that REPLACE needs after
    /// [`Error::Duplicate`]. `None`: there is no row.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`], [`Error::Input`] for an index that is not unique.
    pub fn find_for_update(
        &self,
        txn: &mut Txn,
        index: usize,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        if !self.info.indexes.get(index).is_some_and(|index| index.unique) {
            return Err(Error::Input("only a unique index has one row for a key".into()));
        }
        self.lock_definition(txn)?;
        let (at, mut value) = (in_tree(key), Vec::new());
        if !txn.get_for_update(&self.indexes[index], &at, &mut value)? {
            return Ok(None);
        }
        primary_of(&at, &value).map(Some)
    }

    /// Releases the locks of this table's rows and entries that the transaction has come to hold
    /// between two marks ([`Txn::lock_mark`]), not those of ranges nor of definitions (TABLE-3): of
    /// what it has read for a change and does not want after all. For the levels below REPEATABLE
    /// READ.
    pub fn release_between(&self, txn: &Txn, marks: std::ops::Range<usize>) {
        txn.release_between(marks, std::iter::once(&self.primary).chain(&self.indexes));
    }

    /// Takes `count` auto-increment numbers in a row, none above `max`, and returns the first. They
    /// are never given out again, whatever becomes of this transaction.
    ///
    /// # Errors
    /// [`Error::Exhausted`], [`Error::Changed`], [`Error::Store`].
    pub fn take_numbers(&self, txn: &mut Txn, count: u64, max: u64) -> Result<u64, Error> {
        self.lock_definition(txn)?;
        self.take_numbers_locked(count, max)
    }

    pub(crate) fn take_numbers_locked(&self, count: u64, max: u64) -> Result<u64, Error> {
        self.state.numbers.take(&self.shared.db, &self.shared.catalog, count, max)
    }

    /// Sees to it that all auto-increment numbers from now on are above `used`. `max` is the
    /// greatest that there can be: the fewer are left, the smaller are the gaps of a crash.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`].
    pub fn pass_number(&self, txn: &mut Txn, used: u64, max: u64) -> Result<(), Error> {
        self.lock_definition(txn)?;
        self.pass_number_locked(used, max)
    }

    pub(crate) fn pass_number_locked(&self, used: u64, max: u64) -> Result<(), Error> {
        self.state.numbers.pass(&self.shared.db, &self.shared.catalog, used, max)
    }

    /// The auto-increment number that would be given out next.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn next_number(&self) -> Result<u64, Error> {
        self.state.numbers.peek(&self.shared.catalog)
    }

    /// Goes on with the auto-increment number `next`, also if that is lower than what was given
    /// out: for a table that holds no number from there on.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn reset_numbers(&self, next: u64) -> Result<(), Error> {
        self.state.numbers.reset(self.shared.begin(), &self.shared.catalog, next)
    }

    /// A primary key for a row that has none of its own: 8 bytes, each greater than all before it.
    ///
    /// # Errors
    /// As [`RawTable::take_numbers`].
    pub fn take_row_id(&self, txn: &mut Txn) -> Result<[u8; 8], Error> {
        self.lock_definition(txn)?;
        self.take_row_id_locked()
    }

    pub(crate) fn take_row_id_locked(&self) -> Result<[u8; 8], Error> {
        let (db, catalog) = (&self.shared.db, &self.shared.catalog);
        Ok(self.state.row_ids.take(db, catalog, 1, u64::MAX)?.to_be_bytes())
    }

    /// Makes sure that the definition is what this handle knows, and stays so until the transaction
    /// ends (TABLE-3): for a transaction that must not wait for that later, in what else changes
    /// the table.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`].
    pub fn lock_definition(&self, txn: &mut Txn) -> Result<(), Error> {
        let number = txn.number()?.0;
        // A lock once got is kept until the end, also by a transaction that goes back to a
        // savepoint.
        if self.locked.0.load(Ordering::Relaxed) == number {
            return Ok(());
        }
        let (catalog, mut version) = (&self.shared.catalog, Vec::new());
        let mark = txn.lock_mark();
        let there = txn.get_for_share(catalog, &self.version_key, &mut version)?;
        if !there || version != self.info.version.to_le_bytes() {
            // The transaction that changes it next, or drops it, does not wait for one that cannot
            // use it.
            txn.release_between(mark..txn.lock_mark(), std::iter::once(catalog));
            return Err(Error::Changed);
        }
        self.locked.0.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Makes sure that the transaction sees the table in a version that this handle knows, not
    /// older than that in which the tree to be read was complete (TABLE-4).
    pub(crate) fn check_view(&self, txn: &mut Txn, since: u64) -> Result<(), Error> {
        if txn.isolation() == Isolation::Serializable {
            // It reads what is committed when it comes to it: the tree stays until it has ended.
            return self.lock_definition(txn);
        }
        // The snapshot first: a change that is not seen below is committed after it was taken.
        let number = txn.snapshot_sequence();
        let altered = self.state.altered.load(Ordering::Acquire);
        if altered == 0 {
            return Ok(());
        }
        let known = *self.checked.0.lock();
        if known.is_some_and(|(then, from)| then == altered && number.is_some_and(|n| n >= from)) {
            return Ok(());
        }
        let mut version = Vec::new();
        if !txn.get_into(&self.shared.catalog, &self.version_key, &mut version)? {
            return Err(Error::Changed);
        }
        let seen = version.try_into().map(u64::from_le_bytes);
        let seen = seen.map_err(|_| Error::Damaged("a table's version is not 8 bytes".into()))?;
        if !(since..=self.info.version).contains(&seen) {
            return Err(Error::Changed);
        }
        // Of a version that all of this handle's trees are complete in, and with no change under
        // way that may be committed between two looks.
        if seen == self.info.version && altered.is_multiple_of(2) {
            *self.checked.0.lock() = number.map(|number| (altered, number));
        }
        Ok(())
    }

    pub(crate) fn check_entries(&self, entries: &[Entry<'_>]) -> Result<(), Error> {
        if entries.len() == self.indexes.len() {
            return Ok(());
        }
        let (given, needed) = (entries.len(), self.indexes.len());
        Err(Error::Input(format!("{given} index entries for a table with {needed} indexes")))
    }

    /// Runs a statement; if it fails, rolls back what it has done (TABLE-2).
    pub(crate) fn statement(
        &self,
        txn: &mut Txn,
        run: impl FnOnce(&mut Txn) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before: Savepoint = txn.savepoint();
        let done = run(txn);
        if done.is_err() && !txn.has_ended() {
            txn.rollback_to(before)?;
        }
        done
    }

    pub(crate) fn insert_row(&self, txn: &mut Txn, row: RowImage<'_>) -> Result<(), Error> {
        let (key, value) = (in_tree(row.key), with_tail(row.key, row.row));
        match txn.insert(&self.primary, &key, &value) {
            Err(weir::Error::Duplicate) => Err(Error::Duplicate { index: None }),
            done => {
                done?;
                self.note(txn, &key)
            }
        }
    }

    fn remove_row(&self, txn: &mut Txn, key: &[u8]) -> Result<(), Error> {
        let key = in_tree(key);
        if txn.delete(&self.primary, &key)? {
            return self.note(txn, &key);
        }
        Err(Error::Damaged("a row to be changed is not there; was it read without a lock?".into()))
    }

    /// Notes that this transaction has changed a row, by its key in the tree, which it has locked:
    /// so it meets no other in the log.
    fn note(&self, txn: &mut Txn, key: &[u8]) -> Result<(), Error> {
        let Some(log) = &self.log else { return Ok(()) };
        let number = txn.number()?.0;
        Ok(txn.put(log, key, &number.to_le_bytes())?)
    }

    /// Adds a writer's entry. Two rows with one unique key meet at the same key of the index's
    /// tree, so that the second waits for the first, committed or not (TABLE-1). If it cannot be
    /// added while the index is being built, it is the index that cannot be, not the row.
    pub(crate) fn add(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(), Error> {
        Entries::of(&self.info.indexes[at], entry)
            .try_for_each(|entry| self.add_one(txn, at, primary, entry?))
    }

    fn add_one(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(), Error> {
        let index = &self.info.indexes[at];
        if index.building {
            if !self.add_to_delta(txn, at, primary, entry)? {
                self.state.build_failed.store(index.tree, Ordering::SeqCst);
            }
            return Ok(());
        }
        let key = stored_key(index.unique, primary, entry);
        match txn.insert(&self.indexes[at], &key, &stored_value(index.unique, primary, entry)) {
            Err(weir::Error::Duplicate) => Err(Error::Duplicate { index: Some(at) }),
            done => Ok(done?),
        }
    }

    fn replace(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(), Error> {
        let unique = self.info.indexes[at].unique;
        let key = stored_key(unique, primary, entry);
        Ok(txn.put(&self.indexes[at], &key, &stored_value(unique, primary, entry))?)
    }

    fn remove(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(), Error> {
        Entries::of(&self.info.indexes[at], entry)
            .try_for_each(|entry| self.remove_one(txn, at, primary, entry?))
    }

    fn remove_one(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(), Error> {
        let index = &self.info.indexes[at];
        if index.building {
            if !self.remove_from_delta(txn, at, primary, entry)? {
                self.state.build_failed.store(index.tree, Ordering::SeqCst);
            }
            return Ok(());
        }
        let key = stored_key(index.unique, primary, entry);
        if txn.delete(&self.indexes[at], &key)? {
            return Ok(());
        }
        let name = &index.name;
        Err(Error::Damaged(format!("a row that is there has no entry in index '{name}'")))
    }
}
