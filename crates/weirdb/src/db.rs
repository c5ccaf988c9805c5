//! The handle of an open database.
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use weir::{Clock, SystemClock};

use crate::batch::Batch;
use crate::config::{Codec, Config};
use crate::convert::open_error;
use crate::error::{Error, OpenError};
use crate::options::{Durability, TxnOptions};
use crate::read::ReadTxn;
use crate::shared::Shared;
use crate::stats::{CheckReport, Recovery, Stats, TreeCheck};
use crate::tree::Tree;
use crate::write::WriteTxn;

/// An open database. Cloning gives another handle of the same; all may be used from any thread.
/// When the last handle is dropped, those of trees and transactions included, it is closed as well
/// as can be; [`Db::close`] closes it at once, and says how that went.
#[derive(Clone)]
pub struct Db {
    pub(crate) inner: Arc<Shared>,
}

/// Something that an operator should hear of at once: [`Db::on_notice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// The database has halted: nothing is written any more. Why.
    Halted(&'a str),
    /// A page is damaged or cannot be read: which, where, and what is wrong with it.
    PageLost(&'a str),
    /// A page was damaged and has been put right: which, where, and from what. The disk is worth a
    /// look.
    PageRepaired(&'a str),
}

/// After a transaction has met another one, it waits up to so long before it is tried again, twice
/// as long each time,
const PAUSE_MICROS: u64 = 50;
/// and at most so long.
const PAUSE_MICROS_MAX: u64 = 10_000;

impl Config {
    /// Opens the database in a directory, making both if need be; recovers after a crash.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<Db, OpenError> {
        Db::open_with(dir.as_ref(), self)
    }
}

impl Tree {
    /// The database that it is of.
    #[must_use]
    pub fn db(&self) -> Db {
        Db { inner: self.db.clone() }
    }
}

impl Db {
    /// Opens the database in a directory with the usual [`Config`], making both if need be;
    /// recovers after a crash.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Db, OpenError> {
        Config::new().open(dir)
    }

    pub(crate) fn open_with(dir: &Path, config: &Config) -> Result<Db, OpenError> {
        let raw = config.raw().map_err(OpenError::Config)?;
        Self::opened(dir, config, weir::Db::open(dir, raw))
    }

    /// The engine's database in this directory, or why it could not be opened.
    pub(crate) fn opened(
        dir: &Path,
        config: &Config,
        raw: Result<weir::Db, weir::Error>,
    ) -> Result<Db, OpenError> {
        let raw = raw.map_err(|e| open_error(dir.to_path_buf(), e))?;
        let (durability, clock) = (config.durability, SystemClock::new());
        Ok(Db { inner: Arc::new(Shared { raw, dir: dir.into(), durability, clock }) })
    }

    fn convert<T>(&self, done: Result<T, weir::Error>) -> Result<T, Error> {
        done.map_err(|e| self.inner.fails(e))
    }

    /// The directory that it lies in, as it was given.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// What is committed now, to be read for as long as one likes.
    #[must_use]
    pub fn read(&self) -> ReadTxn {
        ReadTxn::new(self.inner.clone())
    }

    /// Begins a transaction with the usual options.
    #[must_use]
    pub fn write(&self) -> WriteTxn {
        self.write_with(TxnOptions::new())
    }

    /// Begins a transaction. It costs nothing until it does something.
    #[must_use]
    pub fn write_with(&self, options: TxnOptions) -> WriteTxn {
        WriteTxn::new(self.inner.clone(), options)
    }

    /// Runs `body` in a transaction and commits it. If it meets another transaction
    /// ([`Error::is_retryable`]) and fails for that, it is rolled back and `body` is called again,
    /// after a moment, as often as the options say: so `body` must do nothing that cannot be done
    /// twice, but to its transaction. Any other error rolls the transaction back.
    ///
    /// ```
    /// # fn main() -> Result<(), weirdb::Error> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = weirdb::Db::open(dir.path())?;
    /// # let accounts = db.open_tree("accounts")?;
    /// use weirdb::TxnOptions;
    ///
    /// let left = db.transact(TxnOptions::new(), |txn| {
    ///     txn.add(&accounts, "alice", -30)?;
    ///     txn.add(&accounts, "bob", 30)
    /// })?;
    /// assert_eq!(left, 30);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `body` returns, at its last time; an [`Error`] of the commit.
    pub fn transact<T, E: From<Error>>(
        &self,
        options: TxnOptions,
        mut body: impl FnMut(&mut WriteTxn) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut pause = PAUSE_MICROS;
        for attempt in 1.. {
            let is_last = attempt >= options.attempts;
            let mut txn = self.write_with(options);
            let done = body(&mut txn);
            let is_met = txn.is_met();
            match done {
                Ok(value) => match txn.commit() {
                    Ok(()) => return Ok(value),
                    // A deadlock may have ended it, and the body have passed over that.
                    Err(Error::TransactionOver) if is_met && !is_last => {}
                    Err(e) if is_last || !e.is_retryable() => return Err(e.into()),
                    Err(_) => {}
                },
                Err(e) if is_last || !is_met => return Err(e),
                // Rolled back before it waits.
                Err(_) => drop(txn),
            }
            self.inner.clock.sleep_micros(fastrand::u64(..=pause));
            pause = (2 * pause).min(PAUSE_MICROS_MAX);
        }
        Err(Error::TransactionOver.into())
    }

    /// Applies a batch: all of it or nothing, as durable as the database's commits are.
    ///
    /// # Errors
    /// As [`WriteTxn::put`]; [`Error::InvalidInput`] for trees of another database.
    pub fn apply(&self, batch: &Batch) -> Result<(), Error> {
        self.apply_with(batch, self.inner.durability)
    }

    /// As [`Db::apply`], as durable as asked.
    ///
    /// # Errors
    /// As [`Db::apply`].
    pub fn apply_with(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.convert(self.inner.raw.write(&batch.raw, durability.raw()))
    }

    fn named(&self, raw: weir::Tree, name: &str) -> Tree {
        Tree::new(self.inner.clone(), raw, name)
    }

    /// The tree of this name, made if there is none.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] when the name is empty or longer than 255 bytes; [`Error::ReadOnly`]
    /// and others when it has to be made.
    pub fn open_tree(&self, name: &str) -> Result<Tree, Error> {
        Ok(self.named(self.convert(self.inner.raw.open_tree(name))?, name))
    }

    /// The tree of this name, `None` when there is none.
    ///
    /// # Errors
    /// [`Error::InvalidInput`], [`Error::Damaged`], [`Error::Io`], [`Error::Closed`].
    pub fn get_tree(&self, name: &str) -> Result<Option<Tree>, Error> {
        let raw = self.convert(self.inner.raw.tree(name))?;
        Ok(raw.map(|raw| self.named(raw, name)))
    }

    /// Makes an empty tree; durable when this returns.
    ///
    /// # Errors
    /// [`Error::Exists`] when there is one of that name; as [`Db::open_tree`].
    pub fn create_tree(&self, name: &str) -> Result<Tree, Error> {
        self.transact(synced(), |txn| txn.create_tree(name))
    }

    /// As [`Db::create_tree`], of a tree whose pages are packed by this codec wherever that saves a
    /// sixteenth. Of other trees the store chooses how, by what it measures.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where pages are kept in place ([`crate::Store::InPlace`]): none are
    /// packed. As [`Db::create_tree`].
    pub fn create_tree_with(&self, name: &str, codec: Codec) -> Result<Tree, Error> {
        self.check_packs()?;
        let raw = self.convert(self.inner.raw.create_tree_with(name, Some(codec.raw())))?;
        Ok(self.named(raw, name))
    }

    /// Has pages of a tree packed by another codec from their next write on, or as the store
    /// chooses (`None`); durable when this returns. `false`: there is no such tree.
    ///
    /// # Errors
    /// As [`Db::create_tree_with`].
    pub fn set_codec(&self, name: &str, codec: Option<Codec>) -> Result<bool, Error> {
        self.check_packs()?;
        self.convert(self.inner.raw.set_codec(name, codec.map(Codec::raw)))
    }

    fn check_packs(&self) -> Result<(), Error> {
        if self.inner.raw.packs_pages() {
            return Ok(());
        }
        let words = "the database keeps its pages in place and packs none: a codec can be asked \
                     for where they are kept in segments (Store::Log)";
        Err(Error::InvalidInput(words.into()))
    }

    /// Drops a tree, when all transactions that have changed rows of it have ended; durable when
    /// this returns. `false`: there was none. Other handles of it get [`Error::NoTree`] from
    /// then on, save by readers that have seen it before.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it would have to wait for too long; as [`Db::open_tree`].
    pub fn drop_tree(&self, name: &str) -> Result<bool, Error> {
        self.convert(self.inner.raw.drop_tree(name))
    }

    /// Gives a tree another name; durable when this returns. `false`: there was none of the old
    /// name.
    ///
    /// # Errors
    /// As [`Db::create_tree`] and [`Db::drop_tree`].
    pub fn rename_tree(&self, from: &str, to: &str) -> Result<bool, Error> {
        self.transact(synced(), |txn| txn.rename_tree(from, to))
    }

    /// The names of all trees, in order.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], [`Error::Closed`].
    pub fn tree_names(&self) -> Result<Vec<String>, Error> {
        self.convert(self.inner.raw.tree_names())
    }

    /// The names of all prepared transactions, in order ([`WriteTxn::prepare`]).
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.inner.raw.prepared()
    }

    /// Commits a prepared transaction; durable when this returns. `false`: there is none of that
    /// name.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is still prepared, now or at the next opening.
    pub fn commit_prepared(&self, name: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.convert(self.inner.raw.commit_prepared(name.as_ref(), weir::Durability::Synced))
    }

    /// Rolls a prepared transaction back. `false`: there is none of that name.
    ///
    /// # Errors
    /// As [`Db::commit_prepared`].
    pub fn rollback_prepared(&self, name: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.convert(self.inner.raw.rollback_prepared(name.as_ref()))
    }

    /// Waits until all that was committed so far is on stable storage.
    ///
    /// # Errors
    /// [`Error::Halted`], [`Error::Closed`].
    pub fn sync(&self) -> Result<(), Error> {
        self.convert(self.inner.raw.sync())
    }

    /// Writes all pages that are changed in memory now. Nothing needs this: it is done all the
    /// time, at a rate that keeps the log from filling.
    ///
    /// # Errors
    /// [`Error::Halted`], [`Error::Closed`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.convert(self.inner.raw.checkpoint())
    }

    /// Makes the log larger or smaller while the database is in use; durable when this returns.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] outside 640 KiB to 1 TiB, or beyond 16 times what the log had when
    /// the database was opened.
    pub fn set_log_bytes(&self, bytes: u64) -> Result<(), Error> {
        self.convert(self.inner.raw.set_log_bytes(bytes))
    }

    /// Makes the cache larger or smaller while the database is in use, up to the memory that the
    /// process may use. Locks and old versions keep the bounds that they had.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] below 256 KiB, beyond that memory, or when pages in use cannot leave
    /// what is to be given up: the cache has what it had, or is a part of the way there.
    pub fn set_cache_bytes(&self, bytes: u64) -> Result<(), Error> {
        self.convert(self.inner.raw.set_pool_bytes(bytes))
    }

    /// Checks every tree, and that every page has one owner. Nothing may be written meanwhile, or
    /// pages may seem lost. `progress` gets pages looked at, and pages in use.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; damage is reported in [`CheckReport::problems`].
    pub fn check(&self, mut progress: impl FnMut(u64, u64)) -> Result<CheckReport, Error> {
        let raw = self.convert(self.inner.raw.check(&mut progress))?;
        // The first one is the engine's own.
        let trees = raw.trees.into_iter().filter(|(name, _)| !name.is_empty());
        let tree = |(name, tree): (String, weir::TreeReport)| TreeCheck {
            name,
            rows: tree.rows,
            pages: tree.pages.len() as u64,
        };
        let (pages_used, pages_free) = (raw.pages_used, raw.pages_free);
        let (trees, problems) = (trees.map(tree).collect(), raw.problems);
        Ok(CheckReport { trees, problems, pages_used, pages_free })
    }

    /// What opening had to do after a crash; `None` when there was nothing to do.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.inner.raw.recovery_report().map(|raw| Recovery {
            log_bytes: raw.redo_bytes(),
            pages_repaired: raw.pages_repaired,
            pages_pending: raw.pending_pages,
            rolled_back: raw.undone,
            prepared: raw.prepared,
            micros: raw.total_micros,
        })
    }

    /// What opening with [`Config::force_recovery`] has found damaged or left out, each in words;
    /// nothing without it. [`Db::on_notice`] names the pages that are met later.
    #[must_use]
    pub fn recovery_remarks(&self) -> &[String] {
        self.inner.raw.recovery_remarks()
    }

    /// What it says of itself, now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.raw.stats().into()
    }

    /// Tells `listener` from now on when the database halts and when a page is lost, at once where
    /// it has halted already. It is called by the thread that meets what is wrong, and must neither
    /// wait nor use the database. `false`: there is one already.
    pub fn on_notice(&self, listener: impl Fn(Notice<'_>) + Send + Sync + 'static) -> bool {
        self.inner.raw.on_notice(Box::new(move |notice| {
            listener(match notice {
                weir::Notice::Halted(why) => Notice::Halted(why),
                weir::Notice::PageLost(what) => Notice::PageLost(what),
                weir::Notice::PageRepaired(what) => Notice::PageRepaired(what),
            });
        }))
    }

    /// Closes the database in order: the next opening has nothing to redo. Close is close, whatever
    /// other handles there are: calls on them say [`Error::Closed`] from then on, transactions
    /// still open are rolled back, and the directory may be opened again as soon as this returns,
    /// whatever it returns.
    ///
    /// # Errors
    /// [`Error`] when something could not be written; nothing acknowledged is lost.
    pub fn close(self) -> Result<(), Error> {
        self.convert(self.inner.raw.clone().close())
    }
}

fn synced() -> TxnOptions {
    TxnOptions::new().durability(Durability::Synced)
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("dir", &self.inner.dir).finish_non_exhaustive()
    }
}
