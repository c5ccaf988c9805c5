//! What reads: snapshots and transactions, in the same words.
use crate::bounds::Keys;
use crate::error::Error;
use crate::rows::Rows;
use crate::slice::Slice;
use crate::tree::Tree;

/// What trees can be read through: [`ReadTxn`](crate::ReadTxn) and [`WriteTxn`](crate::WriteTxn),
/// which have the reading methods themselves. This is what [`TypedTree`](crate::TypedTree) asks
/// for; it cannot be implemented elsewhere.
pub trait Reader: private::Read {}

pub(crate) mod private {
    use super::{Error, Keys, Rows, Tree};

    /// What differs.
    pub trait Read {
        /// The value at a key.
        fn value(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
        /// Rows whose keys are among these.
        fn rows(&self, tree: &Tree, keys: Keys) -> Rows<'_>;
    }
}

pub(crate) use private::Read;

/// The values at `keys`, in their order. In the order of the keys, so that leaves which are not in
/// memory are read many at once.
pub(crate) fn many<K: AsRef<[u8]>>(
    reader: &impl Read,
    tree: &Tree,
    keys: &[K],
) -> Result<Vec<Option<Slice>>, Error> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*a].as_ref().cmp(keys[*b].as_ref()));
    let mut values: Vec<Option<Slice>> = keys.iter().map(|_| None).collect();
    let mut ahead = weir::KeysAhead::default();
    for (n, &at) in order.iter().enumerate() {
        tree.raw.come_to(&mut ahead, order[n..].iter().map(|&at| keys[at].as_ref()));
        values[at] = reader.value(tree, keys[at].as_ref())?.map(Slice::from);
    }
    Ok(values)
}

/// The reading methods of a type that is [`Read`], over rows that live as long as `$life`.
macro_rules! reading {
    ($life:lifetime) => {
        /// The value at `key`, `None` when there is none.
        ///
        /// # Errors
        /// [`Error::Damaged`], [`Error::Io`], [`Error::Closed`], [`Error::NoTree`];
        /// [`Error::InvalidInput`] for a tree of another database.
        pub fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Slice>, Error> {
            Ok(self.value(tree, key.as_ref())?.map(Slice::from))
        }

        /// The values at many keys, in the order of these: as `get` of each, and faster where they
        /// are not in memory, since the disk is asked for many at a time.
        ///
        /// # Errors
        /// As `get`.
        pub fn get_many<K: AsRef<[u8]>>(
            &self,
            tree: &Tree,
            keys: &[K],
        ) -> Result<Vec<Option<Slice>>, Error> {
            many(self, tree, keys)
        }

        /// Whether there is a row at `key`.
        ///
        /// # Errors
        /// As `get`.
        pub fn contains_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool, Error> {
            Ok(self.value(tree, key.as_ref())?.is_some())
        }

        /// The rows whose keys are in a range: `b"a"..b"c"`, `key..=key`. Of bounds that are the
        /// wrong way round there are none.
        pub fn range<K: AsRef<[u8]>>(
            &self,
            tree: &Tree,
            range: impl RangeBounds<K>,
        ) -> Rows<$life> {
            self.rows_in(tree, Keys::of(&range))
        }

        /// The rows whose keys begin with these bytes.
        pub fn prefix(&self, tree: &Tree, prefix: impl AsRef<[u8]>) -> Rows<$life> {
            self.rows_in(tree, Keys::with_prefix(prefix.as_ref()))
        }

        /// All rows.
        pub fn iter(&self, tree: &Tree) -> Rows<$life> {
            self.rows_in(tree, Keys::all())
        }

        /// The row with the least key.
        ///
        /// # Errors
        /// As `get`.
        pub fn first(&self, tree: &Tree) -> Result<Option<(Slice, Slice)>, Error> {
            self.iter(tree).next().transpose()
        }

        /// The row with the greatest key.
        ///
        /// # Errors
        /// As `get`.
        pub fn last(&self, tree: &Tree) -> Result<Option<(Slice, Slice)>, Error> {
            self.iter(tree).next_back().transpose()
        }

        /// How many rows there are, exactly: it walks over all of them
        /// ([`Tree::approximate_len`](crate::Tree::approximate_len) does not).
        ///
        /// # Errors
        /// As `get`.
        pub fn len(&self, tree: &Tree) -> Result<u64, Error> {
            self.iter(tree).try_fold(0, |rows, row| row.map(|_| rows + 1))
        }

        /// Whether there are no rows.
        ///
        /// # Errors
        /// As `get`.
        pub fn is_empty(&self, tree: &Tree) -> Result<bool, Error> {
            Ok(self.first(tree)?.is_none())
        }
    };
}

pub(crate) use reading;
