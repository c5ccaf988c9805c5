//! Rates of the recent past, from the differences of the cumulative inputs between two ticks.
use crate::tick::{TICK_SECONDS_MIN, TickView, latency_seconds};
use weir_base::Lsn;

/// A rate that is steady under noise and quick after a step: an exponential mean that jumps when
/// two ticks running leave it by more than `JUMP` of the larger, on the same side. One tick does
/// not count: a disk that works in slices may have two slices in one tick and none in the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    per_second: Option<f64>,
    /// Where the last tick was off: its rate, if it was.
    off: Option<f64>,
    /// Events and seconds of ticks not yet long enough to count.
    short: (f64, f64),
}

const JUMP: f64 = 0.25;
const SETTLE_SECONDS: f64 = 0.5;

impl Rate {
    /// Takes the events of one tick of `seconds` (> 0).
    pub(crate) fn observe(&mut self, events: f64, seconds: f64) {
        self.observe_over(events, seconds, 0.0);
    }

    /// The same of events that come in lumps, `latency` seconds apart.
    pub(crate) fn observe_over(&mut self, events: f64, seconds: f64, latency: f64) {
        self.short = (self.short.0 + events, self.short.1 + seconds);
        if self.short.1 >= TICK_SECONDS_MIN.max(latency) {
            let (events, seconds) = std::mem::take(&mut self.short);
            self.settle(events, seconds);
        }
    }

    fn settle(&mut self, events: f64, seconds: f64) {
        let now = events / seconds;
        let known = self.per_second.unwrap_or(now);
        let off = (now - known).abs() > JUMP * known.max(now);
        let again = self.off.is_some_and(|before| (before > known) == (now > known));
        self.off = off.then_some(now);
        if off && again {
            self.per_second = Some(now);
            self.off = None;
        } else {
            let weight = share(seconds, SETTLE_SECONDS) * if off { 0.5 } else { 1.0 };
            self.per_second = Some(known + (now - known) * weight);
        }
    }

    /// The rate, 0 before the first tick.
    pub(crate) fn per_second(&self) -> f64 {
        self.per_second.unwrap_or(0.0)
    }
}

/// A cost per byte of redo, or what else comes with what. Both are of the same tick, so what makes
/// a tick long or a disk hasty cancels out, and it may follow a step at once. It must: with N
/// threads that wait for their own commits, redo grows N times as fast from one log write to the
/// next, long before the age shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ratio {
    value: Option<f64>,
}

impl Ratio {
    fn observe(&mut self, cost: f64, of: f64, seconds: f64) {
        if of <= 0.0 {
            return;
        }
        let now = cost / of;
        let known = self.value.unwrap_or(now);
        let off = (now - known).abs() > JUMP * known.max(now);
        let weight = if off { 1.0 } else { share(seconds, SETTLE_SECONDS) };
        self.value = Some(known + (now - known) * weight);
    }

    /// The cost of one, 0 before the first.
    pub(crate) fn get(&self) -> f64 {
        self.value.unwrap_or(0.0)
    }
}

/// Weight of a new value that stands for `seconds` in an exponential mean over `settle_seconds`.
pub(crate) fn share(seconds: f64, settle_seconds: f64) -> f64 {
    1.0 - (-seconds / settle_seconds).exp()
}

/// The cumulative inputs at the last tick.
#[derive(Clone, Copy, Debug)]
struct Counters {
    now_micros: u64,
    log_end: Lsn,
    pages_completed: u64,
    pages_freed: u64,
    backlogged_micros: u64,
    frames_taken: u64,
    commits: u64,
    log_bytes_written: u64,
    log_writes: u64,
}

impl From<&TickView<'_>> for Counters {
    fn from(seen: &TickView<'_>) -> Self {
        Counters {
            now_micros: seen.now_micros,
            log_end: seen.log_end,
            pages_completed: seen.pages_completed,
            pages_freed: seen.pages_freed,
            backlogged_micros: seen.backlogged_micros,
            frames_taken: seen.frames_taken,
            commits: seen.commits,
            log_bytes_written: seen.log_bytes_written,
            log_writes: seen.log_writes,
        }
    }
}

/// What one tick added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tick {
    /// Length of the tick, > 0.
    pub(crate) seconds: f64,
    /// Growth of the log.
    pub(crate) redo_bytes: f64,
    /// Pages made durable.
    pub(crate) pages: f64,
    /// Those of them that were not written to free their frames.
    pub(crate) swept_pages: f64,
    /// What the log's writes cost the disk, in page writes.
    pub(crate) log_cost: f64,
    /// Part of the tick (0 to 1) in which page writes waited for the disk.
    pub(crate) backlogged: f64,
}

/// Rates per second, by exponential means.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    last: Option<Counters>,
    /// Bytes of redo.
    pub(crate) redo: Rate,
    /// The highest of late: quick up, slow down. For reserves: what came once comes again.
    pub(crate) redo_high: f64,
    /// Pages made durable.
    pub(crate) pages: Rate,
    /// Cost to the disk of all writes but those for free frames, in page writes.
    pub(crate) used: Rate,
    /// Cost of the log's device writes by byte of redo, in page writes.
    pub(crate) log_cost: Ratio,
    /// The part of it that goes by bytes written.
    pub(crate) log_byte_cost: Ratio,
    /// Free frames taken.
    pub(crate) frames: Rate,
    /// Commits for each write of the log.
    pub(crate) commits_together: Ratio,
    /// Time since the last commit.
    pub(crate) idle_seconds: f64,
}

const HIGH_UP_SECONDS: f64 = 3.0;
/// The highest rate is forgotten in about this time,
const HIGH_DOWN_SECONDS: f64 = 10.0;
/// or in the time of a log wrap, if that is less but not less than this: a reserve for a rate that
/// no page in the list has seen is log given away.
const HIGH_DOWN_SECONDS_MIN: f64 = 3.0;

/// Bytes that writing a page costs the disk: in place, and its share of a doublewrite batch.
fn page_device_bytes(page_bytes: u64) -> f64 {
    2.0 * page_bytes.clamp(512, 1 << 20) as f64
}

impl Rates {
    /// Takes the differences since the last tick, of whose swept pages `deadline_share` were for
    /// deadlines; the log wraps in about `age_limit_bytes`. `None` at the first, and when no time
    /// passed.
    pub(crate) fn observe(
        &mut self,
        seen: &TickView<'_>,
        age_limit_bytes: u64,
        deadline_share: f64,
    ) -> Option<Tick> {
        let now = Counters::from(seen);
        let Some(last) = self.last else {
            self.last = Some(now);
            return None;
        };
        let micros = now.now_micros.saturating_sub(last.now_micros);
        if micros == 0 {
            return None;
        }
        self.last = Some(now);
        let since = |now: u64, last: u64| now.saturating_sub(last) as f64;
        // A log write costs half by being one and half by its bytes: right within a factor of two
        // on any mixture of an IOPS limit and a bandwidth limit, and that is enough, because the
        // capacity is learned in the same units, at the mixture that prevails.
        let write_cost = 0.75 * since(now.log_writes, last.log_writes);
        let byte_cost = 0.25 * since(now.log_bytes_written, last.log_bytes_written)
            / page_device_bytes(seen.page_bytes);
        let seconds = micros as f64 / 1e6;
        let backlogged = since(now.backlogged_micros, last.backlogged_micros) / micros as f64;
        let pages = since(now.pages_completed, last.pages_completed);
        let tick = Tick {
            seconds,
            redo_bytes: now.log_end.bytes_since(last.log_end) as f64,
            pages,
            swept_pages: (pages - since(now.pages_freed, last.pages_freed)).max(0.0),
            log_cost: write_cost + byte_cost,
            backlogged: backlogged.min(1.0),
        };
        self.redo.observe(tick.redo_bytes, seconds);
        let redo = tick.redo_bytes / seconds;
        let wrap_seconds = age_limit_bytes as f64 / self.redo_high.max(1.0);
        let down = wrap_seconds.clamp(HIGH_DOWN_SECONDS_MIN, HIGH_DOWN_SECONDS);
        let settle = if redo > self.redo_high { HIGH_UP_SECONDS } else { down };
        self.redo_high += (redo - self.redo_high) * share(seconds, settle);
        let latency = latency_seconds(seen);
        self.pages.observe_over(tick.pages, seconds, latency);
        let used = tick.swept_pages * deadline_share + tick.log_cost;
        self.used.observe_over(used, seconds, latency);
        self.log_cost.observe(tick.log_cost, tick.redo_bytes, seconds);
        self.log_byte_cost.observe(byte_cost, tick.redo_bytes, seconds);
        self.frames.observe(since(now.frames_taken, last.frames_taken), seconds);
        let commits = since(now.commits, last.commits);
        self.commits_together.observe(commits, since(now.log_writes, last.log_writes), seconds);
        let idle = now.commits == last.commits;
        self.idle_seconds = if idle { self.idle_seconds + seconds } else { 0.0 };
        Some(tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_smooths_noise_and_jumps_with_a_step() {
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(), 0.0);
        rate.observe(100.0, 0.1);
        assert_eq!(rate.per_second(), 1000.0, "the first tick is all that is known");
        rate.observe(110.0, 0.1);
        let smooth = rate.per_second();
        assert!(smooth > 1000.0 && smooth < 1030.0, "noise: {smooth}");
        rate.observe(200.0, 0.1);
        rate.observe(0.0, 0.1);
        let smooth = rate.per_second();
        assert!(smooth > 900.0 && smooth < 1200.0, "two slices in one tick: {smooth}");
        rate.observe(300.0, 0.1);
        rate.observe(300.0, 0.1);
        assert_eq!(rate.per_second(), 3000.0, "a step up");
        rate.observe(0.0, 0.1);
        rate.observe(0.0, 0.1);
        assert_eq!(rate.per_second(), 0.0, "a step down");
    }

    #[test]
    fn a_high_rate_is_remembered_for_a_log_wrap() {
        let dirty = crate::AgeHistogram::default();
        let high_after = |age_limit_bytes: u64| {
            let mut rates = Rates::default();
            let mut seen = TickView {
                now_micros: 0,
                log_end: Lsn(1),
                oldest_dirty: Lsn(1),
                dirty: &dirty,
                pages_in_flight: 0,
                oldest_in_flight: None,
                pages_completed: 0,
                pages_freed: 0,
                backlogged_micros: 0,
                batch_micros: 0,
                batches_pages_max: 512,
                dirty_pages: 0,
                frames_total: 100,
                frames_free: 100,
                frames_taken: 0,
                tail_dirty_fraction: 0.0,
                commits: 0,
                log_bytes_written: 0,
                log_writes: 0,
                admission_waiters: 0,
                processors_busy: 0.0,
                page_bytes: 8192,
                room: None,
            };
            // A second of 10 MB/s or so, then five of 1 MB/s.
            for tick in 0..120u64 {
                seen.now_micros += 50_000;
                let bytes = if tick < 20 { 500_000 } else { 50_000 };
                seen.log_end = seen.log_end.advanced(bytes);
                rates.observe(&seen, age_limit_bytes, 1.0);
            }
            rates.redo_high
        };
        let (short, long) = (high_after(5_000_000), high_after(1 << 30));
        assert!(short < 1.6e6 && long > 1.9e6, "{short} {long}");
    }
}
