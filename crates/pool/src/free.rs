//! The list of free frames, and how many of them are wanted.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use weir_base::lock::{Condvar, Mutex};
use weir_base::rank;

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
    pub(crate) fn pop(&self) -> Option<(u32, u32)> {
        let mut list = self.list.lock();
        let frame = list.free.pop()?;
        let left = list.free.len() as u32;
        // Counted under the lock: the count never falls behind the list, where it would wrap.
        self.count.store(left, Ordering::Relaxed);
        Some((frame, left))
    }

    /// A frame if more than `keep` are left then.
    pub(crate) fn pop_beyond(&self, keep: u32) -> Option<u32> {
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

    pub(crate) fn push(&self, frame: u32) {
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
    pub(crate) fn wait(&self) {
        let mut list = self.list.lock();
        if list.free.is_empty() {
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
