//! The age to hold, and the plan that holds it: page writes per byte of redo that meet every
//! deadline of the next log wrap.
use crate::histogram::AgeHistogram;
use crate::policy::Limits;
use weir_base::Lsn;

/// The age at which deadlines are set, and how it moves when the limits change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AgeTarget {
    /// Deadlines are planned against this age (A*); on its way to `goal_bytes`.
    pub(crate) target_bytes: f64,
    /// Where A* is going.
    pub(crate) goal_bytes: f64,
    /// Admission holds the age below this.
    pub(crate) limit_bytes: f64,
}

/// The reserve under the limit: a share of it for noise in the list's density (buckets, batches).
const RESERVE_SHARE: f64 = 0.03;
/// Reserves never take more of the limit than this.
const RESERVE_SHARE_MAX: f64 = 0.25;
/// A lower goal is reached in this time even if hardly any redo is written.
const RAMP_SECONDS: f64 = 60.0;

impl AgeTarget {
    /// The target after `redo_bytes` more of log in `seconds`, with `reserve_bytes` for what is
    /// logged until it shows.
    ///
    /// A raised limit is used at once. A lowered one (the log shrinks, a recovery target was set)
    /// pulls the target down by a byte per byte of redo, so that page writes at most about double
    /// (CKPT-6).
    pub(crate) fn moved(
        last: Option<AgeTarget>,
        limits: &Limits,
        reserve_bytes: f64,
        age_bytes: f64,
        redo_bytes: f64,
        seconds: f64,
    ) -> AgeTarget {
        let hard = limits.age_bytes as f64;
        let limit = limits.recovery_age_bytes.map_or(hard, |bytes| hard.min(bytes as f64));
        let reserve =
            |limit: f64| (RESERVE_SHARE * limit + reserve_bytes).min(RESERVE_SHARE_MAX * limit);
        let goal = limit - reserve(limit);
        let ceiling = hard - reserve(hard);
        let from = last.map_or(age_bytes, |last| last.target_bytes);
        let ramped = from - redo_bytes - from * (seconds / RAMP_SECONDS).min(1.0);
        let target = ramped.min(ceiling).max(goal);
        let limit = (target + reserve(hard)).min(hard).max(limit);
        AgeTarget { target_bytes: target, goal_bytes: goal, limit_bytes: limit }
    }

    /// Bytes of redo that may still be written before a page of this age is due. While the target
    /// comes down by a byte per byte of redo, a page's deadline comes twice as fast.
    fn room_bytes(&self, age_bytes: f64) -> f64 {
        ((self.target_bytes - age_bytes) / 2.0).max(self.goal_bytes - age_bytes)
    }
}

/// The demand of the dirty list, in pages per byte of redo: whatever the speed of redo is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Slope of the steepest line from here to any deadline: max over b of n(b) / room(b), the
    /// least constant slope that meets all deadlines.
    pub(crate) pages_per_byte: f64,
    /// Pages whose deadline has passed. There is still the reserve between them and the limit.
    pub(crate) overdue_pages: f64,
}

impl Plan {
    /// Solves for the dirty list at `log_end`. Deadlines nearer than `room_bytes_min` count as
    /// that far away, because the density over a few pages is mostly noise.
    ///
    /// `flushing.md` section 4 plans in seconds, D(h)/h; this is D(h)/h divided by the redo rate.
    /// In bytes of redo the plan needs no forecast of that rate, so a step of it cannot make the
    /// plan wrong, and the writer follows the step at the next tick. And because the last deadline
    /// (all dirty pages, nearly A* away) is always among those solved for, the slope never falls
    /// below the mean of a whole wrap: a thin stretch of the list is passed at the mean rate, the
    /// age falls, and the next dense stretch finds that room. So the list's pattern is not copied
    /// into the next wrap, and echoes die (CKPT-4).
    pub(crate) fn solve(
        dirty: &AgeHistogram,
        log_end: Lsn,
        oldest: Lsn,
        target: &AgeTarget,
        room_bytes_min: f64,
    ) -> Plan {
        let mut plan = Plan::default();
        let mut pages = 0.0;
        for (start, count) in dirty.buckets() {
            pages += f64::from(count);
            let age_bytes = log_end.bytes_since(start.max(oldest)) as f64;
            let room_bytes = target.room_bytes(age_bytes);
            if room_bytes <= 0.0 {
                plan.overdue_pages = pages;
            }
            let slope = pages / room_bytes.max(room_bytes_min).max(1.0);
            plan.pages_per_byte = plan.pages_per_byte.max(slope);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: AgeTarget =
        AgeTarget { target_bytes: 1000.0, goal_bytes: 1000.0, limit_bytes: 1100.0 };

    fn solve(counts: &[u32], log_end: u64, target: &AgeTarget) -> Plan {
        let dirty = AgeHistogram { bucket_bytes: 100, first: Lsn(5000), counts: counts.to_vec() };
        Plan::solve(&dirty, Lsn(log_end), Lsn(5000), target, 50.0)
    }

    #[test]
    fn the_steepest_deadline_sets_the_slope() {
        // (counts, log end, slope, overdue); room of bucket i is 1000 - (end - 5000 - 100 i).
        let rows: [(&[u32], u64, f64, f64); 7] = [
            (&[], 6000, 0.0, 0.0),
            (&[10], 5000, 10.0 / 1000.0, 0.0),
            (&[10, 10], 5500, 20.0 / 600.0, 0.0),
            // A dense stretch behind a thin one is seen from afar.
            (&[1, 1, 80], 5800, 82.0 / 400.0, 0.0),
            // A dense one in front: the later deadlines are met by the way.
            (&[80, 1, 1], 5800, 80.0 / 200.0, 0.0),
            // Too near: counted as 50 bytes away.
            (&[10], 5980, 10.0 / 50.0, 0.0),
            // Overdue: the first two buckets have ages 1120 and 1020.
            (&[3, 4, 5], 6120, 12.0 / 80.0, 7.0),
        ];
        for (counts, end, slope, overdue) in rows {
            let plan = solve(counts, end, &FLAT);
            let wanted = if overdue > 0.0 { f64::max(slope, overdue / 50.0) } else { slope };
            assert!((plan.pages_per_byte - wanted).abs() < 1e-9, "{counts:?} at {end}: {plan:?}");
            assert_eq!(plan.overdue_pages, overdue, "{counts:?} at {end}");
        }
    }

    #[test]
    fn a_lowered_goal_is_approached_by_a_byte_per_byte() {
        let limits = |recovery| Limits { age_bytes: 10_000, recovery_age_bytes: recovery };
        let first = AgeTarget::moved(None, &limits(None), 0.0, 0.0, 0.0, 0.1);
        assert_eq!((first.target_bytes, first.limit_bytes), (9_700.0, 10_000.0));
        let lower = AgeTarget::moved(Some(first), &limits(Some(5_000)), 0.0, 0.0, 100.0, 0.0);
        assert_eq!((lower.target_bytes, lower.goal_bytes), (9_600.0, 4_850.0));
        assert_eq!(lower.room_bytes(9_000.0), 300.0);
        let there = AgeTarget::moved(Some(lower), &limits(Some(5_000)), 0.0, 0.0, 9e9, 0.0);
        assert_eq!((there.target_bytes, there.limit_bytes), (4_850.0, 5_150.0));
        let higher = AgeTarget::moved(Some(there), &limits(None), 0.0, 0.0, 0.0, 0.1);
        assert_eq!(higher.target_bytes, 9_700.0);
    }
}
