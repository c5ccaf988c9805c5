//! Pending redo: after a crash a database is open before its pages have been brought up to date
//! (Graefe, Guy, Sauer, "Instant recovery with write-ahead logging", 2nd ed. 2016, single-page
//! redo). A page that the disk may have an old state of stays on the dirty list under the first
//! change that it may lack, so that the checkpoint cannot pass it, and gets its changes from the
//! thread that reads it in next: a session, the sweeper, or a thread that does nothing else.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use weir_base::{Lsn, PageNo};

use crate::error::PoolError;
use crate::pending_list::{List, PageRedo, PendingPage};
use crate::pool::Pool;

impl Pool {
    /// Says which pages the log may be ahead of, and since where: sorted by page, each once. Before
    /// anything else is done with the pool.
    ///
    /// # Errors
    /// Those of [`Pool::reach`]: the log may make pages that the data file does not have yet.
    pub fn set_pending(
        &self,
        pages: Vec<(PageNo, Lsn)>,
        redo: Box<dyn PageRedo>,
    ) -> Result<(), PoolError> {
        debug_assert!(pages.is_sorted_by(|a, b| a.0 < b.0), "sorted, each once");
        if let Some(&(last, _)) = pages.last() {
            self.reach(last.0.saturating_add(1))?;
        }
        if !self.is_looked_at() {
            for &(page, first) in &pages {
                self.dirty.add(page, first);
            }
        }
        let settled = pages.iter().map(|_| AtomicBool::new(false)).collect();
        self.pending.left.store(pages.len() as u64, Ordering::Release);
        *self.pending.list.write() =
            Some(Arc::new(List { pages, settled, next: AtomicUsize::new(0), redo }));
        Ok(())
    }

    /// Pages whose pending redo is still to be applied.
    #[must_use]
    pub fn pending_pages(&self) -> u64 {
        self.pending.left()
    }

    /// A step of applying the pending redo that no thread has asked for: the next `most` pages, in
    /// the order in which they lie on disk. Several threads may do so. Returns whether there is
    /// more to do; when there is not, what was kept of the log is forgotten.
    ///
    /// # Errors
    /// The first page's that could not be read or whose redo could not be applied. Where pages are
    /// only looked at there is nothing to do.
    pub fn apply_pending(&self, most: usize) -> Result<bool, PoolError> {
        if self.is_looked_at() {
            return Ok(false);
        }
        let Some(list) = self.pending.list.read().clone() else { return Ok(false) };
        if self.pending.left.load(Ordering::Acquire) == 0 {
            self.pending.list.write().take();
            return Ok(false);
        }
        if list.redo.read_ahead() {
            return Ok(true);
        }
        let from = list.next.fetch_add(most, Ordering::Relaxed);
        if from >= list.pages.len() {
            // Again from the start: pages that others had their hands on.
            list.next.store(0, Ordering::Relaxed);
            return Ok(true);
        }
        let to = (from + most).min(list.pages.len());
        let open = |index: &usize| !list.settled[*index].load(Ordering::Relaxed);
        let pages: Vec<PageNo> = (from..to).filter(open).map(|index| list.pages[index].0).collect();
        self.bring_in(&pages)?;
        Ok(true)
    }

    /// Applies the pending redo of those of the pages that have pending redo.
    pub(crate) fn apply_pending_of(&self, pages: &[(PageNo, Lsn)]) -> Result<(), PoolError> {
        if self.pending.left() == 0 {
            return Ok(());
        }
        let is_pending = |page: &PageNo| self.pending.find(*page).is_some();
        let pages: Vec<PageNo> = pages.iter().map(|listed| listed.0).filter(is_pending).collect();
        if self.pending.list.read().as_ref().is_some_and(|list| list.redo.reads()) {
            // Each is latched until it is up to date: one after the other, so that no thread waits
            // for all of them.
            return pages.iter().try_for_each(|&page| self.bring_in(&[page]));
        }
        self.bring_in(&pages)
    }

    /// Whether applying what no thread has asked for should begin now: others read much of the log
    /// for theirs.
    #[must_use]
    pub fn is_much_pending(&self) -> bool {
        self.pending.list.read().as_ref().is_none_or(|list| list.redo.is_read_much())
    }

    /// Makes the changes that a page in `frame`, just read, has pending. The page's latch is held.
    pub(crate) fn apply_pending_to(
        &self,
        pending: &PendingPage,
        frame: u32,
        bytes: &mut [u8],
    ) -> Result<(), PoolError> {
        let (page, listed) = pending.listed();
        let first = pending.list.redo.apply_pending(pending.index, page, bytes)?;
        self.install(page, frame);
        if self.is_looked_at() {
            // POOL-17: it stays pending, and the page clean.
            return Ok(());
        }
        self.frames.meta(frame).set_first_lsn(first);
        // What it is listed under holds the checkpoint until the other is there.
        if let Some(first) = first.filter(|&first| first != listed) {
            self.dirty.add(page, first);
        }
        if first != Some(listed) {
            self.dirty.remove(listed, |page, first| self.may_be_dirty_since(page, first));
        }
        if first.is_some() {
            self.note_gives_back(page, frame);
        }
        self.pending.settle(pending);
        Ok(())
    }
}
