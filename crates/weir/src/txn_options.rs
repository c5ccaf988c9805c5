//! How a transaction runs.
use std::time::Duration;

use weir_txn::{Isolation, Wait};

/// How a transaction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// How long it waits for a lock before the call fails. [`Wait::No`] never waits.
    pub lock_wait: Wait,
}

impl Default for TxnOptions {
    /// REPEATABLE READ; waits up to 50 s.
    fn default() -> Self {
        TxnOptions {
            isolation: Isolation::RepeatableRead,
            lock_wait: Wait::Until(Duration::from_secs(50)),
        }
    }
}
