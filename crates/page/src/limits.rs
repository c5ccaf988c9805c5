//! How large keys and values may be, so that every split succeeds (PAGE-7).
use crate::header::HEADER_BYTES;
use crate::node::{SLOT_BYTES, STAMP_BYTES};

/// Bytes behind the header.
pub(crate) const fn usable(page_size: usize) -> usize {
    page_size - HEADER_BYTES
}

/// The most bytes that one entry may take in a page of this size, its slot and stamp included: two
/// always fit, which is what the proof in `split` needs.
#[must_use]
pub const fn max_entry(page_size: usize) -> usize {
    usable(page_size) / 2
}

/// The longest key, in bytes, of a database with this page size.
#[must_use]
pub const fn max_key_len(page_size: usize) -> usize {
    if page_size < 8192 { 1200 } else { 3072 }
}

/// What a row grows by, at most, when an older version of it moves to an archive's tree
/// (`weir-txn`): tree, length and snapshot around its key, marks and writer in front of its value.
const ARCHIVED_BYTES: usize = 32;

/// The longest value, in bytes, that is kept in its leaf under a key of this length: two such
/// entries fit in a page (`max_entry`), whatever the keys and values of others. 0 when the key
/// leaves nothing.
#[must_use]
pub const fn max_inline_value(page_size: usize, key_len: usize) -> usize {
    (max_entry(page_size) - SLOT_BYTES - STAMP_BYTES - ARCHIVED_BYTES).saturating_sub(key_len)
}

// The value's length has 14 bits in a slot.
const _: () = assert!(max_inline_value(16384, 0) < 1 << 14);
// Under any key there is room for the head of a chain, and then some.
const _: () = assert!(max_inline_value(4096, max_key_len(4096)) >= 512);
const _: () = assert!(max_inline_value(8192, max_key_len(8192)) >= 512);
const _: () = assert!(max_inline_value(16384, max_key_len(16384)) >= 512);
