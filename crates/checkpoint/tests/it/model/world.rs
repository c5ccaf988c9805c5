//! The engine in small: events in simulated time.
//!
//! What it has: one log write in flight whose size is the group of all waiting threads; a sweeper
//! that writes oldest first in sub-batches (doublewrite, then in place); admission by a token
//! bucket; a gate that blocks at the limit. What it has not: reads, eviction, transactions of
//! more than one record, latency besides queueing.
use super::disk::{Disk, DiskSpec};
use super::lanes::{BATCH_MAX, Lanes, Sweeper};
use super::load::{Class, Clients, Pages, Rng};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use weir_base::Lsn;
use weir_checkpoint::{AgeHistogram, LANES, Limits, TickView, Verdict};

/// What decides: the crate's policy, or one that the tests must reject.
pub(crate) type Decide<'a> = dyn FnMut(&TickView<'_>, &Limits) -> Verdict + 'a;

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) disk: DiskSpec,
    pub(crate) clients: Clients,
    pub(crate) pages: Pages,
    /// From when (seconds) which age limit holds.
    pub(crate) limits: Vec<(f64, u64)>,
    pub(crate) redo_bytes: u64,
    pub(crate) tick_seconds: f64,
    /// Each tick is longer by up to this share, at random.
    pub(crate) tick_jitter: f64,
    /// Time between two sub-batches of the sweeper.
    pub(crate) sweep_seconds: f64,
    pub(crate) sweeper: Sweeper,
    /// The simple sweeper writes one batch of so many seconds' worth after the other, in groups, as
    /// one lane of `sweep.rs` does; 0: sub-batches overlap.
    pub(crate) batch_seconds: f64,
    /// Every page is dirtied by the first record (a bulk load that was never checkpointed).
    pub(crate) all_dirty_at_start: bool,
    /// The sweeper writes this many times what it was to: an error of every rate estimate.
    pub(crate) pace_error: f64,
    /// All waiting threads share a log write, instead of those that came while the last one ran.
    pub(crate) gather: bool,
    /// What a transaction takes besides waiting for the log: its processor time.
    pub(crate) think_seconds: f64,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Thread(u32),
    Arrival,
    LogStart,
    LogDone,
    Sweep,
    Doublewritten,
    Written,
    GroupDue(u32),
    GroupWritten,
    LaneFree(u8),
    LaneWritten(u8),
    LaneDue(u8),
    Drain,
    Tick,
}

/// Totals that the report is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) commits: u64,
    pub(crate) pages: u64,
    pub(crate) appended: u64,
    pub(crate) age_max_over_limit: f64,
    pub(crate) gate_closed_seconds: f64,
    pub(crate) waiting_max: usize,
}

/// A batch of pages on its way: number of pages, its oldest LSN.
type Batch = (u64, u64);

pub(super) const PAGE_BYTES: u64 = 8192;
const DRAIN_SECONDS: f64 = 0.001;
/// Worth of pages that a batch hands to the disk at once.
const GROUP_SECONDS: f64 = 0.005;
const OPEN: u32 = u32::MAX;

pub(crate) struct World {
    pub(super) setup: Setup,
    pub(crate) now: f64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    pub(super) disk: Disk,
    rng: Rng,
    // log
    log_end: u64,
    log_durable: u64,
    log_writing: Option<u64>,
    log_start_due: bool,
    log_waiters: VecDeque<(u64, u32)>,
    log_bytes: u64,
    log_writes: u64,
    // pages
    pub(super) first_modified: Vec<u64>,
    pub(super) dirty: VecDeque<(u64, u32)>,
    doublewriting: VecDeque<Batch>,
    writing: VecDeque<Batch>,
    pub(super) in_flight: u64,
    credit: f64,
    backlogged: f64,
    /// Pages of the batch in hand that are not yet submitted, and when the next group is due.
    group_pages_left: u64,
    group_due: f64,
    group_looked: f64,
    appended_pages: u32,
    /// Parts of pages that transactions have not modified yet.
    parts: f64,
    pub(super) lanes: Lanes,
    // admission
    waiting: VecDeque<u32>,
    drain_due: bool,
    tokens: f64,
    tokens_at: f64,
    parked: Vec<u32>,
    // decisions
    limit: u64,
    goal: u64,
    histogram: AgeHistogram,
    pub(crate) verdict: Verdict,
    pub(crate) totals: Totals,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let limit = setup.limits[0].1;
        let pages = match setup.pages {
            Pages::Uniform(pages) => pages,
            Pages::Skewed { hot, cold } => hot + cold,
            Pages::Append { old, .. } => old,
            Pages::Mix { classes, .. } => classes.iter().map(|class| class.pages).sum(),
        };
        let mut world = World {
            disk: Disk::new(setup.disk.clone()),
            rng: Rng::new(setup.seed),
            now: 0.0,
            events: BinaryHeap::new(),
            sequence: 0,
            log_end: 1,
            log_durable: 1,
            log_writing: None,
            log_start_due: false,
            log_waiters: VecDeque::new(),
            log_bytes: 0,
            log_writes: 0,
            first_modified: vec![0; pages as usize],
            dirty: VecDeque::new(),
            doublewriting: VecDeque::new(),
            writing: VecDeque::new(),
            in_flight: 0,
            credit: 0.0,
            backlogged: 0.0,
            group_pages_left: 0,
            group_due: 0.0,
            group_looked: 0.0,
            appended_pages: 0,
            parts: 0.0,
            lanes: Lanes::default(),
            waiting: VecDeque::new(),
            drain_due: false,
            tokens: 0.0,
            tokens_at: 0.0,
            parked: (0..setup.clients.threads_max() as u32).collect(),
            limit,
            goal: limit,
            histogram: AgeHistogram::default(),
            verdict: Verdict::rest(),
            totals: Totals::default(),
            setup,
        };
        if world.setup.all_dirty_at_start {
            for page in 0..world.first_modified.len() as u32 {
                world.touch(page);
            }
        }
        world.at(0.0, Event::Tick);
        if world.setup.sweeper == Sweeper::Simple {
            world.at(0.0, Event::Sweep);
        } else {
            (0..LANES as u8).for_each(|lane| world.at(0.0, Event::LaneFree(lane)));
        }
        if matches!(world.setup.clients, Clients::Open(_)) {
            world.at(0.0, Event::Arrival);
        }
        world.unpark();
        world
    }

    pub(super) fn at(&mut self, seconds: f64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse(((seconds * 1e9) as u64, self.sequence, event)));
    }

    /// Lets time pass to `until` seconds.
    pub(crate) fn run(&mut self, until: f64, decide: &mut Decide<'_>) {
        while let Some(&Reverse((nanos, _, event))) = self.events.peek() {
            if nanos as f64 / 1e9 > until {
                break;
            }
            self.events.pop();
            self.now = nanos as f64 / 1e9;
            match event {
                Event::Thread(thread) => self.thread(thread),
                Event::Arrival => self.arrival(),
                Event::LogStart => self.log_start(),
                Event::LogDone => self.log_done(),
                Event::Sweep => self.sweep(),
                Event::Doublewritten => self.doublewritten(),
                Event::Written => self.written(),
                Event::GroupDue(pages) => self.group_due(pages),
                Event::GroupWritten => self.group(),
                Event::LaneFree(lane) => self.lane_free(lane),
                Event::LaneWritten(lane) => self.lane_written(lane),
                Event::LaneDue(lane) => self.lane_due(lane),
                Event::Drain => self.drain(),
                Event::Tick => self.tick(decide),
            }
        }
        self.now = until;
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest_in_flight().or(self.dirty.front().map(|page| page.0)).unwrap_or(self.log_end)
    }

    fn oldest_in_flight(&self) -> Option<u64> {
        let batches = self.writing.front().or(self.doublewriting.front());
        batches.map(|batch| batch.1).or(self.lanes.oldest())
    }

    pub(crate) fn age_over_limit(&self) -> f64 {
        (self.log_end - self.oldest()) as f64 / self.limit as f64
    }

    pub(crate) fn log_end(&self) -> u64 {
        self.log_end
    }

    pub(crate) fn dirty_pages(&self) -> u64 {
        self.dirty.len() as u64 + self.in_flight
    }

    // ---- clients

    fn unpark(&mut self) {
        let active = self.setup.clients.threads(self.now) as u32;
        let parked = std::mem::take(&mut self.parked);
        for thread in parked {
            if thread < active {
                self.at(self.now, Event::Thread(thread));
            } else {
                self.parked.push(thread);
            }
        }
    }

    fn thread(&mut self, thread: u32) {
        if thread as usize >= self.setup.clients.threads(self.now) {
            self.parked.push(thread);
            return;
        }
        self.enter(thread);
    }

    fn arrival(&mut self) {
        let Clients::Open(rate) = self.setup.clients else { return };
        let rate = rate(self.now);
        if rate > 0.0 {
            self.enter(OPEN);
        }
        self.at(self.now + 1.0 / rate.max(20.0), Event::Arrival);
    }

    fn enter(&mut self, thread: u32) {
        if self.waiting.is_empty() && self.may_append() {
            self.append(thread);
            return;
        }
        self.waiting.push_back(thread);
        self.totals.waiting_max = self.totals.waiting_max.max(self.waiting.len());
        if !self.drain_due {
            self.drain_due = true;
            self.at(self.now + DRAIN_SECONDS, Event::Drain);
        }
    }

    fn gate_open(&self) -> bool {
        self.log_end + self.setup.redo_bytes - self.oldest() <= self.limit
    }

    fn may_append(&mut self) -> bool {
        if !self.gate_open() || self.log_end - self.log_durable > 16 << 20 {
            return false;
        }
        let Some(rate) = self.verdict.admission_bytes_per_second else { return true };
        self.tokens += (self.now - self.tokens_at) * rate;
        self.tokens = self.tokens.min(rate * 0.05);
        self.tokens_at = self.now;
        if self.tokens < 0.0 {
            return false;
        }
        self.tokens -= self.setup.redo_bytes as f64;
        true
    }

    fn drain(&mut self) {
        self.drain_due = false;
        if !self.gate_open() {
            self.totals.gate_closed_seconds += DRAIN_SECONDS;
        }
        while let Some(&thread) = self.waiting.front() {
            if !self.may_append() {
                self.drain_due = true;
                self.at(self.now + DRAIN_SECONDS, Event::Drain);
                return;
            }
            self.waiting.pop_front();
            self.append(thread);
        }
    }

    fn append(&mut self, thread: u32) {
        self.modify();
        self.log_end += self.setup.redo_bytes;
        self.totals.appended += 1;
        let age = self.age_over_limit();
        self.totals.age_max_over_limit = self.totals.age_max_over_limit.max(age);
        if let Clients::Lazy { cpu_seconds, .. } = self.setup.clients {
            self.totals.commits += 1;
            self.at(self.now + cpu_seconds, Event::Thread(thread));
            return;
        }
        self.log_waiters.push_back((self.log_end, thread));
        self.log_start_soon();
    }

    fn modify(&mut self) {
        let page = match self.setup.pages {
            Pages::Uniform(pages) => self.rng.below(pages),
            Pages::Skewed { hot, cold } => match self.rng.below(10) {
                0 => hot + self.rng.below(cold),
                _ => self.rng.below(hot),
            },
            Pages::Append { old, per_page } => {
                if self.totals.appended.is_multiple_of(u64::from(per_page)) {
                    self.appended_pages += 1;
                    self.first_modified.push(0);
                    self.touch(old + self.appended_pages - 1);
                }
                self.rng.below(old)
            }
            Pages::Mix { classes, new_pages } => return self.modify_some(classes, new_pages),
        };
        self.touch(page);
    }

    fn modify_some(&mut self, classes: &[Class], new_pages: f64) {
        let mut first = 0;
        for class in classes {
            let part = f64::from(self.rng.below(1 << 16)) / 65_536.0;
            for _ in 0..(class.touches + part) as u32 {
                let page = first + self.rng.below(class.pages);
                self.touch(page);
            }
            first += class.pages;
        }
        self.parts += new_pages;
        if self.parts >= 1.0 {
            self.parts -= 1.0;
            self.first_modified.push(0);
            self.touch(self.first_modified.len() as u32 - 1);
        }
    }

    fn touch(&mut self, page: u32) {
        let first = &mut self.first_modified[page as usize];
        if *first == 0 {
            *first = self.log_end;
            self.dirty.push_back((self.log_end, page));
        }
    }

    // ---- log

    fn log_start_soon(&mut self) {
        if self.log_writing.is_none() && !self.log_start_due {
            self.log_start_due = true;
            // Time for the threads that the last write woke to come again.
            let pause = if self.setup.gather { 50e-6 } else { 5e-6 };
            self.at(self.now + pause, Event::LogStart);
        }
    }

    fn log_start(&mut self) {
        self.log_start_due = false;
        if self.log_writing.is_some() || self.log_end == self.log_durable {
            return;
        }
        let end = self.log_end.min(self.log_durable + (1 << 20));
        let bytes = end.next_multiple_of(4096) - self.log_durable / 4096 * 4096;
        self.log_writing = Some(end);
        self.log_bytes += bytes;
        self.log_writes += 1;
        let done = self.disk.submit(self.now, 1, bytes);
        self.at(done, Event::LogDone);
    }

    fn log_done(&mut self) {
        self.log_durable = self.log_writing.take().expect("a write was in flight");
        let gather = self.setup.gather;
        if !gather && self.log_end > self.log_durable {
            self.log_start();
        }
        while let Some(&(lsn, thread)) = self.log_waiters.front()
            && lsn <= self.log_durable
        {
            self.log_waiters.pop_front();
            self.totals.commits += 1;
            if thread != OPEN {
                let think = 1e-6 * f64::from(5 + self.rng.below(20)) + self.setup.think_seconds;
                self.at(self.now + think, Event::Thread(thread));
            }
        }
        if self.log_end > self.log_durable && !matches!(self.setup.clients, Clients::Lazy { .. }) {
            self.log_start_soon();
        }
    }

    // ---- pages

    fn sweep(&mut self) {
        if self.setup.batch_seconds > 0.0 {
            self.batch();
            return;
        }
        let period = self.setup.sweep_seconds;
        self.at(self.now + period, Event::Sweep);
        if matches!(self.setup.clients, Clients::Lazy { .. }) {
            self.log_start_soon();
        }
        let room = u64::from(self.verdict.in_flight_max).saturating_sub(self.in_flight);
        let rate = self.verdict.pages_per_second * self.setup.pace_error;
        self.credit += rate * period;
        let wanted = (self.credit as u64).min(self.dirty.len() as u64);
        if wanted > room {
            self.backlogged += period;
        }
        let count = wanted.min(room);
        self.credit = (self.credit - count as f64)
            .min(2.0 * f64::from(self.verdict.in_flight_max))
            .min(self.dirty.len() as f64);
        if count > 0 {
            self.take(count);
        }
    }

    fn take(&mut self, count: u64) {
        let oldest = self.dirty[0].0;
        for (_, page) in self.dirty.drain(..count as usize) {
            self.first_modified[page as usize] = 0;
        }
        self.in_flight += count;
        self.doublewriting.push_back((count, oldest));
        let done = self.disk.submit(self.now, 1, count * PAGE_BYTES);
        self.at(done, Event::Doublewritten);
    }

    fn doublewritten(&mut self) {
        let batch = self.doublewriting.pop_front().expect("a batch was in flight");
        self.writing.push_back(batch);
        if self.setup.batch_seconds > 0.0 {
            self.group_pages_left = batch.0;
            self.group();
            return;
        }
        let done = self.disk.submit(self.now, batch.0, batch.0 * PAGE_BYTES);
        self.at(done, Event::Written);
    }

    fn paced(&self) -> f64 {
        self.verdict.pages_per_second * self.setup.pace_error
    }

    /// The next batch, when the one before is durable.
    fn batch(&mut self) {
        if matches!(self.setup.clients, Clients::Lazy { .. }) {
            self.log_start_soon();
        }
        let rate = self.paced();
        if rate < 0.5 || self.dirty.is_empty() {
            (self.group_due, self.group_looked) = (self.now, self.now);
            self.at(self.now + self.setup.sweep_seconds, Event::Sweep);
            return;
        }
        let count = ((rate * self.setup.batch_seconds) as u64).clamp(1, 128);
        self.take(count.min(self.dirty.len() as u64));
    }

    /// The next group of the batch in hand, when it is due and the one before is written.
    fn group(&mut self) {
        if self.group_pages_left == 0 {
            self.written();
            self.batch();
            return;
        }
        let rate = self.paced().max(1.0);
        let pages = ((rate * GROUP_SECONDS) as u64).max(1);
        let pages = pages.min(self.group_pages_left);
        if self.now > self.group_due {
            self.backlogged += self.now - self.group_due.max(self.group_looked);
        }
        let start = self.group_due.max(self.now - 0.1);
        self.group_due = start + pages as f64 / rate;
        self.group_looked = start.max(self.now);
        self.at(self.group_looked, Event::GroupDue(pages as u32));
    }

    fn group_due(&mut self, pages: u32) {
        self.group_pages_left -= u64::from(pages);
        let done = self.disk.submit(self.now, u64::from(pages), u64::from(pages) * PAGE_BYTES);
        self.at(done, Event::GroupWritten);
    }

    fn written(&mut self) {
        let (count, _) = self.writing.pop_front().expect("a batch was in flight");
        self.in_flight -= count;
        self.totals.pages += count;
    }

    // ---- decisions

    fn limits(&mut self) -> Limits {
        let now = self.now;
        let wanted = self.setup.limits.iter().rev().find(|(from, _)| *from <= now);
        self.goal = wanted.expect("a limit from 0 on").1;
        // A log that shrinks keeps its old capacity until the age fits the new one.
        if self.goal >= self.limit || self.log_end - self.oldest() <= self.goal - self.goal / 50 {
            self.limit = self.goal;
        }
        let lower = (self.goal < self.limit).then_some(self.goal);
        Limits { age_bytes: self.limit, recovery_age_bytes: lower }
    }

    fn tick(&mut self, decide: &mut Decide<'_>) {
        let jitter = self.setup.tick_jitter * f64::from(self.rng.below(1000)) / 1000.0;
        self.at(self.now + self.setup.tick_seconds * (1.0 + jitter), Event::Tick);
        self.unpark();
        let limits = self.limits();
        let width = (self.limit / 512).max(1);
        let first = self.dirty.front().map_or(self.log_end, |page| page.0) / width * width;
        self.histogram.reset(Lsn(first), width);
        for &(lsn, _) in &self.dirty {
            self.histogram.add(Lsn(lsn));
        }
        let (lanes_backlogged, batch_micros) = self.lanes.seen(self.now);
        let seen = TickView {
            now_micros: (self.now * 1e6) as u64,
            log_end: Lsn(self.log_end),
            oldest_dirty: Lsn(self.oldest()),
            dirty: &self.histogram,
            pages_in_flight: self.in_flight,
            oldest_in_flight: self.oldest_in_flight().map(Lsn),
            pages_completed: self.totals.pages,
            pages_freed: 0,
            backlogged_micros: (self.backlogged * 1e6) as u64 + lanes_backlogged,
            batch_micros,
            batches_pages_max: (LANES * BATCH_MAX) as u64,
            dirty_pages: self.dirty_pages(),
            frames_total: 2 * self.first_modified.len() as u64,
            frames_free: self.first_modified.len() as u64,
            frames_taken: 0,
            tail_dirty_fraction: 0.0,
            commits: self.totals.commits,
            log_bytes_written: self.log_bytes,
            log_writes: self.log_writes,
            admission_waiters: self.waiting.len() as u64,
            processors_busy: 0.0,
            page_bytes: PAGE_BYTES,
            room: None,
        };
        let rate = self.verdict.admission_bytes_per_second.unwrap_or(0.0);
        self.tokens = (self.tokens + (self.now - self.tokens_at) * rate).min(rate * 0.05);
        self.tokens_at = self.now;
        self.verdict = decide(&seen, &limits);
    }
}
