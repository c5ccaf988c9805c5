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

/// The longest value, in bytes, that is kept in its leaf whatever its key; longer ones go to
/// overflow pages. At most a quarter of a page, so that a leaf holds a few rows and a change near
/// one does not rewrite another.
#[must_use]
pub const fn max_inline_value(page_size: usize) -> usize {
    let beside_longest_key =
        max_entry(page_size) - max_key_len(page_size) - SLOT_BYTES - STAMP_BYTES;
    let quarter = usable(page_size) / 4;
    if beside_longest_key < quarter { beside_longest_key } else { quarter }
}

// The value's length has 14 bits in a slot, and every entry must fit twice.
const _: () = assert!(max_inline_value(16384) < 1 << 14);
const _: () = assert!(max_inline_value(4096) >= 512);
