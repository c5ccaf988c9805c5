//! Transactions without an end: those that committed are completed, the others taken back.
use std::sync::Arc;

use weir_base::TreeId;
use weir_btree::{Admit, Env, Tree};
use weir_txn::{Registry, TxnError, finish, roll_back};

use crate::analysis::Analysis;
use crate::{Phase, Progress};

/// Settles all transactions that the log shows no end of. Returns how many were completed and how
/// many taken back.
///
/// # Errors
/// [`TxnError`]; the next opening goes on.
pub fn settle(
    analysis: Analysis,
    env: &Arc<Env>,
    registry: &Registry,
    tree_of: &dyn Fn(TreeId) -> Result<Option<Tree>, TxnError>,
    admit: &mut Admit<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(u64, u64), TxnError> {
    let of = analysis.open_count() as u64;
    let open: Vec<_> = analysis.into_open().collect();
    // Registered first, all of them: until settled they hold the log that they need.
    for (id, txn) in &open {
        registry.reopen(*id, txn.first);
    }
    let (mut completed, mut undone) = (0, 0);
    for (done, (id, mut txn)) in open.into_iter().enumerate() {
        progress(Progress { phase: Phase::Undo, done: done as u64, of });
        if txn.committed {
            finish(env, id, &txn.todo, tree_of, admit)?;
            completed += 1;
        } else {
            roll_back(env, id, &mut txn.undo, tree_of, admit)?;
            undone += 1;
        }
        registry.end(id);
    }
    Ok((completed, undone))
}
