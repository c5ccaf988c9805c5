//! Memory aligned for direct I/O. One of the few files with `unsafe`.
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};

/// Offsets, lengths and addresses of all I/O are multiples of this many bytes.
pub const ALIGN: usize = 4096;

/// The largest multiple of [`ALIGN`] that is not above `n`.
#[must_use]
pub const fn align_down(n: u64) -> u64 {
    n & !(ALIGN as u64 - 1)
}

/// The smallest multiple of [`ALIGN`] that is not below `n`.
#[must_use]
pub const fn align_up(n: u64) -> u64 {
    align_down(n + ALIGN as u64 - 1)
}

/// A fixed-size, zero-filled byte buffer whose address is a multiple of [`ALIGN`].
pub struct AlignedBuf {
    start: std::ptr::NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone; sharing follows Rust's borrow rules through Deref.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; `&AlignedBuf` gives only `&[u8]`.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed buffer of `len` bytes.
    ///
    /// # Panics
    /// When `len` is larger than an address space can hold.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is at least ALIGN, so never zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = std::ptr::NonNull::new(start) else { handle_alloc_error(layout) };
        AlignedBuf { start, len }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len.max(ALIGN), ALIGN).expect("a buffer fits the address space")
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with the same layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid and initialised for `len` bytes for as long as self lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_and_zeroed() {
        for len in [0, 1, 4096, 5000, 1 << 20] {
            let buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.as_ptr() as usize % ALIGN, 0);
            assert_eq!(buf.len(), len);
            assert!(buf.iter().all(|&b| b == 0));
        }
        assert_eq!((align_down(4097), align_up(4097), align_up(4096)), (4096, 8192, 4096));
    }
}
