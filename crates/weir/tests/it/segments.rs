//! Databases whose pages lie in segments: chosen when they are made, told from their files, copied
//! from one kind to the other; room that comes back, and a disk that is full.
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::{
    Background, Config, CopyOptions, Create, Db, Durability, Error, ManualClock, SimVolume,
    StoreKind, TxnOptions, Volume,
};
use weir_device::{FaultyVolume, OpKind};

use crate::support::{assert_sound, assert_whole, open, populated, populated_in, tiny};

fn open_as(volume: &SimVolume, config: Config) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), config)
}

fn in_segments() -> Config {
    Config { store: Some(StoreKind::Log), pages_max: 1 << 16, ..tiny() }
}

fn to(store: StoreKind) -> CopyOptions {
    CopyOptions { store: Some(store), ..CopyOptions::default() }
}

/// A row that does not pack.
fn row(n: u32, round: u32, bytes: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(u64::from(n) << 32 | u64::from(round));
    (0..bytes).map(|_| dice.u8(..)).collect()
}

#[test]
fn a_database_keeps_the_store_that_it_was_made_with() {
    for (made, other) in
        [(StoreKind::Log, StoreKind::InPlace), (StoreKind::InPlace, StoreKind::Log)]
    {
        let volume = SimVolume::new(1);
        let (db, model) = populated_in(&volume, made);
        assert_eq!(db.stats().store, made);
        assert_eq!(db.stats().segments.is_some(), made == StoreKind::Log);
        db.close().expect("closed");
        let asked = Config { store: Some(other), ..tiny() };
        let refused = open_as(&volume.snapshot(), asked).map(drop).expect_err("another store");
        assert!(matches!(refused, Error::Config(_)), "{refused:?}");
        assert!(refused.to_string().contains("chosen at creation"), "{refused}");
        for store in [None, Some(made)] {
            let db = open_as(&volume.snapshot(), Config { store, ..tiny() }).expect("opened");
            assert_eq!(db.stats().store, made);
            assert_whole(&db, &model);
            assert_sound(&db);
        }
    }
}

#[test]
fn two_data_files_or_none_are_refused() {
    let volume = SimVolume::new(2);
    let (db, _) = populated_in(&volume, StoreKind::Log);
    db.close().expect("closed");
    let both = volume.snapshot();
    both.create("pages", 4096).expect("a file");
    let told = open(&both).map(drop).expect_err("two data files");
    assert!(matches!(told, Error::Damaged(_)) && told.to_string().contains("'pages'"), "{told}");
    for lost in ["segments", "segments.root"] {
        let without = volume.snapshot();
        without.remove(lost).expect("removed");
        let told = open(&without).map(drop).expect_err("a file is missing");
        assert!(told.to_string().contains("pages") || told.to_string().contains(lost), "{told}");
    }
}

#[test]
fn a_copy_may_have_the_other_store() {
    let (dirs, volume) = (tempfile::tempdir().expect("a directory"), SimVolume::new(3));
    let (db, model) = populated(&volume);
    let there = dirs.path().join("log");
    let mut txn = db.begin(TxnOptions::default());
    db.copy_to_as(&mut txn, &there, &to(StoreKind::Log)).expect("copied");
    drop(txn);
    let config = Config { create: Create::Never, background: Background::Threads, ..tiny() };
    let log = Db::open(&there, config.clone()).expect("the copy");
    assert_eq!(log.stats().store, StoreKind::Log);
    assert_whole(&log, &model);
    assert_sound(&log);
    let back = dirs.path().join("back");
    let mut txn = log.begin(TxnOptions::default());
    log.copy_to(&mut txn, &dirs.path().join("same")).expect("copied");
    log.copy_to_as(&mut txn, &back, &to(StoreKind::InPlace)).expect("copied back");
    drop(txn);
    log.close().expect("closed");
    for (name, store) in [("same", StoreKind::Log), ("back", StoreKind::InPlace)] {
        let db = Db::open(&dirs.path().join(name), config.clone()).expect("the other copy");
        assert_eq!(db.stats().store, store);
        assert_whole(&db, &model);
        assert_sound(&db);
    }
}

#[test]
fn a_dropped_tree_gives_its_room_back_whatever_end_comes() {
    for is_crashed in [false, true] {
        let volume = SimVolume::new(4);
        let db = open_as(&volume, in_segments()).expect("made");
        for name in ["kept", "dropped"] {
            let tree = db.create_tree(name).expect("a tree");
            for n in 0..400u32 {
                tree.put(&n.to_be_bytes(), &row(n, 0, 900), Durability::Written).expect("a put");
            }
        }
        db.checkpoint().expect("a checkpoint");
        let live = |db: &Db| db.stats().segments.expect("segments").live_bytes;
        let before = live(&db);
        assert!(before > 700 << 10, "{before}");
        assert!(db.drop_tree("dropped").expect("dropped"));
        let mut db = db;
        if is_crashed {
            let found = volume.snapshot();
            drop(db);
            db = open_as(&found, in_segments()).expect("recovered");
        }
        for _ in 0..200 {
            db.step().expect("a step");
            db.checkpoint().expect("a checkpoint");
        }
        let after = live(&db);
        assert!(after < before * 6 / 10, "crashed {is_crashed}: {before} bytes, then {after}");
        assert_sound(&db);
        let kept = db.tree("kept").expect("read").expect("the tree");
        assert_eq!(kept.get(&7u32.to_be_bytes()).expect("read"), Some(row(7, 0, 900)));
    }
}

#[test]
fn the_file_is_smaller_after_a_large_tree_is_dropped() {
    let volume = SimVolume::new(8);
    let clock = Arc::new(ManualClock::default());
    let open = || Db::open_with_clock(Arc::new(volume.clone()), in_segments(), clock.clone());
    let db = open().expect("made");
    for (name, rows) in [("kept", 400u32), ("dropped", 26_000)] {
        let tree = db.create_tree(name).expect("a tree");
        for n in 0..rows {
            tree.put(&n.to_be_bytes(), &row(n, 0, 900), Durability::Written).expect("a put");
        }
    }
    db.checkpoint().expect("a checkpoint");
    let bytes = |db: &Db| db.stats().segments.expect("segments").bytes;
    let before = bytes(&db);
    assert!(db.drop_tree("dropped").expect("dropped"));
    for _ in 0..2_000 {
        clock.advance(50_000);
        db.step().expect("a step");
    }
    db.checkpoint().expect("a checkpoint");
    for _ in 0..2_000 {
        clock.advance(50_000);
        db.step().expect("a step");
    }
    let after = bytes(&db);
    assert!(after < before / 2, "{before} bytes, then {after}");
    assert_eq!(volume.open("segments").expect("the file").len(), after);
    assert_sound(&db);
    db.close().expect("closed");
    let db = open().expect("opened");
    assert_sound(&db);
    let kept = db.tree("kept").expect("read").expect("the tree");
    for n in 0..400u32 {
        assert_eq!(kept.get(&n.to_be_bytes()).expect("read"), Some(row(n, 0, 900)));
    }
}

#[test]
fn a_full_disk_refuses_changes_and_does_all_else() {
    let volume = SimVolume::new(5);
    let db = open_as(&volume, in_segments()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"first", b"row", Durability::Synced).expect("a put");
    let used = |volume: &SimVolume| -> u64 {
        let names = volume.list().expect("a list");
        names.iter().map(|name| volume.read_raw(name).expect("a file").len() as u64).sum()
    };
    volume.set_capacity(Some(used(&volume) + (2 << 20)));
    let mut txn = db.begin(TxnOptions::default());
    let mut written = 0u32;
    let refused = loop {
        assert!(written < 40_000, "the disk was never full");
        let put = tree.put(&written.to_be_bytes(), &row(written, 1, 900), Durability::Written);
        if let Err(e) = put {
            break e;
        }
        if written < 50 {
            txn.put(&tree, format!("open {written}").as_bytes(), &row(written, 2, 400))
                .expect("a change");
        }
        written += 1;
    };
    assert!(matches!(refused, Error::DiskFull(_)), "{refused:?}");
    assert!(written > 1_500, "{written}");
    assert_eq!(db.stats().halted, None);
    // Reading, rolling back, checkpoints, closing and opening go on.
    assert_eq!(tree.get(b"first").expect("read"), Some(b"row".to_vec()));
    txn.rollback().expect("rolled back");
    db.checkpoint().expect("a checkpoint");
    let found = volume.snapshot();
    drop((tree, db));
    for volume in [volume, found] {
        let db = open_as(&volume, in_segments()).expect("opened on a full disk");
        assert_sound(&db);
        let tree = db.tree("t").expect("read").expect("the tree");
        for n in (0..written).step_by(97) {
            assert_eq!(tree.get(&n.to_be_bytes()).expect("read"), Some(row(n, 1, 900)), "{n}");
        }
        assert_eq!(tree.get(b"open 7").expect("read"), None);
        volume.set_capacity(None);
        tree.put(b"last", &row(1, 1, 900), Durability::Synced).expect("there is room again");
    }
}

#[test]
fn a_failed_write_or_sync_of_segments_halts_and_loses_nothing() {
    for (name, op) in [
        ("segments", OpKind::Write),
        ("segments", OpKind::Sync),
        ("segments.root", OpKind::Write),
        ("segments.root", OpKind::Sync),
    ] {
        let sim = SimVolume::new(6);
        let volume = FaultyVolume::new(Arc::new(sim.clone()));
        let db = Db::open_on(Arc::new(volume.clone()), in_segments()).expect("made");
        let tree = db.create_tree("t").expect("a tree");
        let rule = volume.fail_nth(name, op, 2, weir_device::Fault::Broken);
        let mut acknowledged = 0u32;
        for n in 0..6_000u32 {
            if tree.put(&n.to_be_bytes(), &row(n, 0, 900), Durability::Synced).is_err() {
                break;
            }
            acknowledged = n + 1;
            if n % 500 == 499 && db.checkpoint().is_err() {
                break;
            }
        }
        assert!(volume.hits(rule) > 0, "{name} {op:?}");
        assert!(db.stats().halted.is_some(), "{name} {op:?} after {acknowledged}");
        let found = sim.crash(7);
        drop((tree, db));
        let db = open_as(&found, in_segments()).expect("recovered");
        assert_sound(&db);
        let tree = db.tree("t").expect("read").expect("the tree");
        for n in 0..acknowledged {
            let found = tree.get(&n.to_be_bytes()).expect("read");
            assert_eq!(found, Some(row(n, 0, 900)), "{name} {op:?}: {n}");
        }
    }
}

#[test]
fn segments_are_cleaned_by_a_thread_while_rows_change() {
    let volume = SimVolume::new(8);
    let config = Config {
        background: Background::Threads,
        log_bytes: 2 << 20,
        pool_bytes: 2 << 20,
        ..in_segments()
    };
    let db = open_as(&volume, config).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let (rows, began) = (4_000u32, Instant::now());
    let mut dice = fastrand::Rng::with_seed(9);
    let mut last = vec![0u32; rows as usize];
    let mut round = 0;
    let copied = || db.stats().segments.expect("segments").pages_copied;
    while copied() < 500 && began.elapsed() < Duration::from_secs(60) || round < 20_000 {
        round += 1;
        let n = dice.u32(..rows);
        last[n as usize] = round;
        tree.put(&n.to_be_bytes(), &row(n, round, 700), Durability::Written).expect("a put");
    }
    let look = db.stats().segments.expect("segments");
    assert!(look.pages_copied >= 500, "{look:?}");
    assert!(look.bytes < 64 << 20, "{look:?}");
    assert_sound(&db);
    for (n, &round) in (0..).zip(&last).filter(|(_, round)| **round > 0) {
        assert_eq!(tree.get(&u32::to_be_bytes(n)).expect("read"), Some(row(n, round, 700)));
    }
}

/// A row that packs to about a fifth.
fn soft_row(n: u32, round: u32) -> Vec<u8> {
    let mut bytes = row(n, round, 100);
    bytes.resize(700, n as u8);
    bytes
}

/// Pages that are changed take more room, as if they could not be packed, than the disk has. They
/// are written sooner then, and writers wait for that.
#[test]
fn a_full_disk_that_page_writes_make_room_on_slows_writers_down() {
    for background in [Background::Threads, Background::Manual] {
        let volume = SimVolume::new(9);
        let config =
            Config { background, log_bytes: 64 << 20, pool_bytes: 64 << 20, ..in_segments() };
        let db = open_as(&volume, config).expect("made");
        let tree = db.create_tree("t").expect("a tree");
        let rows = 30_000u32;
        for n in 0..rows {
            tree.put(&n.to_be_bytes(), &soft_row(n, 0), Durability::Written).expect("a put");
            if n % 500 == 0 {
                db.checkpoint().expect("a checkpoint");
            }
        }
        db.checkpoint().expect("a checkpoint");
        volume.set_capacity(Some(0));
        let bytes = || db.stats().segments.expect("segments").bytes;
        let before = bytes();
        let mut dice = fastrand::Rng::with_seed(10);
        let mut last = vec![0u32; rows as usize];
        for round in 1..60_000 {
            let n = dice.u32(..rows);
            last[n as usize] = round;
            let put = tree.put(&n.to_be_bytes(), &soft_row(n, round), Durability::Written);
            put.unwrap_or_else(|e| panic!("{background:?}, {round}: {e}"));
        }
        let dirty_all = u64::from(rows) * 700;
        assert!(before < dirty_all, "{before} bytes hold what is dirty");
        assert_eq!(bytes(), before);
        assert_sound(&db);
        for (n, &round) in (0..).zip(&last) {
            let found = tree.get(&u32::to_be_bytes(n)).expect("read");
            assert_eq!(found, Some(soft_row(n, round)), "{background:?}, {n}");
        }
        // What really takes more than there is, is refused, and soon.
        let began = Instant::now();
        let refused = (0..100_000u32).find_map(|n| {
            tree.put(format!("more {n}").as_bytes(), &row(n, 1, 900), Durability::Written).err()
        });
        assert!(matches!(refused, Some(Error::DiskFull(_))), "{background:?}: {refused:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
