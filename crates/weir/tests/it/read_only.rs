//! A database that is only looked at: everything can be read, after a crash too, nothing of it is
//! changed, and what would change something is refused.
use std::collections::BTreeMap;
use std::sync::Arc;

use weir::{Batch, Config, Db, Durability, Error, SimVolume, TxnOptions};

use crate::support::{assert_sound, assert_whole, open, populated, tiny};

fn look(volume: &SimVolume) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), Config { read_only: true, ..tiny() })
}

fn files(volume: &SimVolume) -> BTreeMap<String, Vec<u8>> {
    use weir_device::Volume;
    let names = volume.list().expect("names");
    names.into_iter().map(|name| (name.clone(), volume.read_raw(&name).expect("bytes"))).collect()
}

#[test]
fn after_a_crash_all_is_seen_and_nothing_is_changed() {
    for seed in 0..20 {
        let volume = SimVolume::new(seed);
        let (db, model) = populated(&volume);
        // One under way when the crash comes, and one prepared.
        let tree = db.tree("weirs").expect("read").expect("the tree");
        let mut open_one = db.begin(TxnOptions::default());
        open_one.put(&tree, b"row 002", &[1; 3_000]).expect("a change");
        let mut prepared = db.begin(TxnOptions::default());
        prepared.put(&tree, b"never", b"seen").expect("a change");
        prepared.prepare(b"xid").expect("prepared");
        let volume = volume.crash(seed);
        drop((open_one, db));
        let (before, writes) = (files(&volume), volume.writes_so_far());
        for _ in 0..2 {
            let db = look(&volume).expect("opened to read");
            assert_whole(&db, &model);
            assert!(db.check(&mut |_, _| {}).expect("a check").problems.is_empty());
            assert_eq!(db.prepared(), [b"xid".to_vec()]);
            db.close().expect("closed");
        }
        assert_eq!(volume.writes_so_far(), writes);
        assert!(files(&volume) == before, "seed {seed}: a file has changed");
        let db = open(&volume).expect("opened to write");
        assert_whole(&db, &model);
        assert!(db.rollback_prepared(b"xid").expect("decided"));
        assert_sound(&db);
    }
}

#[test]
fn a_log_larger_than_memory_is_redone_beside_the_files() {
    let volume = SimVolume::new(3);
    let (db, model) = populated(&volume);
    let volume = volume.crash(1);
    drop(db);
    let before = files(&volume);
    let config = Config { read_only: true, held_log_bytes: Some(2_000), ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("opened to read");
    assert_whole(&db, &model);
    db.close().expect("closed");
    assert!(files(&volume) == before);
}

#[test]
fn every_change_is_refused() {
    let volume = SimVolume::new(1);
    let (db, model) = populated(&volume);
    let tree = db.tree("weirs").expect("read").expect("the tree");
    let mut prepared = db.begin(TxnOptions::default());
    prepared.put(&tree, b"never", b"seen").expect("a change");
    prepared.prepare(b"xid").expect("prepared");
    db.close().expect("closed");
    drop(tree);
    let db = look(&volume).expect("opened to read");
    let tree = db.tree("weirs").expect("read").expect("the tree");
    let refused = |what: &str, e: Option<Error>| {
        assert!(matches!(e, Some(Error::ReadOnly)), "{what}: {e:?}");
    };
    refused("put", tree.put(b"k", b"v", Durability::Lazy).err());
    refused("delete", tree.delete(b"row 002", Durability::Lazy).err());
    refused("bulk load", tree.bulk_load([(b"k", b"v")].into_iter()).err());
    refused("create", db.create_tree("new").err());
    refused("drop", db.drop_tree("herons").err());
    let mut batch = Batch::new();
    batch.put(&tree, b"k", b"v");
    refused("batch", db.write(&batch, Durability::Lazy).err());
    refused("log", db.set_log_bytes(1 << 20).err());
    refused("commit", db.commit_prepared(b"xid", Durability::Synced).err());
    refused("rollback", db.rollback_prepared(b"xid").err());
    let mut txn = db.begin(TxnOptions::default());
    refused("a row", txn.put(&tree, b"k", b"v").err());
    refused("a new row", txn.insert(&tree, b"k", b"v").err());
    refused("no row", txn.delete(&tree, b"row 002").err());
    refused("another row", txn.update(&tree, b"row 002", |_, _| true).err());
    refused("a tree", txn.create_tree("new").err());
    refused("no tree", txn.drop_tree("herons").err());
    refused("a name", txn.rename_tree("herons", "cranes").err());
    // Locks are for reading, too.
    let mut out = Vec::new();
    assert!(txn.get_for_update(&tree, b"row 002", &mut out).expect("locked"));
    txn.rollback().expect("nothing to roll back");
    assert_whole(&db, &model);
    drop(tree);
    db.close().expect("closed");
}

#[test]
fn what_is_not_there_is_not_made() {
    let volume = SimVolume::new(1);
    assert!(matches!(look(&volume), Err(Error::Directory(_))));
    assert!(files(&volume).is_empty());
    let dir = tempfile::tempdir().expect("a directory");
    let config = || Config { read_only: true, ..Config::default() };
    for at in [dir.path().join("none"), dir.path().to_owned()] {
        assert!(matches!(Db::open(&at, config()), Err(Error::Directory(_))));
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
}

#[test]
fn readers_share_and_keep_writers_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let small = || Config { pool_bytes: 1 << 20, ..Config::default() };
    let to_read = || Db::open(dir.path(), Config { read_only: true, ..small() });
    let in_use = |opened: Result<Db, Error>| {
        let e = opened.err().expect("it is in use");
        assert!(e.to_string().contains("in use"), "{e}");
    };
    let db = Db::open(dir.path(), small()).expect("made");
    db.create_tree("t").expect("a tree").put(b"k", b"v", Durability::Synced).expect("a row");
    in_use(to_read());
    db.close().expect("closed");
    let one = to_read().expect("one");
    let other = to_read().expect("another");
    for db in [&one, &other] {
        let tree = db.tree("t").expect("read").expect("the tree");
        assert_eq!(tree.get(b"k").expect("read"), Some(b"v".to_vec()));
    }
    in_use(Db::open(dir.path(), small()));
    one.close().expect("closed");
    in_use(Db::open(dir.path(), small()));
    other.close().expect("closed");
    // Without the lock file the data themselves are locked.
    std::fs::remove_file(dir.path().join("LOCK")).expect("removed");
    let one = to_read().expect("one");
    assert!(Db::open(dir.path(), small()).is_err());
    one.close().expect("closed");
    Db::open(dir.path(), small()).expect("free").close().expect("closed");
}
