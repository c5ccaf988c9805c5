//! Disks on which each write of pages takes long, however few it has, while the log's do not.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use weir::{Config, Db, Durability, SimVolume, Tree, TxnOptions};
use weir_base::SystemClock;
use weir_device::DelayedVolume;

use crate::support::assert_sound;

const ROWS: u32 = 4_000;
const WRITE_MICROS: u64 = 500_000;
/// Twice what the first batches are on their way, each with two writes that take so long.
const SETTLE: Duration = Duration::from_secs(5);
const LOOKED_AT: Duration = Duration::from_secs(8);

/// Fills a database whose log is small, keeps writers busy on it, makes its page writes slow, and
/// says how many commits there were in a second then, and in the worst one and a half.
fn commits_with_slow_pages(write: fn(&Db, &Tree, u32)) -> (f64, u64) {
    let clock = Arc::new(SystemClock::new());
    let sim = Arc::new(SimVolume::new(7));
    let volume = DelayedVolume::new(sim, &["pages", "doublewrite-"], clock);
    let config =
        Config { pool_bytes: 16 << 20, log_bytes: 2 << 20, page_size: 4096, ..Config::default() };
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..ROWS {
        tree.put(&n.to_be_bytes(), &[0; 300], Durability::Written).expect("a put");
    }
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut worst = u64::MAX;
    let mut mean = 0.0;
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (db, tree, stop, commits) = (&db, &tree, &stop, &commits);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !stop.load(Relaxed) {
                    write(db, tree, random.u32(..ROWS));
                    commits.fetch_add(1, Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(2));
        volume.set_write_micros(WRITE_MICROS);
        std::thread::sleep(SETTLE);
        let (began, step) = (commits.load(Relaxed), Duration::from_millis(1500));
        let mut last = began;
        for _ in 0..(LOOKED_AT.as_millis() / step.as_millis()) {
            std::thread::sleep(step);
            let now = commits.load(Relaxed);
            worst = worst.min(now - last);
            last = now;
        }
        mean = (last - began) as f64 / LOOKED_AT.as_secs_f64();
        let stats = db.stats();
        assert!(stats.checkpoint_age_max_bytes <= stats.checkpoint_age_limit_bytes);
        stop.store(true, Relaxed);
        volume.set_write_micros(0);
    });
    assert_sound(&db);
    println!("{mean} commits a second, {worst} in the worst 1.5 s");
    (mean, worst)
}

/// Where two lanes wrote a page or two at a time, there were some 270 and 140.
fn assert_going_on(mean: f64, worst: u64) {
    assert!(mean > 700.0 && worst > 300, "{mean} commits a second, {worst} in the worst 1.5 s");
}

#[test]
fn commits_go_on_where_each_write_of_pages_takes_half_a_second() {
    let (mean, worst) = commits_with_slow_pages(|_, tree, n| {
        tree.put(&n.to_be_bytes(), &[n as u8; 300], Durability::Synced).expect("a put");
    });
    assert_going_on(mean, worst);
}

#[test]
fn transactions_go_on_too() {
    let (mean, worst) = commits_with_slow_pages(|db, tree, n| {
        let mut txn = db.begin(TxnOptions::default());
        if txn.put(tree, &n.to_be_bytes(), &[n as u8; 300]).is_ok() {
            txn.commit_durably(Durability::Synced).expect("committed");
        }
    });
    assert_going_on(mean, worst);
}
