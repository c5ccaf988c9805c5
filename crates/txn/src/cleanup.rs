//! What a committed transaction leaves to be done: freeing the chains it replaced, removing the
//! rows it marked, freeing the pages of a tree it dropped. The commit's group names it all, so a
//! crash in between only delays it.
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::RwLock;
use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Action, Admit, Ahead, Change, Env, Row, Tree};
use weir_change::{Cleanup, Group, Header, Stored};

use crate::error::TxnError;
use crate::stored;
use crate::undo::Trees;

/// One thing left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Free an overflow chain that no row names.
    Chain {
        /// Its first page that is not free yet.
        first: PageNo,
        /// Its number.
        mark: u64,
        /// The tree whose row named it.
        tree: TreeId,
    },
    /// Remove a row that the transaction marked.
    Row {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
    },
    /// Free all pages of a dropped tree.
    Tree {
        /// Its number.
        tree: TreeId,
        /// Its root.
        root: PageNo,
    },
    /// Do what these notes say, and free their pages.
    Stored(Stored),
}

impl Todo {
    /// From the record that recovery finds.
    #[must_use]
    pub fn from_cleanup(cleanup: &Cleanup<'_>) -> Self {
        match *cleanup {
            Cleanup::Chain { first, mark } => Todo::Chain { first, mark, tree: TreeId(0) },
            Cleanup::Row { tree, key } => Todo::Row { tree, key: key.to_vec() },
            Cleanup::Tree { tree, root } => Todo::Tree { tree, root },
            Cleanup::Stored(stored) => Todo::Stored(stored),
        }
    }

    /// Adds what a record says. A later word on the same chain says how far its freeing has come.
    pub fn add(all: &mut Vec<Todo>, cleanup: &Cleanup<'_>) {
        if let Cleanup::Chain { first, mark } = *cleanup {
            all.retain(|todo| match todo {
                Todo::Chain { mark: known, .. } => *known != mark,
                Todo::Stored(piece) => piece.mark != mark,
                Todo::Row { .. } | Todo::Tree { .. } => true,
            });
            if first == PageNo::NONE {
                return;
            }
        }
        all.push(Todo::from_cleanup(cleanup));
    }

    /// About how many bytes of log it takes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Todo::Row { key, .. } => 16 + key.len() as u64,
            Todo::Chain { .. } | Todo::Tree { .. } => 16,
            Todo::Stored(_) => stored::NOTE_BYTES,
        }
    }

    /// As the record.
    #[must_use]
    pub fn to_cleanup(&self) -> Cleanup<'_> {
        match self {
            Todo::Chain { first, mark, .. } => Cleanup::Chain { first: *first, mark: *mark },
            Todo::Row { tree, key } => Cleanup::Row { tree: *tree, key },
            Todo::Tree { tree, root } => Cleanup::Tree { tree: *tree, root: *root },
            Todo::Stored(stored) => Cleanup::Stored(*stored),
        }
    }
}

/// Whose rest is done, and what there is to know of others for it.
pub(crate) struct Finish<'a> {
    pub(crate) env: &'a Arc<Env>,
    pub(crate) id: TxnId,
    pub(crate) tree_of: &'a Trees<'a>,
    /// Whether all snapshots see what a transaction did.
    pub(crate) is_everybodys: &'a dyn Fn(TxnId) -> bool,
    /// Trees that nobody may touch any more. Held while a row is removed, so that who drops its
    /// tree waits for that; and not while admission is waited for, which may come only when others
    /// get on who want it.
    pub(crate) dropped: &'a RwLock<HashSet<TreeId>>,
}

/// Does what is left of a transaction and says in the log that nothing is.
///
/// # Errors
/// [`TxnError`]; what is left is to be done later, from the beginning.
pub(crate) fn finish(f: &Finish<'_>, todo: &[Todo], admit: &mut Admit<'_>) -> Result<(), TxnError> {
    for item in todo {
        finish_one(f, item, admit)?;
    }
    admit(Ahead::of(64))?;
    let group = Group::begin(Header { txn: Some(f.id), ended: true, ..Header::default() });
    group.commit(f.env.pool.log())?;
    Ok(())
}

fn finish_one(f: &Finish<'_>, item: &Todo, admit: &mut Admit<'_>) -> Result<(), TxnError> {
    let (env, id) = (f.env, f.id);
    let header = Header { txn: Some(id), ..Header::default() };
    // It may do what others have left.
    let is_done_with = |writer| writer == id || (f.is_everybodys)(writer);
    match item {
        Todo::Chain { first, mark, tree } => {
            Tree::at(env.clone(), *tree, *first).free_chain(*first, *mark, header, admit)?;
        }
        Todo::Row { tree, key } => {
            admit(Ahead::of(1024))?;
            let dropped = f.dropped.read();
            if let Some(tree) = (f.tree_of)(*tree)?.filter(|_| !dropped.contains(tree)) {
                let change = Change::restoring(header);
                tree.write(key, &change, &mut |row: Option<Row<'_>>| match row {
                    Some(row) if row.flags.deleted && is_done_with(row.stamp.writer) => {
                        Action::Remove
                    }
                    _ => Action::Nothing,
                })?;
            }
        }
        Todo::Tree { tree, root } => {
            Tree::at(env.clone(), *tree, *root).free_all(header, admit)?;
        }
        Todo::Stored(stored) => {
            // Gone when a crash came after its pages were freed, and before that was known.
            if let Some(piece) = stored::read(env, stored)? {
                for inner in &piece.todo {
                    finish_one(f, inner, admit)?;
                }
                let tree = Tree::at(env.clone(), TreeId(0), stored.first);
                tree.free_chain(stored.first, stored.mark, header, admit)?;
            }
        }
    }
    Ok(())
}
