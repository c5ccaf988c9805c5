//! A process that updates rows, each commit synced, is killed with SIGKILL; its store is opened,
//! timed, and must hold everything that it had acknowledged.
//!
//! What was acknowledged stands in a file that both processes map: the kernel keeps what a killed
//! process has stored there. Each row has one writer, which notes an acknowledgement after the
//! store has returned: the row must be at that version, or at the one after it.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memmap2::MmapMut;

use crate::cell::{Cell, Opened};
use crate::drive::{STOP, stopped};
use crate::ledger;
use crate::plan::Workload;
use crate::rows;
use crate::run::Site;
use crate::size;
use crate::stores::{self, Known};
use crate::verify::{Expected, verify};

/// How often each row has been acknowledged.
struct Acknowledged(MmapMut);

impl Acknowledged {
    fn open(path: &Path, rows: u64) -> Result<Acknowledged> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(rows * 4)?;
        // SAFETY: no process shortens the file, and both processes only use it through atomics.
        Ok(Acknowledged(unsafe { MmapMut::map_mut(&file)? }))
    }

    fn counts(&self) -> &[AtomicU32] {
        // SAFETY: mapped memory begins at a page and is a whole number of u32, any bits of which
        // are a value.
        let (before, counts, after) = unsafe { self.0.align_to::<AtomicU32>() };
        debug_assert!(before.is_empty() && after.is_empty());
        counts
    }
}

/// What the process that is to be killed is to do.
#[derive(clap::Args)]
pub struct Victim {
    #[arg(long)]
    engine: String,
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    rows: u64,
    #[arg(long)]
    value: usize,
    #[arg(long)]
    cache_bytes: usize,
    #[arg(long)]
    threads: usize,
    #[arg(long)]
    cell: u64,
    #[arg(long)]
    acknowledged: PathBuf,
}

/// The process that is to be killed: updates until then.
pub fn victim(options: &Victim) -> Result<()> {
    // SAFETY: only asks the kernel to kill this process with its parent, whatever ends that.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let setup = crate::engine::Setup {
        cache_bytes: options.cache_bytes,
        threads: options.threads,
        durability: Workload::Kill.durability(),
    };
    let store = stores::open(&options.engine, &options.dir, setup)?;
    let acknowledged = Acknowledged::open(&options.acknowledged, options.rows)?;
    println!("ready");
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..options.threads {
            let (store, counts) = (&*store, acknowledged.counts());
            threads.push(scope.spawn(move || {
                let result =
                    store.with_worker(&mut |worker| write(worker, options, thread, counts));
                // One that has failed must not leave the others to go on as if nothing were wrong.
                STOP.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            }));
        }
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok(())
    })
}

fn write(
    worker: &mut dyn crate::engine::Worker,
    options: &Victim,
    thread: usize,
    counts: &[AtomicU32],
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(rows::mix(options.cell << 8 | thread as u64));
    let mut value = vec![0; options.value];
    let keys = Workload::Kill.keys();
    let own = (options.rows - thread as u64).div_ceil(options.threads as u64);
    while !stopped() {
        let number = random.u64(0..own) * options.threads as u64 + thread as u64;
        let count = &counts[number as usize];
        let next = count.load(Ordering::Relaxed) + 1;
        rows::fill(&mut value, number, ledger::version(options.cell, thread, next));
        worker.update(&keys.key(number), &value)?;
        count.store(next, Ordering::Release);
    }
    Ok(())
}

/// Starts the process, kills it, opens its store.
pub fn kill(site: &Site, known: &Known, dir: &Path, threads: usize, round: u64) -> Result<Cell> {
    let (shape, keys) = (&site.shape, Workload::Kill.keys());
    let (cell_number, file) = (ledger::new_cell(), dir.with_extension("acknowledged"));
    let _ = std::fs::remove_file(&file);
    let acknowledged = Acknowledged::open(&file, shape.rows)?;
    let per_second = run_and_kill(site, known, dir, threads, cell_number, &file, &acknowledged)?;
    std::fs::remove_file(&file)?;
    let bytes = size::of(known, dir).greatest;
    let start = Instant::now();
    let store = stores::open(known.name, dir, site.setup(Workload::Kill, threads))
        .context("opening after kill -9")?;
    store.with_worker(&mut |worker| {
        ensure!(worker.read(&keys.key(0), &mut |_| ())?, "row 0 is gone after kill -9");
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let counts = acknowledged.counts();
    let judge = |number: u64, version| {
        let Some(count) = counts.get(number as usize) else { return false };
        let (thread, count) = ((number % threads as u64) as usize, count.load(Ordering::Acquire));
        ledger::is_right_after_crash(cell_number, thread, count, version)
    };
    let expected =
        Expected { keys, value_bytes: shape.value_bytes, rows: shape.rows, judge: &judge };
    let mut cell = Cell::new(Workload::Kill, threads, known.name, round);
    cell.verified_rows = verify(&*store, &expected).context("after kill -9")?;
    let all: u64 = counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum();
    ensure!(all > 0, "it was killed before it had acknowledged anything");
    cell.opened = Some(Opened { seconds, bytes, acknowledged: all });
    cell.how = store.how();
    let mean = per_second.iter().sum::<f64>() / per_second.len().max(1) as f64;
    cell.saw(per_second, mean);
    Ok(cell)
}

/// Commits in each second before the kill.
fn run_and_kill(
    site: &Site,
    known: &Known,
    dir: &Path,
    threads: usize,
    cell: u64,
    file: &Path,
    acknowledged: &Acknowledged,
) -> Result<Vec<f64>> {
    let shape = &site.shape;
    // The process to be killed is in the same control group: it has what this one, which loaded the
    // rows, does not keep.
    weir_base::trim_heap();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["victim", "--engine", known.name])
        .args(["--rows", &shape.rows.to_string(), "--value", &shape.value_bytes.to_string()])
        .args(["--cache-bytes", &shape.cache_bytes.to_string()])
        .args(["--threads", &threads.to_string(), "--cell", &cell.to_string()])
        .arg("--dir")
        .arg(dir)
        .arg("--acknowledged")
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the process to be killed")?;
    let mut line = String::new();
    let said = child.stdout.take().context("no pipe")?;
    BufReader::new(said).read_line(&mut line)?;
    let total = || -> u64 {
        acknowledged.counts().iter().map(|n| u64::from(n.load(Ordering::Relaxed))).sum()
    };
    let look = Duration::from_secs_f64(shape.kill_seconds.min(1.0));
    let looks = (shape.kill_seconds / look.as_secs_f64()).round().max(1.0) as u32;
    let (start, mut per_second) = (Instant::now(), Vec::new());
    let (mut before, mut at) = (0, start);
    for number in 1..=looks {
        std::thread::sleep((start + look * number).saturating_duration_since(Instant::now()));
        let (count, now) = (total(), Instant::now());
        per_second.push((count - before) as f64 / now.duration_since(at).as_secs_f64());
        (before, at) = (count, now);
    }
    let still = child.try_wait()?.is_none();
    child.kill()?;
    child.wait()?;
    if stopped() {
        bail!("interrupted");
    }
    ensure!(line.trim() == "ready" && still, "the process to be killed had ended before");
    Ok(per_second)
}
