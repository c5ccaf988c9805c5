//! Looking at pages and taking them: from the table to a guard.
use weir_base::held::HeldRank;
use weir_base::{PageNo, rank};

use crate::backoff::Backoff;
use crate::error::PoolError;
use crate::guard::{Exclusive, Optimistic};
use crate::latch::Latch;
use crate::pool::Pool;

/// What a bounded try to take a page found.
pub(crate) enum Resident<'p> {
    HeldRank(Exclusive<'p>),
    Absent,
    Busy,
}

impl Pool {
    /// Looks at a page, reading it from disk if need be.
    ///
    /// # Errors
    /// [`PoolError::Damaged`], [`PoolError::NoSuchPage`], [`PoolError::Device`].
    #[inline]
    pub fn optimistic(&self, page: PageNo) -> Result<Optimistic<'_>, PoolError> {
        HeldRank::may_wait::<rank::PageLatch>();
        let latch = self.latch(page).ok_or(PoolError::NoSuchPage(page))?;
        let word = latch.load();
        match word.frame() {
            Some(frame) if !word.is_exclusive() => Ok(Optimistic { pool: self, page, word, frame }),
            _ => self.optimistic_slow(page, latch),
        }
    }

    /// Asks the processor to bring a page nearer, if it is in memory: a thread is about to read it.
    pub fn prefetch(&self, page: PageNo) {
        let frame = self.latch(page).and_then(|latch| latch.load().frame());
        if let Some(frame) = frame {
            self.raw(frame).prefetch();
        }
    }

    #[cold]
    fn optimistic_slow(&self, page: PageNo, latch: &Latch) -> Result<Optimistic<'_>, PoolError> {
        let mut backoff = Backoff::default();
        loop {
            let word = latch.load();
            match word.frame() {
                _ if word.is_exclusive() => backoff.wait(),
                Some(frame) => return Ok(Optimistic { pool: self, page, word, frame }),
                None => drop(self.load(page, latch, word)?),
            }
        }
    }

    /// Takes a page for this thread alone, reading it from disk if need be.
    ///
    /// # Errors
    /// As [`Pool::optimistic`].
    pub fn exclusive(&self, page: PageNo) -> Result<Exclusive<'_>, PoolError> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(held) = self.optimistic(page)?.upgrade() {
                return Ok(held);
            }
            backoff.wait();
        }
    }

    /// Takes a page if it is in memory and its holder lets go soon.
    ///
    /// Bounded (POOL-5): a thread may wait for a free frame while it holds latches, so a thread
    /// that frees frames must never wait for a latch without end.
    pub(crate) fn resident_exclusive(&self, page: PageNo) -> Resident<'_> {
        let Some(latch) = self.latch(page) else { return Resident::Absent };
        let mut backoff = Backoff::default();
        for _ in 0..40 {
            let word = latch.load();
            if !word.is_exclusive() {
                let Some(frame) = word.frame() else { return Resident::Absent };
                if latch.try_exclusive(word) {
                    return Resident::HeldRank(Exclusive::new(self, page, word, frame));
                }
            }
            backoff.wait();
        }
        Resident::Busy
    }
}
