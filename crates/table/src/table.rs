//! A table of rows of values.
use std::sync::Arc;
use weir_base::lock::RwLock;
use weir_base::rank;

use weir::Txn;

use crate::catalog::{IndexSpec, Tables};
use crate::check::TableReport;
use crate::entry::EntryBuf;
use crate::error::Error;
use crate::layout::{Encoded, KeyColumns, Layout, Row};
use crate::range::Range;
use crate::raw::RawTable;
use crate::scan::{Direction, Lock};
use crate::schema::{Index, Schema, put_parts};
use crate::stats::Estimate;
use crate::value::Value;
use crate::walk::{RowKey, Scan};

/// A table of rows of values. It learns of new and dropped indexes by itself.
#[derive(Clone)]
pub struct Table {
    tables: Tables,
    opened: Arc<RwLock<rank::OpenedTable, Arc<Opened>>>,
}

/// A table in one version.
pub(crate) struct Opened {
    pub(crate) raw: RawTable,
    pub(crate) layout: Layout,
}

impl Opened {
    fn of(raw: RawTable) -> Result<Arc<Opened>, Error> {
        let layout = Layout::of(raw.info())?;
        Ok(Arc::new(Opened { raw, layout }))
    }

    /// The columns of an index, or of the primary key.
    fn key(&self, index: Option<usize>) -> &KeyColumns {
        index.map_or(&self.layout.primary, |at| &self.layout.indexes[at])
    }
}

impl Tables {
    /// Makes a table. `false`: there is one of this name already.
    ///
    /// # Errors
    /// [`Error::Definition`], [`Error::Store`]; nothing was made.
    pub fn create_table(&self, name: &str, schema: &Schema) -> Result<bool, Error> {
        schema.check()?;
        let indexes: Vec<_> = schema.indexes.iter().map(spec).collect();
        self.create_raw(name, &schema.encode(), &indexes)
    }

    /// Opens a table.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Store`], [`Error::Damaged`].
    pub fn open_table(&self, name: &str) -> Result<Table, Error> {
        let opened = Opened::of(self.open_raw(name)?)?;
        Ok(Table { tables: self.clone(), opened: Arc::new(RwLock::new(opened)) })
    }

    /// Adds an index while others read and write the table. `false`: there is one of this name
    /// already.
    ///
    /// # Errors
    /// As [`Tables::add_index_raw`].
    pub fn add_index(&self, table: &str, index: &Index) -> Result<bool, Error> {
        let layout = Layout::of(self.open_raw(table)?.info())?;
        layout.schema.check_index(index)?;
        let columns = layout.resolve(&index.parts)?;
        self.add_index_raw(table, &spec(index), &mut |key, row, entry| {
            layout.put_entry(&columns, &layout.decode(key, row)?, entry)
        })
    }
}

fn spec(index: &Index) -> IndexSpec {
    let mut definition = Vec::new();
    put_parts(&mut definition, &index.parts);
    IndexSpec { name: index.name.clone(), unique: index.unique, several: false, definition }
}

impl Table {
    /// Its columns and indexes as they are now, those being built included.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    pub fn schema(&self) -> Result<Schema, Error> {
        self.renew(&self.now())?;
        Ok(self.now().layout.schema.clone())
    }

    /// Inserts a row, a value for each column. An auto-increment column that has NULL is given a
    /// number, which is returned; a greater number of the caller's is passed by those that follow.
    ///
    /// # Errors
    /// [`Error::Duplicate`], [`Error::Input`], [`Error::Exhausted`], [`Error::Store`]; nothing was
    /// inserted.
    pub fn insert(&self, txn: &mut Txn, row: &[Value]) -> Result<Option<u64>, Error> {
        let opened = self.for_writing(txn)?;
        let (layout, raw) = (&opened.layout, &opened.raw);
        let mut numbered = None;
        let mut generated = None;
        if let Some(at) = layout.auto_increment.filter(|&at| at < row.len()) {
            let kind = layout.schema.columns[at].kind;
            let max = kind.integer_max().unwrap_or(0);
            match row[at] {
                Value::Null => {
                    let number = raw.take_numbers_locked(1, max)?;
                    let value = if kind.unsigned_max().is_some() {
                        Value::UInt(number)
                    } else {
                        Value::Int(number as i64)
                    };
                    let mut row = row.to_vec();
                    row[at] = value;
                    (numbered, generated) = (Some(row), Some(number));
                }
                Value::UInt(used) if used <= max => raw.pass_number_locked(used, max)?,
                Value::Int(used) if used > 0 && used as u64 <= max => {
                    raw.pass_number_locked(used as u64, max)?;
                }
                _ => {}
            }
        }
        let row = numbered.as_deref().unwrap_or(row);
        let hidden =
            if layout.primary.is_empty() { raw.take_row_id_locked()?.to_vec() } else { Vec::new() };
        let encoded = layout.encode(row, &hidden)?;
        encoded.with_image(|image| raw.insert_locked(txn, image))?;
        Ok(generated)
    }

    /// The row of a primary key, as the transaction sees it.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Changed`], [`Error::Store`], [`Error::Damaged`].
    pub fn get(&self, txn: &mut Txn, key: &[Value]) -> Result<Option<Row>, Error> {
        self.reading(|opened| {
            let key = opened.layout.primary_key(key)?;
            let mut row = Vec::new();
            let found = opened.raw.get(txn, &key, &mut row)?;
            found.then(|| opened.layout.decode(&key, &row)).transpose()
        })
    }

    /// Locks a primary key for this transaction alone, whether or not there is a row, and reads the
    /// row as committed last.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_for_update(&self, txn: &mut Txn, key: &[Value]) -> Result<Option<Row>, Error> {
        self.get_locked(txn, key, Lock::Update)
    }

    /// As [`Table::get_for_update`], with a lock that others may share.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_for_share(&self, txn: &mut Txn, key: &[Value]) -> Result<Option<Row>, Error> {
        self.get_locked(txn, key, Lock::Share)
    }

    fn get_locked(&self, txn: &mut Txn, key: &[Value], lock: Lock) -> Result<Option<Row>, Error> {
        let opened = self.for_writing(txn)?;
        let key = opened.layout.primary_key(key)?;
        let mut row = Vec::new();
        let found = opened.raw.read(txn, &key, lock, &mut row)?;
        found.then(|| opened.layout.decode(&key, &row)).transpose()
    }

    /// Changes the row of a primary key, any columns of it: reads it with a lock, as committed
    /// last, and lets `edit` change it. `false`: there is none.
    ///
    /// # Errors
    /// As [`Table::insert`]; the row is as it was.
    pub fn update(
        &self,
        txn: &mut Txn,
        key: &[Value],
        edit: impl FnOnce(&mut Row),
    ) -> Result<bool, Error> {
        let opened = self.for_writing(txn)?;
        let key = opened.layout.primary_key(key)?;
        opened.update(txn, &key, edit)
    }

    /// Removes the row of a primary key. `false`: there was none.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Store`]; the row is as it was.
    pub fn delete(&self, txn: &mut Txn, key: &[Value]) -> Result<bool, Error> {
        let opened = self.for_writing(txn)?;
        let key = opened.layout.primary_key(key)?;
        opened.delete(txn, &key)
    }

    /// As [`Table::update`], of the row that a walk has come to; also in tables without a primary
    /// key.
    ///
    /// # Errors
    /// As [`Table::update`].
    pub fn update_at(
        &self,
        txn: &mut Txn,
        at: &RowKey,
        edit: impl FnOnce(&mut Row),
    ) -> Result<bool, Error> {
        self.for_writing(txn)?.update(txn, &at.0, edit)
    }

    /// As [`Table::delete`], of the row that a walk has come to.
    ///
    /// # Errors
    /// As [`Table::delete`].
    pub fn delete_at(&self, txn: &mut Txn, at: &RowKey) -> Result<bool, Error> {
        self.for_writing(txn)?.delete(txn, &at.0)
    }

    /// Walks over rows in the order of an index, or (`None`) of the primary key.
    ///
    /// # Errors
    /// [`Error::NoIndex`], [`Error::Input`], [`Error::Changed`], [`Error::Store`].
    pub fn scan(
        &self,
        txn: &mut Txn,
        index: Option<&str>,
        range: &Range,
        direction: Direction,
    ) -> Result<Scan, Error> {
        self.scan_with(txn, index, range, direction, Lock::Plain)
    }

    /// As [`Table::scan`], with locks on the rows (and index entries) that it comes to.
    ///
    /// # Errors
    /// As [`Table::scan`].
    pub fn scan_with(
        &self,
        txn: &mut Txn,
        index: Option<&str>,
        range: &Range,
        direction: Direction,
        lock: Lock,
    ) -> Result<Scan, Error> {
        self.reading(|opened| {
            let index = index.map(|name| opened.raw.index(name)).transpose()?;
            let range = range.encode(&opened.layout, opened.key(index))?;
            let raw = opened.raw.scan_with(txn, index, range, direction, lock)?;
            Ok(Scan { opened: opened.clone(), raw, index, lock })
        })
    }

    /// The first row, in the order of an index, whose key begins with these values: of a unique
    /// index and all its columns, the only one.
    ///
    /// # Errors
    /// As [`Table::scan`].
    pub fn find(&self, txn: &mut Txn, index: &str, values: &[Value]) -> Result<Option<Row>, Error> {
        let range = Range::equal(values.iter().cloned());
        self.scan(txn, Some(index), &range, Direction::Up)?.next(txn)
    }

    /// Counts the rows that the transaction sees, exactly, by walking the tree that is the least
    /// work.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::Store`].
    pub fn count(&self, txn: &mut Txn) -> Result<u64, Error> {
        self.reading(|opened| opened.raw.count(txn))
    }

    /// About how many rows lie in a range of an index, or (`None`) of the primary key.
    ///
    /// # Errors
    /// As [`Table::scan`].
    pub fn estimate(&self, index: Option<&str>, range: &Range) -> Result<Estimate, Error> {
        self.reading(|opened| {
            let index = index.map(|name| opened.raw.index(name)).transpose()?;
            let range = range.encode(&opened.layout, opened.key(index))?;
            opened.raw.estimate(index, &range)
        })
    }

    /// Samples the table, for [`Table::estimate`]. Returns the number of rows met.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn analyze(&self) -> Result<u64, Error> {
        self.reading(|opened| opened.raw.analyze())
    }

    /// Compares all indexes with the rows, as the transaction sees them.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; what does not agree is in the report.
    pub fn check(&self, txn: &mut Txn) -> Result<TableReport, Error> {
        self.reading(|opened| {
            let layout = &opened.layout;
            let mut make = |at: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| {
                layout.put_entry(&layout.indexes[at], &layout.decode(key, row)?, entry)
            };
            opened.raw.check(txn, &mut make, &mut || true)
        })
    }

    fn now(&self) -> Arc<Opened> {
        self.opened.read().clone()
    }

    /// The table in the version that holds until the transaction ends.
    fn for_writing(&self, txn: &mut Txn) -> Result<Arc<Opened>, Error> {
        loop {
            let opened = self.now();
            match opened.raw.lock_definition(txn) {
                Err(Error::Changed) if self.renew(&opened)? => {}
                locked => return locked.map(|()| opened),
            }
        }
    }

    /// Runs `read`, with a newer version if need be.
    fn reading<T>(
        &self,
        mut read: impl FnMut(&Arc<Opened>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let opened = self.now();
            match read(&opened) {
                Err(Error::Changed | Error::NoIndex(_)) if self.renew(&opened)? => {}
                done => return done,
            }
        }
    }

    /// Whether there was a newer version.
    fn renew(&self, old: &Opened) -> Result<bool, Error> {
        let raw = match self.tables.open_id(old.raw.info().id) {
            Err(Error::Changed) => return Ok(false),
            raw => raw?,
        };
        if raw.info().version <= old.raw.info().version {
            return Ok(false);
        }
        *self.opened.write() = Opened::of(raw)?;
        Ok(true)
    }
}

impl Opened {
    /// The definition is locked.
    fn update(
        &self,
        txn: &mut Txn,
        key: &[u8],
        edit: impl FnOnce(&mut Row),
    ) -> Result<bool, Error> {
        let Some((mut row, old)) = self.lock_row(txn, key)? else { return Ok(false) };
        edit(&mut row);
        let new = self.layout.encode(&row, key)?;
        old.with_image(|old| new.with_image(|new| self.raw.update_locked(txn, old, new)))?;
        Ok(true)
    }

    fn delete(&self, txn: &mut Txn, key: &[u8]) -> Result<bool, Error> {
        let Some((_, old)) = self.lock_row(txn, key)? else { return Ok(false) };
        old.with_image(|old| self.raw.delete_locked(txn, old))?;
        Ok(true)
    }

    fn lock_row(&self, txn: &mut Txn, key: &[u8]) -> Result<Option<(Row, Encoded)>, Error> {
        let mut bytes = Vec::new();
        if !self.raw.read(txn, key, Lock::Update, &mut bytes)? {
            return Ok(None);
        }
        let row = self.layout.decode(key, &bytes)?;
        let encoded = self.layout.encode(&row, key)?;
        Ok(Some((row, encoded)))
    }
}
