//! Runs the same workloads on RocksDB, WiredTiger, LMDB, redb, fjall, SQLite and Weir, in one run.
//!
//! The stores take turns within each round, because a shared machine is noisy over minutes and a
//! median over rounds then treats them alike. Nothing else in the project depends on this.

mod cell;
mod child;
mod churn;
mod disk;
mod distribution;
mod drive;
mod engine;
mod group;
mod html;
mod kill;
mod ledger;
mod load;
mod operate;
mod plan;
mod report;
mod rows;
mod run;
mod size;
mod state;
mod stores;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};

use cell::Cell;
use drive::stopped;
use group::{Group, Limits};
use plan::{Shape, Workload};
use report::{About, Report};
use run::Site;
use state::State;
use stores::Known;

#[derive(Parser)]
#[command(name = "rivals", about = "The same workloads on several embedded stores")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Measures only what the disk does: 4 KiB appends, each synced.
    Disk {
        #[arg(long, default_value = "rivals-data")]
        dir: PathBuf,
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
    /// Lists workloads and engines.
    List,
    /// The process of one cell; not for people.
    #[command(hide = true)]
    Cell(child::Child),
    /// The process that is killed; not for people.
    #[command(hide = true)]
    Victim(kill::Victim),
}

#[derive(Args)]
struct RunArgs {
    /// Everything once in about ten minutes: fewer rows, fewer seconds, one round.
    #[arg(long)]
    quick: bool,
    /// [default: 2000000, or 300000 with --quick]
    #[arg(long)]
    rows: Option<u64>,
    /// Bytes in a value, 16 or more.
    #[arg(long, default_value_t = 120)]
    value: usize,
    /// Measured seconds of each cell [default: 10, or 3 with --quick]
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds before them that are not counted [default: 1, or 0.5 with --quick]
    #[arg(long)]
    warmup: Option<f64>,
    /// Seconds of load before the kill [default: 20, or 3 with --quick]
    #[arg(long)]
    kill_seconds: Option<f64>,
    /// [default: 3, or 1 with --quick]
    #[arg(long)]
    rounds: Option<u64>,
    /// Numbers of threads for every workload that has a choice; without it 1,2 (with --quick 2) for
    /// reads and lazy updates, 1,8,64 for synced ones, 2 for YCSB and 8 for its synced variant.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    #[arg(long, default_value = "rivals-data")]
    dir: PathBuf,
    /// Which stores; see `rivals list` [default: all but lmdb-writemap and weir-segments]
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Which workloads; see `rivals list` [default: all; with --quick the main ones]
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Memory each store may cache with, MiB [default: 2048, or three eighths of --memory-mib]
    #[arg(long)]
    cache_mib: Option<usize>,
    /// Memory for all of a store, MiB: what its process has, and what the kernel caches of its
    /// files. More than that is reclaimed, and if that is not enough, the process is killed, which
    /// its cell then says. Needs a control group that this user may make.
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Writes to the disk in a second, by the kernel's limit; needs a control group as well.
    #[arg(long)]
    limit_writes: Option<u64>,
    /// Bytes written to the disk in a second, by the kernel's limit.
    #[arg(long)]
    limit_bytes: Option<u64>,
    /// Forget what was measured in --dir and begin anew.
    #[arg(long)]
    fresh: bool,
    /// Leave the stores' files behind.
    #[arg(long)]
    keep: bool,
    /// Write everything, every second of it, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the report as one HTML file.
    #[arg(long)]
    html: Option<PathBuf>,
    /// Write the rates as a set of figures: docs/benchmarks/NAME.json, of which
    /// `cargo run -p xtask -- benchmarks` makes the page.
    #[arg(long, requires = "commit")]
    figures: Option<PathBuf>,
    /// The commit of Weir that is measured, for --figures.
    #[arg(long, requires = "figures")]
    commit: Option<String>,
    /// What else the machine does meanwhile, for --figures.
    #[arg(long, default_value = "nothing")]
    beside: String,
    /// Replace files of --json and --html.
    #[arg(long)]
    force: bool,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Disk { dir, seconds }) => disk_alone(&dir, seconds),
        Some(Command::List) => {
            list();
            Ok(())
        }
        Some(Command::Cell(options)) => child_of_a_run(&options),
        Some(Command::Victim(options)) => kill::victim(&options),
        None => compare(&cli.run),
    }
}

fn list() {
    println!("workloads:");
    for (name, workload) in plan::ALL {
        println!("  {name:15} {}", workload.about());
    }
    println!("engines:");
    for known in stores::ALL {
        println!("  {:15} {}", known.name, (known.version)());
    }
}

fn disk_alone(dir: &Path, seconds: f64) -> Result<()> {
    println!("| what | per second | worst second / mean |\n|---|---|---|");
    for way in disk::Way::ALL {
        let mut cell = Cell::default();
        let per_second = disk::measure(dir, way, seconds)?;
        let mean = per_second.iter().sum::<f64>() / per_second.len().max(1) as f64;
        cell.saw(per_second, mean);
        println!("| {} | {mean:.0} | {:.2} |", way.name(), cell.worst_over_mean.unwrap_or(1.0));
    }
    Ok(())
}

impl RunArgs {
    fn shape(&self) -> Result<Shape> {
        let quick = |given: Option<f64>, quick: f64, full: f64| {
            given.unwrap_or(if self.quick { quick } else { full })
        };
        let shape = Shape {
            rows: self.rows.unwrap_or(if self.quick { 300_000 } else { 2_000_000 }),
            value_bytes: self.value,
            seconds: quick(self.seconds, 3.0, 10.0),
            warmup_seconds: quick(self.warmup, 0.5, 1.0),
            cache_bytes: self.cache_mib()? << 20,
            kill_seconds: quick(self.kill_seconds, 3.0, 20.0),
            limits: Limits {
                memory_bytes: self.memory_mib.map(|mib| mib << 20),
                writes_per_second: self.limit_writes,
                write_bytes_per_second: self.limit_bytes,
            },
        };
        ensure!(self.value >= rows::HEAD_BYTES, "--value is at least {}", rows::HEAD_BYTES);
        ensure!((1_000..1 << 32).contains(&shape.rows), "--rows is from 1000 to 4294967295");
        let seconds = [shape.seconds, shape.kill_seconds];
        ensure!(seconds.iter().all(|s| (0.01..1e6).contains(s)), "seconds are from 0.01 on");
        ensure!((0.0..1e6).contains(&shape.warmup_seconds), "--warmup is 0 or more");
        ensure!(self.rounds != Some(0), "--rounds is 1 or more");
        ensure!(self.threads.iter().all(|t| (1..=256).contains(t)), "--threads are from 1 to 256");
        Ok(shape)
    }

    fn cache_mib(&self) -> Result<usize> {
        let Some(all) = self.memory_mib else { return Ok(self.cache_mib.unwrap_or(2048)) };
        ensure!((32..1 << 24).contains(&all), "--memory-mib is from 32 on");
        let cache = self.cache_mib.unwrap_or((all as usize * 3) / 8);
        ensure!((cache as u64) < all, "--cache-mib is a part of --memory-mib, which is {all}");
        Ok(cache)
    }

    fn engines(&self) -> Result<Vec<&'static Known>> {
        if self.engines.is_empty() {
            return Ok(stores::ALL.iter().filter(|known| known.usual).collect());
        }
        self.engines.iter().map(|name| stores::find(name)).collect()
    }

    /// In the order in which they run.
    fn workloads(&self) -> Vec<Workload> {
        let all = plan::ALL.iter().map(|&(_, workload)| workload);
        all.filter(|workload| match self.workloads.is_empty() {
            true => !self.quick || workload.is_quick(),
            false => self.workloads.contains(workload),
        })
        .collect()
    }

    fn threads(&self, workload: Workload) -> Vec<usize> {
        let usual = workload.threads(self.quick);
        let fixed = workload.is_load() || workload == Workload::Churn;
        if self.threads.is_empty() || fixed { usual.to_vec() } else { self.threads.clone() }
    }
}

/// Ctrl-C ends what runs in order, the second time at once. The terminal tells the processes of
/// cells as well.
fn on_interrupt(say: fn()) -> Result<()> {
    let handler = move || {
        if drive::STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        say();
    };
    ctrlc::set_handler(handler).context("cannot catch Ctrl-C")
}

fn child_of_a_run(options: &child::Child) -> Result<()> {
    on_interrupt(|| ())?;
    child::child(options)
}

fn compare(args: &RunArgs) -> Result<()> {
    let site = Site { dir: args.dir.clone(), shape: args.shape()? };
    let engines = args.engines()?;
    for path in [&args.json, &args.html].into_iter().flatten() {
        ensure!(args.force || !path.exists(), "{} exists; --force replaces it", path.display());
    }
    on_interrupt(|| eprintln!("ending; once more ends at once"))?;
    let mut state = State::open(&args.dir, &site.shape, args.fresh)?;
    if !state.cells.is_empty() {
        eprintln!("going on: {} cells are there already", state.cells.len());
    }
    let group = Group::new(&site.shape.limits, &site.dir)?;
    let failures = measure(args, &site, group.as_ref(), &engines, &mut state)?;
    drop(group);
    let report = report(args, &site, &engines, &state, failures);
    println!("{}", report.markdown());
    if let Some(path) = &args.json {
        let mut text = serde_json::to_vec_pretty(&report)?;
        text.push(b'\n');
        weir_bench::replace_file(path, &text, args.force)?;
    }
    if let Some(path) = &args.html {
        html::page(&report).write(path, args.force)?;
        eprintln!("report: {}", path.display());
    }
    if let (Some(path), Some(commit), false) = (&args.figures, &args.commit, report.interrupted) {
        let (commit, command, beside) =
            (commit.clone(), report.command.clone(), args.beside.clone());
        let run = weir_bench::MeasuredRun { commit, command, beside };
        weir_bench::add_to_set(path, &report::machine(), &run, &report.figures())?;
        eprintln!("figures: {}", path.display());
    }
    if report.interrupted {
        eprintln!("the same command goes on where this one ended (--force replaces its report)");
        std::process::exit(130);
    }
    if !args.keep {
        for known in &engines {
            let dir = args.dir.join(known.name);
            if dir.exists() {
                std::fs::remove_dir_all(dir)?;
            }
        }
    }
    ensure!(report.failures.is_empty(), "{} cells failed", report.failures.len());
    Ok(())
}

/// One thing to be measured.
struct Job {
    round: u64,
    workload: Workload,
    threads: usize,
    engine: &'static Known,
}

fn jobs(args: &RunArgs, engines: &[&'static Known]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for round in 1..=args.rounds.unwrap_or(if args.quick { 1 } else { 3 }) {
        for workload in args.workloads() {
            for threads in args.threads(workload) {
                for &engine in engines {
                    jobs.push(Job { round, workload, threads, engine });
                }
            }
        }
    }
    jobs
}

/// Runs what has not been run; what went wrong with some of it.
fn measure(
    args: &RunArgs,
    site: &Site,
    group: Option<&Group>,
    engines: &[&'static Known],
    state: &mut State,
) -> Result<Vec<String>> {
    let (jobs, mut failures) = (jobs(args, engines), Vec::new());
    let all = jobs.len();
    let mut disk_in = 0;
    for (at, job) in (1..).zip(jobs) {
        let (workload, name) = (job.workload.name(), job.engine.name);
        if state.has(workload, job.threads, name, job.round) {
            continue;
        }
        if disk_in < job.round {
            disk_in = job.round;
            probe_disk(site, job.round, state)?;
        }
        if stopped() {
            break;
        }
        match child::cell(site, group, job.engine, job.workload, job.threads, job.round) {
            _ if stopped() => break,
            Ok(cell) => {
                let figure = report::rows_of(std::slice::from_ref(&cell))[0].figure();
                eprintln!("{at}/{all} {workload} x{} {name}: {figure}", job.threads);
                state.add(cell)?;
            }
            Err(error) => {
                let failure = format!("{workload} x{} {name}: {error:#}", job.threads);
                eprintln!("{at}/{all} FAILED {failure}");
                failures.push(failure);
            }
        }
    }
    Ok(failures)
}

/// What the disk alone does, in each round: without it no ratio can be believed.
fn probe_disk(site: &Site, round: u64, state: &mut State) -> Result<()> {
    for way in disk::Way::ALL {
        if state.has(way.name(), 1, "disk", round) {
            continue;
        }
        run::settle();
        let per_second = disk::measure(&site.dir, way, site.shape.seconds.min(3.0))?;
        if stopped() {
            return Ok(());
        }
        let mean = per_second.iter().sum::<f64>() / per_second.len().max(1) as f64;
        let mut cell =
            Cell { workload: way.name().to_string(), threads: 1, round, ..Cell::default() };
        cell.engine = "disk".to_string();
        cell.saw(per_second, mean);
        state.add(cell)?;
    }
    Ok(())
}

fn report(
    args: &RunArgs,
    site: &Site,
    engines: &[&'static Known],
    state: &State,
    failures: Vec<String>,
) -> Report {
    let mut rows = report::rows_of(&state.cells);
    let asked = |name: &str| name == "disk" || engines.iter().any(|known| known.name == name);
    rows.retain(|row| asked(&row.engine));
    Report {
        command: std::env::args().collect::<Vec<_>>().join(" "),
        shape: site.shape,
        rounds: rows.iter().map(|row| row.rounds.len() as u64).max().unwrap_or(0),
        interrupted: stopped(),
        failures,
        engines: engines
            .iter()
            .map(|known| About {
                name: known.name.to_string(),
                version: (known.version)(),
                setup: known.setup.to_string(),
                limits: known.limits.to_string(),
            })
            .collect(),
        rows: args_rows(args, rows),
    }
}

/// Of what is there, what was asked for.
fn args_rows(args: &RunArgs, mut rows: Vec<report::Row>) -> Vec<report::Row> {
    let workloads: Vec<&str> = args.workloads().into_iter().map(Workload::name).collect();
    rows.retain(|row| row.engine == "disk" || workloads.contains(&row.workload.as_str()));
    rows
}
