//! What the policy sees at a tick, within which limits, and what it says.
use crate::histogram::AgeHistogram;
use weir_base::Lsn;
use weir_pool::Room;

/// Ticks shorter than this are taken together: a slice must not look like a stall.
pub(crate) const TICK_SECONDS_MIN: f64 = 0.09;
/// Nothing waits longer for batches that are on their way.
const LATENCY_SECONDS_MAX: f64 = 10.0;

/// What was seen at one tick. Ticks come about every 100 ms; nothing here depends on that.
#[derive(Clone, Debug)]
pub struct TickView<'a> {
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
    /// Those among them that were written to free their frames (cumulative).
    pub pages_freed: u64,
    /// Time during which the writer had pages queued that it wanted to write at once and could not
    /// because `in_flight_max` were in flight (cumulative, microseconds).
    pub backlogged_micros: u64,
    /// What the writer's batches take of late (microseconds) where the disk takes long for each
    /// write, however few pages it has; 0 where it answers within a moment.
    pub batch_micros: u64,
    /// The most pages that the writer's batches can have on their way, all of them together.
    pub batches_pages_max: u64,
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
    /// Share of the processors' time of late that was used, 0 to 1; 0 where that is not known.
    pub processors_busy: f64,
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Where the disk is full: the room that is left for dirty pages.
    pub room: Option<Room>,
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
    /// Pages to write per second because nothing needs the disk.
    pub idle_pages_per_second: f64,
    /// Pages whose deadline has passed: due now, whatever the rate.
    pub overdue_pages: u64,
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

impl Verdict {
    /// Nothing is to be done: before the first tick.
    #[must_use]
    pub fn rest() -> Self {
        Verdict {
            deadline_pages_per_second: 0.0,
            free_pages_per_second: 0.0,
            idle_pages_per_second: 0.0,
            overdue_pages: 0,
            pages_per_second: 0.0,
            in_flight_max: 1,
            free_frames_target: 0,
            admission_bytes_per_second: None,
            capacity_pages_per_second: 0.0,
            age_target_bytes: 0,
        }
    }
}

/// How long the writer's batches are on their way where that is long, in seconds.
pub(crate) fn latency_seconds(seen: &TickView<'_>) -> f64 {
    (seen.batch_micros as f64 / 1e6).min(LATENCY_SECONDS_MAX)
}
