//! The handle of an open database.
use std::path::Path;
use std::sync::Arc;

use weir_base::{Clock, SystemClock};
use weir_btree::Env;
use weir_device::{FileVolume, OverlayVolume, Volume};
use weir_pool::PageCodec;
use weir_redo::Durability;
use weir_txn::BatchOp;

use crate::config::{Config, Create, check_log_bytes};
use crate::create::check_directory;
use crate::encryption::{over, unmake};
use crate::engine::Engine;
use crate::error::Error;
use crate::open::open;
use crate::report::RecoveryReport;
use crate::steps::STEP_ROWS;
use crate::tree::Tree;
use crate::txn_options::TxnOptions;

/// An open database. Cloning gives another handle of the same; all may be used from any thread.
/// When the last handle (trees and cursors included) is dropped the database is closed, best
/// effort; [`Db::close`] closes it at once, and says how it went.
#[derive(Clone)]
pub struct Db {
    pub(crate) engine: Arc<Engine>,
}

impl Db {
    /// Opens the database in a directory, making both if need be; recovers after a crash.
    ///
    /// # Errors
    /// [`Error::Io`] when another process has the database open, or the directory cannot be used;
    /// [`Error::Directory`] when it holds something else; [`Error::Damaged`], [`Error::Config`].
    pub fn open(dir: &Path, config: Config) -> Result<Db, Error> {
        let config = config.settled();
        let create = if config.read_only { Create::Never } else { config.create };
        Self::check_directory(dir, &Config { create, ..config.clone() })?;
        let open = if config.read_only { FileVolume::open_read_only } else { FileVolume::open };
        let volume = open(dir).map_err(|e| Error::io("opening the database's directory", e))?;
        Self::open_on(Arc::new(volume), config)
    }

    /// What [`Db::open`] finds out before it makes or changes anything: whether such settings are
    /// possible, and whether what lies in the directory may be touched. For a caller that lays a
    /// volume over the directory for [`Db::open_on`], which takes its lock there.
    ///
    /// # Errors
    /// [`Error::Config`]; [`Error::Directory`] when it is none, holds something else, or lacks the
    /// database that must be there.
    pub fn check_directory(dir: &Path, config: &Config) -> Result<(), Error> {
        config.check()?;
        check_directory(dir, config.create)
    }

    /// As [`Db::open`], on any volume: throttled, simulated, faulty.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_on(volume: Arc<dyn Volume>, config: Config) -> Result<Db, Error> {
        Self::open_with_clock(volume, config, Arc::new(SystemClock::new()))
    }

    /// As [`Db::open_on`], with a clock of the caller's.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_with_clock(
        volume: Arc<dyn Volume>,
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Db, Error> {
        let config = config.settled();
        if !config.read_only {
            let site = over(volume.clone(), &config)?;
            let is_new = site.is_new;
            let opened = open(site, config, clock);
            if opened.is_err() && is_new {
                unmake(&*volume);
            }
            return Ok(Db { engine: opened? });
        }
        let above =
            OverlayVolume::new(volume).map_err(|e| Error::io("opening to read alone", e))?;
        let config = Config { create: Create::Never, ..config };
        Ok(Db { engine: open(over(Arc::new(above), &config)?, config, clock)? })
    }

    /// What opening with [`Config::force_recovery`] has found damaged or left out, each in words;
    /// nothing where it is 0. Of what is met later [`crate::Notice::PageLost`] says which page, and
    /// [`crate::StatsSnapshot::passed_over`] how often.
    #[must_use]
    pub fn recovery_remarks(&self) -> &[String] {
        &self.engine.remarks
    }

    /// Whether it was opened to be read alone ([`Config::read_only`], [`Config::force_recovery`]).
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.engine.config.read_only
    }

    /// Whether this bug was planted, for the layers above.
    #[doc(hidden)]
    #[must_use]
    pub fn has_planted(&self, bug: weir_txn::PlantedBug) -> bool {
        self.engine.config.planted == bug
    }

    /// Makes an empty tree. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Name`] when there is one of that name, or the name is empty or longer than 255
    /// bytes.
    pub fn create_tree(&self, name: &str) -> Result<Tree, Error> {
        let mut txn = self.begin(TxnOptions::default());
        let tree = txn.create_tree(name)?;
        txn.commit_durably(Durability::Synced)?;
        Ok(tree)
    }

    /// As [`Db::create_tree`], of a tree that asks for a codec: see
    /// [`crate::Txn::create_tree_with`].
    ///
    /// # Errors
    /// As [`Db::create_tree`].
    pub fn create_tree_with(&self, name: &str, codec: Option<PageCodec>) -> Result<Tree, Error> {
        let mut txn = self.begin(TxnOptions::default());
        let tree = txn.create_tree_with(name, codec)?;
        txn.commit_durably(Durability::Synced)?;
        Ok(tree)
    }

    /// Has pages of a tree packed by another codec, or as the store chooses, from their next write
    /// on: see [`crate::Txn::set_codec`]. Durable when it returns. `false`: there is no such tree.
    ///
    /// # Errors
    /// As [`Db::create_tree`].
    pub fn set_codec(&self, name: &str, codec: Option<PageCodec>) -> Result<bool, Error> {
        let mut txn = self.begin(TxnOptions::default());
        let is_there = txn.set_codec(name, codec)?;
        txn.commit_durably(Durability::Synced)?;
        Ok(is_there)
    }

    /// Whether pages are packed, so that a codec has an effect: in segments they are, in place they
    /// are not.
    #[must_use]
    pub fn packs_pages(&self) -> bool {
        self.engine.store_kind == crate::config::StoreKind::Log
    }

    /// The tree of this name, `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Damaged`], [`Error::Io`].
    pub fn tree(&self, name: &str) -> Result<Option<Tree>, Error> {
        let raw = self.engine.find_tree(name, None)?;
        Ok(raw.map(|raw| Tree { engine: self.engine.clone(), raw }))
    }

    /// The tree of this name, made if there is none.
    ///
    /// # Errors
    /// As [`Db::create_tree`] and [`Db::tree`].
    pub fn open_tree(&self, name: &str) -> Result<Tree, Error> {
        match self.tree(name)? {
            Some(tree) => Ok(tree),
            None => match self.create_tree(name) {
                // Another thread was quicker.
                Err(Error::Name(e)) => self.tree(name)?.ok_or(Error::Name(e)),
                made => made,
            },
        }
    }

    /// Drops a tree, when all transactions that have changed or locked rows of it have ended. Other
    /// handles of it get [`Error::NoTree`] from then on, save by reads without locks, which
    /// may see what was there until no snapshot shows it. `false`: there was none. As a part of a
    /// larger change: [`crate::Txn::drop_tree`].
    ///
    /// # Errors
    /// [`Error::Transaction`] when it would have to wait for too long; others mean that the engine
    /// has halted: once the name is gone, the next opening frees what is left of its pages.
    pub fn drop_tree(&self, name: &str) -> Result<bool, Error> {
        let mut txn = self.begin(TxnOptions::default());
        let dropped = txn.drop_tree(name)?;
        txn.commit_durably(Durability::Synced)?;
        // If no snapshot holds them, its pages are free when this returns.
        self.engine.background.purge(usize::MAX);
        Ok(dropped)
    }

    /// The names of all trees, in order.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`].
    pub fn tree_names(&self) -> Result<Vec<String>, Error> {
        self.engine.names()
    }

    /// Applies a batch: all of it or nothing, now and after a crash.
    ///
    /// # Errors
    /// [`Error`]; nothing is changed then, unless the engine has halted: then the batch may turn
    /// out to be there or not when the database is opened again. [`Error::Foreign`]: a tree of the
    /// batch is of another database.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.engine.check_writable()?;
        let is_own = batch.of.as_ref().is_none_or(|of| Arc::ptr_eq(of, &self.engine.env));
        if !is_own || batch.is_mixed {
            return Err(Error::Foreign("the batch changes a tree of another database"));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let end = self.engine.auto.write(&batch.ops).map_err(|e| self.engine.failed(e.into()))?;
        self.engine.commit(end, durability)
    }

    /// Makes the log larger or smaller while the database is in use. A larger one is in force as
    /// its files are ready, a smaller one as the checkpoint allows. Durable when it returns.
    ///
    /// # Errors
    /// [`Error::Config`] outside 640 KiB to 1 TiB, or beyond 16 times what the log had when the
    /// database was opened.
    pub fn set_log_bytes(&self, bytes: u64) -> Result<(), Error> {
        check_log_bytes(bytes)?;
        let most = self.engine.pool.age_span_bytes();
        if bytes > most {
            return Err(Error::Config(format!(
                "the log can grow to {most} bytes while the database is open; to go beyond, close \
                 it after this change and open it again"
            )));
        }
        self.engine.check_writable()?;
        self.engine.checkpointer.write_control(|control| control.log_bytes = bytes)?;
        self.engine.log.set_capacity(bytes);
        Ok(())
    }

    /// Keeps the checkpoint young enough that opening after a crash takes at most about so many
    /// seconds, whatever the log has room for, at the price of more page writes; 0: the log's
    /// capacity alone decides. In force from now on, until the database is closed.
    ///
    /// How fast this machine reads a log back is known from the latest opening after a crash; until
    /// there was one, 200 MB/s are assumed. What is settled after opening (pages brought up to
    /// date, transactions rolled back) is not counted. In any case the log that opening reads stays
    /// within a quarter of the memory that the process may use, or half of what the pool leaves of
    /// it, which hold it until all pages are brought up to date.
    ///
    /// # Errors
    /// [`Error::Config`] for a number that is none, or below 0.
    pub fn set_recovery_seconds(&self, seconds: f64) -> Result<(), Error> {
        if !seconds.is_finite() || seconds < 0.0 {
            return Err(Error::Config(format!("recovery cannot take {seconds} seconds")));
        }
        self.engine.bound_recovery((seconds > 0.0).then_some(seconds));
        Ok(())
    }

    /// Writes all pages that are dirty now.
    ///
    /// # Errors
    /// [`Error::Halted`], [`Error::Io`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.engine.check_open()?;
        self.engine.checkpointer.flush_all().map_err(|e| {
            let e = Error::from(e);
            self.engine.halt(&e.to_string());
            e
        })
    }

    /// Whether room of pages that are not in use is on its way to the file system: a checkpoint,
    /// and then a few seconds, bring it there. `false`, for a second: all has gone that can.
    #[must_use]
    pub fn is_giving_back(&self) -> bool {
        self.engine.unused.has_more()
    }

    /// What opening had to do after a crash; `None` when there was nothing to do.
    #[must_use]
    pub fn recovery_report(&self) -> Option<RecoveryReport> {
        self.engine.report
    }

    /// One step of all background work, for [`crate::Background::Manual`].
    ///
    /// # Errors
    /// [`Error::Halted`], [`Error::Io`]; [`Error::DiskFull`], [`Error::Damaged`] when a transaction
    /// cannot be rolled back now, or what one has left cannot be done: all else is done.
    pub fn step(&self) -> Result<(), Error> {
        self.engine.check_here()?;
        self.engine.background.short_step()?;
        // What cannot be rolled back now holds nothing else up.
        let stepped = self.engine.background.long_step(STEP_ROWS);
        self.engine.checkpointer.pump()?;
        self.engine.pool.step_upkeep(self.engine.clock.now_micros())?;
        self.engine.unused.step(self.engine.clock.now_micros())?;
        self.engine.scrub.step_manual()?;
        self.engine.contents.step();
        self.engine.warm.step();
        self.engine.warm.keep_if_due();
        stepped?;
        Ok(())
    }

    /// Closes the database in order: the next opening has nothing to redo. Close is close, whatever
    /// other handles there are (trees, cursors, transactions): calls on them say
    /// [`Error::Closed`] from then on, transactions still open are rolled back by the next opening,
    /// and the directory may be opened again as soon as this returns, whatever it returns. A volume
    /// given to [`Db::open_on`] is closed with it ([`Volume::close`]). What the handles hold of
    /// memory goes with the last of them.
    ///
    /// # Errors
    /// [`Error`] when something could not be written; nothing acknowledged is lost.
    pub fn close(self) -> Result<(), Error> {
        self.engine.shut_down()
    }
}

/// Changes to trees of one database that are to be applied together; with trees of two it is good
/// for nothing ([`Error::Foreign`]) until it is cleared. A later change of a key
/// replaces an earlier one.
#[derive(Clone, Default)]
pub struct Batch {
    ops: weir_txn::Batch,
    /// Whose trees they are.
    of: Option<Arc<Env>>,
    /// A tree of another database was among them: trees of two may have the same number.
    is_mixed: bool,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds: insert the row or replace its value.
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) {
        if self.takes(tree) {
            self.ops.add(&tree.raw, key, BatchOp::Put(value.to_vec()));
        }
    }

    /// Adds: remove the row if it is there.
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) {
        if self.takes(tree) {
            self.ops.add(&tree.raw, key, BatchOp::Delete);
        }
    }

    fn takes(&mut self, tree: &Tree) -> bool {
        let of = self.of.get_or_insert_with(|| tree.raw.env().clone());
        let takes = Arc::ptr_eq(of, tree.raw.env());
        self.is_mixed |= !takes;
        takes
    }

    /// Keys changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.of = None;
        self.is_mixed = false;
    }
}
