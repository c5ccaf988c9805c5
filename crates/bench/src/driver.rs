//! Runs the threads through warm-up and phases and looks at them once a second. Knows nothing of
//! what a transaction does.
use crate::compact::Compact;
use crate::feed::Feed;
use crate::line::line;
use crate::locked::locked;
use crate::options::{Options, Phase};
use crate::processors::Ticks;
use crate::section::{Section, latencies};
use crate::target::{Counters, Watched};
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use weir_base::Clock;

const SECOND_MICROS: u64 = 1_000_000;
/// The age is sampled so many times a second.
const SAMPLES_PER_SECOND: u64 = 100;
/// Reads and scans have nothing to settle but the pool.
const WARMUP_SECONDS_READ: u64 = 3;
/// Log wraps of a warm-up without `--warmup`: the first after a start writes its pages late, as
/// there is room, and the second still shows that (`docs/decisions/room.md`).
const WARMUP_WRAPS: u64 = 2;
/// A warm-up without `--warmup` gives up waiting for log wraps after so many times the run.
const WARMUP_RUNS_MAX: u64 = 4;

/// What a run showed.
pub(crate) struct Driven {
    pub(crate) warmup: Section,
    /// As many as phases were begun.
    pub(crate) phases: Vec<Section>,
    pub(crate) interrupted: bool,
    /// When the first phase began, on the run's clock.
    pub(crate) measured_from_micros: u64,
    /// The first error that a thread met; the run ended with it.
    pub(crate) error: Option<anyhow::Error>,
}

/// What the threads of a run do, all together.
pub(crate) trait Job: Sync {
    /// What one of them does.
    type Work<'a>: Work
    where
        Self: 'a;

    /// Makes a thread's work, on that thread.
    fn work(&self, thread: usize) -> Result<Self::Work<'_>>;

    /// The warm-up or a phase has ended: what the job counts itself begins anew.
    fn section_ended(&self) {}

    /// What to add to the line of the second that ends now.
    fn remark(&self, _now_micros: u64) -> String {
        String::new()
    }
}

/// One thread's part of a [`Job`].
pub(crate) trait Work {
    /// One transaction, or one more of several that are under way; records those that are done.
    fn step(&mut self, meter: &mut Meter<'_>) -> Result<()>;

    /// Brings to an end what is under way: the thread pauses, or the run is over.
    fn settle(&mut self, _meter: &mut Meter<'_>) -> Result<()> {
        Ok(())
    }
}

/// Measures one thread's transactions.
pub(crate) struct Meter<'a> {
    slot: &'a Slot,
    clock: &'a dyn Clock,
    last: u64,
}

impl Meter<'_> {
    /// The time when it was read last: when the last transaction ended, the next one begins.
    pub(crate) fn last_micros(&self) -> u64 {
        self.last
    }

    /// Reads the clock.
    pub(crate) fn read(&mut self) -> u64 {
        self.last = self.clock.now_micros();
        self.last
    }

    /// A transaction that began then has ended when the clock was read last; how long it took.
    pub(crate) fn record(&mut self, begun_micros: u64) -> u64 {
        let took = self.last.saturating_sub(begun_micros).max(1);
        locked(&self.slot.latencies).saturating_record(took);
        self.slot.transactions.fetch_add(1, Relaxed);
        took
    }
}

/// What one thread tells the sampler. On cache lines of its own: it is written at every
/// transaction.
#[repr(align(128))]
struct Slot {
    transactions: AtomicU64,
    latencies: Mutex<Histogram<u64>>,
}

/// What the threads and the sampler share.
struct Crew<'a> {
    slots: Vec<Slot>,
    clock: &'a dyn Clock,
    /// Threads numbered below this work, the others wait.
    active: AtomicUsize,
    gate: Mutex<()>,
    changed: Condvar,
    ended: AtomicBool,
    error: Mutex<Option<anyhow::Error>>,
}

impl Crew<'_> {
    fn set_active(&self, threads: usize) {
        let _gate = locked(&self.gate);
        self.active.store(threads, Relaxed);
        self.changed.notify_all();
    }

    fn end(&self) {
        let _gate = locked(&self.gate);
        self.ended.store(true, Relaxed);
        self.changed.notify_all();
    }

    /// Waits for this thread's turn.
    fn wait(&self, thread: usize) {
        let mut gate = locked(&self.gate);
        while thread >= self.active.load(Relaxed) && !self.ended.load(Relaxed) {
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread's life; an error ends the run.
    fn work<J: Job>(&self, thread: usize, job: &J) {
        if let Err(error) = self.try_work(thread, job) {
            locked(&self.error).get_or_insert(error);
            self.ended.store(true, Relaxed);
        }
    }

    fn try_work<J: Job>(&self, thread: usize, job: &J) -> Result<()> {
        let mut work = job.work(thread)?;
        let (slot, clock) = (&self.slots[thread], self.clock);
        let mut meter = Meter { slot, clock, last: clock.now_micros() };
        while !self.ended.load(Relaxed) {
            if thread >= self.active.load(Relaxed) {
                work.settle(&mut meter)?;
                self.wait(thread);
                meter.read();
            } else {
                work.step(&mut meter)?;
            }
        }
        work.settle(&mut meter)
    }
}

/// Ends the threads when the sampler leaves, by whatever way: the scope waits for them.
struct EndOnDrop<'a, 'b>(&'a Crew<'b>);

impl Drop for EndOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs warm-up and phases. Returns early, with what was seen, when `interrupt` is set or a thread
/// fails.
pub(crate) fn drive<T: Watched, J: Job>(
    target: &T,
    job: &J,
    options: &Options,
    clock: &dyn Clock,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Driven> {
    let threads_max = options.phases.threads_max();
    let slot = || Slot { transactions: AtomicU64::new(0), latencies: Mutex::new(latencies()) };
    let crew = Crew {
        slots: (0..threads_max).map(|_| slot()).collect(),
        clock,
        active: AtomicUsize::new(0),
        gate: Mutex::new(()),
        changed: Condvar::new(),
        ended: AtomicBool::new(false),
        error: Mutex::new(None),
    };
    let driven = std::thread::scope(|scope| {
        let _end = EndOnDrop(&crew);
        for thread in 0..threads_max {
            let crew = &crew;
            std::thread::Builder::new()
                .name(format!("bench-{thread}"))
                .spawn_scoped(scope, move || crew.work(thread, job))
                .with_context(|| format!("cannot start thread {thread}"))?;
        }
        Sampler::new(target, job, &crew, interrupt, out, options).run(options)
    });
    let mut driven = driven?;
    driven.error = locked(&crew.error).take();
    Ok(driven)
}

struct Sampler<'a, T, J> {
    target: &'a T,
    job: &'a J,
    crew: &'a Crew<'a>,
    interrupt: &'a AtomicBool,
    out: &'a mut dyn Write,
    /// When the present second was to begin: boundaries follow each other by exactly a second, so
    /// that lateness does not add up.
    planned: u64,
    /// When the last sample was really taken: rates are over the time that really passed (BENCH-4).
    sampled: u64,
    seconds: u64,
    transactions: u64,
    /// Of the processors, at the last sample.
    ticks: Option<Ticks>,
    /// Swapped with a thread's own, so that its lock is held for a moment only.
    spare: Histogram<u64>,
    merged: Histogram<u64>,
    feed: Feed,
    /// A picture instead of lines.
    compact: Option<Compact>,
}

impl<'a, T: Watched, J: Job> Sampler<'a, T, J> {
    fn new(
        target: &'a T,
        job: &'a J,
        crew: &'a Crew<'a>,
        interrupt: &'a AtomicBool,
        out: &'a mut dyn Write,
        options: &Options,
    ) -> Self {
        Sampler {
            target,
            job,
            crew,
            interrupt,
            out,
            planned: 0,
            sampled: 0,
            seconds: 0,
            transactions: 0,
            ticks: None,
            spare: latencies(),
            merged: latencies(),
            feed: options.feed.clone(),
            compact: options.compact.then(Compact::default),
        }
    }

    fn run(mut self, options: &Options) -> Result<Driven> {
        let first = options.phases.all()[0];
        self.target.reset_peaks();
        let mut warmup = Section::new(first.threads, self.target.counters());
        self.planned = self.crew.clock.now_micros();
        self.sampled = self.planned;
        self.ticks = Ticks::now();
        self.crew.set_active(first.threads);
        let mut phases: Vec<Section> = Vec::new();
        let mut going_on = true;
        while going_on && !warmed_up(&warmup, options) {
            going_on = self.second(&mut warmup, true)?;
        }
        self.job.section_ended();
        // From here the run's own seconds count from one.
        self.seconds = 0;
        let measured_from_micros = self.sampled;
        for phase in options.phases.all() {
            if !going_on {
                break;
            }
            let before = phases.last().map_or(warmup.after, |section| section.after);
            let mut section = Section::new(phase.threads, before);
            self.announce(phase, options)?;
            self.crew.set_active(phase.threads);
            while going_on && (section.seconds.len() as u64) < phase.seconds {
                going_on = self.second(&mut section, false)?;
            }
            self.job.section_ended();
            phases.push(section);
        }
        let interrupted = self.interrupt.load(Relaxed);
        Ok(Driven { warmup, phases, interrupted, measured_from_micros, error: None })
    }

    fn announce(&mut self, phase: &Phase, options: &Options) -> Result<()> {
        if options.phases.all().len() > 1 {
            writeln!(self.out, "{} threads for {} s", phase.threads, phase.seconds)?;
            if let Some(compact) = &mut self.compact {
                compact.interrupted();
            }
        }
        Ok(())
    }

    /// One second of the run; false when the run is to end, and then nothing of it is counted.
    fn second(&mut self, section: &mut Section, warm_up: bool) -> Result<bool> {
        let clock = self.crew.clock;
        for sample in 1..=SAMPLES_PER_SECOND {
            let due = self.planned + sample * SECOND_MICROS / SAMPLES_PER_SECOND;
            clock.sleep_micros(due.saturating_sub(clock.now_micros()));
            if self.interrupt.load(Relaxed) || self.crew.ended.load(Relaxed) {
                return Ok(false);
            }
            if sample < SAMPLES_PER_SECOND {
                section.sample_age(&self.target.counters());
            }
        }
        let now = clock.now_micros();
        // A machine that slept for more than half a second begins to count anew.
        let due = self.planned + SECOND_MICROS;
        self.planned = if now - due > SECOND_MICROS / 2 { now } else { due };
        let previous = section.after;
        let seen = self.collect(section, now);
        self.target.reset_peaks();
        self.seconds += 1;
        let writes = seen.page_writes.since(&previous.page_writes);
        self.feed.push(self.target, now, section, &self.merged, warm_up);
        let text = match &mut self.compact {
            Some(compact) => compact.paint(self.seconds, section, &writes, warm_up),
            None => {
                let text = line(self.seconds, section, &writes, warm_up);
                format!("{text}{}\n", self.job.remark(now))
            }
        };
        // A reader that went away (`| head`) ends the run like Ctrl-C would.
        if write!(self.out, "{text}").and_then(|()| self.out.flush()).is_err() {
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes what the threads have done since the last time.
    fn collect(&mut self, section: &mut Section, now: u64) -> Counters {
        let seen = self.target.counters();
        self.merged.reset();
        let mut transactions = 0;
        for slot in &self.crew.slots {
            transactions += slot.transactions.load(Relaxed);
            self.spare.reset();
            std::mem::swap(&mut *locked(&slot.latencies), &mut self.spare);
            self.merged.add(&self.spare).expect("all histograms have the same bounds");
        }
        section.sample_age(&seen);
        let passed = now - self.sampled;
        section.end_second(passed, transactions - self.transactions, &self.merged, seen);
        let ticks = Ticks::now();
        section.note_processors(ticks.zip(self.ticks).and_then(|(now, then)| now.since(&then)));
        self.ticks = ticks;
        self.transactions = transactions;
        self.sampled = now;
        seen
    }
}

fn warmed_up(section: &Section, options: &Options) -> bool {
    let seconds = section.seconds.len() as u64;
    if let Some(asked) = options.warmup_seconds {
        return seconds >= asked;
    }
    let run = options.phases.seconds();
    if !options.workload.writes() {
        return seconds >= WARMUP_SECONDS_READ.min(run);
    }
    let redo = section.after.redo_bytes.saturating_sub(section.before.redo_bytes);
    seconds > 0
        && (redo >= WARMUP_WRAPS * section.after.log_capacity_bytes
            || seconds >= WARMUP_RUNS_MAX * run)
}
