//! What a dropped tree had goes back to the file system, where pages are in place: after the
//! checkpoint, whatever a crash leaves, and it comes again.
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::{
    Background, Batch, Config, Db, Durability, Encryption, Error, FaultyVolume, SimVolume, TestKey,
    Tree, Volume, punches_holes,
};
use weir_device::{CrashMode, Fault, OpKind};

use crate::support::{assert_sound, tiny};

fn given_back(db: &Db) -> u64 {
    let mut bytes = 0;
    db.visit_counters(&mut |name, _, _, value| {
        if name == "space.given_back" {
            bytes = value;
        }
    });
    bytes
}

/// Steps until nothing is given back any more.
fn settle(db: &Db) {
    db.checkpoint().expect("a checkpoint");
    let (mut before, mut rest) = (given_back(db), 0);
    while rest < 50 {
        db.step().expect("a step");
        if rest == 20 {
            db.checkpoint().expect("a checkpoint");
        }
        let now = given_back(db);
        rest = if now == before { rest + 1 } else { 0 };
        before = now;
    }
}

fn load(db: &Db, name: &str, rows: u32, len: usize) -> Tree {
    let tree = db.create_tree(name).expect("a tree");
    let rows: Vec<([u8; 4], Vec<u8>)> =
        (0..rows).map(|n| (n.to_be_bytes(), vec![n as u8; len])).collect();
    let rows = rows.iter().map(|(key, value)| (&key[..], &value[..]));
    tree.bulk_load(rows).expect("loaded");
    tree
}

fn assert_rows(tree: &Tree, rows: u32, len: usize) {
    for n in 0..rows {
        let value = tree.get(&n.to_be_bytes()).expect("a get").expect("a row");
        assert!(value.len() == len && value.iter().all(|&byte| byte == n as u8), "row {n}");
    }
}

fn blocks_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("pages")).expect("the file").blocks() * 512
}

#[test]
fn a_dropped_tree_of_64_mb_leaves_next_to_nothing_on_disk() {
    const ROWS: u32 = 16_000;
    const LEN: usize = 4_000;
    let dir = tempfile::tempdir().expect("a directory");
    let config = || Config {
        background: Background::Manual,
        pool_bytes: 16 << 20,
        log_bytes: 32 << 20,
        ..Config::default()
    };
    let db = Db::open(dir.path(), config()).expect("made");
    let kept = load(&db, "kept", 100, 500);
    let tree = load(&db, "gone", ROWS, LEN);
    assert_rows(&tree, ROWS, LEN);
    settle(&db);
    let full = blocks_bytes(dir.path());
    assert!(full > 60 << 20, "{full}");
    drop(tree);
    assert!(db.drop_tree("gone").expect("dropped"));
    settle(&db);
    let seen = db.stats();
    assert_eq!(seen.data_on_disk_bytes, Some(blocks_bytes(dir.path())));
    // Not all file systems make holes.
    if !seen.gives_back {
        return;
    }
    let left = blocks_bytes(dir.path());
    assert!(left < 1 << 20, "{left} of {full}");
    assert_eq!(
        db.stats().data_file_bytes,
        std::fs::metadata(dir.path().join("pages")).expect("it").len()
    );
    assert_rows(&kept, 100, 500);
    assert_sound(&db);
    drop(kept);
    db.close().expect("closed");
    // Which pages lie in holes is not known any more after opening again.
    let db = Db::open(dir.path(), config()).expect("opened");
    let again = load(&db, "again", ROWS, LEN);
    assert_rows(&again, ROWS, LEN);
    settle(&db);
    assert!(blocks_bytes(dir.path()) > 60 << 20);
    assert_sound(&db);
    assert_rows(&db.tree("kept").expect("read").expect("it is there"), 100, 500);
    drop(again);
    db.close().expect("closed");
}

/// By the thread, which has a pace and a grace.
#[test]
fn the_thread_gives_it_back_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { pool_bytes: 16 << 20, log_bytes: 16 << 20, ..Config::default() };
    let db = Db::open(dir.path(), config).expect("made");
    let tree = load(&db, "gone", 4_000, 4_000);
    let kept = load(&db, "kept", 2_000, 500);
    db.checkpoint().expect("a checkpoint");
    let full = blocks_bytes(dir.path());
    drop(tree);
    assert!(db.drop_tree("gone").expect("dropped"));
    let until = Instant::now() + Duration::from_secs(60);
    while blocks_bytes(dir.path()) > full / 3 && Instant::now() < until {
        db.checkpoint().expect("a checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
    if db.stats().gives_back {
        let left = blocks_bytes(dir.path());
        assert!(left <= full / 3 && given_back(&db) > 8 << 20, "{left} of {full}");
    }
    assert_rows(&kept, 2_000, 500);
    let again = load(&db, "again", 4_000, 4_000);
    assert_rows(&again, 4_000, 4_000);
    assert_sound(&db);
    drop((kept, again));
    db.close().expect("closed");
}

fn simulated() -> Config {
    Config { pages_max: 1 << 12, ..tiny() }
}

fn on_disk(db: &Db) -> u64 {
    db.stats().data_on_disk_bytes.expect("known")
}

fn put_all(db: &Db, tree: &Tree, rows: u32) -> Result<(), Error> {
    let mut batch = Batch::new();
    for n in 0..rows {
        batch.put(tree, &n.to_be_bytes(), &[n as u8; 900]);
    }
    db.write(&batch, Durability::Synced)
}

/// A hole that is handed out again meets a full disk where pages are claimed, and nowhere else:
/// the simulated disk refuses each write to a hole.
#[test]
fn a_full_disk_refuses_the_writer_that_needs_the_room() {
    let volume = SimVolume::new(61);
    let db = Db::open_on(Arc::new(volume.clone()), simulated()).expect("made");
    let kept = db.create_tree("kept").expect("a tree");
    put_all(&db, &kept, 50).expect("rows");
    let gone = load(&db, "gone", 400, 900);
    settle(&db);
    let full = on_disk(&db);
    drop(gone);
    db.drop_tree("gone").expect("dropped");
    settle(&db);
    let left = on_disk(&db);
    assert!(left < full / 2, "{left} of {full}");
    // Others take all of it.
    let files = volume.list().expect("a list");
    let lens = files.iter().map(|name| volume.open(name).expect("a file"));
    let taken: u64 = lens.map(|file| file.allocated_bytes().expect("known")).sum();
    volume.set_capacity(Some(taken + 8_192));
    let tree = db.create_tree("next").expect("a tree");
    let refused = put_all(&db, &tree, 300);
    assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
    for n in 0..200u32 {
        let put = tree.put(&n.to_be_bytes(), &[1; 900], Durability::Synced);
        assert!(matches!(put, Ok(()) | Err(Error::DiskFull(_))), "{put:?}");
        // What needs no new page goes on.
        kept.put(&(n % 50).to_be_bytes(), &[2; 900], Durability::Synced).expect("a put");
        db.step().expect("a step");
    }
    db.checkpoint().expect("a checkpoint");
    assert_eq!(db.stats().halted, None);
    assert_sound(&db);
    volume.set_capacity(None);
    put_all(&db, &tree, 300).expect("there is room");
    db.checkpoint().expect("a checkpoint");
    assert_sound(&db);
    let found = volume.crash(3);
    drop((kept, tree, db));
    let db = Db::open_on(Arc::new(found), simulated()).expect("recovered");
    assert_sound(&db);
}

/// What is done until the disk crashes: how far it came.
fn history(db: &Db) -> Result<(), Error> {
    let gone = db.create_tree("gone")?;
    put_all(db, &gone, 60)?;
    gone.put(b"long", &[5; 30_000], Durability::Synced)?;
    db.checkpoint()?;
    drop(gone);
    db.drop_tree("gone")?;
    db.checkpoint()?;
    for _ in 0..12 {
        db.step()?;
    }
    // Into the holes, while a pass may be under way.
    let next = db.create_tree("next")?;
    for n in 0..40u32 {
        next.put(&n.to_be_bytes(), &[n as u8; 900], Durability::Synced)?;
        if n % 4 == 0 {
            db.step()?;
        }
    }
    db.checkpoint()?;
    db.drop_tree("next")?;
    db.checkpoint()?;
    for _ in 0..12 {
        db.step()?;
    }
    let last = db.create_tree("last")?;
    put_all(db, &last, 40)
}

/// The power fails at every write from the first tree on: the database is sound, and what was
/// synced is there, whichever holes and blocks were lost; and once more, after some work.
#[test]
fn a_crash_at_every_write_leaves_a_sound_database() {
    for is_encrypted in [false, true] {
        let config = || Config {
            page_size: 8192,
            encryption: is_encrypted.then(|| Encryption::new(Arc::new(TestKey([9; 32])))),
            ..simulated()
        };
        let volume = SimVolume::new(62);
        let db = Db::open_on(Arc::new(volume.clone()), config()).expect("made");
        let kept = db.create_tree("kept").expect("a tree");
        put_all(&db, &kept, 30).expect("rows");
        db.checkpoint().expect("a checkpoint");
        drop(kept);
        db.close().expect("closed");
        let start = volume.snapshot();
        let mut holes = 0;
        for steps in (0..).step_by(if is_encrypted { 7 } else { 1 }) {
            let volume = start.fork();
            let db = Db::open_on(Arc::new(volume.clone()), config()).expect("opened");
            volume.set_crash_after(Some(steps));
            let came = history(&db);
            holes = holes.max(given_back(&db));
            drop(db);
            let mode =
                [CrashMode::Random, CrashMode::KeepAll, CrashMode::LoseAll][steps as usize % 3];
            let found = volume.crash_with(mode, steps);
            let db = Db::open_on(Arc::new(found.clone()), config())
                .unwrap_or_else(|e| panic!("after {steps} steps, {mode:?}: {e}"));
            for _ in 0..6 {
                db.step().unwrap_or_else(|e| panic!("after {steps} steps, {mode:?}: {e}"));
            }
            assert_sound(&db);
            let kept = db.tree("kept").expect("read").expect("it is there");
            assert_rows(&kept, 30, 900);
            let more = db.open_tree("more").expect("a tree");
            put_all(&db, &more, 30).unwrap_or_else(|e| panic!("after {steps} steps: {e}"));
            drop((kept, more, db));
            let db = Db::open_on(Arc::new(found.crash(steps)), config())
                .unwrap_or_else(|e| panic!("again, after {steps} steps, {mode:?}: {e}"));
            assert_sound(&db);
            assert_rows(&db.tree("more").expect("read").expect("it is there"), 30, 900);
            if came.is_ok() {
                break;
            }
        }
        assert!(holes > 100_000, "{holes}");
    }
}

/// Drops and fills again, and looks into it after another opening: all goes on, and nothing goes
/// back.
fn without_holes(open: &dyn Fn(Config) -> Db, config: &Config) {
    let db = open(config.clone());
    let kept = load(&db, "kept", 500, 500);
    for round in 0..3 {
        let tree = load(&db, "gone", 2_000, 4_000);
        db.checkpoint().expect("a checkpoint");
        drop(tree);
        assert!(db.drop_tree("gone").expect("dropped"));
        let until = Instant::now() + Duration::from_secs(60);
        while db.is_giving_back() && Instant::now() < until {
            db.checkpoint().expect("a checkpoint");
            if config.background == Background::Manual {
                db.step().expect("a step");
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let seen = db.stats();
        assert!(!seen.gives_back && given_back(&db) == 0, "round {round}");
        assert!(!db.is_giving_back());
        // What is free is used again.
        assert!(seen.data_file_bytes < 14 << 20, "{} in round {round}", seen.data_file_bytes);
    }
    let again = load(&db, "again", 2_000, 4_000);
    assert_rows(&again, 2_000, 4_000);
    drop((again, kept));
    db.close().expect("closed");
    let db = open(config.clone());
    assert_rows(&db.tree("kept").expect("read").expect("it is there"), 500, 500);
    assert_rows(&db.tree("again").expect("read").expect("it is there"), 2_000, 4_000);
    assert_sound(&db);
    db.close().expect("closed");
}

#[test]
fn where_the_device_makes_no_holes_free_pages_are_used_again() {
    let below = SimVolume::new(9);
    let faulty = FaultyVolume::new(Arc::new(below));
    let id = faulty.fail_all("", OpKind::Punch, Fault::Unsupported);
    let config = Config { log_bytes: 4 << 20, ..simulated() };
    let open = |config| Db::open_on(Arc::new(faulty.clone()), config).expect("opened");
    without_holes(&open, &config);
    // Once for each opening at most: the second one may find nothing that is to go.
    assert!((1..=2).contains(&faulty.hits(id)), "it was tried {} times", faulty.hits(id));
}

/// In segments the end of the file is cut off, which needs no holes.
#[test]
fn segments_are_cut_off_without_holes() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let store = Some(weir::StoreKind::Log);
    let config = Config { store, pool_bytes: 4 << 20, log_bytes: 8 << 20, ..Config::default() };
    let db = Db::open(&ramfs.path().join("db"), config).expect("made");
    let tree = db.create_tree("gone").expect("a tree");
    let mut random = fastrand::Rng::with_seed(1);
    let mut row = |n: u32| (n.to_be_bytes(), (0..4_000).map(|_| random.u8(..)).collect());
    tree.bulk_load((0..12_000).map(|n| -> ([u8; 4], Vec<u8>) { row(n) })).expect("loaded");
    db.checkpoint().expect("a checkpoint");
    let full = db.stats().data_file_bytes;
    assert!(full > 45 << 20, "{full}");
    drop(tree);
    assert!(db.drop_tree("gone").expect("dropped"));
    let until = Instant::now() + Duration::from_secs(60);
    while db.stats().data_file_bytes > full / 3 * 2 && Instant::now() < until {
        db.checkpoint().expect("a checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
    let left = db.stats().data_file_bytes;
    assert!(left <= full / 3 * 2 && db.stats().gives_back, "{left} of {full}");
    assert_sound(&db);
    db.close().expect("closed");
}

/// A file system without `fallocate`, mounted as long as this lives.
struct Ramfs {
    scratch: tempfile::TempDir,
}

impl Ramfs {
    /// `None`, with words, where this user may not mount one.
    fn mount() -> Option<Ramfs> {
        let scratch = tempfile::tempdir().expect("a directory");
        let ran = Command::new("mount").args(["-t", "ramfs", "none"]).arg(scratch.path()).output();
        match ran {
            Ok(ran) if ran.status.success() => Some(Ramfs { scratch }),
            Ok(ran) => {
                eprintln!("skipped: mount says: {}", String::from_utf8_lossy(&ran.stderr).trim());
                None
            }
            Err(e) => {
                eprintln!("skipped: mount: {e}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.scratch.path()
    }
}

impl Drop for Ramfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

#[test]
fn a_file_system_without_holes_is_known_and_borne() {
    let Some(ramfs) = Ramfs::mount() else { return };
    assert_eq!(punches_holes(ramfs.path()), Some(false));
    let config = Config { pool_bytes: 4 << 20, log_bytes: 8 << 20, ..Config::default() };
    let open = |config| Db::open(&ramfs.path().join("db"), config).expect("opened");
    without_holes(&open, &config);
}
