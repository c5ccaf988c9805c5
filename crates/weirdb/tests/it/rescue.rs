//! A damaged database opened to read what can be read of it ([`Config::force_recovery`]).
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weirdb::{Batch, Config, Db, Durability, Error, Notice, OpenError, TornPages, Tree};

use crate::config;

const ROWS: u32 = 2_000;

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(path).expect("listed").map(|file| file.expect("a file").path());
    files.map(|file| (file.clone(), fs::read(&file).expect("read"))).collect()
}

/// Opens it with a step, hands it to `then`, and sees that no file has changed.
fn opened(path: &Path, step: u8, then: impl FnOnce(Db)) {
    let before = files(path);
    let db = config().force_recovery(step).open(path).expect("opened");
    assert_eq!(db.recovery_remarks().is_empty(), step < 4, "{:?}", db.recovery_remarks());
    then(db);
    assert!(files(path) == before, "a file has changed with step {step}");
}

fn made(path: &Path) -> Db {
    let config = config().page_bytes(4096).torn_pages(TornPages::Ignore);
    let db = config.open(path).expect("opened");
    let tree = db.open_tree("t").expect("made");
    for n in 0..ROWS {
        tree.put(n.to_be_bytes(), [7; 100]).expect("put");
    }
    db
}

/// Rows that can be read, up, down, in a snapshot and one by one: the same; how many.
fn rows(db: &Db, tree: &Tree) -> u64 {
    let key = |row: Result<(weirdb::Slice, weirdb::Slice), Error>| {
        let (key, value) = row.expect("read");
        assert_eq!(value, [7; 100]);
        key.to_vec()
    };
    let up: Vec<_> = tree.iter().map(key).collect();
    assert!(up.is_sorted());
    let mut down: Vec<_> = tree.iter().rev().map(key).collect();
    down.reverse();
    assert!(up == down, "{} and {}", up.len(), down.len());
    assert!(up == db.read().iter(tree).map(key).collect::<Vec<_>>());
    assert_eq!(tree.len().expect("counted"), up.len() as u64);
    let mut read = 0;
    for n in 0..ROWS {
        match tree.get(n.to_be_bytes()) {
            Ok(Some(_)) => read += 1,
            Ok(None) => panic!("{n} seems not to be there"),
            Err(e) => assert!(matches!(e, Error::Damaged { .. }), "{e:?}"),
        }
    }
    assert_eq!(read, up.len() as u64);
    read
}

fn refuses(db: &Db, tree: &Tree, beside: &Path) {
    let read_only = |done: Result<(), Error>| {
        assert!(matches!(done, Err(Error::ReadOnly)), "{done:?}");
    };
    read_only(tree.put("k", "w"));
    read_only(tree.remove("k").map(drop));
    read_only(db.open_tree("u").map(drop));
    read_only(db.drop_tree("t").map(drop));
    read_only(db.write().put(tree, "k", "w"));
    read_only(db.set_cache_bytes(8 << 20));
    read_only(db.read().backup(beside.join("backup")).map(drop));
    let mut batch = Batch::new();
    batch.put(tree, "k", "w");
    read_only(db.apply(&batch));
    assert!(!beside.join("backup").exists());
}

#[test]
fn rows_that_cannot_be_read_are_passed_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    made(&path).close().expect("closed");
    for step in 1..=4 {
        opened(&path, step, |db| {
            let tree = db.open_tree("t").expect("there");
            assert_eq!(rows(&db, &tree), u64::from(ROWS));
            assert_eq!(db.stats().passed_over, 0);
            assert!(db.check(|_, _| ()).expect("checked").problems.is_empty());
        });
    }
    let mut bytes = fs::read(path.join("pages")).expect("read");
    for page in bytes.chunks_mut(4096).skip(12).step_by(4) {
        page[2000..2064].fill(0xa5);
    }
    fs::write(path.join("pages"), bytes).expect("written");
    opened(&path, 1, |db| {
        let met = Arc::new(AtomicU64::new(0));
        let counted = met.clone();
        db.on_notice(move |notice| {
            assert!(matches!(notice, Notice::PageLost(what) if what.contains("in 'pages'")));
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let tree = db.open_tree("t").expect("there");
        let read = rows(&db, &tree);
        assert!(read > 500 && read < u64::from(ROWS) - 50, "{read}");
        let (met, passed_over) = (met.load(Ordering::Relaxed), db.stats().passed_over);
        assert!(met > 5 && passed_over >= 4 * met, "{met}, {passed_over}");
        assert!(!db.check(|_, _| ()).expect("checked").problems.is_empty());
        refuses(&db, &tree, dir.path());
        db.close().expect("closed");
    });
    // Without it the first of them is an error.
    let db = config().read_only(true).open(&path).expect("opened");
    let tree = db.open_tree("t").expect("there");
    assert!(tree.iter().any(|row| matches!(row, Err(Error::Damaged { .. }))));
    assert!(db.recovery_remarks().is_empty() && db.stats().passed_over == 0);
}

#[test]
fn a_log_that_is_gone_is_done_without() {
    let dir = tempfile::tempdir().expect("a directory");
    let (made_at, path) = (dir.path().join("made"), dir.path().join("db"));
    let db = made(&made_at);
    db.checkpoint().expect("written");
    let tree = db.open_tree("t").expect("there");
    let mut batch = Batch::new();
    batch.put(&tree, "new", "row");
    db.apply_with(&batch, Durability::Synced).expect("durable");
    fs::create_dir(&path).expect("made");
    for (file, bytes) in files(&made_at) {
        let name = file.file_name().expect("a name").to_owned();
        if !name.to_string_lossy().starts_with("redo-") {
            fs::write(path.join(name), bytes).expect("written");
        }
    }
    db.close().expect("closed");
    for step in 0..=2 {
        let e = config().force_recovery(step).open(&path).expect_err("refused");
        assert!(matches!(e, OpenError::Damaged { .. }), "{step}: {e:?}");
    }
    for step in [3, 4] {
        let db = config().force_recovery(step).open(&path).expect("opened");
        assert!(db.recovery_remarks()[0].contains("the log is"), "{:?}", db.recovery_remarks());
        let tree = db.open_tree("t").expect("there");
        assert_eq!(rows(&db, &tree), u64::from(ROWS));
    }
    let e = Config::new().force_recovery(5).open(&path).expect_err("refused");
    assert!(matches!(&e, OpenError::Config(why) if why.contains("the last is 4")), "{e:?}");
}
