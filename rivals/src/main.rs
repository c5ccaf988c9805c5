//! Runs the same small workloads on RocksDB, LMDB, redb, SQLite and Weir, in one run.
//!
//! The stores take turns within each round, because a shared machine is noisy over minutes and a
//! median over rounds then treats them alike. Nothing else in the project depends on this.

mod disk;
mod engine;
mod lmdb_store;
mod redb_store;
mod report;
mod rocksdb;
mod rocksdb_ffi;
mod rows;
mod run;
mod sqlite_store;
#[cfg(feature = "weir")]
mod weir_store;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};

use report::Report;
use run::{Shape, Workload};

#[derive(Parser)]
#[command(name = "rivals", about = "The same small workloads on several embedded stores")]
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
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
}

#[derive(Args)]
struct RunArgs {
    #[arg(long, default_value_t = 2_000_000)]
    rows: u64,
    /// Bytes in a value, 16 or more.
    #[arg(long, default_value_t = 120)]
    value: usize,
    /// Measured seconds of each cell.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before them that are not counted.
    #[arg(long, default_value_t = 1)]
    warmup: u64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Numbers of threads for every workload; without it 1,2 for reads and lazy updates and 1,8,64
    /// for synced ones.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    #[arg(long, default_value = "rivals-data")]
    dir: PathBuf,
    #[arg(long, value_delimiter = ',', default_value = DEFAULT_ENGINES)]
    engines: Vec<String>,
    #[arg(long, value_delimiter = ',', default_value = "read,update-lazy,update-synced")]
    workloads: Vec<Workload>,
    /// Memory each store may cache with, MiB.
    #[arg(long, default_value_t = 2048)]
    cache_mib: usize,
    /// Sync lazy stores every so many seconds; 0 leaves it to each store (see `engine.rs`).
    #[arg(long, default_value_t = 0)]
    lazy_sync_seconds: u64,
    /// Leave the stores' files behind.
    #[arg(long)]
    keep: bool,
    #[arg(long)]
    json: Option<PathBuf>,
}

#[cfg(feature = "weir")]
const DEFAULT_ENGINES: &str = "rocksdb,lmdb,lmdb-writemap,redb,sqlite,weir";
#[cfg(not(feature = "weir"))]
const DEFAULT_ENGINES: &str = "rocksdb,lmdb,lmdb-writemap,redb,sqlite";

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Disk { dir, seconds }) => disk_alone(&dir, seconds),
        None => compare(&cli.run),
    }
}

fn disk_alone(dir: &Path, seconds: u64) -> Result<()> {
    println!("| what | per second | worst second / mean |\n|---|---|---|");
    for way in disk::Way::ALL {
        let series = disk::measure(dir, way, seconds)?;
        println!("| {} | {:.0} | {:.2} |", way.name(), series.mean, series.worst_over_mean);
    }
    Ok(())
}

fn threads_of(args: &RunArgs, workload: Workload) -> Vec<usize> {
    match (args.threads.is_empty(), workload) {
        (false, _) => args.threads.clone(),
        (true, Workload::UpdateSynced) => vec![1, 8, 64],
        (true, _) => vec![1, 2],
    }
}

fn compare(args: &RunArgs) -> Result<()> {
    ensure!(args.value >= rows::HEAD_BYTES, "--value is at least {}", rows::HEAD_BYTES);
    ensure!(args.rows > 0 && args.seconds > 0 && args.rounds > 0, "nothing to measure");
    ensure!(!args.threads.contains(&0), "--threads must be 1 or more");
    let shape = Shape {
        rows: args.rows,
        value_bytes: args.value,
        seconds: args.seconds,
        warmup_seconds: args.warmup,
        cache_bytes: args.cache_mib << 20,
        lazy_sync_seconds: args.lazy_sync_seconds,
    };
    let mut report = Report {
        shape,
        rounds: args.rounds,
        versions: args.engines.iter().map(|e| (e.clone(), engine::version(e))).collect(),
        cells: Vec::new(),
        verified: false,
    };
    for name in &args.engines {
        let dir = args.dir.join(name);
        ensure!(!dir.exists(), "{} exists; rivals loads into empty directories", dir.display());
        let took = run::load(name, &dir, &shape).with_context(|| format!("loading {name}"))?;
        eprintln!("loaded {name} in {:.1} s", took.as_secs_f64());
    }
    for round in 1..=args.rounds {
        one_round(args, &shape, round, &mut report)?;
    }
    // Each cell opens with this check too, so that every earlier cell has been verified by now.
    for name in &args.engines {
        let setup = engine::Setup {
            cache_bytes: shape.cache_bytes,
            threads: 1,
            durability: engine::Durability::Synced,
        };
        let store = engine::open(name, &args.dir.join(name), setup)?;
        run::verify(&*store, &shape).with_context(|| format!("verifying {name}"))?;
    }
    report.verified = true;
    println!("{}", report.markdown());
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if !args.keep {
        for name in &args.engines {
            std::fs::remove_dir_all(args.dir.join(name))?;
        }
    }
    Ok(())
}

fn one_round(args: &RunArgs, shape: &Shape, round: u64, report: &mut Report) -> Result<()> {
    for way in disk::Way::ALL {
        run::settle();
        let series = disk::measure(&args.dir, way, shape.seconds.min(5))?;
        eprintln!("round {round}: {}: {:.0}/s", way.name(), series.mean);
        report.row("disk", 1, way.short(), way.name()).add(series);
    }
    for &workload in &args.workloads {
        for threads in threads_of(args, workload) {
            for name in &args.engines {
                run::settle();
                let cell = run::cell(name, &args.dir.join(name), workload, threads, shape)
                    .with_context(|| format!("{name}, {}", workload.name()))?;
                let (mean, worst) = (cell.series.mean, cell.series.worst_over_mean);
                eprintln!(
                    "round {round}: {} x{threads} {name}: {mean:.0}/s, worst second {worst:.2}, \
                     flushes per op {:.3}",
                    workload.name(),
                    cell.series.flushes_per_op.unwrap_or(f64::NAN)
                );
                report.row(workload.name(), threads, name, &cell.how).add(cell.series);
            }
        }
    }
    Ok(())
}
