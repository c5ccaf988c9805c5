//! How fast pages on disk are verified: a decision, without a clock and without reading.
//!
//! A scrub must not be noticed. Beside work it takes a hundredth of what the disk is known to take;
//! of a disk of which that is not known, what any disk has to spare. While no thread asks for
//! anything it takes an eighth, until all pages were verified once in a day: then it rests.

/// What there is to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScrubLoad {
    /// Page writes per second that the disk is believed to take; 0 while unknown.
    pub(crate) capacity_pages_per_second: f64,
    /// No thread has read or changed anything for a while.
    pub(crate) is_idle: bool,
    /// Since the last pass began; `None`: there was none, or one is under way.
    pub(crate) seconds_since_pass: Option<f64>,
}

/// A disk of which nothing is known is taken for one of so many page writes per second.
const UNKNOWN_CAPACITY: f64 = 1_000.0;
/// A pass begins no sooner than so long after the one before.
pub(crate) const PASS_SECONDS_MIN: f64 = 86_400.0;

/// Pages to verify per second; 0: nothing is to be done.
pub(crate) fn pages_per_second(seen: ScrubLoad) -> f64 {
    if seen.seconds_since_pass.is_some_and(|seconds| seconds < PASS_SECONDS_MIN) {
        return 0.0;
    }
    let known = seen.capacity_pages_per_second;
    let capacity = if known > 0.0 { known } else { UNKNOWN_CAPACITY };
    // Several pages are one read: even the least is no more than one read in some seconds.
    if seen.is_idle {
        (capacity / 8.0).clamp(64.0, 4_096.0)
    } else {
        (capacity / 100.0).clamp(4.0, 256.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(capacity: f64, is_idle: bool, since: Option<f64>) -> f64 {
        pages_per_second(ScrubLoad {
            capacity_pages_per_second: capacity,
            is_idle,
            seconds_since_pass: since,
        })
    }

    #[test]
    fn a_scrub_takes_little_beside_work_and_more_where_there_is_none() {
        // (capacity, beside work, idle)
        let rows = [
            (0.0, 10.0, 125.0),
            (100.0, 4.0, 64.0),
            (2_000.0, 20.0, 250.0),
            (100_000.0, 256.0, 4_096.0),
        ];
        for (capacity, busy, idle) in rows {
            assert_eq!((rate(capacity, false, None), rate(capacity, true, None)), (busy, idle));
        }
    }

    #[test]
    fn it_rests_for_the_rest_of_the_day() {
        for is_idle in [false, true] {
            assert_eq!(rate(2_000.0, is_idle, Some(0.0)), 0.0);
            assert_eq!(rate(2_000.0, is_idle, Some(PASS_SECONDS_MIN - 1.0)), 0.0);
            assert!(rate(2_000.0, is_idle, Some(PASS_SECONDS_MIN)) > 0.0);
        }
    }
}
