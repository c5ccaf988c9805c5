//! The sweeper's lanes as `sweep.rs` has them: each writes one batch after the other (doublewrite,
//! then in place, in groups), sized and paced by the crate's own `Pacing`.
use super::world::{Event, PAGE_BYTES, World};
use weir_checkpoint::{Hand, LANES, Pacing, Verdict};

/// Pages that a batch has at most: the doublewrite area's usual size.
pub(crate) const BATCH_MAX: usize = 256;
/// A lane with nothing to do looks again after this long.
const REST_SECONDS: f64 = 0.005;

/// What writes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweeper {
    /// One of the model's own, not `Pacing`: see `Setup::batch_seconds`.
    Simple,
    /// The lanes of `sweep.rs`.
    Lanes,
    /// The same, but without a look at how long writes take: what the tests must reject.
    BlindLanes,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pacing: Pacing,
    batches: [Option<Batch>; LANES],
}

#[derive(Debug)]
struct Batch {
    hand: Hand,
    verdict: Verdict,
    oldest: u64,
    pages: usize,
    left: usize,
    group: usize,
    slept_from: Option<u64>,
}

impl Lanes {
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.batches.iter().flatten().map(|batch| batch.oldest).min()
    }

    /// Time that pages waited for the disk, and what batches take (`TickView::batch_micros`).
    pub(crate) fn seen(&mut self, now: f64) -> (u64, u64) {
        (self.pacing.backlogged_micros(micros(now)), self.pacing.long_micros(micros(now)))
    }
}

fn micros(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}

impl World {
    fn times(&self) -> bool {
        self.setup.sweeper == Sweeper::Lanes
    }

    /// The lane's next batch.
    pub(crate) fn lane_free(&mut self, lane: u8) {
        let now = micros(self.now);
        let rate = self.verdict.deadline_pages_per_second + self.verdict.idle_pages_per_second;
        if rate < 0.5 || self.dirty.is_empty() {
            self.lanes.pacing.rest(now);
            self.at(self.now + REST_SECONDS, Event::LaneFree(lane));
            return;
        }
        let pages = self.lanes.pacing.batch_pages(now, &self.verdict, BATCH_MAX);
        let pages = pages.min(self.dirty.len());
        let oldest = self.dirty[0].0;
        for (_, page) in self.dirty.drain(..pages) {
            self.first_modified[page as usize] = 0;
        }
        self.in_flight += pages as u64;
        let hand = self.lanes.pacing.begin(now, usize::from(lane), pages);
        let verdict = self.verdict.clone();
        let batch = Batch { hand, verdict, oldest, pages, left: pages, group: 0, slept_from: None };
        self.lanes.batches[usize::from(lane)] = Some(batch);
        self.lane_writes(lane, 1, pages as u64);
    }

    fn lane_writes(&mut self, lane: u8, ops: u64, pages: u64) {
        let (now, times) = (micros(self.now), self.times());
        let Lanes { pacing, batches } = &mut self.lanes;
        let batch = batches[usize::from(lane)].as_mut().expect("a batch in hand");
        if times {
            pacing.write_begins(now, &batch.hand);
        }
        let done = self.disk.submit_pages(self.now, ops, pages * PAGE_BYTES);
        self.at(done, Event::LaneWritten(lane));
    }

    pub(crate) fn lane_written(&mut self, lane: u8) {
        let (now, slot) = (micros(self.now), usize::from(lane));
        let Lanes { pacing, batches } = &mut self.lanes;
        let batch = batches[slot].as_mut().expect("a batch in hand");
        pacing.write_ends(now, &mut batch.hand);
        if batch.left == 0 {
            pacing.end(now, batch.hand);
            self.in_flight -= batch.pages as u64;
            self.totals.pages += batch.pages as u64;
            batches[slot] = None;
            self.lane_free(lane);
            return;
        }
        let verdict = &batch.verdict;
        batch.group = pacing.group_pages(now, &batch.hand, verdict, batch.left);
        let rate = verdict.deadline_pages_per_second + verdict.idle_pages_per_second;
        let start = pacing.due(now, &batch.hand, batch.group, rate);
        batch.slept_from = (start > now).then_some(now);
        self.at(self.now.max(start as f64 / 1e6), Event::LaneDue(lane));
    }

    pub(crate) fn lane_due(&mut self, lane: u8) {
        let now = micros(self.now);
        let Lanes { pacing, batches } = &mut self.lanes;
        let batch = batches[usize::from(lane)].as_mut().expect("a batch in hand");
        if let Some(from) = batch.slept_from.take() {
            pacing.slept(now, &mut batch.hand, now.saturating_sub(from));
        }
        batch.left -= batch.group;
        let group = batch.group as u64;
        self.lane_writes(lane, group, group);
    }
}
