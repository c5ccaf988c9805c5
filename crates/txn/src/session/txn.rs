//! A transaction that goes on over many calls: reads by its isolation level, changes rows in place,
//! and is committed or rolled back as a whole or to a savepoint. One thread at a time uses it.
use std::cell::Cell;
use std::sync::Arc;

use weir_base::TxnId;

use crate::context::Context;
use crate::error::TxnError;
use crate::locks::{Owner, Wait};
use crate::planted::PlantedBug;
use crate::record::txn_record::TxnRecord;
use crate::record::work::Work;
use crate::session::decide::EditBuffers;
use crate::undo::relog;
use crate::undo::rollback::{free_empty, roll_back_to};
use crate::versions::registry::Snapshot;

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// Also what is not committed.
    ReadUncommitted,
    /// What is committed when each read begins.
    ReadCommitted,
    /// Reads come from one snapshot; locking reads and writes work on what is committed now, as
    /// users of MariaDB know it.
    #[default]
    RepeatableRead,
    /// As `RepeatableRead`, and a write to a row that a transaction has changed since the snapshot
    /// fails: snapshot isolation.
    Snapshot,
    /// All reads lock what they read for sharing, rows and their absence, and see what is
    /// committed now: as if transactions ran one after the other.
    Serializable,
}

/// A transaction. Must be ended by [`Txn::commit`] or [`Txn::rollback`]: dropped otherwise, its
/// rows stay locked.
pub struct Txn {
    pub(crate) record: Option<Arc<TxnRecord>>,
    /// Itself, as the lock table knows it.
    pub(crate) owner: Option<Arc<Owner>>,
    pub(crate) isolation: Isolation,
    pub(crate) wait: Wait,
    pub(crate) snapshot: Option<Snapshot>,
    /// At REPEATABLE READ: what is newer than the snapshot is refused, once there is one.
    pub(crate) first_updater_wins: bool,
    pub(crate) pinned: bool,
    pub(crate) ended: bool,
    pub(crate) chains: u64,
    /// Bytes of log that naming the segments stored takes.
    pub(crate) named_bytes: u64,
    /// How much there was to roll back at the newest savepoint.
    pub(crate) savepoint_at: Cell<usize>,
    pub(crate) buffers: EditBuffers,
}

impl Txn {
    /// A transaction that has done nothing yet.
    #[must_use]
    pub fn new(isolation: Isolation, wait: Wait) -> Self {
        Txn {
            record: None,
            owner: None,
            isolation,
            wait,
            snapshot: None,
            first_updater_wins: false,
            pinned: false,
            ended: false,
            chains: 0,
            named_bytes: 0,
            savepoint_at: Cell::new(0),
            buffers: EditBuffers::default(),
        }
    }

    /// One that recovery has found, or whose session could not roll it back.
    pub(crate) fn resumed(record: Arc<TxnRecord>, isolation: Isolation) -> Self {
        Txn { record: Some(record), pinned: true, ..Txn::new(isolation, Wait::No) }
    }

    /// Its record, once it has changed or locked something.
    pub(crate) fn record(&self) -> Option<&Arc<TxnRecord>> {
        self.record.as_ref()
    }

    /// Its number, once it has changed or locked something.
    #[must_use]
    pub fn id(&self) -> Option<TxnId> {
        self.record.as_ref().map(|record| record.id())
    }

    /// What it sees of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How long it waits for locks from now on. Returns how long it did.
    pub fn set_wait(&mut self, wait: Wait) -> Wait {
        std::mem::replace(&mut self.wait, wait)
    }

    /// At REPEATABLE READ: whether a write, or a read that locks, of a row that another transaction
    /// has changed since the snapshot fails with [`TxnError::Conflict`] from now on. Unlike at
    /// [`Isolation::Snapshot`] only a read takes the snapshot: before the first one, nothing is too
    /// new. (MariaDB's `innodb_snapshot_isolation`.) Nothing at other levels.
    pub fn set_first_updater_wins(&mut self, wins: bool) {
        self.first_updater_wins = wins;
    }

    /// Whether it has ended: by itself, when it was chosen to resolve a deadlock.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes over a snapshot of another session, if it has none yet and has not ended.
    pub fn share(&mut self, snapshot: &Snapshot) {
        if !self.ended {
            self.snapshot.get_or_insert_with(|| snapshot.clone());
        }
    }

    /// Its snapshot, taken if it has none yet; `None` at levels that hold none, and when it has
    /// ended.
    pub fn snapshot(&mut self, cx: &Context) -> Option<&Snapshot> {
        match self.isolation {
            _ if self.ended => None,
            Isolation::ReadUncommitted | Isolation::ReadCommitted | Isolation::Serializable => None,
            Isolation::RepeatableRead | Isolation::Snapshot => {
                Some(self.snapshot.get_or_insert_with(|| cx.registry().snapshot()))
            }
        }
    }

    /// Before its first record is in the log (TXN-3).
    pub(crate) fn pin(&mut self, cx: &Context, record: &TxnRecord) {
        if !self.pinned {
            if !cx.has(PlantedBug::PinForgotten) {
                cx.registry().pin(record, cx.env().pool.log().end());
            }
            self.pinned = true;
        }
    }

    pub(crate) fn roll_back_partly(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        keep: usize,
    ) -> Result<(), TxnError> {
        roll_back_to(cx, record, keep, true)?;
        free_empty(cx, record, false)?;
        let work = record.work.lock();
        self.named_bytes = work.segments.named_bytes();
        self.unpin_if_clean(cx, record, &work);
        drop(work);
        Self::weigh(cx, record);
        Ok(())
    }

    /// A session that waits for its user with nothing to roll back holds no log.
    pub(crate) fn unpin_if_clean(&mut self, cx: &Context, record: &TxnRecord, work: &Work) {
        if work.is_clean() {
            cx.registry().unpin(record);
            self.pinned = false;
        }
    }

    pub(crate) fn finish(&mut self) {
        self.ended = true;
        self.record = None;
        self.owner = None;
        self.snapshot = None;
    }

    pub(crate) fn check(&self) -> Result<(), TxnError> {
        if self.ended { Err(TxnError::Ended) } else { Ok(()) }
    }

    /// Its number and its place in the registry, from the first change or lock on.
    pub(crate) fn start(&mut self, cx: &Context) -> Result<Arc<TxnRecord>, TxnError> {
        self.check()?;
        if let Some(record) = &self.record {
            return Ok(record.clone());
        }
        let record = cx.registry().open()?;
        self.owner = Some(cx.locks().register(record.id()));
        Ok(self.record.insert(record).clone())
    }

    /// As [`Txn::start`] and [`Txn::pin`] in one step, once so many bytes of redo may be written:
    /// the change comes next, and nothing is waited for before it (TXN-4).
    pub(crate) fn start_pinned(
        &mut self,
        cx: &Context,
        bytes: u64,
    ) -> Result<Arc<TxnRecord>, TxnError> {
        self.check()?;
        relog::admit(cx, bytes)?;
        let from = cx.env().pool.log().end();
        let from = (!cx.has(PlantedBug::PinForgotten)).then_some(from);
        let record = cx.registry().open_pinned(from)?;
        self.pinned = true;
        self.owner = Some(cx.locks().register(record.id()));
        Ok(self.record.insert(record).clone())
    }

    /// The commit number behind which a row must not have been changed.
    pub(crate) fn conflict_point(&mut self, cx: &Context) -> Option<u64> {
        match self.isolation {
            Isolation::Snapshot => self.snapshot(cx).map(Snapshot::number),
            Isolation::RepeatableRead if self.first_updater_wins => {
                self.snapshot.as_ref().map(Snapshot::number)
            }
            _ => None,
        }
    }

    /// Waits for admission of a change, unless the transaction is too large for one. Never holds
    /// the checkpoint for long while it does: what it waits for may be that the checkpoint moves
    /// on (TXN-4).
    pub(crate) fn reserve_log(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        bytes: u64,
    ) -> Result<(), TxnError> {
        let mut waits = 0;
        while !cx.has_room(&mut waits)? {
            relog::relog(cx, record)?;
        }
        let max = cx.env().pool.log().age_limit_bytes() / 8;
        let undo_bytes = record.undo_bytes() + self.named_bytes;
        if undo_bytes > max {
            return Err(TxnError::TooLarge { undo_bytes, max });
        }
        relog::admit_relogging(cx, record, bytes)
    }
}
