//! Writing again, at the end of the log, what recovery would need of transactions that began far
//! back: so that no transaction that waits, for the user or for the log, holds the checkpoint.
use weir_base::Lsn;
use weir_btree::TreeError;
use weir_change::{Group, Header, Op, Purge};

use crate::context::Context;
use crate::error::TxnError;
use crate::planted::PlantedBug;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::{State, TxnRecord};
use crate::record::work::Work;
use crate::undo::prepared_note::note_prepared;

impl Context {
    /// Writes again, at the end of the log, what recovery would need of transactions that began far
    /// back, so that the log before may go. No transaction that waits for its user, or for a
    /// reader's snapshot, ever holds the checkpoint.
    ///
    /// # Errors
    /// [`TxnError`] when the log refuses.
    pub fn relog_all(&self) -> Result<(), TxnError> {
        for id in self.registry().pinned_before(relogged_before(self)) {
            if let Some(record) = self.registry().find(id) {
                relog(self, &record)?;
            }
        }
        Ok(())
    }
}

/// Names what a commit has left to do once more, at the end of the log, when the last time lies
/// far back; and of the chain that is being freed what is left: its pages lead to each other.
pub(crate) fn relog_tasks(
    cx: &Context,
    record: &TxnRecord,
    tasks: &[PurgeTask],
    half_freed: Option<Purge<'static>>,
) -> Result<(), TreeError> {
    let log = cx.env().pool.log();
    // Of one that is done nothing is to be said: it is forgotten next.
    if !tasks.is_empty() && begins_far_back(cx, record) {
        let start = log.end();
        let header = Header { txn: Some(record.id()), commits: true, ..Header::default() };
        let mut group = Group::begin(header);
        let all = tasks.iter().map(PurgeTask::to_purge).chain(half_freed);
        all.for_each(|task| group.note(&Op::Purge(task)));
        cx.count_relogged(group.commit(log)?);
        cx.registry().repin(record, start);
    }
    Ok(())
}

/// A transaction whose records begin before this holds much of the log, and is what the checkpoint
/// comes to next: no other is relogged before it has moved (TXN-14).
fn relogged_before(cx: &Context) -> Lsn {
    let log = cx.env().pool.log();
    let part = log.age_limit_bytes() / 4;
    Lsn(log.end().0.saturating_sub(part).min(log.checkpoint().0.saturating_add(part)))
}

/// Whether what recovery needs of a transaction holds much of the log.
fn begins_far_back(cx: &Context, record: &TxnRecord) -> bool {
    record.first().is_some_and(|from| from < relogged_before(cx))
}

/// Waits for admission, for a transaction that has nothing in the log yet.
pub(crate) fn admit(cx: &Context, bytes: u64) -> Result<(), TxnError> {
    while !cx.try_admit(bytes)? {
        cx.check_quit()?;
    }
    Ok(())
}

/// Waits for admission, and logs the transaction again meanwhile: what it waits for may be
/// that the checkpoint moves on (TXN-4). No thread waits once the engine quits: what would let
/// it go on is gone then.
pub(crate) fn admit_relogging(
    cx: &Context,
    record: &TxnRecord,
    bytes: u64,
) -> Result<(), TxnError> {
    loop {
        relog(cx, record)?;
        if cx.try_admit(bytes)? {
            return Ok(());
        }
        cx.check_quit()?;
    }
}

/// As [`Context::relog_all`], for one transaction, if it begins far back.
pub(crate) fn relog(cx: &Context, record: &TxnRecord) -> Result<(), TxnError> {
    let log = cx.env().pool.log();
    if !begins_far_back(cx, record) {
        return Ok(());
    }
    // Its owner writes just now.
    let Some(mut work) = record.work.try_lock() else { return Ok(()) };
    let start = log.end();
    let header = Header { txn: Some(record.id()), ..Header::default() };
    if record.state() != State::Open {
        return Ok(relog_tasks(cx, record, &work.tasks, None)?);
    }
    // The log has more of it than is known here, or will in a moment: nothing that rolls it back
    // may stand behind its commit.
    if work.sealed {
        return Ok(());
    }
    if work.is_clean() && work.xid.is_none() {
        return Ok(());
    }
    let mut group = Group::begin(Header { undo: true, ..header });
    let short = usize::from(cx.has(PlantedBug::RelogShort));
    relog_undo(&mut group, record, &mut work, short);
    if let Some(xid) = &work.xid {
        note_prepared(&mut group, xid, &work.held, &work.tasks);
    }
    cx.count_relogged(group.commit(log)?);
    cx.registry().repin(record, start);
    Ok(())
}

/// Notes all that is to be rolled back once more, but for the last `short` of what memory holds.
pub(crate) fn relog_undo(group: &mut Group<'_>, record: &TxnRecord, work: &mut Work, short: usize) {
    group.note(&Op::UndoReset);
    work.segments.iter().for_each(|segment| group.note(&Op::UndoStored(*segment)));
    let all = work.undo.len().saturating_sub(short);
    for (number, undo) in work.undo.iter_mut().enumerate() {
        if let Some(entry) = record.undo_entry(*undo).filter(|_| number < all) {
            group.note(&entry.to_op());
        }
        undo.is_one_note();
    }
}
