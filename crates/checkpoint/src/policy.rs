//! Where the checkpoint is decided: `decide`, a pure function from what was seen to what to do.
use crate::capacity::Capacity;
use crate::forecast::{Rates, Tick, share};
use crate::policy_admission::admission;
use crate::policy_full_disk::{is_room_short, with_room};
use crate::policy_pause::{Pause, Spare};
use crate::policy_plan::{AgeTarget, Plan};
use crate::tick::{Limits, TickView, Verdict, latency_seconds};

/// What is remembered between ticks. Plain data.
#[derive(Clone, Debug, Default)]
pub struct State {
    rates: Rates,
    capacity: Capacity,
    target: Option<AgeTarget>,
    /// The plan's slope, smoothed over a few ticks.
    slope: Option<f64>,
    /// Whether the log's room has been used (docs/decisions/room.md).
    room_is_used: bool,
    /// Whether much less is asked for than of late.
    pause: Pause,
    /// Pages that the plan wanted and the writer did not deliver; negative: too many.
    debt_pages: f64,
    /// What the last verdict said, to read the next tick by.
    previous: Previous,
    /// Seconds of work to keep in flight.
    in_flight_seconds: f64,
    /// Share of the last second or so in which writers waited for admission.
    throttled: f64,
    /// Length of a tick of late: up at once, down over a few ticks.
    tick_seconds: Option<f64>,
}

/// The part of a verdict that explains the tick after it.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    idle: bool,
    deadline_share: f64,
}

impl State {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        State::default()
    }
}

/// Time over which the plan's slope is smoothed: the list's density is noise below that.
const SLOPE_SECONDS: f64 = 0.3;
/// Debt and overdue pages are worked off in about this time.
const REPAY_SECONDS: f64 = 1.5;
/// Debt is remembered up to this many seconds of the plan's rate.
const DEBT_SECONDS_MAX: f64 = 2.0;
/// How far above its capacity the disk is pushed while writers wait for admission.
const PUSH: f64 = 1.1;
/// No commit for this long: nothing needs the disk.
const IDLE_AFTER_SECONDS: f64 = 1.0;
/// The reserve under the limit is the redo of so many seconds: a tick, a batch on its way, the
/// writers' burst.
const RESERVE_SECONDS: f64 = 0.3;
/// Free frames are restored in about this time.
const FREE_SECONDS: f64 = 0.5;
/// Of a disk that cannot serve both deadlines and free frames, the less urgent keeps this much:
/// starving either has stopped engines (`docs/flushing.md` section 3, pains 1 and 2).
const SHARE_MIN: f64 = 0.25;
/// Work kept in flight, in seconds: enough for a batch being written and one behind it.
const IN_FLIGHT_SECONDS: f64 = 0.03;
/// And at most, where latency eats it up (a disk in slices of 100 ms).
const IN_FLIGHT_SECONDS_MAX: f64 = 0.15;
/// Pages in flight while idle: a commit that comes must not wait behind many.
const IN_FLIGHT_IDLE: u32 = 8;
/// Reserves are made for ticks of this length,
const TICK_SECONDS: f64 = 0.05;
/// and shrink with shorter ones, but not below this part: writers' bursts do not get shorter.
const HASTE_MIN: f64 = 0.1;
/// Page writes per second that a disk is asked for which has shown nothing yet.
const CAPACITY_UNKNOWN: f64 = 2000.0;
/// Rates are cut off here, so that no input makes a verdict infinite (CKPT-2).
const RATE_MAX: f64 = 1e15;

/// Decides what to do until the next tick. Reads no clock, does no I/O, draws no random numbers:
/// the same inputs give the same verdict (CKPT-1).
pub fn decide(state: &mut State, seen: &TickView<'_>, limits: &Limits) -> Verdict {
    let tick = state.rates.observe(seen, limits.age_bytes, state.previous.deadline_share);
    let age_bytes = seen.log_end.bytes_since(seen.oldest_dirty) as f64;
    let limits = &with_room(limits, seen.room, age_bytes);
    let (seconds, redo_bytes) = tick.map_or((0.0, 0.0), |tick| (tick.seconds, tick.redo_bytes));
    let haste = state.haste(seconds);
    let latency = latency_seconds(seen);
    let late_bytes = state.rates.redo.per_second() * latency;
    let reserve_bytes = RESERVE_SECONDS * state.rates.redo_high * haste + late_bytes;
    let target =
        AgeTarget::moved(state.target, limits, reserve_bytes, age_bytes, redo_bytes, seconds);
    state.target = Some(target);
    let room_min = (state.rates.redo.per_second() * 0.5 * haste).max(target.goal_bytes / 64.0);
    let plan = Plan::solve(seen.dirty, seen.log_end, seen.oldest_dirty, &target, room_min);
    let planned = plan.slope(&mut state.room_is_used, latency == 0.0 && seen.pages_completed > 0);
    if let Some(tick) = tick {
        state.account(&tick, planned, latency);
        let waiting = f64::from(u8::from(seen.admission_waiters > 0));
        state.throttled += (waiting - state.throttled) * share(tick.seconds, 1.0);
        state.pause.observe(tick.seconds, state.rates.redo.per_second());
    }
    let slope = state.slope.unwrap_or(planned);
    let wanted = Wanted {
        deadline: state.deadline_pages_per_second(slope, &plan, seen),
        free: state.free_pages_per_second(seen),
    };
    let granted = wanted.shared(state, seen, age_bytes, &target);
    let idle = state.idle_pages_per_second(seen);
    let idle = idle.max(state.pause_pages_per_second(slope, seen, age_bytes / target.goal_bytes));
    let total = (granted.deadline + granted.free).max(idle).min(RATE_MAX);
    // What the sweeper is to write. What the cleaner writes is seen, and is less than was
    // granted where the sweeper happens to free the frames.
    let swept = granted.deadline + (idle - granted.deadline - granted.free).max(0.0);
    state.previous = Previous {
        idle: idle > granted.deadline + granted.free,
        deadline_share: if swept > 0.0 { granted.deadline / swept } else { 1.0 },
    };
    let sustainable = state.sustainable_bytes_per_second(slope, granted.free, seen);
    let backlogged = state.capacity.backlogged();
    let admitted = admission(sustainable, backlogged, &target, age_bytes, haste).min(RATE_MAX);
    Verdict {
        deadline_pages_per_second: granted.deadline,
        free_pages_per_second: granted.free,
        idle_pages_per_second: (idle - granted.deadline - granted.free).clamp(0.0, RATE_MAX),
        overdue_pages: plan.overdue_pages as u64,
        pages_per_second: total,
        in_flight_max: state.in_flight_max(total),
        free_frames_target: state.free_frames_target(seen),
        admission_bytes_per_second: (seen.dirty_pages > 0).then_some(admitted),
        capacity_pages_per_second: state.capacity.best().unwrap_or(0.0).min(RATE_MAX),
        age_target_bytes: target.target_bytes as u64,
    }
}

impl State {
    /// How much shorter than usual the ticks are, at most 1. A log that wraps in less than a second
    /// is looked at more often (`Checkpointer::is_due`). What is kept in reserve for the time
    /// between two looks may then be less; if it were not, such a log could never be used faster
    /// than once in a second, whatever the disk can do.
    fn haste(&mut self, seconds: f64) -> f64 {
        if seconds > 0.0 {
            let known = self.tick_seconds.unwrap_or(TICK_SECONDS);
            self.tick_seconds = Some(seconds.max(known - 0.2 * (known - seconds)));
        }
        (self.tick_seconds.unwrap_or(TICK_SECONDS) / TICK_SECONDS).clamp(HASTE_MIN, 1.0)
    }

    /// Books one tick: what was owed by the plan, what was done, what the disk took.
    fn account(&mut self, tick: &Tick, planned: f64, latency: f64) {
        // Idle writing is held back by its small queue, not by the disk.
        let backlogged = if self.previous.idle { 0.0 } else { tick.backlogged };
        // Where a write takes long whatever it has, it is not the log's that it waits for.
        let log_cost = if latency > 0.0 { 0.0 } else { tick.log_cost };
        self.capacity.observe(tick.seconds, tick.pages + log_cost, backlogged, latency);
        let slope = self.slope.unwrap_or(planned);
        let slope = slope + (planned - slope) * share(tick.seconds, SLOPE_SECONDS);
        self.slope = Some(slope);
        // Against errors of the redo rate and of the writer's pace, which the slope cannot see.
        let done = tick.swept_pages * self.previous.deadline_share;
        let debt_max = slope * self.rates.redo.per_second() * (DEBT_SECONDS_MAX + latency);
        self.debt_pages =
            (self.debt_pages + slope * tick.redo_bytes - done).clamp(-debt_max, debt_max);
        let (grow, shrink) = (1.0 + 2.0 * tick.seconds.min(0.5), 1.0 - 0.2 * tick.seconds.min(0.5));
        let factor = if backlogged > 0.75 { grow } else { shrink };
        self.in_flight_seconds =
            (self.in_flight_seconds * factor).clamp(IN_FLIGHT_SECONDS, IN_FLIGHT_SECONDS_MAX);
    }

    /// The plan's slope times the redo rate at which pages and log would share the disk as the plan
    /// wants, if they went on using as much of it as now.
    ///
    /// Where the disk is the bottleneck, slower pages mean faster commits, and a writer that simply
    /// followed the redo rate would swing as soon as pages cost more than the log. The balanced
    /// rate does not depend on how the disk was shared in the last tick, so this loop's gain is
    /// nil; where the disk is not the bottleneck, it converges to the redo rate.
    fn deadline_pages_per_second(&self, slope: f64, plan: &Plan, seen: &TickView<'_>) -> f64 {
        let log_cost = self.rates.log_cost.get();
        let cost = slope + log_cost;
        let balanced = if cost > 0.0 { self.rates.used.per_second() / cost } else { 0.0 };
        // Pages on their way will be delivered in a moment. Where that takes long, what is owed
        // would be booked again and again meanwhile.
        let on_their_way = if seen.batch_micros > 0 { seen.pages_in_flight as f64 } else { 0.0 };
        let owed = self.debt_pages - on_their_way.min(self.debt_pages.max(0.0));
        let repaid = (owed + plan.overdue_pages) / REPAY_SECONDS;
        // Where writers wait for admission they wait for page writes: no reason to hold back, and
        // only a disk that is pushed shows what it can take.
        let is_room_short = seen.room.is_some_and(|room| is_room_short(&room));
        // Where room is short nothing else lets them go on.
        let share = if is_room_short { 1.0 } else { self.throttled };
        // A disk that work has never waited for takes no less than it did at its best.
        let capacity = self.capacity(seen).or(self.capacity.best()).unwrap_or(CAPACITY_UNKNOWN);
        let pushed = PUSH * share * capacity;
        (slope * balanced + repaid).max(pushed).clamp(0.0, RATE_MAX)
    }

    /// Page writes that keep free frames ahead of the demand for them.
    fn free_pages_per_second(&self, seen: &TickView<'_>) -> f64 {
        let missing = self.free_frames_target(seen).saturating_sub(seen.frames_free) as f64;
        let frames = self.rates.frames.per_second() + missing / FREE_SECONDS;
        // Clean victims cost no write.
        (frames * fraction_of(seen.tail_dirty_fraction)).min(RATE_MAX)
    }

    /// Free frames that bridge the time from a demand seen to pages written.
    fn free_frames_target(&self, seen: &TickView<'_>) -> u64 {
        let pages = self.rates.pages.per_second();
        let latency = if pages > 0.0 { seen.pages_in_flight as f64 / pages } else { 0.0 };
        let bridge = 1.5 * self.rates.frames.per_second() * (0.1 + latency.min(1.0));
        let least = (seen.frames_total / 64).min(64);
        (bridge as u64).clamp(least, (seen.frames_total / 8).max(least))
    }

    /// With no work about, half the disk goes to shortening recovery.
    fn idle_pages_per_second(&self, seen: &TickView<'_>) -> f64 {
        let idle = self.rates.idle_seconds >= IDLE_AFTER_SECONDS;
        if !idle || seen.dirty_pages == 0 || seen.admission_waiters > 0 {
            return 0.0;
        }
        self.capacity.proven().unwrap_or(CAPACITY_UNKNOWN) / 2.0
    }

    /// In a pause, what the disk has to spare makes room for the next burst.
    fn pause_pages_per_second(&self, slope: f64, seen: &TickView<'_>, age: f64) -> f64 {
        let capacity = self.capacity.proven().unwrap_or(0.0);
        if latency_seconds(seen) > 0.0 || seen.admission_waiters > 0 || !age.is_finite() {
            return 0.0;
        }
        let redo = self.rates.redo.per_second();
        let (log, deadlines) = (self.rates.log_cost.get() * redo, slope * redo);
        let processors_busy = seen.processors_busy;
        let commits_together = self.rates.commits_together.get();
        let spare = Spare { capacity, log, deadlines, age, processors_busy, commits_together };
        self.pause.pages_per_second(&spare).min(RATE_MAX)
    }

    /// What the disk takes; where batches are long on their way, no more of them than there can be.
    fn capacity(&self, seen: &TickView<'_>) -> Option<f64> {
        let latency = latency_seconds(seen);
        if latency <= 0.0 {
            return self.capacity.proven();
        }
        let most = seen.batches_pages_max.max(1) as f64 / latency;
        Some(self.capacity.proven().map_or(most, |capacity| capacity.min(most)))
    }

    /// Redo that the disk can sustain: its capacity by the cost of a byte.
    fn sustainable_bytes_per_second(
        &self,
        slope: f64,
        free: f64,
        seen: &TickView<'_>,
    ) -> Option<f64> {
        let capacity = self.capacity(seen)?;
        let pages = (capacity - free).max(SHARE_MIN * capacity);
        // Of the log's cost only the bytes: its writes grow in size before they grow in number.
        let cost = slope + self.rates.log_byte_cost.get();
        (cost > 0.0).then(|| (pages / cost).min(RATE_MAX))
    }

    fn in_flight_max(&self, pages_per_second: f64) -> u32 {
        if self.previous.idle {
            return IN_FLIGHT_IDLE;
        }
        let seconds = self.in_flight_seconds.max(IN_FLIGHT_SECONDS);
        let rate = pages_per_second.min(1.25 * self.capacity.proven().unwrap_or(RATE_MAX));
        (rate * seconds).clamp(16.0, 4096.0) as u32
    }
}

fn fraction_of(fraction: f64) -> f64 {
    if fraction.is_nan() { 1.0 } else { fraction.clamp(0.0, 1.0) }
}

/// Page writes per second by cause, as wanted or as granted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wanted {
    deadline: f64,
    free: f64,
}

impl Wanted {
    /// When the disk cannot do both, the one with less time to a stall goes first; the other keeps
    /// `SHARE_MIN` of the disk.
    fn shared(
        self,
        state: &State,
        seen: &TickView<'_>,
        age_bytes: f64,
        target: &AgeTarget,
    ) -> Wanted {
        let Some(capacity) = state.capacity.proven() else { return self };
        if self.deadline + self.free <= capacity || self.free <= 0.0 {
            return self;
        }
        let redo = state.rates.redo.per_second().max(1.0);
        let frames = state.rates.frames.per_second().max(1e-3);
        let age_seconds = (target.limit_bytes - age_bytes).max(0.0) / redo;
        let free_seconds = seen.frames_free as f64 / frames;
        let first = |wanted: f64, other: f64| {
            wanted.min((capacity - other).max((1.0 - SHARE_MIN) * capacity))
        };
        if age_seconds <= free_seconds {
            let deadline = first(self.deadline, self.free);
            Wanted { deadline, free: self.free.min((capacity - deadline).max(0.0)) }
        } else {
            let free = first(self.free, self.deadline);
            Wanted { free, deadline: self.deadline.min((capacity - free).max(0.0)) }
        }
    }
}
