//! How a transaction ends: committed, or rolled back as a whole. What that leaves to be purged is
//! returned, for the owner of the background.
use std::sync::Arc;

use weir_base::Lsn;
use weir_change::{Group, Header, Op};

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::planted::PlantedBug;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::TxnRecord;
use crate::record::work::Left;
use crate::session::txn::Txn;
use crate::undo::relog;
use crate::undo::rollback::roll_back;

/// A transaction's end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ended {
    /// Up to where the log has to be durable for the commit to be; `None`: nothing was changed.
    pub end: Option<Lsn>,
    /// What is due in the background.
    pub due: Due,
}

/// What the end of a transaction makes due, for [`Background::after`](crate::Background::after).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Due {
    pub(crate) purge: bool,
    pub(crate) prune: bool,
}

impl Due {
    /// After a rollback.
    pub const ROLLBACK: Due = Due { purge: true, prune: false };
}

/// One commit in so many looks after those that ended before, and each that leaves something to do:
/// each look takes the registry's mutex. Where no transaction commits a background thread does.
pub(crate) const PURGE_EVERY: u64 = 8;

/// And one commit in so many after the versions of twice as many.
pub(crate) const PRUNE_EVERY: u64 = 64;

impl Txn {
    /// Commits. Others see the changes when it returns.
    ///
    /// # Errors
    /// [`TxnError`] when the log refuses: the engine has halted, and the outcome shows when it is
    /// opened again. Anything else leaves the transaction open.
    pub fn commit(&mut self, cx: &Context) -> Result<Ended, TxnError> {
        self.check()?;
        let Some(record) = self.record.clone() else {
            self.finish();
            return Ok(Ended::default());
        };
        if !self.pinned {
            cx.locks().end(record.id());
            cx.registry().end(record.id());
            self.finish();
            return Ok(Ended::default());
        }
        relog::admit_relogging(cx, &record, ROW_BYTES)?;
        let mut work = record.work.lock();
        let dropped = work.dropped_trees(cx.env())?;
        if !work.segments.is_empty() {
            let tail = std::mem::take(&mut work.tasks);
            work.tasks = work.segments.take().chain(tail).collect();
        }
        let header = Header { txn: Some(record.id()), commits: true, ..Header::default() };
        let mut group = Group::begin(header);
        if !cx.has(PlantedBug::PurgeNotNoted) {
            work.tasks
                .iter()
                .map(PurgeTask::to_purge)
                .for_each(|task| group.note(&Op::Purge(task)));
        }
        let span = group.commit(cx.env().pool.log())?;
        if !work.tasks.is_empty() {
            cx.registry().pin(&record, span.start);
        }
        // It looks open until the registry knows better.
        work.sealed = true;
        let left = work.left();
        drop(work);
        dropped.into_iter().for_each(|tree| cx.locks().tree_dropped(tree));
        Ok(Ended { end: Some(span.end), due: self.committed(cx, &record, left) })
    }

    /// The commit is in the log.
    pub(crate) fn committed(&mut self, cx: &Context, record: &Arc<TxnRecord>, left: Left) -> Due {
        let too_soon = cx.has(PlantedBug::ForgottenTooSoon);
        let spent_for = cx.registry().spent_for(record, too_soon);
        let number = cx.registry().commit(record, left, spent_for);
        cx.locks().end(record.id());
        self.finish();
        Due {
            // What leaves something to do keeps its pin.
            purge: record.first().is_some() || number.is_multiple_of(PURGE_EVERY),
            prune: cx.registry().gate.is_closed() && record.id().0.is_multiple_of(PRUNE_EVERY),
        }
    }

    /// Rolls everything back.
    ///
    /// # Errors
    /// [`TxnError`] when that fails: it has ended all the same, and
    /// [`Background::long_step`](crate::Background::long_step) goes on with it. What is
    /// not rolled back yet stays locked until then, or until the next opening has.
    pub fn rollback(&mut self, cx: &Context) -> Result<Due, TxnError> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(Due::default());
        }
        let done = match &self.record {
            Some(record) if self.pinned => roll_back(cx, record),
            Some(record) => {
                cx.registry().end(record.id());
                cx.locks().end(record.id());
                Ok(())
            }
            None => {
                self.finish();
                return Ok(Due::default());
            }
        };
        if let (Err(_), Some(record)) = (&done, &self.record) {
            cx.losers().add(record.clone(), true);
        }
        self.finish();
        done.map(|()| Due::ROLLBACK)
    }

    /// Rolls everything back after a failure. Tells of it, and of what else failed.
    pub(crate) fn rolled_back_after(&mut self, cx: &Context, first: TxnError) -> TxnError {
        match self.rollback(cx) {
            // What is due the background finds in its next step.
            Ok(_) => first,
            // Rows stay locked meanwhile: no transaction may build on changes that will be rolled
            // back.
            Err(then) => TxnError::RollbackFailed { first: first.into(), then: then.into() },
        }
    }
}
