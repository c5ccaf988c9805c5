//! From memory to disk: copy under the latch, wait for the log, write, and say so. The one place
//! where pages leave for the disk, and so the one where log-before-page is enforced.
use weir_base::{AlignedBuf, Lsn, PageNo};
use weir_redo::Durability;

use crate::access::Resident;
use crate::error::PoolError;
use crate::in_flight::Cause;
use crate::pool::Pool;
use crate::store::PageWrite;

/// The file of the doublewrite area for writers that come now and then: of three not the cleaner's,
/// which sessions wait for meanwhile.
pub(crate) const LANE: usize = 2;

/// What a call of [`Pool::write_back`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Pages written.
    pub pages: usize,
    /// Pages that were already clean, gone, or on their way.
    pub skipped: usize,
}

struct Copied {
    page: PageNo,
    frame: u32,
    lsn: Lsn,
}

impl Pool {
    /// As [`Pool::write_paced`], in groups of `group` with `pause` (of their number) before each,
    /// and before the doublewrite (of 0).
    ///
    /// # Errors
    /// As [`Pool::write_paced`].
    pub fn write_back(
        &self,
        shard: usize,
        pages: &[(PageNo, Lsn)],
        cause: Cause,
        group: usize,
        pause: &mut dyn FnMut(usize),
    ) -> Result<Written, PoolError> {
        let mut pace = |left: usize| {
            let pages = group.max(1).min(left);
            pause(pages);
            pages
        };
        self.write_paced(shard, pages, cause, &mut pace)
    }

    /// Writes the given dirty pages (of the dirty list: with the first-modification LSN they were
    /// listed under), at most a batch at a time, in groups as `pace` says (see
    /// [`PageStore::write_batch`](crate::PageStore::write_batch)). Durable when it returns.
    ///
    /// # Errors
    /// Device and log failures; the pool has halted then.
    pub fn write_paced(
        &self,
        shard: usize,
        pages: &[(PageNo, Lsn)],
        cause: Cause,
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Written, PoolError> {
        let mut written = Written::default();
        for batch in pages.chunks(self.store.batch_max()) {
            let done = self.write_batch(shard, batch, cause, pace);
            let done = done.inspect_err(|e| self.halt(&e.to_string()))?;
            written.pages += done.pages;
            written.skipped += done.skipped;
        }
        Ok(written)
    }

    fn write_batch(
        &self,
        shard: usize,
        pages: &[(PageNo, Lsn)],
        cause: Cause,
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Written, PoolError> {
        self.check_halted()?;
        self.apply_pending_of(pages)?;
        let size = self.page_size();
        let mut buf = AlignedBuf::zeroed(pages.len() * size);
        let mut copied: Vec<Copied> = Vec::with_capacity(pages.len());
        let id = self.in_flight.begin();
        for &(page, listed) in pages {
            let to = &mut buf[copied.len() * size..][..size];
            if let Some(copy) = self.copy_dirty(page, listed, id, to) {
                copied.push(copy);
            }
        }
        let result = self.write_copied(shard, &mut buf, &copied, pace);
        if result.is_ok() {
            for copy in &copied {
                // Before it may be evicted.
                self.recent.note(copy.page, copy.lsn);
                self.frames.meta(copy.frame).set_writing(false);
            }
            self.in_flight.end(id);
            self.stats.count_writes(cause, copied.len() as u64);
        }
        // On failure the batch stays registered: the checkpoint must never pass its pages. And they
        // stay marked as being written: evicted, they would be read back as they were (POOL-7).
        result.map(|()| Written { pages: copied.len(), skipped: pages.len() - copied.len() })
    }

    /// Takes a copy of a dirty page and makes it clean, with the batch holding the checkpoint for
    /// it.
    fn copy_dirty(&self, page: PageNo, listed: Lsn, id: u64, to: &mut [u8]) -> Option<Copied> {
        let held = match self.resident_exclusive(page) {
            Resident::HeldRank(held) => held,
            Resident::Absent if self.pending.find(page).is_none() => return None,
            // It has pending redo, and another thread is about to bring it up to date.
            Resident::Absent | Resident::Busy => {
                self.dirty.put_back(page, listed);
                return None;
            }
        };
        let meta = self.frames.meta(held.frame());
        let first = meta.first_lsn()?;
        if meta.writing() {
            if first == listed {
                self.dirty.put_back(page, listed);
            }
            return None;
        }
        to.copy_from_slice(held.bytes());
        meta.set_writing(true);
        self.in_flight.hold(id, first);
        meta.set_first_lsn(None);
        self.dirty.remove(first, |page, first| self.may_be_dirty_since(page, first));
        self.dirty.count_gives_back(meta.set_gives_back(0), 0);
        Some(Copied { page, frame: held.frame(), lsn: held.lsn() })
    }

    fn write_copied(
        &self,
        shard: usize,
        buf: &mut AlignedBuf,
        copied: &[Copied],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), PoolError> {
        let Some(newest) = copied.iter().map(|c| c.lsn).max() else { return Ok(()) };
        self.wait_for_log(newest)?;
        let size = self.page_size();
        for bytes in buf.chunks_exact_mut(size).take(copied.len()) {
            weir_page::seal(bytes, self.store.db());
        }
        let writes: Vec<PageWrite<'_>> = copied
            .iter()
            .zip(buf.chunks_exact(size))
            .map(|(c, bytes)| PageWrite { page: c.page, lsn: c.lsn, bytes })
            .collect();
        self.store.write_batch(shard, &writes, pace)
    }

    /// POOL-1: log before page. A page on disk must never be ahead of the durable log, or a crash
    /// would leave a change that nothing can roll back or complete.
    pub(crate) fn wait_for_log(&self, newest: Lsn) -> Result<(), PoolError> {
        // The planted bug that the simulator must catch: see crates/sim.
        if cfg!(canary) || self.skip_log_gate {
            return Ok(());
        }
        self.log.wait(newest, Durability::Synced)?;
        // A page may have been changed by a group that the log refused: such a change has no LSN of
        // its own. The thread that was refused knew of the halt before it let the page go, and it
        // was copied after that; so the log says it here, too.
        self.log.check()?;
        Ok(())
    }
}
