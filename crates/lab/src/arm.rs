//! One run of an experiment: which policy with which knobs on which log.
use crate::policies::{Kind, Knobs, setup};
use crate::results::Result1;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir::lab::Neighbours;
use weir_bench::page::Run;
use weir_bench::tpcc::{Embedded, Isolation, Scale, TpccOptions};
use weir_bench::{
    DoubleWrite, DoubleWriteMode, Durability, Feed, Lab, Opened, Options, Outcome, Phases, Report,
    RunReport, WorkloadKind,
};

/// What an experiment runs on, before its arms change it.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Rows of a table that is updated; 0: TPC-C.
    pub(crate) rows: u64,
    pub(crate) warehouses: u64,
    pub(crate) page_size: usize,
    pub(crate) log_bytes: u64,
    pub(crate) pool_bytes: u64,
    pub(crate) disk: String,
    pub(crate) threads: String,
    pub(crate) durability: Durability,
    pub(crate) warmup: Option<u64>,
    pub(crate) seconds: u64,
    /// How much faster the policies' time passes (see `policies::setup`).
    pub(crate) speed: u64,
    pub(crate) quick: bool,
}

impl Site {
    /// In seconds instead of hours: one-row updates on a table and a log so small that the log
    /// wraps every few seconds. Data is five times the log, as in the first seed.
    pub(crate) fn quick() -> Site {
        Site {
            rows: 200_000,
            warehouses: 0,
            page_size: 8192,
            log_bytes: 6 << 20,
            pool_bytes: 128 << 20,
            disk: "2000iops,32MiB".to_owned(),
            threads: "16".to_owned(),
            durability: Durability::Synced,
            warmup: Some(4),
            seconds: 5,
            speed: 50,
            quick: true,
        }
    }

    /// As `docs/flushing.md` section 5 scales the seeds: 1/64 of data, log and disk.
    pub(crate) fn full() -> Site {
        Site {
            rows: 0,
            warehouses: 20,
            page_size: 16 << 10,
            log_bytes: 320 << 20,
            pool_bytes: 2200 << 20,
            disk: "470iops,7500KiB".to_owned(),
            threads: "32".to_owned(),
            durability: Durability::Synced,
            warmup: None,
            seconds: 1200,
            speed: 1,
            quick: false,
        }
    }
}

impl Site {
    /// Figures from the first second on: a clean start is part of what is looked at.
    pub(crate) fn measured_at_once(self) -> Site {
        Site { warmup: Some(0), ..self }
    }
}

/// A change of the log's size while the run goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resize {
    /// After this share of the measured time.
    pub(crate) after: f64,
    /// To so many times the site's log.
    pub(crate) factor: f64,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: String,
    /// What the seed reports of the like.
    pub(crate) original: &'static str,
    pub(crate) kind: Kind,
    pub(crate) knobs: Knobs,
    /// C and Cm, as multiples of the page writes a second that this work needs at the age that the
    /// seeds' work had (`run::need`): that is how their values relate to what their work needed.
    pub(crate) capacity: (f64, f64),
    pub(crate) neighbours: Neighbours,
    pub(crate) doublewrite: DoubleWrite,
    pub(crate) log_factor: f64,
    pub(crate) resizes: Vec<Resize>,
    /// Another load than the site's: threads and times, as `weir bench --threads` has them.
    pub(crate) load: Option<&'static str>,
    /// Another disk than the site's.
    pub(crate) disk: Option<&'static str>,
}

impl Arm {
    pub(crate) fn new(name: &str, kind: Kind) -> Arm {
        Arm {
            name: name.to_owned(),
            original: "-",
            kind,
            knobs: Knobs::defaults(kind),
            capacity: (1.0, 1.0),
            neighbours: Neighbours::None,
            doublewrite: DoubleWrite::default(),
            log_factor: 1.0,
            resizes: Vec::new(),
            load: None,
            disk: None,
        }
    }

    /// Weir's own policy.
    pub(crate) fn deadline() -> Arm {
        Arm::new("deadline", Kind::Deadline).original("-")
    }

    pub(crate) fn named(self, name: &str) -> Arm {
        Arm { name: name.to_owned(), ..self }
    }

    pub(crate) fn original(self, original: &'static str) -> Arm {
        Arm { original, ..self }
    }

    pub(crate) fn capacity(self, io_capacity: f64, io_capacity_max: f64) -> Arm {
        Arm { capacity: (io_capacity, io_capacity_max), ..self }
    }

    pub(crate) fn doublewrite_pages(self, pages: usize) -> Arm {
        let doublewrite = DoubleWrite { mode: None, files: Some(2), pages: Some(pages) };
        Arm { doublewrite, ..self }
    }

    pub(crate) fn doublewrite_off(self) -> Arm {
        let mode = Some(DoubleWriteMode::Off);
        Arm { doublewrite: DoubleWrite { mode, files: Some(2), pages: Some(128) }, ..self }
    }

    pub(crate) fn neighbours(self, neighbours: Neighbours) -> Arm {
        Arm { neighbours, ..self }
    }

    pub(crate) fn log(self, log_factor: f64) -> Arm {
        Arm { log_factor, ..self }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Knobs)) -> Arm {
        change(&mut self.knobs);
        self
    }

    /// Arms that may be compared with each other have the same of this.
    pub(crate) fn group(&self) -> String {
        let resized: Vec<String> =
            self.resizes.iter().map(|resize| format!(" x{}", resize.factor)).collect();
        let (load, disk) = (self.load.unwrap_or_default(), self.disk.unwrap_or_default());
        format!("{:?} x{}{}{load}{disk}", self.doublewrite, self.log_factor, resized.concat())
    }
}

/// Runs it. `need`: page writes a second that `deadline` needed. `None` when interrupted early.
pub(crate) fn run_arm(
    arm: &Arm,
    site: &Site,
    dir: &Path,
    need: f64,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Option<Result1>> {
    let capacity = |times: f64| (need * times).round().max(1.0) as u64;
    let (low, high) = (capacity(arm.capacity.0), capacity(arm.capacity.1));
    let knobs = arm.knobs.clone().with_capacity(low, high.max(low));
    let options = options(arm, site, dir, &knobs)?;
    let opened = weir_bench::open(&options, None)?;
    let volume = opened.volume.describe();
    let ended = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| resize(arm, site, &options.feed, &opened, &ended));
        let report = measure(&opened, site, &options, &volume, interrupt, out);
        ended.store(true, Relaxed);
        report
    });
    opened.engine.close()?;
    let Some(report) = report? else { return Ok(None) };
    let run = Run { name: arm.name.clone(), group: None, recorded: options.feed.recorded(0) };
    let shown = if arm.kind == Kind::Deadline { None } else { Some((low, high)) };
    Ok(Some(Result1::of(arm, &report, shown, run.json())))
}

/// What `weir bench` would be asked to run.
pub(crate) fn options(arm: &Arm, site: &Site, dir: &Path, knobs: &Knobs) -> Result<Options> {
    let kind = if site.rows > 0 { WorkloadKind::Update } else { WorkloadKind::Tpcc };
    let load = arm.load.unwrap_or(&site.threads);
    let steps = load.contains(':');
    let phases = Phases::parse(load, (!steps).then_some(site.seconds))?;
    let lab = Lab::with_policy(setup(arm.kind, knobs, arm.neighbours, site.speed));
    Ok(Options {
        rows: site.rows,
        durability: site.durability,
        pool_bytes: site.pool_bytes,
        log_bytes: (site.log_bytes as f64 * arm.log_factor) as u64,
        page_size: site.page_size,
        disk: Some(arm.disk.map_or_else(|| site.disk.clone(), str::to_owned)),
        warmup_seconds: site.warmup,
        doublewrite: arm.doublewrite,
        lab,
        ..Options::new(kind, dir.to_owned(), phases)
    })
}

/// Loads what the arms work on, at the real disk's speed.
pub(crate) fn load(
    site: &Site,
    dir: &Path,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<()> {
    let site = Site { threads: "1:1s".to_owned(), warmup: Some(0), ..site.clone() };
    let arm = Arm::deadline();
    let options = Options { disk: None, ..options(&arm, &site, dir, &arm.knobs)? };
    let opened = weir_bench::open(&options, None)?;
    let volume = opened.volume.describe();
    let mut quiet = Vec::new();
    let loaded = measure(&opened, &site, &options, &volume, interrupt, &mut quiet);
    opened.engine.close()?;
    let what = if site.rows > 0 {
        format!("{} rows", site.rows)
    } else {
        format!("{} warehouses", site.warehouses)
    };
    if loaded.context("loading")?.is_some() {
        writeln!(out, "loaded {what}")?;
    }
    Ok(())
}

fn measure(
    opened: &Opened,
    site: &Site,
    options: &Options,
    volume: &str,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Option<Report>> {
    let clock = opened.clock.as_ref();
    if site.rows > 0 {
        let outcome =
            weir_bench::run(&opened.engine, options, volume, None, clock, interrupt, out)?;
        return Ok(common(outcome));
    }
    let backend = Embedded::new(&opened.engine, options.durability, Isolation::RepeatableRead);
    let options = TpccOptions {
        run: options.clone(),
        scale: Scale::new(site.warehouses)?,
        pipeline: false,
        restarted: false,
        seed: 1,
    };
    let outcome = weir_bench::tpcc::run(
        &backend,
        &opened.engine,
        &options,
        volume,
        None,
        clock,
        interrupt,
        out,
    )?;
    Ok(common(outcome))
}

fn common<R: RunReport>(outcome: Outcome<R>) -> Option<Report> {
    match outcome {
        Outcome::InterruptedWhileLoading => None,
        Outcome::Done(report) => Some(report.common().clone()),
    }
}

/// Changes the log's size at the times that the arm says.
fn resize(arm: &Arm, site: &Site, feed: &Feed, opened: &Opened, ended: &AtomicBool) {
    let warm = site.warmup.unwrap_or(0);
    for resize in &arm.resizes {
        let due = warm as f64 + resize.after * site.seconds as f64;
        while (feed.recorded(0).rows.len() as f64) < due {
            if ended.load(Relaxed) {
                return;
            }
            opened.clock.sleep_micros(50_000);
        }
        // What comes of it shows in the figures; a refusal shows as a log that did not change.
        let _ = opened.engine.db().set_log_bytes((site.log_bytes as f64 * resize.factor) as u64);
    }
}
