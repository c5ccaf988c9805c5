//! Pages verified as they lie on disk, while others read and write them: what a scrub is made of.
//!
//! The first look takes no latch, so that it holds no thread up; what it takes for damaged may be a
//! page that is being written. The second look has the page's latch: a page that is absent is not
//! on its way to disk (POOL-7, and `try_evict` lets none go that is), and one that is in memory
//! says whether it is. So only what is damaged is found damaged.
use weir_base::held::HeldRank;
use weir_base::{AlignedBuf, PageNo, rank};

use crate::access::Resident;
use crate::damages::{Mended, ScrubStats};
use crate::error::PoolError;
use crate::guard::Exclusive;
use crate::latch::Latch;
use crate::mend::page_number;
use crate::pool::Pool;
use crate::store::{PageWrite, StoreRead};
use crate::write_back::LANE;

/// What a look at a page on disk came to.
#[derive(Debug)]
pub enum OnDisk {
    /// What lies there is what was written.
    Sound,
    /// What lies there does not matter: the page is changed or made anew in memory, or is being
    /// written.
    Unsettled,
    /// It was damaged, and has been written again.
    Repaired,
    /// What lies there is not what was written, and the page is not in memory.
    Damaged(PoolError),
}

impl Pool {
    /// What verifying pages counts.
    #[must_use]
    pub fn scrub_stats(&self) -> &ScrubStats {
        &self.scrub_stats
    }

    /// Whether what lies on disk of a page matters. A look without latches.
    fn is_settled(&self, page: PageNo) -> bool {
        let Some(word) = self.latch(page).map(Latch::load) else { return false };
        let meta = word.frame().map(|frame| self.frames.meta(frame));
        !word.is_exclusive()
            && meta.is_none_or(|meta| meta.first_lsn().is_none() && !meta.writing())
            && self.pending.find(page).is_none()
    }

    /// Leaves out the pages of which it does not matter what lies on disk: they are changed in
    /// memory, on their way, or lack redo. A look without latches.
    pub fn retain_settled(&self, pages: &mut Vec<PageNo>) {
        pages.retain(|&page| self.is_settled(page));
    }

    /// Reads pages as they lie on disk, neighbours at once, and returns those that need a second
    /// look ([`Pool::look_again`]). No page comes into memory, and none leaves.
    #[must_use]
    pub fn verify(&self, pages: &[PageNo]) -> Vec<PageNo> {
        let size = self.page_size();
        let mut memory = AlignedBuf::zeroed(pages.len() * size);
        let mut reads: Vec<StoreRead<'_>> = pages
            .iter()
            .zip(memory.chunks_exact_mut(size))
            .map(|(&page, buf)| StoreRead { page, buf, outcome: Ok(()) })
            .collect();
        self.store.read_many(&mut reads);
        self.scrub_stats.verified.add(pages.len() as u64);
        let is_bad = |read: &StoreRead<'_>| {
            read.outcome.is_err() || self.check_age(read.page, weir_page::lsn(read.buf)).is_err()
        };
        reads.iter().filter(|read| is_bad(read)).map(|read| read.page).collect()
    }

    /// Reads a page as it lies on disk, under its latch. One that is damaged and is in memory is
    /// written again.
    ///
    /// # Errors
    /// Those of writing; the pool has halted then, unless the disk is full.
    pub fn look_again(&self, page: PageNo) -> Result<OnDisk, PoolError> {
        self.check_halted()?;
        self.scrub_stats.seconds.add(1);
        let Some(latch) = self.latch(page) else { return Ok(OnDisk::Unsettled) };
        let word = latch.load();
        if word.is_exclusive() {
            return Ok(OnDisk::Unsettled);
        }
        if word.frame().is_some() {
            return match self.resident_exclusive(page) {
                Resident::HeldRank(held) => self.look_resident(held),
                Resident::Absent | Resident::Busy => Ok(OnDisk::Unsettled),
            };
        }
        if !latch.try_exclusive(word) {
            return Ok(OnDisk::Unsettled);
        }
        let held = HeldRank::got::<rank::PageLatch>();
        let read = match self.pending.find(page) {
            None => self.read_to_verify(page),
            Some(_) => Ok(()),
        };
        drop(held);
        latch.release(word, None, false);
        Ok(match read {
            Ok(()) => OnDisk::Sound,
            Err(PoolError::NoSuchPage(_)) => OnDisk::Unsettled,
            Err(found) => OnDisk::Damaged(found),
        })
    }

    /// What lies on disk of a page whose latch is held.
    fn read_to_verify(&self, page: PageNo) -> Result<(), PoolError> {
        let mut buf = AlignedBuf::zeroed(self.page_size());
        self.store.read(page, &mut buf)?;
        self.check_age(page, weir_page::lsn(&buf))
    }

    fn look_resident(&self, held: Exclusive<'_>) -> Result<OnDisk, PoolError> {
        let meta = self.frames.meta(held.frame());
        if meta.first_lsn().is_some() || meta.writing() {
            return Ok(OnDisk::Unsettled);
        }
        match self.read_to_verify(held.page()) {
            Ok(()) => Ok(OnDisk::Sound),
            Err(found) => self.write_again(held, &found),
        }
    }

    /// Writes a page that is clean in memory, and damaged on disk.
    fn write_again(&self, held: Exclusive<'_>, found: &PoolError) -> Result<OnDisk, PoolError> {
        let (page, lsn, frame) = (held.page(), held.lsn(), held.frame());
        // A page that was taken to be formatted, and then was not, is none.
        if page_number(held.bytes()) != page || weir_page::check(held.bytes()).is_err() {
            return Ok(OnDisk::Unsettled);
        }
        let mut buf = AlignedBuf::zeroed(self.page_size());
        buf.copy_from_slice(held.bytes());
        // From here on the page is on its way, as one that the sweeper writes: it stays in memory,
        // and no other thread writes it.
        let meta = self.frames.meta(frame);
        meta.set_writing(true);
        drop(held);
        if let Err(full) = self.store.make_room(1).and_then(|()| self.wait_for_log(lsn)) {
            meta.set_writing(false);
            return Err(full);
        }
        weir_page::seal(&mut buf, self.store.db());
        let write = PageWrite { page, lsn, bytes: &buf };
        let written = self.store.write_batch(LANE, &[write], &mut |left| left);
        written.inspect_err(|e| self.halt(&e.to_string()))?;
        self.recent.note(page, lsn);
        meta.set_writing(false);
        if !self.is_written(page) {
            self.scrub_stats.damaged.add(1);
            self.note_mended(page, found, Mended::FromMemory);
        }
        Ok(OnDisk::Repaired)
    }

    /// Counts that a page which no thread had asked for is damaged, and has it mended from a copy
    /// or the log, or reported as lost.
    ///
    /// # Errors
    /// Those of [`Pool::look_again`].
    pub fn mend_or_report(&self, page: PageNo) -> Result<(), PoolError> {
        self.scrub_stats.damaged.add(1);
        // It is mended as it is read.
        if self.optimistic(page).is_ok() { self.write_mended(page) } else { Ok(()) }
    }

    /// Writes a page that was mended in memory, if that is possible now.
    ///
    /// # Errors
    /// Those of [`Pool::look_again`].
    pub fn write_mended(&self, page: PageNo) -> Result<(), PoolError> {
        let mut seen = self.look_again(page)?;
        if matches!(seen, OnDisk::Damaged(_)) && self.optimistic(page).is_ok() {
            // It had left memory.
            seen = self.look_again(page)?;
        }
        if !matches!(seen, OnDisk::Unsettled) {
            self.is_written(page);
        }
        Ok(())
    }
}
