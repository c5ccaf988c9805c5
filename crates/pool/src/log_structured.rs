//! The log-structured store (`weir-logstore`) as the pool sees one: out of place, packed, without a
//! doublewrite area.
use std::collections::HashMap;
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, DbId, Era, Lsn, PageNo, Stats, TreeId};
use weir_device::Volume;
use weir_logstore::format::Codec;
use weir_logstore::ids::Place;
use weir_logstore::{
    Dirty, Known, LogStore, LogStoreConfig, PageImage, PageRead, ROOT_FILE, Rebuilt, SEGMENTS_FILE,
    StoreError, Upkeep,
};
use weir_page::Damage;

use crate::era::era_page;
use crate::error::PoolError;
use crate::store::{
    Growth, IsDirty, Kept, NoteGrowth, PageCodec, PageStore, PageWrite, Placed, StoreLook,
    StoreRead,
};

/// Pages of a segment, unpacked: with pages of 8 KiB it is 1 MiB.
const SEGMENT_PAGES: usize = 128;
/// Pages of a batch: what one sync makes durable.
const BATCH_PAGES: usize = 64;

/// Pages in segments.
pub struct LogStructuredStore {
    db: DbId,
    store: LogStore,
    growth: Growth,
    upkeep: Mutex<rank::SegmentUpkeep, Upkeep>,
    /// The newest LSN of any page when the store was opened.
    newest: Lsn,
    /// How pages are packed of trees that ask for something.
    codecs: Mutex<rank::TreeCodecs, Arc<HashMap<TreeId, Codec>>>,
    /// Those that this process may use. To ask for them reads files, and the packing's policy is
    /// called several times a second.
    processors: usize,
}

/// A store that was made again of what its segments say.
pub struct RebuiltStore {
    /// With what was found.
    pub store: LogStructuredStore,
    /// Pages whose newest block is whole.
    pub pages: u64,
    /// Pages whose newest block is known to have been durable, and is damaged.
    pub pages_damaged: u64,
}

/// As a look of the cleaner's.
struct AsDirty<'a>(&'a IsDirty<'a>);

impl Dirty for AsDirty<'_> {
    fn is_dirty(&self, page: PageNo) -> bool {
        (self.0)(page)
    }
}

impl LogStructuredStore {
    /// Creates the store's files with room for `pages` pages.
    ///
    /// # Errors
    /// [`PoolError::Device`] when a file exists already or cannot be made.
    pub fn create(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_bytes: usize,
        pages: u32,
    ) -> Result<Self, PoolError> {
        let config = LogStoreConfig {
            page_bytes,
            segment_bytes: page_bytes * SEGMENT_PAGES,
            segments: LogStoreConfig::SEGMENTS_MIN,
            pages,
        };
        let store = LogStore::create(volume, db, &config).map_err(|e| failed(PageNo::NONE, e))?;
        Ok(Self::over(db, store))
    }

    /// Opens the store as it was left. Nothing is written.
    ///
    /// # Errors
    /// [`PoolError::Device`] when a file is missing or cannot be read;
    /// [`PoolError::StoreDamaged`] when one is damaged, or another database's or another version's.
    pub fn open(volume: &Arc<dyn Volume>, db: DbId) -> Result<Self, PoolError> {
        let store = LogStore::open(volume, db).map_err(|e| failed(PageNo::NONE, e))?;
        Ok(Self::over(db, store))
    }

    /// Makes the store again of what its segments say, where it does not open: as
    /// [`LogStore::rebuild`]. `page_bytes` and `pages`, the least, as they are known otherwise.
    ///
    /// # Errors
    /// As [`LogStructuredStore::open`]; nothing says how long pages or segments are.
    pub fn rebuild(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_bytes: Option<usize>,
        pages: u32,
    ) -> Result<RebuiltStore, PoolError> {
        let rebuilt = LogStore::rebuild(volume, db, Known { page_bytes, pages });
        let Rebuilt { store, pages, pages_damaged } =
            rebuilt.map_err(|e| failed(PageNo::NONE, e))?;
        Ok(RebuiltStore { store: Self::over(db, store), pages, pages_damaged })
    }

    /// The number of the database whose segments lie in a volume, as they say it themselves.
    #[must_use]
    pub fn find_db(volume: &dyn Volume) -> Option<DbId> {
        LogStore::find_db(volume)
    }

    fn over(db: DbId, store: LogStore) -> Self {
        let newest = store.newest();
        let (growth, upkeep) = (Growth::default(), Mutex::default());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let codecs = Mutex::default();
        LogStructuredStore { db, store, growth, upkeep, newest, codecs, processors }
    }

    fn verify(&self, page: PageNo, buf: &[u8]) -> Result<(), PoolError> {
        weir_page::verify(buf, self.db, page).map_err(|found| {
            let (file, offset) = self.place(page);
            PoolError::Damaged { page, file, offset, found }
        })
    }
}

fn packed_read<'a>(read: &'a mut StoreRead<'_>) -> PageRead<'a> {
    let StoreRead { page, buf, .. } = read;
    PageRead { page: *page, buf, outcome: Err(StoreError::Absent(*page)) }
}

fn image_of<'a>(write: &PageWrite<'a>, codecs: &HashMap<TreeId, Codec>) -> PageImage<'a> {
    let codec = codecs.get(&weir_page::tree_of(write.bytes)).copied();
    PageImage { page: write.page, lsn: write.lsn, bytes: write.bytes, codec }
}

fn codec_of(asked: PageCodec) -> Codec {
    match asked {
        PageCodec::None => Codec::Raw,
        PageCodec::Lz4 => Codec::Lz4,
        PageCodec::Zstd => Codec::Zstd,
    }
}

fn name_of(codec: Codec) -> PageCodec {
    match codec {
        Codec::Raw => PageCodec::None,
        Codec::Lz4 => PageCodec::Lz4,
        Codec::Zstd => PageCodec::Zstd,
    }
}

/// What the store says, in the pool's words.
fn failed(page: PageNo, e: StoreError) -> PoolError {
    let damaged = |file: &str, offset, found| {
        let file = file.to_owned();
        PoolError::Damaged { page, file, offset, found }
    };
    let words = e.to_string();
    match e {
        StoreError::NoSuchPage(page) => PoolError::NoSuchPage(page),
        StoreError::Absent(_) => damaged(SEGMENTS_FILE, 0, Damage::Zeroed),
        StoreError::Damaged { file, offset, cause, .. } if page != PageNo::NONE => {
            damaged(file, offset, Damage::Block(cause))
        }
        StoreError::Device { what, cause } => PoolError::Device { what, cause },
        StoreError::Full { .. } => {
            let cause = std::io::Error::new(std::io::ErrorKind::StorageFull, words);
            PoolError::device(format!("finding room in '{SEGMENTS_FILE}'"), cause)
        }
        StoreError::Halted(why) => PoolError::Halted(why),
        StoreError::Damaged { what, file, offset, cause } => {
            PoolError::StoreDamaged { what, file, offset, cause: cause.to_owned() }
        }
        StoreError::OtherStore { .. } | StoreError::OtherFormat(_) | StoreError::Config(_) => {
            let what = "the root of the segments".to_owned();
            PoolError::StoreDamaged { what, file: ROOT_FILE, offset: 0, cause: words }
        }
    }
}

impl PageStore for LogStructuredStore {
    fn page_size(&self) -> usize {
        self.store.page_bytes()
    }

    fn db(&self) -> DbId {
        self.db
    }

    fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<(), PoolError> {
        self.store.read(page, buf).map_err(|e| failed(page, e))?;
        self.verify(page, buf)
    }

    fn read_many(&self, reads: &mut [StoreRead<'_>]) {
        let mut packed: Vec<PageRead<'_>> = reads.iter_mut().map(packed_read).collect();
        self.store.read_many(&mut packed);
        let outcomes: Vec<_> = packed.into_iter().map(|read| read.outcome).collect();
        for (read, outcome) in reads.iter_mut().zip(outcomes) {
            read.outcome = match outcome {
                Ok(_) => self.verify(read.page, read.buf),
                Err(e) => Err(failed(read.page, e)),
            };
        }
    }

    fn write_batch(
        &self,
        _shard: usize,
        pages: &[PageWrite<'_>],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), PoolError> {
        let codecs = self.codecs.lock().clone();
        let images: Vec<PageImage<'_>> =
            pages.iter().map(|write| image_of(write, &codecs)).collect();
        self.store.write_batch(&images, pace).map_err(|e| failed(PageNo::NONE, e))
    }

    fn batch_max(&self) -> usize {
        BATCH_PAGES
    }

    fn pages(&self) -> u32 {
        self.store.pages()
    }

    fn grow(&self, pages: u32) -> Result<(), PoolError> {
        // The store says that it has them before the note does: a note is never ahead of it.
        let grow = || self.store.grow(pages).map_err(|e| failed(PageNo::NONE, e));
        self.growth.to(pages, || self.pages(), grow, || {})
    }

    fn note_growth(&self, note: Box<NoteGrowth>) {
        self.growth.set_note(note);
    }

    fn place(&self, page: PageNo) -> (String, u64) {
        let (file, offset) = self.store.place(page).unwrap_or((SEGMENTS_FILE, 0));
        (file.to_owned(), offset)
    }

    fn size_file(&self) -> &'static str {
        ROOT_FILE
    }

    fn newest_written(&self) -> Option<(String, Lsn)> {
        Some((format!("'{SEGMENTS_FILE}'"), self.newest))
    }

    fn set_era(&self, era: Era) -> Result<(), PoolError> {
        let (page, bytes) = era_page(era, self.page_size(), self.db);
        let image = PageImage { page, lsn: Lsn::ZERO, bytes: &bytes, codec: None };
        self.store.write_batch(&[image], &mut |left| left).map_err(|e| failed(page, e))
    }

    fn room_pages(&self) -> Option<u64> {
        Some(self.store.room_pages())
    }

    fn is_disk_full(&self) -> bool {
        self.store.is_disk_full()
    }

    fn gives_back(&self, page: PageNo) -> u16 {
        let share = u64::from(self.store.block_bytes(page)) * u64::from(u16::MAX);
        (share / u64::from(self.store.unpacked_bytes())) as u16
    }

    fn make_room(&self, pages: u64) -> Result<(), PoolError> {
        self.store.make_room_for(pages).map_err(|e| failed(PageNo::NONE, e))
    }

    fn upkeep(
        &self,
        now_micros: u64,
        held_pages: u64,
        is_dirty: &IsDirty<'_>,
    ) -> Result<Kept, PoolError> {
        let mut upkeep = self.upkeep.lock();
        upkeep.held_bytes = held_pages * self.page_size() as u64;
        let kept = self.store.step_upkeep(&mut upkeep, now_micros, &AsDirty(is_dirty));
        let kept = kept.map_err(|e| failed(PageNo::NONE, e))?;
        Ok(Kept { did: kept.did, flush_wanted: kept.cleaned.flush_wanted })
    }

    fn is_shrinking(&self) -> bool {
        self.upkeep.lock().is_shrinking()
    }

    fn placed(&self, pages: &[PageNo]) -> Vec<Placed> {
        let placed = |(page, place): (PageNo, Place)| Placed { page, at: place.bits() };
        self.store.placed(pages).into_iter().map(placed).collect()
    }

    fn give_up(&self, pages: &[Placed], lsn: Lsn) -> Result<u64, PoolError> {
        let pages: Vec<(PageNo, Place)> =
            pages.iter().map(|it| (it.page, Place::from_bits(it.at))).collect();
        self.store.forget_placed(&pages, lsn).map_err(|e| failed(PageNo::NONE, e))
    }

    fn file_bytes(&self) -> (u64, Option<u64>) {
        let bytes = self.store.observe().bytes;
        (bytes, Some(bytes))
    }

    fn set_codec(&self, tree: TreeId, codec: Option<PageCodec>) -> bool {
        let mut codecs = self.codecs.lock();
        if codecs.get(&tree).copied() == codec.map(codec_of) {
            return true;
        }
        let known = Arc::make_mut(&mut codecs);
        match codec {
            Some(codec) => known.insert(tree, codec_of(codec)),
            None => known.remove(&tree),
        };
        true
    }

    fn adapt(&self, clock: Arc<dyn Clock>) {
        self.store.adapt(clock);
    }

    fn note_processors(&self, busy: f64) {
        self.store.note_processors(busy, self.processors);
    }

    fn counters(&self) -> Option<&dyn Stats> {
        Some(self.store.stats())
    }

    fn look(&self) -> Option<StoreLook> {
        let (seen, stats) = (self.store.observe(), self.store.stats());
        let choice = self.store.codec_choice();
        let trees_asking = self.codecs.lock().len() as u64;
        Some(StoreLook {
            bytes: seen.bytes,
            live_bytes: seen.live_bytes,
            free_bytes: seen.free_bytes,
            map_bytes: seen.map_memory_bytes,
            pages_written: stats.pages_written.get(),
            bytes_packed: stats.bytes_packed.get(),
            pages_copied: stats.pages_copied.get(),
            bytes_copied: stats.bytes_copied.get(),
            pages_by_codec: [&stats.pages_raw, &stats.pages_lz4, &stats.pages_zstd]
                .map(|counter| counter.get()),
            trees_asking,
            codec: Some(name_of(choice.codec)),
            codec_why: choice.why.words(),
        })
    }
}
