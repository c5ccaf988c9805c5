//! The age to hold, and the plan that holds it: page writes per byte of redo that meet every
//! deadline of the next log wrap.
use crate::histogram::AgeHistogram;
use crate::tick::Limits;
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

/// So many times the mean of a wrap is the steepest slope that waiting may lead to: commits pay for
/// a late beginning with at most that much less than the steady rate, until the dense front of the
/// list is written.
const LATE_SLOPE: f64 = 1.8;
/// The way down begins early enough that the slope grows by a factor of e in so much of the
/// target's redo.
const GLIDE_SHARE: f64 = 0.1;
/// Room is used again once there is so much of the target's redo until then.
const ROOM_AGAIN_SHARE: f64 = 0.42;

/// The demand of the dirty list, in pages per byte of redo: whatever the speed of redo is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Slope of the steepest line from here to any deadline: max over b of n(b) / room(b), the
    /// least constant slope that meets all deadlines.
    pub(crate) pages_per_byte: f64,
    /// Pages whose deadline has passed. There is still the reserve between them and the limit.
    pub(crate) overdue_pages: f64,
    /// The slope to write at while there is room: next to nothing until shortly before
    /// `LATE_SLOPE` times the mean would be needed.
    late_pages_per_byte: f64,
    /// Redo until it is needed, as a share of the target.
    room_share: f64,
}

impl Plan {
    /// Solves for the dirty list at `log_end`. Deadlines nearer than `room_bytes_min` count as
    /// that far away, because the density over a few pages is mostly noise.
    ///
    /// `docs/flushing.md` section 4 plans in seconds, D(h)/h; this is D(h)/h divided by the redo
    /// rate. In bytes of redo the plan needs no forecast of that rate, so a step of it cannot make
    /// the plan wrong, and the writer follows the step at the next tick. And because the last
    /// deadline (all dirty pages, nearly A* away) is always among those solved for, the slope
    /// never falls below the mean of a whole wrap: a thin stretch of the list is passed at the
    /// mean rate, the age falls, and the next dense stretch finds that room. So the list's pattern
    /// is not copied into the next wrap, and echoes die (CKPT-4).
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
        plan.use_room(pages, dirty, log_end, oldest, target);
        plan
    }

    /// The latest schedule: how much redo may come before a slope of `LATE_SLOPE` times the mean
    /// must begin if it is to meet every deadline, and the slope of the way there.
    fn use_room(
        &mut self,
        all_pages: f64,
        dirty: &AgeHistogram,
        log_end: Lsn,
        oldest: Lsn,
        target: &AgeTarget,
    ) {
        let steepest = LATE_SLOPE * all_pages / target.goal_bytes.max(1.0);
        let (mut pages, mut room_bytes) = (0.0, f64::MAX);
        for (start, count) in dirty.buckets() {
            pages += f64::from(count);
            let age_bytes = log_end.bytes_since(start.max(oldest)) as f64;
            let begin = target.room_bytes(age_bytes) - pages / steepest;
            room_bytes = room_bytes.min(begin);
        }
        self.room_share = room_bytes.max(0.0) / target.goal_bytes.max(1.0);
        self.late_pages_per_byte = steepest * (-self.room_share / GLIDE_SHARE).exp();
    }

    /// The slope to write at. `room_is_used` is whether the way down has met the plan: from then on
    /// the plan's own slope holds, under which no pattern of the list is copied into the next wrap,
    /// until there is much room again. `answers` is whether the disk has been seen to write pages,
    /// and quickly: where it has not, what a late beginning would meet is unknown.
    pub(crate) fn slope(&self, room_is_used: &mut bool, answers: bool) -> f64 {
        if self.room_share <= 0.0 || self.late_pages_per_byte >= self.pages_per_byte {
            *room_is_used = true;
        } else if self.room_share > ROOM_AGAIN_SHARE {
            *room_is_used = false;
        }
        if *room_is_used || !answers { self.pages_per_byte } else { self.late_pages_per_byte }
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
    fn room_is_what_is_left_until_a_slope_of_late_slope_times_the_mean_must_begin() {
        let rows: [(&[u32], u64, f64); 4] = [
            // 10 pages of age 0 in 1000 bytes, at 1.8 times 10/1000: 555.6 bytes.
            (&[10], 5000, 0.4444),
            // An even one: all 40 within 900 bytes.
            (&[10, 10, 10, 10], 5400, 0.9 - 40.0 / 72.0),
            // Dense in front: 81 pages in 200 bytes at 1.8 x 83/1000 take 542.
            (&[81, 1, 1], 5800, 0.0),
            (&[], 6000, f64::MAX / 1000.0),
        ];
        for (counts, end, share) in rows {
            let plan = solve(counts, end, &FLAT);
            assert!((plan.room_share - share).abs() < 1e-3, "{counts:?} at {end}: {plan:?}");
        }
    }

    #[test]
    fn room_is_used_once_and_again_when_there_is_much_of_it() {
        let mut used = false;
        let (far, near) = (solve(&[10], 5000, &FLAT), solve(&[10, 10, 10], 5950, &FLAT));
        assert_eq!(far.slope(&mut used, false), far.pages_per_byte, "an unknown disk");
        assert!(far.slope(&mut used, true) < 0.05 * far.pages_per_byte && !used);
        assert_eq!(near.slope(&mut used, true), near.pages_per_byte);
        assert!(used, "the way down has met the plan");
        let little = solve(&[10; 8], 5800, &FLAT);
        assert_eq!(
            little.slope(&mut used, true),
            little.pages_per_byte,
            "too little to begin again"
        );
        assert!(far.slope(&mut used, true) < 0.05 * far.pages_per_byte && !used);
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
