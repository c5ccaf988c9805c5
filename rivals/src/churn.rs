//! Replaces all rows by others, twice, in random order, and says how much room the store takes
//! then.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::cell::Cell;
use crate::drive::{stopped, watch};
use crate::engine::Engine;
use crate::plan::Workload;
use crate::rows;
use crate::run::Site;
use crate::size;
use crate::stores::{self, Known};
use crate::verify::{Expected, verify};

/// How often each row is replaced on average.
const TIMES: u64 = 2;
/// Rows that a transaction removes, and adds.
const BATCH_ROWS: usize = 1_000;
/// Batches between two syncs, for stores that free what they no longer need only then.
const SYNC_EVERY: usize = 50;

pub fn churn(site: &Site, known: &Known, dir: &Path, round: u64) -> Result<Cell> {
    let (shape, workload) = (&site.shape, Workload::Churn);
    let store = stores::open(known.name, dir, site.setup(workload, 1))?;
    // What the benchmark remembers counts against the store's limit of memory: few bytes a row.
    u32::try_from(shape.rows * (TIMES + 1)).context("too many rows for the churn")?;
    let mut present: Vec<u32> = (0..shape.rows as u32).collect();
    let done = AtomicU64::new(0);
    let mut greatest = 0;
    let store_now = &*store;
    let mut look = || {
        let size = size::of(known, dir);
        greatest = greatest.max(size.data + size.log);
    };
    let (result, per_second, took) =
        watch(&done, &mut look, || replace_all(site, store_now, &mut present, &done));
    result?;
    if stopped() {
        bail!("interrupted");
    }
    let mut cell = Cell::new(workload, 1, known.name, round);
    cell.saw(per_second, done.load(Ordering::Relaxed) as f64 / took);
    cell.how = format!("{}; synced at the end", store.how());
    drop(store);
    let store = stores::open(known.name, dir, site.setup(workload, 1))?;
    cell.verified_rows = verify_present(site, &*store, &present).context("after the churn")?;
    drop(store);
    let mut size = size::of(known, dir);
    size.greatest = size.greatest.max(greatest);
    cell.size = Some(size);
    Ok(cell)
}

/// `present` are the numbers of all rows, before and after.
fn replace_all(
    site: &Site,
    store: &dyn Engine,
    present: &mut [u32],
    done: &AtomicU64,
) -> Result<()> {
    let (shape, keys) = (&site.shape, Workload::Churn.keys());
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let size = BATCH_ROWS.min(present.len());
    let mut next = shape.rows;
    let batches = (shape.rows * TIMES).div_ceil(size as u64) as usize;
    store.with_worker(&mut |worker| {
        for batch in 1..=batches {
            if stopped() {
                return Ok(());
            }
            // So many different ones: the first of a shuffle.
            for at in 0..size {
                present.swap(at, random.usize(at..present.len()));
            }
            let gone = &present[..size];
            let gone: Vec<_> = gone.iter().map(|&number| keys.key(number.into())).collect();
            let mut new = Vec::with_capacity(size);
            for number in &mut present[..size] {
                *number = next as u32;
                new.push(rows::first(keys, next, shape.value_bytes));
                next += 1;
            }
            worker.replace(&gone, &new)?;
            done.fetch_add(size as u64, Ordering::Relaxed);
            if batch % SYNC_EVERY == 0 {
                store.sync()?;
            }
        }
        Ok(())
    })?;
    store.sync()
}

fn verify_present(site: &Site, store: &dyn Engine, present: &[u32]) -> Result<u64> {
    let last = present.iter().max().map_or(0, |&last| last as usize);
    let mut is_present = vec![0u64; last / 64 + 1];
    present.iter().for_each(|&number| is_present[number as usize / 64] |= 1 << (number % 64));
    let judge = |number: u64, _| {
        is_present.get(number as usize / 64).is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    };
    let expected = Expected {
        keys: Workload::Churn.keys(),
        value_bytes: site.shape.value_bytes,
        rows: present.len() as u64,
        judge: &judge,
    };
    verify(store, &expected)
}
