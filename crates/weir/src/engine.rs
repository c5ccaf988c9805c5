//! What all handles of an open database share.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, Home, Lsn};
use weir_btree::{Env, Tree as RawTree, TreeError};
use weir_checkpoint::{Checkpointer, ControlFile};
use weir_crypt::CryptVolume;
use weir_device::Volume;
use weir_pool::Pool;
use weir_redo::{Durability, Log};
use weir_space::Space;
use weir_txn::{AutoCommit, Context, Due, Ended, Registry, TxnError, Xid};

use crate::acks::Acks;
use crate::advise::Observed;
use crate::config::{Background, Config, StoreKind};
use crate::contents::Contents;
use crate::error::Error;
use crate::force::Force;
use crate::halt::halt;
use crate::report::RecoveryReport;
use crate::scrub::Scrub;
use crate::steps::{REDO_PAGES, STEP_ROWS};
use crate::undecided::Undecided;
use crate::unused::Unused;
use crate::warm::Warm;
use crate::workers::Workers;

pub(crate) struct Engine {
    pub(crate) volume: Arc<dyn Volume>,
    /// The layer of the volume that encrypts, where it does.
    pub(crate) crypt: Option<Arc<CryptVolume>>,
    pub(crate) config: Config,
    pub(crate) store_kind: StoreKind,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) control: Arc<ControlFile>,
    pub(crate) log: Arc<Log>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) space: Arc<Space>,
    pub(crate) env: Arc<Env>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) context: Arc<Context>,
    pub(crate) background: Arc<weir_txn::Background>,
    pub(crate) auto: AutoCommit,
    pub(crate) catalog: RawTree,
    pub(crate) next_tree: Arc<AtomicU64>,
    /// Prepared transactions, by the names that the outside has given them. `None`: a name in use
    /// whose transaction a caller has a handle of: to prepare it, or to end it
    /// ([`crate::PreparedTxn`]).
    pub(crate) prepared: Mutex<rank::PreparedTransactions, HashMap<Xid, Option<Undecided>>>,
    pub(crate) report: Option<RecoveryReport>,
    /// What a forced opening left out.
    pub(crate) remarks: Vec<String>,
    /// What was observed last while enough was going on.
    pub(crate) seen: Arc<Mutex<rank::Observed, Option<Observed>>>,
    pub(crate) warm: Arc<Warm>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) unused: Arc<Unused>,
    pub(crate) scrub: Arc<Scrub>,
    pub(crate) acks: Arc<Acks>,
    pub(crate) workers: Mutex<rank::BackgroundThreads, Option<Workers>>,
    /// A process that was forked from this one has none of its threads.
    pub(crate) home: Home,
    /// Handles refuse: closing has begun.
    pub(crate) closed: AtomicBool,
    /// Closing has ended, when it is not locked.
    pub(crate) is_settled: Mutex<rank::Settled, bool>,
    /// The last field: it is dropped when the others are.
    #[expect(dead_code, reason = "only dropped")]
    pub(crate) freed: Freed,
}

/// A pool from this size on is worth it: a small one's databases may be opened and closed often.
const TRIM_POOL_BYTES: u64 = 16 << 20;

/// Gives the memory that a large database had back to the system when it is dropped.
pub(crate) struct Freed {
    pub(crate) pool_bytes: u64,
}

impl Drop for Freed {
    fn drop(&mut self) {
        if self.pool_bytes >= TRIM_POOL_BYTES {
            weir_base::trim_heap();
        }
    }
}

impl Engine {
    /// The end of a write: counted, and waited for as durably as asked.
    #[inline]
    pub(crate) fn commit(&self, end: Lsn, durability: Durability) -> Result<(), Error> {
        self.count_commit();
        self.wait(end, durability)
    }

    #[inline]
    pub(crate) fn count_commit(&self) {
        self.checkpointer.count_commit();
    }

    /// Waits until the log is as durable as asked up to `end`.
    #[inline]
    pub(crate) fn wait(&self, end: Lsn, durability: Durability) -> Result<(), Error> {
        if self.config.background == Background::Manual && durability != Durability::Lazy {
            self.checkpointer.maintain_log()?;
        }
        self.log.wait(end, durability).map_err(|e| self.failed(e.into()))
    }

    /// Waits until the device has the log up to `end`.
    pub(crate) fn wait_for_device(&self, end: Lsn) -> Result<(), Error> {
        if self.config.background == Background::Manual {
            self.checkpointer.maintain_log()?;
        }
        self.log.wait_for_device(end).map_err(|e| self.failed(e.into()))
    }

    /// # Errors
    /// [`Error::Closed`], [`Error::Forked`]: nothing may be read either.
    #[inline]
    pub(crate) fn check_here(&self) -> Result<(), Error> {
        self.check_home()?;
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// # Errors
    /// [`Error::Forked`]: nothing may be waited for either; no thread is there to do it.
    #[inline]
    pub(crate) fn check_home(&self) -> Result<(), Error> {
        if self.home.is_here() { Ok(()) } else { Err(Error::Forked) }
    }

    /// # Errors
    /// [`Error::Closed`], [`Error::Forked`]; [`Error::Halted`] when nothing may be written any
    /// more.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.check_here()?;
        // Not only for writers: a thread that holds a lock now may never be able to give it up.
        Ok(self.log.check()?)
    }

    /// # Errors
    /// As [`Engine::check_open`]; [`Error::ReadOnly`], [`Error::ForcedRecovery`].
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        self.check_not_forced()?;
        if self.config.read_only { Err(Error::ReadOnly) } else { self.check_open() }
    }

    /// # Errors
    /// [`Error::ForcedRecovery`] where the database was opened with
    /// [`Config::force_recovery`](crate::Config::force_recovery).
    pub(crate) fn check_not_forced(&self) -> Result<(), Error> {
        match self.config.force_recovery {
            0 => Ok(()),
            step => Err(Error::ForcedRecovery(step)),
        }
    }

    /// Retries whether an error means that the engine must halt, and passes it on.
    pub(crate) fn failed(&self, e: Error) -> Error {
        if self.log.check().is_err() || self.pool.halted().is_some() {
            self.halt(&e.to_string());
        }
        e
    }

    /// Stops all writing for good.
    pub(crate) fn halt(&self, why: &str) {
        halt(&self.pool, &self.checkpointer, why);
    }

    pub(crate) fn halted(&self) -> Option<String> {
        self.checkpointer.admission().stopped()
    }

    /// After a commit: does what that has made due, and gives where it ends in the log.
    #[inline]
    pub(crate) fn ended(&self, ended: Result<Ended, TxnError>) -> Result<Option<Lsn>, Error> {
        let ended = ended.map_err(|e| self.failed(e.into()))?;
        self.after(ended.due);
        Ok(ended.end)
    }

    /// After a rollback: does what that has made due.
    pub(crate) fn rolled_back(&self, due: Result<Due, TxnError>) -> Result<(), Error> {
        let due = due.map_err(|e| self.failed(e.into()))?;
        self.after(due);
        Ok(())
    }

    fn after(&self, due: Due) {
        // What transactions have left to do would change pages.
        if !Force::at(self.config.force_recovery).is_on() {
            self.background.after(due);
        }
    }

    /// Does background work that may take long, for about so long, in such steps, while there are
    /// any.
    pub(crate) fn step_for(&self, micros: u64, step: LongStep) {
        let until = self.clock.now_micros() + micros;
        let more = || self.clock.now_micros() < until;
        while more() && step(&self.background, STEP_ROWS).is_ok_and(|did| did) {}
    }

    /// Gives the background work that may take long some time to be done: the next opening finds
    /// everything in order then.
    fn steps_at_close(&self) {
        if self.workers.lock().is_none() {
            return self.step_for(STEPS_AT_CLOSE_MICROS, weir_txn::Background::long_step);
        }
        // Its thread can be told to quit in the middle of a long step; this one could not.
        let until = self.clock.now_micros() + STEPS_AT_CLOSE_MICROS;
        while self.clock.now_micros() < until && self.halted().is_none() {
            while self.background.purge_some(64, false) > 0 {}
            if !self.background.has_work() {
                return;
            }
            self.clock.sleep_micros(2_000);
        }
    }

    /// As [`Engine::settle`]. Whatever is returned, nothing reads or writes any more, and the
    /// directory is free for others.
    pub(crate) fn shut_down(&self) -> Result<(), Error> {
        self.check_home()?;
        let settled = self.settle();
        // Handles live on, and threads may be in the middle of a call: none of them may write where
        // another process has the database by then.
        self.volume.close();
        settled
    }

    /// Ends the background work and, if nothing has failed, writes everything and marks the
    /// database as closed in order.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        // A thread that closes while another does finds it closed, too, when this returns.
        let mut is_settled = self.is_settled.lock();
        if std::mem::replace(&mut *is_settled, true) {
            return Ok(());
        }
        self.closed.store(true, Ordering::SeqCst);
        if Force::at(self.config.force_recovery).is_on() {
            // Nothing has changed, and what a crash left is left.
            self.context.quit();
            return Ok(());
        }
        // What fails has halted the log, which is looked at below.
        let _ = self.background.leave_archives();
        self.steps_at_close();
        self.context.quit();
        if let Some(workers) = self.workers.lock().take() {
            // From now on no other thread frees frames: a thread that brings pages forward needs
            // some.
            self.pool.set_manual(true);
            workers.stop();
        }
        if let Some(why) = self.halted() {
            return Err(Error::Halted(why));
        }
        // Threads that wait to write get the error; those that have been let on already are seen to
        // below.
        self.checkpointer.admission().stop("the database has been closed");
        // Before all pages are clean, and nothing can be told from them any more.
        let threads = self.config.background == Background::Threads;
        let observed = threads.then(|| self.observe()).flatten();
        while self.background.purge_some(64, false) > 0 {}
        // On a full disk what is left of them is lost, and nothing else.
        let _ = self.scrub.write_mended();
        self.write_all()?;
        if let Some(observed) = observed {
            observed.write(&self.volume);
        }
        self.warm.keep_now();
        Ok(())
    }

    /// Keeps from being dropped in a child what has threads, locks that one of them may have held
    /// when the process was forked, or memory that a child does not get. It goes with the process.
    fn leave_to_parent(&mut self) {
        std::mem::forget(self.workers.get_mut().take());
        std::mem::forget((self.volume.clone(), self.pool.clone(), self.log.clone()));
        std::mem::forget((self.checkpointer.clone(), self.context.clone(), self.env.clone()));
        std::mem::forget((self.registry.clone(), self.background.clone(), self.acks.clone()));
    }

    /// Writes all pages, and marks the database as closed in order if nothing is open.
    fn write_all(&self) -> Result<(), Error> {
        // In the order of the log and of the disk, not in that in which they are written.
        while self.pool.apply_pending(REDO_PAGES)? {}
        for _ in 0..FLUSHES_MAX {
            self.log.flush(Durability::Synced)?;
            self.checkpointer.flush_all()?;
            if !self.registry.is_empty() {
                break;
            }
            let end = self.log.end();
            self.log.wait(end, Durability::Synced)?;
            // A transaction may have been dropped meanwhile, or a write have ended that had begun
            // before the closing: then there are pages behind what was flushed.
            if self.checkpointer.oldest() >= end {
                self.checkpointer.write_control(|control| {
                    control.checkpoint = end;
                    control.synced = end;
                    control.clean = true;
                })?;
                break;
            }
        }
        Ok(())
    }
}

/// A step of background work of this size. `false`: there is nothing to do.
type LongStep = fn(&weir_txn::Background, usize) -> Result<bool, TxnError>;

/// How long opening the database may take for that.
pub(crate) const STEPS_AT_OPEN_MICROS: u64 = 50_000;

/// Pages are written so often at most when the database is closed: nothing is admitted any more, so
/// there is little more each time. What is left is redone.
const FLUSHES_MAX: u32 = 100;

/// How long closing the database may take for that.
const STEPS_AT_CLOSE_MICROS: u64 = 2_000_000;

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.home.is_here() {
            return self.leave_to_parent();
        }
        // Best effort: a caller that wants to know calls `close`. What is not written now is
        // redone.
        let _ = self.settle();
    }
}

/// Does the background's work for a thread that waits for it, in manual mode.
#[derive(Clone)]
pub(crate) struct Helper {
    checkpointer: Arc<Checkpointer>,
    context: Arc<OnceLock<Weak<Context>>>,
}

impl Helper {
    pub(crate) fn new(checkpointer: Arc<Checkpointer>) -> Self {
        Helper { checkpointer, context: Arc::default() }
    }

    /// Whose transactions may hold the log.
    pub(crate) fn knows(&self, context: &Arc<Context>) {
        let _ = self.context.set(Arc::downgrade(context));
    }

    /// One step. An idle transaction must not hold the log either: a thread that waits is not the
    /// one to move it (TXN-4).
    fn step(&self) -> Result<(), TreeError> {
        let context = self.context.get().and_then(Weak::upgrade);
        let relogged = context.map_or(Ok(()), |context| context.relog_all());
        let stepped = relogged
            .map_err(|e| e.to_string())
            .and_then(|()| self.checkpointer.pump().map_err(|e| e.to_string()));
        stepped.map_err(|why| {
            self.checkpointer.admission().stop(&why);
            TreeError::Stopped(why)
        })
    }
}

/// Waits until `bytes` of redo may be written; in manual mode, does the background's work for it.
pub(crate) fn admit(
    checkpointer: &Checkpointer,
    log: &Log,
    clock: &dyn Clock,
    background: Background,
    helper: &Helper,
    bytes: u64,
) -> Result<(), TreeError> {
    if checkpointer.admission().allows(log.end(), bytes) {
        return Ok(());
    }
    if background == Background::Threads {
        let end = || log.end();
        return checkpointer.admission().wait(clock, &end, bytes).map_err(TreeError::Stopped);
    }
    for _ in 0..100_000 {
        if let Some(why) = checkpointer.admission().stopped() {
            return Err(TreeError::Stopped(why));
        }
        helper.step()?;
        if checkpointer.admission().allows(log.end(), bytes) {
            return Ok(());
        }
    }
    Err(TreeError::Stopped("the log is full and nothing that holds it can be written".into()))
}

/// Waits for a moment while dirty pages are written: the disk is full, and writing them makes room.
/// `helper` in manual mode.
pub(crate) fn wait_for_pages(
    checkpointer: &Checkpointer,
    clock: &dyn Clock,
    helper: Option<&Helper>,
) -> Result<(), TreeError> {
    let admission = checkpointer.admission();
    if let Some(why) = admission.stopped() {
        return Err(TreeError::Stopped(why));
    }
    match helper {
        Some(helper) => helper.step()?,
        None => admission.wait_apart(clock, 1_000),
    }
    Ok(())
}

/// As [`admit`] for an open transaction, which waits for a moment only: it may be what holds the
/// checkpoint that every thread waits for, and must look at that between. `helper` in manual mode.
pub(crate) fn try_admit(
    checkpointer: &Checkpointer,
    log: &Log,
    clock: &dyn Clock,
    helper: Option<&Helper>,
    bytes: u64,
) -> Result<bool, TreeError> {
    let admission = checkpointer.admission();
    if admission.allows(log.end(), bytes) {
        return Ok(true);
    }
    if let Some(why) = admission.stopped() {
        return Err(TreeError::Stopped(why));
    }
    match helper {
        Some(helper) => helper.step()?,
        None => admission.wait_apart(clock, 1_000),
    }
    Ok(admission.allows(log.end(), bytes))
}
