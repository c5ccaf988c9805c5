//! Writing pages: pack, append, sync, publish; and the room for it.
use weir_base::{Lsn, PageNo};

use crate::clean::NeverDirty;
use crate::core::SEGMENTS_FILE;
use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, Kind};
use crate::ids::UNIT;
use crate::segments::StreamKind;
use crate::store::LogStore;
use crate::stream::{Appended, Item, Landed, Packed};

/// The share of all segments' units that may be live before the file grows.
const FILL_MAX: f64 = 0.75;
/// Page writes after which a map checkpoint is due, or an eighth of the pages, if those are more.
const CHECKPOINT_PAGES: u64 = 4 << 20;
/// Segments that recovery may have to look into before a map checkpoint is due.
const SPANS_MAX: usize = 4096;

/// A page to write.
#[derive(Clone, Copy)]
pub struct PageImage<'a> {
    /// Which page.
    pub page: PageNo,
    /// Its LSN.
    pub lsn: Lsn,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl LogStore {
    /// Writes pages; durable when it returns. The caller has made the log durable up to their
    /// newest LSN, and has no other write of one of these pages under way. They go out in groups:
    /// `pace` is told how many are left and says how many go next.
    ///
    /// Where too few segments are free, the calling thread first makes the file larger or cleans.
    ///
    /// # Errors
    /// [`StoreError::NoSuchPage`]: nothing was written. [`StoreError::Full`]: each page is there as
    /// it was before or as it was given. [`StoreError::Device`]: so, after the next opening; the
    /// store has halted.
    ///
    /// # Panics
    /// When a page is not of the store's page size.
    pub fn write_batch(
        &self,
        pages: &[PageImage<'_>],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), StoreError> {
        let limit = self.pages();
        if let Some(beyond) = pages.iter().find(|image| image.page.0 >= limit) {
            return Err(StoreError::NoSuchPage(beyond.page));
        }
        if self.is_checkpoint_overdue() {
            self.checkpoint_map()?;
        }
        let most = (self.core.segment_bytes / 8 / self.core.page_bytes).max(1);
        let (mut left, mut landed) = (pages, Vec::new());
        while !left.is_empty() {
            let group = pace(left.len()).clamp(1, left.len().min(most));
            let (now, rest) = left.split_at(group);
            let items = now.iter().map(|image| self.pack(image)).collect();
            self.append_user(items, &mut landed)?;
            left = rest;
        }
        self.finish(&mut landed)
    }

    fn pack(&self, image: &PageImage<'_>) -> Item {
        assert_eq!(image.bytes.len(), self.core.page_bytes, "a page");
        let mut bytes = vec![0; BLOCK_HEAD + image.bytes.len()];
        let (codec, len) = self.core.packing.pack(image.bytes, &mut bytes[BLOCK_HEAD..]);
        bytes.truncate(BLOCK_HEAD + len);
        Item::Block(Packed::new(Kind::Page, image.page.0, image.lsn, codec, bytes))
    }

    /// Appends pages to the user stream. Where there is no room, what has landed is published
    /// first: the cleaner cannot move a page that has a write under way.
    fn append_user(
        &self,
        mut items: Vec<Item>,
        landed: &mut Vec<Landed>,
    ) -> Result<(), StoreError> {
        loop {
            let pages = pages_of(&items);
            if !self.core.try_mark(&pages) {
                // Nothing of this thread's own is waited for.
                self.finish(landed)?;
                self.core.mark(&pages)?;
            }
            match self.core.append(StreamKind::User, &mut items, landed)? {
                Appended::All => return Ok(()),
                Appended::NoRoom => {
                    self.core.unmark(&pages_of(&items));
                    self.finish(landed)?;
                    self.make_room()?;
                }
            }
        }
    }

    /// What was written becomes durable, and part of the store.
    fn finish(&self, landed: &mut Vec<Landed>) -> Result<(), StoreError> {
        if landed.is_empty() {
            return Ok(());
        }
        self.core.sync()?;
        self.core.publish(landed);
        let blocks = landed.iter().flat_map(|chunk| &chunk.blocks);
        let (mut pages, mut bytes) = (0, 0);
        blocks.for_each(|(_, place, _)| {
            pages += 1;
            bytes += place.bytes() as u64;
        });
        self.core.segments.lock().pages_since += pages;
        self.core.stats.pages_written.add(pages);
        self.core.stats.bytes_packed.add(bytes);
        landed.clear();
        Ok(())
    }

    /// Pages are no more, as of the change `lsn`, which is in the durable log; their room is free.
    /// Durable when it returns, and only then may the log's checkpoint pass `lsn` (R8).
    ///
    /// # Errors
    /// As [`LogStore::write_batch`].
    pub fn forget(&self, first: PageNo, count: u32, lsn: Lsn) -> Result<(), StoreError> {
        let end = first.0.saturating_add(count).min(self.pages());
        let mut at = first.0;
        while at < end {
            let part = (end - at).min(u32::from(u16::MAX));
            self.forget_part(PageNo(at), part as u16, lsn)?;
            at += part;
        }
        Ok(())
    }

    fn forget_part(&self, first: PageNo, count: u16, lsn: Lsn) -> Result<(), StoreError> {
        let pages: Vec<u32> = (first.0..first.0 + u32::from(count)).collect();
        loop {
            self.core.mark(&pages)?;
            // Nothing is under way now: what the map says is all there is.
            if pages.iter().all(|&page| self.core.map.get(PageNo(page)).is_none()) {
                self.core.unmark(&pages);
                return Ok(());
            }
            let (mut items, mut landed) = (vec![Item::Forget { first, count, lsn }], Vec::new());
            if let Appended::All = self.core.append(StreamKind::Meta, &mut items, &mut landed)? {
                self.core.sync()?;
                self.core.publish(&landed);
                return Ok(());
            }
            self.core.unmark(&pages);
            self.make_room()?;
        }
    }

    /// Whether a map checkpoint is due, so that opening stays short.
    #[must_use]
    pub fn is_checkpoint_due(&self) -> bool {
        let due = CHECKPOINT_PAGES.max(u64::from(self.pages()) / 8);
        let segments = self.core.segments.lock();
        segments.pages_since >= due || segments.opened_since >= SPANS_MAX
    }

    /// Whether the root soon has no room for what recovery would have to look into.
    fn is_checkpoint_overdue(&self) -> bool {
        self.core.segments.lock().opened_since >= 3 * SPANS_MAX / 2
    }

    /// Has segments free for user writes: makes the file larger while more than three quarters of
    /// it are live, and cleans otherwise; dirty pages are copied, too, since nobody can be asked
    /// here.
    fn make_room(&self) -> Result<(), StoreError> {
        // Victims that are nearly full gain little each; more rounds than this gain nothing.
        let mut rounds = 0;
        loop {
            rounds += 1;
            let reserve = self.core.reserve();
            let (free, live, count, units) = {
                let segments = self.core.segments.lock();
                let count = segments.list.len();
                (segments.free_count(), segments.live(), count, segments.units * count as u64)
            };
            if free > reserve.clean + reserve.meta {
                return Ok(());
            }
            let is_filled = live as f64 > units as f64 * FILL_MAX;
            let may_clean = rounds <= 64 + 4 * count;
            if is_filled && self.grow_file()? || may_clean && self.clean_some()? {
                continue;
            }
            if self.grow_file()? {
                continue;
            }
            let bytes = |units: u64| units * UNIT as u64;
            return Err(StoreError::Full { live_bytes: bytes(live), bytes: bytes(units) });
        }
    }

    /// Cleans until a segment more is free, or something else may have become so; `false`: there is
    /// nothing to clean.
    fn clean_some(&self) -> Result<bool, StoreError> {
        let free = || self.core.segments.lock().free_count();
        let before = free();
        let cleaned = self.step_clean(self.core.segment_bytes, &NeverDirty)?;
        if free() > before || cleaned.copied > 0 || !cleaned.damaged.is_empty() {
            return Ok(true);
        }
        if cleaned.busy > 0 {
            // Another thread has a write of these pages under way, and will be done.
            let mut segments = self.core.segments.lock();
            self.core.published.wait_for(&mut segments, std::time::Duration::from_millis(1));
            return Ok(true);
        }
        // Free records, and leaves that only the root before this map names.
        if !self.core.has_meta_to_free() {
            return Ok(false);
        }
        self.checkpoint_map()?;
        Ok(free() > before)
    }

    /// An eighth more segments; `false`: the disk has no room.
    fn grow_file(&self) -> Result<bool, StoreError> {
        let _one_at_a_time = self.growth.lock();
        let before = self.core.segments.lock().list.len();
        let more = (before / 8).max(4);
        let bytes = ((before + more) * self.core.segment_bytes) as u64;
        match self.core.file.grow(bytes.max(self.core.file.len())) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => return Ok(false),
            Err(e) => {
                let what = format!("making '{SEGMENTS_FILE}' larger");
                return Err(self.core.halt(StoreError::device(what, e)));
            }
        }
        self.core.sync()?;
        self.core.segments.lock().extend((before + more) as u32);
        self.core.stats.growths.add(1);
        Ok(true)
    }
}

fn pages_of(items: &[Item]) -> Vec<u32> {
    let page = |item: &Item| match item {
        Item::Block(packed) => Some(packed.head.number),
        Item::Forget { .. } => None,
    };
    items.iter().filter_map(page).collect()
}
