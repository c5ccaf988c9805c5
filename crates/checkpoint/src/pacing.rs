//! How many pages the sweeper's lanes take at a time, and when each is due. Pure, as the policy is:
//! the sweeper and the simulator of `tests/it` call the same.
use crate::batch_cost::BatchCost;
use crate::tick::Verdict;

/// Threads that write batches at one pace (docs/decisions/sweeper.md).
pub const LANES: usize = 2;

/// Pages gathered for one batch: at most this long's worth of the rate,
const BATCH_SECONDS: f64 = 0.05;
/// and at most what takes the disk this long. Longer batches make the doublewrite cheaper. But its
/// one long write keeps the log's from the disk, and while all commits wait for that, a disk that
/// is limited by operations has nothing to do: batches of 50 ms cost 16 threads an eighth of their
/// commits (docs/decisions/sweeper.md).
const BATCH_DISK_SECONDS: f64 = 0.008;
/// But not fewer than this, where they are due soon: each batch has a doublewrite, which is a write
/// and a flush, and another flush at its end. On a disk of 500 operations a second that counts
/// flushes, batches of one page cost four operations each, and from what such a disk is then seen
/// to take follows that batches must have one page. This many go into the doublewrite in one write
/// of 64 KiB, and from there in groups, between which the log has its turn.
const BATCH_PAGES_MIN: f64 = 8.0;
/// Soon: within this.
const BATCH_MIN_SECONDS: f64 = 0.2;
/// Pages handed to the device at once: this long's worth, so that they do not queue up before it.
const GROUP_SECONDS: f64 = 0.005;
/// A writer that is behind makes up for at most this much, or for what its last batch took.
const LATE_MICROS_MAX: u64 = 100_000;
/// A write that takes this long was not waiting for a short batch, whatever the disk: not even
/// where volumes work in slices of 100 ms.
const LONG_MICROS: u64 = 150_000;
/// A batch has at most so many times the pages of the last one: whether the disk answers as soon
/// as before must be seen first.
const GROWTH: f64 = 4.0;

/// Spreads pages evenly over time, measures for how long the device did not keep up, and sizes the
/// batches. All lanes of the sweeper share it.
///
/// A batch is short where the disk answers: some milliseconds of its work. Where each write takes
/// long however few pages it has (others have the disk, or it is far away), such batches would be
/// all that is written in that time; there a batch has what falls due while it is on its way.
#[derive(Clone, Debug, Default)]
pub struct Pacing {
    /// When the next page is due.
    due_micros: u64,
    /// Until when lateness has been counted, or a lane was known to wait for its turn.
    seen_micros: u64,
    backlogged_micros: u64,
    /// Pages that the lanes have in hand.
    in_hand: usize,
    /// Pages of the last batch.
    last_pages: usize,
    /// What the last batch took where a write of it took long; 0 where none did.
    long_micros: u64,
    /// Whether the last batch could not be as large as was due.
    is_clipped: bool,
    cost: BatchCost,
    /// Since when the device write of each lane has been under way.
    writes: [Option<u64>; LANES],
}

/// One lane's batch on its way, and the times of its device writes.
#[derive(Clone, Copy, Debug)]
pub struct Hand {
    lane: usize,
    pages: usize,
    /// Pages in all lanes' hands when this was taken, its own with them.
    together: usize,
    began_micros: u64,
    slept_micros: u64,
    /// What the last device write took, and what the longest.
    last_micros: u64,
    longest_micros: u64,
}

impl Pacing {
    /// Pages for the next batch, 1 to `most` (the most that a batch may have).
    pub fn batch_pages(&mut self, now_micros: u64, verdict: &Verdict, most: usize) -> usize {
        let rate = verdict.deadline_pages_per_second + verdict.idle_pages_per_second;
        let short = short_pages(rate, verdict.capacity_pages_per_second);
        self.is_clipped = false;
        let long = self.long_micros(now_micros);
        if long == 0 {
            return short.min(most).max(1);
        }
        let lanes = LANES as f64;
        // Pages that are overdue already are one batch, not a rate: writers wait for just them.
        let overdue = verdict.overdue_pages as f64 / lanes;
        // Idle writing has no deadline, and must not be in the way of new work.
        let rate = verdict.deadline_pages_per_second;
        let due = (rate * long as f64 / 1e6 / lanes).max(overdue);
        let last = self.last_pages as f64;
        let grown = (GROWTH * last).max(overdue);
        let useful = self.cost.pages_useful().map_or(f64::MAX, |pages| pages / lanes);
        let pages = due.min(grown).min(useful.max(last / 2.0)).max(short as f64).min(most as f64);
        self.is_clipped = due.min(grown) > pages + 1.0;
        (pages as usize).max(1)
    }

    /// A lane (0 to [`LANES`] - 1) has taken a batch.
    pub fn begin(&mut self, now_micros: u64, lane: usize, pages: usize) -> Hand {
        self.in_hand += pages;
        Hand {
            lane,
            pages,
            together: self.in_hand,
            began_micros: now_micros,
            slept_micros: 0,
            last_micros: 0,
            longest_micros: 0,
        }
    }

    /// How many of the `left` pages the lane hands to the device next.
    #[must_use]
    pub fn group_pages(
        &self,
        now_micros: u64,
        hand: &Hand,
        verdict: &Verdict,
        left: usize,
    ) -> usize {
        // Each group would wait as long again.
        if self.long_micros(now_micros) > 0 || hand.last_micros >= LONG_MICROS {
            return left;
        }
        let rate = verdict.deadline_pages_per_second + verdict.idle_pages_per_second;
        let most = verdict.in_flight_max.max(1) as usize;
        ((rate * GROUP_SECONDS) as usize).clamp(1, most).min(left)
    }

    /// From when on (microseconds) `pages` more may be written at this rate: the lane sleeps until
    /// then, if that is not past, and calls [`Pacing::slept`].
    pub fn due(&mut self, now_micros: u64, hand: &Hand, pages: usize, rate: f64) -> u64 {
        let step = (pages as f64 * 1e6 / rate.max(1e-3)) as u64;
        self.count_late(now_micros);
        let late_max = LATE_MICROS_MAX.max(self.long_micros).max(hand.last_micros);
        let start = self.due_micros.max(now_micros.saturating_sub(late_max));
        self.due_micros = start + step;
        self.seen_micros = self.seen_micros.max(start.max(now_micros));
        start
    }

    /// A lane has slept until its pages were due.
    pub fn slept(&mut self, now_micros: u64, hand: &mut Hand, slept_micros: u64) {
        hand.slept_micros += slept_micros;
        self.seen_micros = self.seen_micros.max(now_micros);
    }

    /// The lane's device write begins.
    pub fn write_begins(&mut self, now_micros: u64, hand: &Hand) {
        self.writes[hand.lane] = Some(now_micros);
    }

    /// The lane's device write is done, if one was under way.
    pub fn write_ends(&mut self, now_micros: u64, hand: &mut Hand) {
        if let Some(began) = self.writes[hand.lane].take() {
            hand.last_micros = now_micros.saturating_sub(began);
            hand.longest_micros = hand.longest_micros.max(hand.last_micros);
        }
    }

    /// The lane's batch is durable.
    pub fn end(&mut self, now_micros: u64, mut hand: Hand) {
        self.write_ends(now_micros, &mut hand);
        self.in_hand = self.in_hand.saturating_sub(hand.pages);
        self.last_pages = hand.pages;
        let took = now_micros.saturating_sub(hand.began_micros + hand.slept_micros);
        if hand.longest_micros >= LONG_MICROS {
            self.cost.learn(hand.together as f64, took as f64);
            self.long_micros = took;
        } else {
            (self.long_micros, self.cost) = (0, BatchCost::default());
        }
    }

    /// Nothing to write: what was due is forgotten, and idle time is no backlog.
    pub fn rest(&mut self, now_micros: u64) {
        (self.due_micros, self.seen_micros) = (now_micros, now_micros);
    }

    /// Time (cumulative, microseconds) during which pages were due and the device was still busy
    /// with earlier ones, up to now.
    pub fn backlogged_micros(&mut self, now_micros: u64) -> u64 {
        if self.in_hand > 0 {
            self.count_late(now_micros);
        }
        self.backlogged_micros
    }

    /// What batches take of late (microseconds) where the disk takes long for each write, however
    /// few pages it has, as far as is known by now; 0 where it does not.
    #[must_use]
    pub fn long_micros(&self, now_micros: u64) -> u64 {
        let since = self.writes.iter().flatten().map(|began| now_micros.saturating_sub(*began));
        let under_way = since.max().filter(|micros| *micros >= LONG_MICROS);
        self.long_micros.max(under_way.unwrap_or(0))
    }

    /// Counts lateness as it passes: a tick must not find that of a whole second at its end.
    fn count_late(&mut self, now_micros: u64) {
        // Only while no lane waits for its turn are all of them held up by the device.
        let late = now_micros.saturating_sub(self.due_micros.max(self.seen_micros));
        if late == 0 {
            return;
        }
        self.seen_micros = now_micros;
        // What falls due while writes take long goes with the next batch. Only what that has no
        // room for says that the disk takes no more.
        if self.is_clipped || self.long_micros(now_micros) == 0 {
            self.backlogged_micros += late;
        }
    }
}

/// Pages of a short batch at this rate on a disk of this capacity (0: not known yet), pages per
/// second.
fn short_pages(rate: f64, capacity: f64) -> usize {
    let by_disk = if capacity > 0.0 { capacity * BATCH_DISK_SECONDS } else { f64::INFINITY };
    let least = BATCH_PAGES_MIN.min(rate * BATCH_MIN_SECONDS);
    (rate * BATCH_SECONDS).min(by_disk).max(least).max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(rate: f64, capacity: f64) -> Verdict {
        Verdict {
            deadline_pages_per_second: rate,
            capacity_pages_per_second: capacity,
            in_flight_max: 64,
            ..Verdict::rest()
        }
    }

    #[test]
    fn a_batch_is_short_for_the_rate_and_for_the_disk() {
        let rows = [
            (0.5, 0.0, 1),
            (520.0, 0.0, 26),
            (520.0, 1750.0, 14),
            (1040.0, 1640.0, 13),
            (60.0, 1750.0, 8),
            (93.0, 113.0, 8),
            (30.0, 113.0, 6),
            (20_000.0, 30_000.0, 240),
        ];
        for (rate, capacity, pages) in rows {
            let verdict = Verdict { overdue_pages: 1000, ..verdict_of(rate, capacity) };
            let batch = Pacing::default().batch_pages(0, &verdict, 256);
            assert_eq!(batch, pages, "{rate} {capacity}");
        }
        assert_eq!(Pacing::default().batch_pages(0, &verdict_of(20_000.0, 30_000.0), 8), 8);
    }

    /// A lane writes five pages at 1000/s: says when they were due, sleeps until then.
    fn five(pacing: &mut Pacing, now: &mut u64, lane: usize) {
        let mut hand = pacing.begin(*now, lane, 5);
        let start = pacing.due(*now, &hand, 5, 1000.0);
        if start > *now {
            pacing.slept(start, &mut hand, start - *now);
            *now = start;
        }
        pacing.end(*now, hand);
    }

    #[test]
    fn pages_are_spread_over_time_whichever_lane_writes_them() {
        let (mut pacing, mut now) = (Pacing::default(), 0);
        for batch in 0..6u64 {
            five(&mut pacing, &mut now, batch as usize % LANES);
            assert_eq!(now, 5000 * batch, "five more are due every 5 ms");
        }
        assert_eq!(pacing.backlogged_micros(now), 0, "nothing was late");
    }

    #[test]
    fn time_counts_as_backlog_once_and_only_while_no_lane_waits() {
        let (mut pacing, mut now) = (Pacing::default(), 0);
        five(&mut pacing, &mut now, 0);
        now += 20_000;
        // Due at 5 ms, looked at 20 ms later; the other lane comes at the same time.
        five(&mut pacing, &mut now, 0);
        five(&mut pacing, &mut now, 1);
        assert_eq!(pacing.backlogged_micros(now), 15_000);
        // Both make up for the delay: 20 pages were due by now.
        assert_eq!(now, 20_000);
        pacing.rest(now);
        now += 50_000;
        pacing.rest(now);
        five(&mut pacing, &mut now, 0);
        assert_eq!(pacing.backlogged_micros(now), 15_000, "rest is no backlog");
    }

    #[test]
    fn backlog_is_seen_as_it_passes() {
        let mut pacing = Pacing::default();
        let hand = pacing.begin(0, 0, 5);
        assert_eq!(pacing.due(0, &hand, 5, 1000.0), 0);
        for now in [5_000, 30_000, 80_000] {
            assert_eq!(pacing.backlogged_micros(now), now - 5_000);
        }
        assert_eq!(pacing.due(100_000, &hand, 5, 1000.0), 5_000);
        assert_eq!(pacing.backlogged_micros(100_000), 95_000);
    }

    /// One batch of both lanes, side by side: a doublewrite and one write in place, each of which
    /// takes `fixed` and `page` microseconds for each page in hand. Returns the pages of a batch.
    fn batches(
        pacing: &mut Pacing,
        now: &mut u64,
        verdict: &Verdict,
        fixed: u64,
        page: u64,
    ) -> usize {
        let pages = [0, 1].map(|_| pacing.batch_pages(*now, verdict, 256));
        let mut hands = [0, 1].map(|lane| pacing.begin(*now, lane, pages[lane]));
        let took = fixed + page * (pages[0] + pages[1]) as u64;
        for write in 0..2 {
            hands.iter().for_each(|hand| pacing.write_begins(*now, hand));
            *now += took;
            for (lane, hand) in hands.iter_mut().enumerate() {
                pacing.write_ends(*now, hand);
                if write == 0 {
                    let group = pacing.group_pages(*now, hand, verdict, pages[lane]);
                    assert!(took < LONG_MICROS || group == pages[lane], "one group: {group}");
                }
            }
        }
        hands.into_iter().for_each(|hand| pacing.end(*now, hand));
        pages[0]
    }

    #[test]
    fn what_falls_due_while_writes_take_long_is_the_next_batch() {
        let (mut pacing, mut now) = (Pacing::default(), 0);
        let verdict = verdict_of(100.0, 1750.0);
        let sizes: Vec<usize> =
            (0..4).map(|_| batches(&mut pacing, &mut now, &verdict, 1_000_000, 0)).collect();
        // 100 pages/s, two seconds, two lanes.
        assert_eq!(sizes, [8, 32, 100, 100]);
        assert_eq!(pacing.backlogged_micros(now), 0, "all that is due is on its way");
        let overdue = Verdict { overdue_pages: 400, ..verdict_of(1.0, 3.0) };
        assert_eq!(pacing.batch_pages(now, &overdue, 256), 200, "one batch, not a rate");
        let idle = Verdict { idle_pages_per_second: 1000.0, ..verdict_of(0.0, 1750.0) };
        assert_eq!(pacing.batch_pages(now, &idle, 256), 14, "nothing is in a hurry");
        batches(&mut pacing, &mut now, &verdict, 1_000, 0);
        assert_eq!(pacing.batch_pages(now, &verdict, 256), 8, "short again");
    }

    #[test]
    fn a_write_under_way_counts_before_it_ends() {
        let mut pacing = Pacing::default();
        let hand = pacing.begin(0, 1, 5);
        pacing.write_begins(1_000, &hand);
        assert_eq!(pacing.long_micros(100_000), 0);
        assert_eq!(pacing.long_micros(801_000), 800_000);
        assert_eq!(
            pacing.batch_pages(801_000, &verdict_of(100.0, 1750.0), 256),
            8,
            "still the first"
        );
    }

    #[test]
    fn where_every_page_takes_its_time_batches_shrink_again() {
        let (mut pacing, mut now) = (Pacing::default(), 0);
        let verdict = verdict_of(500.0, 0.0);
        let sizes: Vec<usize> =
            (0..8).map(|_| batches(&mut pacing, &mut now, &verdict, 1_000, 10_000)).collect();
        assert_eq!(sizes, [25, 100, 50, 28, 25, 25, 25, 25]);
    }

    #[test]
    fn only_what_a_batch_has_no_room_for_waits_for_the_disk() {
        let (mut pacing, mut now) = (Pacing::default(), 0);
        let verdict = verdict_of(2000.0, 1750.0);
        for _ in 0..4 {
            batches(&mut pacing, &mut now, &verdict, 1_000_000, 0);
        }
        let hand = pacing.begin(now, 0, 256);
        pacing.due(now, &hand, 256, 2000.0);
        let before = pacing.backlogged_micros(now + 128_000);
        assert_eq!(pacing.backlogged_micros(now + 500_000) - before, 372_000);
    }
}
