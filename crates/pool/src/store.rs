//! Where pages lie on disk is a page store's business: nothing above may take a page number for a
//! file offset. The in-place store is the first; a log-structured one can stand beside it.
use weir_base::{DbId, Era, Lsn, PageNo};

use crate::error::PoolError;

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

    /// Where a page lies: the file, and the byte at which it begins.
    fn place(&self, page: PageNo) -> (String, u64);

    /// The eras that the pages may be of: the one that was noted last, and the one before it.
    fn eras(&self) -> [Result<Era, PoolError>; 2];

    /// Notes, durably, the era that the pages are of from now on: the next one after that noted
    /// last, which stays noted.
    ///
    /// # Errors
    /// [`PoolError::Device`]: it is noted or not then.
    fn set_era(&self, era: Era) -> Result<(), PoolError>;
}

/// What is called when there is room for more pages: see [`PageStore::note_growth`].
pub type NoteGrowth = dyn Fn(u32) -> std::io::Result<()> + Send + Sync;
