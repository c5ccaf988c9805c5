//! What opening tells of itself.
use weir_base::Lsn;

/// What opening had to do after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoveryReport {
    /// Where the log was read from.
    pub from: Lsn,
    /// Where it ended.
    pub to: Lsn,
    /// Pages torn by the crash, put right from the doublewrite area.
    pub pages_repaired: u64,
    /// Bytes of log that were read: what else lies behind the checkpoint is read where a thread
    /// needs it.
    pub read_bytes: u64,
    /// Pages that the log may be ahead of: brought up to date when they are first used, or by and
    /// by.
    pub pending_pages: u64,
    /// Committed transactions whose cleaning up was completed.
    pub completed: u64,
    /// Transactions rolled back.
    pub undone: u64,
    /// Prepared transactions, kept until they are decided.
    pub prepared: u64,
    /// Time for reading the log.
    pub scan_micros: u64,
    /// Time for the whole opening.
    pub total_micros: u64,
}

impl RecoveryReport {
    /// Bytes of log behind the checkpoint.
    #[must_use]
    pub fn redo_bytes(&self) -> u64 {
        self.to.bytes_since(self.from)
    }
}
