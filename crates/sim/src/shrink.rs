//! Making a failing scenario shorter: fewer crashes, fewer operations, the same failure.
use crate::scenario::Scenario;

/// Shortens `scenario` as long as `fails` says that it still does, running at most `budget` others.
#[must_use]
pub fn shrink(
    scenario: &Scenario,
    budget: usize,
    fails: &mut dyn FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut best = scenario.clone();
    let mut left = budget;
    let mut try_it = |candidate: &Scenario, left: &mut usize| {
        *left = left.saturating_sub(1);
        fails(candidate)
    };
    for crash in (0..best.crashes.len()).rev() {
        let mut without = best.clone();
        without.crashes.truncate(crash + 1);
        without.crashes[crash].in_recovery.clear();
        if without.arguments() != best.arguments() && try_it(&without, &mut left) {
            best.crashes.truncate(crash + 1);
        }
    }
    let mut size = best.ops.len().div_ceil(2).max(1);
    while left > 0 {
        let mut from = 0;
        let mut shorter = false;
        while from < best.ops.len() && left > 0 {
            let keep: Vec<usize> =
                (0..best.ops.len()).filter(|i| !(from..from + size).contains(i)).collect();
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
fn attempt(
    best: &Scenario,
    keep: &[usize],
    left: &mut usize,
    try_it: &mut dyn FnMut(&Scenario, &mut usize) -> bool,
) -> Option<Scenario> {
    let after: Vec<u64> = best.crashes.iter().map(|c| c.after).collect();
    for percent in [100, 98, 95, 90, 75, 50] {
        let mut scaled = after.clone();
        if let Some(last) = scaled.last_mut() {
            *last = *last * percent / 100;
        }
        let candidate = best.reduced(keep, &scaled);
        if *left > 0 && try_it(&candidate, left) {
            return Some(candidate);
        }
    }
    None
}
