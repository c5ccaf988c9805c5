//! Doing what a committed transaction has left to be done.
use std::collections::HashSet;
use std::sync::Arc;

use weir_base::lock::RwLock;
use weir_base::{TreeId, TxnId, rank};
use weir_btree::{Action, Admit, Ahead, Change, Env, Row, Tree};
use weir_change::{Group, Header};

use crate::error::TxnError;
use crate::record::purge_task::PurgeTask;
use crate::record::stored;
use crate::record::work::FindTree;

/// Whose rest is done, and what there is to know of others for it.
pub(crate) struct TaskContext<'a> {
    pub(crate) env: &'a Arc<Env>,
    pub(crate) id: TxnId,
    pub(crate) tree_of: &'a FindTree<'a>,
    /// Whether all snapshots see what a transaction did.
    pub(crate) is_visible_to_all: &'a dyn Fn(TxnId) -> bool,
    /// Trees that no transaction may touch any more. Held while a row is removed, so that a
    /// transaction that drops its tree waits for that; and not while admission is waited for, which
    /// may come only when others get on that want it.
    pub(crate) dropped: &'a RwLock<rank::DroppedTrees, HashSet<TreeId>>,
}

/// Does what is left of a transaction and says in the log that nothing is.
///
/// # Errors
/// [`TxnError`]; what is left is to be done later, from the beginning.
pub(crate) fn run_tasks(
    f: &TaskContext<'_>,
    tasks: &[PurgeTask],
    admit: &mut Admit<'_>,
) -> Result<(), TxnError> {
    for item in tasks {
        run_task(f, item, admit)?;
    }
    admit(Ahead::of(64))?;
    let group = Group::begin(Header { txn: Some(f.id), ended: true, ..Header::default() });
    group.commit(f.env.pool.log())?;
    Ok(())
}

fn run_task(f: &TaskContext<'_>, item: &PurgeTask, admit: &mut Admit<'_>) -> Result<(), TxnError> {
    let (env, id) = (f.env, f.id);
    let header = Header { txn: Some(id), ..Header::default() };
    // It may do what others have left.
    let is_done_with = |writer| writer == id || (f.is_visible_to_all)(writer);
    match item {
        PurgeTask::Chain { first, mark, tree } => {
            env.chains_of(*tree).free(*first, *mark, header, admit)?;
        }
        PurgeTask::Row { tree, key } => {
            admit(Ahead::of(1024))?;
            let dropped = f.dropped.read();
            if let Some(tree) = (f.tree_of)(*tree)?.filter(|_| !dropped.contains(tree)) {
                let latched = tree.latch_row(key)?;
                let is_due = |row: Row<'_>| row.flags.deleted && is_done_with(row.stamp.writer);
                if latched.row().is_some_and(is_due) {
                    let applied = latched.apply(&Change::restoring(header), Action::Remove)?;
                    tree.settle(key, applied)?;
                }
            }
        }
        PurgeTask::Tree { tree, root } => {
            Tree::at(env.clone(), *tree, *root).free_all(header, admit)?;
        }
        PurgeTask::Stored(stored) => {
            // Gone when a crash came after its pages were freed, and before that was known.
            if let Some(segment) = stored::read(env, stored)? {
                for inner in &segment.tasks {
                    run_task(f, inner, admit)?;
                }
                env.chains().free(stored.first, stored.mark, header, admit)?;
            }
        }
    }
    Ok(())
}
