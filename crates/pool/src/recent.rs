//! With which LSN pages were written lately. A drive may say that it has written a page, and not
//! have done it; the thread that reads that page again gets an older state, whole and sealed, and
//! nothing in it says so. What this remembers does (`docs/decisions/whose-page.md`).
//!
//! A word for each page number modulo the table's size: the page's higher bits and the LSN. What is
//! overwritten by another page is not looked for any more: that is the bound on memory.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::{Lsn, PageNo};

/// Bits of a word for the LSN: 256 TiB of log. What lies behind is not remembered.
const LSN_BITS: u32 = 48;
/// The least number of words leaves so many bits of a page number for each.
const WORDS_MIN: u32 = 1 << (32 - (64 - LSN_BITS));
/// 8 MiB of them.
const WORDS_MAX: u32 = 1 << 20;

/// The LSNs with which pages were written lately.
pub(crate) struct Recent {
    count: u32,
    /// Made with the first page that is written.
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Recent {
    /// For a pool of so many frames: about as many pages as it holds are remembered.
    pub(crate) fn new(frames: u32) -> Self {
        let count = frames.clamp(WORDS_MIN, WORDS_MAX).next_power_of_two();
        Recent { count, words: OnceLock::new() }
    }

    /// The page's word, and what stands in it besides the LSN.
    fn place(&self, page: PageNo) -> (usize, u64) {
        ((page.0 & (self.count - 1)) as usize, u64::from(page.0 / self.count) << LSN_BITS)
    }

    /// A page was written, durably. The page is in memory, and is written by one thread at a time.
    pub(crate) fn note(&self, page: PageNo, lsn: Lsn) {
        let (at, tag) = self.place(page);
        let known = if lsn.0 >> LSN_BITS == 0 { tag | lsn.0 } else { 0 };
        let words = self.words.get_or_init(|| (0..self.count).map(|_| AtomicU64::new(0)).collect());
        words[at].store(known, Relaxed);
    }

    /// With which LSN the page was written last, if that is remembered.
    pub(crate) fn find(&self, page: PageNo) -> Option<Lsn> {
        let (at, tag) = self.place(page);
        let known = self.words.get()?[at].load(Relaxed);
        let lsn = known & ((1 << LSN_BITS) - 1);
        (known - lsn == tag && lsn != 0).then_some(Lsn(lsn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_not_taken_for_another() {
        for frames in [16, 100_000, u32::MAX] {
            let recent = Recent::new(frames);
            let count = recent.count;
            assert_eq!(recent.find(PageNo(0)), None);
            recent.note(PageNo(7), Lsn(500));
            recent.note(PageNo(8), Lsn(600));
            assert_eq!(recent.find(PageNo(7)), Some(Lsn(500)));
            assert_eq!(recent.find(PageNo(7 + count)), None);
            let last = PageNo(7 | !(count - 1));
            recent.note(last, Lsn((1 << 48) - 1));
            assert_eq!(recent.find(last), Some(Lsn((1 << 48) - 1)));
            assert_eq!(recent.find(PageNo(7)), None, "given up for the other");
            recent.note(last, Lsn(1 << 48));
            assert_eq!(recent.find(last), None, "an LSN that is too large is not remembered");
            assert_eq!(recent.find(PageNo(8)), Some(Lsn(600)));
        }
    }
}
