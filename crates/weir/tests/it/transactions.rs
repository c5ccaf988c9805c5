//! Transactions: what they see, what they lock, what is left of them.
use std::time::Duration;

use weir::{Db, Durability, Error, Isolation, SimVolume, Tree, Txn, TxnError, TxnOptions, Wait};

use crate::support::open;

fn open_sim(seed: u64) -> Db {
    open(&SimVolume::new(seed)).expect("a new database")
}

fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

fn txn(db: &Db) -> Txn {
    at(db, Isolation::RepeatableRead)
}

fn filled(db: &Db, rows: u32) -> Tree {
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..rows {
        tree.put(&n.to_be_bytes(), b"first", Durability::Lazy).expect("put");
    }
    tree
}

fn all(txn: &mut Txn, tree: &Tree, up: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = txn.cursor(tree);
    let mut rows = Vec::new();
    let mut on = if up { cursor.seek_first(txn) } else { cursor.seek_last(txn) }.expect("seek");
    while on {
        rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
        on = if up { cursor.next(txn) } else { cursor.prev(txn) }.expect("step");
    }
    if !up {
        rows.reverse();
    }
    rows
}

#[test]
fn each_level_sees_what_it_should() {
    let db = open_sim(1);
    let tree = filled(&db, 3);
    let key = 1u32.to_be_bytes();
    let mut dirty = at(&db, Isolation::ReadUncommitted);
    let mut latest = at(&db, Isolation::ReadCommitted);
    let mut fixed = txn(&db);
    assert_eq!(fixed.get(&tree, &key).expect("get").as_deref(), Some(&b"first"[..]));
    let mut writer = txn(&db);
    writer.put(&tree, &key, b"second").expect("put");
    let see = |txn: &mut Txn| txn.get(&tree, &key).expect("get");
    assert_eq!(see(&mut writer).as_deref(), Some(&b"second"[..]));
    assert_eq!(see(&mut dirty).as_deref(), Some(&b"second"[..]));
    assert_eq!(see(&mut latest).as_deref(), Some(&b"first"[..]));
    assert_eq!(tree.get(&key).expect("get").as_deref(), Some(&b"first"[..]));
    writer.commit_durably(Durability::Synced).expect("commit");
    assert_eq!(see(&mut latest).as_deref(), Some(&b"second"[..]));
    assert_eq!(see(&mut fixed).as_deref(), Some(&b"first"[..]));
    assert_eq!(tree.get(&key).expect("get").as_deref(), Some(&b"second"[..]));
}

#[test]
fn a_snapshot_stays_through_single_writes_deletes_and_rollbacks() {
    let db = open_sim(2);
    let tree = filled(&db, 200);
    let mut reader = txn(&db);
    let before = all(&mut reader, &tree, true);
    assert_eq!(before.len(), 200);
    for n in 0u32..200 {
        let key = n.to_be_bytes();
        match n % 5 {
            0 => tree.put(&key, b"single", Durability::Lazy).expect("put"),
            1 => assert!(tree.delete(&key, Durability::Lazy).expect("delete")),
            2 => {
                let mut back = txn(&db);
                back.delete(&tree, &key).expect("delete");
                back.put(&tree, &key, b"never").expect("put");
                back.insert(&tree, &(n + 1000).to_be_bytes(), b"never").expect("insert");
                back.rollback().expect("rollback");
            }
            3 => {
                let mut twice = txn(&db);
                twice.put(&tree, &key, &[7; 5_000]).expect("put a long one");
                twice.put(&tree, &key, b"twice").expect("put");
                let commit = twice.commit().expect("commit");
                db.wait(commit, Durability::Written).expect("wait");
            }
            _ => tree.put(&(n + 2000).to_be_bytes(), b"new", Durability::Lazy).expect("put"),
        }
        db.step().expect("step");
    }
    assert_eq!(all(&mut reader, &tree, true), before);
    assert_eq!(all(&mut reader, &tree, false), before);
    let mut now = txn(&db);
    let rows = all(&mut now, &tree, true);
    assert_eq!(rows, all(&mut now, &tree, false));
    assert_eq!(rows.len(), 200, "40 gone, 40 new");
    assert!(rows.iter().all(|(_, value)| value != b"never"));
    drop(reader);
    drop(now);
    for _ in 0..4 {
        db.step().expect("step");
    }
    assert_eq!(db.stats().history_transactions, 0, "older versions are not needed");
    tree.check(&mut |_| {}).expect("sound");
    db.close().expect("close");
}

#[test]
fn savepoints() {
    let db = open_sim(3);
    let tree = filled(&db, 3);
    let mut writer = txn(&db);
    let key = 0u32.to_be_bytes();
    writer.put(&tree, &key, b"kept").expect("put");
    let savepoint = writer.savepoint();
    writer.put(&tree, &key, b"dropped").expect("put");
    writer.delete(&tree, &1u32.to_be_bytes()).expect("delete");
    writer.put(&tree, &9u32.to_be_bytes(), &[1; 9_000]).expect("put");
    writer.rollback_to(savepoint).expect("rollback");
    assert_eq!(writer.get(&tree, &key).expect("get").as_deref(), Some(&b"kept"[..]));
    writer
        .update(&tree, &2u32.to_be_bytes(), |old, new| {
            new.extend_from_slice(old);
            new.push(b'!');
            true
        })
        .expect("update");
    writer.commit_durably(Durability::Synced).expect("commit");
    let mut now = txn(&db);
    let rows: Vec<_> = all(&mut now, &tree, true).into_iter().map(|(_, value)| value).collect();
    assert_eq!(rows, [b"kept".to_vec(), b"first".to_vec(), b"first!".to_vec()]);
    drop(now);
    tree.check(&mut |_| {}).expect("sound");
    db.close().expect("close");
}

#[test]
fn writers_exclude_each_other() {
    let db = open_sim(4);
    let tree = filled(&db, 3);
    let key = 1u32.to_be_bytes();
    let (mut one, mut two) = (txn(&db), txn(&db));
    one.put(&tree, &key, b"one").expect("put");
    let refused = two.put(&tree, &key, b"two").expect_err("it is locked");
    assert!(refused.is_retryable() && !refused.is_deadlock(), "{refused}");
    assert!(two.get_for_share(&tree, &key, &mut Vec::new()).is_err());
    one.rollback().expect("rollback");
    two.put(&tree, &key, b"two").expect("put");
    assert!(matches!(two.insert(&tree, &key, b"again"), Err(Error::Duplicate)));
    assert_eq!(two.get(&tree, &key).expect("get").as_deref(), Some(&b"two"[..]));
    two.commit_durably(Durability::Synced).expect("commit");

    let (mut one, mut two, mut three) = (txn(&db), txn(&db), txn(&db));
    let mut value = Vec::new();
    assert!(one.get_for_share(&tree, &key, &mut value).expect("share"));
    assert!(two.get_for_share(&tree, &key, &mut value).expect("share"));
    assert!(three.get_for_update(&tree, &key, &mut value).is_err());
    assert!(three.delete(&tree, &key).is_err());
    assert!(matches!(three.insert(&tree, &key, b"x"), Err(Error::Duplicate)), "it only looks");
    drop((one, two));
    assert!(three.get_for_update(&tree, &key, &mut value).expect("update"));
    assert!(!three.get_for_update(&tree, b"absent", &mut value).expect("a key without a row"));
    let mut four = txn(&db);
    assert!(four.insert(&tree, b"absent", b"x").is_err(), "the key is locked");
}

#[test]
fn snapshot_isolation_refuses_lost_updates() {
    let db = open_sim(5);
    let tree = filled(&db, 3);
    let key = 1u32.to_be_bytes();
    let mut strict = at(&db, Isolation::Snapshot);
    let mut lax = txn(&db);
    assert!(strict.get(&tree, &key).expect("get").is_some());
    assert!(lax.get(&tree, &key).expect("get").is_some());
    let mut other = txn(&db);
    other.put(&tree, &key, b"other").expect("put");
    let _ = other.commit().expect("commit");
    let refused = strict.put(&tree, &key, b"strict").expect_err("changed since");
    assert!(matches!(refused, Error::Transaction(TxnError::Conflict)), "{refused}");
    drop(strict);
    lax.put(&tree, &key, b"lax").expect("the latest is changed");
    let _ = lax.commit().expect("commit");
}

#[test]
fn the_first_updater_wins_behind_a_snapshot_that_a_read_has_taken() {
    let db = open_sim(5);
    let tree = filled(&db, 4);
    let key = |n: u32| n.to_be_bytes();
    let conflicts = |got: Result<bool, Error>| match got {
        Err(Error::Transaction(TxnError::Conflict)) => true,
        Ok(_) => false,
        Err(other) => panic!("{other}"),
    };
    let change = |n: u32| {
        let mut other = txn(&db);
        other.put(&tree, &key(n), b"other").expect("put");
        let _ = other.commit().expect("commit");
    };
    let strict = |isolation| {
        let mut txn = at(&db, isolation);
        txn.set_first_updater_wins(true);
        txn
    };

    // No read has taken a snapshot: nothing is too new.
    let mut blind = strict(Isolation::RepeatableRead);
    assert!(blind.delete(&tree, &key(0)).expect("the first change takes no snapshot"));
    change(1);
    assert!(!conflicts(blind.delete(&tree, &key(1))));
    drop(blind);

    let mut reader = strict(Isolation::RepeatableRead);
    assert!(reader.get(&tree, &key(0)).expect("get").is_some());
    change(1);
    change(3);
    let mut value = Vec::new();
    assert!(conflicts(reader.get_for_update(&tree, &key(1), &mut value)));
    assert!(conflicts(reader.get_for_share(&tree, &key(1), &mut value)));
    assert!(conflicts(reader.delete(&tree, &key(1))));
    assert!(conflicts(reader.put(&tree, &key(3), b"strict").map(|()| true)));
    // What has not changed is its own to change; what it has changed itself is never too new.
    for _ in 0..2 {
        assert!(!conflicts(reader.put(&tree, &key(2), b"strict").map(|()| true)));
    }
    // A row that has come, and one that has gone, since the snapshot.
    change(9);
    let mut other = txn(&db);
    assert!(other.delete(&tree, &key(0)).expect("delete"));
    let _ = other.commit().expect("commit");
    assert!(conflicts(reader.insert(&tree, &key(9), b"strict").map(|()| true)));
    assert!(conflicts(reader.put(&tree, &key(0), b"strict").map(|()| true)));
    // Switched off, it works on what is there.
    reader.set_first_updater_wins(false);
    assert!(!conflicts(reader.delete(&tree, &key(1))));
    drop(reader);

    // Each statement of a lower level has a snapshot of its own.
    let mut lower = strict(Isolation::ReadCommitted);
    assert!(lower.get(&tree, &key(2)).expect("get").is_some());
    change(2);
    assert!(!conflicts(lower.delete(&tree, &key(2))));
}

#[test]
fn a_locking_scan_meets_what_is_newer_than_the_snapshot() {
    let db = open_sim(5);
    let tree = filled(&db, 4);
    let mut reader = txn(&db);
    reader.set_first_updater_wins(true);
    assert!(reader.get(&tree, &0u32.to_be_bytes()).expect("get").is_some());
    let mut other = txn(&db);
    other.put(&tree, &2u32.to_be_bytes(), b"other").expect("put");
    let _ = other.commit().expect("commit");
    let mut scan = reader.cursor_for_update(&tree);
    assert!(scan.seek_first(&mut reader).expect("row 0 is as it was"));
    assert!(scan.next(&mut reader).expect("row 1 is as it was"));
    let refused = scan.next(&mut reader).expect_err("row 2 is newer");
    assert!(matches!(refused, Error::Transaction(TxnError::Conflict)), "{refused}");
}

#[test]
fn a_deadlock_ends_at_once_and_the_other_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), weir::Config::default()).expect("open");
    let tree = filled(&db, 2);
    let wait = TxnOptions { lock_wait: Wait::Until(Duration::from_secs(30)), ..Default::default() };
    let barrier = std::sync::Barrier::new(2);
    let run = |first: u32, second: u32| {
        let mut txn = db.begin(wait);
        txn.put(&tree, &first.to_be_bytes(), b"x").expect("put");
        barrier.wait();
        match txn.put(&tree, &second.to_be_bytes(), b"y") {
            Ok(()) => {
                txn.commit_durably(Durability::Lazy).expect("commit");
                0
            }
            Err(e) => {
                assert!(e.is_deadlock() && txn.has_ended(), "{e}");
                1
            }
        }
    };
    let deadlocks: usize = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1, 0));
        run(0, 1) + other.join().expect("a thread")
    });
    assert_eq!(deadlocks, 1);
    db.close().expect("close");
}

#[test]
fn a_refused_lock_leaves_nothing_in_the_way_of_the_writer() {
    let db = open_sim(6);
    let tree = filled(&db, 2);
    let key = 1u32.to_be_bytes();
    let (mut writer, mut other) = (txn(&db), txn(&db));
    writer.put(&tree, &key, b"one").expect("put");
    assert!(other.get_for_share(&tree, &key, &mut Vec::new()).is_err());
    assert!(other.get_for_update(&tree, &key, &mut Vec::new()).is_err());
    writer.put(&tree, &key, b"two").expect("its own row");
    let mut value = Vec::new();
    assert!(writer.get_for_update(&tree, &key, &mut value).expect("its own row"));
    assert_eq!(value, b"two");
    writer.commit_durably(Durability::Lazy).expect("commit");
    let mut third = txn(&db);
    third.put(&tree, &key, b"three").expect("the refused one holds nothing");
}

#[test]
fn a_refused_long_value_leaves_no_pages() {
    let db = open_sim(7);
    let tree = filled(&db, 2);
    let key = 1u32.to_be_bytes();
    let (mut writer, mut other) = (txn(&db), txn(&db));
    writer.put(&tree, &0u32.to_be_bytes(), b"x").expect("put");
    assert!(matches!(writer.insert(&tree, &key, &[1; 20_000]), Err(Error::Duplicate)));
    assert!(other.put(&tree, &0u32.to_be_bytes(), &[1; 20_000]).is_err());
    other.put(&tree, &key, b"y").expect("put");
    writer.commit_durably(Durability::Lazy).expect("commit");
    other.commit_durably(Durability::Lazy).expect("commit");
    let report = db.check(&mut |_, _| {}).expect("check");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn trees_come_and_go_with_their_transactions() {
    let db = open_sim(6);
    let kept = filled(&db, 50);
    let pages = db.stats().pages_allocated;
    let mut txn = txn(&db);
    let made = txn.create_tree("made").expect("create");
    for n in 0u32..300 {
        txn.put(&made, &n.to_be_bytes(), &[1; 60]).expect("put");
    }
    assert!(txn.tree("made").expect("look").is_some());
    assert!(db.tree("made").expect("look").is_none(), "not committed");
    assert!(matches!(txn.create_tree("t"), Err(Error::Name(_))));
    assert!(txn.rename_tree("t", "renamed").expect("rename"));
    assert!(txn.drop_tree("renamed").expect("drop"));
    assert!(!txn.drop_tree("renamed").expect("drop"));
    txn.rollback().expect("rollback");
    assert_eq!(db.tree_names().expect("names"), ["t"]);
    assert_eq!(db.stats().pages_allocated, pages, "all pages of the tree are free again");
    assert_eq!(kept.get(&7u32.to_be_bytes()).expect("get").as_deref(), Some(&b"first"[..]));

    let mut txn = self::txn(&db);
    assert!(txn.rename_tree("t", "u").expect("rename"));
    let made = txn.create_tree("t").expect("create");
    txn.put(&made, b"k", b"v").expect("put");
    txn.commit_durably(Durability::Synced).expect("commit");
    assert_eq!(db.tree_names().expect("names"), ["t", "u"]);
    assert!(db.drop_tree("u").expect("drop"));
    db.step().expect("step");
    assert!(db.stats().pages_allocated <= pages);
    let report = db.check(&mut |_, _| {}).expect("check");
    assert_eq!(report.problems, Vec::<String>::new());
    db.close().expect("close");
}

/// Prepared transactions survive crashes and restarts, hold their rows, show nothing, and end as
/// they are refused.
#[test]
fn prepared_transactions_survive() {
    for (crash, commit) in [(false, true), (false, false), (true, true), (true, false)] {
        let volume = SimVolume::new(70);
        let db = open(&volume).expect("a new database");
        let tree = filled(&db, 20);
        let mut branch = txn(&db);
        let key = |n: u32| n.to_be_bytes();
        branch.put(&tree, &key(1), b"Fresh").expect("put");
        branch.put(&tree, &key(1), b"fresH").expect("put");
        let before = branch.savepoint();
        branch.put(&tree, &key(2), b"never").expect("put");
        branch.rollback_to(before).expect("rollback");
        branch.put(&tree, &key(3), &[3; 9_000]).expect("put");
        branch.delete(&tree, &key(4)).expect("delete");
        branch.insert(&tree, &key(40), b"new").expect("insert");
        branch.create_tree("made").expect("create");
        branch.prepare(b"xid-1").expect("prepare");
        // The log goes round more than once meanwhile.
        let churn = |db: &Db, tree: &Tree| {
            for n in 0u32..3_000 {
                tree.put(&key(10 + n % 10), &[n as u8; 300], Durability::Lazy).expect("put");
                db.step().expect("step");
            }
        };
        churn(&db, &tree);
        let again = txn(&db);
        assert!(matches!(again.prepare(b"xid-1"), Err(Error::Name(_))));
        let db = if crash {
            tree.put(&key(19), b"last", Durability::Synced).expect("put");
            open(&volume.crash(7)).expect("recovery")
        } else {
            db.close().expect("close");
            open(&volume).expect("open")
        };
        assert_eq!(db.prepared(), [b"xid-1".to_vec()]);
        let tree = db.tree("t").expect("look").expect("the tree");
        let get = |n| tree.get(&key(n)).expect("get").map(|value| value.len());
        assert_eq!((get(1), get(3), get(4), get(40)), (Some(5), Some(5), Some(5), None));
        assert_eq!(tree.get(&key(1)).expect("get").as_deref(), Some(&b"first"[..]));
        assert!(txn(&db).put(&tree, &key(4), b"x").is_err(), "it is locked");
        assert!(txn(&db).insert(&tree, &key(40), b"x").is_err(), "it is locked");
        txn(&db).put(&tree, &key(2), b"y").expect("it is free");
        churn(&db, &tree);
        assert!(!db.rollback_prepared(b"another").expect("none"));
        if commit {
            assert!(db.commit_prepared(b"xid-1", Durability::Synced).expect("commit"));
            assert_eq!((get(1), get(3), get(4), get(40)), (Some(5), Some(9_000), None, Some(3)));
            assert_eq!(tree.get(&key(1)).expect("get").as_deref(), Some(&b"fresH"[..]));
        } else {
            assert!(db.rollback_prepared(b"xid-1").expect("rollback"));
            assert_eq!((get(1), get(3), get(4), get(40)), (Some(5), Some(5), Some(5), None));
        }
        assert_eq!(db.tree("made").expect("look").is_some(), commit);
        assert!(db.prepared().is_empty());
        db.step().expect("step");
        let report = db.check(&mut |_, _| {}).expect("check");
        assert_eq!(report.problems, Vec::<String>::new(), "crash {crash}, commit {commit}");
        db.close().expect("close");
    }
}

#[test]
fn an_idle_transaction_does_not_hold_the_log() {
    let volume = SimVolume::new(8);
    let db = open(&volume).expect("a new database");
    let tree = filled(&db, 3);
    let mut idle = txn(&db);
    idle.put(&tree, &0u32.to_be_bytes(), b"idle").expect("put");
    // Many times the log, by threads that do the background's work themselves.
    for n in 0..200u32 {
        let mut batch = weir::Batch::new();
        batch.put(&tree, &(100 + n % 7).to_be_bytes(), &vec![n as u8; 40_000]);
        db.write(&batch, Durability::Lazy).expect("a batch");
        tree.put(&1u32.to_be_bytes(), &[n as u8; 500], Durability::Lazy).expect("put");
    }
    assert!(db.stats().checkpoint > 4 << 20, "{}", db.stats().checkpoint);
    let found = volume.crash(1);
    drop((idle, tree, db));
    let db = open(&found).expect("recovered");
    let tree = db.open_tree("t").expect("the tree");
    let value = tree.get(&0u32.to_be_bytes()).expect("get");
    assert_eq!(value.as_deref(), Some(&b"first"[..]), "the idle one never committed");
}

/// A crash while a prepared transaction is being rolled back: it is prepared as a whole, or gone.
#[test]
fn half_of_a_prepared_transaction_is_never_found() {
    let value = |n: u32, byte: u8| vec![byte; 400 + n as usize % 50];
    let (mut whole, mut gone) = (0, 0);
    for round in 0..80 {
        let steps = round % 8;
        let volume = SimVolume::new(9);
        let db = open(&volume).expect("a new database");
        let tree = db.create_tree("t").expect("a tree");
        let mut txn = txn(&db);
        for n in 0..120u32 {
            tree.put(&n.to_be_bytes(), &value(n, 1), Durability::Lazy).expect("put");
            txn.put(&tree, &n.to_be_bytes(), &value(n, 2)).expect("put");
        }
        txn.prepare(b"x").expect("prepared");
        volume.set_crash_after(Some(steps));
        let _ = db.rollback_prepared(b"x");
        let _ = tree.put(b"last", b"", Durability::Synced);
        let found = volume.crash(round);
        drop((tree, db));
        let db = open(&found).expect("recovered");
        let tree = db.open_tree("t").expect("the tree");
        let is_prepared = db.commit_prepared(b"x", Durability::Lazy).expect("commit");
        *if is_prepared { &mut whole } else { &mut gone } += 1;
        for n in 0..120u32 {
            let found = tree.get(&n.to_be_bytes()).expect("get");
            let expected = value(n, if is_prepared { 2 } else { 1 });
            assert!(found == Some(expected), "{n}, {is_prepared}, after {steps} steps");
        }
    }
    assert!(whole > 0 && gone > 0, "{whole} {gone}");
}

/// A user's function runs without a latch: it may look at the row that it is asked about, and write
/// its neighbours in the same leaf, in any way that there is. It once stood for ever.
#[test]
fn a_function_that_makes_a_value_may_use_the_database() {
    let volume = SimVolume::new(5);
    let db = open(&volume).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    for key in [b"a", b"b", b"c"] {
        tree.put(key, b"0", Durability::Lazy).expect("a put");
    }
    for isolation in [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Snapshot,
        Isolation::Serializable,
    ] {
        tree.put(b"b", b"0", Durability::Lazy).expect("a put");
        let mut txn = db.begin(TxnOptions { isolation, lock_wait: Wait::No });
        let mut calls = 0;
        let updated = txn.update(&tree, b"b", |old, new| {
            calls += 1;
            assert_eq!(tree.get(b"b").expect("a read").as_deref(), Some(old));
            tree.put(b"a", &[calls], Durability::Lazy).expect("a put beside it");
            let mut other = db.begin(TxnOptions { isolation, lock_wait: Wait::No });
            other.put(&tree, b"c", &[calls]).expect("a put beside it");
            let _ = other.commit().expect("a commit");
            let mut cursor = tree.cursor();
            assert!(cursor.seek_first().expect("a look"));
            new.extend_from_slice(old);
            new.push(b'!');
            true
        });
        assert!(updated.expect("an update"), "{isolation:?}");
        assert_eq!(calls, 1, "only what changes the row itself makes it stale");
        let _ = txn.commit().expect("a commit");
        assert_eq!(tree.get(b"b").expect("a read").as_deref(), Some(&b"0!"[..]));
        assert_eq!(tree.get(b"c").expect("a read").as_deref(), Some(&[1][..]));
    }
}

/// What a function made of a row that has changed meanwhile is not written: the function is asked
/// again, and where that goes on, the row is locked for it.
#[test]
fn a_value_is_never_made_from_an_older_one() {
    let volume = SimVolume::new(5);
    let db = open(&volume).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"k", &[0], Durability::Lazy).expect("a put");
    let mut txn = db.begin(TxnOptions {
        isolation: Isolation::ReadCommitted,
        lock_wait: Wait::Until(std::time::Duration::from_millis(20)),
    });
    let (mut others, mut calls, mut locked) = (0, 0, false);
    let updated = txn.update(&tree, b"k", |old, new| {
        calls += 1;
        assert_eq!(old, [others]);
        let mut other =
            db.begin(TxnOptions { isolation: Isolation::ReadCommitted, lock_wait: Wait::No });
        match other.put(&tree, b"k", &[others + 1]) {
            Ok(()) => {
                let _ = other.commit().expect("a commit");
                others += 1;
            }
            Err(_) => locked = true,
        }
        new.push(100 + old[0]);
        true
    });
    assert!(updated.expect("an update"));
    assert!(locked && others > 0 && calls == others + 1, "{others} others, {calls} calls");
    let _ = txn.commit().expect("a commit");
    assert_eq!(tree.get(b"k").expect("a read"), Some(vec![100 + others]));
}
