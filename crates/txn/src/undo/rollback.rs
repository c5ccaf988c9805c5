//! Rolling a transaction back, as a whole or to a savepoint, newest change first: what memory
//! holds, then the segments that it has stored.
use std::sync::Arc;

use weir_base::{PageNo, TreeId};
use weir_btree::Tree;
use weir_change::Header;

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::planted::PlantedBug;
use crate::record::entry::{Undo, UndoEntry};
use crate::record::stored::{self, UndoSegment};
use crate::record::txn_record::TxnRecord;
use crate::record::work::Work;
use crate::undo::apply::{rolled_back, undo_one};
use crate::undo::prepared_note::no_longer_prepared;
use crate::undo::relog;

/// So many pages of a tree are freed at once: little beside the log, and beside the time that
/// closing the database may take.
const PART_PAGES: usize = 64;

/// The segment of stored undo that was read last, and its number.
pub(crate) type Read = Option<(u64, UndoSegment)>;

/// Rolls back what `record` has done beyond its first `keep` changes. `goes_on`: it may change rows
/// again.
pub(crate) fn roll_back_to(
    cx: &Context,
    record: &TxnRecord,
    keep: usize,
    goes_on: bool,
) -> Result<(), TxnError> {
    let mut read = None;
    while roll_back_step(cx, record, keep, goes_on, &mut read)? > 0 {}
    Ok(())
}

/// Rolls all of an open transaction back and ends it. Goes on where it stopped, if it has failed
/// before.
pub(crate) fn roll_back(cx: &Context, record: &Arc<TxnRecord>) -> Result<(), TxnError> {
    // Before the first row is restored: half of it must not be found prepared.
    no_longer_prepared(cx.env(), record)?;
    roll_back_to(cx, record, 0, false)?;
    free_empty(cx, record, true)?;
    record.work.lock().tasks.clear();
    rolled_back(cx.env(), record.id())?;
    cx.registry().abort(record);
    cx.locks().end(record.id());
    Ok(())
}

/// A step of [`roll_back_to`]. Returns what it was worth, in changes of rows; 0: nothing is left to
/// roll back.
pub(crate) fn roll_back_step(
    cx: &Context,
    record: &TxnRecord,
    keep: usize,
    goes_on: bool,
    read: &mut Read,
) -> Result<usize, TxnError> {
    let mut work = record.work.lock();
    if work.depth() <= keep {
        return Ok(0);
    }
    let Some(undo) = work.undo.last().copied() else {
        drop(work);
        // What is stored may be more than the log has room for: rolling it back waits for admission
        // as other changes do (TXN-4).
        relog::admit_relogging(cx, record, ROW_BYTES)?;
        return newest_stored(cx, record, &mut record.work.lock(), read);
    };
    if let Undo::Tree { tree, root } = undo
        && free_part(cx, record, tree, root)?
    {
        drop(work);
        // So may a tree be, one that holds versions as a rule.
        relog::admit_relogging(cx, record, ROW_BYTES)?;
        return Ok(PART_PAGES);
    }
    newest_in_memory(cx, record, &mut work, undo, goes_on)?;
    Ok(1)
}

/// Frees some pages of a tree that the transaction has made. `false`: nothing is left of it. Until
/// that is said as well, the log goes on naming the tree by its root, which is freed last: whenever
/// a crash comes, what is left is found.
fn free_part(
    cx: &Context,
    record: &TxnRecord,
    tree: TreeId,
    root: PageNo,
) -> Result<bool, TxnError> {
    // BTREE-7
    cx.env().pool.log().check()?;
    let header = Header { txn: Some(record.id()), ..Header::default() };
    let tree = Tree::at(cx.env().clone(), tree, root);
    for _ in 0..PART_PAGES {
        if !tree.free_next(header, &mut |_| Ok(()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn newest_in_memory(
    cx: &Context,
    record: &TxnRecord,
    work: &mut Work,
    undo: Undo,
    goes_on: bool,
) -> Result<(), TxnError> {
    let forgets = cx.has(PlantedBug::RowNotRestored) && work.undo.len() % 8 == 3;
    if let Some(entry) = record.undo_entry(undo).filter(|_| !forgets) {
        undo_entry(cx, record, work, &entry)?;
    }
    work.undo.pop();
    match undo {
        Undo::Row(seq) => {
            if goes_on {
                // Its number is not given again: its place in memory stays taken until what memory
                // holds is stored, and counts until then.
                record.kill(seq);
            } else {
                record.sub_undo_bytes(record.undo_bytes_of(seq));
            }
        }
        Undo::Tree { .. } | Undo::Pages { .. } => record.sub_undo_bytes(16),
    }
    Ok(())
}

/// `read` keeps the segment that was read last. Readers may find a version there until its pages
/// are freed: it is what the row is again.
fn newest_stored(
    cx: &Context,
    record: &TxnRecord,
    work: &mut Work,
    read: &mut Read,
) -> Result<usize, TxnError> {
    let Some(top) = work.segments.last() else { return Ok(1) };
    if top.entries == 0 {
        // Older changes than its own are rolled back: what those left to do is nothing any more.
        free_newest(cx, record, work)?;
        return Ok(1);
    }
    if read.as_ref().is_none_or(|(mark, _)| *mark != top.mark) {
        let segment = stored::read(cx.env(), &top)?;
        *read = Some((top.mark, segment.ok_or_else(|| stored::missing(cx.env(), &top))?));
    }
    if let Some((_, segment)) = read
        && let Some(entry) = segment.undo.get(top.entries as usize - 1)
    {
        if let UndoEntry::Tree { tree, root } = entry
            && free_part(cx, record, *tree, *root)?
        {
            return Ok(PART_PAGES);
        }
        undo_entry(cx, record, work, entry)?;
    }
    work.segments.entry_undone();
    Ok(1)
}

/// Not admitted (TXN-4): what memory holds of undo is little, and holds the checkpoint that
/// admission would wait for.
fn undo_entry(
    cx: &Context,
    record: &TxnRecord,
    work: &mut Work,
    entry: &UndoEntry,
) -> Result<(), TxnError> {
    // Held all the while: a tree's pages are freed when no transaction is at it.
    let dropped = cx.dropped.read();
    if let Some(tree) = entry.tree() {
        work.know(tree, &|id| cx.find_tree(id))?;
    }
    let tree = |id| work.trees.iter().find(|tree| tree.id() == id && !dropped.contains(&id));
    let tree_of = |id| Ok(tree(id).cloned());
    let is_visible_to_all = |id| cx.registry().is_visible_to_all(id);
    undo_one(cx.env(), record.id(), entry, &tree_of, &is_visible_to_all)
}

/// Frees the newest segments, as far as nothing in them counts any more; `all`: nor does what they
/// leave to do.
pub(crate) fn free_empty(cx: &Context, record: &TxnRecord, all: bool) -> Result<(), TxnError> {
    loop {
        let mut work = record.work.lock();
        match work.segments.last() {
            Some(top) if top.entries == 0 && (all || top.tasks == 0) => {
                free_newest(cx, record, &mut work)?;
            }
            _ => return Ok(()),
        }
    }
}

fn free_newest(cx: &Context, record: &TxnRecord, work: &mut Work) -> Result<(), TxnError> {
    if let Some(top) = work.segments.last() {
        let header = Header { txn: Some(record.id()), ..Header::default() };
        stored::free(cx.env(), &top, header)?;
        work.segments.pop();
    }
    Ok(())
}
