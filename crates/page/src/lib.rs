//! The bytes of one page: header, slotted nodes of a tree with prefix compression, checks. One code
//! reads a page under a latch and optimistically while another thread writes it. Knows no I/O and
//! no locks. The README beside this crate gives the layout and the invariants.
#![deny(unsafe_code)]
mod bytes;
mod check;
mod edit;
mod header;
mod limits;
mod moved;
mod node;
#[allow(unsafe_code)]
mod raw;
mod rebuild;
mod split;

pub use bytes::Bytes;
pub use check::check;
pub use edit::{Full, NodeMut};
pub use header::{
    Damage, HEADER_BYTES, Kind, PAGE_SIZES, format, lsn, seal, set_data_len, set_link, set_lsn,
    tree_of, verify,
};
pub use limits::{max_entry, max_inline_value, max_key_len};
pub use moved::{LoadError, Moved, MovedRow, entries, fill_from};
pub use node::{Flags, Node, Stamp};
pub use raw::RawPage;
pub use split::{Incoming, Split, merged_fits, separator};
