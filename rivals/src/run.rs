//! Runs one cell: one store, one workload, one number of threads, for some seconds.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use serde::Serialize;

use crate::disk;
use crate::engine::{self, Durability, Engine, Setup, Worker};
use crate::rows;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Random point reads.
    Read,
    /// Random one-row updates, no sync per commit.
    UpdateLazy,
    /// Random one-row updates, each durable when it returns.
    UpdateSynced,
}

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::Read => "read",
            Workload::UpdateLazy => "update-lazy",
            Workload::UpdateSynced => "update-synced",
        }
    }

    pub fn durability(self) -> Durability {
        match self {
            Workload::Read | Workload::UpdateLazy => Durability::Lazy,
            Workload::UpdateSynced => Durability::Synced,
        }
    }
}

/// What is the same in every cell.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    pub rows: u64,
    pub value_bytes: usize,
    pub seconds: u64,
    pub warmup_seconds: u64,
    pub cache_bytes: usize,
    /// 0: no lazy store is synced except where its documentation demands it.
    pub lazy_sync_seconds: u64,
}

/// Operations in each measured second, and what follows from them.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    pub mean: f64,
    pub worst_over_mean: f64,
    pub per_second: Vec<f64>,
    /// Device flushes per operation, by everyone on the machine; none where the kernel counts none.
    pub flushes_per_op: Option<f64>,
}

pub fn summarise(per_second: Vec<f64>) -> Series {
    let mean = per_second.iter().sum::<f64>() / per_second.len().max(1) as f64;
    let worst = per_second.iter().copied().fold(f64::INFINITY, f64::min);
    let worst_over_mean = if mean > 0.0 { worst / mean } else { 0.0 };
    Series { mean, worst_over_mean, per_second, flushes_per_op: None }
}

/// One measured cell.
pub struct Cell {
    pub series: Series,
    pub how: String,
}

/// Creates the store in `dir` and loads every row at version 0.
pub fn load(name: &str, dir: &Path, shape: &Shape) -> Result<Duration> {
    let setup =
        Setup { cache_bytes: shape.cache_bytes, threads: 1, durability: Durability::Synced };
    let start = Instant::now();
    let store = engine::open(name, dir, setup)?;
    store.load(&mut (0..shape.rows).map(|number| {
        let key = rows::key(number);
        let mut value = vec![0; shape.value_bytes];
        rows::fill(&mut value, &key, 0);
        (key, value)
    }))?;
    drop(store);
    Ok(start.elapsed())
}

/// Scans the store: every row there once, in order, and one in 64 right in every byte.
pub fn verify(store: &dyn Engine, shape: &Shape) -> Result<()> {
    let (mut expected, mut wrong) = (0_u64, None);
    let mut scratch = vec![0; shape.value_bytes];
    let count = store.scan(&mut |key, value| {
        let in_order = *key == rows::key(expected);
        let sampled = expected % 64 == 0;
        if !in_order || (sampled && !rows::is_whole(value, key, &mut scratch)) {
            wrong.get_or_insert(expected);
        }
        expected += 1;
    })?;
    if let Some(number) = wrong {
        bail!("row {number} is missing, out of order or damaged");
    }
    ensure!(count == shape.rows, "{count} rows, not {}", shape.rows);
    Ok(())
}

/// Opens the store, scans it (which verifies it, and warms its cache), runs the workload, closes
/// it.
pub fn cell(
    name: &str,
    dir: &Path,
    workload: Workload,
    threads: usize,
    shape: &Shape,
) -> Result<Cell> {
    let setup =
        Setup { cache_bytes: shape.cache_bytes, threads, durability: workload.durability() };
    let store = engine::open(name, dir, setup)?;
    verify(&*store, shape)?;
    let before = disk::flushes(dir);
    let (per_second, operations) = drive(&*store, workload, threads, shape)?;
    let mut series = summarise(per_second);
    series.flushes_per_op = disk::flushes(dir)
        .zip(before)
        .map(|(after, before)| (after - before) as f64 / operations.max(1) as f64);
    let mut how = store.how();
    if is_suspect(workload, threads, &series) {
        how = format!("SUSPECT, fewer flushes than commits: {how}");
    }
    Ok(Cell { series, how })
}

/// One thread's synced commits cannot share a flush, so fewer flushes than commits is a promise not
/// kept, or a benchmark that is wrong. (Where a device has FUA a write may be durable without one.)
fn is_suspect(workload: Workload, threads: usize, series: &Series) -> bool {
    workload == Workload::UpdateSynced
        && threads == 1
        && series.flushes_per_op.is_some_and(|flushes| flushes < 0.95)
}

/// Writes what the kernel still holds, so that one store's leftovers do not slow the next.
pub fn settle() {
    // SAFETY: sync(2) takes nothing and cannot fail.
    unsafe { libc::sync() };
}

/// Cells driven so far in this process.
static CELLS: AtomicU64 = AtomicU64::new(0);

/// A seed that no other cell has. Were two cells to share one, the second would write the very
/// values that the first left: a store that notices (SQLite skips writing equal bytes) commits
/// nothing, and looks several times faster than the disk.
fn next_seed() -> u64 {
    rows::mix(rows::mix(CELLS.fetch_add(1, Ordering::Relaxed)) ^ 0x5eed)
}

struct Shared {
    seed: u64,
    stop: AtomicBool,
    failed: AtomicBool,
    start: Barrier,
    done: Vec<CachePadded<AtomicU64>>,
}

impl Shared {
    fn total(&self) -> u64 {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

fn drive(
    store: &dyn Engine,
    workload: Workload,
    threads: usize,
    shape: &Shape,
) -> Result<(Vec<f64>, u64)> {
    let shared = Shared {
        seed: next_seed(),
        stop: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        start: Barrier::new(threads + 1),
        done: (0..threads).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
    };
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..threads {
            let shared = &shared;
            workers.push(scope.spawn(move || {
                let mut ready = false;
                let result = store.with_worker(&mut |worker| {
                    ready = true;
                    shared.start.wait();
                    operate(worker, workload, number, shared, shape)
                });
                if !ready {
                    shared.start.wait();
                }
                if result.is_err() {
                    shared.failed.store(true, Ordering::Relaxed);
                }
                result
            }));
        }
        let every = match shape.lazy_sync_seconds {
            0 if store.sync_required() => 1,
            seconds => seconds,
        };
        let syncs = workload == Workload::UpdateLazy && every > 0;
        let syncer = syncs.then(|| {
            let shared = &shared;
            scope.spawn(move || sync_every(store, every, shared))
        });
        shared.start.wait();
        let per_second = sample(&shared, shape);
        shared.stop.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        if let Some(syncer) = syncer {
            syncer.join().map_err(|_| anyhow::anyhow!("the syncer panicked"))??;
        }
        Ok((per_second, shared.total()))
    })
}

fn sync_every(store: &dyn Engine, seconds: u64, shared: &Shared) -> Result<()> {
    let mut next = Instant::now() + Duration::from_secs(seconds);
    while !shared.stop.load(Ordering::Relaxed) {
        if Instant::now() >= next {
            store.sync()?;
            next = Instant::now() + Duration::from_secs(seconds);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Reads the counters at each full second; the warm-up's seconds are thrown away.
fn sample(shared: &Shared, shape: &Shape) -> Vec<f64> {
    let start = Instant::now();
    let (mut before, mut at) = (shared.total(), start);
    let mut per_second = Vec::new();
    for second in 1..=shape.warmup_seconds + shape.seconds {
        let due = start + Duration::from_secs(second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if shared.failed.load(Ordering::Relaxed) {
            break;
        }
        let (count, now) = (shared.total(), Instant::now());
        if second > shape.warmup_seconds {
            // By the time that really passed: on a busy machine the sampler itself may wake late.
            per_second.push((count - before) as f64 / now.duration_since(at).as_secs_f64());
        }
        (before, at) = (count, now);
    }
    per_second
}

fn operate(
    worker: &mut dyn Worker,
    workload: Workload,
    number: usize,
    shared: &Shared,
    shape: &Shape,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(shared.seed ^ rows::mix(number as u64));
    let mut value = vec![0; shape.value_bytes];
    let done = &shared.done[number];
    let mut count = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let key = rows::key(random.u64(0..shape.rows));
        if workload == Workload::Read {
            let mut right = false;
            let found =
                worker.read(&key, &mut |v| right = rows::is_for(v, &key, shape.value_bytes))?;
            ensure!(found && right, "key {key:02x?}: found {found}, right {right}");
        } else {
            rows::fill(&mut value, &key, random.u64(..));
            worker.update(&key, &value)?;
        }
        count += 1;
        done.store(count, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_second_is_relative_to_the_mean() {
        let series = summarise(vec![10.0, 20.0, 30.0]);
        assert_eq!((series.mean, series.worst_over_mean), (20.0, 0.5));
    }

    #[test]
    fn no_two_cells_write_the_same_values() {
        let mut seeds: Vec<u64> = (0..1_000).map(|_| next_seed()).collect();
        let cell = next_seed();
        seeds.extend((0..64).map(|number| cell ^ rows::mix(number)));
        let all = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), all);
    }

    #[test]
    fn a_synced_cell_without_its_flushes_is_suspect() {
        let with = |flushes| Series { flushes_per_op: flushes, ..summarise(vec![1.0]) };
        let synced = Workload::UpdateSynced;
        assert!(is_suspect(synced, 1, &with(Some(0.261))));
        assert!(!is_suspect(synced, 1, &with(Some(1.0))) && !is_suspect(synced, 1, &with(None)));
        assert!(!is_suspect(synced, 8, &with(Some(0.2))));
        assert!(!is_suspect(Workload::UpdateLazy, 1, &with(Some(0.0))));
    }

    #[test]
    fn every_store_loads_works_and_verifies() {
        let shape = Shape {
            rows: 2_000,
            value_bytes: 120,
            seconds: 1,
            warmup_seconds: 0,
            cache_bytes: 64 << 20,
            lazy_sync_seconds: 1,
        };
        let mut names = vec!["rocksdb", "lmdb", "lmdb-writemap", "redb", "sqlite"];
        if cfg!(feature = "weir") {
            names.push("weir");
        }
        for name in names {
            let dir = std::env::temp_dir().join(format!("rivals-{name}-{}", std::process::id()));
            load(name, &dir, &shape).unwrap();
            for workload in [Workload::Read, Workload::UpdateLazy, Workload::UpdateSynced] {
                let cell = cell(name, &dir, workload, 2, &shape).unwrap();
                assert!(cell.series.mean > 0.0, "{name} {}", workload.name());
            }
            let wrong = Shape { rows: 2_001, ..shape };
            assert!(cell(name, &dir, Workload::Read, 1, &wrong).is_err(), "{name}: a row too few");
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}
