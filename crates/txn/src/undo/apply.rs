//! Rolling changes back: logically, through the trees, newest first. Each step says in the log that
//! it was done, so that a crash in between goes on where it stopped.
use std::sync::Arc;

use weir_base::{PageNo, TxnId};
use weir_btree::{Action, Change, Env, Tree, Value};
use weir_change::{FlipsBuf, Group, Header, Op};
use weir_page::{Flags, Stamp};

use crate::error::TxnError;
use crate::record::entry::UndoEntry;
use crate::record::stored;
use crate::record::work::FindTree;

/// Says in the log that nothing of `id` is left to be rolled back.
pub(crate) fn rolled_back(env: &Env, id: TxnId) -> Result<(), TxnError> {
    let header = Header { txn: Some(id), ended: true, ..Header::default() };
    Group::begin(header).commit(env.pool.log())?;
    Ok(())
}

/// A row as it was: marks, writer, bytes in the leaf.
type Was<'b> = (Flags, Stamp, &'b [u8]);

/// What to restore: of a row that another transaction has marked deleted only the mark, since the
/// chain that it named may be freed by now, and readers find its bytes elsewhere. What `own` has
/// marked stays as it was: its mark may be rolled back next, and says nothing of the bytes
/// (`Op::Flip`).
fn without_garbage(own: TxnId, was: Was<'_>) -> Was<'_> {
    match was {
        (flags, stamp, _) if flags.deleted && stamp.writer != own => {
            (Flags { deleted: true, ..Flags::NONE }, stamp, &[])
        }
        live => live,
    }
}

/// Rolls one change of `id` back, and says so in the log. `tree_of` finds no tree that is not to be
/// touched any more. `is_visible_to_all`: whether all snapshots
/// see what that transaction did.
pub(crate) fn undo_one(
    env: &Arc<Env>,
    id: TxnId,
    entry: &UndoEntry,
    tree_of: &FindTree<'_>,
    is_visible_to_all: &dyn Fn(TxnId) -> bool,
) -> Result<(), TxnError> {
    // BTREE-7: a halted engine rolls nothing back; the next opening does.
    env.pool.log().check()?;
    let header = Header { txn: Some(id), ..Header::default() };
    let is_said = match entry {
        UndoEntry::Row { tree, key, before, .. } => match tree_of(*tree)? {
            Some(tree) => {
                let before = before.as_ref().map(|(f, s, b)| (*f, *s, b.as_slice()));
                restore(&tree, key, header, before, is_visible_to_all)?
            }
            None => false,
        },
        UndoEntry::Flip { tree, key, flags, stamp, flips, .. } => match tree_of(*tree)? {
            Some(tree) => {
                restore_bits(&tree, key, header, (*flags, *stamp, flips), is_visible_to_all)?
            }
            None => false,
        },
        // Its pages have been freed before this (`rollback.rs`). When a crash comes between, its
        // root is free, or another tree's.
        UndoEntry::Tree { .. } => false,
        UndoEntry::Pages { first, count, notes } => {
            let pages: Vec<PageNo> = (first.0..first.0 + count).map(PageNo).collect();
            let mut group = Group::begin(header);
            env.space.log_free(&mut group, &pages)?;
            // With the freeing itself: done twice, it would free pages that others use now.
            group.note(&Op::Undone { entries: *notes });
            group.commit(env.pool.log())?;
            env.space.unclaim(&pages);
            true
        }
        UndoEntry::Stored(stored) => {
            stored::free(env, stored, header)?;
            true
        }
    };
    if !is_said {
        let mut group = Group::begin(header);
        group.note(&Op::Undone { entries: 1 });
        group.commit(env.pool.log())?;
    }
    Ok(())
}

fn restore_bits(
    tree: &Tree,
    key: &[u8],
    header: Header,
    (flags, stamp, flips): (Flags, Stamp, &FlipsBuf),
    is_visible_to_all: &dyn Fn(TxnId) -> bool,
) -> Result<bool, TxnError> {
    let mut value = Vec::new();
    if tree.get_inline(key, &mut value)?.is_none() || !flips.flip(&mut value) {
        return Ok(false);
    }
    restore(tree, key, header, Some((flags, stamp, &value)), is_visible_to_all)
}

/// Restores a row, and says so in the same group (TXN-6): with the writer before in its stamp it is
/// free for others, whose changes must not be rolled back in the place of this one. `false`: there
/// was nothing to do, and nothing is said.
fn restore(
    tree: &Tree,
    key: &[u8],
    header: Header,
    before: Option<Was<'_>>,
    is_visible_to_all: &dyn Fn(TxnId) -> bool,
) -> Result<bool, TxnError> {
    let own = header.writer();
    let before = before.map(|was| without_garbage(own, was));
    let mut change = Change::restoring(header).undone();
    if let Some((_, stamp, _)) = before {
        change = change.stamped(stamp);
    }
    let is_purged = |(flags, stamp, _): &Was<'_>| {
        flags.deleted && stamp.writer != own && is_visible_to_all(stamp.writer)
    };
    loop {
        let latched = tree.latch_row(key)?;
        // Asked with the leaf latched: the transaction that was to remove the marked row, and has
        // found ours in its place, came when this was so already; the transaction that comes later
        // finds the mark (TXN-15).
        let action = match before.filter(|was| !is_purged(was)) {
            None => Action::Remove,
            Some((flags, _, bytes)) => Action::Put(Value { bytes, flags }),
        };
        let applied = latched.apply(&change, action)?;
        if let Some(written) = tree.settle(key, applied)? {
            return Ok(written.span.is_some());
        }
    }
}
