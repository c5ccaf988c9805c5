//! Misuse that must hurt nothing else: closures that use the database or panic, savepoints that are
//! not good any more, handles that are dropped in any order.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use weirdb::{Batch, Conflict, Error, Isolation, LockWait, TxnOptions};

use crate::new;

macro_rules! planted {
    () => {
        panic!("planted")
    };
}

#[test]
fn closures_may_use_the_database_and_panic() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for n in 0..200u8 {
        tree.put([n], [n; 40]).expect("put");
    }
    let never = TxnOptions::new().lock_wait(LockWait::Never).isolation(Isolation::ReadCommitted);
    let uses = || {
        assert_eq!(tree.len().expect("counted"), 200);
        assert_eq!(db.read().iter(&tree).rev().count(), 200);
        let mut txn = db.write_with(never);
        txn.put(&tree, [9], "a neighbour").expect("it is free");
        txn.rollback().expect("rolled back");
        // The row itself is locked: refused at once, or after as long as one waits.
        let own = db.write_with(never).put(&tree, [7], "mine");
        assert!(matches!(own, Err(Error::Conflict(Conflict::Locked))), "{own:?}");
        let wait = never.lock_wait(LockWait::AtMost(Duration::from_millis(20)));
        let own = db.write_with(wait).put(&tree, [7], "mine");
        assert!(matches!(own, Err(Error::Conflict(Conflict::LockTimeout { .. }))), "{own:?}");
    };
    let old = tree.update([7], |_| {
        uses();
        Some(b"new".to_vec())
    });
    assert_eq!(old.expect("updated").expect("there"), [7; 40]);
    db.transact(TxnOptions::new(), |txn| {
        txn.update(&tree, [7], |_| {
            uses();
            None
        })
    })
    .expect("committed");
    tree.put([7], [7; 40]).expect("put");

    // Whatever panics, nothing is changed, nothing is locked, and all goes on.
    type Panics<'a> = Box<dyn FnOnce() + 'a>;
    let all: Vec<Panics<'_>> = vec![
        Box::new(|| drop(tree.update([7], |_| planted!()))),
        Box::new(|| drop(db.write().update(&tree, [7], |_| planted!()))),
        Box::new(|| {
            let _: Result<(), Error> = db.transact(TxnOptions::new(), |txn| {
                txn.put(&tree, [7], "x")?;
                planted!()
            });
        }),
        Box::new(|| {
            let mut txn = db.write();
            let _: Result<(), Error> = txn.nested(|txn| {
                txn.put(&tree, [7], "x")?;
                planted!()
            });
        }),
        Box::new(|| {
            let empty = db.open_tree("empty").expect("made");
            let rows = (0..100u8).map(|n| if n < 50 { ([n], [n]) } else { planted!() });
            drop(empty.bulk_load(rows));
        }),
        Box::new(|| {
            tree.iter().for_each(|row| assert!(row.is_err(), "planted"));
        }),
        Box::new(|| {
            let mut txn = db.write();
            txn.range_for_update::<&[u8]>(&tree, ..)
                .for_each(|row| assert!(row.is_err(), "planted"));
        }),
        Box::new(|| {
            tree.put([7], [7; 40]).expect("put");
            let txn = db.write().commit_nowait().expect("committed");
            txn.when_durable(|_| planted!());
        }),
        Box::new(|| drop(db.check(|_, _| planted!()))),
    ];
    let number = all.len();
    for (at, panics) in all.into_iter().enumerate() {
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err(), "{at} of {number}");
        let mut txn = db.write_with(never);
        assert_eq!(txn.get_for_update(&tree, [7]).expect("free").expect("there"), [7; 40], "{at}");
        let rows = txn.range_for_update::<&[u8]>(&tree, ..).filter(|row| row.is_ok()).count();
        assert_eq!(rows, 200, "{at}");
    }
    assert!(db.open_tree("empty").expect("there").is_empty().expect("read"));
    assert_eq!(db.open_tree("empty").expect("there").bulk_load([("k", "v")]).expect("loaded"), 1);
    assert_eq!(db.check(|_, _| {}).expect("checked").problems, Vec::<String>::new());
    db.close().expect("closed");
}

#[test]
fn a_transaction_whose_closure_panicked_goes_on() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let mut txn = db.write();
    txn.put(&tree, "before", "v").expect("put");
    let panicked = catch_unwind(AssertUnwindSafe(|| txn.update(&tree, "k", |_| panic!("planted"))));
    assert!(panicked.is_err());
    txn.put(&tree, "after", "v").expect("put");
    txn.commit().expect("committed");
    assert_eq!(tree.len().expect("counted"), 2);
}

#[test]
fn savepoints_are_good_for_their_transaction_as_long_as_they_stand() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let refused = |done: Result<(), Error>| {
        assert!(matches!(done, Err(Error::InvalidInput(_))), "{done:?}");
    };
    let (mut one, mut two) = (db.write(), db.write());
    let foreign = two.savepoint();
    one.put(&tree, "a", "1").expect("put");
    refused(one.rollback_to(foreign));
    let first = one.savepoint();
    one.put(&tree, "b", "2").expect("put");
    let second = one.savepoint();
    one.put(&tree, "c", "3").expect("put");
    one.rollback_to(first).expect("it stands");
    for key in ["d", "e", "f"] {
        one.put(&tree, key, "later").expect("put");
    }
    refused(one.rollback_to(second));
    assert_eq!(one.len(&tree).expect("counted"), 4, "nothing was rolled back");
    one.rollback_to(first).expect("it stands still");
    one.rollback_to(first).expect("and again");
    assert_eq!(one.len(&tree).expect("counted"), 1);
    one.commit().expect("committed");
    two.put(&tree, "g", "v").expect("put");
    refused(two.rollback_to(first));
    two.rollback_to(foreign).expect("its own");
    assert_eq!(two.len(&tree).expect("counted"), 1, "its snapshot is of now");
}

#[test]
fn parts_that_fail_are_rolled_back_alone() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    db.transact(TxnOptions::new(), |txn| {
        txn.put(&tree, "a", "1")?;
        let failed: Result<(), Error> = txn.nested(|txn| {
            txn.put(&tree, "a", "2")?;
            txn.nested(|txn| txn.put(&tree, "b", "3"))?;
            txn.insert(&tree, "a", "there is one")
        });
        assert!(matches!(failed, Err(Error::Exists(_))), "{failed:?}");
        txn.nested(|txn| txn.put(&tree, "c", "4"))
    })
    .expect("committed");
    let rows: Vec<_> = tree.iter().map(|row| row.expect("read")).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0].0 == "a" && rows[0].1 == "1" && rows[1].0 == "c", "{rows:?}");
}

#[test]
fn handles_are_dropped_in_any_order() {
    let (dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "v").expect("put");
    let (reader, mut writer, other) = (db.read(), db.write(), tree.clone());
    writer.put(&tree, "k", "never committed").expect("put");
    let rows = reader.iter(&tree);
    let mut batch = Batch::new();
    batch.put(&tree, "k", "w");
    drop(db);
    drop(tree);
    drop(reader);
    assert_eq!(rows.count(), 1);
    assert_eq!(writer.get(&other, "k").expect("read").expect("there"), *b"never committed");
    drop(writer);
    other.db().apply(&batch).expect("applied");
    assert_eq!(other.get("k").expect("read").expect("there"), *b"w");
    drop(batch);
    drop(other);
    let db = crate::config().open(dir.path().join("db")).expect("it was closed");
    assert!(db.recovery().is_none(), "in order");
}

#[test]
fn a_write_transaction_that_is_dropped_takes_everything_back() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let mut txn = db.write();
    let made = txn.create_tree("new").expect("made");
    txn.put(&made, "k", "v").expect("put");
    txn.put(&tree, "k", "v").expect("put");
    drop(txn);
    assert!(tree.is_empty().expect("read"));
    assert_eq!(db.tree_names().expect("read"), ["t"]);
    let gone = made.put("k", "v");
    assert!(matches!(gone, Err(Error::NoTree(_))), "{gone:?}");
}
