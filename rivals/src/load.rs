//! Loads rows into an empty store and says how fast it went, and how much room they take.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::cell::Cell;
use crate::drive::{stopped, watch};
use crate::engine::{Engine, Row};
use crate::plan::Workload;
use crate::rows::{self, Keys};
use crate::run::{Site, settle};
use crate::size;
use crate::stores::{self, Known};

/// Rows of a transaction of the load in random order.
const BATCH_ROWS: usize = 1_000;

/// Loads into `dir`, which is there afterwards or not at all.
pub fn load(
    site: &Site,
    known: &Known,
    workload: Workload,
    dir: &Path,
    round: u64,
) -> Result<Cell> {
    let part = dir.with_extension("part");
    for old in [&part, dir] {
        if old.exists() {
            std::fs::remove_dir_all(old)?;
        }
    }
    settle();
    let (shape, keys) = (&site.shape, workload.keys());
    let store = stores::open(known.name, &part, site.setup(workload, 1))?;
    let done = AtomicU64::new(0);
    let mut rows = (0..shape.rows).map_while(|number| {
        done.store(number, Ordering::Relaxed);
        (!stopped()).then(|| rows::first(keys, number, shape.value_bytes))
    });
    let store_now = &*store;
    let (result, per_second, took) = watch(&done, &mut || (), || match keys {
        Keys::Dense => store_now.bulk_load(&mut rows),
        Keys::Hashed => put_batches(store_now, &mut rows),
    });
    result?;
    if stopped() {
        bail!("interrupted");
    }
    let mut cell = Cell::new(workload, 1, known.name, round);
    cell.saw(per_second, shape.rows as f64 / took);
    cell.how = "a sync at the end".to_string();
    store.after_load()?;
    drop(store);
    // What was loaded is judged as the next opening finds it.
    let store = stores::open(known.name, &part, site.setup(workload, 1))?;
    let verified = site.verify_rows(&*store, keys, shape.rows);
    cell.verified_rows = verified.context("after the load")?;
    drop(store);
    cell.size = Some(size::of(known, &part));
    std::fs::rename(&part, dir)?;
    Ok(cell)
}

fn put_batches(store: &dyn Engine, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    store.with_worker(&mut |worker| {
        loop {
            batch.clear();
            batch.extend(rows.take(BATCH_ROWS));
            if batch.is_empty() {
                return Ok(());
            }
            worker.replace(&[], &batch)?;
        }
    })?;
    store.sync()
}
