//! Why a lock was not got.
use std::fmt;
use std::time::Duration;

use weir_base::{TreeId, TxnId};

use super::kind::Kind;
use super::place::PlaceBuf;

/// Why a lock was not got. Nothing of the request is left in the table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockError {
    /// It would have had to wait, and was not allowed to.
    #[error("the lock is held or wanted earlier by transaction {holder}")]
    WouldWait {
        /// One of those that it would have waited for.
        holder: TxnId,
    },
    /// The limit passed.
    #[error("transaction {holder} still held the lock after {:.3} s", waited.as_secs_f64())]
    TimedOut {
        /// One of those that it waited for at the end.
        holder: TxnId,
        /// How long it waited.
        waited: Duration,
    },
    /// Several transactions waited in a circle and this one had written least.
    #[error("deadlock: {}", Circle(cycle))]
    Deadlock {
        /// Each waits for the next, the last for the first.
        cycle: Vec<Edge>,
    },
    /// The tree has been dropped.
    #[error("the tree has been dropped")]
    Dropped,
    /// By a call of [`kill`](super::LockTable::kill).
    #[error("the wait for a lock was killed")]
    Killed,
}

/// One transaction that waits for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The waiting transaction.
    pub waiter: TxnId,
    /// What it asked for.
    pub wanted: Kind,
    /// In which tree.
    pub tree: TreeId,
    /// Where.
    pub place: PlaceBuf,
    /// The transaction that it waits for.
    pub holder: TxnId,
    /// What that one holds there, or asked for before.
    pub held: Kind,
    /// Whether that one itself still waits for it, earlier in the queue.
    pub queued: bool,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Edge { waiter, wanted, tree, place, holder, held, queued } = self;
        let how = if *queued { "asked for before" } else { "held" };
        write!(f, "{waiter} waits for {wanted} at {place} of tree {tree}, {held} {how} by {holder}")
    }
}

struct Circle<'a>(&'a [Edge]);

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, edge) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            edge.fmt(f)?;
        }
        Ok(())
    }
}
