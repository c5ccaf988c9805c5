//! What a host process needs: statements that see one moment, waits that can be ended.
use std::time::{Duration, Instant};

use weir::{Db, Durability, Error, Isolation, LockError, SimVolume, TxnError, TxnOptions, Wait};

use crate::support::open;

fn at(db: &Db, isolation: Isolation, lock_wait: Wait) -> weir::Txn {
    db.begin(TxnOptions { isolation, lock_wait })
}

#[test]
fn a_read_committed_statement_sees_one_moment_and_the_next_one_another() {
    let db = open(&SimVolume::new(1)).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    tree.put(b"a", b"1", Durability::Lazy).expect("put");
    let mut txn = at(&db, Isolation::ReadCommitted, Wait::No);
    txn.begin_statement();
    let mut cursor = txn.cursor(&tree);
    tree.put(b"a", b"2", Durability::Lazy).expect("put");
    assert_eq!(txn.get(&tree, b"a").expect("get").as_deref(), Some(&b"1"[..]));
    assert!(cursor.seek_first(&mut txn).expect("seek"));
    assert_eq!(cursor.value(), b"1");
    txn.put(&tree, b"b", b"own").expect("put");
    assert_eq!(txn.get(&tree, b"b").expect("get").as_deref(), Some(&b"own"[..]));
    txn.begin_statement();
    assert_eq!(txn.get(&tree, b"a").expect("get").as_deref(), Some(&b"2"[..]));
    txn.end_statement();
    tree.put(b"a", b"3", Durability::Lazy).expect("put");
    assert_eq!(txn.get(&tree, b"a").expect("get").as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_wait_is_ended_from_outside_and_a_late_end_is_forgotten() {
    let db = open(&SimVolume::new(2)).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    let mut holder = at(&db, Isolation::ReadCommitted, Wait::No);
    holder.put(&tree, b"a", b"1").expect("put");
    let wait = Wait::Until(Duration::from_secs(60));
    let mut waiter = at(&db, Isolation::ReadCommitted, wait);
    let number = waiter.number().expect("a number");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let begun = Instant::now();
            let ended = waiter.put(&tree, b"a", b"2");
            (ended, begun.elapsed(), waiter)
        });
        db.cancel_lock_wait(number);
        let (ended, waited, mut waiter) = waits.join().expect("no panic");
        assert!(matches!(ended, Err(Error::Transaction(TxnError::Lock(LockError::Killed)))));
        assert!(waited < Duration::from_secs(30), "it waited {waited:?}");
        db.cancel_lock_wait(number);
        waiter.begin_statement();
        waiter.set_lock_wait(Wait::Until(Duration::from_millis(1)));
        let ended = waiter.put(&tree, b"a", b"2");
        assert!(matches!(
            ended,
            Err(Error::Transaction(TxnError::Lock(LockError::TimedOut { .. })))
        ));
    });
}
