//! What a prepared transaction has locked stays locked, over restarts and crashes.
use weir::{
    Db, Durability, Error, Isolation, LockError, SimVolume, Tree, Txn, TxnError, TxnOptions, Wait,
};

use crate::support::open;

/// What a serialisable transaction has read stays as it was until it ends, also if it is prepared
/// and the database is opened again meanwhile: few locks lie in the record, many in pages.
#[test]
fn prepared_transactions_keep_what_they_have_read() {
    for (rows, crash) in [(3u32, false), (3, true), (900, false), (900, true)] {
        let volume = SimVolume::new(91);
        let db = open(&volume).expect("a database");
        let tree = db.create_tree("t").expect("a tree");
        let other = db.create_tree("u").expect("a tree");
        for n in 0..rows {
            tree.put(&n.to_be_bytes(), b"first", Durability::Lazy).expect("a row");
        }
        let used = db.stats().pages_allocated;
        let mut reader = serial(&db);
        for n in 0..rows {
            assert!(reader.get(&tree, &n.to_be_bytes()).expect("a row").is_some());
        }
        let mut cursor = reader.cursor(&other);
        assert!(!cursor.seek_first(&mut reader).expect("no row"), "and none is to come");
        drop(cursor);
        assert_eq!(reader.get_for_update(&tree, b"none", &mut Vec::new()).ok(), Some(false));
        reader.put(&tree, b"sum", b"of them").expect("a row");
        reader.prepare(b"x").expect("prepared");
        let db = if crash {
            open(&volume.crash(3)).expect("recovered")
        } else {
            db.close().expect("close");
            open(&volume).expect("opened")
        };
        let (tree, other) = (find(&db, "t"), find(&db, "u"));
        let mut txn = serial(&db);
        let is_taken =
            |e: Option<Error>| assert!(is_would_wait(e.as_ref()), "{rows} {crash}: {e:?}");
        for n in (0..rows).step_by(7) {
            assert!(txn.get(&tree, &n.to_be_bytes()).expect("shared").is_some());
            is_taken(txn.put(&tree, &n.to_be_bytes(), b"second").err());
        }
        is_taken(txn.insert(&other, b"phantom", b"").err());
        is_taken(txn.get(&tree, b"none").err());
        is_taken(txn.get(&tree, b"sum").err());
        txn.put(&tree, b"free", b"").expect("not locked");
        txn.rollback().expect("a rollback");
        if crash {
            assert!(db.rollback_prepared(b"x").expect("rolled back"));
        } else {
            assert!(db.commit_prepared(b"x", Durability::Synced).expect("committed"));
        }
        let mut txn = serial(&db);
        txn.put(&tree, &0u32.to_be_bytes(), b"second").expect("it is free");
        txn.insert(&other, b"phantom", b"").expect("it is free");
        txn.rollback().expect("a rollback");
        let report = db.check(&mut |_, _| {}).expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
        assert!(db.stats().pages_allocated <= used + 4, "where its locks lay is free again");
        assert_eq!((db.stats().locks.held, db.stats().locks.ranges), (0, 0));
        db.close().expect("close");
    }
}

/// A range that is locked for sharing, and a row in it that another transaction has written: a
/// transaction that came to the row was refused it, and keeps the range.
#[test]
fn locks_that_were_held_together_come_back_together() {
    let volume = SimVolume::new(92);
    let db = open(&volume).expect("a database");
    let tree = db.create_tree("t").expect("a tree");
    for key in ["a", "b", "c"] {
        tree.put(key.as_bytes(), b"", Durability::Lazy).expect("a row");
    }
    let (mut writer, mut reader) = (serial(&db), serial(&db));
    writer.put(&tree, b"b", b"new").expect("a row");
    let mut cursor = reader.cursor(&tree);
    assert!(cursor.seek_first(&mut reader).expect("a row"));
    assert!(is_would_wait(cursor.next(&mut reader).err().as_ref()), "it is the writer's");
    drop(cursor);
    writer.prepare(b"w").expect("prepared");
    reader.prepare(b"r").expect("prepared");
    let db = open(&volume.crash(3)).expect("recovered");
    let tree = find(&db, "t");
    let mut txn = serial(&db);
    assert!(is_would_wait(txn.put(&tree, b"a", b"").err().as_ref()), "the reader's");
    assert!(is_would_wait(txn.get(&tree, b"b").err().as_ref()), "the writer's");
    assert!(db.commit_prepared(b"w", Durability::Synced).expect("committed"));
    assert!(is_would_wait(txn.put(&tree, b"a", b"").err().as_ref()), "still the reader's");
    assert!(db.rollback_prepared(b"r").expect("rolled back"));
    txn.put(&tree, b"a", b"").expect("it is free");
    txn.rollback().expect("a rollback");
    assert_eq!((db.stats().locks.held, db.stats().locks.ranges), (0, 0));
}

/// While a handle is open to it, no other caller decides it; let go, it is decided by its name.
/// After a restart only the rows that it has changed are its own.
#[test]
fn the_holder_of_a_prepared_transaction_decides_it() {
    let volume = SimVolume::new(93);
    let db = open(&volume).expect("a database");
    let tree = db.create_tree("t").expect("a tree");
    for key in ["a", "b"] {
        tree.put(key.as_bytes(), b"", Durability::Lazy).expect("a row");
    }
    let prepared = |db: &Db, name: &[u8]| {
        let (tree, mut txn) = (find(db, "t"), serial(db));
        assert!(txn.get(&tree, b"a").expect("a row").is_some());
        txn.put(&tree, b"b", name).expect("a row");
        txn.prepare_owned(name).expect("prepared")
    };
    let is_free = |db: &Db, key: &[u8]| {
        let mut txn = serial(db);
        let done = txn.put(&find(db, "t"), key, b"other");
        assert!(done.is_ok() || is_would_wait(done.as_ref().err()), "{done:?}");
        txn.rollback().expect("a rollback");
        done.is_ok()
    };

    let mut held = prepared(&db, b"one");
    assert_eq!(db.prepared(), [b"one"]);
    assert!(!db.commit_prepared(b"one", Durability::Lazy).expect("it is in hand"));
    assert!(!db.rollback_prepared(b"one").expect("it is in hand"));
    assert!(matches!(serial(&db).prepare(b"one"), Err(Error::Name(_))));
    assert!(!is_free(&db, b"a") && !is_free(&db, b"b"));
    held.commit(Durability::Synced).expect("committed");
    assert!(matches!(held.commit(Durability::Synced), Err(Error::Transaction(TxnError::Ended))));
    assert!(is_free(&db, b"a") && is_free(&db, b"b"));
    drop(held);
    assert!(db.prepared().is_empty());
    assert_eq!(tree.get(b"b").expect("a row").as_deref(), Some(&b"one"[..]));

    prepared(&db, b"two").rollback().expect("rolled back");
    assert!(db.prepared().is_empty() && is_free(&db, b"a"));
    drop(prepared(&db, b"three"));
    assert!(!is_free(&db, b"a"), "it is prepared as before");
    assert!(db.commit_prepared(b"three", Durability::Synced).expect("by its name"));

    let _held = prepared(&db, b"four");
    let db = open(&volume.crash(3)).expect("recovered");
    assert_eq!(db.prepared(), [b"four"]);
    assert!(is_free(&db, b"a") && !is_free(&db, b"b"));
    assert!(db.commit_prepared(b"four", Durability::Synced).expect("by its name"));
    let tree = find(&db, "t");
    assert_eq!(tree.get(b"b").expect("a row").as_deref(), Some(&b"four"[..]));
    assert_eq!((db.stats().locks.held, db.stats().locks.ranges), (0, 0));
}

fn serial(db: &Db) -> Txn {
    db.begin(TxnOptions { isolation: Isolation::Serializable, lock_wait: Wait::No })
}

fn find(db: &Db, name: &str) -> Tree {
    db.tree(name).expect("a look").expect("the tree")
}

fn is_would_wait(e: Option<&Error>) -> bool {
    matches!(e, Some(Error::Transaction(TxnError::Lock(LockError::WouldWait { .. }))))
}

/// What only a prepared transaction needs is no leak, and is told apart from one.
#[test]
fn pages_of_prepared_transactions_are_no_damage() {
    let volume = SimVolume::new(92);
    let db = open(&volume).expect("a database");
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"k", &[1; 20_000], Durability::Synced).expect("a row");
    let mut txn = serial(&db);
    txn.put(&tree, b"k", &[2; 20_000]).expect("a change");
    txn.prepare(b"x").expect("prepared");
    db.close().expect("close");
    let db = open(&volume).expect("opened");
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(report.pages_held > 0, "the value from before");
    assert!(db.rollback_prepared(b"x").expect("rolled back"));
    crate::support::assert_sound(&db);
}
