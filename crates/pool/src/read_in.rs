//! From disk into a frame: one page, many at once, or a fresh one that is not read at all.
use weir_base::PageNo;

use crate::backoff::Backoff;
use crate::error::PoolError;
use crate::guard::Exclusive;
use crate::latch::{Latch, Word};
use crate::pool::Pool;
use crate::store::StoreRead;

/// Pages read in one batch, at most; and at most this part of a small pool, whose frames others
/// need.
const BATCH_PAGES: u64 = 64;
const BATCH_POOL_SHARE: u64 = 8;

/// An absent page whose latch is held, and the frame that it is to go to.
struct Coming {
    page: PageNo,
    word: Word,
    frame: u32,
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
        if page.0 >= self.store.pages() && self.owed.find(page).is_none() {
            return Err(PoolError::NoSuchPage(page));
        }
        let frame = self.take_frame()?;
        if !latch.try_exclusive(word) {
            self.return_frame(frame);
            return Ok(None);
        }
        if let Err(e) = self.read_one(page, frame) {
            latch.release(word, None, false);
            self.return_frame(frame);
            return Err(e);
        }
        Ok(Some(self.attach(page, word, frame)))
    }

    /// Fills a frame that no word names with a page whose latch is held.
    fn read_one(&self, page: PageNo, frame: u32) -> Result<(), PoolError> {
        // SAFETY: the frame was taken from the free list: no page word names it.
        let bytes = unsafe { self.frames.bytes(frame) };
        let owed = self.owed.find(page);
        if owed.as_ref().is_some_and(|owed| owed.makes()) {
            bytes.fill(0);
        } else {
            self.store.read(page, bytes)?;
            self.stats.reads.add(1);
        }
        match owed {
            Some(owed) => self.bring_forward(&owed, frame, bytes),
            None => {
                self.install(page, frame);
                Ok(())
            }
        }
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
        // A load is a change of the word: readers who saw the page absent look again anyway, but
        // the version must differ from the one the page had when it was last in memory.
        held.invalidate();
        held
    }

    /// Takes a page that is about to be formatted: what it held before does not matter and is not
    /// read, unless it is owed redo: then what was owed must not come later.
    ///
    /// # Errors
    /// [`PoolError::NoSuchPage`]; [`PoolError::Halted`] when no frame can be freed any more; those
    /// of [`Pool::exclusive`].
    pub fn fresh(&self, page: PageNo) -> Result<Exclusive<'_>, PoolError> {
        if self.owed.find(page).is_some() {
            return self.exclusive(page);
        }
        let latch = self.latch(page).ok_or(PoolError::NoSuchPage(page))?;
        let mut backoff = Backoff::default();
        loop {
            let word = latch.load();
            if !word.is_exclusive() && latch.try_exclusive(word) {
                if let Some(frame) = word.frame() {
                    return Ok(Exclusive::new(self, page, word, frame));
                }
                let frame = self.take_frame().inspect_err(|_| {
                    latch.release(word, None, false);
                })?;
                // SAFETY: the frame was taken from the free list: no page word names it.
                unsafe { self.frames.bytes(frame) }.fill(0);
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
        let frames = u64::from(self.frames.count());
        let batch = (frames / BATCH_POOL_SHARE).clamp(1, BATCH_PAGES) as usize;
        let mut result = Ok(());
        for pages in pages.chunks(batch) {
            result = result.and(self.bring_batch(pages));
        }
        result
    }

    fn bring_batch(&self, pages: &[PageNo]) -> Result<(), PoolError> {
        let (coming, mut result) = self.take_absent(pages);
        let mut outcomes: Vec<(PageNo, Result<(), PoolError>)> = {
            let is_read = |page| !self.owed.find(page).is_some_and(|owed| owed.makes());
            let mut reads: Vec<StoreRead<'_>> = coming
                .iter()
                .filter(|come| is_read(come.page))
                .map(|come| {
                    // SAFETY: the frame was taken from the free list: no page word names it.
                    let buf = unsafe { self.frames.bytes(come.frame) };
                    StoreRead { page: come.page, buf, outcome: Ok(()) }
                })
                .collect();
            self.store.read_many(&mut reads);
            self.stats.reads.add(reads.len() as u64);
            reads.into_iter().map(|read| (read.page, read.outcome)).collect()
        };
        outcomes.reverse();
        for come in coming {
            let was_read = outcomes.last().is_some_and(|read| read.0 == come.page);
            let read = if was_read { outcomes.pop() } else { None };
            let arrived = self.arrive(&come, read.map(|read| read.1));
            if let Err(e) = arrived {
                if let Some(latch) = self.latch(come.page) {
                    latch.release(come.word, None, false);
                }
                self.return_frame(come.frame);
                result = result.and(Err(e));
            }
        }
        result
    }

    /// Takes the latches of those pages that are absent and free, and a frame for each.
    fn take_absent(&self, pages: &[PageNo]) -> (Vec<Coming>, Result<(), PoolError>) {
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
            let frame = match self.take_frame() {
                Ok(frame) => frame,
                Err(e) => return (coming, Err(e)),
            };
            if latch.try_exclusive(word) {
                coming.push(Coming { page, word, frame });
            } else {
                self.return_frame(frame);
            }
        }
        (coming, result)
    }

    /// A page has been read, or (`None`) is made from nothing: it gets what it is owed.
    fn arrive(&self, come: &Coming, read: Option<Result<(), PoolError>>) -> Result<(), PoolError> {
        // SAFETY: the frame was taken from the free list: no page word names it.
        let bytes = unsafe { self.frames.bytes(come.frame) };
        match read {
            Some(outcome) => outcome?,
            None => bytes.fill(0),
        }
        match self.owed.find(come.page) {
            Some(owed) => self.bring_forward(&owed, come.frame, bytes)?,
            None => self.install(come.page, come.frame),
        }
        drop(self.attach(come.page, come.word, come.frame));
        Ok(())
    }
}
