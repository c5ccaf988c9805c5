//! The C interface: handles, codes, borrowed bytes. It only translates; `include/weir.h` is made of
//! it. What a pointer must be is said once, at `borrow`, and holds for all functions.
#![allow(non_camel_case_types)] // The names are C's.
#![allow(clippy::missing_safety_doc)] // Said once, in `borrow`.
mod backup;
mod batch;
mod borrow;
mod catalog;
mod compact;
mod copy;
mod cursor;
mod db;
mod endpoint;
mod export;
mod fulltext;
mod indexes;
mod keys;
mod notices;
mod outcome;
mod prepared;
mod rewrite;
mod scan;
mod spatial;
mod stats;
mod table;
mod tree;
mod txn;
mod waits;

pub use backup::*;
pub use batch::*;
pub use borrow::{weir_bytes, weir_visit};
pub use catalog::*;
pub use compact::*;
pub use copy::*;
pub use cursor::*;
pub use db::*;
pub use endpoint::*;
pub use export::*;
pub use fulltext::*;
pub use indexes::*;
pub use keys::weir_key_provider;
pub use notices::*;
pub use outcome::{weir_code, weir_message};
pub use prepared::*;
pub use rewrite::*;
pub use scan::*;
pub use spatial::*;
pub use stats::*;
pub use table::*;
pub use tree::*;
pub use txn::*;
pub use waits::*;
