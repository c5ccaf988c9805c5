//! Prepared transactions: everything that a commit needs is durable, and it is for somebody outside
//! to say whether they commit. They survive restarts holding their rows.
use std::collections::{BTreeSet, HashMap};

use weir_base::{Lsn, TreeId, TxnId};
use weir_change::{Group, Header, Op, Stored};
use weir_page::{Flags, Stamp};

use crate::cleanup::Todo;
use crate::error::TxnError;
use crate::past::{Found, Past};
use crate::purge::restate;
use crate::run::{ROW_BYTES, Writer};
use crate::stored;
use crate::txn::{Isolation, Txn};
use crate::undo::{TreeOf, UndoEntry};
use crate::work::Undo;

/// A row: marks, writer, bytes in the leaf.
type Version = Option<(Flags, Stamp, Vec<u8>)>;

pub(crate) fn note_prepared(group: &mut Group<'_>, xid: &[u8], todo: &[Todo]) {
    group.note(&Op::Prepared { xid });
    todo.iter().map(Todo::to_cleanup).for_each(|todo| group.note(&Op::Cleanup(todo)));
}

/// Says in the log that a prepared transaction is being taken back, if it is prepared.
pub(crate) fn no_longer_prepared(w: &Writer, past: &Past) -> Result<(), TxnError> {
    let mut work = past.work.lock();
    if work.xid.is_some() {
        let header = Header { txn: Some(past.id()), ..Header::default() };
        let mut group = Group::begin(header);
        note_prepared(&mut group, b"", &[]);
        group.commit(w.env().pool.log())?;
        work.xid = None;
    }
    Ok(())
}

impl Txn {
    /// Prepares the transaction under the name `xid`: once the log is durable up to the position
    /// returned, only [`Txn::commit`] and [`Txn::rollback`] end it, also after a restart. Explicit
    /// locks are kept only until a restart; rows that it has changed stay its own.
    ///
    /// # Errors
    /// [`TxnError`]; it is not prepared.
    pub fn prepare(&mut self, w: &Writer, xid: &[u8]) -> Result<Lsn, TxnError> {
        let past = self.start(w)?;
        self.make_way(w, &past, ROW_BYTES + xid.len() as u64)?;
        self.pin(w, &past);
        let mut work = past.work.lock();
        let header = Header { txn: Some(past.id()), undo: true, ..Header::default() };
        let mut group = Group::begin(header);
        if !work.pieces.is_empty() {
            // After a way back to a savepoint the log knows which undo counts, not which work.
            restate(&mut group, &past, &mut work, 0);
        }
        note_prepared(&mut group, xid, &work.todo);
        let span = group.commit(w.env().pool.log())?;
        work.xid = Some(xid.to_vec());
        Ok(span.end)
    }

    /// The prepared transaction `id` as recovery found it: open in the registry. `undo` is what
    /// would take it back, oldest first.
    ///
    /// # Errors
    /// [`TxnError`] when its rows cannot be read.
    pub fn resume(
        w: &Writer,
        id: TxnId,
        xid: &[u8],
        undo: &[UndoEntry],
        todo: Vec<Todo>,
        tree_of: &TreeOf<'_>,
    ) -> Result<Txn, TxnError> {
        let Some(past) = w.registry().find(id) else { return Err(TxnError::Over) };
        let _ = w.locks().register(id);
        let older = Older::read(w, undo)?;
        let (mut changes, mut refs) = (Vec::new(), Vec::new());
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
                UndoEntry::Delta { tree, key, seq, stamp, offset, bytes } => {
                    let after = match rows.get(&(*tree, key.as_slice())) {
                        Some(row) => row.clone(),
                        None => read_row(tree_of, *tree, key)?,
                    };
                    let before = after
                        .map(|(flags, _, value)| (flags, *stamp, patched(value, *offset, bytes)));
                    (*tree, key, *seq, before)
                }
            };
            refs.push(Undo::Row(seq));
            rows.insert((tree, key), before.clone());
            changes.push(Found { seq, tree, key: key.clone(), before });
        }
        changes.reverse();
        refs.reverse();
        let stored = older.pieces.last().map_or(0, |(_, last)| *last);
        past.move_out(w.env(), &older.pieces, stored);
        past.rebuild(&changes);
        let mut work = past.work.lock();
        for id in older.trees.iter().copied().chain(changes.iter().map(|change| change.tree)) {
            if !work.trees.iter().any(|tree| tree.id() == id)
                && let Some(tree) = tree_of(id)?
            {
                work.trees.push(tree);
            }
        }
        older.pieces.iter().for_each(|(piece, _)| work.pieces.push(*piece));
        work.drops_tree = older.drops_tree;
        work.undo_bytes = undo.iter().map(UndoEntry::bytes).sum();
        work.undo = refs;
        work.todo = todo;
        work.xid = Some(xid.to_vec());
        drop(work);
        Ok(Txn::resumed(past, Isolation::ReadCommitted))
    }
}

/// The pieces that a transaction had stored: where, with the greatest number of a change up to the
/// end of each, and what of them has to be known.
#[derive(Default)]
struct Older {
    pieces: Vec<(Stored, u32)>,
    trees: BTreeSet<TreeId>,
    drops_tree: bool,
}

impl Older {
    fn read(w: &Writer, undo: &[UndoEntry]) -> Result<Older, TxnError> {
        let mut older = Older::default();
        let mut last = 0;
        for entry in undo {
            let UndoEntry::Stored(stored) = entry else { continue };
            let piece = stored::read(w.env(), stored)?;
            let piece = piece.ok_or_else(|| stored::missing(w.env(), stored))?;
            for entry in &piece.undo {
                if let UndoEntry::Row { tree, seq, .. } = entry {
                    older.trees.insert(*tree);
                    last = last.max(*seq);
                }
            }
            older.drops_tree |= piece.todo.iter().any(|todo| matches!(todo, Todo::Tree { .. }));
            older.pieces.push((*stored, last));
        }
        Ok(older)
    }
}

fn read_row(tree_of: &TreeOf<'_>, tree: TreeId, key: &[u8]) -> Result<Version, TxnError> {
    let Some(tree) = tree_of(tree)? else { return Ok(None) };
    let mut value = Vec::new();
    Ok(tree.get_inline(key, &mut value)?.map(|head| (head.flags, head.stamp, value)))
}

fn patched(mut value: Vec<u8>, offset: usize, bytes: &[u8]) -> Vec<u8> {
    if let Some(part) = value.get_mut(offset..offset + bytes.len()) {
        part.copy_from_slice(bytes);
    }
    value
}
