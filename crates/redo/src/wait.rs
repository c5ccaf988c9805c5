//! Waiting: for room in the log buffer, and for redo to be as safe as asked.
use crate::error::Result;
use crate::log::{Durability, Log, Reach};
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
                self.lead(Reach::Direct, None);
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
        let reach = match durability {
            Durability::Lazy => return Ok(()),
            Durability::Written => Reach::Cached,
            Durability::Synced => Reach::Durable,
        };
        self.wait_to_reach(end, reach)
    }

    /// Waits until the device has the redo before `end`, which a flush of the device's makes
    /// durable then, whichever file it is of ([`Log::synced_by_another`]). From then on
    /// [`Durability::Written`] goes past the system's cache as well.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn wait_for_device(&self, end: Lsn) -> Result<()> {
        self.check()?;
        self.past_cache.store(true, Ordering::Relaxed);
        self.wait_to_reach(end, Reach::Device)
    }

    fn wait_to_reach(&self, end: Lsn, reach: Reach) -> Result<()> {
        if self.has_reached(end, reach) {
            return Ok(());
        }
        assert!(end <= self.end(), "nothing was appended up to there");
        if reach == Reach::Durable {
            self.announce();
        } else {
            self.stats.commit_waits.add(1);
        }
        self.wait_for(end, reach)
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
        self.wait_for(end, Reach::Durable)
    }

    /// Says that a sync of another thread's has made durable what was before `end` and
    /// [on the device](Log::on_device): that a wait for that had returned before it began
    /// (DEVICE-9).
    ///
    /// # Panics
    /// When that is not on the device.
    pub fn synced_by_another(&self, end: Lsn) {
        assert!(end <= self.on_device(), "a sync takes what is on the device");
        if !self.is_halted() {
            // The leader stores no less: all of this is written by the time that it does.
            self.durable.0.fetch_max(end.0, Ordering::AcqRel);
        }
    }

    fn wait_for(&self, end: Lsn, reach: Reach) -> Result<()> {
        let done = || self.has_reached(end, reach);
        loop {
            if done() {
                return if reach == Reach::Durable { Ok(()) } else { self.check() };
            }
            self.check()?;
            if self.rounds.try_lead() {
                self.lead(reach, Some(end));
            } else if !self.linger(&done) {
                self.rounds.park(end.0, || done() || self.is_halted());
            }
        }
    }

    #[inline]
    fn has_reached(&self, end: Lsn, reach: Reach) -> bool {
        self.reached(reach) >= end
    }

    /// Up to where all has come so far.
    #[inline]
    pub(crate) fn reached(&self, reach: Reach) -> Lsn {
        match reach {
            Reach::Cached | Reach::Direct => self.written(),
            Reach::Device => self.on_device(),
            Reach::Durable => self.durable(),
        }
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

    /// Waits for everything appended so far; for the flusher that serves lazy commits. No commit
    /// waits for what it has [written](Durability::Written): past the system's cache, which a sync
    /// would have to empty.
    ///
    /// # Errors
    /// As [`Log::wait`].
    pub fn flush(&self, durability: Durability) -> Result<()> {
        match durability {
            Durability::Written => {
                self.check()?;
                self.wait_to_reach(self.end(), Reach::Direct)
            }
            Durability::Lazy | Durability::Synced => self.wait(self.end(), durability),
        }
    }
}
