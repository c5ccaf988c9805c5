//! Prepared transactions: everything that a commit needs is durable, and it is for somebody outside
//! to say whether they commit. They survive restarts holding their rows.
use std::collections::HashMap;

use weir_base::{Lsn, TreeId, TxnId};
use weir_change::{Group, Header, Op};
use weir_page::{Flags, Stamp};

use crate::cleanup::Todo;
use crate::error::TxnError;
use crate::past::{Found, Past, Undo};
use crate::run::{ROW_BYTES, Writer};
use crate::txn::{Isolation, Txn};
use crate::undo::{TreeOf, UndoEntry};

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
        past.rebuild(&changes);
        let mut work = past.work.lock();
        for change in &changes {
            if !work.trees.iter().any(|tree| tree.id() == change.tree)
                && let Some(tree) = tree_of(change.tree)?
            {
                work.trees.push(tree);
            }
        }
        work.undo_bytes = undo.iter().map(UndoEntry::bytes).sum();
        work.undo = refs;
        work.todo = todo;
        work.xid = Some(xid.to_vec());
        drop(work);
        Ok(Txn::resumed(past, Isolation::ReadCommitted))
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
