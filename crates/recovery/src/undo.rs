//! Transactions without an end: which they are, and how far each had come.
use weir_txn::{RecoveredState, RecoveredTxn, Registry};

use crate::analysis::Analysis;

/// Registers all transactions that the log shows no end of, so that they hold the log that they
/// need, and tells of them, newest first: the order to roll losers back in.
#[must_use]
pub fn recovered(analysis: Analysis, registry: &Registry) -> Vec<RecoveredTxn> {
    let open: Vec<_> = analysis.into_open().collect();
    for (id, txn) in &open {
        registry.reopen(*id, txn.first);
    }
    let state = |committed: bool, prepared: Option<(Vec<u8>, Vec<u8>)>| match prepared {
        _ if committed => RecoveredState::Committed,
        Some((xid, held)) => RecoveredState::Prepared { xid, held },
        None => RecoveredState::Loser,
    };
    open.into_iter()
        .map(|(id, txn)| RecoveredTxn {
            id,
            state: state(txn.committed, txn.prepared),
            undo: if txn.committed { Vec::new() } else { txn.undo },
            tasks: txn.tasks.into_vec(),
        })
        .collect()
}
