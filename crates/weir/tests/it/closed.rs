//! Closing while there are other handles: they are refused, and the directory is free at once.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir::{Batch, Config, Db, Durability, Error, TxnOptions};

fn is_closed<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Closed))
}

#[test]
fn every_handle_says_closed_and_the_next_opening_is_let_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let db = Db::open(&path, Config::default()).expect("open");
    let tree = db.create_tree("herons").expect("a tree");
    for key in [b"a", b"b", b"c"] {
        tree.put(key, b"kept", Durability::Lazy).expect("a put");
    }
    let mut cursor = tree.cursor();
    assert!(cursor.seek_first().expect("a move"));
    let mut reader = db.begin(TxnOptions::default());
    let mut walk = reader.cursor(&tree);
    assert!(walk.seek_first(&mut reader).expect("a move"));
    let mut open = db.begin(TxnOptions::default());
    open.put(&tree, b"a", b"never committed").expect("a put");
    let savepoint = open.savepoint();
    let mut late = db.begin(TxnOptions::default());
    late.put(&tree, b"b", b"committed too late").expect("a put");
    let mut batch = Batch::new();
    batch.put(&tree, b"c", b"too late");
    let other = db.clone();
    db.close().expect("close");

    let next = Db::open(&path, Config::default()).expect("the directory is free");
    let theirs = next.tree("herons").expect("read").expect("the tree");
    theirs.put(b"c", b"theirs", Durability::Synced).expect("a put");

    assert!(is_closed(tree.get(b"a")) && is_closed(tree.estimate(b"", None)));
    assert!(is_closed(tree.put(b"a", b"x", Durability::Lazy)));
    assert!(is_closed(tree.delete(b"a", Durability::Lazy)));
    assert!(is_closed(tree.check(&mut |_| ())) && is_closed(tree.key_at(0, 1)));
    assert!(is_closed(cursor.next()) && is_closed(cursor.seek(b"a")));
    assert!(is_closed(walk.next(&mut reader)));
    assert!(is_closed(reader.get(&tree, b"a")) && is_closed(reader.tree("herons")));
    assert!(is_closed(open.put(&tree, b"a", b"x")));
    assert!(is_closed(open.rollback_to(savepoint)) && is_closed(open.rollback()));
    assert!(is_closed(late.commit()));
    assert!(is_closed(other.write(&batch, Durability::Synced)));
    assert!(is_closed(other.tree("herons")) && is_closed(other.create_tree("egrets")));
    assert!(is_closed(other.tree_names()) && is_closed(other.check(&mut |_, _| ())));
    assert!(is_closed(other.sync()) && is_closed(other.checkpoint()) && is_closed(other.locks()));
    assert!(is_closed(other.begin(TxnOptions::default()).prepare(b"xa")));
    assert!(is_closed(other.commit_prepared(b"xa", Durability::Synced)));
    assert!(is_closed(other.set_log_bytes(64 << 20)) && is_closed(other.drop_tree("herons")));
    drop(reader);
    other.close().expect("closed already");

    assert_eq!(theirs.get(b"a").expect("read").as_deref(), Some(&b"kept"[..]));
    assert_eq!(theirs.get(b"b").expect("read").as_deref(), Some(&b"kept"[..]));
    assert_eq!(theirs.get(b"c").expect("read").as_deref(), Some(&b"theirs"[..]));
    assert!(Db::open(&path, Config::default()).is_err(), "it is in use");
    let report = next.check(&mut |_, _| ()).expect("checked");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    next.close().expect("close");
}

/// Nothing that a thread is in the middle of reaches the files after the directory has been given
/// up, and what was acknowledged before is there.
#[test]
fn closing_beside_threads_that_write() {
    for round in 0..4 {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        let config = Config { pool_bytes: 1 << 20, log_bytes: 1 << 20, ..Config::default() };
        let db = Db::open(&path, config).expect("open");
        let (done, began) = ([const { AtomicU64::new(0) }; 4], AtomicBool::new(false));
        let tree = db.create_tree("herons").expect("a tree");
        std::thread::scope(|threads| {
            for (number, done) in done.iter().enumerate() {
                let (db, tree, began) = (db.clone(), tree.clone(), &began);
                threads.spawn(move || {
                    for i in 1u64.. {
                        let key = format!("{number} {i:08}").into_bytes();
                        let mut txn = db.begin(TxnOptions::default());
                        let put = txn.put(&tree, &key, &[number as u8; 300]);
                        let committed = put.and_then(|()| txn.commit_durably(Durability::Synced));
                        match committed {
                            Ok(()) => done.store(i, Ordering::SeqCst),
                            Err(_) => return,
                        }
                        began.store(true, Ordering::SeqCst);
                    }
                });
            }
            while !began.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(10 * round));
            // Threads in the middle of a commit may leave something to the next opening.
            let _ = db.clone().close();
            let next = Db::open(&path, Config::default()).expect("the directory is free");
            let report = next.check(&mut |_, _| ()).expect("checked");
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            let theirs = next.tree("herons").expect("read").expect("the tree");
            for (number, done) in done.iter().enumerate() {
                for i in 1..=done.load(Ordering::SeqCst) {
                    let key = format!("{number} {i:08}").into_bytes();
                    assert!(theirs.get(&key).expect("read").is_some(), "{number} {i} is lost");
                }
            }
        });
    }
}
