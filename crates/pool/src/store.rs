//! Where pages lie on disk is a page store's business: nothing above may take a page number for a
//! file offset. There is one in place, and one in segments.
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use weir_base::lock::Mutex;
use weir_base::{AlignedBuf, Clock, DbId, Era, Lsn, PageNo, Stats, TreeId, rank};

use crate::era::{ERA_PAGES, era_of};
use crate::error::PoolError;
use crate::torn_write::Repair;

/// A page to read, and where to.
pub struct StoreRead<'a> {
    /// Which page.
    pub page: PageNo,
    /// Page-sized, aligned for direct I/O.
    pub buf: &'a mut [u8],
    /// How it went; `Ok` until read.
    pub outcome: Result<(), PoolError>,
}

/// A sealed page to write.
pub struct PageWrite<'a> {
    /// Which page.
    pub page: PageNo,
    /// Its LSN.
    pub lsn: Lsn,
    /// The sealed bytes.
    pub bytes: &'a [u8],
}

/// Reads pages and writes batches of them so that a crash leaves each page whole: old or new.
pub trait PageStore: Send + Sync {
    /// Bytes a page.
    fn page_size(&self) -> usize;

    /// The database whose pages these are: each bears its mark.
    fn db(&self) -> DbId;

    /// Reads and verifies one page.
    ///
    /// # Errors
    /// [`PoolError::Damaged`], [`PoolError::NoSuchPage`] or [`PoolError::Device`].
    fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<(), PoolError>;

    /// Reads and verifies many, in whatever order suits the device; each has its own outcome.
    fn read_many(&self, reads: &mut [StoreRead<'_>]);

    /// Writes a batch of at most [`PageStore::batch_max`] pages; durable and safe from tearing when
    /// it returns. Pages go out in groups: `pace` is called before each with the pages that are
    /// left, and says how many go next, which is how the caller paces the device; and with 0 before
    /// the doublewrite. Callers with different `shard` do not wait for each other.
    ///
    /// # Errors
    /// [`PoolError::Device`]: any of the pages may be old, new, or (repaired at the next opening)
    /// torn; the engine must halt.
    fn write_batch(
        &self,
        shard: usize,
        pages: &[PageWrite<'_>],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), PoolError>;

    /// Writes pages of a database that is being made: nothing keeps them from tearing where that
    /// would cost something, and they are durable only after [`PageStore::sync_new`]. At most
    /// [`PageStore::batch_max`] pages.
    ///
    /// # Errors
    /// [`PoolError::Device`].
    fn write_new(&self, pages: &[PageWrite<'_>]) -> Result<(), PoolError> {
        self.write_batch(0, pages, &mut |left| left)
    }

    /// Makes durable what [`PageStore::write_new`] wrote.
    ///
    /// # Errors
    /// [`PoolError::Device`].
    fn sync_new(&self) -> Result<(), PoolError> {
        Ok(())
    }

    /// The most pages a batch may have.
    fn batch_max(&self) -> usize;

    /// Pages that there is room for on disk.
    fn pages(&self) -> u32;

    /// Makes room for at least `pages` pages, durably.
    ///
    /// # Errors
    /// [`PoolError::Device`], of kind `StorageFull` when the disk is full: nothing has changed
    /// then.
    fn grow(&self, pages: u32) -> Result<(), PoolError>;

    /// Has `note` called with the number of pages whenever there is room for more, before any of
    /// them is used: what it writes down tells a file that was cut short later. Once.
    fn note_growth(&self, note: Box<NoteGrowth>);

    /// Where a page lies: the file, and the byte at which it begins; byte 0 for one that lies
    /// nowhere.
    fn place(&self, page: PageNo) -> (String, u64);

    /// The file that says how many pages there are.
    fn size_file(&self) -> &'static str;

    /// What knows of the newest page that was written (a file, or a file and a place in it, in
    /// words), and that page's LSN, as of the opening. The log was durable up to there.
    fn newest_written(&self) -> Option<(String, Lsn)>;

    /// Puts right what a crash tore. Before anything else reads pages.
    ///
    /// # Errors
    /// [`PoolError::Damaged`] for a torn page without a copy (detect-only mode);
    /// [`PoolError::Device`], for a page that can not be read even when it was written again, too.
    fn repair(&self) -> Result<Repair, PoolError> {
        Ok(Repair::default())
    }

    /// Reads a whole copy of a page as it was written with `lsn` that the store may have beside the
    /// page's own place, while it is in use. `false`: it has none; `buf` means nothing then.
    fn copy_of(&self, _page: PageNo, _lsn: Lsn, _buf: &mut [u8]) -> bool {
        false
    }

    /// The eras that the pages may be of: the one that was noted last, and the one before it.
    fn eras(&self) -> [Result<Era, PoolError>; 2] {
        ERA_PAGES.map(|page| {
            let mut buf = AlignedBuf::zeroed(self.page_size());
            self.read(page, &mut buf)?;
            Ok(era_of(&buf))
        })
    }

    /// Notes, durably, the era that the pages are of from now on: the next one after that noted
    /// last, which stays noted.
    ///
    /// # Errors
    /// [`PoolError::Device`]: it is noted or not then.
    fn set_era(&self, era: Era) -> Result<(), PoolError>;

    /// Pages that may be written, however little they can be packed, before there is no room for
    /// them; `None`: each has its place. A look without a lock.
    fn room_pages(&self) -> Option<u64> {
        None
    }

    /// Whether no more room than [`PageStore::room_pages`] is to be had: the disk was full when
    /// more was asked for last.
    fn is_disk_full(&self) -> bool {
        false
    }

    /// How much of the room that a page may take when it is written comes back then, because what
    /// lies there of it now dies: from 0 to 1 in 65,535ths. It changes only when the page is
    /// written or given up. A look without a lock.
    fn gives_back(&self, _page: PageNo) -> u16 {
        0
    }

    /// Has room for `pages` page writes, without holding it.
    ///
    /// # Errors
    /// [`PoolError::Device`], of kind `StorageFull` when the disk is full: nothing has changed
    /// then.
    fn make_room(&self, _pages: u64) -> Result<(), PoolError> {
        Ok(())
    }

    /// A step of what the store has to do between writes, at `now_micros`: cleaning, say. Pages
    /// that `is_dirty` will be written anyway, and are not moved but asked for. Room for
    /// `held_pages` page writes stays; more than that may be given back to the file system.
    ///
    /// # Errors
    /// [`PoolError::Device`]: the engine must halt.
    fn upkeep(
        &self,
        _now_micros: u64,
        _held_pages: u64,
        _is_dirty: &IsDirty<'_>,
    ) -> Result<Kept, PoolError> {
        Ok(Kept::default())
    }

    /// Whether its file is larger than it need be, and upkeep makes it smaller.
    fn is_shrinking(&self) -> bool {
        false
    }

    /// Where those of `pages` lie that take room and can give it up.
    fn placed(&self, _pages: &[PageNo]) -> Vec<Placed> {
        Vec::new()
    }

    /// Gives up pages that have not been in use since the change `lsn`, which the log's checkpoint
    /// has passed; each only if it still lies where it was found. Durable when it returns; how many
    /// it was done for.
    ///
    /// # Errors
    /// [`PoolError::Device`]: the engine must halt.
    fn give_up(&self, _pages: &[Placed], _lsn: Lsn) -> Result<u64, PoolError> {
        Ok(0)
    }

    /// Whether pages that are not in use can give their room back where they lie, as far as is
    /// known.
    fn can_punch(&self) -> bool {
        false
    }

    /// Gives back the room of pages that are not in use, nor on their way: they read as pages that
    /// were never written. None may be written before [`PageStore::reserve`] has been called.
    /// `false`: that cannot be done here, and nothing has changed.
    ///
    /// # Errors
    /// [`PoolError::Device`]; of kind `StorageFull` where giving back takes room: all is as it was.
    fn punch(&self, _pages: Range<u32>) -> Result<bool, PoolError> {
        Ok(false)
    }

    /// Has room for these pages, durably, whether or not they had; what lies there stays.
    ///
    /// # Errors
    /// [`PoolError::Device`], of kind `StorageFull` when the disk is full; any other: the engine
    /// must halt, as what a failed sync has lost is not known.
    fn reserve(&self, _pages: Range<u32>) -> Result<(), PoolError> {
        Ok(())
    }

    /// The number of the batch that was begun last.
    fn batches_begun(&self) -> u64 {
        0
    }

    /// Notes durably that no copy of a batch up to number `batch` is needed: their pages are all
    /// durable in their places. `false`: one of them is under way still.
    ///
    /// # Errors
    /// [`PoolError::Device`]: the engine must halt.
    fn settle_through(&self, _batch: u64) -> Result<bool, PoolError> {
        Ok(true)
    }

    /// The bytes of the file that has the pages, and those that it takes on the device, where that
    /// is known.
    fn file_bytes(&self) -> (u64, Option<u64>);

    /// Has pages of a tree packed by this codec from their next write on; `None`: as the store
    /// chooses. `false`: pages are not packed here.
    fn set_codec(&self, _tree: TreeId, _codec: Option<PageCodec>) -> bool {
        false
    }

    /// Has the store adapt to what it measures by this clock, and to
    /// [`PageStore::note_processors`], where there is something to adapt.
    fn adapt(&self, _clock: Arc<dyn Clock>) {}

    /// Notes which share of the time of the processors was used of late, 0 to 1.
    fn note_processors(&self, _busy: f64) {}

    /// What it counts, if it counts anything.
    fn counters(&self) -> Option<&dyn Stats> {
        None
    }

    /// What there is to know of a store that writes out of place.
    fn look(&self) -> Option<StoreLook> {
        None
    }
}

/// How pages are packed by a store that packs them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageCodec {
    /// Not at all.
    None,
    /// By LZ4: fast.
    Lz4,
    /// By zstd: smaller.
    Zstd,
}

impl PageCodec {
    /// All of them, in the order of their numbers.
    pub const ALL: [PageCodec; 3] = [PageCodec::None, PageCodec::Lz4, PageCodec::Zstd];

    /// Its name in commands and SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PageCodec::None => "none",
            PageCodec::Lz4 => "lz4",
            PageCodec::Zstd => "zstd",
        }
    }
}

impl std::fmt::Display for PageCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for PageCodec {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|codec| codec.name() == name);
        found.ok_or_else(|| format!("'{name}' is no codec: there are none, lz4 and zstd"))
    }
}

/// Says whether a page is in memory, changed since it was written.
pub type IsDirty<'a> = dyn Fn(PageNo) -> bool + 'a;

/// What a step of a store's upkeep did.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// It did something: another step may find more to do.
    pub did: bool,
    /// Dirty pages that are to be written soon, in this order.
    pub flush_wanted: Vec<PageNo>,
}

/// Where a page was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Which page.
    pub page: PageNo,
    /// The store's word for the place; another write of the page has another one.
    pub at: u64,
}

/// How a store that writes out of place stands, and what it has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLook {
    /// Bytes of all segments.
    pub bytes: u64,
    /// Bytes of them that are needed.
    pub live_bytes: u64,
    /// Bytes of segments that are free.
    pub free_bytes: u64,
    /// Memory that the map of pages takes, in bytes.
    pub map_bytes: u64,
    /// Pages written for the pool.
    pub pages_written: u64,
    /// Bytes of these pages as they were packed.
    pub bytes_packed: u64,
    /// Pages that the cleaner copied.
    pub pages_copied: u64,
    /// Bytes that the cleaner copied.
    pub bytes_copied: u64,
    /// Pages written for the pool that were packed: not at all, by LZ4, by zstd.
    pub pages_by_codec: [u64; 3],
    /// Trees that ask for a codec, as far as the store has to know.
    pub trees_asking: u64,
    /// How pages are packed now whose tree asks for nothing; `None`: there is no store.
    pub codec: Option<PageCodec>,
    /// Why.
    pub codec_why: &'static str,
}

/// What is called when there is room for more pages: see [`PageStore::note_growth`].
pub type NoteGrowth = dyn Fn(u32) -> std::io::Result<()> + Send + Sync;

/// How a store gets room for more pages: one thread at a time, and each time it is noted.
#[derive(Default)]
pub(crate) struct Growth {
    one_at_a_time: Mutex<rank::DataFileGrowth, ()>,
    note: OnceLock<Box<NoteGrowth>>,
}

impl Growth {
    /// Calls `grow` if there is room for fewer than `pages` pages, as `has` says; then notes it;
    /// and calls `publish` before another thread may grow.
    pub(crate) fn to(
        &self,
        pages: u32,
        has: impl Fn() -> u32,
        grow: impl FnOnce() -> Result<(), PoolError>,
        publish: impl FnOnce(),
    ) -> Result<(), PoolError> {
        let _one_at_a_time = self.one_at_a_time.lock();
        if pages <= has() {
            return Ok(());
        }
        grow()?;
        if let Some(note) = self.note.get() {
            note(pages).map_err(|e| PoolError::device("noting that there are more pages", e))?;
        }
        publish();
        Ok(())
    }

    /// As [`PageStore::note_growth`].
    pub(crate) fn set_note(&self, note: Box<NoteGrowth>) {
        let _ = self.note.set(note);
    }
}
