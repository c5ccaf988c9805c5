//! Obeys the verdict: writes the oldest dirty pages at the pace that was decided.
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::Clock;
use weir_pool::{Cause, Pool, PoolError};

use crate::policy::Verdict;

/// Pages gathered for one batch: this long's worth of the rate. Longer batches make the
/// doublewrite cheaper, shorter ones let the log's writes through sooner.
const BATCH_SECONDS: f64 = 0.05;
/// Pages handed to the device at once: this long's worth, so that they do not queue up before it.
const GROUP_SECONDS: f64 = 0.005;
/// A writer that is behind makes up for at most this much.
const LATE_MICROS_MAX: u64 = 100_000;

/// Spreads pages evenly over time, and measures for how long the device did not keep up.
pub(crate) struct Pace {
    due_micros: AtomicU64,
    seen_micros: AtomicU64,
    backlogged_micros: AtomicU64,
}

impl Pace {
    /// Due at once.
    #[must_use]
    pub(crate) fn new() -> Self {
        Pace {
            due_micros: AtomicU64::new(0),
            seen_micros: AtomicU64::new(0),
            backlogged_micros: AtomicU64::new(0),
        }
    }

    /// Time during which pages were due and the device was still busy with earlier ones.
    #[must_use]
    pub(crate) fn backlogged_micros(&self) -> u64 {
        self.backlogged_micros.load(Ordering::Relaxed)
    }

    /// Waits until `pages` more are due at this rate.
    fn wait(&self, clock: &dyn Clock, pages: usize, pages_per_second: f64) {
        let now = clock.now_micros();
        let due = self.due_micros.load(Ordering::Relaxed);
        let seen = self.seen_micros.swap(now, Ordering::Relaxed);
        if now > due {
            let late = now - due.max(seen);
            self.backlogged_micros.fetch_add(late.min(now - seen.min(now)), Ordering::Relaxed);
        }
        let step = (pages as f64 * 1e6 / pages_per_second.max(1e-3)) as u64;
        let start = due.max(now.saturating_sub(LATE_MICROS_MAX));
        self.due_micros.store(start + step, Ordering::Relaxed);
        if start > now {
            clock.sleep_micros(start - now);
            self.seen_micros.store(clock.now_micros(), Ordering::Relaxed);
        }
    }

    /// Nothing to write: what was due is forgotten, and idle time is no backlog.
    fn rest(&self, clock: &dyn Clock) {
        let now = clock.now_micros();
        self.due_micros.store(now, Ordering::Relaxed);
        self.seen_micros.store(now, Ordering::Relaxed);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
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
    let most = pool.store().batch_max();
    let batch = ((rate * BATCH_SECONDS) as usize).clamp(1, most);
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
