//! The list of free frames, and how many of them are wanted.
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use weir_base::lock::{Condvar, Mutex};
use weir_base::rank;

/// Huge pages that are to be ready for frames that never had a page, at most,
const READY_HUGE_PAGES: u32 = 8;
/// and at most this part of the frames that have had one: a small database stays small.
const READY_SHARE: u32 = 4;

/// How long a thread that needs a frame sleeps before it looks again.
const NAP: Duration = Duration::from_millis(20);

/// The frames without a page, and how many of them there should be.
pub(crate) struct FreeFrames {
    list: Mutex<rank::FreeFrames, List>,
    count: AtomicU32,
    pub(crate) target: AtomicU32,
    pub(crate) clean_batch: AtomicU32,
    freed: Condvar,
    wanted: Mutex<rank::FramesWanted, bool>,
    wanted_signal: Condvar,
    pub(crate) manual: AtomicBool,
    /// How many lie in a huge page.
    in_huge_page: u32,
}

/// The frames without a page.
#[derive(Default)]
struct List {
    /// Those that may be taken, and had a page;
    free: Vec<u32>,
    /// and those that never had one. Not one by one: a pool may have thousands of millions.
    fresh: Range<u32>,
    /// Up to there the memory of those is there, or on its way.
    ready: u32,
    /// A frame from here on that has no page any more is not to be taken again,
    end: u32,
    /// and is here.
    gone: Vec<u32>,
}

impl List {
    fn len(&self) -> u32 {
        (self.free.len() + self.fresh.len()) as u32
    }

    fn pop(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| self.fresh.next())
    }

    /// The next of those that never had a page whose memory is to be made ready: as many as lie in
    /// a huge page, where fewer than there should be are.
    fn unready(&self, in_huge_page: u32) -> Option<Range<u32>> {
        let Range { start: used, end } = self.fresh;
        let ahead = (used / READY_SHARE).min(READY_HUGE_PAGES * in_huge_page);
        let from = self.ready.max(used).next_multiple_of(in_huge_page);
        let to = from.checked_add(in_huge_page)?;
        (to <= end && to - used <= ahead).then_some(from..to)
    }

    /// Frames from `end` on are gone.
    fn end_at(&mut self, end: u32) {
        self.end = end;
        self.ready = self.ready.min(end);
        self.gone.extend(self.free.extract_if(.., |frame| *frame >= end));
        self.gone.extend(self.fresh.start.max(end)..self.fresh.end);
        self.fresh.end = self.fresh.end.min(end).max(self.fresh.start);
    }

    fn go_on_to(&mut self, end: u32, new: Range<u32>) {
        self.end = end;
        self.free.append(&mut self.gone);
        if self.fresh.is_empty() {
            self.fresh = new;
        } else if self.fresh.end == new.start {
            self.fresh.end = new.end;
        } else {
            self.free.extend(new);
        }
    }
}

impl FreeFrames {
    /// All of `count` frames, of which so many lie in a huge page.
    pub(crate) fn new(count: u32, in_huge_page: u32, manual: bool) -> Self {
        FreeFrames {
            list: Mutex::new(List { fresh: 0..count, end: count, ..List::default() }),
            count: AtomicU32::new(count),
            target: AtomicU32::new((count / 64).max(4)),
            clean_batch: AtomicU32::new(64),
            freed: Condvar::new(),
            wanted: Mutex::new(false),
            wanted_signal: Condvar::new(),
            manual: AtomicBool::new(manual),
            in_huge_page,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// No frame from there on, up to the last, has ever had a page.
    pub(crate) fn used_end(&self) -> u32 {
        let list = self.list.lock();
        if list.fresh.end == list.end { list.fresh.start } else { list.end }
    }

    /// A free frame, and how many are left.
    pub(crate) fn pop(&self) -> Option<(u32, u32)> {
        let mut list = self.list.lock();
        let frame = list.pop()?;
        let left = list.len();
        // Counted under the lock: the count never falls behind the list, where it would wrap.
        self.count.store(left, Ordering::Relaxed);
        self.ask_for_memory(&list, frame);
        Some((frame, left))
    }

    /// Frames that never had a page, whose memory the caller makes ready: those that will be taken
    /// soon.
    pub(crate) fn take_unready(&self) -> Option<Range<u32>> {
        let mut list = self.list.lock();
        let frames = list.unready(self.in_huge_page)?;
        list.ready = frames.end;
        Some(frames)
    }

    /// A frame if more than `keep` are left then.
    pub(crate) fn pop_beyond(&self, keep: u32) -> Option<u32> {
        let mut list = self.list.lock();
        if list.len() <= keep {
            return None;
        }
        let frame = list.pop()?;
        self.count.store(list.len(), Ordering::Relaxed);
        self.ask_for_memory(&list, frame);
        Some(frame)
    }

    /// Wakes the cleaner when memory is to be made ready; `frame` was taken. Looks once for each
    /// huge page.
    fn ask_for_memory(&self, list: &List, frame: u32) {
        let is_next = frame.is_multiple_of(self.in_huge_page) && frame < list.fresh.start;
        if is_next && list.unready(self.in_huge_page).is_some() {
            self.want();
        }
    }

    /// Frames from `end` on are not to be taken any more. Those of them that have a page come to
    /// be gone as they lose it.
    pub(crate) fn end_at(&self, end: u32) {
        let mut list = self.list.lock();
        list.end_at(end);
        self.count.store(list.len(), Ordering::Relaxed);
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
    pub(crate) fn go_on_to(&self, end: u32, new: Range<u32>) {
        let mut list = self.list.lock();
        list.go_on_to(end, new);
        self.count.store(list.len(), Ordering::Relaxed);
        drop(list);
        self.freed.notify_all();
    }

    pub(crate) fn push(&self, frame: u32) {
        let mut list = self.list.lock();
        if frame >= list.end {
            list.gone.push(frame);
            return;
        }
        list.free.push(frame);
        self.count.store(list.len(), Ordering::Relaxed);
        drop(list);
        self.freed.notify_one();
    }

    /// Waits a little until there is one.
    pub(crate) fn wait(&self) {
        let mut list = self.list.lock();
        if list.len() == 0 {
            self.freed.wait_for(&mut list, NAP);
        }
    }

    pub(crate) fn want(&self) {
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

    pub(crate) fn wait_until_wanted(&self, timeout: Duration) -> bool {
        let mut wanted = self.wanted.lock();
        if !*wanted {
            self.wanted_signal.wait_for(&mut wanted, timeout);
        }
        std::mem::take(&mut *wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All frames that can be taken, in the order in which they are.
    fn take_all(frames: &FreeFrames) -> Vec<u32> {
        std::iter::from_fn(|| frames.pop().map(|(frame, _)| frame)).collect()
    }

    #[test]
    fn frames_that_had_a_page_are_taken_first_and_each_once() {
        let frames = FreeFrames::new(6, 512, true);
        assert_eq!(
            (frames.pop(), frames.pop(), frames.pop()),
            (Some((0, 5)), Some((1, 4)), Some((2, 3)))
        );
        frames.push(1);
        assert_eq!(
            (frames.count(), frames.pop_beyond(4), frames.pop_beyond(3)),
            (4, None, Some(1))
        );
        assert_eq!(take_all(&frames), [3, 4, 5]);
        assert_eq!((frames.count(), frames.pop()), (0, None));
    }

    #[test]
    fn memory_is_made_ready_ahead_of_use_a_huge_page_at_a_time() {
        let frames = FreeFrames::new(100, 4, true);
        let take = |count| assert!((0..count).all(|_| frames.pop().is_some()));
        take(15);
        assert_eq!(frames.take_unready(), None, "a quarter of what is used is no huge page");
        take(17);
        assert!(frames.wait_until_wanted(Duration::ZERO));
        assert_eq!(frames.take_unready(), Some(32..36));
        assert_eq!(frames.take_unready(), Some(36..40));
        assert_eq!(frames.take_unready(), None, "and no more than a quarter");
        assert!(!frames.wait_until_wanted(Duration::ZERO));
        // Its memory is given back, and it comes again.
        frames.end_at(38);
        frames.forget_gone();
        frames.go_on_to(100, 38..100);
        assert_eq!(frames.take_unready(), None, "the rest of one is not worth a call");
        take(6);
        assert_eq!(frames.take_unready(), Some(40..44));
        take(58);
        assert_eq!(frames.take_unready(), Some(96..100));
        assert_eq!(frames.take_unready(), None, "there are no more");
        let smaller = FreeFrames::new(1000, 4, true);
        assert!((0..900).all(|_| smaller.pop().is_some()));
        let ready: Vec<_> = std::iter::from_fn(|| smaller.take_unready()).collect();
        assert_eq!(ready.len(), 8, "no more than this, however many are used: {ready:?}");
    }

    #[test]
    fn frames_go_and_come_back() {
        let frames = FreeFrames::new(8, 512, true);
        assert!((0..6).all(|_| frames.pop().is_some()));
        frames.push(5);
        frames.push(1);
        // 5, 6 and 7 are gone; 4 has a page, and goes when it loses it.
        frames.end_at(4);
        assert_eq!((frames.gone(), frames.count()), (3, 1));
        frames.push(4);
        let mut here = vec![2, 4, 5, 6, 7];
        frames.retain_here(&mut here);
        assert_eq!((here, frames.gone()), (vec![2], 4));
        // They could not all go.
        frames.go_on_to(8, 0..0);
        let mut taken = take_all(&frames);
        taken.sort_unstable();
        assert_eq!(taken, [1, 4, 5, 6, 7]);
        // And now they do; then there are more than ever.
        [1, 4, 5, 6, 7].into_iter().for_each(|frame| frames.push(frame));
        frames.end_at(6);
        frames.forget_gone();
        frames.go_on_to(10, 6..10);
        let mut taken = take_all(&frames);
        taken.sort_unstable();
        assert_eq!(taken, [1, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn fresh_ones_go_and_come_back_as_a_stretch() {
        let frames = FreeFrames::new(100, 512, true);
        frames.end_at(50);
        assert_eq!((frames.gone(), frames.count()), (50, 50));
        frames.forget_gone();
        frames.go_on_to(80, 50..80);
        assert_eq!(frames.list.lock().fresh, 0..80);
        assert_eq!(frames.used_end(), 0);
        assert_eq!((frames.pop(), frames.used_end()), (Some((0, 79)), 1));
        assert_eq!(take_all(&frames), (1..80).collect::<Vec<_>>());
        assert_eq!(frames.used_end(), 80);
        frames.go_on_to(90, 80..90);
        assert_eq!(take_all(&frames), (80..90).collect::<Vec<_>>());
    }
}
