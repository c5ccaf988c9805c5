//! Writing pages: pack, append, sync, publish; and the room for it.
use weir_base::{Lsn, PageNo};

use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, Codec, Kind};
use crate::ids::Place;
use crate::segments::StreamKind;
use crate::store::LogStore;
use crate::stream::{Appended, Item, Landed, Packed};

/// Page writes after which a map checkpoint is due, which opening after a crash looks through (a
/// quarter of a second),
const CHECKPOINT_PAGES: u64 = 1 << 20;
/// or one in so many of the pages, if those are more: where each leaf of the map has changed, it is
/// 32 bytes for each page written.
const CHECKPOINT_SHARE: u64 = 4;
/// Segments that recovery may have to look into before a map checkpoint is due.
const SPANS_MAX: usize = 4096;
/// Pages that are given up with one sync.
const FORGET_AT_ONCE: usize = 1024;

/// A page to write.
#[derive(Clone, Copy)]
pub struct PageImage<'a> {
    /// Which page.
    pub page: PageNo,
    /// Its LSN.
    pub lsn: Lsn,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// How it is packed, if that saves enough; `None`: as the store chooses.
    pub codec: Option<Codec>,
}

impl LogStore {
    /// Writes pages; durable when it returns. The caller has made the log durable up to their
    /// newest LSN, and has no other write of one of these pages under way. They go out in groups:
    /// `pace` gets how many are left and says how many go next.
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
        let (mut micros, mut bytes) = (0, 0);
        while !left.is_empty() {
            let group = pace(left.len()).clamp(1, left.len().min(most));
            let (now, rest) = left.split_at(group);
            let items: Vec<Item> = now.iter().map(|image| self.pack(image)).collect();
            bytes += bytes_of(&items);
            let begun = self.core.adapt.now_micros();
            self.append_user(items, &mut landed)?;
            micros += self.core.adapt.now_micros() - begun;
            left = rest;
        }
        let begun = self.core.adapt.now_micros();
        self.finish(&mut landed)?;
        micros += self.core.adapt.now_micros() - begun;
        self.core.adapt.wrote(bytes, micros);
        Ok(())
    }

    fn pack(&self, image: &PageImage<'_>) -> Item {
        assert_eq!(image.bytes.len(), self.core.page_bytes, "a page");
        let mut bytes = vec![0; BLOCK_HEAD + image.bytes.len()];
        let (packing, payload) = (&self.core.packing, &mut bytes[BLOCK_HEAD..]);
        let wanted = image.codec.unwrap_or_else(|| {
            self.core.adapt.sample(packing, image.bytes, payload);
            self.core.adapt.codec()
        });
        let (codec, len) = packing.pack(wanted, image.bytes, payload);
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
        let (mut pages, mut bytes, mut packed) = (0, 0, [0; 3]);
        blocks.for_each(|(head, place, _)| {
            pages += 1;
            bytes += place.bytes() as u64;
            packed[head.codec as usize] += 1;
        });
        self.core.stats.pages_raw.add(packed[Codec::Raw as usize]);
        self.core.stats.pages_lz4.add(packed[Codec::Lz4 as usize]);
        self.core.stats.pages_zstd.add(packed[Codec::Zstd as usize]);
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
        let pages: Vec<PageNo> = (first.0..end).map(PageNo).collect();
        loop {
            let placed = self.placed(&pages);
            if placed.is_empty() {
                return Ok(());
            }
            if self.forget_placed(&placed, lsn)? < placed.len() as u64 {
                self.make_room()?;
            }
        }
    }

    /// Where each of these pages lies that lies anywhere: what [`LogStore::forget_placed`] takes.
    #[must_use]
    pub fn placed(&self, pages: &[PageNo]) -> Vec<(PageNo, Place)> {
        let place = |&page: &PageNo| (page, self.core.map.get(page));
        pages.iter().map(place).filter(|(_, place)| !place.is_none()).collect()
    }

    /// Gives up pages, each only if it still lies where it was found: the caller knows that what
    /// lies there is not needed any more, since the change `lsn`, which is in the durable log. What
    /// has been written since stays. Durable when it returns; how many pages it gave up: fewer
    /// where there was no room to say so, and the caller tries again later.
    ///
    /// # Errors
    /// As [`LogStore::write_batch`].
    pub fn forget_placed(&self, pages: &[(PageNo, Place)], lsn: Lsn) -> Result<u64, StoreError> {
        let mut done = 0;
        for part in pages.chunks(FORGET_AT_ONCE) {
            let numbers: Vec<u32> = part.iter().map(|(page, _)| page.0).collect();
            self.core.mark(&numbers)?;
            // Nothing is under way now: what the map says is all there is.
            let is_there = |(page, place): &&(PageNo, Place)| self.core.map.get(*page) == *place;
            let (keep, gone): (Vec<_>, Vec<_>) = part.iter().partition(|it| !is_there(it));
            let keep: Vec<u32> = keep.iter().map(|(page, _)| page.0).collect();
            self.core.unmark(&keep);
            let gone: Vec<PageNo> = gone.iter().map(|(page, _)| *page).collect();
            done += self.forget_marked(&gone, lsn)?;
        }
        Ok(done)
    }

    /// Pages that are marked, in ascending order; how many there was room to say it of.
    fn forget_marked(&self, pages: &[PageNo], lsn: Lsn) -> Result<u64, StoreError> {
        let mut items: Vec<Item> = Vec::new();
        for &page in pages {
            match items.last_mut() {
                Some(Item::Forget { first, count, .. })
                    if first.0 + u32::from(*count) == page.0 && *count < u16::MAX =>
                {
                    *count += 1;
                }
                _ => items.push(Item::Forget { first: page, count: 1, lsn }),
            }
        }
        let mut landed = Vec::new();
        self.core.append(StreamKind::Meta, &mut items, &mut landed)?;
        if !landed.is_empty() {
            self.core.sync()?;
            self.core.publish(&landed);
        }
        let left: Vec<u32> = items.iter().flat_map(forgotten).collect();
        self.core.unmark(&left);
        Ok((pages.len() - left.len()) as u64)
    }

    /// Whether a map checkpoint is due, so that opening stays short.
    #[must_use]
    pub fn is_checkpoint_due(&self) -> bool {
        let due = CHECKPOINT_PAGES.max(u64::from(self.pages()) / CHECKPOINT_SHARE);
        let segments = self.core.segments.lock();
        segments.pages_since >= due || segments.opened_since >= SPANS_MAX
    }

    /// Whether the root soon has no room for what recovery would have to look into.
    fn is_checkpoint_overdue(&self) -> bool {
        self.core.segments.lock().opened_since >= 3 * SPANS_MAX / 2
    }
}

fn forgotten(item: &Item) -> std::ops::Range<u32> {
    match item {
        Item::Forget { first, count, .. } => first.0..first.0 + u32::from(*count),
        Item::Block(_) => 0..0,
    }
}

fn bytes_of(items: &[Item]) -> u64 {
    let bytes = |item: &Item| match item {
        Item::Block(packed) => packed.bytes.len() as u64,
        Item::Forget { .. } => 0,
    };
    items.iter().map(bytes).sum()
}

fn pages_of(items: &[Item]) -> Vec<u32> {
    let page = |item: &Item| match item {
        Item::Block(packed) => Some(packed.head.number),
        Item::Forget { .. } => None,
    };
    items.iter().filter_map(page).collect()
}
