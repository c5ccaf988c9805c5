//! What is written down of the log: after a crash it spares reading, and is never believed alone.
use std::sync::Arc;

use weir::{Background, Config, Db, Durability, Error, SimVolume, Volume};
use weir_device::CrashMode;

use crate::support::{Rows, assert_sound};

const FILE: &str = "contents";

fn config() -> Config {
    Config {
        pool_bytes: 4 << 20,
        log_bytes: 4 << 20,
        page_size: 4096,
        background: Background::Manual,
        contents_bytes: Some(20_000),
        ..Config::default()
    }
}

fn open(volume: &SimVolume) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), config())
}

fn rows(db: &Db) -> Result<Rows, Error> {
    let tree = db.tree("rows")?.expect("the tree");
    let (mut rows, mut cursor) = (Rows::new(), tree.cursor());
    let mut on = cursor.seek_first()?;
    while on {
        rows.insert(cursor.key().to_vec(), cursor.value()?.to_vec());
        on = cursor.next()?;
    }
    Ok(rows)
}

/// Work that differs by its salt, on a database that has `rows`; what is there then.
fn work(volume: &SimVolume, db: &Db, salt: u64, count: u64) -> (SimVolume, Rows) {
    let tree = db.tree("rows").expect("read").expect("the tree");
    while db.stats().losers > 0 {
        db.step().expect("rolled back");
    }
    // Under way from the first stretch to the crash: it must be found and rolled back.
    let mut open = db.begin(weir::TxnOptions::default());
    open.put(&tree, b"never", b"committed").expect("put");
    for n in 0..count {
        let key = ((n + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51).to_be_bytes();
        match n % 7 {
            // Early: what is left to do for them must be known while the snapshot is held.
            0 if n < count / 5 => drop(tree.delete(&key, Durability::Lazy).expect("a delete")),
            _ => tree.put(&key, &[n as u8 ^ salt as u8; 90], Durability::Lazy).expect("a put"),
        }
        if n % 50 == 0 {
            tree.put(b"synced", &n.to_be_bytes(), Durability::Synced).expect("a put");
            db.step().expect("a step");
        }
    }
    tree.put(b"last", &salt.to_be_bytes(), Durability::Synced).expect("a put");
    let before = rows(db).expect("read");
    // As a process leaves it that is killed: nothing of that file need be synced.
    let image = volume.crash_with(CrashMode::KeepAll, 0);
    drop(open);
    (image, before)
}

fn crashed(salt: u64) -> (SimVolume, Rows) {
    let volume = SimVolume::new(5);
    let db = open(&volume).expect("a database");
    db.create_tree("rows").expect("a tree");
    work(&volume, &db, salt, 9_000)
}

/// Opens it, looks at everything, and says how much of the log was read first, of how much.
fn look(image: &SimVolume, expected: &Rows, what: &str) -> (u64, u64) {
    let db = open(image).unwrap_or_else(|e| panic!("{what}: {e}"));
    let report = db.recovery_report().expect("there was something to do");
    while db.stats().losers > 0 {
        db.step().expect("rolled back");
    }
    let found = rows(&db).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(found == *expected, "{what}: {} rows, not {}", found.len(), expected.len());
    assert_sound(&db);
    (report.read_bytes, report.redo_bytes())
}

#[test]
fn only_the_end_of_the_log_is_read_before_the_database_is_open() {
    let (image, expected) = crashed(1);
    let (read, of) = look(&image.fork(), &expected, "with it");
    assert!(of > 1 << 20 && read < of / 8, "{read} of {of} bytes were read");
    let without = image.fork();
    without.remove(FILE).expect("remove");
    let (read, of) = look(&without, &expected, "without it");
    assert_eq!(read, of);
}

#[test]
fn it_goes_on_from_opening_to_opening() {
    let (mut image, _) = crashed(1);
    for salt in 2..6 {
        let db = open(&image).expect("recovery");
        let report = db.recovery_report().expect("there was something to do");
        let (read, of) = (report.read_bytes, report.redo_bytes());
        assert!(read < of / 4, "opening {salt}: {read} of {of} bytes were read");
        // Crashed again at once, with hardly anything written, and after some more work.
        let count = if salt % 2 == 0 { 100 } else { 3_000 };
        let (next, expected) = work(&image, &db, salt, count);
        look(&next.fork(), &expected, "after another crash");
        image = next;
    }
}

#[test]
fn a_flipped_byte_costs_nothing_but_time() {
    let (image, expected) = crashed(1);
    let bytes = image.read_raw(FILE).expect("the file");
    let used = bytes.iter().rposition(|&byte| byte != 0).expect("something");
    let mut spared = 0;
    for at in (0..used as u64).step_by(used / 60) {
        let flipped = image.fork();
        flipped.corrupt(FILE, at, 0x10).expect("a flip");
        let (read, of) = look(&flipped, &expected, &format!("byte {at}"));
        spared += u64::from(read < of);
    }
    assert!(spared > 20, "one stretch less is not all of them: {spared}");
}

#[test]
fn that_of_another_history_is_not_believed() {
    let volume = SimVolume::new(5);
    let db = open(&volume).expect("a database");
    let tree = db.create_tree("rows").expect("a tree");
    tree.put(b"common", b"past", Durability::Synced).expect("a put");
    let common = volume.crash_with(CrashMode::KeepAll, 0);
    // The same database twice, with as much work of the same shape at the same places of the log.
    let ends = [10, 11].map(|salt| {
        let volume = common.fork();
        let db = open(&volume).expect("recovery");
        work(&volume, &db, salt, 9_000)
    });
    let [(one, expected), (other, _)] = ends;
    let foreign = other.read_raw(FILE).expect("the file");
    assert_ne!(foreign, one.read_raw(FILE).expect("the file"));
    one.write_raw(FILE, &foreign).expect("written");
    look(&one, &expected, "with another's");
    // Neither is its own when it goes on there.
    let db = open(&one).expect("open");
    let (image, expected) = work(&one, &db, 12, 3_000);
    look(&image, &expected, "after more work");
}

#[test]
fn damage_in_what_was_not_read_is_reported() {
    let volume = SimVolume::new(5);
    let db = open(&volume).expect("a database");
    let tree = db.create_tree("rows").expect("a tree");
    let put = |tree: &weir::Tree, n: u64, value: u8| {
        tree.put(&(n % 1_500).to_be_bytes(), &[value; 200], Durability::Lazy).expect("a put");
    };
    (0..1_500).for_each(|n| put(&tree, n, 0));
    drop(tree);
    db.close().expect("closed");
    let db = open(&volume).expect("open");
    let tree = db.tree("rows").expect("read").expect("the tree");
    // From one end of the rows to the other: each page is changed in one part of the log.
    for n in 0..1_500 {
        (1..30).for_each(|value| put(&tree, n, value * 8));
        db.step().expect("a step");
    }
    tree.put(b"last", b"synced", Durability::Synced).expect("a put");
    let (expected, image) = (rows(&db).expect("read"), volume.crash_with(CrashMode::KeepAll, 0));
    let (mut opened, mut told) = (0, 0);
    let names = image.list().expect("a list").into_iter().filter(|name| name.starts_with("redo-"));
    for name in names {
        let damaged = image.fork();
        let at = image.read_raw(&name).expect("the file").len() as u64 / 2;
        damaged.corrupt(&name, at, 0x10).expect("a flip");
        let what = format!("{name} byte {at}");
        let Ok(db) = open(&damaged) else { continue };
        opened += u64::from(db.recovery_report().is_some_and(|r| r.read_bytes < r.redo_bytes()));
        match rows(&db) {
            Ok(found) => assert!(found == expected, "{what}: a wrong answer"),
            Err(e) => {
                assert!(matches!(e, Error::Damaged(_)), "{what}: {e:?}");
                assert!(e.to_string().contains("redo-"), "{what}: no place named: {e}");
                told += 1;
                // The rest can be read.
                let tree = db.tree("rows").expect("read").expect("the tree");
                let readable = expected.keys().filter(|key| tree.get(key).is_ok()).count();
                assert!(readable > expected.len() / 2, "{what}: only {readable} rows");
            }
        }
    }
    assert!(opened > 5 && told >= 3, "{opened} opened, {told} told");
}
