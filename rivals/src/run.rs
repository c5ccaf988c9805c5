//! Runs one cell: one store, one workload, one number of threads.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cell::Cell;
use crate::drive::{drive, stopped};
use crate::engine::{Engine, Setup};
use crate::operate::Task;
use crate::plan::{Shape, Workload};
use crate::rows::Keys;
use crate::stores::{self, Known};
use crate::verify::{Expected, verify};
use crate::{churn, disk, kill, ledger, load, size};

/// Where the stores lie, and what is the same in every cell.
pub struct Site {
    pub dir: PathBuf,
    pub shape: Shape,
}

impl Site {
    /// Where the loaded store of this engine lies.
    pub fn store(&self, engine: &str, keys: Keys) -> PathBuf {
        let name = match keys {
            Keys::Dense => "sorted",
            Keys::Hashed => "random",
        };
        self.dir.join(engine).join(name)
    }

    pub fn setup(&self, workload: Workload, threads: usize) -> Setup {
        Setup { cache_bytes: self.shape.cache_bytes, threads, durability: workload.durability() }
    }

    /// Rows that loads have left, and others since, at any version.
    pub fn verify_rows(&self, store: &dyn Engine, keys: Keys, rows: u64) -> Result<u64> {
        let judge = |number: u64, _| number < rows;
        let value_bytes = self.shape.value_bytes;
        verify(store, &Expected { keys, value_bytes, rows, judge: &judge })
    }
}

/// A store's copy, removed when it goes out of scope.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed is in the way of the next copy, which says so.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy_of(store: &Path) -> Result<Copy> {
    let copy = Copy(store.with_extension("copy"));
    if copy.0.exists() {
        std::fs::remove_dir_all(&copy.0)?;
    }
    size::copy(store, &copy.0)?;
    Ok(copy)
}

/// Loads the store that this workload runs on, unless it is there.
pub fn prepare(site: &Site, known: &Known, keys: Keys) -> Result<()> {
    let dir = site.store(known.name, keys);
    if !dir.exists() {
        let workload = match keys {
            Keys::Dense => Workload::LoadSorted,
            Keys::Hashed => Workload::LoadRandom,
        };
        load::load(site, known, workload, &dir, 0).context("loading")?;
    }
    Ok(())
}

/// One cell, its store verified afterwards. A store that cannot do it says so in the cell.
pub fn cell(
    site: &Site,
    known: &Known,
    workload: Workload,
    threads: usize,
    round: u64,
) -> Result<Cell> {
    if !stores::offers(known.name, workload.durability()) {
        let mut cell = Cell::new(workload, threads, known.name, round);
        cell.cannot = Some(format!("no {} commits", workload.durability().name()));
        return Ok(cell);
    }
    let keys = workload.keys();
    let store = site.store(known.name, keys);
    if workload.is_load() {
        // The first one is what the others run on.
        if round == 1 && !store.exists() {
            return load::load(site, known, workload, &store, round);
        }
        let again = Copy(store.with_extension("again"));
        return load::load(site, known, workload, &again.0, round);
    }
    prepare(site, known, keys)?;
    if stopped() {
        bail!("interrupted");
    }
    let copy = workload.on_a_copy().then(|| copy_of(&store)).transpose()?;
    let dir = copy.as_ref().map_or(store.as_path(), |copy| copy.0.as_path());
    match workload {
        Workload::Churn => churn::churn(site, known, dir, round),
        Workload::Kill => kill::kill(site, known, dir, threads, round),
        _ => driven(site, known, dir, workload, threads, round),
    }
}

/// Opens the store, scans it (which verifies it, and warms its cache), runs the threads, scans it
/// again, closes it.
fn driven(
    site: &Site,
    known: &Known,
    dir: &Path,
    workload: Workload,
    threads: usize,
    round: u64,
) -> Result<Cell> {
    let shape = &site.shape;
    let store = stores::open(known.name, dir, site.setup(workload, threads))?;
    site.verify_rows(&*store, workload.keys(), shape.rows).context("before the run")?;
    settle();
    let task = Task::new(workload, shape.rows, shape.value_bytes, threads);
    let flushes = disk::flushes(dir);
    let driven = drive(&*store, &task, threads, shape)?;
    let mut cell = Cell::new(workload, threads, known.name, round);
    cell.saw(driven.per_second, driven.mean);
    cell.flushes_per_op = disk::flushes(dir)
        .zip(flushes)
        .map(|(after, before)| (after - before) as f64 / driven.operations.max(1) as f64);
    cell.how = if workload.writes() { store.how() } else { "-".to_string() };
    let rows = task.rows_after();
    let notes = &driven.notes;
    let judge = |number: u64, version| number < rows && ledger::is_right(notes, number, version);
    let expected =
        Expected { keys: task.keys, value_bytes: shape.value_bytes, rows, judge: &judge };
    cell.verified_rows = verify(&*store, &expected).context("after the run")?;
    Ok(cell)
}

/// Writes what the kernel still holds, so that one store's leftovers do not slow the next.
pub fn settle() {
    // SAFETY: sync(2) takes nothing and cannot fail.
    unsafe { libc::sync() };
}
