//! The store, as others see it.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use weir_base::lock::{Condvar, Mutex};
use weir_base::{ALIGN, Clock, DbId, Lsn, PageNo, rank};
use weir_device::Volume;

use crate::adapt::Adapt;
use crate::checkpoint::{MapPlaces, Places};
use crate::clean::{Cleaned, Dirty};
use crate::codec::Packing;
use crate::core::{Core, SEGMENTS_FILE};
use crate::error::StoreError;
use crate::format::{Kind, Root};
use crate::ids::{Epoch, Seq, UNIT};
use crate::map::Map;
use crate::policy_codec::Choice;
use crate::recover::Reader;
use crate::root_file::RootFile;
use crate::segments::{Segments, Status};
use crate::stats::LogStoreStats;

/// What a store is created with, and keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogStoreConfig {
    /// Bytes a page: a multiple of 64, at most 16,384.
    pub page_bytes: usize,
    /// Bytes a segment: a multiple of 4096, room for 16 pages at least, less than 1 GiB.
    pub segment_bytes: usize,
    /// Segments to begin with, 16 at least; there are more as they are needed.
    pub segments: u32,
    /// Pages that there is room for in the map at first.
    pub pages: u32,
}

impl LogStoreConfig {
    /// Segments that a store has at least: open ones, the reserve, and some to clean.
    pub const SEGMENTS_MIN: u32 = 16;
    /// The largest page, in bytes.
    pub const PAGE_BYTES_MAX: usize = 16 << 10;

    fn check(&self) -> Result<(), StoreError> {
        let is_page = self.page_bytes.is_multiple_of(UNIT)
            && (UNIT..=Self::PAGE_BYTES_MAX).contains(&self.page_bytes);
        let least = 16 * (self.page_bytes + UNIT) + 4 * ALIGN;
        let is_segment = self.segment_bytes.is_multiple_of(ALIGN)
            && (least.max(16 * ALIGN)..1 << 30).contains(&self.segment_bytes);
        match () {
            () if !is_page => Err(StoreError::Config("the page size")),
            () if !is_segment => Err(StoreError::Config("the segment size")),
            () if self.segments < Self::SEGMENTS_MIN => {
                Err(StoreError::Config("fewer than 16 segments"))
            }
            () => Ok(()),
        }
    }
}

/// How full the store is, and what cleaning would find.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Observed {
    /// Bytes of all segments.
    pub bytes: u64,
    /// Bytes of blocks that are needed.
    pub live_bytes: u64,
    /// Bytes of segments that are free.
    pub free_bytes: u64,
    /// Of these, bytes that are kept for copies and map checkpoints.
    pub reserve_bytes: u64,
    /// Bytes of segments of free records, which the next map checkpoint makes free.
    pub pinned_bytes: u64,
    /// The share of the next victim that is live; none: nothing is worth cleaning.
    pub next_victim: Option<f64>,
    /// Page writes since the last map checkpoint.
    pub pages_since_checkpoint: u64,
    /// Bytes of memory that the map takes.
    pub map_memory_bytes: u64,
}

/// Pages in segments.
pub struct LogStore {
    pub(crate) core: Core,
    pub(crate) places: Places,
    pub(crate) cleaner: Mutex<rank::PageCleaner, ()>,
    /// Growing the file, one thread at a time; when the disk had no room for that last, in
    /// microseconds.
    pub(crate) growth: Mutex<rank::SegmentGrowth, u64>,
}

impl LogStore {
    /// Creates a store's two files. Their names are durable when the directory is synced.
    ///
    /// # Errors
    /// [`StoreError::Config`]; [`StoreError::Device`], also when a file exists already.
    pub fn create(
        volume: &Arc<dyn Volume>,
        db: DbId,
        config: &LogStoreConfig,
    ) -> Result<LogStore, StoreError> {
        config.check()?;
        let failed = |e| StoreError::device(format!("creating '{SEGMENTS_FILE}'"), e);
        let bytes = u64::from(config.segments) * config.segment_bytes as u64;
        let file = volume.create(SEGMENTS_FILE, bytes).map_err(failed)?;
        file.sync().map_err(failed)?;
        let first = Root {
            generation: 0,
            life: 1,
            page_bytes: config.page_bytes as u32,
            segment_bytes: config.segment_bytes as u32,
            segments: config.segments,
            pages: config.pages,
            next_epoch: Epoch(1),
            ckpt_seq: Seq(0),
            newest: Lsn::ZERO,
            index: Vec::new(),
            scan: Vec::new(),
        };
        let root = RootFile::create(volume, db, first)?;
        let reader = Reader { db, file, segment_bytes: config.segment_bytes };
        let segments = Segments::new(config.segments, config.segment_bytes, 1);
        Ok(Self::of(reader, root, segments, Map::default(), MapPlaces::default()))
    }

    /// Opens a store as it was left, by whatever end. Whatever was acknowledged is there. Nothing
    /// is written before the first page is.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the root, a leaf of the map, or a chunk that is known to have
    /// been durable is not what was written; [`StoreError::OtherStore`],
    /// [`StoreError::OtherFormat`]; [`StoreError::Device`].
    pub fn open(volume: &Arc<dyn Volume>, db: DbId) -> Result<LogStore, StoreError> {
        let failed = |e| StoreError::device(format!("opening '{SEGMENTS_FILE}'"), e);
        let root = RootFile::open(volume, db)?;
        let found = root.durable.clone();
        let file = volume.open(SEGMENTS_FILE).map_err(failed)?;
        let segment_bytes = found.segment_bytes as usize;
        if file.len() < u64::from(found.segments) * segment_bytes as u64 {
            return Err(StoreError::Damaged {
                what: "the last segment".to_owned(),
                file: SEGMENTS_FILE,
                offset: file.len(),
                cause: "the file ends before it",
            });
        }
        // R6: what a process left that ended before its sync is durable before anything is built
        // on it.
        file.sync().map_err(failed)?;
        // The number would come round, and older chunks would seem newer.
        if found.life + 1 >= Seq::LIVES_MAX {
            return Err(StoreError::Config(
                "it was opened 16,777,214 times, and more cannot be counted; an earlier copy of it \
                 can be copied into a new one",
            ));
        }
        let reader = Reader { db, file, segment_bytes };
        let map = Map::default();
        map.grow(found.pages);
        let places = MapPlaces { leaves: reader.leaves(&found)?, index: found.index.clone() };
        reader.map_blocks(Kind::Leaf, &places.leaves, &mut |leaf, places| {
            let first = leaf * places.len() as u32;
            for (page, place) in (first..).zip(places).filter(|(_, place)| !place.is_none()) {
                map.set(PageNo(page), place);
            }
        })?;
        map.take_dirty();
        let newer = reader.newer(&found, &mut |page, place| {
            map.set(page, place);
        })?;
        let mut segments = Segments::new(found.segments, segment_bytes, found.life + 1);
        segments.next_epoch = found.next_epoch;
        segments.ckpt_seq = found.ckpt_seq;
        for used in &newer.used {
            let segment = segments.get(used.span.segment);
            (segment.epoch, segment.end) = (used.span.epoch, used.span.end);
            (segment.newest, segment.forgets) = (used.newest, used.forgets);
            segment.is_meta = used.forgets > Seq(0);
        }
        map.visit(&mut |_, place| segments.add_live(place));
        for place in places.leaves.iter().chain(&places.index).filter(|place| !place.is_none()) {
            segments.add_live(*place);
            let number = segments.segment_of(*place);
            segments.get(number).is_meta = true;
        }
        segments.opened_since = newer.used.len();
        segments.adopt();
        segments.newest = found.newest.max(newer.newest);
        Ok(Self::of(reader, root, segments, map, places))
    }

    pub(crate) fn of(
        reader: Reader,
        root: RootFile,
        segments: Segments,
        map: Map,
        places: MapPlaces,
    ) -> LogStore {
        let pages = root.durable.pages;
        map.grow(pages);
        let core = Core {
            db: reader.db,
            page_bytes: root.durable.page_bytes as usize,
            segment_bytes: reader.segment_bytes,
            file: reader.file,
            root: Mutex::new(root),
            map,
            segments: Mutex::new(segments),
            published: Condvar::new(),
            streams: std::array::from_fn(|_| Mutex::default()),
            pages: AtomicU32::new(pages),
            room_pages: AtomicU64::new(0),
            is_disk_full: AtomicBool::new(false),
            packing: Packing::default(),
            adapt: Adapt::default(),
            stats: LogStoreStats::default(),
        };
        core.note_room(&core.segments.lock());
        LogStore {
            core,
            places: Mutex::new(places),
            cleaner: Mutex::new(()),
            growth: Mutex::new(0),
        }
    }

    /// Bytes a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.core.page_bytes
    }

    /// Pages that there is room for in the map: page numbers end here.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.core.pages.load(Ordering::Acquire)
    }

    /// Makes room in the map for at least `pages` pages, durably. Room for their bytes is made when
    /// they are written.
    ///
    /// # Errors
    /// [`StoreError::Device`]: the store has halted.
    pub fn grow(&self, pages: u32) -> Result<(), StoreError> {
        let _one_at_a_time = self.growth.lock();
        let before = self.pages();
        if pages > before {
            self.core.map.grow(pages);
            self.core.pages.store(pages, Ordering::Release);
            let written = self.core.write_same_root();
            written.inspect_err(|_| self.core.pages.store(before, Ordering::Release))?;
        }
        Ok(())
    }

    /// The newest LSN of any page that was written.
    #[must_use]
    pub fn newest(&self) -> Lsn {
        self.core.segments.lock().newest
    }

    /// Where a page lies: the file, and the byte at which its block begins; `None`: nowhere.
    #[must_use]
    pub fn place(&self, page: PageNo) -> Option<(&'static str, u64)> {
        let place = self.place_of(page).ok()?;
        Some((SEGMENTS_FILE, place.offset()))
    }

    /// Bytes of the block that a page has now, which die when it is written anew; 0: it has none. A
    /// look without the lock of the segments.
    #[must_use]
    pub fn block_bytes(&self, page: PageNo) -> u32 {
        let place = self.core.map.get(page);
        if place.is_none() { 0 } else { place.bytes() as u32 }
    }

    /// Bytes that a page takes which cannot be packed, with what is written about it beside.
    #[must_use]
    pub fn unpacked_bytes(&self) -> u32 {
        let block = (self.core.block_bytes_max() / UNIT) as u64;
        Core::bytes_with_lines(block, 1) as u32
    }

    /// Makes the map durable: afterwards opening looks only into what is written from now on.
    /// Writes go on meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Device`].
    pub fn checkpoint_map(&self) -> Result<(), StoreError> {
        self.core.checkpoint_map(&self.places)
    }

    /// One step of cleaning: copies at most `budget_bytes` (one page at least) out of the emptiest
    /// segment, and says which dirty pages lie there: the caller flushes them. A step that copied
    /// nothing and wants nothing flushed found nothing to do.
    ///
    /// # Errors
    /// [`StoreError::Device`]; what cannot be read is no error, but reported.
    pub fn step_clean(
        &self,
        budget_bytes: usize,
        dirty: &dyn Dirty,
    ) -> Result<Cleaned, StoreError> {
        let _one_at_a_time = self.cleaner.lock();
        self.core.clean(budget_bytes, dirty)
    }

    /// How full the store is.
    #[must_use]
    pub fn observe(&self) -> Observed {
        let next_victim = self.core.next_victim().map(|(_, live)| live);
        let reserve = self.core.reserve();
        let segments = self.core.segments.lock();
        let bytes = |count: usize| (count * self.core.segment_bytes) as u64;
        Observed {
            bytes: bytes(segments.list.len()),
            live_bytes: segments.live() * UNIT as u64,
            free_bytes: bytes(segments.free_count()),
            reserve_bytes: bytes(reserve.clean + reserve.meta),
            pinned_bytes: bytes(segments.pinned_count()),
            next_victim,
            pages_since_checkpoint: segments.pages_since,
            map_memory_bytes: (self.core.map.leaves() * crate::format::LEAF_BYTES) as u64,
        }
    }

    /// Has the store choose how pages are packed whose tree asks for nothing, from what it
    /// measures by this clock and [`LogStore::note_processors`]. Until then it is zstd.
    pub fn adapt(&self, clock: Arc<dyn Clock>) {
        self.core.adapt.begin(clock);
    }

    /// Notes which share of the time of so many processors was used of late, 0 to 1: a few times a
    /// second.
    pub fn note_processors(&self, busy: f64, processors: usize) {
        self.core.adapt.note_processors(busy, processors as f64, self.is_disk_full());
    }

    /// How pages are packed now whose tree asks for nothing, and why.
    #[must_use]
    pub fn codec_choice(&self) -> Choice {
        self.core.adapt.choice()
    }

    /// What the store has done.
    #[must_use]
    pub fn stats(&self) -> &LogStoreStats {
        &self.core.stats
    }

    /// Segments that hold something that is needed, or are appended to.
    #[must_use]
    pub fn used_segments(&self) -> usize {
        let segments = self.core.segments.lock();
        segments.list.iter().filter(|s| matches!(s.status, Status::Open | Status::Closed)).count()
    }
}
