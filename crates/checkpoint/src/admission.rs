//! Admission of redo: how far the log may grow right now. One queue for all writers; users never
//! flush.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use weir_base::lock::{Condvar, Mutex};
use weir_base::rank;
use weir_base::{Clock, Health, Lsn, counters};

counters! {
    /// What admission counts.
    pub struct AdmissionStats {
        waits: "waits", "times a writer waited for admission";
        wait_micros: "microseconds", "time that writers waited for admission";
        gate_closed: "times", "times the last resort, the age limit itself, held writers back";
    }
}

/// Writers' bytes of log, rationed.
pub struct Admission {
    /// The log may grow up to here.
    allowed: AtomicU64,
    /// And never beyond here: the age limit.
    gate: AtomicU64,
    waiters: AtomicU64,
    /// Stopped by itself, for closing.
    stopped: AtomicBool,
    health: Arc<Health>,
    why: Mutex<rank::AdmissionEnd, Option<String>>,
    queue: Mutex<rank::AdmissionQueue, Bucket>,
    moved: Condvar,
    stats: AdmissionStats,
}

struct Bucket {
    bytes_per_second: Option<f64>,
    last_micros: Option<u64>,
}

/// Requests of this size and larger are alike to the rate.
const ALIKE_BYTES: u64 = 512;
/// What is larger is admitted as soon as this much is: it must come through.
const LARGE_BYTES: u64 = 1 << 14;
/// Unused admission is kept for this long, no longer: a pause must not turn into a burst. Nor is
/// more of it kept than half of what the age limit leaves.
const BURST_SECONDS: f64 = 0.05;

impl Admission {
    /// Nothing may be written yet, and never after the engine has halted.
    #[must_use]
    pub fn closed(health: Arc<Health>) -> Self {
        Admission {
            allowed: AtomicU64::new(0),
            gate: AtomicU64::new(0),
            waiters: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            health,
            why: Mutex::new(None),
            queue: Mutex::new(Bucket { bytes_per_second: None, last_micros: None }),
            moved: Condvar::new(),
            stats: AdmissionStats::default(),
        }
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> &AdmissionStats {
        &self.stats
    }

    /// Writers that wait now.
    #[must_use]
    pub fn waiters(&self) -> u64 {
        self.waiters.load(Ordering::Relaxed)
    }

    /// Sets the rate; `None` is unlimited.
    pub fn set_rate(&self, bytes_per_second: Option<f64>) {
        self.queue.lock().bytes_per_second = bytes_per_second;
    }

    /// Moves the permission forward. `gate` is the last position that the age limit allows.
    pub fn advance(&self, now_micros: u64, end: Lsn, gate: Lsn) {
        let mut queue = self.queue.lock();
        let last = queue.last_micros.replace(now_micros);
        let seconds = last.map_or(0.0, |last| now_micros.saturating_sub(last) as f64 / 1e6);
        let allowed = match queue.bytes_per_second {
            None => gate,
            Some(rate) => {
                let kept = self.allowed.load(Ordering::Relaxed).max(end.0.saturating_sub(1 << 16));
                let grown = kept.saturating_add((rate * seconds) as u64);
                let burst = ((rate * BURST_SECONDS) as u64).min(gate.bytes_since(end) / 2);
                let most = end.0.saturating_add(burst);
                Lsn(grown.min(most)).min(gate)
            }
        };
        if gate <= end && self.waiters() > 0 {
            self.stats.gate_closed.add(1);
        }
        self.gate.store(gate.0, Ordering::Release);
        self.allowed.store(allowed.0, Ordering::Release);
        drop(queue);
        if self.waiters() > 0 {
            self.moved.notify_all();
        }
    }

    /// Whether `bytes` more may be written behind `end`.
    #[inline]
    #[must_use]
    pub fn allows(&self, end: Lsn, bytes: u64) -> bool {
        // By the rate all are alike: a large request would otherwise be kept out for ever by small
        // ones. What it takes beyond its share, those behind it wait for.
        let by_rate = end.0.saturating_add(bytes.min(ALIKE_BYTES));
        let by_age = end.0.saturating_add(bytes.min(LARGE_BYTES));
        by_rate <= self.allowed.load(Ordering::Acquire)
            && by_age <= self.gate.load(Ordering::Acquire)
            && !self.stopped.load(Ordering::Relaxed)
            && !self.health.is_halted()
    }

    /// Waits until `bytes` more may be written behind what `end` says.
    ///
    /// # Errors
    /// Why writers have been stopped for good.
    pub fn wait(&self, clock: &dyn Clock, end: &dyn Fn() -> Lsn, bytes: u64) -> Result<(), String> {
        let began = clock.now_micros();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut queue = self.queue.lock();
        let result = loop {
            if let Some(why) = self.stopped() {
                break Err(why);
            }
            if self.allows(end(), bytes) {
                break Ok(());
            }
            self.moved.wait_for(&mut queue, Duration::from_millis(20));
        };
        drop(queue);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        self.stats.waits.add(1);
        self.stats.wait_micros.add(clock.now_micros().saturating_sub(began));
        result
    }

    /// Lets a writer wait for `micros` outside the queue, because he must look at something else
    /// between. He counts among the waiters meanwhile: what holds writers back is the same, however
    /// they wait.
    pub fn wait_apart(&self, clock: &dyn Clock, micros: u64) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        clock.sleep_micros(micros);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Writers that wait look again: the engine has halted.
    pub fn wake(&self) {
        self.moved.notify_all();
    }

    /// No writer is admitted any more.
    pub fn stop(&self, why: &str) {
        self.why.lock().get_or_insert_with(|| why.to_owned());
        self.stopped.store(true, Ordering::SeqCst);
        self.moved.notify_all();
    }

    /// Why writers were stopped, if they were.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        if let Some(why) = self.health.why_halted() {
            return Some(why.to_owned());
        }
        if !self.stopped.load(Ordering::SeqCst) {
            return None;
        }
        self.why.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::ManualClock;

    #[test]
    fn rate_burst_and_gate() {
        let admission = Admission::closed(Arc::default());
        assert!(!admission.allows(Lsn(0), 1));
        admission.advance(0, Lsn(1 << 20), Lsn(2 << 20));
        assert!(admission.allows(Lsn(1 << 20), 1000));
        assert!(!admission.allows(Lsn(2 << 20), 1));
        admission.set_rate(Some(1e6));
        admission.advance(1_000_000, Lsn(1 << 20), Lsn(2 << 20));
        assert!(admission.allows(Lsn(1 << 20), 10_000), "up to 50 ms are kept");
        assert!(!admission.allows(Lsn((1 << 20) + 50_000), 1_000));
        admission.advance(1_010_000, Lsn((1 << 20) + 50_000), Lsn(2 << 20));
        assert!(admission.allows(Lsn((1 << 20) + 50_000), 9_000));
        assert!(admission.allows(Lsn((1 << 20) + 59_000), 11_000), "all are alike to the rate");
        assert!(!admission.allows(Lsn((1 << 20) + 59_800), 300));
        admission.advance(1_020_000, Lsn((2 << 20) - 10_000), Lsn(2 << 20));
        assert!(!admission.allows(Lsn((2 << 20) - 10_000), 11_000), "but not to the age limit");
    }

    #[test]
    fn a_writer_that_waits_apart_counts_meanwhile() {
        /// Looks while threads sleep.
        struct Looking<'a>(&'a Admission, AtomicU64);
        impl Clock for Looking<'_> {
            fn now_micros(&self) -> u64 {
                0
            }
            fn sleep_micros(&self, micros: u64) {
                self.1.store(1000 * micros + self.0.waiters(), Ordering::Relaxed);
            }
        }
        let admission = Admission::closed(Arc::default());
        let clock = Looking(&admission, AtomicU64::new(0));
        admission.wait_apart(&clock, 7);
        assert_eq!(clock.1.load(Ordering::Relaxed), 7001);
        assert_eq!(admission.waiters(), 0);
    }

    #[test]
    fn a_halt_refuses_at_once() {
        let health = Arc::new(Health::default());
        let admission = Admission::closed(health.clone());
        admission.advance(0, Lsn(1 << 20), Lsn(2 << 20));
        assert!(admission.allows(Lsn(1 << 20), 1));
        health.halt("the disk is gone");
        assert!(!admission.allows(Lsn(1 << 20), 1));
        let refused = admission.wait(&ManualClock::default(), &|| Lsn(1 << 20), 1);
        assert_eq!(refused, Err("the disk is gone".to_owned()));
    }

    #[test]
    fn stopping_wakes_and_refuses() {
        let admission = Admission::closed(Arc::default());
        let clock = ManualClock::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| admission.wait(&clock, &|| Lsn(5), 1));
            while admission.waiters() == 0 {
                std::thread::yield_now();
            }
            admission.stop("the disk is gone");
            let refused = waiting.join().expect("no panic");
            assert_eq!(refused, Err("the disk is gone".to_owned()));
        });
    }
}
