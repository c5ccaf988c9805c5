//! What a change of the pool's size costs those that work: `cargo run --release --example pool_size
//! -- DIR`. A database of 1,000,000 rows (230 MB); four threads change rows and read three times as
//! many, and commits are counted for each second: for 20 seconds as it is, and for 20 in which
//! the size changes every four seconds. In the first pair both sizes hold all of it; in the second
//! the smaller one holds half.
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir::{Config, Db, Durability, Tree};

const ROWS: u64 = 1_000_000;
const VALUE_BYTES: usize = 200;
const THREADS: u64 = 4;
const SECONDS: usize = 20;
/// The size changes so often.
const CHANGE_SECONDS: usize = 4;
const LARGE: u64 = 768 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: pool_size DIR")?;
    let config = Config { pool_bytes: LARGE, log_bytes: 512 << 20, ..Config::default() };
    let db = Db::open(Path::new(&dir), config)?;
    let tree = db.open_tree("rows")?;
    for row in 0..ROWS {
        tree.put(&row.to_be_bytes(), &[row as u8; VALUE_BYTES], Durability::Lazy)?;
    }
    for small in [384 << 20, 128 << 20] {
        for changes in [false, true, false, true] {
            db.set_pool_bytes(LARGE)?;
            run(&db, &tree, small, changes)?;
        }
    }
    db.close()?;
    Ok(())
}

/// Some seconds of work.
fn run(db: &Db, tree: &Tree, small: u64, changes: bool) -> Result<(), Box<dyn Error>> {
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut seconds = Vec::new();
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        for thread in 0..THREADS {
            let (stop, commits) = (&stop, &commits);
            scope.spawn(move || work(tree, thread, stop, commits));
        }
        std::thread::sleep(Duration::from_secs(3));
        let (began, mut before) = (Instant::now(), commits.load(Ordering::Relaxed));
        let mut outcome = Ok(());
        while seconds.len() < SECONDS && outcome.is_ok() {
            if changes && seconds.len().is_multiple_of(CHANGE_SECONDS) {
                let is_small = (seconds.len() / CHANGE_SECONDS).is_multiple_of(2);
                let change = scope.spawn(move || {
                    let began = Instant::now();
                    let set = db.set_pool_bytes(if is_small { small } else { LARGE });
                    set.map(|()| began.elapsed())
                });
                count(&mut seconds, began, &commits, &mut before);
                match change.join() {
                    Ok(Ok(elapsed)) => took = took.max(elapsed),
                    Ok(Err(e)) => outcome = Err(e.into()),
                    Err(_) => outcome = Err("the change panicked".into()),
                }
            } else {
                count(&mut seconds, began, &commits, &mut before);
            }
        }
        stop.store(true, Ordering::Relaxed);
        outcome
    })?;
    let sum: u64 = seconds.iter().sum();
    let mean = sum as f64 / seconds.len() as f64;
    let worst = seconds.iter().min().copied().unwrap_or(0);
    println!(
        "{} MiB {} MiB: {mean:.0} commits a second, the worst {worst} ({:.2}), longest change \
         {:.2} s",
        LARGE >> 20,
        if changes { format!("and {}", small >> 20) } else { format!("not {}", small >> 20) },
        worst as f64 / mean,
        took.as_secs_f64()
    );
    println!("  {seconds:?}");
    Ok(())
}

/// Waits for the end of the next second, and counts what was committed in it.
fn count(seconds: &mut Vec<u64>, began: Instant, commits: &AtomicU64, before: &mut u64) {
    let end = Duration::from_secs(seconds.len() as u64 + 1);
    std::thread::sleep(end.saturating_sub(began.elapsed()));
    let now = commits.load(Ordering::Relaxed);
    seconds.push(now - *before);
    *before = now;
}

fn work(tree: &Tree, thread: u64, stop: &AtomicBool, commits: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(thread);
    let mut value = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..3 {
            let row = random.u64(0..ROWS).to_be_bytes();
            let read = tree.get_into(&row, &mut value);
            assert!(read.is_ok_and(|found| found), "a row");
        }
        let row = random.u64(0..ROWS).to_be_bytes();
        let put = tree.put(&row, &[random.u8(..); VALUE_BYTES], Durability::Lazy);
        assert!(put.is_ok(), "a change");
        commits.fetch_add(1, Ordering::Relaxed);
    }
}
