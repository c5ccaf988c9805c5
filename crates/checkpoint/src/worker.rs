//! The loops around decide and sweep, as steps that a thread or a simulation calls.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, Lsn};
use weir_pool::{Cause, Pool};
use weir_redo::{Durability, Log};

use crate::admission::Admission;
use crate::error::WorkerError;
use crate::histogram::AgeHistogram;
use crate::lab::{Lab, LabSetup};
use crate::pacing::LANES;
use crate::policy::{State, decide};
use crate::policy_full_disk::is_room_short;
use crate::record::{Control, ControlFile};
use crate::sweep::{Pace, sweep};
use crate::tick::{Limits, TickView, Verdict};

/// What else holds the checkpoint besides dirty pages: open transactions, whose undo lies in the
/// log.
pub type OldestNeeded = dyn Fn() -> Option<Lsn> + Send + Sync;

/// How busy the processors are, 0 to 1.
pub type ProcessorsBusy = dyn Fn() -> f64 + Send + Sync;

/// Brings the control file's other entries up to date whenever it is written.
pub type Refresh = dyn Fn(&mut Control) + Send + Sync;

/// Keeps the checkpoint age just under its limit.
pub struct Checkpointer {
    pool: Arc<Pool>,
    log: Arc<Log>,
    control: Arc<ControlFile>,
    clock: Arc<dyn Clock>,
    admission: Admission,
    held: Box<OldestNeeded>,
    refresh: Box<Refresh>,
    state: Mutex<rank::ControllerState, State>,
    verdict: Mutex<rank::VerdictOfTick, Verdict>,
    pace: Pace,
    commits: AtomicU64,
    age_max_bytes: AtomicU64,
    recorded_micros: AtomicU64,
    /// The age up to which writers were let on last.
    admitted_age_bytes: AtomicU64,
    /// Where the log ended at the last tick.
    ticked_at: AtomicU64,
    processors_busy: Option<Box<ProcessorsBusy>>,
    lab: Option<Lab>,
}

/// The log may grow past the recorded checkpoint by this share of its limit before a newer one is
/// recorded.
const RECORD_SHARE: u64 = 64;
/// And not more often than this while nothing presses.
const RECORD_MICROS: u64 = 1_000_000;

/// When the log has grown by this share of its limit since the last tick, another is due.
const TICK_SHARE: u64 = 40;

/// Where the sweeper's second lane writes its doublewrite batches, modulo the number of files: of
/// three it has one for itself, of two it shares the cleaner's (1), not the first lane's (0).
const SHARD_OF_SECOND: usize = 5;

/// The cleaner's batches take the disk about this long.
const CLEAN_SECONDS: f64 = 0.03;
/// Pages that have pending redo, brought up to date in a step of everything.
const PUMP_PAGES: usize = 1;

impl Checkpointer {
    /// A checkpointer at rest. `held` says what else the log must keep.
    #[must_use]
    pub fn new(
        pool: Arc<Pool>,
        control: Arc<ControlFile>,
        clock: Arc<dyn Clock>,
        held: Box<OldestNeeded>,
        refresh: Box<Refresh>,
    ) -> Self {
        let (log, health) = (pool.log().clone(), pool.health().clone());
        Checkpointer {
            pool,
            log,
            control,
            clock,
            admission: Admission::closed(health),
            held,
            refresh,
            state: Mutex::new(State::new()),
            verdict: Mutex::new(Verdict::rest()),
            pace: Pace::new(),
            commits: AtomicU64::new(0),
            age_max_bytes: AtomicU64::new(0),
            recorded_micros: AtomicU64::new(0),
            admitted_age_bytes: AtomicU64::new(0),
            ticked_at: AtomicU64::new(0),
            processors_busy: None,
            lab: None,
        }
    }

    /// Has the policy know how busy the processors are, 0 to 1. Without, it takes them to be idle.
    #[must_use]
    pub fn with_processors(mut self, busy: Option<Box<ProcessorsBusy>>) -> Self {
        self.processors_busy = busy;
        self
    }

    /// For the laboratory alone: another policy in the place of `decide`.
    #[must_use]
    pub fn with_lab(mut self, lab: Option<LabSetup>) -> Self {
        self.lab = lab.map(Lab::new);
        self
    }

    /// Admission of redo.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// What was decided last.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict.lock().clone()
    }

    /// The oldest position that the log must keep.
    #[must_use]
    pub fn oldest(&self) -> Lsn {
        // Pages first: a transaction that opens after this look lies behind what it found, and one
        // that was open is still held. The other way round one could open in between and have its
        // pages written, unseen by both looks.
        let dirty = self.pool.oldest();
        let held = (self.held)();
        held.map_or(dirty, |lsn| lsn.min(dirty))
    }

    /// The checkpoint age now, in bytes.
    #[must_use]
    pub fn age_bytes(&self) -> u64 {
        let oldest = self.oldest();
        self.log.end().bytes_since(oldest)
    }

    /// The greatest age that may ever be: beyond it the log would run into what recovery needs.
    #[must_use]
    pub fn age_limit_bytes(&self) -> u64 {
        let log = self.log.limit_bytes();
        (log - log / RECORD_SHARE).min(self.pool.age_span_bytes())
    }

    /// The age at which writers are held back: below the limit by what those already admitted may
    /// still write.
    fn gate_bytes(&self) -> u64 {
        let limit = self.age_limit_bytes();
        limit - (limit / 64).min(1 << 20)
    }

    /// The greatest age seen since the last call of [`Checkpointer::reset_peaks`].
    #[must_use]
    pub fn age_max_bytes(&self) -> u64 {
        self.age_max_bytes.load(Ordering::Relaxed)
    }

    /// Forgets the greatest age seen.
    pub fn reset_peaks(&self) {
        self.age_max_bytes.store(0, Ordering::Relaxed);
    }

    /// Keeps the age below what recovery may take.
    pub fn set_recovery_age_bytes(&self, bytes: Option<u64>) {
        // There, because what holds the checkpoint reckons with it as well.
        self.log.set_age_bound(bytes);
    }

    /// Counts a commit: the controller tells idleness by it.
    #[inline]
    pub fn count_commit(&self) {
        weir_base::lines::wrote("the number of commits");
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Commits counted.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Whether a tick is due early: so much was logged since the last one that it would come too
    /// late for a log this small.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let last = Lsn(self.ticked_at.load(Ordering::Relaxed));
        self.log.end().bytes_since(last) > self.age_limit_bytes() / TICK_SHARE
    }

    /// The controller's tick, every 50 ms, or earlier when it [is due](Checkpointer::is_due).
    pub fn tick(&self) {
        self.ticked_at.store(self.log.end().0, Ordering::Relaxed);
        let Some(lab) = &self.lab else { return self.observe(|seen| self.decide(seen)) };
        self.pool.set_free_target(lab.free_frames());
        self.admission.set_rate(None);
    }

    fn decide(&self, seen: &TickView<'_>) {
        let limits =
            Limits { age_bytes: self.gate_bytes(), recovery_age_bytes: self.log.age_bound() };
        let verdict = decide(&mut self.state.lock(), seen, &limits);
        self.pool.set_free_target(verdict.free_frames_target);
        self.admission.set_rate(verdict.admission_bytes_per_second);
        *self.verdict.lock() = verdict;
    }

    /// Looks at everything that a policy may want to know.
    fn observe(&self, then: impl FnOnce(&TickView<'_>)) {
        let residence = self.pool.residence();
        let counts = self.pool.age_counts();
        let mut dirty = AgeHistogram::new(counts.first, counts.bucket_bytes);
        dirty.counts = counts.counts;
        let pool = self.pool.stats();
        let redo = self.log.stats();
        let seen = TickView {
            now_micros: self.clock.now_micros(),
            log_end: self.log.end(),
            oldest_dirty: self.oldest(),
            dirty: &dirty,
            pages_in_flight: self.pool.pages_in_flight(),
            oldest_in_flight: self.pool.oldest_in_flight(),
            pages_completed: pool.writes(),
            pages_freed: pool.writes_free_frames.get(),
            backlogged_micros: self.pace.backlogged_micros(&*self.clock),
            batch_micros: self.pace.long_micros(&*self.clock),
            batches_pages_max: (LANES * self.pool.store().batch_max()) as u64,
            dirty_pages: residence.dirty + self.pool.pages_in_flight(),
            frames_total: residence.frames,
            frames_free: residence.free,
            frames_taken: pool.frames_taken.get(),
            tail_dirty_fraction: self.pool.tail_dirty_fraction(),
            commits: self.commits(),
            log_bytes_written: redo.bytes_written.get(),
            log_writes: redo.writes.get(),
            admission_waiters: self.admission.waiters(),
            processors_busy: self.processors_busy.as_ref().map_or(0.0, |busy| busy()),
            page_bytes: self.pool.page_size() as u64,
            room: self.pool.room(),
        };
        self.pool.store().note_processors(seen.processors_busy);
        then(&seen);
    }

    /// Lets writers on as far as rate and age limit allow; every few milliseconds.
    pub fn admit(&self) {
        let oldest = self.oldest();
        let end = self.log.end();
        self.age_max_bytes.fetch_max(end.bytes_since(oldest), Ordering::Relaxed);
        let age = self.gate_bytes();
        self.admitted_age_bytes.store(age, Ordering::Relaxed);
        // The checkpoint that is recorded lags a little behind. The log takes another file for
        // that, where it can have one.
        let mut gate = oldest.advanced(age).min(self.log.room_until());
        if let Some(lab) = &self.lab {
            gate = gate.min(lab.gate(oldest));
        }
        self.admission.advance(self.clock.now_micros(), end, gate);
    }

    /// The sweeper's step. Returns pages written; 0 means rest. Each of the sweeper's `lane`s calls
    /// it in turn, from a thread of its own: while one waits for the device, the other goes on.
    ///
    /// # Errors
    /// [`WorkerError::Pool`].
    pub fn sweep(&self, lane: usize) -> Result<usize, WorkerError> {
        if let Some(lab) = &self.lab {
            // The originals that it imitates have one.
            if lane > 0 {
                return Ok(0);
            }
            if lab.is_due(self.clock.now_micros()) {
                self.observe(|seen| lab.ask(seen, self.log.capacity_bytes()));
            }
            return Ok(lab.sweep(&self.pool, &*self.clock)?);
        }
        let verdict = self.verdict();
        let shard = if lane == 0 { 0 } else { SHARD_OF_SECOND };
        Ok(sweep(&self.pool, &*self.clock, &self.pace, &verdict, (lane, shard))?)
    }

    /// The cleaner's step: keeps free frames ahead of demand. Returns whether they are.
    ///
    /// # Errors
    /// [`WorkerError::Pool`].
    pub fn clean(&self) -> Result<bool, WorkerError> {
        let capacity = self.verdict.lock().capacity_pages_per_second;
        let batch = if capacity > 0.0 { (capacity * CLEAN_SECONDS) as u64 } else { 64 };
        let batch = batch.max(4);
        if let Some(lab) = &self.lab {
            return self.clean_within(lab);
        }
        self.pool.set_clean_batch(batch);
        Ok(self.pool.refill(1, (batch as usize / 8).max(1), &mut |_| {})?)
    }

    /// As [`Checkpointer::clean`], writing no more than the laboratory's policy allows.
    fn clean_within(&self, lab: &Lab) -> Result<bool, WorkerError> {
        let left = lab.free_writes_left(self.clock.now_micros());
        if left == 0 {
            return Ok(true);
        }
        self.pool.set_clean_batch(left.min(64));
        let before = self.pool.stats().writes_free_frames.get();
        let met = self.pool.refill(1, usize::MAX, &mut |_| {})?;
        lab.count_free_writes(self.pool.stats().writes_free_frames.get() - before);
        Ok(met)
    }

    /// Records a newer checkpoint if it is time: what lies before it may be overwritten then.
    ///
    /// # Errors
    /// [`WorkerError::Control`], [`WorkerError::Redo`]; [`WorkerError::Pool`] when it has halted.
    pub fn record(&self, force: bool) -> Result<bool, WorkerError> {
        // Once a write or sync of pages has failed, what the dirty list says is believed no more.
        self.pool.check_halted()?;
        let now = self.clock.now_micros();
        let oldest = self.oldest();
        let recorded = self.control.get().checkpoint;
        let grown = oldest.bytes_since(recorded);
        let pressing = grown >= self.age_limit_bytes() / RECORD_SHARE / 2;
        let old = now.saturating_sub(self.recorded_micros.load(Ordering::Relaxed)) >= RECORD_MICROS;
        if grown == 0 || !(force || pressing || old) {
            return Ok(false);
        }
        // A checkpoint must not stand beyond the durable log: recovery begins to read there. Nor
        // may it pass records of a transaction whose end, or whose undo logged again, could still
        // be lost: recovery would roll back only what lies behind the checkpoint. Whatever let
        // `oldest` move was logged before it did, so before the end of the log as it is now.
        let end = self.log.end();
        self.log.wait(end, Durability::Synced)?;
        self.pool.check_halted()?;
        self.write_control(|control| {
            control.checkpoint = oldest;
            control.synced = end;
        })?;
        self.log.set_checkpoint(oldest);
        self.recorded_micros.store(now, Ordering::Relaxed);
        Ok(true)
    }

    /// Changes the control file. What is in the data file belongs to it from then on: an older copy
    /// of either is told from that (`docs/decisions/whose-page.md`).
    ///
    /// # Errors
    /// [`WorkerError::Control`].
    pub fn write_control(&self, change: impl FnOnce(&mut Control)) -> Result<(), WorkerError> {
        let update = |control: &mut Control| {
            (self.refresh)(control);
            change(control);
        };
        let store = self.pool.store();
        self.control
            .begin_era(update, |era| store.set_era(era).map_err(std::io::Error::other))
            .map_err(|e| WorkerError::Control(Arc::new(e)))
    }

    /// One step of everything, for a database without background threads: writes enough of the
    /// oldest pages that the log can go on.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn pump(&self) -> Result<(), WorkerError> {
        self.pool.apply_pending(PUMP_PAGES)?;
        let limit = self.age_limit_bytes();
        let is_room_short = self.pool.room().is_some_and(|room| is_room_short(&room));
        if self.age_bytes() > limit / 4 * 3 || is_room_short {
            let pages = self.pool.take_oldest(self.pool.store().batch_max(), self.log.published());
            self.pool.write_back(0, &pages, Cause::Deadline, 64, &mut |_| {})?;
        }
        self.record(false)?;
        self.maintain_log()?;
        self.admit();
        Ok(())
    }

    /// A step of the log's upkeep. That it can have no other file is no reason to fail: it goes on
    /// with those that it has. Returns whether there is more to do.
    ///
    /// # Errors
    /// [`WorkerError::Redo`].
    pub fn maintain_log(&self) -> Result<bool, WorkerError> {
        // A log that shrinks gives up files as less is allowed: no thread may go on up to what was.
        if self.gate_bytes() < self.admitted_age_bytes.load(Ordering::Relaxed) {
            self.record(false)?;
            self.admit();
        }
        match self.log.maintain() {
            Err(e) if e.is_lack_of_space() => {}
            more => return Ok(more?),
        }
        // Less is allowed now: at once, or the log would need a file that cannot be had.
        self.admit();
        Ok(false)
    }

    /// Writes all pages that are dirty now.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub fn flush_all(&self) -> Result<(), WorkerError> {
        let until = self.log.end();
        let mut rounds = 0u32;
        while self.pool.oldest() < until {
            let pages = self.pool.take_oldest(self.pool.store().batch_max(), until);
            if pages.is_empty() {
                // In flight by another thread.
                self.pool.check_halted()?;
                rounds += 1;
                self.clock.sleep_micros(u64::from(rounds.min(10)) * 100);
                if self.pool.residence().dirty == 0 && self.pool.pages_in_flight() == 0 {
                    break;
                }
                continue;
            }
            self.pool.write_back(0, &pages, Cause::Shutdown, 64, &mut |_| {})?;
        }
        self.record(true)?;
        Ok(())
    }
}
