//! Obeys the verdict: writes the oldest dirty pages at the pace that was decided.
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_base::Clock;
use weir_pool::{Cause, Pool, PoolError};

use crate::policy::Verdict;

/// Pages gathered for one batch: at most this long's worth of the rate,
const BATCH_SECONDS: f64 = 0.05;
/// and at most what takes the disk this long. Longer batches make the doublewrite cheaper. But its
/// one long write keeps the log's from the disk, and while all commits wait for that, a disk that
/// is limited by operations has nothing to do: batches of 50 ms cost 16 threads an eighth of their
/// commits (docs/decisions/sweeper.md).
const BATCH_DISK_SECONDS: f64 = 0.008;
/// Pages handed to the device at once: this long's worth, so that they do not queue up before it.
const GROUP_SECONDS: f64 = 0.005;
/// A writer that is behind makes up for at most this much.
const LATE_MICROS_MAX: u64 = 100_000;

/// Spreads pages evenly over time, and measures for how long the device did not keep up. All lanes
/// of the sweeper share it.
pub(crate) struct Pace {
    due: Mutex<Due>,
    backlogged_micros: AtomicU64,
}

#[derive(Default)]
struct Due {
    /// When the next page is due.
    micros: u64,
    /// When a lane looked last.
    seen_micros: u64,
}

impl Pace {
    /// Due at once.
    #[must_use]
    pub(crate) fn new() -> Self {
        Pace { due: Mutex::new(Due::default()), backlogged_micros: AtomicU64::new(0) }
    }

    /// Time during which pages were due and the device was still busy with earlier ones.
    #[must_use]
    pub(crate) fn backlogged_micros(&self) -> u64 {
        self.backlogged_micros.load(Ordering::Relaxed)
    }

    /// Waits until `pages` more are due at this rate.
    fn wait(&self, clock: &dyn Clock, pages: usize, pages_per_second: f64) {
        let now = clock.now_micros();
        let step = (pages as f64 * 1e6 / pages_per_second.max(1e-3)) as u64;
        let start = {
            let mut due = self.due.lock();
            // Only while no lane waits for its turn are all of them held up by the device.
            let late = now.saturating_sub(due.micros.max(due.seen_micros));
            self.backlogged_micros.fetch_add(late, Ordering::Relaxed);
            let start = due.micros.max(now.saturating_sub(LATE_MICROS_MAX));
            due.micros = start + step;
            due.seen_micros = due.seen_micros.max(start.max(now));
            start
        };
        if start > now {
            clock.sleep_micros(start - now);
            let mut due = self.due.lock();
            due.seen_micros = due.seen_micros.max(clock.now_micros());
        }
    }

    /// Nothing to write: what was due is forgotten, and idle time is no backlog.
    fn rest(&self, clock: &dyn Clock) {
        let now = clock.now_micros();
        *self.due.lock() = Due { micros: now, seen_micros: now };
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

/// Pages of a batch at this rate on a disk of this capacity (0: not known yet), pages per second.
fn batch_pages(rate: f64, capacity: f64) -> usize {
    let by_disk = if capacity > 0.0 { capacity * BATCH_DISK_SECONDS } else { f64::INFINITY };
    (rate * BATCH_SECONDS).min(by_disk).max(1.0) as usize
}

/// The sweeper's step: writes one batch, pacing itself. Returns pages written; 0 means that there
/// is nothing to do for now.
///
/// # Errors
/// Those of [`Pool::write_back`]: the engine must halt.
pub(crate) fn sweep(
    pool: &Pool,
    clock: &dyn Clock,
    pace: &Pace,
    verdict: &Verdict,
    shard: usize,
) -> Result<usize, PoolError> {
    let idle = verdict.idle_pages_per_second;
    let rate = verdict.deadline_pages_per_second + idle;
    if rate < 0.5 {
        pace.rest(clock);
        return Ok(0);
    }
    let cause =
        if idle > verdict.deadline_pages_per_second { Cause::Idle } else { Cause::Deadline };
    let batch = batch_pages(rate, verdict.capacity_pages_per_second).min(pool.store().batch_max());
    let pages = pool.take_oldest(batch, pool.log().published());
    if pages.is_empty() {
        pace.rest(clock);
        return Ok(0);
    }
    let group = ((rate * GROUP_SECONDS) as usize).clamp(1, verdict.in_flight_max.max(1) as usize);
    let mut pause = |pages: usize| {
        if pages > 0 {
            pace.wait(clock, pages, rate);
        }
    };
    let written = pool.write_back(shard, &pages, cause, group, &mut pause)?;
    Ok(written.pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::ManualClock;

    #[test]
    fn a_batch_is_short_for_the_rate_and_for_the_disk() {
        let rows = [
            (0.5, 0.0, 1),
            (520.0, 0.0, 26),
            (520.0, 1750.0, 14),
            (1040.0, 1640.0, 13),
            (60.0, 1750.0, 3),
        ];
        for (rate, capacity, pages) in rows {
            assert_eq!(batch_pages(rate, capacity), pages, "{rate} {capacity}");
        }
        assert_eq!(batch_pages(20_000.0, 30_000.0), 240);
    }

    #[test]
    fn pages_are_spread_over_time_whichever_lane_writes_them() {
        let (pace, clock) = (Pace::new(), ManualClock::default());
        for lane in 0..6u64 {
            pace.wait(&clock, 5, 1000.0);
            assert_eq!(clock.now_micros(), 5000 * lane, "five more are due every 5 ms");
        }
        assert_eq!(pace.backlogged_micros(), 0, "nobody was late");
    }

    #[test]
    fn time_counts_as_backlog_once_and_only_while_no_lane_waits() {
        let (pace, clock) = (Pace::new(), ManualClock::default());
        pace.wait(&clock, 5, 1000.0);
        clock.sleep_micros(20_000);
        // Due at 5 ms, looked at 20 ms later; the other lane comes at the same time.
        pace.wait(&clock, 5, 1000.0);
        pace.wait(&clock, 5, 1000.0);
        assert_eq!(pace.backlogged_micros(), 15_000);
        // Both make up for the delay: 20 pages were due by now.
        assert_eq!(clock.now_micros(), 20_000);
        pace.rest(&clock);
        clock.sleep_micros(50_000);
        pace.rest(&clock);
        pace.wait(&clock, 5, 1000.0);
        assert_eq!(pace.backlogged_micros(), 15_000, "rest is no backlog");
    }
}
