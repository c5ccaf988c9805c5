//! How many bytes of redo writers may add per second: the smooth slowdown before the hard gate.
use crate::policy_plan::AgeTarget;

/// While no page write waits for the disk, this share more than is believed sustainable is let in:
/// too low an estimate of the disk must never throttle, and shows itself by being exceeded. While
/// they all wait, the estimate is as good as it gets, and exceeding it would only have to be paid
/// back before the wrap is over.
const ABOVE_SUSTAINABLE: f64 = 0.25;
/// The age may approach the limit no faster than by an exponential with this time constant, where
/// ticks are as long as usual. Must exceed a tick and the writers' burst together, else the limit
/// could be crossed between ticks.
const APPROACH_SECONDS: f64 = 0.25;

/// Bytes of redo per second.
///
/// `sustainable` is what the disk can sustain over the whole horizon (its capacity divided by the
/// cost of a byte: the plan's page writes and the log's own bytes); `None` while the capacity is
/// unknown. Looking at the nearest deadlines only would oscillate at the period of a log wrap.
/// `haste` is the length of a tick as part of the usual one, at most 1.
pub(crate) fn admission(
    sustainable: Option<f64>,
    backlogged: f64,
    target: &AgeTarget,
    age_bytes: f64,
    haste: f64,
) -> f64 {
    let headroom = (target.limit_bytes - age_bytes).max(0.0);
    let band = (target.limit_bytes - target.target_bytes).max(1.0);
    // Even if no page at all becomes durable, the age converges to the limit from below
    // (CKPT-3).
    let safe = headroom / (APPROACH_SECONDS * haste);
    match sustainable {
        Some(sustainable) => {
            let above = 1.0 + ABOVE_SUSTAINABLE * (1.0 - backlogged);
            (above * sustainable * (headroom / band).min(1.0)).min(safe)
        }
        None => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lets_in_a_little_more_than_sustainable_and_nothing_at_the_limit() {
        let target = AgeTarget { target_bytes: 900.0, goal_bytes: 900.0, limit_bytes: 1000.0 };
        let rows = [
            (Some(100.0), 0.0, 0.0, 125.0),
            (Some(100.0), 0.0, 900.0, 125.0),
            (Some(100.0), 0.0, 920.0, 100.0),
            (Some(100.0), 0.0, 950.0, 62.5),
            (Some(100.0), 0.0, 1000.0, 0.0),
            (Some(100.0), 0.0, 1200.0, 0.0),
            (Some(100.0), 1.0, 900.0, 100.0),
            (Some(1e9), 0.0, 900.0, 400.0),
            (None, 0.0, 0.0, 4000.0),
            (None, 0.0, 1000.0, 0.0),
        ];
        for (sustainable, backlogged, age, expected) in rows {
            let admitted = admission(sustainable, backlogged, &target, age, 1.0);
            assert!((admitted - expected).abs() < 1e-9, "{sustainable:?} {age}: {admitted}");
        }
        assert_eq!(admission(None, 0.0, &target, 900.0, 0.1), 4000.0, "ticks a tenth as long");
    }
}
