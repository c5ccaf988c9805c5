//! What the disk can take, learned from what it took.
use crate::forecast::share;
use crate::tick::TICK_SECONDS_MIN;
use std::collections::VecDeque;

/// Use of the disk in one tick, or in some short ones together.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    seconds: f64,
    cost: f64,
    backlogged_seconds: f64,
}

/// Capacity in cost units per second, where writing a page (doublewrite included) costs 1.
///
/// Raised by whatever was seen to be done. Lowered only by windows in which work waited for the
/// disk without a pause: the average of a disk that had nothing to do says nothing about it
/// (CKPT-5). There are no probes: while no work waits, admission allows more than is believed
/// possible (`policy_admission.rs`), so a disk that became faster shows it within a few windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    recent: VecDeque<Use>,
    /// Ticks not yet long enough to count.
    short: Use,
    cost_per_second: Option<f64>,
    /// Whether work ever waited for the disk; until then the best is only a lower bound.
    proven: bool,
    /// Share of the last second or so in which work waited.
    backlogged: f64,
    stalled_seconds: f64,
}

/// A rate is taken over at least this long: cloud volumes work in slices of 100 ms.
const WINDOW_SECONDS: f64 = 0.45;
/// Time constant of the mean over windows.
const SETTLE_SECONDS: f64 = 0.5;
/// A disk that does nothing for less than this has stalled; after it, that is its speed.
const STALL_SECONDS_MAX: f64 = 1.5;
/// Share of the capacity below which a tick counts as nothing.
const STALL_SHARE: f64 = 0.1;
/// Share of a window with work waiting from which on the disk counts as the bottleneck.
const BACKLOG_SHARE: f64 = 0.85;

impl Capacity {
    /// Takes one tick: `cost` units done in `seconds`, in a share `backlogged` of which work
    /// waited for the disk. `latency` is how long (seconds) batches are on their way where that is
    /// long: their pages are done in lumps, so no less time says anything.
    pub(crate) fn observe(&mut self, seconds: f64, cost: f64, backlogged: f64, latency: f64) {
        self.backlogged += (backlogged - self.backlogged) * share(seconds, 1.0);
        self.short.seconds += seconds;
        self.short.cost += cost;
        self.short.backlogged_seconds += backlogged * seconds;
        if self.short.seconds >= TICK_SECONDS_MIN.max(latency / 2.0) {
            let tick = std::mem::take(&mut self.short);
            self.learn(tick, latency);
        }
    }

    fn learn(&mut self, tick: Use, latency: f64) {
        let seconds = tick.seconds;
        let known = self.cost_per_second.unwrap_or(0.0);
        if tick.cost < STALL_SHARE * known * seconds {
            self.stalled_seconds += seconds;
            if self.stalled_seconds < STALL_SECONDS_MAX.max(latency) {
                return;
            }
        } else {
            self.stalled_seconds = 0.0;
        }
        self.recent.push_back(tick);
        let window = WINDOW_SECONDS.max(2.0 * latency);
        let mut span: f64 = self.recent.iter().map(|tick| tick.seconds).sum();
        while let Some(oldest) = self.recent.front()
            && self.recent.len() > 1
            && span - oldest.seconds >= window
        {
            span -= oldest.seconds;
            self.recent.pop_front();
        }
        if span < window {
            return;
        }
        let last = self.recent.iter().map(|tick| tick.cost).sum::<f64>() / span;
        let waited = self.recent.iter().map(|tick| tick.backlogged_seconds).sum::<f64>();
        let waited = waited >= BACKLOG_SHARE * span;
        let known = self.cost_per_second.unwrap_or(last);
        let moved = known + (last - known) * share(seconds, SETTLE_SECONDS);
        if waited && !self.proven {
            self.cost_per_second = Some(last);
        } else if waited || last > known {
            self.cost_per_second = Some(moved);
        } else {
            self.cost_per_second = Some(known);
        }
        self.proven |= waited;
    }

    /// What the disk is believed to take, in cost units per second.
    pub(crate) fn best(&self) -> Option<f64> {
        self.cost_per_second
    }

    /// The same, once work waited for the disk; before that, nothing is known about its limit.
    pub(crate) fn proven(&self) -> Option<f64> {
        self.cost_per_second.filter(|_| self.proven)
    }

    /// Share of the last second in which work waited for the disk, 0 to 1.
    pub(crate) fn backlogged(&self) -> f64 {
        self.backlogged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ticks: &[(usize, f64, bool)]) -> Capacity {
        let mut capacity = Capacity::default();
        for &(count, cost, backlogged) in ticks {
            for _ in 0..count {
                capacity.observe(0.1, cost, f64::from(u8::from(backlogged)), 0.0);
            }
        }
        capacity
    }

    fn near(capacity: &Capacity, expected: f64) {
        let best = capacity.best().expect("known");
        assert!((best / expected - 1.0).abs() < 0.03, "{best} is not {expected}");
    }

    #[test]
    fn nothing_is_known_before_a_window_is_full() {
        assert_eq!(after(&[(3, 100.0, true)]).best(), None);
    }

    #[test]
    fn an_unsaturated_disk_never_lowers_the_capacity() {
        let capacity = after(&[(20, 200.0, true), (1000, 10.0, false)]);
        near(&capacity, 2000.0);
        assert!(capacity.proven().is_some());
        assert_eq!(after(&[(1000, 10.0, false)]).proven(), None);
    }

    #[test]
    fn a_halved_disk_is_noticed_within_two_seconds_and_its_recovery_too() {
        near(&after(&[(20, 200.0, true), (20, 100.0, true)]), 1000.0);
        near(&after(&[(20, 200.0, true), (20, 100.0, true), (20, 200.0, true)]), 2000.0);
    }

    #[test]
    fn a_stall_of_a_second_changes_nothing() {
        near(&after(&[(20, 200.0, true), (10, 0.0, true), (5, 200.0, true)]), 2000.0);
    }

    #[test]
    fn a_disk_that_stands_still_for_long_is_slow() {
        let best = after(&[(20, 200.0, true), (40, 0.0, true)]).best().expect("known");
        assert!(best < 200.0, "{best}");
    }
}
