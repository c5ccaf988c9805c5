//! From crash to open: the log's end is read, and of the rest what was written down of it, into a
//! chain of changes for each page, made when the page is read in; unfinished transactions known
//! again, taken back once the database is open. A crash during recovery is just another crash.
#![forbid(unsafe_code)]
mod analysis;
mod chains;
mod collect;
mod contents;
mod indexer;
mod outcome;
mod redo;
mod roll;
mod stretches;
mod undo;
mod windows;

pub use analysis::{Analysis, OpenTxn};
pub use collect::{Collected, Read, collect};
pub use contents::{Changed, Open, Stretch, followed};
pub use indexer::Indexer;
pub use outcome::{LogFound, Outcome, Refusal, judge};
pub use redo::{Left, owe};
pub use undo::unfinished;
pub use windows::{Window, Windows};

/// How far recovery has come, for whoever waits for it.
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
