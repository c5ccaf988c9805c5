//! Devices that are full, or that fail.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::{
    Background, Config, Db, DoubleWriteConfig, DoubleWriteMode, Durability, Error, FaultyVolume,
    SimVolume, Tree, TxnOptions, Volume,
};
use weir_device::{CrashMode, Fault, OpKind, Outcome, Rule, When};

use crate::support::{assert_sound, open, tiny};

type Written = BTreeMap<Vec<u8>, Vec<u8>>;

/// Puts rows until an error; those before it are acknowledged and in `written`.
fn write_until_error(tree: &Tree, written: &mut Written, durability: Durability) -> Option<Error> {
    for i in 0..1_500u32 {
        let key = (i % 300).to_be_bytes().to_vec();
        let value = vec![i as u8; if i % 50 == 0 { 9_000 } else { 300 }];
        match tree.put(&key, &value, durability) {
            Ok(()) => drop(written.insert(key, value)),
            Err(e) => return Some(e),
        }
    }
    None
}

/// All acknowledged rows are there, but `last`, the one under way, which may be old or new.
fn assert_there(tree: &Tree, written: &Written, last: Option<&[u8]>) {
    for (key, value) in written {
        if last != Some(key) {
            assert!(tree.get(key).expect("a get").as_ref() == Some(value), "{key:?}");
        }
    }
}

#[test]
fn a_full_disk_stops_writers_until_there_is_room() {
    for background in [Background::Manual, Background::Threads] {
        let volume = SimVolume::new(5);
        let config = || Config { background, pages_max: 1 << 16, ..tiny() };
        let db = Db::open_on(Arc::new(volume.clone()), config()).expect("made");
        let tree = db.create_tree("t").expect("a tree");
        let mut written = Written::new();
        for i in 0..100u32 {
            tree.put(&i.to_be_bytes(), &[1; 300], Durability::Synced).expect("a put");
            written.insert(i.to_be_bytes().to_vec(), vec![1; 300]);
        }
        let used: u64 = volume.list().expect("a list").iter().map(|n| len(&volume, n)).sum();
        volume.set_capacity(Some(used + 40_000));
        let mut error = None;
        for i in 0..2_000u32 {
            let key = (1_000 + i).to_be_bytes().to_vec();
            match tree.put(&key, &[2; 2_000], Durability::Written) {
                Ok(()) => drop(written.insert(key, vec![2; 2_000])),
                Err(e) => {
                    error = Some((key, e));
                    break;
                }
            }
        }
        let (key, error) = error.expect("the disk is full");
        assert!(matches!(error, Error::DiskFull(_)), "{background:?}: {error:?}");
        assert!(db.stats().halted.is_none(), "{:?}", db.stats().halted);
        assert_eq!(tree.get(&key).expect("a get"), None, "nothing was changed");
        assert_there(&tree, &written, None);
        // Again and again, and batches and long values too: each is refused or done.
        for _ in 0..20 {
            let refused = tree.put(&key, &[3; 30_000], Durability::Written);
            assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
        }
        // What needs no new page goes on: rows are overwritten, the log turns over.
        for round in 0..30u8 {
            for i in 0..100u32 {
                tree.put(&i.to_be_bytes(), &[round; 300], Durability::Written).expect("a put");
                written.insert(i.to_be_bytes().to_vec(), vec![round; 300]);
            }
        }
        assert_there(&tree, &written, None);
        volume.set_capacity(None);
        tree.put(&key, &[3; 30_000], Durability::Synced).expect("there is room");
        written.insert(key, vec![3; 30_000]);
        assert_there(&tree, &written, None);
        assert_sound(&db);
        let found = volume.crash(1);
        drop((tree, db));
        let db = Db::open_on(Arc::new(found), config()).expect("recovered");
        assert_sound(&db);
        let tree = db.tree("t").expect("read").expect("the tree");
        assert_there(&tree, &written, None);
    }
}

fn len(volume: &SimVolume, name: &str) -> u64 {
    volume.open(name).expect("a file").len()
}

#[test]
fn a_disk_that_is_full_for_the_log_alone() {
    let inner = SimVolume::new(6);
    let volume = FaultyVolume::new(Arc::new(inner.clone()));
    let db = Db::open_on(Arc::new(volume.clone()), tiny()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let mut written = Written::new();
    volume.full_disk(true);
    db.set_log_bytes(2 << 20).expect("in force when there is room");
    for round in 0..40u8 {
        for i in 0..60u32 {
            // Few rows: the tree does not grow, the log turns over with the files that it has.
            let key = (i % 8).to_be_bytes().to_vec();
            let value = vec![round.wrapping_add(i as u8); 400];
            tree.put(&key, &value, Durability::Written).expect("a put");
            written.insert(key, value);
        }
    }
    assert!(db.stats().halted.is_none());
    volume.full_disk(false);
    for _ in 0..100 {
        db.step().expect("a step");
    }
    assert_there(&tree, &written, None);
    let found = inner.crash(2);
    drop((tree, db));
    let db = open(&found).expect("recovered");
    assert_sound(&db);
}

#[test]
fn a_log_that_is_shrunk_on_a_full_disk() {
    let inner = SimVolume::new(9);
    let volume = FaultyVolume::new(Arc::new(inner.clone()));
    let config = Config { log_bytes: 16 << 20, pages_max: 1 << 12, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let mut written = Written::new();
    let mut turn_over = |puts: u32| {
        for n in 0..puts {
            let key = (n % 100).to_be_bytes().to_vec();
            let value = vec![n as u8; 1_000];
            tree.put(&key, &value, Durability::Written).expect("a put");
            written.insert(key, value);
        }
    };
    turn_over(8_000);
    volume.full_disk(true);
    db.set_log_bytes(640 << 10).expect("shrunk");
    turn_over(40_000);
    let limit = db.stats().checkpoint_age_limit_bytes;
    assert!(limit > 400 << 10, "the large files have room, but {limit} bytes are allowed");
    volume.full_disk(false);
    turn_over(4_000);
    let files = inner.list().expect("a list");
    let redo: u64 = files.iter().filter(|n| n.starts_with("redo-")).map(|n| len(&inner, n)).sum();
    assert!(redo <= 640 << 10, "{redo}");
    assert!(db.stats().halted.is_none());
    tree.put(b"last", b"", Durability::Synced).expect("a put");
    let found = inner.crash(3);
    drop((tree, db));
    let db = open(&found).expect("recovered");
    assert_sound(&db);
    assert_there(&db.tree("t").expect("read").expect("the tree"), &written, None);
}

#[test]
fn a_log_file_that_cannot_be_opened_halts_nothing() {
    for background in [Background::Manual, Background::Threads] {
        let volume = FaultyVolume::new(Arc::new(SimVolume::new(10)));
        let config = Config { background, ..tiny() };
        let db = Db::open_on(Arc::new(volume.clone()), config).expect("made");
        let tree = db.create_tree("t").expect("a tree");
        let before = db.stats().checkpoint_age_limit_bytes;
        // As with too many open files: no lack of space.
        let refused = volume.fail_all("redo-", OpKind::Create, Fault::Broken);
        db.set_log_bytes(2 << 20).expect("in force when a file can be had");
        let turn_over = || {
            for n in 0..4_000u32 {
                tree.put(&(n % 100).to_be_bytes(), &[n as u8; 400], Durability::Written)?;
            }
            Ok::<_, Error>(())
        };
        turn_over().expect("the log goes on with the files that it has");
        assert!(volume.hits(refused) > 0);
        assert_eq!(db.stats().halted, None, "{background:?}");
        assert!(db.stats().checkpoint_age_limit_bytes <= before);
        volume.clear();
        let is_raised = (0..50).any(|_| {
            turn_over().expect("files can be had again");
            db.stats().checkpoint_age_limit_bytes > 2 * before
        });
        assert!(is_raised, "{background:?}");
        assert_sound(&db);
    }
}

#[test]
fn a_disk_too_full_for_a_new_database() {
    let mut refused = 0;
    for capacity in (0..4 << 20).step_by(36 << 10) {
        let volume = SimVolume::with_capacity(0, capacity);
        match open(&volume) {
            Ok(db) => {
                assert!(refused >= 5, "{refused}");
                assert_sound(&db);
                return;
            }
            Err(e) => {
                assert!(matches!(e, Error::DiskFull(_)), "{capacity}: {e:?}");
                assert_eq!(volume.list().expect("a list"), Vec::<String>::new());
                volume.set_capacity(None);
                drop(open(&volume).expect("there is room now"));
                refused += 1;
            }
        }
    }
    panic!("4 MiB do not do");
}

const FILES: [&str; 4] = ["pages", "redo-", "doublewrite-", "control"];

fn rule(name: &str, op: OpKind, nth: u64, outcome: Outcome) -> Rule {
    Rule { name_prefix: name.into(), op, when: When::Nth(nth), outcome }
}

/// One device failure while rows are written: the engine halts, what is in memory is read on, and
/// after reopening every acknowledged row is there. Returns whether the failure came to pass.
fn fails_once(rule: Rule, background: Background) -> bool {
    let told = format!("{rule:?}, {background:?}");
    let inner = SimVolume::new(7);
    let volume = FaultyVolume::new(Arc::new(inner.clone()));
    let config = || Config { background, pages_max: 1 << 12, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"first", b"row", Durability::Synced).expect("a put");
    let rule = volume.add(rule);
    let mut written = Written::new();
    let error = write_until_error(&tree, &mut written, Durability::Synced);
    if volume.hits(rule) == 0 {
        assert!(error.is_none(), "{told}: {error:?}");
        return false;
    }
    let error = error.unwrap_or_else(|| panic!("{told}: no error came"));
    assert!(matches!(error, Error::Io { .. } | Error::Halted(_)), "{told}: {error:?}");
    for _ in 0..200 {
        // With threads, the one that met the failure may be about to say so.
        if db.stats().halted.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(db.stats().halted.is_some(), "{told}: not halted after {error:?}");
    let refused = tree.put(b"more", b"v", Durability::Synced);
    assert!(matches!(refused, Err(Error::Halted(_))), "{told}: {refused:?}");
    let refused = tree.put(b"more", b"v", Durability::Lazy);
    assert!(matches!(refused, Err(Error::Halted(_))), "{told}: {refused:?}");
    assert!(matches!(db.create_tree("u"), Err(Error::Halted(_))), "{told}");
    // The root and the row's leaf are in memory, or come from a device that reads well.
    let last = written.keys().next_back().cloned().unwrap_or_default();
    let _got = tree.get(&last).unwrap_or_else(|e| panic!("{told}: {e}"));
    assert_eq!(tree.get(b"first").expect("a get").as_deref(), Some(&b"row"[..]), "{told}");
    let under_way = last_key(&written, &tree);
    for mode in [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random] {
        let found = inner.crash_with(mode, 3);
        let db = Db::open_on(Arc::new(found), config());
        let db = db.unwrap_or_else(|e| panic!("{told}, {mode:?}: {e}"));
        assert_sound(&db);
        let tree = db.tree("t").expect("read").expect("the tree");
        assert_there(&tree, &written, under_way.as_deref());
    }
    true
}

/// The row that was being written when the error came: it may be there or not.
fn last_key(written: &Written, tree: &Tree) -> Option<Vec<u8>> {
    written
        .iter()
        .find(|(key, value)| tree.get(key).ok().flatten().as_ref() != Some(value))
        .map(|(key, _)| key.clone())
}

#[test]
fn a_failed_write_or_sync_of_any_file_halts_and_loses_nothing() {
    let mut hits = 0;
    for background in [Background::Manual, Background::Threads] {
        for name in FILES {
            for op in [OpKind::Write, OpKind::DurableWrite, OpKind::Sync] {
                for nth in [1, 2, 7] {
                    let broken = rule(name, op, nth, Outcome::Error(Fault::Broken));
                    hits += u32::from(fails_once(broken, background));
                }
            }
        }
    }
    assert!(hits >= 24, "only {hits} failures came to pass");
}

#[test]
fn a_short_write_of_any_file_halts_and_loses_nothing() {
    let mut hits = 0;
    for name in FILES {
        for op in [OpKind::Write, OpKind::DurableWrite] {
            for bytes in [1, 512, 4096, 5000] {
                let short = Outcome::ShortWrite { bytes, then: Fault::Broken };
                hits += u32::from(fails_once(rule(name, op, 3, short), Background::Manual));
            }
        }
    }
    assert!(hits >= 12, "only {hits} failures came to pass");
}

#[test]
fn a_page_that_cannot_be_read_is_an_error_and_nothing_else() {
    let inner = SimVolume::new(9);
    let volume = FaultyVolume::new(Arc::new(inner));
    let config = || Config { pages_max: 1 << 12, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    for i in 0..600u32 {
        tree.put(&i.to_be_bytes(), &[5; 800], Durability::Lazy).expect("a put");
    }
    let broken = volume.fail_all("pages", OpKind::Read, Fault::Broken);
    let mut failed = 0;
    for i in 0..600u32 {
        match tree.get(&i.to_be_bytes()) {
            Ok(found) => assert_eq!(found, Some(vec![5; 800])),
            Err(Error::Io { what, .. }) => {
                assert!(what.contains("page"), "{what}");
                failed += 1;
            }
            Err(e) => panic!("{e:?}"),
        }
    }
    assert!(failed > 0 && volume.hits(broken) > 0, "the pool holds everything");
    volume.clear();
    for i in 0..600u32 {
        assert_eq!(tree.get(&i.to_be_bytes()).expect("a get"), Some(vec![5; 800]));
    }
    tree.put(b"k", b"v", Durability::Synced).expect("reading badly is no reason to halt");
    assert_sound(&db);
}

/// The copies of an opening with a doublewrite area are not to be used once another without has
/// written the pages again: they are old.
#[test]
fn copies_do_not_outlive_their_pages() {
    let (with, without) = (DoubleWriteMode::On, DoubleWriteMode::Off);
    let volume = SimVolume::new(11);
    let in_mode = |volume: &SimVolume, mode| {
        let doublewrite = DoubleWriteConfig { mode, files: 1, pages: 8 };
        Db::open_on(Arc::new(volume.clone()), Config { doublewrite, ..tiny() })
    };
    for (mode, byte) in [(with, 1), (without, 2)] {
        let db = in_mode(&volume, mode).expect("opened");
        let tree = db.open_tree("t").expect("the tree");
        for i in 0..20u32 {
            tree.put(&i.to_be_bytes(), &[byte; 300], Durability::Synced).expect("a put");
        }
        drop(tree);
        db.close().expect("closed");
    }
    let mut damaged = 0;
    for page in 1..5 {
        let found = volume.snapshot();
        found.corrupt("pages", page * 4096 + 2000, 1).expect("a flip");
        let db = match in_mode(&found, with) {
            Ok(db) => db,
            Err(e) => {
                assert!(matches!(e, Error::Damaged(_)), "{e:?}");
                damaged += 1;
                continue;
            }
        };
        let Ok(Some(tree)) = db.tree("t") else {
            damaged += 1;
            continue;
        };
        for i in 0..20u32 {
            match tree.get(&i.to_be_bytes()) {
                Ok(found) => assert_eq!(found, Some(vec![2; 300]), "page {page}"),
                Err(e) => {
                    assert!(matches!(e, Error::Damaged(_)), "{e:?}");
                    damaged += 1;
                }
            }
        }
    }
    assert!(damaged > 0, "no page that is in use was hit");
}

/// Pages of what a session has changed cannot be read when it goes away: its rows are free again
/// once the device is well, without another opening.
#[test]
fn a_rollback_that_fails_is_gone_on_with_in_the_background() {
    for (background, is_reported) in [(Background::Manual, true), (Background::Threads, false)] {
        let volume = FaultyVolume::new(Arc::new(SimVolume::new(8)));
        let config = Config { background, pages_max: 1 << 16, ..tiny() };
        let db = Db::open_on(Arc::new(volume.clone()), config).expect("made");
        let (tree, other) = (db.create_tree("t"), db.create_tree("other"));
        let (tree, other) = (tree.expect("a tree"), other.expect("a tree"));
        // Each several times what memory holds.
        for i in 0..1_000u32 {
            tree.put(&i.to_be_bytes(), &[1; 800], Durability::Written).expect("a put");
        }
        let (mut txn, key) = (db.begin(TxnOptions::default()), 500u32.to_be_bytes());
        txn.put(&tree, &key, &[2; 800]).expect("a put");
        for i in 0..1_000u32 {
            other.put(&i.to_be_bytes(), &[3; 800], Durability::Written).expect("a put");
        }
        let fault = volume.fail_all("pages", OpKind::Read, Fault::Broken);
        if is_reported {
            let told = txn.rollback();
            assert!(matches!(told, Err(Error::Io { .. })), "{told:?}");
        } else {
            drop(txn);
        }
        let stats = db.stats();
        assert_eq!((stats.losers, stats.halted), (1, None));
        volume.remove_rule(fault);
        let until = Instant::now() + Duration::from_secs(60);
        while db.stats().losers > 0 {
            assert!(Instant::now() < until, "it is not rolled back");
            match background {
                Background::Manual => db.step().expect("a step"),
                Background::Threads => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        assert_eq!(tree.get(&key).expect("a get").as_deref(), Some(&[1; 800][..]));
        tree.put(&key, &[4; 300], Durability::Synced).expect("not locked");
        assert_sound(&db);
    }
}
