//! The page table: one word and one eviction mark a page, indexed by page number, in address space
//! that the kernel fills when it is touched. One of the few files with `unsafe`.
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::latch::Latch;

/// Zero-filled memory from the kernel, backed by real pages only where touched.
pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
}

// SAFETY: plain memory; what is put into it (atomics, frames under latches) governs its sharing.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes; `huge` asks for 2 MiB pages, which spare most of the TLB misses of random
    /// page access.
    pub(crate) fn zeroed(len: usize, huge: bool) -> io::Result<Self> {
        let len = len.max(4096);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if huge {
            // SAFETY: the range was just mapped. Advice only: a refusal costs speed, nothing else.
            unsafe { libc::madvise(start, len, libc::MADV_HUGEPAGE) };
        }
        Ok(Mapping { start: start.cast(), len })
    }

    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "POOL-6: inside the mapping");
        // SAFETY: inside the mapping, checked above.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `zeroed`, unmapped once; no reference outlives the owner.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// A word for each page that the database may ever have.
pub(crate) struct PageTable {
    words: Mapping,
    marks: Mapping,
    pages_max: u32,
}

impl PageTable {
    pub(crate) fn new(pages_max: u32) -> io::Result<Self> {
        Ok(PageTable {
            words: Mapping::zeroed(pages_max as usize * size_of::<Latch>(), false)?,
            marks: Mapping::zeroed(pages_max as usize, false)?,
            pages_max,
        })
    }

    #[inline]
    pub(crate) fn get(&self, page: u32) -> Option<&Latch> {
        if page >= self.pages_max {
            return None;
        }
        // SAFETY: inside the mapping (sized for pages_max words), aligned (mmap gives page-aligned
        // memory), zero is a valid word, and only ever accessed as an atomic.
        Some(unsafe { &*self.words.start.cast::<Latch>().add(page as usize) })
    }

    /// When the page was last evicted, in eighths of a pool's worth of evictions (wrapping; 0
    /// never).
    pub(crate) fn mark(&self, page: u32) -> Option<&AtomicU8> {
        if page >= self.pages_max {
            return None;
        }
        // SAFETY: as in `get`, a byte a page.
        Some(unsafe { &*self.marks.start.cast::<AtomicU8>().add(page as usize) })
    }

    pub(crate) fn set_mark(&self, page: u32, value: u8) {
        if let Some(mark) = self.mark(page) {
            mark.store(value, Relaxed);
        }
    }
}
