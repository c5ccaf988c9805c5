//! What goes on beside the sessions: purging, archiving, rolling losers back; in steps of bounded
//! length, which its owner calls: after commits, and in threads of its own.
pub(crate) mod archivist;
pub(crate) mod purge;
pub(crate) mod purge_tasks;
pub(crate) mod resume;
pub(crate) mod sweep;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use weir_btree::Tree;

use crate::background::archivist::Archivist;
use crate::background::purge::Purger;
use crate::background::resume::RecoveredTxn;
use crate::context::Context;
use crate::error::TxnError;
use crate::record::txn_record::TxnRecord;
use crate::session::commit::{Due, PRUNE_EVERY, PURGE_EVERY};
use crate::session::txn::Txn;
use crate::undo::prepared_note::no_longer_prepared;
use crate::undo::rollback::{roll_back, roll_back_step};

/// How long opening the database waits for the thread that is at the losers as well: longer than
/// for its turn only when that one waits itself.
const TURN: Duration = Duration::from_millis(50);

/// After a commit three times as many are purged as have come since the last that purged, so that
/// the history becomes shorter.
const PURGE_MAX: usize = 3 * PURGE_EVERY as usize;

/// The background of one context.
pub struct Background {
    context: Arc<Context>,
    purger: Purger,
    archivist: Archivist,
}

impl Background {
    /// The background of this context.
    #[must_use]
    pub fn new(context: Arc<Context>) -> Self {
        Background { context, purger: Purger::default(), archivist: Archivist::default() }
    }

    /// Lets ended transactions take at most about so many bytes of memory, versions for old
    /// snapshots included; `None`: an eighth of the pool.
    #[must_use]
    pub fn with_versions_max(mut self, bytes: Option<u64>) -> Self {
        self.archivist.versions_max = bytes;
        self
    }

    /// Numbers the trees that it makes for itself by this counter: that of all trees, so that no
    /// two ever have the same number. Without it, its own begin at 2 to the 32nd.
    #[must_use]
    pub fn with_tree_numbers(mut self, next_tree: Arc<AtomicU64>) -> Self {
        self.archivist.next_tree = next_tree;
        self
    }

    /// Does what the end of a transaction has made due.
    pub fn after(&self, due: Due) {
        if due.purge {
            self.purge_some(PURGE_MAX, false);
        }
        if due.prune {
            self.prune(2 * PRUNE_EVERY as usize);
            // The committing thread helps when the background does not keep up.
            if self.archivist.is_behind(&self.context) {
                // What was not moved stays in memory.
                let _ = self.archive();
            }
        }
    }

    /// A step of background work: purges, prunes, logs again. What may take long is left to
    /// [`Background::long_step`].
    ///
    /// # Errors
    /// [`TxnError`] when the log refuses.
    pub fn short_step(&self) -> Result<(), TxnError> {
        self.purge_some(256, false);
        self.prune(256);
        self.context.relog_all()
    }

    /// Completes and forgets up to `max` transactions. Returns how many. May take long.
    pub fn purge(&self, max: usize) -> usize {
        self.purge_some(max, true)
    }

    /// As [`Background::purge`]; unless `heavy`, it leaves out those that may take long.
    pub fn purge_some(&self, max: usize, heavy: bool) -> usize {
        self.purger.purge(&self.context, max, heavy)
    }

    /// Retries through up to `max` ended transactions for versions that no snapshot needs, and
    /// gives their memory back. Returns how many it looked through.
    pub fn prune(&self, max: usize) -> usize {
        self.purger.prune(&self.context, max)
    }

    /// Moves versions of some ended transactions out of memory if they take too much of it, and
    /// drops archives that no snapshot needs. `false`: there is nothing to do, or another thread is
    /// at it.
    ///
    /// # Errors
    /// [`TxnError`]; what was not moved stays in memory.
    pub fn archive(&self) -> Result<bool, TxnError> {
        self.archivist.archive(&self.context, &self.purger)
    }

    /// Drops all archives: no transaction holds a snapshot any more, nor will.
    ///
    /// # Errors
    /// [`TxnError`]; the next opening drops what is left.
    pub fn leave_archives(&self) -> Result<(), TxnError> {
        self.archivist.leave_all(&self.context)
    }

    /// How many snapshots the archive is known to serve: those of its that are held, and some that
    /// have been dropped lately.
    #[must_use]
    pub fn archive_views(&self) -> usize {
        let groups = self.context.registry().archive.groups();
        groups.iter().map(|group| group.views.len()).sum()
    }

    /// The trees that the archive is made of.
    #[must_use]
    pub fn archive_trees(&self) -> Vec<Tree> {
        let groups = self.context.registry().archive.groups();
        groups.into_iter().map(|group| group.tree).collect()
    }

    /// Why what a commit left to do could not be done, if that has happened since the last call.
    #[must_use]
    pub fn take_incomplete(&self) -> Option<TxnError> {
        self.purger.take_incomplete()
    }

    /// Takes over a transaction that recovery has found. Returns a prepared one; the others are
    /// left to [`Background::long_step`].
    ///
    /// # Errors
    /// [`TxnError`] when its rows cannot be read.
    pub fn resume(&self, found: RecoveredTxn) -> Result<Option<Txn>, TxnError> {
        resume::resume(&self.context, found)
    }

    /// A step of the background work that may take long: rolls back about `rows` changes of a
    /// loser, or frees as many pages of a tree that it has made, or completes one transaction.
    /// `false`: there is nothing to do, or the engine quits.
    ///
    /// # Errors
    /// [`TxnError`]; the next call goes on, or the next opening.
    pub fn long_step(&self, rows: usize) -> Result<bool, TxnError> {
        if self.context.has_quit() {
            return Ok(false);
        }
        let rolled_back = self.roll_back_loser(&mut self.context.losers().queue().lock(), rows);
        if matches!(rolled_back, Ok(true)) {
            return rolled_back;
        }
        // One that cannot be rolled back now (its page is damaged, the disk is full) holds nothing
        // up: what is freed here may be what it waits for.
        let did = self.purge(1) > 0 || self.archive()?;
        if did { Ok(true) } else { rolled_back }
    }

    /// As [`Background::long_step`], for opening the database: only of losers whose rows others may
    /// meet. Those come first. `false`: there is none, or another thread is long at one.
    ///
    /// # Errors
    /// As [`Background::long_step`].
    pub fn roll_back_first(&self, rows: usize) -> Result<bool, TxnError> {
        let queue = self.context.losers().queue();
        let Some(mut losers) = queue.try_lock_for(TURN) else { return Ok(false) };
        if losers.front().is_none_or(|record| record.work.lock().frees_tree()) {
            return Ok(false);
        }
        self.roll_back_loser(&mut losers, rows)
    }

    /// `false`: there is no loser. One that fails goes behind the others, as does one of which only
    /// a tree is left to free: nothing waits for that.
    fn roll_back_loser(
        &self,
        losers: &mut VecDeque<Arc<TxnRecord>>,
        rows: usize,
    ) -> Result<bool, TxnError> {
        let Some(record) = losers.front().cloned() else { return Ok(false) };
        match self.roll_back_some(&record, rows) {
            Ok(true) => {
                self.context.losers().first_done(losers);
                self.purge_some(PURGE_MAX, false);
            }
            Ok(false) => {
                if record.work.lock().frees_tree() {
                    losers.rotate_left(1);
                }
            }
            Err(e) => {
                losers.rotate_left(1);
                return Err(e);
            }
        }
        Ok(true)
    }

    /// Whether the whole loser has been rolled back now.
    fn roll_back_some(&self, record: &Arc<TxnRecord>, rows: usize) -> Result<bool, TxnError> {
        no_longer_prepared(self.context.env(), record)?;
        let (mut did, mut read) = (0, None);
        while did < rows {
            match roll_back_step(&self.context, record, 0, false, &mut read)? {
                0 => break,
                more => did += more,
            }
            if self.context.has_quit() {
                return Ok(false);
            }
        }
        if record.work.lock().depth() > 0 {
            return Ok(false);
        }
        roll_back(&self.context, record)?;
        Ok(true)
    }

    /// How many transactions recovery, or a rollback that failed, has left to be rolled back.
    #[must_use]
    pub fn losers(&self) -> usize {
        self.context.losers().left()
    }

    /// Whether [`Background::long_step`] has something to do, or is at it in some thread.
    #[must_use]
    pub fn has_work(&self) -> bool {
        // In this order: what is not in the list any more is being completed, or done.
        self.losers() > 0 || self.context.registry().has_purgeable() || self.is_completing()
    }

    /// Whether some thread is at what an ended transaction has left to do.
    #[must_use]
    pub fn is_completing(&self) -> bool {
        self.purger.is_completing()
    }
}
