//! A scenario: a setup, how long it runs, and where the measured part and its segments begin.
use crate::model::disk::DiskSpec;
use crate::model::lanes::Sweeper;
use crate::model::load::{Clients, Pages};
use crate::model::world::{Decide, Setup, World};
use crate::report::{Report, Second, cv, mean};
use weir_checkpoint::{Limits, State, TickView, decide};

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    pub(crate) seconds: usize,
    /// Seconds at which a new segment begins: commits are compared within segments only.
    pub(crate) segments: Vec<usize>,
    /// Measure from this second on, but not before the end of the first log wrap.
    pub(crate) warmup: usize,
    pub(crate) bounds: Bounds,
}

/// What a scenario must hold besides: age never over the limit, the gate never closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Largest CV of the per-second commits within a segment.
    pub(crate) cv: f64,
    /// Smallest worst second over the mean of its segment.
    pub(crate) worst_second: f64,
    /// Smallest mean age over the limit.
    pub(crate) age_mean: f64,
    /// Largest page writes per transaction over the least possible; 0: not asked.
    pub(crate) pages_over_least: f64,
}

impl Bounds {
    /// The issue's figures.
    pub(crate) const STRICT: Bounds =
        Bounds { cv: 0.05, worst_second: 0.8, age_mean: 0.90, pages_over_least: 1.05 };
}

/// Log limit of the issue's main job: 64 MiB less what the log keeps for itself.
pub(crate) const LIMIT: u64 = 58 << 20;

impl Scenario {
    /// The issue's main job: uniform updates on 20,000 pages by 8 synced threads, its disk.
    pub(crate) fn new(name: &'static str) -> Self {
        Scenario {
            name,
            setup: Setup {
                disk: DiskSpec::issue(),
                clients: Clients::Closed(vec![(0.0, 8)]),
                pages: Pages::Uniform(20_000),
                limits: vec![(0.0, LIMIT)],
                redo_bytes: 155,
                tick_seconds: 0.1,
                tick_jitter: 0.05,
                sweep_seconds: 0.01,
                sweeper: Sweeper::Simple,
                batch_seconds: 0.0,
                all_dirty_at_start: false,
                pace_error: 1.0,
                gather: true,
                think_seconds: 0.0,
                seed: 1,
            },
            seconds: 150,
            segments: Vec::new(),
            warmup: 0,
            bounds: Bounds::STRICT,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    pub(crate) fn lasting(mut self, seconds: usize) -> Self {
        self.seconds = seconds;
        self
    }

    pub(crate) fn segments(mut self, segments: impl IntoIterator<Item = usize>) -> Self {
        self.segments = segments.into_iter().collect();
        self
    }

    pub(crate) fn warmup(mut self, seconds: usize) -> Self {
        self.warmup = seconds;
        self
    }

    pub(crate) fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Whether every transaction can be let in at once. Conservative: at every moment the disk must
    /// do, in four fifths of its time, the page writes that this moment's transactions will cost
    /// (doublewrite batches of 4) and 100 log writes a second; no slack of the age is counted on.
    /// Closed loops are not asked: whatever they are admitted is what they offer.
    pub(crate) fn admissible(&self) -> bool {
        let (Clients::Open(rate), Some(least)) = (&self.setup.clients, self.least()) else {
            return false;
        };
        let disk = &self.setup.disk;
        (0..self.seconds * 10).map(|tenth| tenth as f64 / 10.0).all(|at| {
            let (tx, factor) = (rate(at), 0.8 * disk.factor(at));
            let ops = tx * least * 1.25 + 100.0;
            let bytes = tx * least * 2.0 * 8192.0 + tx * self.setup.redo_bytes as f64 + 819_200.0;
            ops <= factor * disk.iops && bytes <= factor * disk.bytes_per_second
        }) && disk.stalls.is_empty()
    }

    /// What of the bounds the report does not hold.
    pub(crate) fn check(&self, report: &Report) -> Result<(), String> {
        let bounds = self.bounds;
        let mut broken = Vec::new();
        let mut rule = |holds: bool, text: &str, value: f64| {
            if !holds {
                broken.push(format!("{text}: {value:.4}"));
            }
        };
        rule(report.age_max <= 1.0, "age over the limit", report.age_max);
        rule(report.gate_closed_seconds == 0.0, "gate closed", report.gate_closed_seconds);
        rule(report.tps_cv <= bounds.cv, "CV", report.tps_cv);
        rule(report.worst_second >= bounds.worst_second, "worst second", report.worst_second);
        rule(report.age_mean >= bounds.age_mean, "mean age", report.age_mean);
        rule(report.age_last >= 0.90, "age at the end", report.age_last);
        if bounds.pages_over_least > 0.0 {
            let pages = report.pages_over_least;
            rule(pages <= bounds.pages_over_least, "page writes over the least", pages);
        }
        if self.admissible() {
            rule(report.waiting_max == 0, "waited for admission", report.waiting_max as f64);
        }
        let name = self.name;
        if broken.is_empty() { Ok(()) } else { Err(format!("{name}: {}", broken.join(", "))) }
    }

    pub(crate) fn run(&self) -> Report {
        let mut state = State::new();
        self.run_with(&mut |seen: &TickView<'_>, limits: &Limits| decide(&mut state, seen, limits))
    }

    pub(crate) fn run_with(&self, policy: &mut Decide<'_>) -> Report {
        let verbose = std::env::var_os("WEIR_SIM_SECONDS").is_some();
        let mut world = World::new(self.setup.clone());
        let mut seconds: Vec<Second> = Vec::new();
        let mut wraps = vec![0usize];
        let mut at_warm = None;
        let (mut still, mut standstill) = (0.0, 0.0f64);
        for second in 0..self.seconds {
            let before = world.totals;
            let mut age = 0.0;
            for slice in 1..=50 {
                let commits = world.totals.commits;
                world.run(second as f64 + f64::from(slice) / 50.0, policy);
                still = if world.totals.commits == commits { still + 0.02 } else { 0.0 };
                standstill = standstill.max(still);
                age += world.age_over_limit() / 50.0;
            }
            let now = Second {
                commits: (world.totals.commits - before.commits) as f64,
                pages: (world.totals.pages - before.pages) as f64,
                age_over_limit: age,
            };
            seconds.push(now);
            if verbose {
                println!(
                    "{second:>4} tps {:>6} pages {:>5} age {:.4} dirty {:>6} q {:>6.0} cap {:>5.0} \
                     adm {:>8.0}k redo {:>6.0}k wait {}",
                    now.commits,
                    now.pages,
                    now.age_over_limit,
                    world.dirty_pages(),
                    world.verdict.pages_per_second,
                    world.verdict.capacity_pages_per_second,
                    world.verdict.admission_bytes_per_second.unwrap_or(-1000.0) / 1e3,
                    now.commits * self.setup.redo_bytes as f64 / 1e3,
                    world.totals.waiting_max,
                );
            }
            let limit = self.setup.limits[0].1;
            if world.log_end() / limit >= wraps.len() as u64 {
                wraps.push(second + 1);
            }
            if at_warm.is_none() && wraps.len() > 2 && second + 1 >= self.warmup {
                at_warm = Some((second + 1, world.totals));
            }
        }
        let (warm, totals) = at_warm.unwrap_or((0, Default::default()));
        let parts = self.parts(warm, &seconds);
        let measured = &seconds[warm..];
        let commits: Vec<f64> = measured.iter().map(|second| second.commits).collect();
        let ages = measured.iter().map(|second| second.age_over_limit);
        let appended = (world.totals.appended - totals.appended) as f64;
        let pages = (world.totals.pages - totals.pages) as f64;
        let worst = |part: &Vec<f64>| part.iter().copied().fold(f64::MAX, f64::min) / mean(part);
        Report {
            tps_mean: mean(&commits),
            tps_cv: parts.iter().map(|part| cv(part)).fold(0.0, f64::max),
            worst_second: parts.iter().map(worst).fold(f64::MAX, f64::min),
            age_mean: ages.clone().sum::<f64>() / measured.len() as f64,
            age_last: ages.clone().rev().take(20).sum::<f64>() / measured.len().min(20) as f64,
            age_min: ages.fold(f64::MAX, f64::min),
            age_max: world.totals.age_max_over_limit,
            gate_closed_seconds: world.totals.gate_closed_seconds,
            pages_over_least: self.least().map_or(0.0, |least| pages / appended / least),
            waiting_max: world.totals.waiting_max,
            standstill_seconds: standstill,
            seconds: seconds.clone(),
            cv_by_wrap: wraps
                .windows(2)
                .map(|wrap| {
                    let wrap = &seconds[wrap[0]..wrap[1]];
                    cv(&wrap.iter().map(|second| second.pages).collect::<Vec<_>>())
                })
                .collect(),
        }
    }

    /// Per-second commits of each segment after second `warm`.
    fn parts(&self, warm: usize, seconds: &[Second]) -> Vec<Vec<f64>> {
        let mut bounds = vec![warm];
        bounds.extend(self.segments.iter().copied().filter(|&at| at > warm && at < self.seconds));
        bounds.push(self.seconds);
        let part = |part: &[usize]| {
            seconds[part[0]..part[1]].iter().map(|second| second.commits).collect::<Vec<_>>()
        };
        bounds.windows(2).map(part).collect()
    }

    /// The least page writes per transaction that uniform updates allow: N(1-e^(-W/N))/W.
    fn least(&self) -> Option<f64> {
        let Pages::Uniform(pages) = self.setup.pages else { return None };
        let updates = self.setup.limits[0].1 as f64 / self.setup.redo_bytes as f64;
        let pages = f64::from(pages);
        Some(pages * (1.0 - (-updates / pages).exp()) / updates)
    }
}
