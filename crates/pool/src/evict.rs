//! Choosing victims: two queues and a memory of what was evicted lately (S3-FIFO: Yang et al.,
//! "FIFO queues are all you need for cache eviction", SOSP 2023). A page read once, as by a scan,
//! passes through the short queue and leaves; one that is used again moves to the long one.
use std::collections::VecDeque;

use crate::frame::Frames;
use crate::table::PageTable;

/// The short queue's share of the frames.
const PROBATION_SHARE: usize = 10;
/// Eviction marks count eighths of a pool's worth of evictions.
const MARK_STEPS: u64 = 8;

pub(crate) struct Evictor {
    probation: VecDeque<u32>,
    main: VecDeque<u32>,
    frames: usize,
    evictions: u64,
}

impl Evictor {
    pub(crate) fn new(frames: u32) -> Self {
        Evictor {
            probation: VecDeque::new(),
            main: VecDeque::new(),
            frames: frames as usize,
            evictions: 0,
        }
    }

    /// There are so many frames now; those behind them are forgotten.
    pub(crate) fn set_frames(&mut self, frames: u32) {
        self.frames = frames as usize;
        self.probation.retain(|&frame| frame < frames);
        self.main.retain(|&frame| frame < frames);
    }

    fn mark_now(&self) -> u8 {
        let step = (self.frames as u64 / MARK_STEPS).max(1);
        (self.evictions / step % 255) as u8 + 1
    }

    /// A page came into `frame`. One that was evicted within the last pool's worth of evictions has
    /// shown that it is used: it goes to the long queue.
    pub(crate) fn admit(&mut self, frame: u32, page: u32, table: &PageTable) {
        let mark = table.mark(page).map_or(0, |m| m.load(std::sync::atomic::Ordering::Relaxed));
        let age = (i16::from(self.mark_now()) - i16::from(mark)).rem_euclid(255);
        if mark != 0 && age <= MARK_STEPS as i16 {
            self.main.push_back(frame);
        } else {
            self.probation.push_back(frame);
        }
    }

    /// The next frame to try to empty; it is on no queue until it is evicted or returned.
    pub(crate) fn next_victim(&mut self, frames: &Frames) -> Option<u32> {
        // Each turn of the long queue cools a frame by one; four turns suffice for any.
        for _ in 0..self.frames * 5 + 1 {
            let short = self.probation.len() * PROBATION_SHARE >= self.frames.max(PROBATION_SHARE);
            if short || self.main.is_empty() {
                let frame = self.probation.pop_front()?;
                let meta = frames.meta(frame);
                if meta.heat() == 0 {
                    return Some(frame);
                }
                meta.set_heat(0);
                self.main.push_back(frame);
            } else {
                let frame = self.main.pop_front()?;
                let meta = frames.meta(frame);
                match meta.heat() {
                    0 => return Some(frame),
                    heat => meta.set_heat(heat - 1),
                }
                self.main.push_back(frame);
            }
        }
        None
    }

    /// A victim that could not be evicted goes to the end of the long queue.
    pub(crate) fn give_back(&mut self, frame: u32) {
        if (frame as usize) < self.frames {
            self.main.push_back(frame);
        }
    }

    /// A victim that is being written and comes up again soon.
    pub(crate) fn give_back_first(&mut self, frame: u32) {
        if (frame as usize) < self.frames {
            self.main.push_front(frame);
        }
    }

    /// A victim is gone.
    pub(crate) fn evicted(&mut self, page: u32, table: &PageTable) {
        self.evictions += 1;
        table.set_mark(page, self.mark_now());
    }

    /// Of the next `sample` victims, the share that `is_dirty`.
    pub(crate) fn tail_dirty_fraction(&self, sample: usize, is_dirty: impl Fn(u32) -> bool) -> f64 {
        let tail = self.probation.iter().take(sample / 2).chain(self.main.iter().take(sample / 2));
        let (mut dirty, mut all) = (0u32, 0u32);
        for &frame in tail {
            all += 1;
            dirty += u32::from(is_dirty(frame));
        }
        if all == 0 { 0.0 } else { f64::from(dirty) / f64::from(all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::PageNo;

    /// A pool of 100 frames with a hot set of 60 pages: a scan of 10,000 pages must not push it
    /// out.
    #[test]
    fn a_scan_does_not_evict_the_hot_set() {
        let table = PageTable::new(20_000);
        table.reach(20_000).expect("memory");
        let frames = Frames::new(100, 100, 4096).expect("memory");
        let mut evictor = Evictor::new(100);
        let mut where_is = std::collections::HashMap::<u32, u32>::new();
        let mut free: Vec<u32> = (0..100).collect();
        let mut misses_of_hot = 0;
        let mut visit = |page: u32, evictor: &mut Evictor| {
            if let Some(&frame) = where_is.get(&page) {
                frames.meta(frame).touch();
                return false;
            }
            let frame = free.pop().unwrap_or_else(|| {
                let frame = evictor.next_victim(&frames).expect("a victim");
                let old = frames.meta(frame).page().0;
                where_is.remove(&old);
                evictor.evicted(old, &table);
                frame
            });
            frames.meta(frame).set_page(PageNo(page));
            frames.meta(frame).set_heat(0);
            evictor.admit(frame, page, &table);
            where_is.insert(page, frame);
            true
        };
        for round in 0..20 {
            for page in 0..60 {
                visit(page, &mut evictor);
                let _ = round;
            }
        }
        for step in 0..10_000u32 {
            visit(1_000 + step, &mut evictor);
            if visit(step % 60, &mut evictor) {
                misses_of_hot += 1;
            }
        }
        assert!(misses_of_hot < 200, "{misses_of_hot} misses of the hot set");
    }
}
