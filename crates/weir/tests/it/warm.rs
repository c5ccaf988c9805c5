//! After a restart, the pages that were in memory are there again.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir::{
    Background, Config, Db, DiskSpec, Durability, FaultyVolume, ManualClock, SimVolume,
    ThrottledVolume, Tree, Volume,
};
use weir_device::{CrashMode, Fault, OpKind};

use crate::support::{assert_sound, tiny};

const ROWS: u32 = 6_000;
const FILE: &str = "warm";

fn config(pool_bytes: u64, background: Background) -> Config {
    Config { pool_bytes, background, pages_max: 1 << 12, ..tiny() }
}

/// Memory for all of the rows below, with one thread.
fn large() -> Config {
    config(4 << 20, Background::Manual)
}

fn open_on(volume: &SimVolume, config: Config) -> Db {
    Db::open_on(Arc::new(volume.clone()), config).expect("opened")
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

fn value(row: u32) -> Vec<u8> {
    vec![row as u8; 250 + (row % 50) as usize]
}

fn the_tree(db: &Db) -> Tree {
    db.tree("t").expect("read").expect("the tree")
}

fn read(tree: &Tree, rows: impl IntoIterator<Item = u32>) {
    for row in rows {
        let got = tree.get(&key(row)).expect("a get");
        assert!(got == Some(value(row)), "row {row}");
    }
}

/// Some 500 pages, all in memory when it is closed.
fn closed_database() -> SimVolume {
    let volume = SimVolume::new(11);
    let db = open_on(&volume, large());
    fill(&db);
    db.close().expect("closed");
    volume
}

fn fill(db: &Db) {
    let tree = db.create_tree("t").expect("a tree");
    for row in 0..ROWS {
        tree.put(&key(row), &value(row), Durability::Lazy).expect("a put");
    }
}

/// Lets the background do what it has to do.
fn settle(db: &Db) {
    for _ in 0..600 {
        db.step().expect("a step");
    }
}

/// Pages that must be read from the disk to see the rows.
fn misses(db: &Db, rows: impl IntoIterator<Item = u32>) -> u64 {
    let before = db.stats().page_reads;
    read(&the_tree(db), rows);
    db.stats().page_reads - before
}

#[test]
fn the_same_pages_are_in_memory_after_closing_and_opening() {
    let volume = closed_database();
    let db = open_on(&volume, large());
    assert_eq!(db.stats().pages_warmed, 0, "opening waits for nothing");
    settle(&db);
    let stats = db.stats();
    assert!(stats.pages_warmed > 400, "{}", stats.pages_warmed);
    assert_eq!(misses(&db, 0..ROWS), 0);
    let resident = stats.pool_frames - stats.pool_frames_free;
    // The two pages that say which era the file is of are in no pool.
    assert_eq!(resident + 2, stats.pages_allocated, "nothing else");
    assert_sound(&db);
    db.close().expect("closed");

    // The same without the file.
    volume.remove(FILE).expect("removed");
    let db = open_on(&volume, large());
    settle(&db);
    assert_eq!(db.stats().pages_warmed, 0);
    assert!(misses(&db, 0..ROWS) > 400);
}

#[test]
fn opening_and_closing_at_once_or_with_little_memory_forgets_nothing() {
    let volume = closed_database();
    open_on(&volume, large()).close().expect("closed");
    let small = open_on(&volume, config(256 << 10, Background::Manual));
    settle(&small);
    small.close().expect("closed");
    let db = open_on(&volume, large());
    db.step().expect("a step");
    db.close().expect("closed");
    let db = open_on(&volume, large());
    settle(&db);
    assert_eq!(misses(&db, 0..ROWS), 0);
}

#[test]
fn with_less_memory_the_hottest_pages_come_and_none_leaves() {
    let volume = closed_database();
    // All pages come in cold; a tenth of the rows is used.
    let hot = || (ROWS / 2..ROWS / 2 + 100).chain(ROWS / 2..ROWS / 2 + 100);
    let db = open_on(&volume, large());
    settle(&db);
    read(&the_tree(&db), hot());
    db.close().expect("closed");
    let db = open_on(&volume, config(256 << 10, Background::Manual));
    settle(&db);
    let stats = db.stats();
    assert!((40..60).contains(&stats.pages_warmed), "{}", stats.pages_warmed);
    assert_eq!(stats.page_evictions, 0);
    assert!(stats.pool_frames_free >= 8, "{}", stats.pool_frames_free);
    assert_eq!(misses(&db, hot()), 0);
    assert!(misses(&db, 0..ROWS) > 400);
}

#[test]
fn a_file_that_is_torn_or_foreign_is_ignored_and_replaced() {
    let volume = closed_database();
    let whole = volume.read_raw(FILE).expect("the file");
    let other = closed_database().read_raw(FILE).expect("the file");
    let mut newer = whole.clone();
    newer[15] += 1;
    let mut flipped = whole.clone();
    flipped[40] ^= 2;
    let torn = [&whole[..40], &vec![0; whole.len() - 40]].concat();
    let bad = [
        ("empty", Vec::new()),
        ("zeros", vec![0; 4096]),
        ("cut", whole[..whole.len() - 4096].to_vec()),
        ("another database's", other),
        ("a newer version's", newer),
        ("flipped", flipped),
        ("torn", torn),
        ("text", b"mine".repeat(1024)),
    ];
    for (what, bytes) in bad {
        let volume = volume.snapshot();
        volume.write_raw(FILE, &bytes).expect("planted");
        let db = open_on(&volume, large());
        settle(&db);
        assert_eq!(db.stats().pages_warmed, 0, "{what}");
        read(&the_tree(&db), 0..ROWS);
        db.close().expect("closed");
        let db = open_on(&volume, large());
        settle(&db);
        assert!(db.stats().pages_warmed > 400, "{what}: replaced");
    }
}

#[test]
fn after_a_kill_what_was_in_memory_a_while_ago_is_found() {
    let volume = SimVolume::new(12);
    let clock = Arc::new(ManualClock::default());
    let db = Db::open_with_clock(Arc::new(volume.clone()), large(), clock.clone());
    let db = db.expect("opened");
    fill(&db);
    settle(&db);
    assert!(!volume.exists(FILE).expect("looked"), "not at once");
    clock.advance(60_000_000);
    db.step().expect("a step");
    db.checkpoint().expect("a checkpoint");
    let written = volume.read_raw(FILE).expect("it is there");
    // What is pending after the crash.
    let tree = the_tree(&db);
    for row in (0..ROWS).step_by(60) {
        tree.put(&key(row), &value(row), Durability::Synced).expect("a put");
    }
    // Nothing has changed that is worth writing down.
    clock.advance(400_000_000);
    db.step().expect("a step");
    assert!(volume.read_raw(FILE).expect("it is there") == written);
    for mode in [CrashMode::KeepAll, CrashMode::LoseAll, CrashMode::Random] {
        let found = volume.crash_with(mode, 5);
        let db = open_on(&found, large());
        let mut waited = 0;
        while db.stats().pages_pending_redo > 0 {
            assert_eq!(db.stats().pages_warmed, 0, "what is pending comes first");
            db.step().expect("a step");
            waited += 1;
        }
        assert!(waited > 10, "{waited}");
        settle(&db);
        assert!(db.stats().pages_warmed > 300, "{mode:?}: {}", db.stats().pages_warmed);
        assert_eq!(misses(&db, 0..ROWS), 0);
        assert_sound(&db);
    }
}

#[test]
fn pages_that_are_not_there_any_more_are_passed_over() {
    let volume = closed_database();
    let old = volume.read_raw(FILE).expect("the file");
    let db = open_on(&volume, large());
    assert!(db.drop_tree("t").expect("dropped"));
    db.close().expect("closed");
    volume.write_raw(FILE, &old).expect("put back");
    let db = open_on(&volume, large());
    settle(&db);
    let stats = db.stats();
    assert!(stats.pages_warmed <= stats.pages_allocated && stats.pages_allocated < 10);
    assert!(stats.halted.is_none());
    // And come to be used by others, of which the old list knows nothing.
    fill(&db);
    db.close().expect("closed");
    volume.write_raw(FILE, &old).expect("put back");
    let db = open_on(&volume, large());
    settle(&db);
    assert!(db.stats().pages_warmed > 100, "{}", db.stats().pages_warmed);
    read(&the_tree(&db), 0..ROWS);
    assert_sound(&db);
}

#[test]
fn a_failing_device_is_reported_at_the_first_use() {
    let inner = closed_database();
    let volume = FaultyVolume::new(Arc::new(inner));
    let db = Db::open_on(Arc::new(volume.clone()), large()).expect("opened");
    let rule = volume.fail_all("pages", OpKind::Read, Fault::Broken);
    settle(&db);
    assert!(volume.hits(rule) > 100 && db.stats().halted.is_none());
    assert_eq!(db.stats().pages_warmed, 0);
    volume.clear();
    read(&the_tree(&db), 0..ROWS);
    db.close().expect("closed");
}

#[test]
fn closing_does_not_care_whether_the_list_is_written() {
    let faults: [(OpKind, &str); 5] = [
        (OpKind::Create, FILE),
        (OpKind::Open, FILE),
        (OpKind::Write, FILE),
        (OpKind::Sync, FILE),
        (OpKind::Read, FILE),
    ];
    for (op, name) in faults {
        for is_there in [false, true] {
            let inner = closed_database();
            if !is_there {
                inner.remove(FILE).expect("removed");
            }
            let volume = FaultyVolume::new(Arc::new(inner.clone()));
            volume.fail_all(name, op, Fault::Broken);
            let db = Db::open_on(Arc::new(volume.clone()), large()).expect("opened");
            read(&the_tree(&db), 0..ROWS);
            db.close().unwrap_or_else(|e| panic!("{op:?}, {is_there}: {e}"));
            let db = open_on(&inner, large());
            assert!(db.recovery_report().is_none(), "{op:?}: closed in order");
            read(&the_tree(&db), 0..ROWS);
        }
    }
    let inner = closed_database();
    inner.remove(FILE).expect("removed");
    let volume = FaultyVolume::new(Arc::new(inner.clone()));
    let db = Db::open_on(Arc::new(volume.clone()), large()).expect("opened");
    volume.full_disk(true);
    db.close().expect("closed");
    assert!(!inner.exists(FILE).expect("looked"));
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn threads_warm_it_while_others_read_and_write() {
    for pool_bytes in [4 << 20, 1 << 20] {
        let volume = closed_database();
        let spec = "3000iops,24MiB".parse::<DiskSpec>().expect("a disk");
        let slow = Arc::new(ThrottledVolume::new(Arc::new(volume.clone()), spec));
        let db = Db::open_on(slow, config(pool_bytes, Background::Threads)).expect("opened");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let (db, done) = (&db, &done);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let tree = the_tree(db);
                    while !done.load(Ordering::Relaxed) {
                        let row = random.u32(0..ROWS);
                        read(&tree, [row]);
                        if seed == 0 {
                            tree.put(&key(row), &value(row), Durability::Written).expect("a put");
                        }
                    }
                });
            }
            // Nothing is asserted while they go on: the scope would wait for them for ever.
            let began = Instant::now();
            while db.stats().pages_warmed <= 20 && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(300));
            done.store(true, Ordering::Relaxed);
        });
        assert!(db.stats().pages_warmed > 20, "nothing is warm");
        assert_sound(&db);
        db.close().expect("closed");
        let db = open_on(&volume, large());
        settle(&db);
        assert!(db.stats().pages_warmed > 150, "{}", db.stats().pages_warmed);
        read(&the_tree(&db), 0..ROWS);
    }
}

#[test]
fn closing_does_not_wait_for_a_slow_disk_to_warm_it() {
    let volume = closed_database();
    let spec = "50iops,400KiB".parse::<DiskSpec>().expect("a disk");
    let slow = Arc::new(ThrottledVolume::new(Arc::new(volume.clone()), spec));
    slow.set_unlimited(true);
    let db = Db::open_on(slow.clone(), config(4 << 20, Background::Threads)).expect("opened");
    slow.set_unlimited(false);
    wait_until("it begins", || db.stats().pages_warmed > 0);
    let began = Instant::now();
    slow.set_unlimited(true);
    db.close().expect("closed");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let db = open_on(&volume, large());
    settle(&db);
    assert_eq!(misses(&db, 0..ROWS), 0, "what was not read is listed still");
}
