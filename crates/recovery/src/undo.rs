//! Transactions without an end: those that committed are completed, the others taken back.
use std::sync::Arc;

use weir_base::{TreeId, TxnId};
use weir_btree::{Admit, Env, Tree};
use weir_txn::{Registry, Todo, TxnError, UndoEntry, finish, roll_back};

use crate::analysis::Analysis;
use crate::{Phase, Progress};

/// What became of the transactions that the log shows no end of.
#[derive(Debug, Default)]
pub struct Settled {
    /// How many were completed.
    pub completed: u64,
    /// How many were taken back.
    pub undone: u64,
    /// Those that are prepared, untouched: open in the registry, and holding their part of the log.
    pub prepared: Vec<Prepared>,
}

/// A prepared transaction as the log tells of it.
#[derive(Debug)]
pub struct Prepared {
    /// Its number.
    pub id: TxnId,
    /// Its name.
    pub xid: Vec<u8>,
    /// What would take it back, oldest first.
    pub undo: Vec<UndoEntry>,
    /// What its commit would leave to do.
    pub todo: Vec<Todo>,
}

/// Settles all transactions that the log shows no end of.
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
) -> Result<Settled, TxnError> {
    let of = analysis.open_count() as u64;
    let open: Vec<_> = analysis.into_open().collect();
    // Registered first, all of them: until settled they hold the log that they need.
    for (id, txn) in &open {
        registry.reopen(*id, txn.first);
    }
    let mut settled = Settled::default();
    for (done, (id, mut txn)) in open.into_iter().enumerate() {
        progress(Progress { phase: Phase::Undo, done: done as u64, of });
        if txn.committed {
            finish(env, id, &txn.todo, tree_of, admit)?;
            settled.completed += 1;
        } else if let Some(xid) = txn.prepared {
            settled.prepared.push(Prepared { id, xid, undo: txn.undo, todo: txn.todo });
            continue;
        } else {
            roll_back(env, id, &mut txn.undo, tree_of, admit)?;
            settled.undone += 1;
        }
        registry.end(id);
    }
    Ok(settled)
}
