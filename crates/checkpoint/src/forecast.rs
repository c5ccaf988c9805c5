//! Rates of the recent past, from the differences of the cumulative inputs between two ticks.
use crate::policy::Seen;
use weir_base::Lsn;

/// A rate that is steady under noise and quick after a step: an exponential mean that jumps to the
/// new value when one tick leaves it by more than `JUMP` of the larger of the two.
///
/// Quickness matters more than it seems: with N threads that wait for their own commits, redo
/// grows N times as fast within one log write of a step, long before the age shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    per_second: Option<f64>,
}

const JUMP: f64 = 0.3;
const SETTLE_SECONDS: f64 = 0.5;

impl Rate {
    /// Takes the events of one tick of `seconds` (> 0).
    pub(crate) fn observe(&mut self, events: f64, seconds: f64) {
        let now = events / seconds;
        let known = self.per_second.unwrap_or(now);
        let off = (now - known).abs() > JUMP * known.max(now);
        self.per_second =
            Some(if off { now } else { known + (now - known) * share(seconds, SETTLE_SECONDS) });
    }

    /// The rate, 0 before the first tick.
    pub(crate) fn per_second(&self) -> f64 {
        self.per_second.unwrap_or(0.0)
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
    backlogged_micros: u64,
    frames_taken: u64,
    commits: u64,
    log_bytes_written: u64,
    log_writes: u64,
}

impl From<&Seen<'_>> for Counters {
    fn from(seen: &Seen<'_>) -> Self {
        Counters {
            now_micros: seen.now_micros,
            log_end: seen.log_end,
            pages_completed: seen.pages_completed,
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
    /// The same over some seconds and without jumps: for reserves, which must not jump.
    pub(crate) redo_slow: f64,
    /// Pages made durable.
    pub(crate) pages: Rate,
    /// Cost of the log's device writes, in page writes.
    pub(crate) log_cost: Rate,
    /// The part of it that goes by bytes.
    pub(crate) log_byte_cost: Rate,
    /// Free frames taken.
    pub(crate) frames: Rate,
    /// Time since the last commit.
    pub(crate) idle_seconds: f64,
}

/// Bytes that writing a page costs the disk: in place, and its share of a doublewrite batch.
fn page_device_bytes(page_bytes: u64) -> f64 {
    2.0 * page_bytes.clamp(512, 1 << 20) as f64
}

impl Rates {
    /// Takes the differences since the last tick. `None` at the first, and when no time passed.
    pub(crate) fn observe(&mut self, seen: &Seen<'_>) -> Option<Tick> {
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
        let write_cost = 0.5 * since(now.log_writes, last.log_writes);
        let byte_cost = 0.5 * since(now.log_bytes_written, last.log_bytes_written)
            / page_device_bytes(seen.page_bytes);
        let seconds = micros as f64 / 1e6;
        let backlogged = since(now.backlogged_micros, last.backlogged_micros) / micros as f64;
        let tick = Tick {
            seconds,
            redo_bytes: now.log_end.bytes_since(last.log_end) as f64,
            pages: since(now.pages_completed, last.pages_completed),
            log_cost: write_cost + byte_cost,
            backlogged: backlogged.min(1.0),
        };
        self.redo.observe(tick.redo_bytes, seconds);
        self.redo_slow += (tick.redo_bytes / seconds - self.redo_slow) * share(seconds, 5.0);
        self.pages.observe(tick.pages, seconds);
        self.log_cost.observe(tick.log_cost, seconds);
        self.log_byte_cost.observe(byte_cost, seconds);
        self.frames.observe(since(now.frames_taken, last.frames_taken), seconds);
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
        rate.observe(300.0, 0.1);
        assert_eq!(rate.per_second(), 3000.0, "a step up");
        rate.observe(0.0, 0.1);
        assert_eq!(rate.per_second(), 0.0, "a step down");
    }
}
