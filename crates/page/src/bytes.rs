//! How the bytes of a page are read: one trait for memory that holds still and for memory that does
//! not.
use std::cmp::Ordering;

/// The bytes of one page, read by offset. Every function is total: what lies outside the page reads
/// as zero or is cut off, because an optimistic reader may follow an offset that was half written
/// (PAGE-5).
pub trait Bytes: Copy {
    /// The page's size in bytes.
    fn size(self) -> usize;
    /// The byte at `off`, or 0.
    fn u8_at(self, off: usize) -> u8;
    /// The little-endian number at `off` (any alignment), or 0.
    fn u16_at(self, off: usize) -> u16;
    /// The little-endian number at `off` (any alignment), or 0.
    fn u32_at(self, off: usize) -> u32;
    /// The little-endian number at `off` (any alignment), or 0.
    fn u64_at(self, off: usize) -> u64;
    /// Copies the bytes from `off` on into all of `out`; bytes outside the page leave `out` zero.
    fn copy_to(self, off: usize, out: &mut [u8]);
    /// Appends the `len` bytes from `off` on, cut off at the end of the page.
    fn append_to(self, off: usize, len: usize, out: &mut Vec<u8>);
    /// Orders the `len` bytes from `off` on (cut off at the end of the page) against `other`, as
    /// slices are ordered.
    fn compare(self, off: usize, len: usize, other: &[u8]) -> Ordering;
}

/// The part of `off..off + len` that lies inside `size` bytes.
#[inline]
pub(crate) fn clamp(off: usize, len: usize, size: usize) -> (usize, usize) {
    let off = off.min(size);
    (off, len.min(size - off))
}

/// The part of a slice that lies inside it.
#[inline]
pub(crate) fn cut(bytes: &[u8], off: usize, len: usize) -> &[u8] {
    let (off, len) = clamp(off, len, bytes.len());
    &bytes[off..off + len]
}

macro_rules! number_at {
    ($name:ident, $number:ty) => {
        #[inline]
        fn $name(self, off: usize) -> $number {
            match self.get(off..).and_then(|rest| rest.first_chunk()) {
                Some(chunk) => <$number>::from_le_bytes(*chunk),
                None => 0,
            }
        }
    };
}

impl Bytes for &[u8] {
    #[inline]
    fn size(self) -> usize {
        self.len()
    }
    number_at!(u8_at, u8);
    number_at!(u16_at, u16);
    number_at!(u32_at, u32);
    number_at!(u64_at, u64);

    #[inline]
    fn copy_to(self, off: usize, out: &mut [u8]) {
        let from = cut(self, off, out.len());
        let (have, missing) = out.split_at_mut(from.len());
        have.copy_from_slice(from);
        missing.fill(0);
    }

    #[inline]
    fn append_to(self, off: usize, len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(cut(self, off, len));
    }

    #[inline]
    fn compare(self, off: usize, len: usize, other: &[u8]) -> Ordering {
        cut(self, off, len).cmp(other)
    }
}
