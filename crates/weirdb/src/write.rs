//! Transactions that change rows.
use std::fmt;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bounds::Keys;
use crate::commit::Commit;
use crate::error::Error;
use crate::locked_rows::LockedRows;
use crate::options::TxnOptions;
use crate::reader::{Read, Reader, many, reading};
use crate::rows::{Rows, Source};
use crate::shared::{Shared, entered};
use crate::slice::Slice;
use crate::tree::Tree;

/// A transaction: what it changes becomes visible to others together when it commits, or not at
/// all. It sees its own changes. Dropped without [`WriteTxn::commit`], it is rolled back. One
/// thread uses it at a time; any number of transactions go on at the same time, and meet only at
/// the rows that both change.
///
/// A panic of a closure that was given to it leaves it as it was before the call; it may be gone on
/// with.
pub struct WriteTxn {
    db: Arc<Shared>,
    txn: Mutex<weir::Txn>,
    options: TxnOptions,
    /// Something has failed because it met another transaction.
    is_met: AtomicBool,
}

/// A point of a transaction to go back to: [`WriteTxn::savepoint`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    raw: weir::Savepoint,
}

/// How a [`WriteTxn::compare_and_swap`] went.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the value may have been another one"]
pub enum Swap {
    /// The value was as expected, and is the new one now.
    Swapped,
    /// The value is this one, and was not changed.
    Differs(Option<Slice>),
}

impl Swap {
    /// Whether the value was as expected.
    #[must_use]
    pub fn is_swapped(&self) -> bool {
        matches!(self, Swap::Swapped)
    }
}

impl WriteTxn {
    pub(crate) fn new(db: Arc<Shared>, options: TxnOptions) -> Self {
        let txn = Mutex::new(db.raw.begin(options.raw()));
        WriteTxn { db, txn, options, is_met: AtomicBool::new(false) }
    }

    /// Does something with the engine's transaction, and tells of it in this interface's words.
    pub(crate) fn with<T>(
        &self,
        act: impl FnOnce(&mut weir::Txn) -> Result<T, weir::Error>,
    ) -> Result<T, Error> {
        act(&mut entered(&self.txn)).map_err(|e| {
            let e = self.db.fails(e);
            self.is_met.fetch_or(e.is_retryable(), Ordering::Relaxed);
            e
        })
    }

    #[cfg(feature = "server")]
    pub(crate) fn raw(&self) -> &Mutex<weir::Txn> {
        &self.txn
    }

    /// Whether something has failed that may go well when all of it is done anew.
    pub(crate) fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Relaxed)
    }

    reading!('_);

    fn rows_in(&self, tree: &Tree, keys: Keys) -> Rows<'_> {
        if let Err(e) = tree.check_of(&self.db) {
            return Rows::failed(e);
        }
        let (db, tree, txn) = (&self.db, tree.raw.clone(), &self.txn);
        Rows::new(Source::Txn { db, tree, txn }, keys, self.options.reads_lock())
    }

    /// As `get`, of the row as committed last, or changed by this transaction; locks it for this
    /// transaction alone until it ends, whether or not there is one.
    ///
    /// # Errors
    /// As `get`; [`Error::Conflict`] when the lock cannot be had.
    pub fn get_for_update(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>, Error> {
        let mut value = Vec::new();
        let found = self.with(|txn| txn.get_for_update(&tree.raw, key.as_ref(), &mut value))?;
        Ok(found.then(|| value.into()))
    }

    // The methods named `get_for_..`, here and in `weir`, are many on purpose: each is one line
    // over what locks and reads, and says at the call what a kind as an argument would not.
    /// As [`WriteTxn::get_for_update`], with a lock that others may share.
    ///
    /// # Errors
    /// As [`WriteTxn::get_for_update`].
    pub fn get_for_share(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>, Error> {
        let mut value = Vec::new();
        let found = self.with(|txn| txn.get_for_share(&tree.raw, key.as_ref(), &mut value))?;
        Ok(found.then(|| value.into()))
    }

    /// The rows of a range as committed last, each locked for this transaction alone as it is read;
    /// from [`Isolation::RepeatableRead`](crate::Isolation::RepeatableRead) on also the places
    /// between them, so that no other transaction inserts there.
    pub fn range_for_update<K: AsRef<[u8]>>(
        &mut self,
        tree: &Tree,
        range: impl RangeBounds<K>,
    ) -> LockedRows<'_> {
        let keys = Keys::of(&range);
        let cursor = tree.check_of(&self.db).map(|()| {
            (!keys.is_empty()).then(|| {
                let mut cursor = entered(&self.txn).cursor_for_update(&tree.raw);
                cursor.set_bounds(&keys.from, keys.to.as_deref());
                cursor
            })
        });
        LockedRows::new(self, cursor)
    }

    /// Inserts a row, or replaces its value.
    ///
    /// # Errors
    /// [`Error::Conflict`], [`Error::InvalidInput`] for a key or value that is too long,
    /// [`Error::DiskFull`], [`Error::TooLarge`], [`Error::Halted`] and others: the row is as it was
    /// and the transaction goes on, but after a deadlock or a halt.
    pub fn put(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.with(|txn| txn.put(&tree.raw, key.as_ref(), value.as_ref()))
    }

    /// Inserts a row that is not there yet.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is one; as [`WriteTxn::put`].
    pub fn insert(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.with(|txn| txn.insert(&tree.raw, key.as_ref(), value.as_ref()))
    }

    /// Removes a row. `false`: there was none.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn remove(&mut self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.with(|txn| txn.delete(&tree.raw, key.as_ref()))
    }

    /// Makes a row's value from the old one, as committed last; `None`: there is no row, or there
    /// is to be none. Returns the old value. The row is locked meanwhile, and nothing else is:
    /// `change` may use the database as it likes. If it changes the same row by another
    /// transaction, that one waits for this one, in vain.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn update(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>, Error> {
        let key = key.as_ref();
        let old = self.get_for_update(tree, key)?;
        match (change(old.as_deref()), &old) {
            (Some(new), Some(old)) => self.with(|txn| txn.replace(&tree.raw, key, old, &new))?,
            (Some(new), None) => self.put(tree, key, new)?,
            (None, Some(_)) => drop(self.remove(tree, key)?),
            (None, None) => {}
        }
        Ok(old)
    }

    /// Makes a row's value `new` if it is `expected`; `None`: no row.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn compare_and_swap(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Swap, Error> {
        let mut is_swapped = false;
        let old = self.update(tree, key, |old| {
            is_swapped = old == expected;
            if is_swapped { new.map(<[u8]>::to_vec) } else { old.map(<[u8]>::to_vec) }
        })?;
        Ok(if is_swapped { Swap::Swapped } else { Swap::Differs(old) })
    }

    /// Adds to a counter, and returns what it is then. A counter is a value of eight bytes, the
    /// least first, signed; where there is no row it is 0.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when the value has not eight bytes, or the sum no room in them; as
    /// [`WriteTxn::put`].
    pub fn add(&mut self, tree: &Tree, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        let key = key.as_ref();
        let old = match self.get_for_update(tree, key)? {
            None => 0,
            Some(old) => i64::from_le_bytes(old.as_ref().try_into().map_err(|_| {
                let len = old.len();
                Error::InvalidInput(format!("a counter has 8 bytes, and this value has {len}"))
            })?),
        };
        let overflows = || Error::InvalidInput(format!("{old} + {by} does not fit a counter"));
        let sum = old.checked_add(by).ok_or_else(overflows)?;
        self.put(tree, key, sum.to_le_bytes())?;
        Ok(sum)
    }

    /// Makes an empty tree, for others when this commits.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is one of that name; [`Error::InvalidInput`] when the name is
    /// empty or longer than 255 bytes; as [`WriteTxn::put`].
    pub fn create_tree(&mut self, name: &str) -> Result<Tree, Error> {
        let made = self.with(|txn| txn.create_tree(name));
        let raw = made.map_err(|e| self.unless_there(name, e))?;
        Ok(Tree::new(self.db.clone(), raw, name))
    }

    /// Why a tree could not get this name: what was said, unless another one has it.
    fn unless_there(&mut self, name: &str, said: Error) -> Error {
        let is_there = matches!(said, Error::InvalidInput(_))
            && self.get_tree(name).is_ok_and(|tree| tree.is_some());
        if is_there { Error::Exists(format!("there is a tree named '{name}'")) } else { said }
    }

    /// The tree of this name, as committed now or made by this transaction; `None`: there is none.
    ///
    /// # Errors
    /// As [`WriteTxn::create_tree`].
    pub fn get_tree(&mut self, name: &str) -> Result<Option<Tree>, Error> {
        let raw = self.with(|txn| txn.tree(name))?;
        Ok(raw.map(|raw| Tree::new(self.db.clone(), raw, name)))
    }

    /// Drops a tree when this commits; waits for all that have changed rows of it. `false`: there
    /// was none.
    ///
    /// # Errors
    /// As [`WriteTxn::put`].
    pub fn drop_tree(&mut self, name: &str) -> Result<bool, Error> {
        self.with(|txn| txn.drop_tree(name))
    }

    /// Gives a tree another name, for others when this commits. `false`: there was none of the old
    /// name.
    ///
    /// # Errors
    /// As [`WriteTxn::create_tree`].
    pub fn rename_tree(&mut self, from: &str, to: &str) -> Result<bool, Error> {
        let renamed = self.with(|txn| txn.rename_tree(from, to));
        renamed.map_err(|e| self.unless_there(to, e))
    }

    /// A point to go back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { raw: entered(&self.txn).savepoint() }
    }

    /// Rolls back what was changed since the savepoint, which is kept; those made after it are good
    /// for nothing any more.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a savepoint of another transaction, or one that is good for
    /// nothing any more: nothing is rolled back then. As [`WriteTxn::put`].
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), Error> {
        self.with(|txn| txn.rollback_to(savepoint.raw))
    }

    /// Does a part of the transaction; when that fails, what it has changed is rolled back, and the
    /// transaction goes on.
    ///
    /// # Errors
    /// What `part` returns; an [`Error`] of rolling it back.
    pub fn nested<T, E: From<Error>>(
        &mut self,
        part: impl FnOnce(&mut WriteTxn) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.savepoint();
        let done = part(self);
        if done.is_err() && !entered(&self.txn).has_ended() {
            self.rollback_to(before)?;
        }
        done
    }

    /// Commits: others see the changes when this returns, which are as durable then as the options
    /// say ([`TxnOptions::durability`]).
    ///
    /// # Errors
    /// [`Error`]: it is rolled back, unless the database has halted. Then it may or may not
    /// survive.
    pub fn commit(self) -> Result<(), Error> {
        let durability = self.options.durability.unwrap_or(self.db.durability);
        self.commit_nowait()?.wait_for(durability)
    }

    /// Commits: others see the changes when this returns. What it returns says when they are
    /// durable; a commit that builds on them becomes durable later than they do.
    ///
    /// # Errors
    /// As [`WriteTxn::commit`].
    pub fn commit_nowait(self) -> Result<Commit, Error> {
        let raw = left(self.txn).commit().map_err(|e| self.db.fails(e))?;
        Ok(Commit { db: self.db, raw })
    }

    /// Rolls everything back.
    ///
    /// # Errors
    /// [`Error`] when that fails: the background goes on with it, and the next opening if the
    /// database has halted.
    pub fn rollback(self) -> Result<(), Error> {
        left(self.txn).rollback().map_err(|e| self.db.fails(e))
    }

    /// Prepares it for a commit that something else decides, under a name (two-phase commit): it is
    /// durable when this returns, and survives a restart with its changes and all its locks, until
    /// [`Db::commit_prepared`](crate::Db::commit_prepared) or
    /// [`Db::rollback_prepared`](crate::Db::rollback_prepared).
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when the name is in use, empty or longer than 255 bytes; [`Error`]:
    /// it is rolled back, unless the database has halted.
    pub fn prepare(self, name: impl AsRef<[u8]>) -> Result<(), Error> {
        left(self.txn).prepare(name.as_ref()).map_err(|e| self.db.fails(e))
    }
}

fn left(txn: Mutex<weir::Txn>) -> weir::Txn {
    txn.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Read for WriteTxn {
    fn value(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.with(|txn| txn.get(&tree.raw, key))
    }

    fn rows(&self, tree: &Tree, keys: Keys) -> Rows<'_> {
        self.rows_in(tree, keys)
    }
}

impl Reader for WriteTxn {}

impl fmt::Debug for WriteTxn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTxn").field("options", &self.options).finish_non_exhaustive()
    }
}
