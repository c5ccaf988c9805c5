//! What the disk can take, learned from what it took.
use std::collections::VecDeque;

/// One tick's use of the disk.
#[derive(Clone, Copy, Debug)]
struct Use {
    seconds: f64,
    cost: f64,
    backlogged: bool,
}

/// Capacity in cost units per second, where writing a page (doublewrite included) costs 1.
///
/// Raised by whatever was seen to be done. Lowered only to the best of a span in which work waited
/// for the disk without a pause: the average of a disk that had nothing to do says nothing about
/// it. There are no probes: admission allows a little more than is believed possible
/// (`policy_admission.rs`), so a disk that became faster shows it within a few windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    recent: VecDeque<Use>,
    /// Best that was seen, or `None` before the first full window.
    cost_per_second: Option<f64>,
    /// Whether work ever waited for the disk; until then the best is only a lower bound.
    proven: bool,
}

/// A rate is taken over at least this long: cloud volumes work in slices of 100 ms.
const WINDOW_SECONDS: f64 = 0.45;
/// Only a backlog this long lowers the capacity: a stall of a second and a full window on each side
/// of it fit in.
const LOWER_AFTER_SECONDS: f64 = 1.95;
/// Most ticks remembered, however short they are.
const TICKS_MAX: usize = 256;

impl Capacity {
    /// Takes one tick: `cost` units done in `seconds`, with or without work waiting for the disk.
    pub(crate) fn observe(&mut self, seconds: f64, cost: f64, backlogged: bool) {
        self.recent.push_back(Use { seconds, cost, backlogged });
        let mut span: f64 = self.recent.iter().map(|tick| tick.seconds).sum();
        while let Some(oldest) = self.recent.front()
            && self.recent.len() > 1
            && (span - oldest.seconds >= LOWER_AFTER_SECONDS || self.recent.len() > TICKS_MAX)
        {
            span -= oldest.seconds;
            self.recent.pop_front();
        }
        let Some((last, full)) = self.window(self.recent.len()) else { return };
        self.proven |= full;
        let known = self.cost_per_second.unwrap_or(last);
        let waited = span >= LOWER_AFTER_SECONDS && self.recent.iter().all(|tick| tick.backlogged);
        self.cost_per_second = Some(if last > known {
            // Half way: a window may hold one slice of a sliced disk too many.
            known + 0.5 * (last - known)
        } else if waited {
            let windows = (1..=self.recent.len()).filter_map(|end| self.window(end));
            known.min(windows.map(|(cost, _)| cost).fold(0.0, f64::max))
        } else {
            known
        });
    }

    /// Cost per second over the shortest window of at least `WINDOW_SECONDS` before tick `end`,
    /// and whether work waited for the disk in all of it.
    fn window(&self, end: usize) -> Option<(f64, bool)> {
        let (mut seconds, mut cost, mut full) = (0.0, 0.0, true);
        for tick in self.recent.iter().take(end).rev() {
            seconds += tick.seconds;
            cost += tick.cost;
            full &= tick.backlogged;
            if seconds >= WINDOW_SECONDS {
                return Some((cost / seconds, full));
            }
        }
        None
    }

    /// The best that was seen, in cost units per second.
    pub(crate) fn best(&self) -> Option<f64> {
        self.cost_per_second
    }

    /// The same, once work waited for the disk; before that, nothing is known about its limit.
    pub(crate) fn proven(&self) -> Option<f64> {
        self.cost_per_second.filter(|_| self.proven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ticks: &[(usize, f64, bool)]) -> Capacity {
        let mut capacity = Capacity::default();
        for &(count, cost, backlogged) in ticks {
            for _ in 0..count {
                capacity.observe(0.1, cost, backlogged);
            }
        }
        capacity
    }

    fn near(capacity: &Capacity, expected: f64) {
        let best = capacity.best().expect("known");
        assert!((best / expected - 1.0).abs() < 0.01, "{best} is not {expected}");
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
        near(&after(&[(20, 200.0, true), (20, 100.0, true), (15, 200.0, true)]), 2000.0);
    }

    #[test]
    fn a_stall_of_a_second_changes_nothing() {
        near(&after(&[(20, 200.0, true), (10, 0.0, true), (5, 200.0, true)]), 2000.0);
    }

    #[test]
    fn a_pause_in_the_backlog_keeps_the_capacity() {
        let ticks = [(20, 200.0, true), (8, 100.0, true), (1, 0.0, false), (8, 100.0, true)];
        near(&after(&ticks), 2000.0);
    }
}
