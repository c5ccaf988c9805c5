//! Saves what can still be read of a database that cannot be opened: rows tree by tree into a new
//! database, and a report of what is missing. The README beside this crate says how it is decided
//! which rows those are.
#![forbid(unsafe_code)]
mod apply_log;
mod bits;
mod chain;
mod error;
mod harvest;
mod log;
mod names;
mod pages;
mod report;
mod run;
mod save;
mod source;
mod survey;
mod sweep;
mod undo;
mod walk;

pub use error::SalvageError;
pub use report::{DamagedPage, MissingRange, Phase, Report, SavedTree};
pub use run::{Options, salvage};
