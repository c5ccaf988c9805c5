//! What is known of the blocks that the file system has given for the pages: by granules, which are
//! given back and asked for again as a whole. And which granules are given back: a decision, that
//! of [`Blocks::look`].
use std::ops::Range;

use crate::bitmap::Bitmap;

/// How pages that are not in use give their blocks back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoleLimits {
    /// Bytes of a granule: smaller runs of free pages keep their blocks. At least a page, at most
    /// 64 pages.
    pub granule_bytes: u64,
    /// An eighth of the bytes in use, within these bounds, is kept for pages to come, and that much
    /// is asked for again at a time: as much as the file grows by. What is given back and soon
    /// needed again would cost a sync each time.
    pub kept_bytes: Range<u64>,
    /// The most bytes that one step gives back.
    pub step_bytes: u64,
    /// Whether room is asked for before a page is handed out. Always, but for a planted bug.
    pub reserves: bool,
}

impl Default for HoleLimits {
    fn default() -> Self {
        HoleLimits {
            granule_bytes: 64 << 10,
            kept_bytes: 1 << 20..64 << 20,
            step_bytes: 4 << 20,
            reserves: true,
        }
    }
}

/// The share of the bytes in use that is kept: an eighth.
const KEPT_SHARE: u64 = 8;

impl HoleLimits {
    /// Bytes of free pages that keep their blocks.
    fn kept(&self, used_bytes: u64) -> u64 {
        (used_bytes / KEPT_SHARE).clamp(self.kept_bytes.start, self.kept_bytes.end)
    }
}

/// One bit a granule.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn is_set(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn set(&mut self, at: u32) {
        let word = at as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (at % 64);
    }

    fn clear(&mut self, at: u32) {
        if let Some(word) = self.0.get_mut(at as usize / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    /// The first that is set at or after `from`.
    fn next(&self, from: u32) -> Option<u32> {
        let start = from as usize / 64;
        for (word, bits) in self.0.iter().enumerate().skip(start) {
            let mask = if word == start { u64::MAX << (from % 64) } else { u64::MAX };
            if bits & mask != 0 {
                return Some((word * 64) as u32 + (bits & mask).trailing_zeros());
            }
        }
        None
    }
}

/// What is known of each granule.
pub(crate) struct Blocks {
    limits: HoleLimits,
    page_bytes: u64,
    /// Pages of a granule: a power of two.
    pages: u32,
    /// Granules of which some page may have no blocks: room is asked for before one is used.
    unsure: Bits,
    /// Granules that were given back and of which no page was used since.
    punched: Bits,
    /// Granules that are to be given back: not in use at the last look, nor since.
    quiet: Bits,
}

impl Blocks {
    pub(crate) fn new(limits: HoleLimits, page_size: usize) -> Self {
        let page_bytes = page_size as u64;
        let pages = (limits.granule_bytes / page_bytes).clamp(1, 64) as u32;
        let pages = if pages.is_power_of_two() { pages } else { pages.next_power_of_two() / 2 };
        let (unsure, punched, quiet) = (Bits::default(), Bits::default(), Bits::default());
        Blocks { limits, page_bytes, pages, unsure, punched, quiet }
    }

    /// Which granules are holes was known to the process that had the database open before: any
    /// of the `pages` pages that there are may lie in one.
    pub(crate) fn doubt(&mut self, pages: u32) {
        for granule in 0..pages.div_ceil(self.pages) {
            self.unsure.set(granule);
        }
    }

    /// Whether room must be asked for before the page is used.
    pub(crate) fn is_unsure(&self, page: u32) -> bool {
        self.limits.reserves && self.unsure.is_set(page / self.pages)
    }

    /// The first page behind the granule of this one.
    pub(crate) fn behind(&self, page: u32) -> u32 {
        (page / self.pages + 1).saturating_mul(self.pages)
    }

    /// The pages that room is asked for when `page` is about to be used and `used` are; the file
    /// has `pages`.
    pub(crate) fn wanted(&self, page: u32, used: u64, pages: u32) -> Range<u32> {
        let step = self.limits.kept(used * self.page_bytes) / self.page_bytes;
        let from = page / self.pages * self.pages;
        let until = u64::from(self.behind(page)).max(u64::from(from) + step);
        // As far as whole granules are known to be there afterwards.
        from..until.next_multiple_of(u64::from(self.pages)).min(u64::from(pages)) as u32
    }

    /// These pages, the granules of [`Blocks::wanted`], have blocks. Returns how many bytes of them
    /// had been given back.
    pub(crate) fn has_blocks(&mut self, pages: &Range<u32>) -> u64 {
        let mut granules = 0;
        for granule in pages.start / self.pages..pages.end.div_ceil(self.pages) {
            granules += u64::from(self.punched.is_set(granule));
            self.unsure.clear(granule);
            self.punched.clear(granule);
        }
        granules * u64::from(self.pages) * self.page_bytes
    }

    /// A page is used.
    pub(crate) fn touch(&mut self, page: u32) {
        let granule = page / self.pages;
        self.punched.clear(granule);
        self.quiet.clear(granule);
    }

    /// Looks at the granules of the pages from `pages.start` on, and notes those that are to be
    /// given back: all of whose pages are free, but for the lowest, which are used first and are
    /// `kept` until that is enough. Returns how many bytes are to be given back.
    pub(crate) fn look(&mut self, used: &Bitmap, pages: Range<u32>, kept: &mut u64) -> u64 {
        let enough = self.limits.kept(used.used() * self.page_bytes);
        let bytes = u64::from(self.pages) * self.page_bytes;
        let mut found = 0;
        for granule in pages.start.div_ceil(self.pages)..pages.end / self.pages {
            let is_free = used.is_free(granule * self.pages, self.pages);
            if !is_free || self.punched.is_set(granule) {
                continue;
            }
            if *kept < enough {
                *kept += bytes;
            } else {
                self.quiet.set(granule);
                found += bytes;
            }
        }
        found
    }

    /// The next pages, from `from` on, that are to be given back: at most a step's.
    pub(crate) fn next_quiet(&self, from: u32) -> Option<Range<u32>> {
        let first = self.quiet.next(from.div_ceil(self.pages))?;
        let most = (self.limits.step_bytes / self.page_bytes / u64::from(self.pages)).max(1) as u32;
        let mut end = first + 1;
        while end - first < most && self.quiet.is_set(end) {
            end += 1;
        }
        Some(first * self.pages..end * self.pages)
    }

    /// These pages were given back, or, where nothing `is_punched`, stay as they are.
    pub(crate) fn settle(&mut self, pages: &Range<u32>, is_punched: bool) {
        for granule in pages.start / self.pages..pages.end / self.pages {
            self.quiet.clear(granule);
            if is_punched {
                self.punched.set(granule);
                self.unsure.set(granule);
            }
        }
    }

    /// Nothing is to be given back any more.
    pub(crate) fn forget_quiet(&mut self) {
        self.quiet.0.clear();
    }
}
