//! What a row is known by; a tree's name is a row too.
use crate::model::Digest;

/// A row's tree, by its own number, and its key.
pub(crate) type Key = (u8, Vec<u8>);

/// The tree of names: a row for each tree that there is, with the tree's own number.
pub(crate) const NAMES: u8 = u8::MAX;

/// The row of a name.
pub(crate) fn name_key(name: u8) -> Key {
    (NAMES, vec![name])
}

/// What the row of a name says.
pub(crate) fn name_row(tree: u8) -> Digest {
    (u32::from(tree), 0)
}

pub(super) fn tree_of(row: Digest) -> u8 {
    row.0 as u8
}
