//! Which transactions are under way. A row's writer is its exclusive lock while it is active.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use weir_base::{Lsn, TxnId};

/// The transactions under way, and the next number.
pub struct Active {
    next: AtomicU64,
    count: AtomicU64,
    /// By number: where the first record is that recovery would need to take it back.
    open: Mutex<BTreeMap<TxnId, Lsn>>,
    ended: Condvar,
}

impl Active {
    /// No transaction is under way; the next one gets `next`.
    #[must_use]
    pub fn new(next: TxnId) -> Self {
        Active {
            next: AtomicU64::new(next.0.max(1)),
            count: AtomicU64::new(0),
            open: Mutex::new(BTreeMap::new()),
            ended: Condvar::new(),
        }
    }

    /// A number for a transaction that is one group of the log: atomic by itself, never seen open.
    #[inline]
    #[must_use]
    pub fn number(&self) -> TxnId {
        TxnId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next transaction gets.
    #[must_use]
    pub fn next(&self) -> TxnId {
        TxnId(self.next.load(Ordering::Relaxed))
    }

    /// Opens a transaction whose records will lie at or after `from`.
    #[must_use]
    pub fn open(&self, from: Lsn) -> TxnId {
        let id = self.number();
        let mut open = self.open.lock();
        open.insert(id, from);
        self.count.store(open.len() as u64, Ordering::SeqCst);
        id
    }

    /// Registers a transaction found open by recovery.
    pub fn reopen(&self, id: TxnId, from: Lsn) {
        let mut open = self.open.lock();
        open.insert(id, from);
        self.count.store(open.len() as u64, Ordering::SeqCst);
    }

    /// Says that what undo needs of `id` lies at or after `from` now.
    pub fn carried_forward(&self, id: TxnId, from: Lsn) {
        self.open.lock().insert(id, from);
    }

    /// Ends a transaction: who waits for its rows goes on.
    pub fn end(&self, id: TxnId) {
        let mut open = self.open.lock();
        open.remove(&id);
        self.count.store(open.len() as u64, Ordering::SeqCst);
        drop(open);
        self.ended.notify_all();
    }

    /// Whether `id` is under way.
    #[inline]
    #[must_use]
    pub fn is_open(&self, id: TxnId) -> bool {
        self.count.load(Ordering::SeqCst) != 0 && self.open.lock().contains_key(&id)
    }

    /// Waits until `id` has ended, at most `timeout`. Returns whether it has.
    #[must_use]
    pub fn wait_end(&self, id: TxnId, timeout: Duration) -> bool {
        let mut open = self.open.lock();
        if !open.contains_key(&id) {
            return true;
        }
        self.ended.wait_for(&mut open, timeout);
        !open.contains_key(&id)
    }

    /// The oldest record that taking back an open transaction would need: the checkpoint may not
    /// pass it.
    #[must_use]
    pub fn oldest(&self) -> Option<Lsn> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.open.lock().values().min().copied()
    }

    /// Where the first record lies that taking back `id` would need.
    #[must_use]
    pub fn first_of(&self, id: TxnId) -> Option<Lsn> {
        self.open.lock().get(&id).copied()
    }

    /// How many transactions are open.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_transactions_hold_the_checkpoint_and_their_rows() {
        let active = Active::new(TxnId(5));
        assert_eq!(active.oldest(), None);
        let first = active.open(Lsn(100));
        let second = active.open(Lsn(200));
        assert!(active.is_open(first) && !active.is_open(active.number()));
        assert_eq!(active.oldest(), Some(Lsn(100)));
        active.carried_forward(first, Lsn(300));
        assert_eq!(active.oldest(), Some(Lsn(200)));
        assert!(!active.wait_end(second, Duration::from_millis(1)));
        active.end(second);
        assert!(active.wait_end(second, Duration::from_millis(1)));
        assert_eq!(active.oldest(), Some(Lsn(300)));
    }
}
