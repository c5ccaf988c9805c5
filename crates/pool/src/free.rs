//! Free frames: given out, and kept ahead of demand by the cleaner.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use weir_base::lock::{Condvar, Mutex};
use weir_base::rank;
use weir_base::{Lsn, PageNo};

use crate::error::PoolError;
use crate::pool::Pool;
use crate::write_back::Cause;

/// How long a thread that needs a frame sleeps before it looks again.
const NAP: Duration = Duration::from_millis(20);

/// The frames without a page, and how many of them there should be.
pub(crate) struct FreeFrames {
    list: Mutex<rank::FreeFrames, List>,
    count: AtomicU32,
    target: AtomicU32,
    clean_batch: AtomicU32,
    freed: Condvar,
    wanted: Mutex<rank::FramesWanted, bool>,
    wanted_signal: Condvar,
    manual: AtomicBool,
}

/// The frames without a page.
struct List {
    /// Those that may be taken.
    free: Vec<u32>,
    /// A frame from here on that has no page any more is not to be taken again,
    end: u32,
    /// and is here.
    gone: Vec<u32>,
}

impl FreeFrames {
    /// All of `count` frames.
    pub(crate) fn new(count: u32, manual: bool) -> Self {
        FreeFrames {
            list: Mutex::new(List {
                free: (0..count).rev().collect(),
                end: count,
                gone: Vec::new(),
            }),
            count: AtomicU32::new(count),
            target: AtomicU32::new((count / 64).max(4)),
            clean_batch: AtomicU32::new(64),
            freed: Condvar::new(),
            wanted: Mutex::new(false),
            wanted_signal: Condvar::new(),
            manual: AtomicBool::new(manual),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// A free frame, and how many are left.
    fn pop(&self) -> Option<(u32, u32)> {
        let mut list = self.list.lock();
        let frame = list.free.pop()?;
        let left = list.free.len() as u32;
        // Counted under the lock: the count never falls behind the list, where it would wrap.
        self.count.store(left, Ordering::Relaxed);
        Some((frame, left))
    }

    /// A frame if more than `keep` are left then.
    fn pop_beyond(&self, keep: u32) -> Option<u32> {
        let mut list = self.list.lock();
        if list.free.len() <= keep as usize {
            return None;
        }
        let frame = list.free.pop()?;
        self.count.store(list.free.len() as u32, Ordering::Relaxed);
        Some(frame)
    }

    /// Frames from `end` on are not to be taken any more. Those of them that have a page come to
    /// be gone as they lose it.
    pub(crate) fn end_at(&self, end: u32) {
        let mut list = self.list.lock();
        list.end = end;
        let List { free, gone, .. } = &mut *list;
        gone.extend(free.extract_if(.., |frame| *frame >= end));
        self.count.store(list.free.len() as u32, Ordering::Relaxed);
    }

    /// How many frames are gone.
    pub(crate) fn gone(&self) -> usize {
        self.list.lock().gone.len()
    }

    /// Whether a frame is gone, of each.
    pub(crate) fn retain_here(&self, frames: &mut Vec<u32>) {
        let gone: std::collections::HashSet<u32> = self.list.lock().gone.iter().copied().collect();
        frames.retain(|frame| !gone.contains(frame));
    }

    /// Those that are gone are forgotten: their memory is given back.
    pub(crate) fn forget_gone(&self) {
        self.list.lock().gone.clear();
    }

    /// Frames up to `end` may be taken: those that were gone, and `new` ones.
    pub(crate) fn go_on_to(&self, end: u32, new: std::ops::Range<u32>) {
        let mut list = self.list.lock();
        list.end = end;
        let List { free, gone, .. } = &mut *list;
        free.append(gone);
        free.extend(new);
        self.count.store(list.free.len() as u32, Ordering::Relaxed);
        drop(list);
        self.freed.notify_all();
    }

    fn push(&self, frame: u32) {
        let mut list = self.list.lock();
        if frame >= list.end {
            list.gone.push(frame);
            return;
        }
        list.free.push(frame);
        self.count.store(list.free.len() as u32, Ordering::Relaxed);
        drop(list);
        self.freed.notify_one();
    }

    /// Waits a little until there is one.
    fn wait(&self) {
        let mut list = self.list.lock();
        if list.free.is_empty() {
            self.freed.wait_for(&mut list, NAP);
        }
    }

    fn want(&self) {
        let mut wanted = self.wanted.lock();
        if !*wanted {
            *wanted = true;
            self.wanted_signal.notify_all();
        }
    }

    /// No thread is to wait any more: the pool has halted.
    pub(crate) fn wake_all(&self) {
        self.freed.notify_all();
        self.wanted_signal.notify_all();
    }

    fn wait_until_wanted(&self, timeout: Duration) -> bool {
        let mut wanted = self.wanted.lock();
        if !*wanted {
            self.wanted_signal.wait_for(&mut wanted, timeout);
        }
        std::mem::take(&mut *wanted)
    }
}

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
