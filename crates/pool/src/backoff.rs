//! Waiting for a latch that is held for less than a microsecond, or for the length of a disk read.
use std::time::Duration;

/// Spins, then yields, then sleeps in growing steps of at most 100 microseconds.
///
/// Latches are held over memory work only, except while a page is being read from disk; a queue per
/// page would cost every page memory for waits that hardly occur.
#[derive(Default)]
pub(crate) struct Backoff {
    round: u32,
}

impl Backoff {
    pub(crate) fn wait(&mut self) {
        match self.round {
            0..8 => (0..1 << self.round).for_each(|_| std::hint::spin_loop()),
            8..24 => std::thread::yield_now(),
            n => std::thread::sleep(Duration::from_micros(u64::from((n - 23) * 5).min(100))),
        }
        self.round = self.round.saturating_add(1);
    }
}
