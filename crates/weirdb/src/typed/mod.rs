//! Trees whose keys and values have types.
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use crate::bounds::Keys;
use crate::db::Db;
use crate::error::{Cause, Error};
use crate::reader::Reader;
use crate::rows::Rows;
use crate::slice::Slice;
use crate::tree::Tree;
use crate::write::WriteTxn;

pub(crate) mod key;
pub(crate) mod value;

use key::{AsKey, Key, KeyBytes, Prefix};
use value::{Malformed, Value};

/// A [`Tree`] whose keys and values have types: ordered as its keys are. It is read through a
/// [`ReadTxn`](crate::ReadTxn) or a [`WriteTxn`], and changed through a [`WriteTxn`].
///
/// ```
/// # fn main() -> Result<(), weirdb::Error> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = weirdb::Db::open(dir.path())?;
/// use weirdb::{TxnOptions, TypedTree};
///
/// let sales: TypedTree<(String, u32), u64> = db.typed_tree("sales")?;
/// db.transact(TxnOptions::new(), |txn| {
///     sales.put(txn, &("tea".into(), 2024), &120)?;
///     sales.put(txn, &("tea".into(), 2025), &130)?;
///     sales.put(txn, &("coffee".into(), 2025), &90)
/// })?;
/// let now = db.read();
/// let mut tea = 0;
/// for row in sales.prefix(&now, &("tea".to_string(),)) {
///     let ((_, _year), sold) = row?;
///     tea += sold;
/// }
/// assert_eq!(tea, 250);
/// # Ok(())
/// # }
/// ```
///
/// The types are not written down: opened with others, its rows are malformed ([`Error::Decode`]),
/// or misread.
pub struct TypedTree<K, V> {
    tree: Tree,
    types: PhantomData<fn() -> (K, V)>,
}

impl Db {
    /// The tree of this name, made if there is none, with keys and values of these types.
    ///
    /// # Errors
    /// As [`Db::open_tree`].
    pub fn typed_tree<K: Key, V: Value>(&self, name: &str) -> Result<TypedTree<K, V>, Error> {
        Ok(TypedTree::of(self.open_tree(name)?))
    }
}

fn key_bytes<K>(key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out);
    out
}

fn value_bytes(value: &impl Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    value
        .encode(&mut out)
        .map_err(|e| Error::InvalidInput(format!("the value cannot be written as bytes: {e}")))?;
    Ok(out)
}

fn decoded<V: Value>(bytes: &[u8]) -> Result<V, Error> {
    V::decode(bytes).map_err(Error::Decode)
}

fn key_of<K: Key>(bytes: &[u8]) -> Result<K, Error> {
    let mut rest = KeyBytes::new(bytes);
    let key = K::decode(&mut rest)?;
    if rest.is_empty() { Ok(key) } else { Err(Malformed("it goes on behind its end").into()) }
}

fn row_of<K: Key, V: Value>((key, value): (Slice, Slice)) -> Result<(K, V), Error> {
    Ok((key_of(&key)?, decoded(&value)?))
}

impl<K: Key, V: Value> TypedTree<K, V> {
    /// A tree, seen with these types.
    #[must_use]
    pub fn of(tree: Tree) -> Self {
        TypedTree { tree, types: PhantomData }
    }

    /// The tree, without types.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The value at a key, `None` when there is none.
    ///
    /// # Errors
    /// As [`Tree::get`]; [`Error::Decode`].
    pub fn get(
        &self,
        txn: &impl Reader,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<V>, Error> {
        let found = txn.value(&self.tree, &key_bytes(key))?;
        found.as_deref().map(decoded).transpose()
    }

    /// Whether there is a row at a key.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn contains_key(
        &self,
        txn: &impl Reader,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<bool, Error> {
        Ok(txn.value(&self.tree, &key_bytes(key))?.is_some())
    }

    /// The rows whose keys are in a range. Of bounds that are the wrong way round there are none.
    pub fn range<'t>(
        &self,
        txn: &'t impl Reader,
        range: impl RangeBounds<K>,
    ) -> TypedRows<'t, K, V> {
        // No key is the beginning of another: a bound's bytes stand for it.
        let bound = |bound: Bound<&K>| bound.map(|key| key_bytes(key));
        let range = (bound(range.start_bound()), bound(range.end_bound()));
        self.rows(txn, Keys::of(&range))
    }

    /// The rows whose keys begin so: with the first parts of a tuple, with the first characters of
    /// a text.
    pub fn prefix<'t>(
        &self,
        txn: &'t impl Reader,
        prefix: &(impl Prefix<K> + ?Sized),
    ) -> TypedRows<'t, K, V> {
        let mut bytes = Vec::new();
        prefix.encode_prefix(&mut bytes);
        self.rows(txn, Keys::with_prefix(&bytes))
    }

    /// All rows.
    pub fn iter<'t>(&self, txn: &'t impl Reader) -> TypedRows<'t, K, V> {
        self.rows(txn, Keys::all())
    }

    fn rows<'t>(&self, txn: &'t impl Reader, keys: Keys) -> TypedRows<'t, K, V> {
        TypedRows { rows: txn.rows(&self.tree, keys), types: PhantomData }
    }

    /// The row with the least key.
    ///
    /// # Errors
    /// As [`TypedTree::get`].
    pub fn first(&self, txn: &impl Reader) -> Result<Option<(K, V)>, Error> {
        self.iter(txn).next().transpose()
    }

    /// The row with the greatest key.
    ///
    /// # Errors
    /// As [`TypedTree::get`].
    pub fn last(&self, txn: &impl Reader) -> Result<Option<(K, V)>, Error> {
        self.iter(txn).next_back().transpose()
    }

    /// How many rows there are, exactly: it walks over all of them.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn len(&self, txn: &impl Reader) -> Result<u64, Error> {
        let mut rows = txn.rows(&self.tree, Keys::all());
        rows.try_fold(0, |number, row| row.map(|_| number + 1))
    }

    /// Whether there are no rows.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub fn is_empty(&self, txn: &impl Reader) -> Result<bool, Error> {
        Ok(txn.rows(&self.tree, Keys::all()).next().transpose()?.is_none())
    }

    /// As [`TypedTree::get`], of the row as committed last; locks it for this transaction alone.
    ///
    /// # Errors
    /// As [`WriteTxn::get_for_update`]; [`Error::Decode`].
    pub fn get_for_update(
        &self,
        txn: &mut WriteTxn,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<V>, Error> {
        let found = txn.get_for_update(&self.tree, key_bytes(key))?;
        found.as_deref().map(decoded).transpose()
    }

    /// Inserts a row, or replaces its value.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn put(
        &self,
        txn: &mut WriteTxn,
        key: &(impl AsKey<K> + ?Sized),
        value: &V,
    ) -> Result<(), Error> {
        txn.put(&self.tree, key_bytes(key), value_bytes(value)?)
    }

    /// Inserts a row that is not there yet.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is one; as [`WriteTxn::put`].
    pub fn insert(
        &self,
        txn: &mut WriteTxn,
        key: &(impl AsKey<K> + ?Sized),
        value: &V,
    ) -> Result<(), Error> {
        txn.insert(&self.tree, key_bytes(key), value_bytes(value)?)
    }

    /// Removes a row. `false`: there was none.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn remove(
        &self,
        txn: &mut WriteTxn,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<bool, Error> {
        txn.remove(&self.tree, key_bytes(key))
    }

    /// Makes a row's value from the old one, as committed last; `None`: there is no row, or there
    /// is to be none. See [`WriteTxn::update`].
    ///
    /// # Errors
    /// As [`WriteTxn::put`]; [`Error::Decode`].
    pub fn update(
        &self,
        txn: &mut WriteTxn,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(Option<V>) -> Option<V>,
    ) -> Result<(), Error> {
        let key = key_bytes(key);
        let old = txn.get_for_update(&self.tree, &key)?;
        match change(old.as_deref().map(decoded).transpose()?) {
            Some(new) => txn.put(&self.tree, key, value_bytes(&new)?),
            None if old.is_some() => txn.remove(&self.tree, key).map(drop),
            None => Ok(()),
        }
    }
}

/// Rows of a [`TypedTree`] in the order of their keys, from both ends. After an error of the tree
/// it ends; one row that is malformed ([`Error::Decode`]) is reported, and it goes on.
pub struct TypedRows<'t, K, V> {
    rows: Rows<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> TypedRows<'_, K, V> {
    /// As [`Rows::expect_rows`].
    #[must_use]
    pub fn expect_rows(self, rows: usize) -> Self {
        TypedRows { rows: self.rows.expect_rows(rows), types: PhantomData }
    }
}

impl<K: Key, V: Value> Iterator for TypedRows<'_, K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|row| row_of(row?))
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for TypedRows<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| row_of(row?))
    }
}

impl<K: Key, V: Value> std::iter::FusedIterator for TypedRows<'_, K, V> {}

impl<K, V> Clone for TypedTree<K, V> {
    fn clone(&self) -> Self {
        TypedTree { tree: self.tree.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for TypedTree<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = (std::any::type_name::<K>(), std::any::type_name::<V>());
        f.debug_struct("TypedTree").field("tree", &self.tree).field("types", &types).finish()
    }
}

impl<K, V> fmt::Debug for TypedRows<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedRows").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl From<Cause> for Error {
    /// Of something stored that is not of its type.
    fn from(cause: Cause) -> Self {
        Error::Decode(cause)
    }
}
