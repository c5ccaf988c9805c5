//! Free frames: given out, and kept ahead of demand by the cleaner.
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_base::{Lsn, PageNo};

use crate::error::PoolError;
use crate::in_flight::Cause;
use crate::pool::Pool;

/// What became of a try to evict a page.
pub(crate) enum Evicted {
    Yes,
    Dirty(PageNo, Lsn),
    Busy,
}

impl Pool {
    pub(crate) fn take_frame(&self) -> Result<u32, PoolError> {
        let mut waited = false;
        loop {
            if let Some((frame, left)) = self.free.pop() {
                self.stats.frames_taken.add(1);
                if left < self.free.target.load(Ordering::Relaxed) {
                    self.free.want();
                }
                return Ok(frame);
            }
            self.check_halted()?;
            if !waited {
                waited = true;
                self.stats.free_frame_waits.add(1);
            }
            if self.is_manual() {
                self.refill(1, 1, &mut |_| {})?;
            } else {
                self.free.want();
                self.free.wait();
            }
        }
    }

    /// A frame that will not be missed. Not counted as taken: the counts foresee demand, and there
    /// is none.
    pub(crate) fn take_spare_frame(&self) -> Option<u32> {
        self.free.pop_beyond(self.kept_free())
    }

    /// Free frames that are kept for those that will ask: what the cleaner keeps, and what is taken
    /// at once before it is awake.
    fn kept_free(&self) -> u32 {
        self.free.target.load(Ordering::Relaxed) + (self.frames.count() / 64).clamp(4, 64)
    }

    /// Free frames beyond those that are kept for others: room for [`Pool::warm`].
    #[must_use]
    pub fn spare_frames(&self) -> u64 {
        u64::from(self.free.count().saturating_sub(self.kept_free()))
    }

    pub(crate) fn return_frame(&self, frame: u32) {
        self.frames.meta(frame).set_page(PageNo::NONE);
        self.free.push(frame);
    }

    /// Whether the thread that needs a frame frees it: no cleaner runs.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.free.manual.load(Ordering::Relaxed)
    }

    /// Says whether a cleaner runs.
    pub fn set_manual(&self, manual: bool) {
        self.free.manual.store(manual, Ordering::Relaxed);
    }

    /// Wakes the cleaner whether or not frames are short.
    pub fn wake_cleaner(&self) {
        self.free.want();
    }

    /// How many free frames the cleaner should keep ahead.
    pub fn set_free_target(&self, frames: u64) {
        let most = self.frames.count() / 4;
        let target = u32::try_from(frames).unwrap_or(u32::MAX).clamp(most.min(4), most.max(4));
        self.free.target.store(target, Ordering::Relaxed);
    }

    /// How many dirty victims the cleaner writes at once, at most: on a slow disk a long batch
    /// keeps readers waiting.
    pub fn set_clean_batch(&self, pages: u64) {
        self.free
            .clean_batch
            .store(u32::try_from(pages).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    /// For the cleaner's loop: waits until free frames are short, at most `timeout`.
    pub fn wait_until_wanted(&self, timeout: Duration) -> bool {
        self.free.wait_until_wanted(timeout)
    }

    /// For the cleaner's loop: has the kernel clear memory for frames that never had a page and
    /// will be taken soon. A thread that fills pages one after another would do little else.
    pub fn make_ready(&self) {
        while let Some(frames) = self.free.take_unready() {
            self.frames.populate(frames);
        }
    }

    /// The cleaner's step: evicts until the target is met, writing dirty victims in one batch.
    /// Returns whether the target is met.
    ///
    /// # Errors
    /// Those of [`Pool::write_back`].
    pub fn refill(
        &self,
        shard: usize,
        group: usize,
        pause: &mut dyn FnMut(usize),
    ) -> Result<bool, PoolError> {
        let target = self.free.target.load(Ordering::Relaxed);
        let batch =
            self.store.batch_max().min(self.free.clean_batch.load(Ordering::Relaxed) as usize);
        let mut dirty = Vec::new();
        let mut tries = self.frames.count();
        while self.free.count() < target && dirty.len() < batch && tries > 0 {
            tries -= 1;
            let Some(frame) = self.evictor.lock().next_victim(&self.frames) else { break };
            match self.try_evict(frame) {
                Evicted::Yes => {}
                Evicted::Busy => self.evictor.lock().give_back(frame),
                Evicted::Dirty(page, first) => dirty.push((frame, page, first)),
            }
        }
        if !dirty.is_empty() {
            let mut pages: Vec<(PageNo, Lsn)> = dirty.iter().map(|&(_, p, l)| (p, l)).collect();
            pages.sort_unstable();
            let written = self.write_back(shard, &pages, Cause::FreeFrames, group, pause);
            for &(frame, ..) in &dirty {
                match self.try_evict(frame) {
                    Evicted::Yes => {}
                    _ => self.evictor.lock().give_back_first(frame),
                }
            }
            written?;
        }
        Ok(self.free.count() >= target)
    }

    pub(crate) fn try_evict(&self, frame: u32) -> Evicted {
        let meta = self.frames.meta(frame);
        let page = meta.page();
        let Some(latch) = self.latch(page) else { return Evicted::Busy };
        let word = latch.load();
        if word.frame() != Some(frame) || !latch.try_exclusive(word) {
            return Evicted::Busy;
        }
        if meta.writing() {
            latch.release(word, Some(frame), false);
            return Evicted::Busy;
        }
        if let Some(first) = meta.first_lsn() {
            latch.release(word, Some(frame), false);
            return Evicted::Dirty(page, first);
        }
        // Marked before the word is let go: a reload must find the mark.
        self.evictor.lock().evicted(page.0, &self.table);
        latch.release(word, None, true);
        self.stats.evictions.add(1);
        self.return_frame(frame);
        Evicted::Yes
    }

    /// The share of dirty pages among the next victims.
    #[must_use]
    pub fn tail_dirty_fraction(&self) -> f64 {
        self.evictor
            .lock()
            .tail_dirty_fraction(256, |frame| self.frames.meta(frame).first_lsn().is_some())
    }
}
