//! What recovery finds of transactions that the log shows no end of, and what becomes of it: those
//! that committed are completed and losers are rolled back, both in the background, in steps, while
//! the database is open. Their rows stay theirs until then.
use std::collections::HashMap;

use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Tree, TreeError};
use weir_change::FlipsBuf;
use weir_page::{Flags, Stamp};

use crate::context::Context;
use crate::error::TxnError;
use crate::record::entry::{Undo, UndoEntry};
use crate::record::kept;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::RecoveredChange;
use crate::session::txn::{Isolation, Txn};

/// A row: marks, writer, bytes in the leaf.
type Version = Option<(Flags, Stamp, Vec<u8>)>;

/// Changes of rows; references to undo; trees that rows have named.
type Changes = (Vec<RecoveredChange>, Vec<Undo>, Vec<Tree>);

/// How far a transaction without an end had come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoveredState {
    /// It has committed: what that left is to be done.
    Committed,
    /// It is prepared, and waits for its coordinator.
    Prepared {
        /// Under this name.
        xid: Vec<u8>,
        /// What it has locked besides the rows that it has changed, as `kept.rs` writes it.
        held: Vec<u8>,
    },
    /// It is to be rolled back.
    Loser,
}

/// A transaction without an end.
#[derive(Clone, Debug)]
pub struct RecoveredTxn {
    /// Its number. The registry knows it already, and where its records begin.
    pub id: TxnId,
    /// How far it had come.
    pub state: RecoveredState,
    /// What rolls it back, oldest first.
    pub undo: Vec<UndoEntry>,
    /// What its commit leaves to do.
    pub tasks: Vec<PurgeTask>,
}

/// Takes over a transaction that recovery has found. Returns a prepared one; the others are
/// left to the background.
///
/// # Errors
/// [`TxnError`] when its rows cannot be read.
pub(crate) fn resume(cx: &Context, found: RecoveredTxn) -> Result<Option<Txn>, TxnError> {
    let Some(record) = cx.registry().find(found.id) else { return Err(TxnError::Ended) };
    let segments = found.undo.iter().filter_map(|entry| match entry {
        UndoEntry::Stored(segment) => Some(*segment),
        _ => None,
    });
    let segments: Vec<_> = segments.collect();
    let (changes, refs, named) = changes(cx, &found.undo)?;
    record.move_out(
        cx.undo_cache(),
        &segments,
        segments.iter().map(|p| p.last_seq).max().unwrap_or(0),
    );
    record.rebuild(&changes);
    let mut work = record.work.lock();
    // What segments hold is not known without reading it all.
    let drops = |task: &PurgeTask| matches!(task, PurgeTask::Tree { .. } | PurgeTask::Stored(_));
    work.drops_tree = !segments.is_empty() || found.tasks.iter().any(drops);
    record.set_undo_bytes(found.undo.iter().map(UndoEntry::bytes).sum());
    cx.registry().weigh(&record, record.undo_bytes());
    segments.into_iter().for_each(|segment| work.segments.push(segment));
    (work.undo, work.tasks) = (refs.into(), found.tasks);
    if found.state == RecoveredState::Committed {
        let left = work.left();
        drop(work);
        cx.registry().commit(&record, left, None);
        return Ok(None);
    }
    let _ = cx.locks().register(found.id);
    work.trees = named.into();
    // TXN-11
    changes.iter().try_for_each(|change| work.know(change.tree, &|id| cx.find_tree(id)))?;
    work.changed_more = !work.segments.is_empty();
    let prepared = match found.state {
        RecoveredState::Prepared { xid, held } => {
            for (tree, place, kind) in kept::read(cx.env(), &held)? {
                cx.locks().give_back(found.id, tree, place.as_place(), kind);
            }
            (work.xid, work.held) = (Some(xid.into()), held);
            true
        }
        _ => false,
    };
    if work.is_clean() && !prepared {
        // Nothing of it would be logged again: it must not hold the log until its turn.
        cx.registry().unpin(&record);
    }
    let is_last = work.frees_tree();
    drop(work);
    if prepared {
        return Ok(Some(Txn::resumed(record, Isolation::ReadCommitted)));
    }
    cx.losers().add(record, is_last);
    Ok(None)
}

/// The changes of rows among `undo`, whole; references to all that is not stored; and the trees
/// that rows named before.
fn changes(cx: &Context, undo: &[UndoEntry]) -> Result<Changes, TxnError> {
    let (mut changes, mut refs, mut named) = (Vec::new(), Vec::new(), Vec::<Tree>::new());
    // Newest first, so that a change that says only what differs finds the row after it.
    let mut rows: HashMap<(TreeId, &[u8]), Version> = HashMap::new();
    for entry in undo.iter().rev() {
        let (tree, key, seq, before) = match entry {
            UndoEntry::Tree { tree, root } => {
                refs.push(Undo::Tree { tree: *tree, root: *root });
                continue;
            }
            UndoEntry::Pages { first, count, notes } => {
                refs.push(Undo::Pages { first: *first, count: *count, notes: *notes });
                continue;
            }
            UndoEntry::Stored(_) => continue,
            UndoEntry::Row { tree, key, seq, before } => (*tree, key, *seq, before.clone()),
            UndoEntry::Flip { tree, key, seq, flags, stamp, flips } => {
                let after = match rows.get(&(*tree, key.as_slice())) {
                    Some(row) => row.clone(),
                    None => read_row(cx, *tree, key, &named)?,
                };
                // There is none in a tree that it has dropped.
                let before = match after {
                    Some((_, _, value)) => Some((*flags, *stamp, flipped(*tree, value, flips)?)),
                    None => None,
                };
                (*tree, key, *seq, before)
            }
        };
        refs.push(Undo::Row(seq));
        // A tree is dropped after all else that is done there: it is known in time.
        let bytes = before.as_ref().map(|(_, _, bytes)| bytes);
        named.extend(bytes.and_then(|bytes| cx.named_by(tree, bytes)));
        rows.insert((tree, key), before.clone());
        changes.push(RecoveredChange { seq, tree, key: key.clone(), before });
    }
    changes.reverse();
    refs.reverse();
    Ok((changes, refs, named))
}

fn read_row(cx: &Context, id: TreeId, key: &[u8], named: &[Tree]) -> Result<Version, TxnError> {
    let named = named.iter().find(|tree| tree.id() == id).cloned();
    let tree = if named.is_some() { named } else { cx.find_tree(id)? };
    let Some(tree) = tree else { return Ok(None) };
    let mut value = Vec::new();
    Ok(tree.get_inline(key, &mut value)?.map(|head| (head.flags, head.stamp, value)))
}

fn flipped(tree: TreeId, mut value: Vec<u8>, flips: &FlipsBuf) -> Result<Vec<u8>, TxnError> {
    if flips.flip(&mut value) {
        return Ok(value);
    }
    let what = "a row is shorter than what the log needs to roll it back".to_owned();
    Err(TreeError::Damaged { tree, page: PageNo::NONE, what }.into())
}
