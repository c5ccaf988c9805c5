//! Making a failing scenario shorter: fewer crashes, fewer operations, the same failure.
use anyhow::Result;

use crate::scenario::Crash;

/// A scenario that can be made shorter.
pub trait Shorten: Clone {
    /// How many steps it has.
    fn count(&self) -> usize;
    /// Its crashes.
    fn crashes(&mut self) -> &mut Vec<Crash>;
    /// The same with only these of its steps and with these crash points.
    #[must_use]
    fn reduced(&self, keep: &[usize], after: &[u64]) -> Self;
    /// The arguments that repeat it.
    fn arguments(&self) -> String;
    /// Runs it.
    ///
    /// # Errors
    /// What the engine did wrong.
    fn check(&self) -> Result<()>;
    /// Only so many crashes, after so many steps of the disk each.
    fn crash_after(&mut self, after: &[u64]) {
        self.crashes().truncate(after.len());
        for (crash, after) in self.crashes().iter_mut().zip(after) {
            crash.after = *after;
        }
    }
}

/// Shortens `scenario` as long as `fails` says that it still does, running at most `budget` others.
#[must_use]
pub fn shrink<S: Shorten>(scenario: &S, budget: usize, fails: &mut dyn FnMut(&S) -> bool) -> S {
    let mut best = scenario.clone();
    let mut left = budget;
    let mut try_it = |candidate: &S, left: &mut usize| {
        *left = left.saturating_sub(1);
        fails(candidate)
    };
    for crash in (0..best.crashes().len()).rev() {
        let mut without = best.clone();
        without.crashes().truncate(crash + 1);
        without.crashes()[crash].in_recovery.clear();
        if without.arguments() != best.arguments() && try_it(&without, &mut left) {
            best.crashes().truncate(crash + 1);
            best.crashes()[crash].in_recovery.clear();
        }
    }
    let mut size = best.count().div_ceil(2).max(1);
    while left > 0 {
        let mut from = 0;
        let mut shorter = false;
        while from < best.count() && left > 0 {
            let keep: Vec<usize> =
                (0..best.count()).filter(|i| !(from..from + size).contains(i)).collect();
            match attempt(&best, &keep, &mut left, &mut try_it) {
                Some(found) => {
                    best = found;
                    shorter = true;
                }
                None => from += size,
            }
        }
        if size == 1 && !shorter {
            break;
        }
        size = size.div_ceil(2);
    }
    best
}

/// Fewer operations write less: the crash that mattered comes after fewer steps.
fn attempt<S: Shorten>(
    best: &S,
    keep: &[usize],
    left: &mut usize,
    try_it: &mut dyn FnMut(&S, &mut usize) -> bool,
) -> Option<S> {
    let after: Vec<u64> = best.clone().crashes().iter().map(|c| c.after).collect();
    for percent in [100, 98, 95, 90, 75, 50] {
        let mut scaled = after.clone();
        if let Some(last) = scaled.last_mut() {
            *last = *last * percent / 100;
        }
        let candidate = best.reduced(keep, &scaled);
        if *left > 0 && try_it(&candidate, left) {
            return Some(candidate);
        }
        if after.is_empty() {
            break;
        }
    }
    None
}
