//! What a store that writes out of place needs of the pool: room before pages are changed, upkeep
//! between writes, and word of pages that are not in use any more.
use std::ops::Range;

use weir_base::{Lsn, PageNo};

use crate::error::PoolError;
use crate::in_flight::Cause;
use crate::pool::Pool;
use crate::store::Placed;

/// Batches that may be on their way, and so are not on the dirty list: the sweeper's lanes', the
/// cleaner's, and one of a thread that flushes.
const BATCHES_IN_FLIGHT: u64 = 4;

impl Pool {
    /// POOL-13: whether the store has room for all pages that are dirty, and for `more` that may
    /// become so. A thread asks before it changes pages: once they are changed they must be
    /// written, whatever room there is.
    ///
    /// # Errors
    /// [`PoolError::Device`], of kind `StorageFull`: nothing has changed, and reads go on.
    #[inline]
    pub fn check_room(&self, more: u64) -> Result<(), PoolError> {
        match self.store.room_pages() {
            None => Ok(()),
            Some(room) => self.check_room_for(room, more),
        }
    }

    fn check_room_for(&self, room: u64, more: u64) -> Result<(), PoolError> {
        let wanted = self.dirty.len() + self.in_flight_max() + more;
        if wanted <= room { Ok(()) } else { self.store.make_room(wanted) }
    }

    fn in_flight_max(&self) -> u64 {
        BATCHES_IN_FLIGHT * self.store.batch_max() as u64
    }

    /// A step of the store's upkeep, at `now_micros`. Returns whether there may be more to do.
    ///
    /// # Errors
    /// Device and log failures; the pool has halted then.
    pub fn step_upkeep(&self, now_micros: u64) -> Result<bool, PoolError> {
        self.check_halted()?;
        let is_dirty = |page| self.listed(page).is_some();
        // Half as many again: dirty pages come and go.
        let held = (self.dirty.len() + self.in_flight_max()) * 3 / 2;
        let kept = self.store.upkeep(now_micros, held, &is_dirty);
        let kept = kept.inspect_err(|e| self.halt(&e.to_string()))?;
        let wanted = kept.flush_wanted.iter();
        let wanted: Vec<_> = wanted.filter_map(|&page| Some((page, self.listed(page)?))).collect();
        let written = self.write_back(0, &wanted, Cause::Segment, usize::MAX, &mut |_| {})?;
        Ok(kept.did || written.pages > 0)
    }

    /// The position that a dirty page is listed under. A look without latches: what has changed
    /// meanwhile is found out when it is copied.
    pub(crate) fn listed(&self, page: PageNo) -> Option<Lsn> {
        let frame = self.latch(page)?.load().frame()?;
        let meta = self.frames.meta(frame);
        meta.first_lsn().filter(|_| meta.page() == page && !meta.writing())
    }

    /// Gives back the room of pages, where they lie, that are not in use and that the checkpoint
    /// has passed (POOL-14). `false`: the store cannot.
    ///
    /// # Errors
    /// As [`PageStore::punch`](crate::PageStore::punch); the pool has halted then, unless the disk
    /// is full.
    pub fn punch(&self, pages: Range<u32>) -> Result<bool, PoolError> {
        self.check_halted()?;
        self.store.punch(pages).inspect_err(|e| self.halt_unless_full(e))
    }

    /// Has room for pages that are about to be used; see
    /// [`PageStore::reserve`](crate::PageStore::reserve).
    ///
    /// # Errors
    /// Device failures; the pool has halted then, unless the disk is full.
    pub fn reserve(&self, pages: Range<u32>) -> Result<(), PoolError> {
        self.store.reserve(pages).inspect_err(|e| self.halt_unless_full(e))
    }

    /// Notes that the batches up to number `batch` are settled; `false`: one is not.
    ///
    /// # Errors
    /// Device failures; the pool has halted then.
    pub fn settle_through(&self, batch: u64) -> Result<bool, PoolError> {
        self.check_halted()?;
        self.store.settle_through(batch).inspect_err(|e| self.halt(&e.to_string()))
    }

    fn halt_unless_full(&self, e: &PoolError) {
        if !e.is_disk_full() {
            self.halt(&e.to_string());
        }
    }

    /// Gives up pages that were found unused, each where it was found; the checkpoint `lsn` has
    /// passed what freed them. A page that is used again meanwhile loses nothing: the first change
    /// behind the checkpoint formats it, and what is written of it since stays. Returns for how
    /// many it was done.
    ///
    /// # Errors
    /// Device failures; the pool has halted then.
    pub fn give_up(&self, unused: &[Placed], lsn: Lsn) -> Result<u64, PoolError> {
        self.check_halted()?;
        let given = self.store.give_up(unused, lsn);
        given.inspect_err(|e| self.halt(&e.to_string()))
    }
}
