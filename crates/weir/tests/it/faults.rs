//! Directories, files and settings that are not as they should be.
use std::sync::Arc;

use weir::{Background, Config, Create, Db, Durability, Error, SimVolume, Volume};

use crate::support::{assert_sound, assert_whole, open, populated, tiny};

fn threads() -> Config {
    Config { background: Background::Threads, ..tiny() }
}

fn text<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_directory_that_is_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("notes");
    std::fs::write(&path, "mine").expect("written");
    let said = text(Db::open(&path, threads()));
    assert!(said.contains("notes"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "mine");
}

/// A script that tidies up may take the lock file away beside a running process.
#[test]
fn without_its_lock_file_a_database_is_open_once_still() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), threads()).expect("a new database");
    std::fs::remove_file(dir.path().join("LOCK")).expect("removed");
    let said = text(Db::open(dir.path(), threads()));
    assert!(said.contains("open in another process"), "{said}");
    db.close().expect("closed");
    Db::open(dir.path(), threads()).expect("opened").close().expect("closed");
}

#[test]
fn nothing_is_made_where_a_database_must_be_or_with_impossible_settings() {
    let dir = tempfile::tempdir().expect("a directory");
    let never = || Config { create: Create::Never, ..threads() };
    assert!(matches!(Db::open(&dir.path().join("db"), never()), Err(Error::Directory(_))));
    assert!(matches!(Db::open(dir.path(), never()), Err(Error::Directory(_))));
    let no_pool = Config { pool_bytes: 1, ..threads() };
    assert!(matches!(Db::open(dir.path(), no_pool), Err(Error::Config(_))));
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
}

#[test]
fn foreign_files_are_left_alone() {
    for name in ["notes.txt", "pages", "redo-00", "data"] {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(name), "mine").expect("written");
        for create in [Create::IfMissing, Create::Always, Create::Never] {
            let opened = Db::open(dir.path(), Config { create, ..threads() });
            assert!(matches!(opened, Err(Error::Directory(_))), "{name}");
            let said = text(opened);
            assert!(said.contains(name), "{said}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join(name)).expect("read"), "mine");
        let left = std::fs::read_dir(dir.path()).expect("a list");
        let left: Vec<_> = left.map(|e| e.expect("an entry").file_name()).collect();
        assert!(left.iter().all(|n| n == name || n == "LOCK"), "{left:?}");
    }
    // A marker does not make foreign files ours.
    let volume = SimVolume::new(0);
    volume.write_raw("creating", &[]).expect("planted");
    volume.write_raw("thesis.tex", b"mine").expect("planted");
    let said = text(open(&volume));
    assert!(said.contains("thesis.tex"), "{said}");
    assert_eq!(volume.read_raw("thesis.tex").expect("read"), b"mine");
}

#[test]
fn create_says_what_may_be_there() {
    let volume = SimVolume::new(0);
    let with = |create| Db::open_on(Arc::new(volume.clone()), Config { create, ..tiny() });
    assert!(matches!(with(Create::Never), Err(Error::Directory(_))));
    assert_eq!(volume.list().expect("a list"), Vec::<String>::new());
    with(Create::Always).expect("made").close().expect("closed");
    assert!(matches!(with(Create::Always), Err(Error::Directory(_))));
    with(Create::Never).expect("opened").close().expect("closed");
}

#[test]
fn a_second_opening_of_the_same_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), threads()).expect("opened");
    assert!(matches!(Db::open(dir.path(), threads()), Err(Error::Io { .. })));
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"k", b"v", Durability::Synced).expect("a put");
    drop(tree);
    db.close().expect("closed");
    let db = Db::open(dir.path(), threads()).expect("opened again");
    let tree = db.tree("t").expect("read").expect("the tree");
    assert_eq!(tree.get(b"k").expect("a get").as_deref(), Some(&b"v"[..]));
}

#[test]
fn settings_that_are_not_possible() {
    let volume = SimVolume::new(0);
    let with = |config| Db::open_on(Arc::new(volume.clone()), config);
    let wrong = [
        (Config { page_size: 5000, ..tiny() }, "5000"),
        (Config { page_size: 32768, ..tiny() }, "32768"),
        (Config { log_bytes: 1000, ..tiny() }, "1000"),
        (Config { log_bytes: 1 << 50, ..tiny() }, "1 PiB"),
        (Config { pool_bytes: 3, ..tiny() }, "3 B"),
        (Config { pages_max: 1, ..tiny() }, "1"),
    ];
    for (config, named) in wrong {
        let opened = with(config);
        assert!(matches!(opened, Err(Error::Config(_))));
        let said = text(opened);
        assert!(said.contains(named), "{said}");
        assert_eq!(volume.list().expect("a list"), Vec::<String>::new());
    }
    drop(with(tiny()).expect("made"));
    let said = text(with(Config { page_size: 16384, ..tiny() }));
    assert!(said.contains("4096") && said.contains("16384"), "{said}");
    drop(with(Config { page_size: 0, ..tiny() }).expect("its own page size"));
}

/// Of the control file's copies: byte 8 the format, byte 124 the checksum of the 124 before it.
#[test]
fn a_newer_format() {
    let volume = SimVolume::new(0);
    drop(open(&volume).expect("made"));
    let found = volume.snapshot();
    let mut bytes = found.read_raw("control").expect("read");
    for copy in [0, 4096] {
        bytes[copy + 8] += 1;
        let crc = weir_base::checksum(&bytes[copy..copy + 124]);
        bytes[copy + 124..copy + 128].copy_from_slice(&crc.to_le_bytes());
    }
    found.write_raw("control", &bytes).expect("planted");
    let said = text(open(&found));
    let newer = bytes[8];
    let has = |format: u8| said.contains(&format!("format {format}"));
    assert!(has(newer) && has(newer - 1), "{said}");
    assert_eq!(found.read_raw("control").expect("read"), bytes);
}

#[test]
fn files_cut_short_or_missing() {
    for clean in [true, false] {
        let volume = SimVolume::new(8);
        let (db, model) = populated(&volume);
        let found = if clean {
            db.close().expect("closed");
            volume.snapshot()
        } else {
            let found = volume.snapshot();
            drop(db);
            found
        };
        let mut refused = 0;
        for name in found.list().expect("a list") {
            let bytes = found.read_raw(&name).expect("read");
            let len = bytes.len();
            let lens = [0, 1, 511, 512, 4096, 4608, len / 4 * 2, len / 2 / 4096 * 4096, len - 1];
            for cut in lens.into_iter().map(Some).chain([None]) {
                let volume = found.snapshot();
                match cut {
                    Some(cut) if cut < len => {
                        volume.write_raw(&name, &bytes[..cut]).expect("planted");
                    }
                    Some(_) => continue,
                    None => volume.remove(&name).expect("removed"),
                }
                let what = format!("clean {clean}, '{name}' cut to {cut:?} of {len}");
                match open(&volume) {
                    Ok(db) => {
                        // Nothing that is needed was cut off, or reading it says so.
                        let report = db.check(&mut |_, _| {});
                        let sound = report.is_ok_and(|r| r.problems.is_empty());
                        if sound {
                            assert_whole(&db, &model);
                        } else {
                            assert_eq!(name, "pages", "{what}");
                            refused += 1;
                        }
                    }
                    Err(e) => {
                        let said = e.to_string();
                        let names = ["control", "redo", "pages", "page ", "doublewrite"];
                        assert!(names.iter().any(|n| said.contains(n)), "{what}: {said}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 10, "clean {clean}: {refused}");
    }
}

#[test]
fn keys_and_values_that_are_too_long() {
    let volume = SimVolume::new(0);
    let db = open(&volume).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let longest = vec![b'k'; 1200];
    tree.put(&longest, &[1; 50_000], Durability::Synced).expect("the longest key");
    let too_long = vec![b'k'; 1201];
    let said = text(tree.put(&too_long, b"v", Durability::Synced));
    assert!(said.contains("1201") && said.contains("1200"), "{said}");
    assert!(matches!(tree.put(&too_long, &[0; 9_000], Durability::Lazy), Err(Error::Input(_))));
    // Zeroed memory is not touched, so this takes none.
    let beyond = vec![0u8; (1 << 32) + 1];
    assert!(matches!(tree.put(b"k", &beyond, Durability::Lazy), Err(Error::Input(_))));
    tree.put(b"", b"an empty key is a key", Durability::Lazy).expect("an empty key");
    assert_eq!(tree.get(&longest).expect("a get"), Some(vec![1; 50_000]));
    assert_eq!(tree.get(&too_long).ok().flatten(), None);
    for name in ["", &"x".repeat(256)] {
        assert!(matches!(db.create_tree(name), Err(Error::Name(_))));
    }
    db.create_tree(&"x".repeat(255)).expect("the longest name");
    assert_sound(&db);
}

#[test]
fn a_position_that_no_commit_ends_at() {
    let volume = SimVolume::new(0);
    let db = open(&volume).expect("a new database");
    let foreign = weir::Commit::at(Some(weir::Lsn(1 << 40)));
    for durability in [Durability::Lazy, Durability::Synced] {
        let said = text(db.wait(foreign, durability));
        assert!(said.contains(&(1u64 << 40).to_string()), "{said}");
    }
    db.create_tree("t").expect("it goes on");
}

/// A transaction ends, rolled back, while its database is being closed and the pages that it had
/// changed may have been written: what is found then must not be half of it.
#[test]
fn what_ends_while_the_database_is_being_closed() {
    use std::time::Duration;
    use weir::{DiskSpec, ThrottledVolume, TxnOptions};

    let volume = SimVolume::new(0);
    let spec = "300iops,4MiB".parse::<DiskSpec>().expect("a disk");
    let slow = Arc::new(ThrottledVolume::new(Arc::new(volume.clone()), spec));
    let config = Config { pool_bytes: 4 << 20, log_bytes: 4 << 20, ..threads() };
    let db = Db::open_on(slow, config.clone()).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    let key = |n: u32| n.to_be_bytes();
    for n in 0..4_000 {
        tree.put(&key(n), &[1; 200], Durability::Lazy).expect("put");
    }
    let mut txn = db.begin(TxnOptions::default());
    for n in (0..4_000).step_by(40) {
        txn.put(&tree, &key(n), &[2; 200]).expect("put");
    }
    std::thread::scope(|scope| {
        let closing = scope.spawn(move || db.close());
        while tree.put(&key(1), &[1; 200], Durability::Lazy).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(200));
        drop(txn);
        closing.join().expect("it ends").expect("closed");
    });
    drop(tree);
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("opened");
    let tree = db.tree("t").expect("read").expect("the tree");
    for n in 0..4_000 {
        assert_eq!(tree.get(&key(n)).expect("get").as_deref(), Some(&[1; 200][..]), "{n}");
    }
    assert_sound(&db);
}
