//! The feature `server`: waits that are seen and ended, statements, metrics.
use std::collections::HashSet;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use weirdb::{Conflict, Error, Isolation, LockWait, TxnOptions};

use crate::new;

#[test]
fn a_wait_is_seen_and_ended_by_another_thread() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "v").expect("put");
    let mut holder = db.write();
    holder.put(&tree, "k", "w").expect("put");
    let owner = holder.number().expect("a number");
    let (told, numbers) = mpsc::channel();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut txn = db.write_with(TxnOptions::new().isolation(Isolation::ReadCommitted));
            txn.set_lock_wait(LockWait::Forever);
            told.send(txn.number().expect("a number")).expect("heard");
            let done = txn.put(&tree, "k", "x");
            assert!(matches!(done, Err(Error::Conflict(Conflict::Interrupted))), "{done:?}");
            // It goes on, and its next wait is not ended.
            txn.begin_statement();
            txn.set_lock_wait(LockWait::AtMost(Duration::from_millis(10)));
            let done = txn.put(&tree, "k", "x");
            assert!(matches!(done, Err(Error::Conflict(Conflict::LockTimeout { .. }))), "{done:?}");
            txn.put(&tree, "other", "x").expect("put");
            txn.commit().expect("committed");
        });
        let number = numbers.recv().expect("told");
        // The row is the holder's by a lock, now that another transaction waits for it.
        loop {
            let locks = db.locks().expect("read");
            let waits = locks.iter().any(|lock| lock.owner == number && lock.is_waiting);
            if waits {
                assert!(locks.iter().any(|lock| lock.owner == owner && !lock.is_waiting));
                assert!(locks.iter().all(|lock| lock.tree == "t" && lock.key == b"k"), "{locks:?}");
                break;
            }
            thread::yield_now();
        }
        db.interrupt(number);
        waiter.join().expect("it ended");
    });
    holder.rollback().expect("rolled back");
    assert_eq!(db.locks().expect("read"), []);
    assert_eq!(tree.get("other").expect("read").as_deref(), Some(&b"x"[..]));
}

#[test]
fn the_reads_of_a_statement_are_of_one_moment() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "1").expect("put");
    let mut txn = db.write_with(TxnOptions::new().isolation(Isolation::ReadCommitted));
    let seen = |txn: &weirdb::WriteTxn| txn.get(&tree, "k").expect("read").expect("there");
    txn.begin_statement();
    assert_eq!(seen(&txn), *b"1");
    tree.put("k", "2").expect("put");
    assert_eq!(seen(&txn), *b"1");
    txn.end_statement();
    assert_eq!(seen(&txn), *b"2");
    let mut early = db.write();
    early.take_snapshot();
    tree.put("k", "3").expect("put");
    assert_eq!(seen(&early), *b"2");
}

#[test]
fn numbers_have_names_and_closed_databases_none_of_locks() {
    let (_dir, db) = new();
    db.open_tree("t").expect("made").put("k", "v").expect("put");
    let metrics = db.metrics();
    let names: HashSet<_> = metrics.iter().map(|metric| &metric.name).collect();
    assert!(names.len() == metrics.len() && metrics.len() > 50, "{}", metrics.len());
    assert!(metrics.iter().all(|m| m.name.starts_with("weir_") && !m.help.is_empty()));
    let commits = metrics.iter().find(|metric| metric.name == "weir_commits");
    assert!(commits.is_none_or(|metric| metric.is_counter && metric.value >= 1.0));
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let done = db.set_recovery_seconds(wrong);
        assert!(matches!(done, Err(Error::InvalidInput(_))), "{done:?}");
    }
    db.set_recovery_seconds(5.0).expect("set");
    let mut txn = db.write();
    let number = txn.number().expect("a number");
    db.clone().close().expect("closed");
    assert!(matches!(db.locks(), Err(Error::Closed)));
    db.interrupt(number);
    assert!(!number.to_string().is_empty() && number.get() > 0);
    txn.begin_statement();
    txn.end_statement();
}
