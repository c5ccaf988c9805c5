//! How much log it would take to say once more what recovery needs of all transactions: of those
//! that are open, what rolls them back, and of those that have committed, what they have left to
//! do. Each may be little; the sum must stay a small part of the log, in which it is logged again.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::lines;

use super::Registry;
use crate::record::txn_record::{State, TxnRecord};

/// Sums of [`TxnRecord::weight`].
#[derive(Default)]
pub(super) struct Weights {
    open: AtomicU64,
    left: AtomicU64,
}

impl Weights {
    fn of(&self, state: State) -> &AtomicU64 {
        if state == State::Open { &self.open } else { &self.left }
    }

    /// Weighs a transaction anew that is in this state.
    pub(super) fn set(&self, record: &TxnRecord, state: State, bytes: u64) {
        let before = record.weight.swap(bytes, Relaxed);
        let sum = self.of(state);
        if bytes != before {
            // Of small transactions nothing was summed up: all cores write this line.
            lines::wrote("the sums of undo");
            sum.fetch_add(bytes, Relaxed);
            sum.fetch_sub(before, Relaxed);
        }
    }

    /// It was open, and has left so much to do.
    pub(super) fn end(&self, record: &TxnRecord, left_bytes: u64) {
        self.set(record, State::Open, 0);
        record.weight.store(left_bytes, Relaxed);
        if left_bytes > 0 {
            lines::wrote("the sums of undo");
            self.left.fetch_add(left_bytes, Relaxed);
        }
    }
}

impl Registry {
    /// Says how many bytes of log it would take to write again what rolls an open transaction back.
    pub(crate) fn weigh(&self, record: &TxnRecord, bytes: u64) {
        self.weights.set(record, State::Open, bytes);
    }

    /// An ended transaction has nothing left to do: it holds no log, and weighs nothing.
    pub(crate) fn settle(&self, record: &TxnRecord) {
        self.unpin(record);
        self.weights.set(record, record.state(), 0);
    }

    /// Bytes of log that rolling back all open transactions would need, to within a few KiB each.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.weights.open.load(Relaxed)
    }

    /// Bytes of log that say what committed transactions have left to do.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.weights.left.load(Relaxed)
    }
}
