//! The doublewrite area: a batch goes there first, in one sequential write, and only then in place,
//! so that a page torn by a crash can be repaired (as in InnoDB; see `docs/durability.md`).
//!
//! Each batch has a number, and its header says up to which number all batches are settled. A copy
//! of a settled batch is never used for repair: its page may have been written again since, and
//! putting the old copy back would undo changes that the log no longer holds.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_base::lock::{Mutex, MutexGuard};
use weir_base::rank;
use weir_base::{ALIGN, AlignedBuf, DbId, Lsn, PageNo, checksum};
use weir_device::{BlockFile, Volume};

use crate::error::PoolError;
use crate::store::PageWrite;

const MAGIC: u64 = u64::from_le_bytes(*b"WEIRDBL2");
const HEADER_LEN: usize = 56;
const ENTRY_LEN: usize = 12;
/// The most pages that one header block can list.
const BATCH_MAX: usize = (ALIGN - HEADER_LEN) / ENTRY_LEN;

/// How pages are kept from tearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleWriteMode {
    /// No page stays torn: it is written atomically where the device promises that, and else twice,
    /// so that a torn one is repaired.
    On,
    /// Only the list of pages is written first: a torn one is found when the database opens.
    DetectOnly,
    /// Nothing is written first: a torn page is found when it is read. For devices that write
    /// whole pages atomically.
    Off,
}

/// The doublewrite area's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubleWriteConfig {
    /// What it does.
    pub mode: DoubleWriteMode,
    /// Files, 1 to [`FILES_MAX`](Self::FILES_MAX); batches of different writers go to different
    /// ones.
    pub files: usize,
    /// Pages a batch, 1 to [`PAGES_MAX`](Self::PAGES_MAX).
    pub pages: usize,
}

impl DoubleWriteConfig {
    /// The most files of a doublewrite area.
    pub const FILES_MAX: usize = 64;
    /// The most pages a batch: what one header block can list.
    pub const PAGES_MAX: usize = BATCH_MAX;
}

impl Default for DoubleWriteConfig {
    fn default() -> Self {
        // Batches are as long as the pace asks; only fast disks get to fill one.
        DoubleWriteConfig { mode: DoubleWriteMode::On, files: 3, pages: 256 }
    }
}

/// What was done about pages that a crash tore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Pages of unsettled batches that were looked at.
    pub checked: u64,
    /// Torn pages put right from their copies.
    pub repaired: u64,
}

/// A page as the doublewrite area remembers it.
#[derive(Clone, Debug)]
pub struct PageCopy {
    /// Which page.
    pub page: PageNo,
    /// Its LSN.
    pub lsn: Lsn,
    /// The sealed bytes.
    pub bytes: Vec<u8>,
    /// Whether it is certain that the page was not written again since.
    pub is_newest: bool,
}

/// A batch as the area remembers it.
pub(crate) struct Remembered {
    pub(crate) seq: u64,
    pub(crate) settled: u64,
    pub(crate) detect_only: bool,
    /// The greatest LSN of any page that was written until then.
    pub(crate) newest: Lsn,
    pub(crate) pages: Vec<(PageNo, Lsn)>,
    /// The copies, in the order of `pages`; empty when `detect_only`.
    pub(crate) copies: AlignedBuf,
}

struct Shard {
    file: Arc<dyn BlockFile>,
    /// The thread whose batch in this file is not settled. Found so by the next writer, it never
    /// will be: its pages may be torn, and the copies are needed.
    needed_by: Option<String>,
}

pub(crate) struct TornWrite {
    config: DoubleWriteConfig,
    db: DbId,
    page_size: usize,
    shards: Vec<Mutex<rank::DoublewriteFile, Shard>>,
    running: Mutex<rank::DoublewriteBatches, Running>,
}

#[derive(Default)]
struct Running {
    next: u64,
    /// The greatest LSN of any page that was written.
    newest: Lsn,
    unsettled: BTreeSet<u64>,
}

/// A batch on its way. Its file is not used again until it is settled.
pub(crate) struct Batch<'a> {
    area: &'a TornWrite,
    /// Which file.
    index: usize,
    /// What its header says: its number, that up to which all are settled, the newest page's LSN.
    numbers: (u64, u64, Lsn),
    shard: MutexGuard<'a, Shard>,
}

/// Where a header has the LSN of the newest page.
const NEWEST_AT: usize = 48;

fn file_name(shard: usize) -> String {
    format!("doublewrite-{shard}")
}

impl TornWrite {
    pub(crate) fn open(
        volume: &Arc<dyn Volume>,
        db: DbId,
        page_size: usize,
        config: DoubleWriteConfig,
    ) -> Result<Self, PoolError> {
        let config = DoubleWriteConfig {
            files: config.files.clamp(1, DoubleWriteConfig::FILES_MAX),
            pages: config.pages.clamp(1, BATCH_MAX),
            ..config
        };
        let len = (ALIGN + config.pages * page_size) as u64;
        let mut shards = Vec::new();
        for shard in 0.. {
            let name = file_name(shard);
            let failed = |e| PoolError::device(format!("preparing '{name}'"), e);
            let exists = volume.exists(&name).map_err(failed)?;
            // Files beyond those that are to be used: another configuration left them, and what
            // is in them may be needed for repair.
            if shard >= config.files && !exists {
                break;
            }
            let file = if exists {
                let file = volume.open(&name).map_err(failed)?;
                if file.len() < len {
                    file.grow(len).map_err(failed)?;
                    file.sync().map_err(failed)?;
                }
                file
            } else {
                volume.create(&name, len).map_err(failed)?
            };
            shards.push(Mutex::new(Shard { file, needed_by: None }));
        }
        volume
            .sync_directory()
            .map_err(|e| PoolError::device("syncing the database's directory", e))?;
        Ok(TornWrite { config, db, page_size, shards, running: Mutex::new(Running::default()) })
    }

    pub(crate) fn config(&self) -> DoubleWriteConfig {
        self.config
    }

    /// Begins a batch of `pages`, of which nothing is written yet.
    pub(crate) fn begin<'a>(
        &'a self,
        shard: usize,
        pages: &[PageWrite<'_>],
    ) -> Result<Batch<'a>, PoolError> {
        let index = shard % self.config.files;
        let mut shard = self.shards[index].lock();
        if let Some(thread) = &shard.needed_by {
            let words = format!("an earlier batch of pages was not written by the thread {thread}");
            let cause = std::io::Error::other(words);
            return Err(PoolError::device(format!("writing '{}'", file_name(index)), cause));
        }
        let thread = std::thread::current();
        shard.needed_by = Some(thread.name().unwrap_or("without a name").to_owned());
        let (seq, settled, newest) = {
            let mut running = self.running.lock();
            running.next += 1;
            running.newest = pages.iter().map(|p| p.lsn).fold(running.newest, Lsn::max);
            let seq = running.next;
            running.unsettled.insert(seq);
            (seq, running.unsettled.first().copied().unwrap_or(seq) - 1, running.newest)
        };
        Ok(Batch { area: self, index, numbers: (seq, settled, newest), shard })
    }

    fn write_header(
        &self,
        header: &mut [u8],
        (seq, settled, newest): (u64, u64, Lsn),
        pages: &[PageWrite<'_>],
    ) {
        header.fill(0);
        let detect = u32::from(self.config.mode == DoubleWriteMode::DetectOnly);
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(8, &MAGIC.to_le_bytes());
        put(16, &self.db.0.to_le_bytes());
        put(24, &seq.to_le_bytes());
        put(32, &settled.to_le_bytes());
        put(40, &(pages.len() as u32).to_le_bytes());
        put(44, &detect.to_le_bytes());
        put(NEWEST_AT, &newest.0.to_le_bytes());
        for (i, page) in pages.iter().enumerate() {
            put(HEADER_LEN + i * ENTRY_LEN, &page.page.0.to_le_bytes());
            put(HEADER_LEN + i * ENTRY_LEN + 4, &page.lsn.0.to_le_bytes());
        }
        let crc = checksum(&header[4..]);
        header[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// The last batch of each file, as far as it can be read. A header that is damaged, or that the
    /// drive answers for with an error, is no batch: either its write was torn, and then nothing
    /// was written in place yet, or it is not needed.
    pub(crate) fn remembered(&self) -> Vec<Remembered> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let mut header = AlignedBuf::zeroed(ALIGN);
            let is_read = shard.file.read_at(0, &mut header).is_ok();
            let Some(mut batch) = self.parse(&header).filter(|_| is_read) else { continue };
            let copies_len = batch.pages.len() * self.page_size;
            if !batch.detect_only && (ALIGN + copies_len) as u64 <= shard.file.len() {
                batch.copies = AlignedBuf::zeroed(copies_len);
                self.read_copies(&shard, &mut batch.copies);
            }
            found.push(batch);
        }
        let mut running = self.running.lock();
        running.next = found.iter().map(|b| b.seq).max().unwrap_or(0);
        running.newest = found.iter().map(|b| b.newest).max().unwrap_or(Lsn::ZERO);
        found
    }

    /// All whole copies, the newest of each page. A batch that came later and is not remembered any
    /// more, because another took its file, may have written a page again; one of an unsettled
    /// batch was not, since a page is in one batch at a time.
    pub(crate) fn copies(&self) -> Vec<PageCopy> {
        let batches = self.remembered();
        let settled = batches.iter().map(|b| b.settled).max().unwrap_or(0);
        let last = batches.iter().map(|b| b.seq).max().unwrap_or(0);
        let mut copies: BTreeMap<PageNo, PageCopy> = BTreeMap::new();
        for batch in &batches {
            let later = batches.iter().filter(|other| other.seq > batch.seq).count() as u64;
            let is_newest = batch.seq > settled || later == last - batch.seq;
            let all = batch.pages.iter().zip(batch.copies.chunks_exact(self.page_size));
            for (&(page, lsn), bytes) in all {
                let is_it =
                    weir_page::verify(bytes, self.db, page).is_ok() && weir_page::lsn(bytes) == lsn;
                if is_it && copies.get(&page).is_none_or(|known| known.lsn < lsn) {
                    let bytes = bytes.to_vec();
                    copies.insert(page, PageCopy { page, lsn, bytes, is_newest });
                }
            }
        }
        copies.into_values().collect()
    }

    /// Reads a whole copy of the page as it was written with `lsn`, if one is remembered, while the
    /// area is in use.
    pub(crate) fn copy_of(&self, page: PageNo, lsn: Lsn, buf: &mut [u8]) -> bool {
        let mut header = AlignedBuf::zeroed(ALIGN);
        let mut copy = AlignedBuf::zeroed(self.page_size);
        for shard in &self.shards {
            let shard = shard.lock();
            if shard.file.read_at(0, &mut header).is_err() {
                continue;
            }
            let Some(batch) = self.parse(&header).filter(|batch| !batch.detect_only) else {
                continue;
            };
            let Some(i) = batch.pages.iter().position(|&named| named == (page, lsn)) else {
                continue;
            };
            let at = (ALIGN + i * self.page_size) as u64;
            if shard.file.read_at(at, &mut copy).is_ok()
                && weir_page::verify(&copy, self.db, page).is_ok()
                && weir_page::lsn(&copy) == lsn
            {
                buf.copy_from_slice(&copy);
                return true;
            }
        }
        false
    }

    /// A copy that cannot be read stays zeros, which is no copy.
    fn read_copies(&self, shard: &Shard, copies: &mut AlignedBuf) {
        if shard.file.read_at(ALIGN as u64, copies).is_ok() {
            return;
        }
        for (i, copy) in copies.chunks_exact_mut(self.page_size).enumerate() {
            if shard.file.read_at((ALIGN + i * self.page_size) as u64, copy).is_err() {
                copy.fill(0);
            }
        }
    }

    /// The file, and where in it, whose header knows of the newest page that was written, in words,
    /// and that page's LSN: the log was durable up to there when it was written.
    pub(crate) fn newest(&self) -> Option<(String, Lsn)> {
        let mut newest = None;
        for (index, shard) in self.shards.iter().enumerate() {
            let mut header = AlignedBuf::zeroed(ALIGN);
            if shard.lock().file.read_at(0, &mut header).is_ok()
                && let Some(batch) = self.parse(&header)
            {
                newest = newest.max(Some((batch.newest, index)));
            }
        }
        newest.map(|(lsn, index)| (format!("'{}' at byte {NEWEST_AT}", file_name(index)), lsn))
    }

    /// Makes all remembered batches unusable: every page is whole in its place. That pages of the
    /// newest LSN were written stays known.
    pub(crate) fn forget(&self) -> Result<(), PoolError> {
        for (index, shard) in self.shards.iter().enumerate() {
            let shard = shard.lock();
            let mut header = AlignedBuf::zeroed(ALIGN);
            let failed = |e| PoolError::device(format!("clearing '{}'", file_name(index)), e);
            let is_read = shard.file.read_at(0, &mut header).is_ok();
            if !is_read || self.parse(&header).is_some() {
                let (seq, newest) = {
                    let running = self.running.lock();
                    (running.next, running.newest)
                };
                self.write_header(&mut header, (seq, seq, newest), &[]);
                shard.file.write_durable_at(0, &header).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The number of the batch that was begun last.
    pub(crate) fn begun(&self) -> u64 {
        self.running.lock().next
    }

    /// Notes durably that all batches up to number `batch` are settled: else one that is the last
    /// of its file counts as unsettled after a crash, however long ago that was. `false`: one of
    /// them is not settled.
    pub(crate) fn settle_through(&self, batch: u64) -> Result<bool, PoolError> {
        let newest = {
            let running = self.running.lock();
            if running.unsettled.first().is_some_and(|&first| first <= batch) {
                return Ok(false);
            }
            running.newest
        };
        if self.config.mode == DoubleWriteMode::Off {
            return Ok(true);
        }
        let Some(shard) = self.shards.first() else { return Ok(true) };
        let shard = shard.lock();
        if shard.needed_by.is_some() {
            return Ok(false);
        }
        let failed = |e| PoolError::device(format!("noting batches in '{}'", file_name(0)), e);
        let mut header = AlignedBuf::zeroed(ALIGN);
        shard.file.read_at(0, &mut header).map_err(failed)?;
        let last = self.parse(&header);
        if last.as_ref().is_some_and(|last| last.settled >= batch) {
            return Ok(true);
        }
        // The list stays: a page may be mended by its copy still.
        let (seq, newest, pages) =
            last.map_or((batch, newest, Vec::new()), |last| (last.seq, last.newest, last.pages));
        let pages: Vec<PageWrite<'_>> =
            pages.iter().map(|&(page, lsn)| PageWrite { page, lsn, bytes: &[] }).collect();
        self.write_header(&mut header, (seq, batch, newest), &pages);
        shard.file.write_durable_at(0, &header).map_err(failed)?;
        Ok(true)
    }

    fn parse(&self, header: &[u8]) -> Option<Remembered> {
        let u32_at = |at: usize| header[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let u64_at = |at: usize| header[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if u32_at(0)? != checksum(&header[4..])
            || u64_at(8)? != MAGIC
            || u64_at(16)? != self.db.0
            || u32_at(40)? as usize > BATCH_MAX
        {
            return None;
        }
        let mut pages = Vec::new();
        for i in 0..u32_at(40)? as usize {
            let at = HEADER_LEN + i * ENTRY_LEN;
            pages.push((PageNo(u32_at(at)?), Lsn(u64_at(at + 4)?)));
        }
        Some(Remembered {
            seq: u64_at(24)?,
            settled: u64_at(32)?,
            detect_only: u32_at(44)? != 0,
            newest: Lsn(u64_at(NEWEST_AT)?),
            pages,
            copies: AlignedBuf::zeroed(0),
        })
    }
}

impl Batch<'_> {
    /// Writes the batch to the area. `block` is ALIGN bytes of room for the header followed by the
    /// pages' bytes, so that one write carries both.
    pub(crate) fn protect(
        &self,
        block: &mut [u8],
        pages: &[PageWrite<'_>],
    ) -> Result<(), PoolError> {
        let len = match self.area.config.mode {
            DoubleWriteMode::Off => return Ok(()),
            DoubleWriteMode::DetectOnly => ALIGN,
            DoubleWriteMode::On => ALIGN + pages.len() * self.area.page_size,
        };
        self.area.write_header(&mut block[..ALIGN], self.numbers, pages);
        let wrote = self.shard.file.write_durable_at(0, &block[..len]);
        wrote.map_err(|e| PoolError::device(format!("writing '{}'", file_name(self.index)), e))
    }

    /// The pages are durable in place.
    pub(crate) fn settle(mut self) {
        self.shard.needed_by = None;
        self.area.running.lock().unsettled.remove(&self.numbers.0);
    }
}
