//! Memory aligned for direct I/O. One of the few files with `unsafe`.
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::lock::Mutex;
use crate::mapping::Mapping;
use crate::rank;

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

/// Buffers of at least so many bytes are mapped by themselves, and go to the spare ones when they
/// are dropped, and come from there.
///
/// An allocator that gets such blocks and gives them back a hundred times a second, from several
/// threads, with small ones between, holds several times what is in use: with a pool of 72 MiB a
/// process that loaded rows had 177 MiB, of which 50 were free blocks between small ones in the
/// arenas of three threads; so mapped it has 128.
const LARGE_BYTES: usize = 64 << 10;
/// Bytes that the spare buffers have at most, in all.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// Memory of buffers that are at rest.
static SPARE: Mutex<rank::SpareBuffers, Vec<Memory>> = Mutex::new(Vec::new());

/// What a buffer owns; the copy that is given back is the last that is used.
#[derive(Clone, Copy)]
struct Memory {
    start: NonNull<u8>,
    /// Of [`LARGE_BYTES`] or more: a mapping; else of the allocator.
    layout: Layout,
}

// SAFETY: it is owned by one buffer or by the list, and any thread may free it.
unsafe impl Send for Memory {}

impl Memory {
    fn zeroed(len: usize) -> Memory {
        let layout = Layout::from_size_align(len.max(ALIGN), ALIGN);
        let layout = layout.expect("a buffer fits the address space");
        if len < LARGE_BYTES {
            // SAFETY: the layout's size is at least ALIGN, so never zero.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) });
            return Memory { start: start.unwrap_or_else(|| handle_alloc_error(layout)), layout };
        }
        if let Some(spare) = Self::take(len) {
            // SAFETY: it has at least `len` bytes, and no other owner.
            unsafe { spare.start.write_bytes(0, len) };
            return spare;
        }
        let mapping = Mapping::zeroed(len, false).ok().map(Mapping::into_start);
        let start = mapping.and_then(NonNull::new);
        Memory { start: start.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    /// Frees those that are at rest.
    fn free_spare() {
        let spare = std::mem::take(&mut *SPARE.lock());
        spare.into_iter().for_each(Memory::free);
    }

    /// The smallest that has `len` bytes, and not more than twice as many.
    fn take(len: usize) -> Option<Memory> {
        let mut spare = SPARE.lock();
        let fits = |memory: &Memory| (len..=2 * len).contains(&memory.layout.size());
        let sizes = spare.iter().enumerate().filter(|(_, memory)| fits(memory));
        let (at, _) = sizes.min_by_key(|(_, memory)| memory.layout.size())?;
        Some(spare.swap_remove(at))
    }

    /// Keeps it for a buffer to come, the larger ones before smaller ones; frees what is too much.
    fn give_back(self) {
        if !(LARGE_BYTES..=SPARE_BYTES_MAX / 2).contains(&self.layout.size()) {
            return self.free();
        }
        let mut too_much = Vec::new();
        {
            let mut spare = SPARE.lock();
            spare.push(self);
            let mut held: usize = spare.iter().map(|memory| memory.layout.size()).sum();
            while held > SPARE_BYTES_MAX
                && let Some(at) = (0..spare.len()).min_by_key(|at| spare[*at].layout.size())
            {
                let smallest = spare.swap_remove(at);
                held -= smallest.layout.size();
                too_much.push(smallest);
            }
        }
        // The kernel takes its time for it, which no other thread waits for.
        too_much.into_iter().for_each(Memory::free);
    }

    fn free(self) {
        let (start, len) = (self.start.as_ptr(), self.layout.size());
        if len < LARGE_BYTES {
            // SAFETY: allocated in `zeroed` with the same layout; owned, so freed once.
            unsafe { dealloc(start, self.layout) }
        } else {
            // SAFETY: from `into_start` in `zeroed`, of as many bytes; owned, so unmapped once.
            drop(unsafe { Mapping::from_start(start, len) });
        }
    }
}

/// A fixed-size, zero-filled byte buffer whose address is a multiple of [`ALIGN`].
pub struct AlignedBuf {
    memory: Memory,
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
        AlignedBuf { memory: Memory::zeroed(len), len }
    }

    /// Gives what dropped buffers have left for others back to the system.
    pub(crate) fn free_spare() {
        Memory::free_spare();
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        self.memory.give_back();
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: its memory is valid and initialised for `len` bytes for as long as self lives.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_and_zeroed() {
        // An interpreter takes a second for a megabyte.
        let large = if cfg!(miri) { 8192 } else { 1 << 20 };
        for len in [0, 1, 4096, 5000, large] {
            let buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.as_ptr() as usize % ALIGN, 0);
            assert_eq!(buf.len(), len);
            assert!(buf.iter().all(|&b| b == 0));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many bytes for an interpreter")]
    fn memory_that_was_used_is_zeroed_again_and_the_spare_is_bounded() {
        for len in [LARGE_BYTES, LARGE_BYTES + 1, 100_000, 1 << 20, SPARE_BYTES_MAX] {
            for _ in 0..3 {
                let mut bufs: Vec<AlignedBuf> = (0..12).map(|_| AlignedBuf::zeroed(len)).collect();
                for buf in &mut bufs {
                    assert!(buf.iter().all(|&b| b == 0), "{len}");
                    buf.fill(7);
                }
                let starts: std::collections::BTreeSet<_> =
                    bufs.iter().map(|buf| buf.as_ptr() as usize).collect();
                assert_eq!(starts.len(), 12, "no two have the same memory");
            }
            let held: usize = SPARE.lock().iter().map(|memory| memory.layout.size()).sum();
            assert!(held <= SPARE_BYTES_MAX, "{held}");
        }
    }

    #[test]
    fn aligned_up_and_down() {
        assert_eq!((align_down(4097), align_up(4097), align_up(4096)), (4096, 8192, 4096));
    }
}
