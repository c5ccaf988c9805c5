//! Transactions that are to be rolled back in the background: recovery has found them, or a
//! rollback has failed. Their rows stay theirs until then.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;

use crate::record::txn_record::TxnRecord;

/// The queue.
#[derive(Default)]
pub(crate) struct Losers {
    queue: Mutex<rank::LoserQueue, VecDeque<Arc<TxnRecord>>>,
    /// How many they are, with the one that is being rolled back.
    left: AtomicUsize,
}

impl Losers {
    /// Adds one, before all others or behind them.
    pub(crate) fn add(&self, record: Arc<TxnRecord>, is_last: bool) {
        let mut queue = self.queue.lock();
        if is_last {
            queue.push_back(record)
        } else {
            queue.push_front(record)
        }
        self.left.fetch_add(1, Ordering::SeqCst);
    }

    /// The queue, held for as long as one of them is being rolled back.
    pub(crate) fn queue(&self) -> &Mutex<rank::LoserQueue, VecDeque<Arc<TxnRecord>>> {
        &self.queue
    }

    /// The first of the queue, held by the caller, has been rolled back.
    pub(crate) fn first_done(&self, queue: &mut VecDeque<Arc<TxnRecord>>) {
        queue.pop_front();
        self.left.fetch_sub(1, Ordering::SeqCst);
    }

    /// How many are left.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}
