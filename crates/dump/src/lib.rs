//! What lies on disk, in words: pages, log, control file and catalog of a database, also of one
//! that is damaged and does not open. Reads only; recovers nothing, so what it prints is what is
//! there.
//!
//! Every function prints to `out` and returns whether all that it saw was sound.
#![forbid(unsafe_code)]
mod catalog;
mod control;
mod data_file;
mod files;
mod log;
mod ops;
mod page;
mod words;

pub use catalog::catalog;
pub use control::control;
pub use files::{Files, Sound};
pub use log::{LogQuery, log};
pub use page::{PageQuery, page, pages};
pub use words::show_bytes;
