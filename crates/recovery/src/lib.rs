//! From crash to open: the log's end is read, and of the rest what was written down of it, into a
//! chain of changes for each page, made when the page is read in; unfinished transactions known
//! again, rolled back once the database is open. A crash during recovery is just another crash.
#![forbid(unsafe_code)]
mod analysis;
mod chains;
mod collect;
mod contents;
mod indexer;
mod outcome;
mod progress;
mod rebuild;
mod redo;
mod roll;
mod stretches;
mod undo;
mod unreadable;
mod windows;

pub use analysis::{Analysis, OpenTxn};
pub use collect::{Collected, Read, collect, collect_to_damage};
pub use contents::{Changed, Open, Stretch, followed};
pub use indexer::Indexer;
pub use outcome::{LogFound, Outcome, Refusal, judge};
pub use progress::{Phase, Progress};
pub use rebuild::rebuild;
pub use redo::{Left, set_pending};
pub use undo::recovered;
pub use windows::{Window, Windows};
