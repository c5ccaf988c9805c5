//! Writing again, at the end of the log, what recovery would need of transactions that began far
//! back: so that nobody who waits, for the user or for the log, holds the checkpoint.
use weir_base::Lsn;
use weir_btree::TreeError;
use weir_change::{Cleanup, Group, Header, Op};

use crate::error::TxnError;
use crate::past::{Past, State};
use crate::planted::PlantedBug;
use crate::prepared_note::note_prepared;
use crate::run::Writer;
use crate::todo::Todo;
use crate::work::Work;

/// Names what a commit has left to do once more, at the end of the log, when the last time lies
/// far back; and of the chain that is being freed what is left: its pages lead to each other.
pub(crate) fn repeat_todo(
    w: &Writer,
    past: &Past,
    todo: &[Todo],
    half_freed: Option<Cleanup<'static>>,
) -> Result<(), TreeError> {
    let log = w.env().pool.log();
    // Of one that is done nothing is to be said: it is forgotten next.
    if !todo.is_empty() && begins_far_back(w, past) {
        let start = log.end();
        let header = Header { txn: Some(past.id()), commits: true, ..Header::default() };
        let mut group = Group::begin(header);
        let all = todo.iter().map(Todo::to_cleanup).chain(half_freed);
        all.for_each(|todo| group.note(&Op::Cleanup(todo)));
        w.count_carried(group.commit(log)?);
        w.registry().repin(past, start);
    }
    Ok(())
}

/// Writes again, at the end of the log, what recovery would need of transactions that began far
/// back, so that the log before may go. Whoever waits for the user, or for a reader's snapshot,
/// never holds the checkpoint.
///
/// # Errors
/// [`TxnError`] when the log refuses.
pub(crate) fn carry_forward_all(w: &Writer) -> Result<(), TxnError> {
    for id in w.registry().pinned_before(carried_before(w)) {
        if let Some(past) = w.registry().find(id) {
            carry_forward(w, &past)?;
        }
    }
    Ok(())
}

/// Who begins before this holds much of the log, and is what the checkpoint comes to next: no
/// other is carried before it has moved (TXN-14).
fn carried_before(w: &Writer) -> Lsn {
    let log = w.env().pool.log();
    let part = log.limit_bytes() / 4;
    Lsn(log.end().0.saturating_sub(part).min(log.checkpoint().0.saturating_add(part)))
}

/// Whether what recovery needs of a transaction holds much of the log.
fn begins_far_back(w: &Writer, past: &Past) -> bool {
    past.first().is_some_and(|from| from < carried_before(w))
}

/// Waits for admission, and carries the transaction forward meanwhile: what it waits for may be
/// that the checkpoint moves on (TXN-4). No thread waits once the engine quits: what would let
/// it go on is gone then.
pub(crate) fn admit_carried(w: &Writer, past: &Past, bytes: u64) -> Result<(), TxnError> {
    loop {
        carry_forward(w, past)?;
        if w.try_admit(bytes)? {
            return Ok(());
        }
        w.check_quit()?;
    }
}

/// As [`carry_forward_all`], for one transaction, if it begins far back.
pub(crate) fn carry_forward(w: &Writer, past: &Past) -> Result<(), TxnError> {
    let log = w.env().pool.log();
    if !begins_far_back(w, past) {
        return Ok(());
    }
    // Whoever has it writes just now.
    let Some(mut work) = past.work.try_lock() else { return Ok(()) };
    let start = log.end();
    let header = Header { txn: Some(past.id()), ..Header::default() };
    if past.state() != State::Open {
        return Ok(repeat_todo(w, past, &work.todo, None)?);
    }
    // The log has more of it than is known here, or will in a moment: nothing that takes it
    // back may stand behind its commit.
    if work.sealed {
        return Ok(());
    }
    if work.is_clean() && work.xid.is_none() {
        return Ok(());
    }
    let mut group = Group::begin(Header { undo: true, ..header });
    let short = usize::from(w.has(PlantedBug::CarriedShort));
    restate(&mut group, past, &mut work, short);
    if let Some(xid) = &work.xid {
        note_prepared(&mut group, xid, &work.held, &work.todo);
    }
    w.count_carried(group.commit(log)?);
    w.registry().repin(past, start);
    Ok(())
}

/// Notes all that is to be taken back once more, but for the last `short` of what memory holds.
pub(crate) fn restate(group: &mut Group<'_>, past: &Past, work: &mut Work, short: usize) {
    group.note(&Op::UndoReset);
    work.pieces.iter().for_each(|piece| group.note(&Op::UndoStored(*piece)));
    let all = work.undo.len().saturating_sub(short);
    for (number, undo) in work.undo.iter_mut().enumerate() {
        if let Some(entry) = past.undo_entry(*undo).filter(|_| number < all) {
            group.note(&entry.to_op());
        }
        undo.is_one_note();
    }
}
