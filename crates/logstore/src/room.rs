//! Room: what is held for pages that will be written, and where it comes from when it is short: a
//! larger file, or cleaning.
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clean::NeverDirty;
use crate::core::SEGMENTS_FILE;
use crate::error::StoreError;
use crate::ids::{Place, UNIT};
use crate::policy::{RoomBy, room_by};
use crate::store::LogStore;

/// Rounds of cleaning for one writer.
const ROUNDS_MAX: usize = 4096;
/// So long after the disk had no room the file is taken for as large as it can be, where time is
/// measured: writers that wait for room ask again and again, and to be refused takes the file
/// system long.
const GROW_AGAIN_MICROS: u64 = 50_000;
/// Waits of a millisecond for what other threads have under way.
const WAITS_MAX: usize = 10_000;

/// What a round of cleaning came to.
enum CleanedSome {
    /// More is free, or will be after further rounds.
    Yes,
    /// Nothing, but other threads have writes under way, which free what they take the place of.
    Later,
    /// There is nothing to clean.
    No,
}

impl LogStore {
    /// Page writes that there is room for, as if none of them could be packed, beside what was
    /// reserved. A look without a lock.
    #[must_use]
    pub fn room_pages(&self) -> u64 {
        self.core.room_pages.load(Ordering::Relaxed)
    }

    /// Has room for `pages` page writes, without holding it: makes the file larger where that is
    /// needed. A pool that asks this with all its dirty pages, and those that may become so, before
    /// a page is changed is not refused by [`LogStore::write_batch`].
    ///
    /// # Errors
    /// As [`LogStore::reserve`].
    pub fn make_room_for(&self, pages: u64) -> Result<(), StoreError> {
        while self.room_pages() < pages {
            let (live, count, units) = {
                let segments = self.core.segments.lock();
                let count = segments.list.len();
                (segments.live(), count, segments.units * count as u64)
            };
            if !self.grow_file(count)? {
                return Err(self.full(live, units));
            }
        }
        Ok(())
    }

    /// Holds room for `pages` page writes, as if none of them could be packed; the file grows where
    /// that is needed. A pool that reserves each page before it is changed, and releases it when
    /// the batch that wrote it has returned, is never refused by [`LogStore::write_batch`]: also
    /// when all pages cannot be packed any more at once.
    ///
    /// # Errors
    /// [`StoreError::Full`]: nothing was reserved. [`StoreError::Device`]: the store has halted.
    pub fn reserve(&self, pages: u32) -> Result<(), StoreError> {
        let pages = u64::from(pages);
        loop {
            self.make_room_for(pages)?;
            let mut segments = self.core.segments.lock();
            // Another thread may have reserved it meanwhile.
            if self.core.room(&segments) >= pages {
                segments.reserved += pages;
                self.core.note_room(&segments);
                return Ok(());
            }
        }
    }

    /// Gives up what was reserved for `pages` page writes.
    pub fn release(&self, pages: u32) {
        let mut segments = self.core.segments.lock();
        segments.reserved = segments.reserved.saturating_sub(u64::from(pages));
        self.core.note_room(&segments);
    }

    fn full(&self, live: u64, units: u64) -> StoreError {
        let bytes = |units: u64| units * UNIT as u64;
        StoreError::Full { live_bytes: bytes(live), bytes: bytes(units) }
    }

    /// Has segments free for user writes: makes the file larger while more than three quarters of
    /// it are live, and cleans otherwise; dirty pages are copied, too, since their owner cannot be
    /// asked here.
    pub(crate) fn make_room(&self) -> Result<(), StoreError> {
        // Victims that are nearly full gain little each, and other threads take what is gained;
        // more rounds than this gain nothing.
        let (mut rounds, mut waits) = (0, 0);
        loop {
            rounds += 1;
            let reserve = self.core.reserve();
            let (free, pinned, live, count, units) = {
                let segments = self.core.segments.lock();
                let (free, pinned) = (segments.free_count(), segments.pinned_count());
                let count = segments.list.len();
                (free, pinned, segments.live(), count, segments.units * count as u64)
            };
            let kept = reserve.clean + reserve.meta;
            if free > kept {
                return Ok(());
            }
            if (pinned >= kept || free < kept && pinned > 0) && self.checkpoint_for_room()? {
                continue;
            }
            let victim = self.core.next_victim().map(|(_, live)| live);
            let by = room_by(live as f64 / units as f64, victim);
            if by == RoomBy::Growing && self.grow_file(count)? {
                continue;
            }
            let cleaned = if rounds <= ROUNDS_MAX { self.clean_some()? } else { CleanedSome::No };
            match cleaned {
                CleanedSome::Yes => continue,
                CleanedSome::Later if waits < WAITS_MAX => {
                    waits += 1;
                    rounds -= 1;
                    let mut segments = self.core.segments.lock();
                    self.core.published.wait_for(&mut segments, Duration::from_millis(1));
                    continue;
                }
                CleanedSome::Later | CleanedSome::No => {}
            }
            if self.grow_file(count)? {
                continue;
            }
            return Err(self.full(live, units));
        }
    }

    /// A map checkpoint, to free segments; `false`: there is no room for it.
    fn checkpoint_for_room(&self) -> Result<bool, StoreError> {
        match self.checkpoint_map() {
            Ok(()) => Ok(true),
            Err(StoreError::Full { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Cleans until a segment more is free, or something else may have become so. A page that
    /// another thread is writing cannot be copied, and what it has just written elsewhere need not
    /// be: neither says that there is nothing to clean.
    fn clean_some(&self) -> Result<CleanedSome, StoreError> {
        let free = || self.core.segments.lock().free_count();
        let before = free();
        let cleaned = self.step_clean(self.core.segment_bytes, &NeverDirty)?;
        if free() > before || cleaned.copied > 0 || !cleaned.damaged.is_empty() {
            return Ok(CleanedSome::Yes);
        }
        // Free records, and leaves that only the root before this map names.
        if self.core.has_meta_to_free() && self.checkpoint_for_room()? && free() > before {
            return Ok(CleanedSome::Yes);
        }
        let is_under_way = self.core.segments.lock().is_under_way();
        let may_change = is_under_way || cleaned.busy > 0 || cleaned.victim.is_some();
        Ok(if may_change { CleanedSome::Later } else { CleanedSome::No })
    }

    /// Whether the file could not be made larger when that was tried last: the disk has no room.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.core.is_disk_full.load(Ordering::Relaxed)
    }

    /// An eighth more segments than `seen`, or as many as the disk has room for, if another thread
    /// has not made them meanwhile; `false`: the disk has no room.
    pub(crate) fn grow_file(&self, seen: usize) -> Result<bool, StoreError> {
        let mut refused_micros = self.growth.lock();
        let before = self.core.segments.lock().list.len();
        if before > seen {
            return Ok(true);
        }
        let now = self.core.adapt.clock_micros();
        if self.is_disk_full() && now.is_some_and(|now| now < *refused_micros + GROW_AGAIN_MICROS) {
            return Ok(false);
        }
        let mut more = (before / 8).max(4);
        while more > 0 && !self.try_grow(before + more)? {
            more /= 2;
        }
        self.core.is_disk_full.store(more == 0, Ordering::Relaxed);
        if more == 0 {
            *refused_micros = self.core.adapt.now_micros();
            return Ok(false);
        }
        self.core.sync()?;
        let mut segments = self.core.segments.lock();
        segments.extend((before + more) as u32);
        self.core.note_room(&segments);
        drop(segments);
        self.core.stats.growths.add(1);
        Ok(true)
    }

    fn try_grow(&self, segments: usize) -> Result<bool, StoreError> {
        let bytes = (segments * self.core.segment_bytes) as u64;
        // Places behind that could not be told from others.
        if bytes > Place::BYTES_MAX {
            return Ok(false);
        }
        match self.core.file.grow(bytes.max(self.core.file.len())) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::StorageFull => Ok(false),
            Err(e) => {
                let what = format!("making '{SEGMENTS_FILE}' larger");
                Err(self.core.halt(StoreError::device(what, e)))
            }
        }
    }
}
