//! How far recovery has come.

/// How far recovery has come, for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it does now.
    pub phase: Phase,
    /// Done in this phase: bytes of log, or transactions.
    pub done: u64,
    /// Of so many; 0 while unknown.
    pub of: u64,
}

/// A phase of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the log; bytes.
    Scan,
    /// Bringing pages forward before the database is open, where the log is larger than the memory
    /// for it; bytes of log.
    Redo,
    /// Finding out what transactions without an end have changed; transactions.
    Undo,
}
