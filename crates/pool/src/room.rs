//! What a store that writes out of place needs of the pool: room before pages are changed, upkeep
//! between writes, and word of pages that are not in use any more.
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use weir_base::{Lsn, PageNo};

use crate::error::PoolError;
use crate::in_flight::Cause;
use crate::pool::Pool;
use crate::store::Placed;

/// Batches that may be on their way, and so are not on the dirty list: the sweeper's lanes', the
/// cleaner's, and one of a thread that flushes.
const BATCHES_IN_FLIGHT: u64 = 4;

/// Pages' room that is left for changes that must be made in any case.
pub const ROOM_KEPT_PAGES: u64 = 512;
/// With fewer dirty pages, writing them makes no room that counts.
const DIRTY_MIN: u64 = 16;

/// The room for dirty pages where the disk is full, in pages that cannot be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What writing all dirty pages takes, less what comes back then.
    pub dirty_pages: u64,
    /// What there is for them: users' changes wait beyond that.
    pub most_pages: u64,
}

impl Pool {
    /// Whether a user's thread may change pages now (POOL-13), as [`Pool::check_room`] with what is
    /// kept for changes that must be made in any case. `false`: not before dirty pages are written,
    /// which the thread waits for.
    ///
    /// # Errors
    /// As [`Pool::check_room`]: writing dirty pages would make no room either.
    #[inline]
    pub fn has_room(&self) -> Result<bool, PoolError> {
        match self.check_room(ROOM_KEPT_PAGES) {
            Ok(()) => Ok(true),
            Err(e) if e.is_disk_full() && self.dirty.len() > DIRTY_MIN => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The room that is left for dirty pages, where the disk is full.
    #[must_use]
    pub fn room(&self) -> Option<Room> {
        let most = self.store.room_pages().filter(|_| self.store.is_disk_full())?;
        let kept = self.in_flight_max() + ROOM_KEPT_PAGES;
        Some(Room { dirty_pages: self.dirty_room(), most_pages: most.saturating_sub(kept) })
    }

    /// POOL-13: whether the store has room for all pages that are dirty, and for `more` that may
    /// become so, less what comes back when they are written. A thread asks before it changes
    /// pages: once they are changed they must be written, whatever room there is. Users' changes
    /// ask by [`Pool::has_room`].
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
        let wanted = self.dirty_room() + self.in_flight_max() + more;
        if wanted <= room { Ok(()) } else { self.store.make_room(wanted) }
    }

    /// Pages' room that writing all dirty pages takes beyond what comes back then.
    fn dirty_room(&self) -> u64 {
        self.dirty.len().saturating_sub(self.dirty.gives_back() / u64::from(u16::MAX))
    }

    /// Counts what a page gives back that has become dirty; its latch is held. While an older copy
    /// of it is on its way, what that will take is not known: it counts as giving nothing back.
    pub(crate) fn note_gives_back(&self, page: PageNo, frame: u32) {
        let meta = self.frames.meta(frame);
        let look = || if meta.writing() { 0 } else { self.store.gives_back(page) };
        let mut share = look();
        while share > 0 {
            self.dirty.count_gives_back(meta.set_gives_back(share), share);
            // It may have been given up meanwhile: either `give_up` sees what is counted, or this
            // thread that there is nothing any more.
            fence(Ordering::SeqCst);
            let now = look();
            if now == share {
                return;
            }
            share = now;
            if share == 0 {
                self.dirty.count_gives_back(meta.set_gives_back(0), 0);
            }
        }
    }

    /// Pages that the store has given up give nothing back, also if they are dirty.
    fn forget_gives_back(&self, pages: &[Placed]) {
        fence(Ordering::SeqCst);
        for page in pages.iter().map(|placed| placed.page) {
            let Some(frame) = self.latch(page).and_then(|latch| latch.load().frame()) else {
                continue;
            };
            let meta = self.frames.meta(frame);
            // If another page is in the frame by now it counts as giving nothing back, until it is
            // written: more room is held than needed, never less.
            if meta.gives_back() > 0 && self.store.gives_back(page) == 0 {
                self.dirty.count_gives_back(meta.set_gives_back(0), 0);
            }
        }
    }

    /// What is counted as coming back, and what it is by a look at each frame: for tests, while no
    /// page changes.
    #[doc(hidden)]
    #[must_use]
    pub fn count_gives_back(&self) -> (u64, u64) {
        let frames = (0..self.frames.count()).map(|frame| self.frames.meta(frame));
        let of = |meta: &crate::frame::FrameMeta| u64::from(self.store.gives_back(meta.page()));
        let dirty = frames.filter(|meta| meta.first_lsn().is_some() && !meta.writing());
        (self.dirty.gives_back(), dirty.map(of).sum())
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
        let held = (self.dirty_room() + self.in_flight_max()) * 3 / 2;
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
        let given = given.inspect_err(|e| self.halt(&e.to_string()))?;
        self.forget_gives_back(unused);
        Ok(given)
    }
}
