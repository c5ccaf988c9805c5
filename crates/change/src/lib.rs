//! The only writer of page bytes: the vocabulary of redo, how it reads as bytes, and what each
//! operation does to its page, in forward work and in recovery alike.
#![forbid(unsafe_code)]
mod apply;
mod code;
mod flips;
mod group;
mod one_page;
mod op;
mod patches;

pub use apply::{ApplyError, apply, apply_at, map_bit};
pub use code::{BODY_BYTES_MIN, DecodeError, Ops, decode};
pub use flips::{Difference, Flips, FlipsBuf};
pub use group::{Group, HeldPage};
pub use one_page::{GroupError, apply_to_page};
pub use op::{Before, Header, Op, Purge, Stored};
pub use patches::{Patches, Shape};
