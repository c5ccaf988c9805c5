//! What is reported when something fails: the right variant, with what it promises.
use std::error::Error as StdError;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};

use weirdb::{Config, Create, Db, Error, Isolation, OpenError, TornPages, TxnOptions};

use crate::{config, new};

#[test]
fn a_second_opening_names_the_process_that_has_it_open() {
    let (dir, db) = new();
    let path = dir.path().join("db");
    for read_only in [false, true] {
        let refused = config().read_only(read_only).open(&path).expect_err("it is open");
        let OpenError::DatabaseLocked { dir, pid, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!((dir, *pid), (&path, Some(std::process::id())));
        assert!(refused.to_string().contains("is open already, by this process"), "{refused}");
    }
    db.close().expect("closed");
    config().open(&path).expect("free again");
}

#[test]
fn what_cannot_be_opened_says_why_and_stays_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "not a directory").expect("written");
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).expect("made");
    fs::write(foreign.join("letter"), "dear").expect("written");
    let missing = dir.path().join("missing");
    let (_keep, there) = (0, dir.path().join("there"));
    config().open(&there).expect("made").close().expect("closed");
    let refused = [
        (config(), &file),
        (config(), &foreign),
        (config().create(Create::Never), &missing),
        (config().create(Create::Always), &there),
        (config().read_only(true), &missing),
    ];
    for (config, path) in refused {
        let e = config.open(path).expect_err("refused");
        assert!(matches!(&e, OpenError::Directory { dir, .. } if dir == path), "{e:?}");
    }
    assert!(!missing.exists());
    assert_eq!(fs::read_to_string(&file).expect("read"), "not a directory");
    assert_eq!(fs::read_to_string(foreign.join("letter")).expect("read"), "dear");
    // Below a file there can be no directory.
    let e = config().open(file.join("below")).expect_err("refused");
    assert!(matches!(e, OpenError::Io { .. } | OpenError::Directory { .. }), "{e:?}");
}

#[test]
fn settings_that_are_not_possible_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let wrong = [
        Config::new().cache_bytes(0),
        Config::new().cache_bytes(1000),
        Config::new().log_bytes(0),
        Config::new().log_bytes(1),
        Config::new().log_bytes(u64::MAX),
        Config::new().page_bytes(0),
        Config::new().page_bytes(5000),
        Config::new().page_bytes(usize::MAX),
        Config::new().pages_max(0),
        Config::new().recovery_threads(0),
    ];
    for config in wrong {
        let e = config.open(&path).expect_err("refused");
        assert!(matches!(e, OpenError::Config(_)), "{config:?}: {e:?}");
        assert!(!path.exists(), "{config:?}");
    }
}

#[test]
fn damage_is_named_by_file_byte_and_page_and_the_rest_can_be_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let db = config().page_bytes(4096).torn_pages(TornPages::Ignore).open(&path).expect("opened");
    let tree = db.open_tree("t").expect("made");
    for n in 0..2000u32 {
        tree.put(n.to_be_bytes(), [7; 100]).expect("put");
    }
    db.close().expect("closed");
    // Every fourth page behind the first ones.
    let mut file = fs::OpenOptions::new().write(true).open(path.join("pages")).expect("opened");
    let pages = file.metadata().expect("looked at").len() / 4096;
    for page in (12..pages).step_by(4) {
        file.seek(SeekFrom::Start(page * 4096 + 2000)).expect("moved");
        file.write_all(&[0xa5; 64]).expect("written");
    }
    let db = config().open(&path).expect("opened");
    let tree = db.open_tree("t").expect("read");
    let (mut damaged, mut read) = (0, 0);
    for n in 0..2000u32 {
        match tree.get(n.to_be_bytes()) {
            Ok(Some(value)) => {
                assert_eq!(value, [7; 100]);
                read += 1;
            }
            Err(Error::Damaged { file, offset, page, source, .. }) => {
                let page = page.expect("it is one");
                assert_eq!(file.as_deref(), Some("pages"));
                assert_eq!(offset, Some(u64::from(page) * 4096));
                assert!(u64::from(page) % 4 == 0 && !source.to_string().is_empty());
                damaged += 1;
            }
            other => panic!("{n}: {other:?}"),
        }
    }
    assert!(damaged > 50 && read > 500, "{damaged} {read}");
    // A scan shows it once, and ends.
    let rows: Vec<_> = tree.iter().collect();
    let failed = rows.iter().filter(|row| row.is_err()).count();
    assert!(failed == 1 && matches!(rows.last(), Some(Err(Error::Damaged { .. }))));
    let report = db.check(|_, _| {}).expect("checked");
    assert!(!report.problems.is_empty());
}

#[test]
fn a_full_database_says_so_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let db = config().page_bytes(4096).pages_max(64).open(&path).expect("opened");
    let tree = db.open_tree("t").expect("made");
    let mut rows = 0u32;
    let e = loop {
        match tree.put(rows.to_be_bytes(), [1; 1000]) {
            Ok(()) => rows += 1,
            Err(e) => break e,
        }
    };
    assert!(matches!(&e, Error::DiskFull { path: p, .. } if *p == path), "{e:?}");
    assert!(!e.is_retryable() && rows > 20);
    assert_eq!(io::Error::from(e).kind(), io::ErrorKind::StorageFull);
    assert_eq!(tree.len().expect("counted"), u64::from(rows));
    assert!(db.drop_tree("t").expect("dropped"));
    let tree = db.open_tree("u").expect("made");
    tree.put("k", [1; 1000]).expect("there is room");
    db.close().expect("closed");
}

#[test]
fn the_source_goes_down_to_the_operating_system() {
    let dir = tempfile::tempdir().expect("a directory");
    // A name longer than a file system takes.
    let e = config().open(dir.path().join("x".repeat(300))).expect_err("refused");
    let mut sources =
        std::iter::successors(e.source(), |e: &&(dyn StdError + 'static)| (*e).source());
    let found = sources.find_map(|e| e.downcast_ref::<io::Error>()?.raw_os_error());
    assert_eq!(found, Some(36), "{e:?}");
}

#[test]
fn a_closed_database_is_closed_to_every_handle() {
    let (dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "v").expect("put");
    let (reader, mut writer) = (db.read(), db.write());
    writer.put(&tree, "open", "v").expect("put");
    let mut rows = reader.iter(&tree);
    let mut batch = weirdb::Batch::new();
    batch.put(&tree, "k", "w");
    let point = writer.savepoint();
    db.clone().close().expect("closed");

    fn closed<T: std::fmt::Debug>(done: Result<T, Error>) {
        assert!(matches!(done, Err(Error::Closed)), "{done:?}");
    }
    closed(tree.get("k"));
    closed(tree.put("k", "v"));
    closed(tree.insert("l", "v"));
    closed(tree.remove("k"));
    closed(tree.update("k", |_| None));
    closed(tree.add("k", 1));
    closed(tree.compare_and_swap("k", None, None));
    closed(tree.len());
    closed(tree.first());
    closed(tree.last());
    closed(tree.is_empty());
    closed(tree.approximate_len());
    closed(tree.bulk_load([("a", "b")]));
    closed(tree.iter().next().expect("an answer"));
    closed(rows.next().expect("an answer"));
    assert!(rows.next().is_none());
    closed(reader.get(&tree, "k"));
    closed(reader.len(&tree));
    closed(reader.backup(dir.path().join("backup")));
    closed(writer.get(&tree, "k"));
    closed(writer.put(&tree, "k", "v"));
    closed(writer.get_for_update(&tree, "k"));
    closed(writer.range_for_update::<&[u8]>(&tree, ..).next().expect("an answer"));
    closed(writer.rollback_to(point));
    closed(writer.create_tree("u"));
    closed(writer.commit());
    closed(db.write().commit());
    closed(db.open_tree("u"));
    closed(db.get_tree("t"));
    closed(db.create_tree("u"));
    closed(db.drop_tree("t"));
    closed(db.rename_tree("t", "u"));
    closed(db.tree_names());
    closed(db.apply(&batch));
    closed(db.sync());
    closed(db.checkpoint());
    closed(db.set_log_bytes(8 << 20));
    closed(db.check(|_, _| {}));
    closed(db.commit_prepared("x"));
    closed(db.rollback_prepared("x"));
    closed(db.transact(TxnOptions::new(), |txn| txn.put(&tree, "k", "v")));
    db.clone().close().expect("a second time is nothing");
    let again = config().open(dir.path().join("db")).expect("opened again");
    let tree = again.open_tree("t").expect("there");
    assert_eq!(tree.len().expect("counted"), 1, "what was not committed is not there");
    // What is said of it asks nothing of the disk.
    let _ = (db.stats(), db.prepared(), db.recovery(), format!("{db:?}"));
}

#[test]
fn nothing_is_changed_of_a_database_that_is_read_only() {
    let (dir, db) = new();
    let path = dir.path().join("db");
    db.open_tree("t").expect("made").put("k", "v").expect("put");
    db.close().expect("closed");
    let config = config().read_only(true);
    let (one, two) = (config.open(&path).expect("opened"), config.open(&path).expect("by two"));
    let tree = one.open_tree("t").expect("there");
    let read_only = |done: Result<(), Error>| {
        assert!(matches!(done, Err(Error::ReadOnly)), "{done:?}");
    };
    read_only(tree.put("k", "w"));
    read_only(tree.remove("k").map(drop));
    read_only(tree.insert("l", "w"));
    read_only(tree.bulk_load([("a", "b")]).map(drop));
    read_only(one.create_tree("u").map(drop));
    read_only(one.open_tree("u").map(drop));
    read_only(one.drop_tree("t").map(drop));
    let mut txn = one.write();
    read_only(txn.put(&tree, "k", "w"));
    assert_eq!(txn.get(&tree, "k").expect("read").as_deref(), Some(&b"v"[..]));
    assert_eq!(two.open_tree("t").expect("there").len().expect("counted"), 1);
}

#[test]
fn everything_public_can_be_shown() {
    fn shown<T: std::fmt::Debug>(what: &T) {
        assert!(!format!("{what:?}").is_empty());
    }
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "v").expect("put");
    shown(&db);
    shown(&tree);
    shown(&db.read());
    shown(&tree.iter());
    shown(&tree.get("k"));
    shown(&config());
    shown(&TxnOptions::new().isolation(Isolation::Serializable));
    shown(&db.stats());
    shown(&db.check(|_, _| {}));
    shown(&weirdb::Batch::new());
    let mut txn = db.write();
    shown(&txn);
    shown(&txn.savepoint());
    shown(&txn.range_for_update::<&[u8]>(&tree, ..));
    shown(&txn.commit_nowait().expect("committed"));
    let told = Db::open("/dev/null").expect_err("it is no directory");
    shown(&told);
    shown(&Error::from(told));
}
