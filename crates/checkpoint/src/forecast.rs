//! Rates of the recent past, and the plan for the next log wrap: the least constant number of page
//! writes per byte of redo that meets every deadline.
use crate::histogram::AgeHistogram;
use weir_base::Lsn;

/// A rate that is steady under noise and quick after a step: an exponential mean over
/// `settle_seconds` that jumps to the new value when one tick leaves it by more than `jump`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    per_second: f64,
    known: bool,
}

impl Rate {
    /// Takes the events of one tick of `seconds` (> 0).
    pub(crate) fn observe(&mut self, events: f64, seconds: f64, settle_seconds: f64, jump: f64) {
        let now = events / seconds;
        let off = (now - self.per_second).abs() > jump * self.per_second.max(now);
        if !self.known || off {
            self.per_second = now;
        } else {
            self.per_second += (now - self.per_second) * (1.0 - (-seconds / settle_seconds).exp());
        }
        self.known = true;
    }

    /// The rate, 0 before the first tick.
    pub(crate) fn per_second(&self) -> f64 {
        self.per_second
    }
}

/// Where the age shall be held and what it must not pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeTarget {
    /// Deadlines are planned against this age (A*).
    pub(crate) target_bytes: f64,
    /// Admission lets the age come close to this, and never past it.
    pub(crate) limit_bytes: f64,
}

/// The demand of the dirty list, in pages per byte of redo: independent of how fast redo grows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Slope of the steepest line from now to any deadline: max over b of n(b) / room(b).
    pub(crate) pages_per_byte: f64,
    /// Pages whose deadline against A* has passed.
    pub(crate) overdue_pages: f64,
}

impl Plan {
    /// Solves for the dirty list at `log_end`. Deadlines nearer than `room_bytes_min` are treated
    /// as that far away, because over a few pages the density is mostly noise.
    ///
    /// Planning in bytes of redo instead of seconds makes the slope independent of the forecast of
    /// the redo rate: a wrong or stepping rate cannot make the plan wrong. (`flushing.md` section
    /// 4 plans in seconds; D(h)/h there is the slope times the redo rate here.)
    pub(crate) fn solve(
        dirty: &AgeHistogram,
        log_end: Lsn,
        oldest: Lsn,
        target: AgeTarget,
        room_bytes_min: f64,
    ) -> Plan {
        let mut plan = Plan::default();
        let mut pages = 0.0;
        for (start, count) in dirty.buckets() {
            pages += f64::from(count);
            let age_bytes = log_end.bytes_since(start.max(oldest)) as f64;
            let room_bytes = target.target_bytes - age_bytes;
            if room_bytes <= 0.0 {
                plan.overdue_pages = pages;
            }
            let slope = pages / room_bytes.max(room_bytes_min).max(1.0);
            plan.pages_per_byte = plan.pages_per_byte.max(slope);
        }
        plan
    }
}
