//! Time as something that is handed in, so that a simulation owns it.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock.
pub trait Clock: Send + Sync {
    /// Microseconds since some fixed moment.
    fn now_micros(&self) -> u64;
    /// Waits. A simulated clock moves forward at once.
    fn sleep_micros(&self, micros: u64);
    /// The time of day, as Unix time in microseconds: it may jump, and go back. A simulation has no
    /// other than [`Clock::now_micros`].
    fn unix_micros(&self) -> u64 {
        self.now_micros()
    }
}

/// The machine's clock.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that begins now.
    #[must_use]
    pub fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
    fn sleep_micros(&self, micros: u64) {
        std::thread::sleep(Duration::from_micros(micros));
    }
    fn unix_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }
}

/// A clock that moves only when told to.
#[derive(Default)]
pub struct ManualClock {
    micros: AtomicU64,
}

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, micros: u64) {
        self.micros.fetch_add(micros, Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> u64 {
        self.micros.load(Relaxed)
    }
    fn sleep_micros(&self, micros: u64) {
        self.advance(micros);
    }
}
