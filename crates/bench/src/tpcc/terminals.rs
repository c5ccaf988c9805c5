//! The terminals at work: what they ask for, how long it takes, what was acknowledged to them.
use super::backend::{Backend, Done, Loaded, Outcome, Terminal, Why};
use super::consistency::Totals;
use super::deck::Kind;
use super::input::{Inputs, Request};
use super::random::Random;
use super::scale::Constants;
use crate::ack::AckFile;
use crate::driver::{Job, Meter, Work};
use crate::line::thousands;
use crate::locked::locked;
use crate::options::WorkloadKind;
use crate::section::coarse_latencies;
use anyhow::{Result, bail};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use weir_base::Clock;

/// Commits of one thread that may wait for their sync while it goes on.
const PIPELINE_MAX: usize = 1024;
/// A group of pipelined commits is synced so often at most: more often would cost processor time
/// and save latency that nothing waits for.
const GROUP_MICROS: u64 = 1_000;
/// A transaction that is refused so often in a row will not get through.
const TRIES_MAX: u32 = 10_000;

/// How the terminals are to behave.
pub(super) struct Manner {
    /// Whether a thread goes on while its commits are synced.
    pub(super) pipeline: bool,
    /// Seconds since 1970 when the run's clock was at zero.
    pub(super) epoch_seconds: u64,
    pub(super) seed: u64,
    /// Where to note each order acknowledged.
    pub(super) acks: Option<AckFile>,
}

/// An order as one number, for the file of what was acknowledged.
pub(super) fn order_number(w: u16, d: u8, o: u32) -> u64 {
    u64::from(w) << 40 | u64::from(d) << 32 | u64::from(o)
}

/// All terminals of a run.
pub(super) struct Terminals<'b, B: Backend> {
    backend: &'b B,
    loaded: Loaded,
    constants: Constants,
    manner: Manner,
    tallies: Vec<Mutex<Tally>>,
    /// Threads that wait by themselves tell here that an order was committed: for the line.
    new_orders: Vec<Counted>,
    sections: Mutex<Vec<Tally>>,
    remarked: Mutex<(u64, u64)>,
    /// The latest commit of each thread, for those that do not wait by themselves.
    latest: Vec<Mutex<Option<B::Ticket>>>,
    ended: AtomicBool,
}

/// Alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Counted(AtomicU64);

/// What one thread, or all of them, did in one part of the run.
pub(super) struct Tally {
    /// By [`Kind`].
    pub(super) latencies: [Histogram<u64>; 5],
    /// By [`Why`].
    pub(super) retries: [u64; 4],
    pub(super) rolled_back: u64,
    /// Acknowledged.
    pub(super) totals: Totals,
}

impl Tally {
    pub(super) fn new() -> Self {
        Tally {
            latencies: std::array::from_fn(|_| coarse_latencies()),
            retries: [0; 4],
            rolled_back: 0,
            totals: Totals::default(),
        }
    }

    pub(super) fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            mine.add(theirs).expect("all histograms have the same bounds");
        }
        for (mine, theirs) in self.retries.iter_mut().zip(other.retries) {
            *mine += theirs;
        }
        self.rolled_back += other.rolled_back;
        self.totals.orders += other.totals.orders;
        self.totals.paid += other.totals.paid;
    }
}

impl<'b, B: Backend> Terminals<'b, B> {
    pub(super) fn new(backend: &'b B, loaded: Loaded, manner: Manner, threads: usize) -> Self {
        let mut random = Random::new(manner.seed);
        Terminals {
            backend,
            loaded,
            constants: Constants::for_run(loaded.last_name_constant, &mut random),
            manner,
            tallies: (0..threads).map(|_| Mutex::new(Tally::new())).collect(),
            new_orders: (0..threads).map(|_| Counted::default()).collect(),
            sections: Mutex::new(Vec::new()),
            remarked: Mutex::new((0, 0)),
            latest: (0..threads).map(|_| Mutex::new(None)).collect(),
            ended: AtomicBool::new(false),
        }
    }

    /// Makes durable what the threads commit, group after group, until [`Terminals::end`].
    pub(super) fn keep_syncing(&self, clock: &dyn Clock) {
        while !self.ended.load(Relaxed) {
            let begun = clock.now_micros();
            for latest in &self.latest {
                let ticket = locked(latest).take();
                // An error is met by the terminals as well: they wait for the same commit.
                if ticket.is_some_and(|ticket| self.backend.wait(ticket).is_err()) {
                    return;
                }
            }
            let took = clock.now_micros() - begun;
            clock.sleep_micros(GROUP_MICROS.saturating_sub(took));
        }
    }

    /// Nothing more is committed.
    pub(super) fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    /// What was done in the warm-up, in each phase, and after the last of them.
    pub(super) fn into_sections(self) -> Vec<Tally> {
        self.section_ended();
        self.sections.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<B: Backend> Job for Terminals<'_, B> {
    type Work<'a>
        = Player<'a, B>
    where
        Self: 'a;

    fn work(&self, thread: usize) -> Result<Player<'_, B>> {
        let seed = self.manner.seed.wrapping_add(1 + thread as u64);
        Ok(Player {
            backend: self.backend,
            terminal: self.backend.terminal(thread as u16)?,
            latest: &self.latest[thread],
            inputs: Inputs::new(self.loaded.scale, self.constants, seed),
            manner: &self.manner,
            tally: &self.tallies[thread],
            new_orders: &self.new_orders[thread].0,
            pending: VecDeque::with_capacity(PIPELINE_MAX),
        })
    }

    fn section_ended(&self) {
        let mut section = Tally::new();
        for tally in &self.tallies {
            section.add(&std::mem::replace(&mut *locked(tally), Tally::new()));
        }
        locked(&self.sections).push(section);
    }

    fn remark(&self, now_micros: u64) -> String {
        let orders: u64 = self.new_orders.iter().map(|count| count.0.load(Relaxed)).sum();
        let (before, at) = std::mem::replace(&mut *locked(&self.remarked), (orders, now_micros));
        let minutes = now_micros.saturating_sub(at).max(1) as f64 / 60e6;
        // When the first second began is unknown.
        if at == 0 {
            return String::new();
        }
        format!("   tpmC {}", thousands(((orders - before) as f64 / minutes).round() as u64))
    }
}

/// One thread, which plays terminals.
pub(super) struct Player<'a, B: Backend + 'a> {
    backend: &'a B,
    latest: &'a Mutex<Option<B::Ticket>>,
    terminal: B::Terminal<'a>,
    inputs: Inputs,
    manner: &'a Manner,
    tally: &'a Mutex<Tally>,
    new_orders: &'a AtomicU64,
    /// Committed, not yet known to be durable: oldest first.
    pending: VecDeque<Pending<B::Ticket>>,
}

struct Pending<T> {
    ticket: T,
    begun: u64,
    kind: Kind,
    totals: Totals,
    /// By [`order_number`].
    order: Option<u64>,
}

impl<B: Backend> Work for Player<'_, B> {
    fn step(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let begun = meter.last_micros();
        let now = self.manner.epoch_seconds + begun / 1_000_000;
        let request = self.inputs.draw(now as u32);
        let Some((done, ticket)) = self.carry_out(&request)? else {
            meter.read();
            return Ok(());
        };
        let kind = request.kind();
        let (totals, order) = acknowledged(&request, &done);
        self.pending.push_back(Pending { ticket, begun, kind, totals, order });
        meter.read();
        if !self.manner.pipeline {
            return self.settle(meter);
        }
        *locked(self.latest) = Some(ticket);
        if self.pending.len() >= PIPELINE_MAX {
            self.backend.wait(self.pending[0].ticket)?;
            meter.read();
        }
        while self.pending.front().is_some_and(|first| self.backend.is_durable(first.ticket)) {
            if let Some(pending) = self.pending.pop_front() {
                self.acknowledge(&pending, meter)?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        // The last one first: the others are durable then.
        for pending in self.pending.iter().rev() {
            self.backend.wait(pending.ticket)?;
        }
        meter.read();
        while let Some(pending) = self.pending.pop_front() {
            self.acknowledge(&pending, meter)?;
        }
        Ok(())
    }
}

impl<B: Backend> Player<'_, B> {
    /// Tries until it is committed; none when the user rolled it back.
    fn carry_out(&mut self, request: &Request) -> Result<Option<(Done, B::Ticket)>> {
        for _try in 0..TRIES_MAX {
            match self.terminal.carry_out(request)? {
                Outcome::Committed(done, ticket) => return Ok(Some((done, ticket))),
                Outcome::RolledBack => {
                    locked(self.tally).rolled_back += 1;
                    return Ok(None);
                }
                Outcome::Retry(why) => locked(self.tally).retries[why as usize] += 1,
            }
        }
        bail!("{} was refused {TRIES_MAX} times", request.kind().name())
    }

    fn acknowledge(&self, pending: &Pending<B::Ticket>, meter: &mut Meter<'_>) -> Result<()> {
        let took = meter.record(pending.begun);
        let mut tally = locked(self.tally);
        tally.latencies[pending.kind as usize].saturating_record(took);
        tally.totals.orders += pending.totals.orders;
        tally.totals.paid += pending.totals.paid;
        self.new_orders.fetch_add(pending.totals.orders, Relaxed);
        match (&self.manner.acks, pending.order) {
            (Some(acks), Some(order)) => acks.note(WorkloadKind::Tpcc, order, 0),
            _ => Ok(()),
        }
    }
}

/// What a terminal learns that can be found again.
fn acknowledged(request: &Request, done: &Done) -> (Totals, Option<u64>) {
    match (request, done) {
        (Request::Payment(payment), _) => {
            (Totals { orders: 0, paid: i64::from(payment.amount) }, None)
        }
        (Request::NewOrder(input), Done::NewOrder(done)) => {
            (Totals { orders: 1, paid: 0 }, Some(order_number(input.w, input.d, done.order)))
        }
        _ => (Totals::default(), None),
    }
}

/// Names of the reasons for which transactions were tried again, and how often.
pub(super) fn retries_by_name(tally: &Tally) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    Why::ALL.into_iter().map(|why| (why.name(), tally.retries[why as usize]))
}
