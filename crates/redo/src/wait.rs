//! Waiting: for room in the log buffer, and for redo to be as safe as asked.
use crate::error::Result;
use crate::log::{Durability, Log};
use std::sync::atomic::Ordering;
use weir_base::Lsn;

impl Log {
    /// Waits until the ring's places before `end` may be filled (REDO-3).
    #[inline]
    pub(crate) fn have_room(&self, end: Lsn) -> Result<()> {
        if end.0 <= self.given_back.0.load(Ordering::Acquire) + self.ring.len() {
            return Ok(());
        }
        self.make_room(end)
    }

    #[cold]
    fn make_room(&self, end: Lsn) -> Result<()> {
        self.stats.room_waits.add(1);
        let roomy = || end.0 <= self.given_back.0.load(Ordering::Acquire) + self.ring.len();
        loop {
            if roomy() {
                return Ok(());
            }
            self.check()?;
            if self.rounds.try_lead() {
                self.lead(Durability::Written, None);
                if !roomy() {
                    crate::sync::yield_now();
                }
            } else {
                self.rounds.park_for_room(|| roomy() || self.is_halted());
            }
        }
    }

    /// Waits until the redo before `end` is as safe as `durability` says; [`Durability::Lazy`]
    /// does not wait. The first thread that needs a write does it for all (group commit).
    ///
    /// # Errors
    /// [`crate::RedoError::Halted`]: then the redo may or may not survive.
    pub fn wait(&self, end: Lsn, durability: Durability) -> Result<()> {
        // A sync that fails may lose what was written before it.
        if durability != Durability::Synced {
            self.check()?;
        }
        if self.has_reached(end, durability) {
            return Ok(());
        }
        assert!(end <= self.end(), "nothing was appended up to there");
        if durability == Durability::Synced {
            self.announce();
        } else {
            self.stats.commit_waits.add(1);
        }
        self.wait_for(end, durability)
    }

    /// A thread leaves it to another to wait until redo is synced: it takes part in the next round
    /// as waiting threads do themselves, and leaders wait for it where that pays.
    pub fn announce(&self) {
        self.arrived.0.fetch_add(1, Ordering::Relaxed);
        self.stats.commit_waits.add(1);
    }

    /// Waits until the redo before `end` is synced, for all those that have announced themselves.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn wait_for_announced(&self, end: Lsn) -> Result<()> {
        self.wait_for(end, Durability::Synced)
    }

    /// Says that a sync of another thread's has made durable what was
    /// [written](Durability::Written) before `end`, and was: that a wait for that had returned
    /// before it began (DEVICE-9).
    ///
    /// # Panics
    /// When that is not written.
    pub fn synced_by_another(&self, end: Lsn) {
        assert!(end <= self.written(), "a sync takes what is written");
        if !self.is_halted() {
            // The leader stores no less: all of this is written by the time that it does.
            self.durable.0.fetch_max(end.0, Ordering::AcqRel);
        }
    }

    fn wait_for(&self, end: Lsn, durability: Durability) -> Result<()> {
        let done = || self.has_reached(end, durability);
        loop {
            if done() {
                return if durability == Durability::Synced { Ok(()) } else { self.check() };
            }
            self.check()?;
            if self.rounds.try_lead() {
                self.lead(durability, Some(end));
            } else if !self.linger(&done) {
                self.rounds.park(end.0, || done() || self.is_halted());
            }
        }
    }

    #[inline]
    fn has_reached(&self, end: Lsn, durability: Durability) -> bool {
        let reached = match durability {
            Durability::Lazy => return true,
            Durability::Written => &self.written.0,
            Durability::Synced => &self.durable.0,
        };
        reached.load(Ordering::Acquire) >= end.0
    }

    /// Looks on, giving the processor away, while a round of the usual length passes: on a fast
    /// device that costs less than going to sleep and being woken. Returns whether to look again;
    /// otherwise it takes too long to stay awake.
    fn linger(&self, done: &impl Fn() -> bool) -> bool {
        let micros_max = u64::from(self.linger_micros.load(Ordering::Relaxed));
        if micros_max == 0 {
            return false;
        }
        let start = self.micros();
        while self.micros() - start < micros_max {
            crate::sync::yield_now();
            if done() || !self.rounds.is_led() {
                return true;
            }
        }
        false
    }

    /// Waits for everything appended so far; for the flusher that serves lazy commits.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn flush(&self, durability: Durability) -> Result<()> {
        self.wait(self.end(), durability)
    }
}
