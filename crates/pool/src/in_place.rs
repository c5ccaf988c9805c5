//! The in-place store: page n lies at n times the page size in the file `pages`.
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use weir_base::{ALIGN, AlignedBuf, DbId, Era, Lsn, PageNo};
use weir_device::{BlockFile, ReadOp, Volume, WriteOp};

use crate::era::era_page;
use crate::error::PoolError;
use crate::store::{Growth, NoteGrowth, PageStore, PageWrite, StoreRead};
use crate::torn_write::{DoubleWriteConfig, DoubleWriteMode, PageCopy, Repair, TornWrite};

/// The file that has pages in place.
pub const IN_PLACE_FILE: &str = "pages";

/// Threads that write batches at a time: the sweeper's two lanes and the cleaner.
const CALLERS: usize = 3;

/// Writes a group of pages; `false`: the device will not do it so.
type WriteGroup<'a> = dyn Fn(&[WriteOp<'_>]) -> std::io::Result<bool> + 'a;

/// Writes all in groups of `next` (of the pages left); `false`: `write` said so of one.
fn in_groups(
    writes: &[WriteOp<'_>],
    next: &mut dyn FnMut(usize) -> usize,
    write: &WriteGroup<'_>,
) -> Result<bool, PoolError> {
    let mut left = writes;
    while !left.is_empty() {
        let (group, rest) = left.split_at(next(left.len()));
        left = rest;
        if !write(group).map_err(InPlaceStore::write_failed)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Pages at fixed places in one file, kept whole by the doublewrite area.
pub struct InPlaceStore {
    db: DbId,
    file: Arc<dyn BlockFile>,
    torn_write: TornWrite,
    page_size: usize,
    pages: AtomicU32,
    growth: Growth,
    /// The file system has not said yet that it makes no holes.
    punches: AtomicBool,
}

impl InPlaceStore {
    /// Creates the data file with room for `pages` pages.
    ///
    /// # Errors
    /// [`PoolError::Device`] when a file exists already or cannot be made.
    pub fn create(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_size: usize,
        pages: u32,
        doublewrite: DoubleWriteConfig,
    ) -> Result<Self, PoolError> {
        let failed = |e| PoolError::device(format!("creating '{IN_PLACE_FILE}'"), e);
        let file =
            volume.create(IN_PLACE_FILE, u64::from(pages) * page_size as u64).map_err(failed)?;
        file.sync().map_err(failed)?;
        Self::over(volume, db, page_size, file, doublewrite)
    }

    /// Opens the data file.
    ///
    /// # Errors
    /// [`PoolError::Device`] when a file is missing or cannot be opened.
    pub fn open(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_size: usize,
        doublewrite: DoubleWriteConfig,
    ) -> Result<Self, PoolError> {
        let file = volume
            .open(IN_PLACE_FILE)
            .map_err(|e| PoolError::device(format!("opening '{IN_PLACE_FILE}'"), e))?;
        Self::over(volume, db, page_size, file, doublewrite)
    }

    fn over(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_size: usize,
        file: Arc<dyn BlockFile>,
        doublewrite: DoubleWriteConfig,
    ) -> Result<Self, PoolError> {
        let torn_write = TornWrite::open(volume, db, page_size, doublewrite)?;
        let pages = AtomicU32::new((file.len() / page_size as u64) as u32);
        let (growth, punches) = (Growth::default(), AtomicBool::new(true));
        Ok(InPlaceStore { db, file, torn_write, page_size, pages, growth, punches })
    }

    /// The copies of pages that the doublewrite area holds, as far as they are whole. Reads only.
    #[must_use]
    pub fn doublewrite_copies(&self) -> Vec<PageCopy> {
        self.torn_write.copies()
    }

    fn offset(&self, page: PageNo) -> u64 {
        u64::from(page.0) * self.page_size as u64
    }

    /// Where pages lie, and how many bytes they are.
    fn range(&self, pages: &Range<u32>) -> (u64, u64) {
        (self.offset(PageNo(pages.start)), pages.len() as u64 * self.page_size as u64)
    }

    fn write_one(&self, page: PageNo, bytes: &[u8]) -> Result<(), PoolError> {
        let mut buf = AlignedBuf::zeroed(self.page_size);
        buf.copy_from_slice(bytes);
        self.file
            .write_at(self.offset(page), &buf)
            .map_err(|e| PoolError::device(format!("writing page {page} to '{IN_PLACE_FILE}'"), e))
    }

    fn sync(&self) -> Result<(), PoolError> {
        self.file.sync().map_err(|e| PoolError::device(format!("syncing '{IN_PLACE_FILE}'"), e))
    }

    fn verify(&self, page: PageNo, buf: &[u8]) -> Result<(), PoolError> {
        weir_page::verify(buf, self.db, page).map_err(|found| PoolError::Damaged {
            page,
            file: IN_PLACE_FILE.to_owned(),
            offset: self.offset(page),
            found,
        })
    }

    fn read_failed(page: PageNo, e: std::io::Error) -> PoolError {
        PoolError::device(format!("reading page {page} from '{IN_PLACE_FILE}'"), e)
    }

    fn write_failed(e: std::io::Error) -> PoolError {
        PoolError::device(format!("writing pages to '{IN_PLACE_FILE}'"), e)
    }

    /// Whether the device is asked to write each page whole or not at all, instead of the
    /// doublewrite area.
    fn writes_atomically(&self) -> bool {
        self.torn_write.config().mode != DoubleWriteMode::Off
            && self.file.has_atomic_writes(self.page_size)
    }

    /// The writes to their places of what [`gather`](Self::gather) gave.
    fn writes<'a>(&self, block: &'a [u8], names: &[(PageNo, Lsn)]) -> Vec<WriteOp<'a>> {
        let bytes = block[ALIGN..].chunks_exact(self.page_size);
        bytes
            .zip(names)
            .map(|(buf, &(page, _))| WriteOp { offset: self.offset(page), buf })
            .collect()
    }

    /// Copies the pages behind a header block, in file order: neighbours can merge on their way.
    fn gather(&self, pages: &[PageWrite<'_>]) -> (AlignedBuf, Vec<(PageNo, Lsn)>) {
        let mut order: Vec<&PageWrite<'_>> = pages.iter().collect();
        order.sort_by_key(|p| p.page);
        let mut block = AlignedBuf::zeroed(ALIGN + pages.len() * self.page_size);
        let mut names = Vec::with_capacity(pages.len());
        for (i, page) in order.iter().enumerate() {
            let at = ALIGN + i * self.page_size;
            block[at..at + self.page_size].copy_from_slice(page.bytes);
            names.push((page.page, page.lsn));
        }
        (block, names)
    }
}

impl PageStore for InPlaceStore {
    fn db(&self) -> DbId {
        self.db
    }

    fn page_size(&self) -> usize {
        self.page_size
    }

    fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<(), PoolError> {
        if page.0 >= self.pages() {
            return Err(PoolError::NoSuchPage(page));
        }
        self.file.read_at(self.offset(page), buf).map_err(|e| Self::read_failed(page, e))?;
        self.verify(page, buf)
    }

    fn read_many(&self, reads: &mut [StoreRead<'_>]) {
        let pages = self.pages();
        let mut ops = Vec::new();
        for read in reads.iter_mut() {
            if read.page.0 >= pages {
                read.outcome = Err(PoolError::NoSuchPage(read.page));
            } else {
                ops.push(ReadOp { offset: self.offset(read.page), buf: &mut *read.buf });
            }
        }
        ops.sort_by_key(|op| op.offset);
        let all = self.file.read_many(&mut ops);
        drop(ops);
        for read in reads.iter_mut().filter(|r| r.outcome.is_ok()) {
            read.outcome = match &all {
                Ok(()) => self.verify(read.page, read.buf),
                // Which of them failed is found out one by one.
                Err(_) => self.read(read.page, read.buf),
            };
        }
    }

    fn write_batch(
        &self,
        shard: usize,
        pages: &[PageWrite<'_>],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), PoolError> {
        assert!(pages.len() <= self.batch_max(), "POOL-4: a batch fits the doublewrite area");
        let (mut block, names) = self.gather(pages);
        let listed: Vec<PageWrite<'_>> =
            names.iter().map(|&(page, lsn)| PageWrite { page, lsn, bytes: &[] }).collect();
        // Where callers share a file of the doublewrite area, none sleeps in it.
        let is_shared = self.torn_write.config().files < CALLERS;
        let mut paced = if is_shared { 0 } else { pages.len() };
        while paced < pages.len() {
            paced += pace(pages.len() - paced).clamp(1, pages.len() - paced);
        }
        pace(0);
        let batch = self.torn_write.begin(shard, &listed)?;
        let mut next = |left: usize| if is_shared { left } else { pace(left).clamp(1, left) };
        let is_whole = self.writes_atomically() && {
            let writes = self.writes(&block, &names);
            in_groups(&writes, &mut next, &|group| self.file.write_many_atomically(group))?
        };
        if !is_whole {
            batch.protect(&mut block, &listed)?;
            let writes = self.writes(&block, &names);
            in_groups(&writes, &mut next, &|group| self.file.write_many(group).map(|()| true))?;
        }
        self.sync()?;
        batch.settle();
        Ok(())
    }

    fn write_new(&self, pages: &[PageWrite<'_>]) -> Result<(), PoolError> {
        let (block, names) = self.gather(pages);
        self.file.write_many(&self.writes(&block, &names)).map_err(Self::write_failed)
    }

    fn sync_new(&self) -> Result<(), PoolError> {
        self.sync()
    }

    fn batch_max(&self) -> usize {
        self.torn_write.config().pages
    }

    fn pages(&self) -> u32 {
        self.pages.load(Ordering::Acquire)
    }

    fn grow(&self, pages: u32) -> Result<(), PoolError> {
        let failed = |e| PoolError::device(format!("making '{IN_PLACE_FILE}' larger"), e);
        let grow = || {
            self.file.grow(u64::from(pages) * self.page_size as u64).map_err(failed)?;
            self.sync()
        };
        let publish = || self.pages.store(pages, Ordering::Release);
        self.growth.to(pages, || self.pages(), grow, publish)
    }

    fn note_growth(&self, note: Box<NoteGrowth>) {
        self.growth.set_note(note);
    }

    fn place(&self, page: PageNo) -> (String, u64) {
        (IN_PLACE_FILE.to_owned(), self.offset(page))
    }

    fn size_file(&self) -> &'static str {
        IN_PLACE_FILE
    }

    fn newest_written(&self) -> Option<(String, Lsn)> {
        self.torn_write.newest()
    }

    fn repair(&self) -> Result<Repair, PoolError> {
        let batches = self.torn_write.remembered();
        let settled = batches.iter().map(|b| b.settled).max().unwrap_or(0);
        let mut repair = Repair::default();
        let mut buf = AlignedBuf::zeroed(self.page_size);
        for batch in batches.iter().filter(|b| b.seq > settled) {
            for (i, &(page, lsn)) in batch.pages.iter().enumerate() {
                repair.checked += 1;
                let Err(damaged) = self.read(page, &mut buf) else { continue };
                let is_unwritten = match &damaged {
                    // All zeros: the crash came before the page's first write. It is old, not torn.
                    PoolError::Damaged { found, .. } => *found == weir_page::Damage::Zeroed,
                    // A drive may answer for a torn sector with an error: it is read again once it
                    // has been written.
                    PoolError::Device { .. } => false,
                    _ => return Err(damaged),
                };
                let from = i * self.page_size;
                let copy = batch.copies.get(from..from + self.page_size);
                // When the batch's own write was torn, a copy of an older batch may lie here still.
                let is_this_batch = |c: &&[u8]| {
                    weir_page::verify(c, self.db, page).is_ok() && weir_page::lsn(c) == lsn
                };
                match copy.filter(is_this_batch) {
                    Some(copy) => {
                        self.write_one(page, copy)?;
                        self.read(page, &mut buf)?;
                        repair.repaired += 1;
                    }
                    None if batch.detect_only && !is_unwritten => return Err(damaged),
                    // The batch's own write was torn, so this page was not being written: it was
                    // never written at all, or is damaged for another reason. A thread that needs
                    // it will find out.
                    None => {}
                }
            }
        }
        if repair.repaired > 0 {
            self.sync()?;
        }
        // POOL-8: with the doublewrite off from now on nothing would say that these copies are old.
        self.torn_write.forget()?;
        Ok(repair)
    }

    fn can_punch(&self) -> bool {
        self.punches.load(Ordering::Relaxed)
    }

    fn punch(&self, pages: Range<u32>) -> Result<bool, PoolError> {
        let (offset, len) = self.range(&pages);
        let punched = self
            .file
            .punch(offset, len)
            .map_err(|e| PoolError::device(format!("giving back room of '{IN_PLACE_FILE}'"), e))?;
        if !punched {
            self.punches.store(false, Ordering::Relaxed);
        }
        Ok(punched)
    }

    fn reserve(&self, pages: Range<u32>) -> Result<(), PoolError> {
        let (offset, len) = self.range(&pages);
        self.file.reserve(offset, len).map_err(|e| {
            PoolError::device(format!("taking room for pages of '{IN_PLACE_FILE}'"), e)
        })?;
        // Or after a crash the redo of a page might meet the hole again, and a full disk.
        self.sync()
    }

    fn batches_begun(&self) -> u64 {
        self.torn_write.begun()
    }

    fn settle_through(&self, batch: u64) -> Result<bool, PoolError> {
        self.torn_write.settle_through(batch)
    }

    fn file_bytes(&self) -> (u64, Option<u64>) {
        (self.file.len(), self.file.allocated_bytes())
    }

    fn copy_of(&self, page: PageNo, lsn: Lsn, buf: &mut [u8]) -> bool {
        self.torn_write.copy_of(page, lsn, buf)
    }

    fn set_era(&self, era: Era) -> Result<(), PoolError> {
        let (page, buf) = era_page(era, self.page_size, self.db);
        self.file
            .write_durable_at(self.offset(page), &buf)
            .map_err(|e| PoolError::device(format!("writing page {page} to '{IN_PLACE_FILE}'"), e))
    }
}
