//! Taking a transaction back, as a whole or to a savepoint, newest change first: what memory holds,
//! then the pieces that it has stored.
use weir_change::Header;

use crate::error::TxnError;
use crate::past::Past;
use crate::planted::PlantedBug;
use crate::run::Writer;
use crate::stored::{self, Piece};
use crate::undo::{UndoEntry, undo_one};
use crate::work::{Undo, Work};

/// Takes back what `past` has done beyond its first `keep` changes. `goes_on`: it may change rows
/// again.
pub(crate) fn take_back(
    w: &Writer,
    past: &Past,
    keep: usize,
    goes_on: bool,
) -> Result<(), TxnError> {
    let mut read = None;
    loop {
        let mut work = past.work.lock();
        let work = &mut *work;
        if work.depth() <= keep {
            return Ok(());
        }
        match work.undo.last().copied() {
            Some(undo) => newest_in_memory(w, past, work, undo, goes_on)?,
            None => newest_stored(w, past, work, &mut read)?,
        }
    }
}

fn newest_in_memory(
    w: &Writer,
    past: &Past,
    work: &mut Work,
    undo: Undo,
    goes_on: bool,
) -> Result<(), TxnError> {
    let forgets = w.has(PlantedBug::RowNotRestored) && work.undo.len() % 8 == 3;
    if let Some(entry) = undo.as_entry(past).filter(|_| !forgets) {
        undo_entry(w, past, work, &entry)?;
    }
    work.undo.pop();
    match undo {
        Undo::Row(seq) => {
            work.undo_bytes -= past.undo_bytes(seq).min(work.undo_bytes);
            if goes_on {
                past.kill(seq);
            }
        }
        Undo::Tree { .. } | Undo::Pages { .. } => work.undo_bytes -= 16.min(work.undo_bytes),
    }
    Ok(())
}

/// `read` keeps the piece that was read last. Readers may find a version there until its pages are
/// freed: it is what the row is again.
fn newest_stored(
    w: &Writer,
    past: &Past,
    work: &mut Work,
    read: &mut Option<(u64, Piece)>,
) -> Result<(), TxnError> {
    let Some(top) = work.pieces.last() else { return Ok(()) };
    if top.entries == 0 {
        // Older changes than its own are taken back: what those left to do is nothing any more.
        return free_newest(w, past, work);
    }
    if read.as_ref().is_none_or(|(mark, _)| *mark != top.mark) {
        let piece = stored::read(w.env(), &top)?;
        *read = Some((top.mark, piece.ok_or_else(|| stored::missing(w.env(), &top))?));
    }
    if let Some(entry) = read.as_ref().and_then(|(_, p)| p.undo.get(top.entries as usize - 1)) {
        undo_entry(w, past, work, entry)?;
    }
    work.pieces.entry_undone();
    Ok(())
}

/// Not admitted (TXN-4): it holds the checkpoint that admission would wait for.
fn undo_entry(w: &Writer, past: &Past, work: &Work, entry: &UndoEntry) -> Result<(), TxnError> {
    let tree_of = |id| Ok(work.trees.iter().find(|tree| tree.id() == id).cloned());
    let is_purged = |id| w.registry().find(id).is_none();
    undo_one(w.env(), past.id(), entry, &tree_of, &is_purged)
}

/// Frees the newest pieces, as far as nothing in them counts any more; `all`: nor does what they
/// leave to do.
pub(crate) fn free_empty(w: &Writer, past: &Past, all: bool) -> Result<(), TxnError> {
    loop {
        let mut work = past.work.lock();
        match work.pieces.last() {
            Some(top) if top.entries == 0 && (all || top.todos == 0) => {
                free_newest(w, past, &mut work)?;
            }
            _ => return Ok(()),
        }
    }
}

fn free_newest(w: &Writer, past: &Past, work: &mut Work) -> Result<(), TxnError> {
    if let Some(top) = work.pieces.last() {
        let header = Header { txn: Some(past.id()), ..Header::default() };
        stored::free(w.env(), &top, header)?;
        work.pieces.pop();
    }
    Ok(())
}
