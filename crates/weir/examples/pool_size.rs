//! What a change of the pool's size costs those that work: `cargo run --release --example pool_size
//! -- DIR`. A database of 1,000,000 rows (230 MB); four threads change rows and read three times as
//! many, and commits are counted for each second: for 20 seconds in a large pool, for 20 in a
//! small one, and for 20 in which the size changes every four seconds, twice. At first both sizes
//! hold all of it; then the smaller one holds half, and where it does, the disk is what is short.
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir::{Config, Db, Durability, Tree};

const ROWS: u64 = 1_000_000;
const VALUE_BYTES: usize = 200;
const THREADS: u64 = 4;
const SECONDS: u64 = 20;
/// The size changes so often.
const CHANGE_SECONDS: u64 = 4;
/// What is not counted, at the beginning.
const SETTLE: Duration = Duration::from_secs(3);
const LARGE: u64 = 768 << 20;

/// In which pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Large,
    Small,
    Changes,
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: pool_size DIR")?;
    let config = Config { pool_bytes: LARGE, log_bytes: 512 << 20, ..Config::default() };
    let db = Db::open(Path::new(&dir), config)?;
    let tree = db.open_tree("rows")?;
    for row in 0..ROWS {
        tree.put(&row.to_be_bytes(), &[row as u8; VALUE_BYTES], Durability::Lazy)?;
    }
    for small in [384 << 20, 128 << 20] {
        for how in [How::Large, How::Changes, How::Small, How::Large, How::Changes, How::Small] {
            db.set_pool_bytes(if how == How::Small { small } else { LARGE })?;
            run(&db, &tree, small, how)?;
        }
    }
    db.close()?;
    Ok(())
}

/// Some seconds of work.
fn run(db: &Db, tree: &Tree, small: u64, how: How) -> Result<(), Box<dyn Error>> {
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut took = Duration::ZERO;
    let seconds = std::thread::scope(|scope| -> Result<Vec<u64>, Box<dyn Error>> {
        for thread in 0..THREADS {
            let (stop, commits) = (&stop, &commits);
            scope.spawn(move || work(tree, thread, stop, commits));
        }
        std::thread::sleep(SETTLE);
        // A change may take longer than a second: another thread counts.
        let counter = scope.spawn(|| count(&commits));
        let began = Instant::now();
        let mut outcome = Ok(());
        for at in (0..SECONDS).step_by(CHANGE_SECONDS as usize).filter(|_| how == How::Changes) {
            std::thread::sleep(Duration::from_secs(at).saturating_sub(began.elapsed()));
            let is_small = (at / CHANGE_SECONDS).is_multiple_of(2);
            let change_began = Instant::now();
            outcome = db.set_pool_bytes(if is_small { small } else { LARGE });
            took = took.max(change_began.elapsed());
            if outcome.is_err() {
                break;
            }
        }
        let seconds = counter.join().map_err(|_| "the counting thread panicked")?;
        stop.store(true, Ordering::Relaxed);
        outcome?;
        Ok(seconds)
    })?;
    let sum: u64 = seconds.iter().sum();
    let mean = sum as f64 / seconds.len() as f64;
    let worst = seconds.iter().min().copied().unwrap_or(0);
    let sizes = match how {
        How::Large => format!("{} MiB", LARGE >> 20),
        How::Small => format!("{} MiB", small >> 20),
        How::Changes => format!("{} MiB and {} MiB", LARGE >> 20, small >> 20),
    };
    println!(
        "{sizes}: {mean:.0} commits a second, the worst {worst} ({:.2}), longest change {:.2} s",
        worst as f64 / mean,
        took.as_secs_f64()
    );
    println!("  {seconds:?}");
    Ok(())
}

/// The commits of each second.
fn count(commits: &AtomicU64) -> Vec<u64> {
    let began = Instant::now();
    let mut before = commits.load(Ordering::Relaxed);
    (1..=SECONDS)
        .map(|second| {
            std::thread::sleep(Duration::from_secs(second).saturating_sub(began.elapsed()));
            let now = commits.load(Ordering::Relaxed);
            now - std::mem::replace(&mut before, now)
        })
        .collect()
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
