//! The page table: one word and one eviction mark a page, indexed by page number, in chunks that
//! are mapped as the data file grows. One of the few files with `unsafe`.
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use weir_base::Mapping;
use weir_base::lock::Mutex;
use weir_base::rank;

use crate::latch::Latch;

/// Pages of a chunk: their words and marks take 9 MiB of address space, which the kernel fills
/// where it is touched, for a data file of 8 GiB.
const CHUNK_BITS: u32 = 20;
const CHUNK_PAGES: usize = 1 << CHUNK_BITS;
/// The words, and the marks behind them.
const CHUNK_BYTES: usize = CHUNK_PAGES * (size_of::<Latch>() + 1);

/// A word for each page that the data file has.
pub(crate) struct PageTable {
    /// Where a chunk begins; null for those that are not there.
    chunks: Box<[AtomicPtr<u8>]>,
    /// Held for as long as the table lives.
    mapped: Mutex<rank::PageTableChunks, Vec<Mapping>>,
    pages_max: u32,
}

impl PageTable {
    /// Room for no page, and later for as many as `pages_max`.
    pub(crate) fn new(pages_max: u32) -> Self {
        let count = (pages_max as usize).div_ceil(CHUNK_PAGES);
        PageTable {
            chunks: (0..count).map(|_| AtomicPtr::default()).collect(),
            mapped: Mutex::default(),
            pages_max,
        }
    }

    /// Makes room for the pages before `pages`, as far as there may be any.
    ///
    /// # Errors
    /// What the kernel says: usually that there is no room in the address space. What was there
    /// stays.
    pub(crate) fn reach(&self, pages: u32) -> io::Result<()> {
        let count = (pages.min(self.pages_max) as usize).div_ceil(CHUNK_PAGES);
        // Those before the last one that is there are, too.
        if count == 0 || !self.chunks[count - 1].load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let mut mapped = self.mapped.lock();
        while mapped.len() < count {
            let chunk = Mapping::zeroed(CHUNK_BYTES, false).map_err(|e| {
                let text = format!("{CHUNK_BYTES} bytes of address space cannot be had: {e}");
                io::Error::new(e.kind(), text)
            })?;
            self.chunks[mapped.len()].store(chunk.start(), Ordering::Release);
            mapped.push(chunk);
        }
        Ok(())
    }

    /// The beginning of the chunk that a page's word is in.
    #[inline]
    fn chunk(&self, page: u32) -> Option<*mut u8> {
        if page >= self.pages_max {
            return None;
        }
        let chunk = self.chunks.get((page >> CHUNK_BITS) as usize)?.load(Ordering::Acquire);
        (!chunk.is_null()).then_some(chunk)
    }

    /// A page's word; none for a page that there is no room for.
    #[inline]
    pub(crate) fn get(&self, page: u32) -> Option<&Latch> {
        let chunk = self.chunk(page)?;
        // SAFETY: inside the mapping (sized for the words of CHUNK_PAGES pages), which lives as
        // long as self; aligned (mmap gives page-aligned memory), zero is a valid word, and only
        // ever accessed as an atomic.
        Some(unsafe { &*chunk.cast::<Latch>().add(page as usize % CHUNK_PAGES) })
    }

    /// When the page was last evicted, in eighths of a pool's worth of evictions (wrapping; 0
    /// never).
    pub(crate) fn mark(&self, page: u32) -> Option<&AtomicU8> {
        let chunk = self.chunk(page)?;
        let at = CHUNK_PAGES * size_of::<Latch>() + page as usize % CHUNK_PAGES;
        // SAFETY: as in `get`, a byte a page behind the words.
        Some(unsafe { &*chunk.add(at).cast::<AtomicU8>() })
    }

    pub(crate) fn set_mark(&self, page: u32, value: u8) {
        if let Some(mark) = self.mark(page) {
            mark.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_chunks_and_what_was_there_stays() {
        let last = 3 * CHUNK_PAGES as u32 + 7;
        let table = PageTable::new(last + 1);
        assert!(table.get(0).is_none() && table.mark(0).is_none());
        table.reach(0).expect("nothing to do");
        assert!(table.get(0).is_none());
        table.reach(1).expect("memory");
        let end = CHUNK_PAGES as u32;
        assert!(table.get(end - 1).is_some() && table.get(end).is_none());
        table.set_mark(end - 1, 9);
        table.set_mark(end, 9);
        let word = table.get(0).expect("a word");
        assert!(word.try_exclusive(word.load()));
        // Beyond what there may be: as far as there may.
        table.reach(u32::MAX).expect("memory");
        assert!(word.load().is_exclusive() && table.get(0).expect("a word").load().is_exclusive());
        let mark = |page| table.mark(page).map(|mark| mark.load(Ordering::Relaxed));
        assert_eq!((mark(end - 1), mark(end)), (Some(9), Some(0)));
        assert!(table.get(last).is_some() && table.get(last + 1).is_none());
        assert!(table.get(u32::MAX).is_none());
        // No word is another's: the last of a chunk lies before its marks.
        for page in [end - 1, end, 2 * end - 1, last] {
            let word = table.get(page).expect("a word");
            assert!(word.try_exclusive(word.load()), "{page}");
        }
        assert_eq!((mark(0), mark(end - 1)), (Some(0), Some(9)));
    }
}
