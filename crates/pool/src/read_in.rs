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
enum Room {
    /// Threads ask for the pages: frames are freed if need be.
    Any,
    /// No thread has asked yet: frames that will not be missed, and no other page leaves for them.
    Spare,
}

/// An absent page whose latch is held, the frame that it is to go to, and its pending redo.
struct Coming {
    page: PageNo,
    word: Word,
    frame: u32,
    pending: Option<PendingPage>,
    _held: HeldRank,
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
            result = result.and(self.bring_batch(pages, Room::Any).1);
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
            come += self.bring_batch(pages, Room::Spare).0;
        }
        self.stats.warmed.add(come);
        come
    }

    /// Pages of a batch.
    fn bring_pages(&self) -> usize {
        (u64::from(self.frames.count()) / BATCH_POOL_SHARE).clamp(1, BATCH_PAGES) as usize
    }

    /// How many have come, and the first page's error.
    fn bring_batch(&self, pages: &[PageNo], room: Room) -> (u64, Result<(), PoolError>) {
        let (coming, mut result) = self.take_absent(pages, room);
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
        let mut arrived = 0;
        for come in coming {
            let read = if come.is_read() { outcomes.next() } else { None };
            let came = self.arrive(come, read).map(drop);
            arrived += u64::from(came.is_ok());
            result = result.and(came);
        }
        (arrived, result)
    }

    /// Takes the latches of those pages that are absent and free, and a frame for each.
    fn take_absent(&self, pages: &[PageNo], room: Room) -> (Vec<Coming>, Result<(), PoolError>) {
        let mut coming = Vec::with_capacity(pages.len());
        let mut result = Ok(());
        for &page in pages {
            let Some(latch) = self.latch(page) else {
                result = result.and(Err(PoolError::NoSuchPage(page)));
                continue;
            };
            let word = latch.load();
            if word.frame().is_some() || word.is_exclusive() {
                continue;
            }
            let frame = match room {
                Room::Any => self.take_frame(),
                Room::Spare => match self.take_spare_frame() {
                    Some(frame) => Ok(frame),
                    None => return (coming, result),
                },
            };
            let frame = match frame {
                Ok(frame) => frame,
                Err(e) => return (coming, Err(e)),
            };
            if latch.try_exclusive(word) {
                coming.push(Coming {
                    page,
                    word,
                    frame,
                    pending: self.pending.find(page),
                    _held: HeldRank::got::<rank::PageLatch>(),
                });
            } else {
                self.return_frame(frame);
            }
        }
        (coming, result)
    }

    /// A page has been read, or (`None`) is made from nothing: it gets its pending redo. One that
    /// cannot be had is let go of.
    fn arrive(
        &self,
        come: Coming,
        read: Option<Result<(), PoolError>>,
    ) -> Result<Exclusive<'_>, PoolError> {
        let Coming { page, word, frame, pending, _held } = come;
        self.fill(page, frame, pending, read).inspect_err(|e| {
            self.note_lost(page, e);
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
    ) -> Result<(), PoolError> {
        // SAFETY: the frame was taken from the free list: no page word names it.
        let bytes = unsafe { self.frames.bytes_mut(frame) };
        match read {
            Some(outcome) => {
                let outcome = outcome.and_then(|()| self.check_age(page, weir_page::lsn(bytes)));
                self.stats.reads.add(u64::from(outcome.is_ok()));
                outcome.or_else(|found| self.mend(page, bytes, found))?;
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
