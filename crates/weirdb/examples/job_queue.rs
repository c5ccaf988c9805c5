//! A job queue that survives crashes: workers take the first job that no other has, and a job is
//! gone when the transaction that did it commits. A worker that dies gives its job back.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use weirdb::{Config, Db, Durability, Error, Isolation, Tree, TxnOptions};

const JOBS: u64 = 200;

/// Does one job. `false`: there was none that is free.
fn work(db: &Db, jobs: &Tree, done: &Tree, fails: bool) -> Result<bool, Error> {
    // Rows alone are locked at this level, not the places between them: others may add jobs.
    let mut txn = db.write_with(TxnOptions::new().isolation(Isolation::ReadCommitted));
    let first = txn.range_for_update::<&[u8]>(jobs, ..).skip_locked().next().transpose()?;
    let Some((key, job)) = first else { return Ok(false) };
    txn.put(done, &key, &job)?;
    txn.remove(jobs, &key)?;
    if fails {
        // As if the worker had died: dropped, the transaction is rolled back.
        return Ok(true);
    }
    txn.commit()?;
    Ok(true)
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Config::new().durability(Durability::Written).open(dir.path().join("store"))?;
    let (jobs, done) = (db.open_tree("jobs")?, db.open_tree("done")?);
    for number in 0..JOBS {
        jobs.put(number.to_be_bytes(), format!("job {number}"))?;
    }
    let (attempts, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let worker = || -> Result<(), Error> {
            loop {
                let fails = attempts.fetch_add(1, Ordering::Relaxed) % 10 == 9;
                if !work(&db, &jobs, &done, fails)? && jobs.is_empty()? {
                    return Ok(());
                }
                failures.fetch_add(u64::from(fails), Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    assert_eq!(done.len()?, JOBS);
    println!("{JOBS} jobs done, each once, with {} workers that gave up", failures.into_inner());
    db.close()
}
