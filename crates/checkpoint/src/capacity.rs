//! What the disk can take, learned from what it took while work was waiting for it.
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
/// Raised by what was seen to be done. Lowered only to the best of a span in which work waited for
/// the disk without a pause: the average of a disk that had nothing to do says nothing about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    recent: VecDeque<Use>,
    cost_per_second: Option<f64>,
}

/// A rate is taken over at least this long: cloud volumes work in slices of 100 ms.
const WINDOW_SECONDS: f64 = 0.45;
/// Only a backlog this long lowers the capacity; a shorter one may be a stall that passes.
const LOWER_AFTER_SECONDS: f64 = 1.5;

impl Capacity {
    /// Takes one tick: `cost` units done in `seconds`, of which `backlogged_seconds` with work
    /// waiting for the disk.
    pub(crate) fn observe(&mut self, seconds: f64, cost: f64, backlogged_seconds: f64) {
        self.recent.push_back(Use {
            seconds,
            cost,
            backlogged: backlogged_seconds > 0.8 * seconds,
        });
        let mut span: f64 = self.recent.iter().map(|tick| tick.seconds).sum();
        while let Some(oldest) = self.recent.front()
            && span - oldest.seconds >= LOWER_AFTER_SECONDS
            && self.recent.len() > 1
        {
            span -= oldest.seconds;
            self.recent.pop_front();
        }
        let Some(last) = self.window(self.recent.len()) else { return };
        let backlogged = self.recent.iter().all(|tick| tick.backlogged);
        match self.cost_per_second {
            None => self.cost_per_second = Some(last),
            Some(known) if last > known => {
                self.cost_per_second = Some(known + 0.5 * (last - known));
            }
            Some(known) if backlogged && span >= LOWER_AFTER_SECONDS => {
                let windows = (1..=self.recent.len()).filter_map(|end| self.window(end));
                let best = windows.fold(0.0, f64::max);
                self.cost_per_second = Some(known.min(best));
            }
            Some(_) => {}
        }
    }

    /// Cost per second over the shortest window of at least `WINDOW_SECONDS` that ends before tick
    /// `end`.
    fn window(&self, end: usize) -> Option<f64> {
        let (mut seconds, mut cost) = (0.0, 0.0);
        for tick in self.recent.iter().take(end).rev() {
            seconds += tick.seconds;
            cost += tick.cost;
            if seconds >= WINDOW_SECONDS {
                return Some(cost / seconds);
            }
        }
        None
    }

    /// Cost units per second; `None` until the first window is full.
    pub(crate) fn cost_per_second(&self) -> Option<f64> {
        self.cost_per_second
    }
}
