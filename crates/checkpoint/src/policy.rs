//! Where the checkpoint is decided: `decide`, a pure function from what was seen to what to do.
use crate::capacity::Capacity;
use crate::forecast::{AgeTarget, Plan, Rate};
use crate::histogram::AgeHistogram;
use weir_base::Lsn;

/// What was seen at one tick. Ticks come about every 100 ms; nothing here depends on that.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Time of the tick on the engine's clock, microseconds.
    pub now_micros: u64,
    /// End of the log (W).
    pub log_end: Lsn,
    /// Oldest first modification of any page that is not durable, pages in flight included (O);
    /// `log_end` when nothing is dirty.
    pub oldest_dirty: Lsn,
    /// Dirty pages by first modification, without those in flight.
    pub dirty: &'a AgeHistogram,
    /// Pages submitted and not yet durable.
    pub pages_in_flight: u64,
    /// Oldest first modification among those.
    pub oldest_in_flight: Option<Lsn>,
    /// Pages made durable since the start, all causes (cumulative).
    pub pages_completed: u64,
    /// Time during which the writer had pages queued that it wanted to write at once and could not
    /// because `in_flight_max` were in flight (cumulative, microseconds).
    pub backlogged_micros: u64,
    /// Dirty pages, those in flight included.
    pub dirty_pages: u64,
    /// Frames of the pool.
    pub frames_total: u64,
    /// Frames free for immediate use.
    pub frames_free: u64,
    /// Free frames taken since the start (cumulative).
    pub frames_taken: u64,
    /// Share of dirty pages among the next victims, 0 to 1.
    pub tail_dirty_fraction: f64,
    /// Transactions (or groups) committed since the start (cumulative).
    pub commits: u64,
    /// Bytes that the log wrote to the device since the start (cumulative).
    pub log_bytes_written: u64,
    /// Device writes of the log since the start (cumulative).
    pub log_writes: u64,
    /// Writers that wait for admission now.
    pub admission_waiters: u64,
    /// Size of a page in bytes.
    pub page_bytes: u64,
}

/// What must not be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The checkpoint age at which writers are blocked: never to be passed.
    pub age_bytes: u64,
    /// A lower goal for the age (recovery time, or a log about to shrink). It is approached over
    /// some seconds when the age is above it.
    pub recovery_age_bytes: Option<u64>,
}

/// What to do until the next tick. All rates are finite and not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Pages to write per second so that every deadline is met.
    pub deadline_pages_per_second: f64,
    /// Pages to write per second so that free frames do not run out.
    pub free_pages_per_second: f64,
    /// Pages to write per second because nobody needs the disk.
    pub idle_pages_per_second: f64,
    /// The writer's total.
    pub pages_per_second: f64,
    /// Pages that may be submitted and not completed.
    pub in_flight_max: u32,
    /// Free frames to keep ahead of demand.
    pub free_frames_target: u64,
    /// Bytes of redo admitted per second; `None`: unlimited.
    pub admission_bytes_per_second: Option<f64>,
    /// Page writes per second (doublewrite included) that the disk is believed to take if it did
    /// nothing else; 0 while unknown. For display.
    pub capacity_pages_per_second: f64,
    /// The age that deadlines are planned against (A*).
    pub age_target_bytes: u64,
}

/// What is remembered between ticks. Plain data.
#[derive(Clone, Debug, Default)]
pub struct State {
    last: Option<Counters>,
    redo: Rate,
    pages: Rate,
    log_writes: Rate,
    log_bytes: Rate,
    frames: Rate,
    capacity: Capacity,
    idle_seconds: f64,
    slope: Option<f64>,
}

/// The cumulative inputs at the last tick.
#[derive(Clone, Copy, Debug)]
struct Counters {
    now_micros: u64,
    log_end: Lsn,
    pages_completed: u64,
    backlogged_micros: u64,
    frames_taken: u64,
    commits: u64,
    log_bytes_written: u64,
    log_writes: u64,
}

impl State {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        State::default()
    }
}

/// Decides what to do until the next tick. Reads no clock, does no I/O, draws no random numbers:
/// the same inputs give the same verdict.
pub fn decide(state: &mut State, seen: &Seen<'_>, limits: &Limits) -> Verdict {
    let seconds = state.observe(seen);
    let target = age_target(limits, state.redo.per_second());
    let redo = state.redo.per_second();
    let room_min = (redo * 0.5).max(target.target_bytes / 64.0);
    let plan = Plan::solve(seen.dirty, seen.log_end, seen.oldest_dirty, target, room_min);
    let slope = state.smooth_slope(plan.pages_per_byte, seconds);
    let log_cost = log_cost_per_byte(state, seen);
    let used = state.pages.per_second() + log_cost * redo;
    let balanced = if slope + log_cost > 0.0 { used / (slope + log_cost) } else { redo };
    let deadline = slope * balanced + plan.overdue_pages;
    let capacity = state.capacity.cost_per_second();

    let headroom =
        (target.limit_bytes - seen.log_end.bytes_since(seen.oldest_dirty) as f64).max(0.0);
    let band = (target.limit_bytes - target.target_bytes).max(1.0);
    let mut admission = headroom / 0.4;
    if let Some(capacity) = capacity
        && slope > 0.0
    {
        admission = admission.min(1.3 * capacity / slope * headroom / band);
    }
    let idle = if state.idle_seconds >= 1.0 && seen.dirty_pages > 0 {
        capacity.unwrap_or(100.0) / 2.0
    } else {
        0.0
    };
    let pages_per_second = deadline.max(idle);
    let in_flight = (capacity.unwrap_or(2000.0) * 0.03).clamp(8.0, 1024.0);
    Verdict {
        deadline_pages_per_second: deadline,
        free_pages_per_second: 0.0,
        idle_pages_per_second: (idle - deadline).max(0.0),
        pages_per_second,
        in_flight_max: if idle > 0.0 { 2 } else { in_flight as u32 },
        free_frames_target: 0,
        admission_bytes_per_second: (seen.dirty_pages > 0).then_some(admission),
        capacity_pages_per_second: capacity.unwrap_or(0.0),
        age_target_bytes: target.target_bytes as u64,
    }
}

fn age_target(limits: &Limits, redo: f64) -> AgeTarget {
    let limit = limits.age_bytes.min(limits.recovery_age_bytes.unwrap_or(u64::MAX)) as f64;
    let reserve = (0.03 * limit + 0.3 * redo).min(0.25 * limit);
    AgeTarget { target_bytes: limit - reserve, limit_bytes: limit }
}

/// Cost units per byte of redo: what the log takes of the disk, in page writes.
fn log_cost_per_byte(state: &State, seen: &Seen<'_>) -> f64 {
    let redo = state.redo.per_second();
    if redo <= 0.0 {
        return 0.0;
    }
    state.log_cost(seen.page_bytes) / redo
}

impl State {
    /// What the log takes of the disk, in page writes per second.
    fn log_cost(&self, page_bytes: u64) -> f64 {
        let page_device_bytes = 2.0 * page_bytes.max(512) as f64;
        0.5 * (self.log_writes.per_second() + self.log_bytes.per_second() / page_device_bytes)
    }

    fn smooth_slope(&mut self, slope: f64, seconds: f64) -> f64 {
        let known = self.slope.unwrap_or(slope);
        let smooth = known + (slope - known) * (1.0 - (-seconds / 0.3).exp());
        self.slope = Some(smooth);
        smooth
    }

    /// Takes the differences since the last tick; returns its length in seconds (0 at the first).
    fn observe(&mut self, seen: &Seen<'_>) -> f64 {
        let now = Counters {
            now_micros: seen.now_micros,
            log_end: seen.log_end,
            pages_completed: seen.pages_completed,
            backlogged_micros: seen.backlogged_micros,
            frames_taken: seen.frames_taken,
            commits: seen.commits,
            log_bytes_written: seen.log_bytes_written,
            log_writes: seen.log_writes,
        };
        let Some(last) = self.last else {
            self.last = Some(now);
            return 0.0;
        };
        let micros = now.now_micros.saturating_sub(last.now_micros);
        if micros == 0 {
            return 0.0;
        }
        self.last = Some(now);
        let seconds = micros as f64 / 1e6;
        let since = |now: u64, last: u64| now.saturating_sub(last) as f64;
        let pages = since(now.pages_completed, last.pages_completed);
        let log_writes = since(now.log_writes, last.log_writes);
        let log_bytes = since(now.log_bytes_written, last.log_bytes_written);
        self.redo.observe(now.log_end.bytes_since(last.log_end) as f64, seconds, 0.5, 0.3);
        self.pages.observe(pages, seconds, 0.5, 0.3);
        self.log_writes.observe(log_writes, seconds, 0.5, 0.3);
        self.log_bytes.observe(log_bytes, seconds, 0.5, 0.3);
        self.frames.observe(since(now.frames_taken, last.frames_taken), seconds, 0.5, 0.3);
        let page_device_bytes = 2.0 * seen.page_bytes.max(512) as f64;
        let cost = pages + 0.5 * (log_writes + log_bytes / page_device_bytes);
        let backlogged = since(now.backlogged_micros, last.backlogged_micros) / 1e6;
        self.capacity.observe(seconds, cost, backlogged);
        self.idle_seconds =
            if now.commits == last.commits { self.idle_seconds + seconds } else { 0.0 };
        seconds
    }
}
