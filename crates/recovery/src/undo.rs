//! Transactions without an end: who they are, and how far each had come.
use weir_txn::{Fate, Registry, Unfinished};

use crate::analysis::Analysis;

/// Registers all transactions that the log shows no end of, so that they hold the log that they
/// need, and tells of them, newest first: the order to take losers back in.
#[must_use]
pub fn unfinished(analysis: Analysis, registry: &Registry) -> Vec<Unfinished> {
    let open: Vec<_> = analysis.into_open().collect();
    for (id, txn) in &open {
        registry.reopen(*id, txn.first);
    }
    let fate = |committed: bool, prepared: Option<(Vec<u8>, Vec<u8>)>| match prepared {
        _ if committed => Fate::Committed,
        Some((xid, held)) => Fate::Prepared { xid, held },
        None => Fate::Loser,
    };
    open.into_iter()
        .map(|(id, txn)| Unfinished {
            id,
            fate: fate(txn.committed, txn.prepared),
            undo: if txn.committed { Vec::new() } else { txn.undo },
            tasks: txn.tasks.into_vec(),
        })
        .collect()
}
