//! The page table: one word and one eviction mark a page, indexed by page number, in address space
//! that the kernel fills when it is touched. One of the few files with `unsafe`.
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use weir_base::Mapping;

use crate::latch::Latch;

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
        Some(unsafe { &*self.words.start().cast::<Latch>().add(page as usize) })
    }

    /// When the page was last evicted, in eighths of a pool's worth of evictions (wrapping; 0
    /// never).
    pub(crate) fn mark(&self, page: u32) -> Option<&AtomicU8> {
        if page >= self.pages_max {
            return None;
        }
        // SAFETY: as in `get`, a byte a page.
        Some(unsafe { &*self.marks.start().cast::<AtomicU8>().add(page as usize) })
    }

    pub(crate) fn set_mark(&self, page: u32, value: u8) {
        if let Some(mark) = self.mark(page) {
            mark.store(value, Relaxed);
        }
    }
}
