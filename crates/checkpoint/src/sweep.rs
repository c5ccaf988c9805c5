//! Obeys the verdict: writes the oldest dirty pages at the pace that was decided.
use weir_base::Clock;
use weir_base::lock::Mutex;
use weir_base::rank;
use weir_pool::{Cause, Pool, PoolError};

use crate::pacing::{Hand, Pacing};
use crate::tick::Verdict;

/// The pace that the sweeper's lanes share.
#[derive(Default)]
pub(crate) struct Pace(Mutex<rank::SweepPace, Pacing>);

impl Pace {
    /// Due at once.
    #[must_use]
    pub(crate) fn new() -> Self {
        Pace::default()
    }

    /// As [`Pacing::backlogged_micros`].
    #[must_use]
    pub(crate) fn backlogged_micros(&self, clock: &dyn Clock) -> u64 {
        self.0.lock().backlogged_micros(clock.now_micros())
    }

    /// As [`Pacing::long_micros`].
    #[must_use]
    pub(crate) fn long_micros(&self, clock: &dyn Clock) -> u64 {
        self.0.lock().long_micros(clock.now_micros())
    }

    /// Waits until the next of the `left` pages are due, and says how many they are.
    fn wait(&self, clock: &dyn Clock, hand: &mut Hand, verdict: &Verdict, left: usize) -> usize {
        let now = clock.now_micros();
        let rate = verdict.deadline_pages_per_second + verdict.idle_pages_per_second;
        let (pages, start) = {
            let mut pacing = self.0.lock();
            pacing.write_ends(now, hand);
            let pages = pacing.group_pages(now, hand, verdict, left);
            (pages, pacing.due(now, hand, pages, rate))
        };
        if start > now {
            clock.sleep_micros(start - now);
            let woken = clock.now_micros();
            self.0.lock().slept(woken, hand, woken - now);
        }
        self.0.lock().write_begins(clock.now_micros(), hand);
        pages
    }

    fn rest(&self, clock: &dyn Clock) {
        self.0.lock().rest(clock.now_micros());
    }
}

/// The sweeper's step: writes one batch, pacing itself. Returns pages written; 0 means that there
/// is nothing to do for now. `lane` is the caller's number, `shard` is its doublewrite file.
///
/// # Errors
/// Those of [`Pool::write_back`]: the engine must halt.
pub(crate) fn sweep(
    pool: &Pool,
    clock: &dyn Clock,
    pace: &Pace,
    verdict: &Verdict,
    (lane, shard): (usize, usize),
) -> Result<usize, PoolError> {
    let idle = verdict.idle_pages_per_second;
    if verdict.deadline_pages_per_second + idle < 0.5 {
        pace.rest(clock);
        return Ok(0);
    }
    let cause =
        if idle > verdict.deadline_pages_per_second { Cause::Idle } else { Cause::Deadline };
    let batch = pace.0.lock().batch_pages(clock.now_micros(), verdict, pool.store().batch_max());
    let pages = pool.take_oldest(batch, pool.log().published());
    if pages.is_empty() {
        pace.rest(clock);
        return Ok(0);
    }
    let mut hand = pace.0.lock().begin(clock.now_micros(), lane, pages.len());
    let mut pause = |left: usize| {
        if left > 0 {
            return pace.wait(clock, &mut hand, verdict, left);
        }
        pace.0.lock().write_begins(clock.now_micros(), &hand);
        0
    };
    let written = pool.write_paced(shard, &pages, cause, &mut pause)?;
    pace.0.lock().end(clock.now_micros(), hand);
    Ok(written.pages)
}
