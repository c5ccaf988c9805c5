//! A page that is not what was written, put right while the database is open, and what is known of
//! such pages.
//!
//! What puts it right must be the state that was written last, not an older one (POOL-15): the page
//! in memory is; a copy in the doublewrite area, and what the log makes from nothing, are if their
//! LSN is the one with which the page was written last, as `recent.rs` remembers it. A page of
//! which that is not remembered is not mended: nothing would say what it lacks.
use weir_base::{Notice, PageNo};

use crate::damages::{Mended, PageFinding, REPORTED_LOST_MAX, RebuildPage};
use crate::error::PoolError;
use crate::pool::Pool;

impl Pool {
    /// Has damaged pages made from the log by `rebuild`, too. Once.
    pub fn rebuild_by(&self, rebuild: Box<dyn RebuildPage>) {
        let _ = self.damages.rebuild.set(rebuild);
    }

    /// The pages that were found damaged since the database was opened: the last few, newest first.
    #[must_use]
    pub fn findings(&self) -> Vec<PageFinding> {
        self.damages.known.lock().findings.iter().cloned().collect()
    }

    /// The pages that were mended in memory, and are still damaged on disk.
    #[must_use]
    pub fn unwritten(&self) -> Vec<PageNo> {
        self.damages.known.lock().unwritten.iter().copied().collect()
    }

    /// A page that may have been mended in memory is right on disk. Returns whether it was one.
    pub(crate) fn is_written(&self, page: PageNo) -> bool {
        self.damages.known.lock().unwritten.remove(&page)
    }

    fn finding(&self, page: PageNo, found: &PoolError, mended: Mended) -> PageFinding {
        let (file, offset) = self.store.place(page);
        PageFinding { page, file, offset, text: found.to_string(), mended }
    }

    /// Counts that a page could not be had because of what is on disk, and tells of it once.
    pub(crate) fn note_lost(&self, page: PageNo, cause: &PoolError) {
        use PoolError::{Behind, Damaged, Device};
        if !matches!(cause, Damaged { .. } | Behind { .. } | Device { .. }) {
            return;
        }
        self.stats.lost.add(1);
        let mut known = self.damages.known.lock();
        if known.lost.len() < REPORTED_LOST_MAX && known.lost.insert(page) {
            known.note(self.finding(page, cause, Mended::No));
            // Before another thread that meets the page goes on.
            self.health().notify(Notice::PageLost(&cause.to_string()));
        }
    }

    /// Counts that a page was put right, and tells of it.
    pub(crate) fn note_mended(&self, page: PageNo, found: &PoolError, mended: Mended) {
        match mended {
            Mended::No => return,
            Mended::FromMemory => self.scrub_stats.mended_memory.add(1),
            Mended::FromCopy => self.scrub_stats.mended_copy.add(1),
            Mended::FromLog => self.scrub_stats.mended_log.add(1),
        }
        let mut known = self.damages.known.lock();
        known.note(self.finding(page, found, mended));
        if mended != Mended::FromMemory {
            known.unwritten.insert(page);
        }
        self.health().notify(Notice::PageRepaired(&format!("{found}; it was {mended}")));
    }

    /// Puts a page right in `bytes` that was read and is not what was written. Its latch is held.
    ///
    /// # Errors
    /// `found`, when nothing has what the page held.
    pub(crate) fn mend(
        &self,
        page: PageNo,
        bytes: &mut [u8],
        found: PoolError,
    ) -> Result<(), PoolError> {
        if !matches!(found, PoolError::Damaged { .. } | PoolError::Device { .. }) {
            return Err(found);
        }
        let Some(newest) = self.recent.find(page) else { return Err(found) };
        // What was tried in vain is not tried again: it may take long.
        if self.damages.known.lock().lost.contains(&page) {
            return Err(found);
        }
        let is_it = |bytes: &[u8]| {
            weir_page::lsn(bytes) == newest
                && page_number(bytes) == page
                && weir_page::check(bytes).is_ok()
        };
        let mended = if self.store.copy_of(page, newest, bytes) && is_it(bytes) {
            Mended::FromCopy
        } else if self.damages.rebuild.get().is_some_and(|it| it.rebuild(page, bytes))
            && is_it(bytes)
        {
            Mended::FromLog
        } else {
            return Err(found);
        };
        self.note_mended(page, &found, mended);
        Ok(())
    }
}

/// The page that the bytes say they are.
pub(crate) fn page_number(bytes: &[u8]) -> PageNo {
    weir_page::Node::new(bytes).page_no()
}
