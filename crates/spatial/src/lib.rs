//! Spatial indexes over an ordered tree: a rectangle is kept under cells of a grid, a window reads
//! ranges of cells. Nothing here reads or writes a tree.
#![forbid(unsafe_code)]
mod cell;
mod mbr;
mod plan;
#[cfg(test)]
mod tests;

pub use cell::KEY_BYTES;
pub use mbr::{Mbr, Relation};
pub use plan::{Plan, entries, estimated};
