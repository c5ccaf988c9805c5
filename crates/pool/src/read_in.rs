//! From disk into a frame: one page, many at once, or a fresh one that is not read at all.
use weir_base::held::HeldRank;
use weir_base::{Lsn, PageNo, ThreadCounts, rank};
use weir_page::Damage;

use crate::backoff::Backoff;
use crate::error::PoolError;
use crate::guard::Exclusive;
use crate::latch::{Latch, Word};
use crate::pending_list::PendingPage;
use crate::pool::{PageUse, Pool};
use crate::store::StoreRead;

/// Pages read in one batch, at most; and at most this part of a small pool, whose frames others
/// need.
const BATCH_PAGES: u64 = 64;
const BATCH_POOL_SHARE: u64 = 8;

/// Whose frames absent pages may come into.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    /// Threads ask for the pages: frames are freed if need be.
    Any,
    /// No thread has asked yet: frames that will not be missed, and no other page leaves for them.
    Spare,
    /// A scan is about to ask: frames that no thread has to be waited for, and what cannot be read
    /// is not reported (POOL-18).
    Ahead,
}

/// An absent page whose latch is held, the frame that it is to go to, and its pending redo.
struct Coming {
    page: PageNo,
    word: Word,
    frame: u32,
    pending: Option<PendingPage>,
    room: Room,
    _held: HeldRank,
}

/// What became of a batch.
pub(crate) struct Batch {
    /// So many of its first pages are there, or were passed over; there was no room for the rest.
    pub(crate) looked_at: usize,
    /// So many have come,
    pub(crate) arrived: u64,
    /// and of these so many from disk: the log made the others.
    pub(crate) read: u64,
    /// The first page's error.
    pub(crate) result: Result<(), PoolError>,
}

/// Those of some pages that are absent, their latches held.
struct Absent {
    coming: Vec<Coming>,
    /// As in [`Batch`].
    looked_at: usize,
    result: Result<(), PoolError>,
}

impl Coming {
    /// Whether what is on disk matters.
    fn is_read(&self) -> bool {
        !self.pending.as_ref().is_some_and(PendingPage::makes)
    }
}

impl Pool {
    /// Reads a page in. `None` when another thread was quicker.
    pub(crate) fn load(
        &self,
        page: PageNo,
        latch: &Latch,
        word: Word,
    ) -> Result<Option<Exclusive<'_>>, PoolError> {
        // A page beyond the end of the file may be one that the log makes.
        if page.0 >= self.store.pages() && self.pending.find(page).is_none() {
            return Err(PoolError::NoSuchPage(page));
        }
        let frame = self.take_frame()?;
        if !latch.try_exclusive(word) {
            self.return_frame(frame);
            return Ok(None);
        }
        self.asked.note(page);
        let come = Coming {
            page,
            word,
            frame,
            pending: self.pending.find(page),
            room: Room::Any,
            _held: HeldRank::got::<rank::PageLatch>(),
        };
        // SAFETY: the frame was taken from the free list: no page word names it.
        let bytes = unsafe { self.frames.bytes_mut(frame) };
        let read =
            come.is_read().then(|| ThreadCounts::reading(1, || self.store.read(page, bytes)));
        self.arrive(come, read).map(Some)
    }

    pub(crate) fn install(&self, page: PageNo, frame: u32) {
        let meta = self.frames.meta(frame);
        meta.set_page(page);
        meta.set_heat(0);
        meta.set_first_lsn(None);
        meta.set_writing(false);
    }

    /// Makes the page word, held by this thread, name `frame`; the guard goes on holding it.
    fn attach(&self, page: PageNo, word: Word, frame: u32) -> Exclusive<'_> {
        self.evictor.lock().admit(frame, page.0, &self.table);
        let mut held = Exclusive::new(self, page, word, frame);
        // A load is a change of the word: readers that saw the page absent look again anyway, but
        // the version must differ from the one the page had when it was last in memory.
        held.invalidate();
        held
    }

    /// Takes a page that is about to be formatted: what it held before does not matter and is not
    /// read, unless it has pending redo: then what was pending must not come later.
    ///
    /// # Errors
    /// [`PoolError::NoSuchPage`]; [`PoolError::Halted`] when no frame can be freed any more; those
    /// of [`Pool::exclusive`].
    pub fn fresh(&self, page: PageNo) -> Result<Exclusive<'_>, PoolError> {
        if self.pending.find(page).is_some() {
            return self.exclusive(page);
        }
        HeldRank::may_wait::<rank::PageLatch>();
        let latch = self.latch(page).ok_or(PoolError::NoSuchPage(page))?;
        let mut backoff = Backoff::default();
        loop {
            let word = latch.load();
            if !word.is_exclusive() && latch.try_exclusive(word) {
                if let Some(frame) = word.frame() {
                    return Ok(Exclusive::new(self, page, word, frame));
                }
                let _held = HeldRank::got::<rank::PageLatch>();
                let frame = self.take_frame().inspect_err(|_| {
                    latch.release(word, None, false);
                })?;
                // SAFETY: the frame was taken from the free list: no page word names it.
                unsafe { self.frames.bytes_mut(frame) }.fill(0);
                self.install(page, frame);
                return Ok(self.attach(page, word, frame));
            }
            backoff.wait();
        }
    }

    /// Reads those of the pages that are absent, in deep batches. Waits for no latch: a page that
    /// another thread has its hands on is passed over.
    ///
    /// # Errors
    /// The first page's; the others are read nevertheless.
    pub fn bring_in(&self, pages: &[PageNo]) -> Result<(), PoolError> {
        let mut result = Ok(());
        for pages in pages.chunks(self.bring_pages()) {
            result = result.and(self.bring_batch(pages, Room::Any).result);
        }
        result
    }

    /// As [`Pool::bring_in`] for pages that no thread has asked for (POOL-10): they take free
    /// frames beyond those that are kept for others, and no other page leaves for them. What cannot
    /// be read is left to a thread that needs it, which gets the error then; a page that was never
    /// written is nothing to report. Returns how many have come.
    pub fn warm(&self, pages: &[PageNo]) -> u64 {
        let mut come = 0;
        for pages in pages.chunks(self.bring_pages()) {
            come += self.bring_batch(pages, Room::Spare).arrived;
        }
        self.stats.warmed.add(come);
        come
    }

    /// Pages of a batch.
    fn bring_pages(&self) -> usize {
        (u64::from(self.frames.count()) / BATCH_POOL_SHARE).clamp(1, BATCH_PAGES) as usize
    }

    pub(crate) fn bring_batch(&self, pages: &[PageNo], room: Room) -> Batch {
        let Absent { coming, looked_at, mut result } = self.take_absent(pages, room);
        let mut reads: Vec<StoreRead<'_>> = coming
            .iter()
            .filter(|come| come.is_read())
            .map(|come| {
                // SAFETY: the frame was taken from the free list: no page word names it.
                let buf = unsafe { self.frames.bytes_mut(come.frame) };
                StoreRead { page: come.page, buf, outcome: Ok(()) }
            })
            .collect();
        let pages = reads.len() as u64;
        ThreadCounts::reading(pages, || self.store.read_many(&mut reads));
        let outcomes: Vec<_> = reads.into_iter().map(|read| read.outcome).collect();
        let mut outcomes = outcomes.into_iter();
        let (mut arrived, mut from_disk) = (0, 0);
        for come in coming {
            let read = if come.is_read() { outcomes.next() } else { None };
            let is_read = read.is_some();
            let came = self.arrive(come, read).map(drop);
            arrived += u64::from(came.is_ok());
            from_disk += u64::from(is_read && came.is_ok());
            result = result.and(came);
        }
        Batch { looked_at, arrived, read: from_disk, result }
    }

    /// Takes the latches of those pages that are absent and free, and a frame for each.
    fn take_absent(&self, pages: &[PageNo], room: Room) -> Absent {
        let mut coming = Vec::with_capacity(pages.len());
        let mut result = Ok(());
        for (looked_at, &page) in pages.iter().enumerate() {
            let Some(latch) = self.latch(page) else {
                result = result.and(Err(PoolError::NoSuchPage(page)));
                continue;
            };
            let word = latch.load();
            if word.frame().is_some() || word.is_exclusive() {
                continue;
            }
            let frame = match room {
                Room::Any => self.take_frame().map(Some),
                Room::Spare => Ok(self.take_spare_frame()),
                Room::Ahead => Ok(self.take_frame_ahead()),
            };
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => return Absent { coming, looked_at, result },
                Err(e) => return Absent { coming, looked_at, result: Err(e) },
            };
            if latch.try_exclusive(word) {
                coming.push(Coming {
                    page,
                    word,
                    frame,
                    pending: self.pending.find(page),
                    room,
                    _held: HeldRank::got::<rank::PageLatch>(),
                });
            } else {
                self.return_frame(frame);
            }
        }
        Absent { coming, looked_at: pages.len(), result }
    }

    /// A page has been read, or (`None`) is made from nothing: it gets its pending redo. One that
    /// cannot be had is let go of.
    fn arrive(
        &self,
        come: Coming,
        read: Option<Result<(), PoolError>>,
    ) -> Result<Exclusive<'_>, PoolError> {
        let Coming { page, word, frame, pending, room, _held } = come;
        // A page that was read ahead may be none of the tree's any more, and its place given up.
        let is_needed = !matches!(room, Room::Ahead);
        self.fill(page, frame, pending, read, is_needed).inspect_err(|e| {
            if is_needed {
                self.note_lost(page, e);
            }
            let latch = self.latch(page).expect("POOL-6: a held page has a word");
            latch.release(word, None, false);
            self.return_frame(frame);
        })?;
        Ok(self.attach(page, word, frame))
    }

    /// POOL-11: a page that was read is neither ahead of the durable log, which no page on disk can
    /// be (POOL-1), nor older than when it was written last.
    pub(crate) fn check_age(&self, page: PageNo, lsn: Lsn) -> Result<(), PoolError> {
        let end = self.log.durable();
        let may_be_ahead = self.page_use == PageUse::LookedAt { may_be_ahead: true };
        if lsn > end && !self.skip_log_gate && !may_be_ahead {
            return Err(self.damaged(page, Damage::Ahead { lsn, end }));
        }
        match self.recent.find(page) {
            Some(written) if written > lsn => {
                Err(self.damaged(page, Damage::LostWrite { written, found: lsn }))
            }
            _ => Ok(()),
        }
    }

    fn fill(
        &self,
        page: PageNo,
        frame: u32,
        pending: Option<PendingPage>,
        read: Option<Result<(), PoolError>>,
        is_needed: bool,
    ) -> Result<(), PoolError> {
        // SAFETY: the frame was taken from the free list: no page word names it.
        let bytes = unsafe { self.frames.bytes_mut(frame) };
        match read {
            Some(outcome) => {
                let outcome = outcome.and_then(|()| self.check_age(page, weir_page::lsn(bytes)));
                self.stats.reads.add(u64::from(outcome.is_ok()));
                outcome.or_else(|found| match is_needed {
                    true => self.mend(page, bytes, found),
                    false => Err(found),
                })?;
            }
            None => bytes.fill(0),
        }
        match pending {
            Some(pending) => self.apply_pending_to(&pending, frame, bytes),
            None => {
                self.install(page, frame);
                Ok(())
            }
        }
    }
}
