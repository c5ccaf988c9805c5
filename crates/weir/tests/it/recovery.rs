//! Opening after a crash: pages are brought up to date by the thread that comes first, and the age
//! is bounded.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use weir::{
    Background, Batch, Config, Db, DoubleWriteConfig, DoubleWriteMode, Durability, SimVolume,
    TxnOptions,
};

use weir_device::CrashMode;

use crate::support::assert_sound;

/// Name of the tree, key, value.
type Rows = Vec<(String, Vec<u8>, Vec<u8>)>;

fn config(recovery_threads: usize) -> Config {
    Config {
        pool_bytes: 8 << 20,
        log_bytes: 16 << 20,
        page_size: 4096,
        recovery_threads,
        background: Background::Threads,
        ..Config::default()
    }
}

/// All rows of all trees, in order.
fn contents(db: &Db) -> Rows {
    let mut rows = Vec::new();
    for name in db.tree_names().expect("names") {
        let tree = db.tree(&name).expect("read").expect("the tree");
        let mut cursor = tree.cursor();
        let mut on = cursor.seek_first().expect("seek");
        while on {
            let value = cursor.value().expect("a value").to_vec();
            rows.push((name.clone(), cursor.key().to_vec(), value));
            on = cursor.next().expect("a step");
        }
    }
    rows
}

/// A disk that stopped under a database with much to redo, and what was in it.
fn crashed() -> (SimVolume, Rows) {
    let volume = SimVolume::new(77);
    // Nothing is written in the background, so that much is left to redo.
    let manual = Config { background: Background::Manual, ..config(0) };
    let db = Db::open_on(Arc::new(volume.clone()), manual).expect("a database");
    let (rows, others) = (db.create_tree("rows").expect("t"), db.create_tree("others").expect("t"));
    for n in 0u64..20_000 {
        let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).to_be_bytes();
        match n % 10 {
            0 => assert!(rows.delete(&key, Durability::Lazy).is_ok()),
            1 => {
                let mut batch = Batch::new();
                batch.put(&rows, &key, &[n as u8; 6_000]);
                batch.put(&others, &key, &n.to_be_bytes());
                db.write(&batch, Durability::Lazy).expect("a batch");
            }
            _ => rows.put(&key, &[n as u8; 90], Durability::Lazy).expect("a put"),
        }
    }
    // Left open: half done when the disk stops.
    let mut open = db.begin(weir::TxnOptions::default());
    for n in 0u64..500 {
        open.put(&others, &(n << 32).to_be_bytes(), b"never").expect("put");
    }
    rows.put(b"last", b"synced", Durability::Synced).expect("a put");
    let before = contents(&db);
    let image = volume.snapshot();
    drop(open);
    (image, before)
}

#[test]
fn one_thread_and_several_give_the_same() {
    let (image, before) = crashed();
    let mut seen = Vec::new();
    for threads in [1, 2, 5] {
        let db = Db::open_on(Arc::new(image.fork()), config(threads)).expect("recovery");
        let report = db.recovery_report().expect("there was something to do");
        assert!(report.pending_pages > 100, "{report:?}");
        assert_eq!(report.undone, 1);
        assert_sound(&db);
        seen.push(contents(&db));
    }
    assert!(seen[0] == before, "what was synced is there, and nothing else");
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

/// A pool that has room for a small part of what is pending, closed before much of it is brought
/// up to date: what is closed in order has nothing left to redo.
#[test]
fn closed_directly_after_opening() {
    let (image, before) = crashed();
    for pool_bytes in [256 << 10, 1 << 20, 64 << 20] {
        let volume = image.fork();
        let config = Config { pool_bytes, ..config(2) };
        let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("recovery");
        db.close().expect("closed");
        let db = Db::open_on(Arc::new(volume), config).expect("opened");
        assert!(db.recovery_report().is_none(), "nothing was left to do");
        assert!(contents(&db) == before, "all is there");
    }
}

/// A log many times as large as the memory for it, also where opening is broken off by one crash
/// after the other: each leaves less to do.
#[test]
fn a_log_larger_than_memory_is_redone_in_windows() {
    let (image, before) = crashed();
    for (threads, held_bytes) in [(1, 1 << 20), (2, 300_000), (2, 10_000)] {
        let config = Config { held_log_bytes: Some(held_bytes), ..config(threads) };
        let db = Db::open_on(Arc::new(image.fork()), config).expect("recovery");
        let report = db.recovery_report().expect("there was something to do");
        assert!(report.redo_bytes() > 4 << 20, "{report:?}");
        assert!(report.read_bytes > report.redo_bytes(), "read once for its end, then in windows");
        assert!(report.pending_pages < 1_000, "the last window's: {report:?}");
        assert_eq!(report.undone, 1);
        assert_sound(&db);
        assert!(contents(&db) == before, "with {held_bytes} bytes");
        db.close().expect("closed");
    }
}

#[test]
fn each_opening_in_windows_that_a_crash_cuts_off_leaves_less_to_redo() {
    let (image, before) = crashed();
    let config =
        Config { background: Background::Manual, held_log_bytes: Some(300_000), ..config(1) };
    // A loser holds the checkpoint back: roll it back first, and let there be much to redo again.
    let db = Db::open_on(Arc::new(image.clone()), config.clone()).expect("recovery");
    while db.stats().losers > 0 {
        db.step().expect("rolled back");
    }
    let rows = db.tree("rows").expect("read").expect("the tree");
    for n in 0u64..10_000 {
        let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).to_be_bytes();
        rows.put(&key, &[7; 90], Durability::Lazy).expect("a put");
    }
    rows.put(b"last", b"synced", Durability::Synced).expect("a put");
    let now = contents(&db);
    assert!(now != before);
    let mut image = image.crash_with(CrashMode::KeepAll, 0);
    drop(db);
    // How many writes an opening takes that nothing cuts off.
    let whole = image.fork();
    let began = whole.writes_so_far();
    let db = Db::open_on(Arc::new(whole.clone()), config.clone()).expect("recovery");
    let writes = whole.writes_so_far() - began;
    drop(db);
    // A quarter of them each time.
    let mut openings = 0;
    let db = loop {
        openings += 1;
        assert!(openings < 20, "the openings get nowhere");
        let volume = image.fork();
        volume.set_crash_after(Some(writes / 4));
        match Db::open_on(Arc::new(volume.clone()), config.clone()) {
            Ok(db) => break db,
            Err(_) => image = volume.crash_with(CrashMode::Random, openings),
        }
    };
    assert!(openings > 2, "{openings} openings, {writes} writes");
    assert!(contents(&db) == now);
    assert_sound(&db);
}

/// A checkpoint that is kept younger than the log asks for, and then not any more.
#[test]
fn seconds_of_recovery_bound_the_age() {
    let volume = SimVolume::new(78);
    let config = Config { pool_bytes: 32 << 20, log_bytes: 64 << 20, ..config(0) };
    let db = Db::open_on(Arc::new(volume), config).expect("a database");
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(db.set_recovery_seconds(wrong), Err(weir::Error::Config(_))));
    }
    let tree = db.create_tree("rows").expect("a tree");
    let mut random = fastrand::Rng::with_seed(5);
    let mut write = |bytes: u64| {
        let until = db.stats().log_end + bytes;
        while db.stats().log_end < until {
            for _ in 0..100 {
                let row = random.u32(0..20_000).to_be_bytes();
                tree.put(&row, &random.u128(..).to_be_bytes(), Durability::Lazy).expect("a put");
            }
        }
        db.stats().checkpoint_age_bytes
    };
    // 200 MB/s are assumed.
    db.set_recovery_seconds(0.08).expect("set");
    let mut ages: Vec<u64> = (0..9).map(|_| write(10 << 20)).collect();
    ages.sort_unstable();
    assert!(ages[4] < 28 << 20, "{ages:?}, of 16 MB that can be read back in 80 ms");
    db.set_recovery_seconds(0.0).expect("set");
    let free = (0..20).map(|_| write(10 << 20)).find(|&age| age > 40 << 20);
    assert!(free.is_some(), "{} bytes where the log alone decides", write(0));
    db.close().expect("closed");
}

/// What holds the checkpoint moves on in time also where the age is bounded far below what the log
/// has room for, as it is by little memory: a load of a tree, and a transaction that stays open.
#[test]
fn a_bound_of_the_age_far_below_the_log_stops_no_transaction() {
    let volume = SimVolume::new(79);
    let config = Config { pool_bytes: 16 << 20, log_bytes: 256 << 20, ..config(0) };
    let db = Db::open_on(Arc::new(volume), config).expect("a database");
    // 200 MB/s are assumed: 4 MB.
    db.set_recovery_seconds(0.02).expect("set");
    let bound = 4 << 20;
    let within = |what: &str, work: &mut dyn FnMut()| {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let began = std::time::Instant::now();
                while !ended.load(Relaxed) {
                    if began.elapsed() > Duration::from_secs(120) {
                        eprintln!("{what}: stopped for good, {:?}", db.stats());
                        std::process::abort();
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            work();
            ended.store(true, Relaxed);
        });
    };
    let loaded = db.create_tree("loaded").expect("a tree");
    within("a load", &mut || {
        let rows = (0u32..200_000).map(|n| (n.to_be_bytes(), [7; 120]));
        loaded.bulk_load(rows).expect("loaded");
    });
    let tree = db.create_tree("rows").expect("a tree");
    let mut open = db.begin(TxnOptions::default());
    open.put(&tree, b"open", b"not committed").expect("a put");
    within("writers beside an open transaction", &mut || {
        let until = db.stats().log_end + 8 * bound;
        let mut random = fastrand::Rng::with_seed(5);
        while db.stats().log_end < until {
            let row = random.u32(0..20_000).to_be_bytes();
            tree.put(&row, &[3; 100], Durability::Lazy).expect("a put");
        }
    });
    open.rollback().expect("rolled back");
    assert_eq!(tree.get(b"open").expect("read"), None);
    db.close().expect("closed");
}

/// A page that cannot be brought up to date: the rest can be read, a thread that asks for it gets
/// the error, and the engine halts and says why.
#[test]
fn a_damaged_page_with_pending_redo() {
    let volume = SimVolume::new(79);
    // Its copy in the doublewrite area would mend it.
    let doublewrite =
        DoubleWriteConfig { mode: DoubleWriteMode::Off, ..DoubleWriteConfig::default() };
    let config = Config { doublewrite, ..config(0) };
    let manual = Config { background: Background::Manual, ..config.clone() };
    let db = Db::open_on(Arc::new(volume.clone()), manual).expect("a database");
    let (rows, others) = (db.create_tree("rows").expect("t"), db.create_tree("others").expect("t"));
    others.put(b"key", b"value", Durability::Lazy).expect("a put");
    for value in [[1; 90], [2; 90]] {
        for n in 0u32..2_000 {
            rows.put(&n.to_be_bytes(), &value, Durability::Lazy).expect("a put");
        }
        if value[0] == 1 {
            db.checkpoint().expect("a checkpoint");
        }
    }
    rows.put(b"last", b"synced", Durability::Synced).expect("a put");
    let image = volume.snapshot();
    image.corrupt("pages", 20 * 4096 + 1_000, 0x10).expect("flipped");
    let db = Db::open_on(Arc::new(image), config).expect("opened");
    let notices = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = notices.clone();
    assert!(db.on_notice(Box::new(move |notice| {
        heard.lock().expect("no panic").push(format!("{notice:?}"));
    })));
    let others = db.tree("others").expect("read").expect("the tree");
    assert_eq!(others.get(b"key").expect("read").as_deref(), Some(&b"value"[..]));
    let rows = db.tree("rows").expect("read").expect("the tree");
    let read: Vec<_> = (0u32..2_000).map(|n| rows.get(&n.to_be_bytes())).collect();
    let is_reported = |e: &weir::Error| e.to_string().contains("page 20");
    let (sound, damaged): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
    assert!(sound.len() > 1_900, "{} rows can be read", sound.len());
    assert!(sound.into_iter().flatten().all(|value| value.as_deref() == Some(&[2; 90][..])));
    let damaged: Vec<_> = damaged.into_iter().filter_map(Result::err).collect();
    assert!(!damaged.is_empty() && damaged.iter().all(is_reported), "{damaged:?}");
    let why = || db.stats().halted.filter(|why| why.contains("page 20"));
    for _ in 0..500 {
        if why().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(why().is_some(), "the engine halts: {:?}", db.stats().halted);
    assert!(rows.put(b"more", b"", Durability::Synced).is_err());
    // Reported once each, however often the page was asked for.
    let notices = notices.lock().expect("no panic").clone();
    assert!(notices.iter().all(|notice| notice.contains("page 20")), "{notices:?}");
    assert!(notices.iter().filter(|notice| notice.starts_with("PageLost")).count() == 1);
    assert!(notices.iter().filter(|notice| notice.starts_with("Halted")).count() == 1);
    let mut lost = 0;
    db.visit_counters(&mut |name, _, _, value| {
        if name == "pool.lost" {
            lost = value;
        }
    });
    assert!(lost >= damaged.len() as u64, "{lost} of {}", damaged.len());
    assert!(db.close().is_err(), "it cannot be closed in order");
}

/// The age falls slower than the log's capacity, and the next opening must span it all.
#[test]
fn a_log_made_much_smaller_before_a_crash_is_gone_through() {
    let volume = SimVolume::new(80);
    let base = Config { pool_bytes: 256 << 20, log_bytes: 64 << 20, ..config(0) };
    let manual = Config { background: Background::Manual, ..base.clone() };
    let db = Db::open_on(Arc::new(volume.clone()), manual).expect("a database");
    let rows = db.create_tree("rows").expect("a tree");
    for n in 0u64..27_000 {
        let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).to_be_bytes();
        rows.put(&key, &[n as u8; 1_400], Durability::Lazy).expect("a put");
    }
    rows.put(b"last", b"synced", Durability::Synced).expect("a put");
    let small = 640 << 10;
    db.set_log_bytes(small).expect("made smaller");
    assert!(db.stats().checkpoint_age_bytes > 48 * small, "{}", db.stats().checkpoint_age_bytes);
    let left = volume.snapshot();
    let (tell, told) = std::sync::mpsc::channel();
    let config = Config { log_bytes: 0, ..base };
    std::thread::spawn(move || {
        let db = Db::open_on(Arc::new(left), config).expect("opened");
        let rows = db.tree("rows").expect("read").expect("there");
        rows.put(b"new", b"row", Durability::Synced).expect("a put");
        assert_sound(&db);
        drop(rows);
        tell.send(db.close()).expect("told");
    });
    let closed = told.recv_timeout(Duration::from_secs(60)).expect("no wait without end");
    closed.expect("closed");
}

#[test]
fn a_doublewrite_of_one_page_makes_a_database() {
    for pages in [1, 2, 3] {
        let volume = SimVolume::new(79);
        let doublewrite = DoubleWriteConfig { pages, ..DoubleWriteConfig::default() };
        let open = || {
            let config = Config { doublewrite, ..config(0) };
            Db::open_on(Arc::new(volume.clone()), config).expect("opened")
        };
        let db = open();
        db.create_tree("t").expect("a tree");
        db.close().expect("closed");
        assert_sound(&open());
    }
}
