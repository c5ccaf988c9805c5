//! What is done with one tree, in a transaction for each call.
use std::ops::RangeBounds;

use crate::error::Error;
use crate::options::{Isolation, TxnOptions};
use crate::read::ReadTxn;
use crate::rows::Rows;
use crate::slice::Slice;
use crate::tree::Tree;
use crate::write::{Swap, WriteTxn};

impl Tree {
    fn convert<T>(&self, done: Result<T, weir::Error>) -> Result<T, Error> {
        done.map_err(|e| self.db.fails(e))
    }

    fn now(&self) -> ReadTxn {
        ReadTxn::new(self.db.clone())
    }

    /// One change, which works on what is committed last, and waits for others.
    fn alone<T>(&self, act: impl FnOnce(&mut WriteTxn) -> Result<T, Error>) -> Result<T, Error> {
        let options = TxnOptions::new().isolation(Isolation::ReadCommitted);
        let mut txn = WriteTxn::new(self.db.clone(), options);
        let done = act(&mut txn)?;
        txn.commit()?;
        Ok(done)
    }

    /// The value at `key`, `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], [`Error::Closed`], [`Error::NoTree`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then(|| value.into()))
    }

    /// As [`Tree::get`], into memory of the caller's, emptied first. `false`: there is none.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, Error> {
        self.convert(self.raw.get_into(key.as_ref(), value))
    }

    /// The values at many keys at this moment, in the order of these: faster than [`Tree::get`] of
    /// each where they are not in memory, since the disk is asked for many at a time.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>, Error> {
        self.now().get_many(self, keys)
    }

    /// Whether there is a row at `key`.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.get_into(key, &mut Vec::new())
    }

    /// The rows of this moment whose keys are in a range: `b"a"..b"c"`, `key..=key`. Of bounds that
    /// are the wrong way round there are none.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Rows<'static> {
        self.now().range(self, range)
    }

    /// The rows of this moment whose keys begin with these bytes.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Rows<'static> {
        self.now().prefix(self, prefix)
    }

    /// All rows of this moment.
    pub fn iter(&self) -> Rows<'static> {
        self.now().iter(self)
    }

    /// The row with the least key.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>, Error> {
        self.now().first(self)
    }

    /// The row with the greatest key.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>, Error> {
        self.now().last(self)
    }

    /// How many rows there are, exactly: it walks over all of them.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn len(&self) -> Result<u64, Error> {
        self.now().len(self)
    }

    /// Whether there are no rows.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.now().is_empty(self)
    }

    /// About how many rows there are, from two looks down the tree: exact within a page, otherwise
    /// off by as much as pages differ; with those that are not committed, or not gone, yet.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn approximate_len(&self) -> Result<u64, Error> {
        self.convert(self.raw.estimate(&[], None))
    }

    /// Inserts a row, or replaces its value.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a key or value that is too long, [`Error::DiskFull`],
    /// [`Error::Halted`] and others; the row is as it was, unless the database has halted: then it
    /// is the old or the new when it is opened again.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.convert(self.raw.put(key.as_ref(), value.as_ref(), self.db.durability.raw()))
    }

    /// Inserts a row that is not there yet.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is one; as [`Tree::put`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.alone(|txn| txn.insert(self, key, value))
    }

    /// Removes a row. `false`: there was none.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.convert(self.raw.delete(key.as_ref(), self.db.durability.raw()))
    }

    /// Makes a row's value from the old one; `None`: there is no row, or there is to be none.
    /// Returns the old value. See [`WriteTxn::update`].
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>, Error> {
        self.alone(|txn| txn.update(self, key, change))
    }

    /// Makes a row's value `new` if it is `expected`; `None`: no row.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swap, Error> {
        self.alone(|txn| txn.compare_and_swap(self, key, expected, new))
    }

    /// Adds to a counter, and returns what it is then. See [`WriteTxn::add`].
    ///
    /// # Errors
    /// As [`WriteTxn::add`].
    pub fn add(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        self.alone(|txn| txn.add(self, key, by))
    }

    /// Fills this tree, which must be empty, from entries in ascending key order: faster and denser
    /// than putting them one by one. All or nothing, also when `sorted` panics; durable when it
    /// returns. Returns their number.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when the tree is not empty or the keys are not ascending; as
    /// [`Tree::put`].
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        sorted: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        self.convert(self.raw.bulk_load(sorted.into_iter()))
    }
}
