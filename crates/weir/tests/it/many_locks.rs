//! Locks take no more memory than they may: scans lock ranges in the place of rows when little is
//! left, and what still wants more is refused, with all that it holds kept.
use std::sync::Arc;

use weir::{
    Config, Db, Durability, Error, Isolation, SimVolume, Tree, Txn, TxnError, TxnOptions, Wait,
};

use crate::support::tiny;

use Isolation::{ReadCommitted, RepeatableRead};

const ROWS: u32 = 12_000;
const LOCKS_MAX: u64 = 1 << 20;

fn filled() -> (Db, Tree) {
    let config =
        Config { locks_max_bytes: Some(LOCKS_MAX), pool_bytes: 4 << 20, pages_max: 4096, ..tiny() };
    let db = Db::open_on(Arc::new(SimVolume::new(5)), config).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..ROWS {
        tree.put(&key(n), b"a row", Durability::Lazy).expect("put");
        if n % 64 == 0 {
            db.step().expect("step");
        }
    }
    (db, tree)
}

/// Between two of them is room for another.
fn key(n: u32) -> [u8; 4] {
    (2 * n).to_be_bytes()
}

fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

fn scan(txn: &mut Txn, tree: &Tree, skips: bool) -> (u32, Result<(), Error>) {
    let mut cursor = txn.cursor_for_update(tree);
    if skips {
        cursor.skip_locked();
    }
    let mut met = 0;
    let mut on = cursor.seek_first(txn);
    while let Ok(true) = on {
        met += 1;
        on = cursor.next(txn);
    }
    (met, on.map(|_| ()))
}

fn is_too_many(e: &Error) -> bool {
    matches!(e, Error::Transaction(TxnError::TooManyLocks { .. })) && !e.is_retryable()
}

fn can_put(db: &Db, tree: &Tree, key: &[u8]) -> bool {
    let mut other = at(db, ReadCommitted);
    let put = other.put(tree, key, b"other");
    other.rollback().expect("rollback");
    put.is_ok()
}

fn bytes(db: &Db) -> u64 {
    db.stats().locks.bytes
}

#[test]
fn a_scan_at_read_committed_locks_ranges_when_rows_would_take_too_much() {
    let (db, tree) = filled();
    let mut txn = at(&db, ReadCommitted);
    let (met, end) = scan(&mut txn, &tree, false);
    end.expect("to the end");
    assert_eq!(met, ROWS);
    assert!(bytes(&db) < LOCKS_MAX * 6 / 10, "{}", bytes(&db));
    assert!(bytes(&db) > LOCKS_MAX / 2, "rows as long as there was room: {}", bytes(&db));
    for n in [0, 1, 500, ROWS / 2, ROWS - 1] {
        assert!(!can_put(&db, &tree, &key(n)), "row {n} is locked");
    }
    assert!(can_put(&db, &tree, &(2 * 10 + 1u32).to_be_bytes()), "the first are rows");
    txn.rollback().expect("rollback");
    assert_eq!(bytes(&db), 0);
    assert!(can_put(&db, &tree, &key(5)));
}

#[test]
fn a_scan_at_repeatable_read_takes_little_however_long_it_is() {
    let (db, tree) = filled();
    let mut txn = at(&db, RepeatableRead);
    assert_eq!(scan(&mut txn, &tree, false).0, ROWS);
    assert!(bytes(&db) < 2_000, "{}", bytes(&db));
    drop(txn);
    assert_eq!(bytes(&db), 0);
}

#[test]
fn a_lock_too_many_is_refused_and_those_held_are_kept() {
    let (db, tree) = filled();
    let other = db.create_tree("other").expect("a tree");
    let mut txn = at(&db, ReadCommitted);
    txn.put(&other, b"k", b"changed").expect("a change");
    let (mut refused, mut out) = (None, Vec::new());
    for n in 0..ROWS {
        if let Err(e) = txn.get_for_update(&tree, &key(n), &mut out) {
            refused = Some((n, e));
            break;
        }
    }
    let (n, e) = refused.expect("locks end");
    assert!(is_too_many(&e) && n > 3_000, "{n}: {e}");
    assert!(e.to_string().contains("lock fewer rows"), "{e}");
    assert!(bytes(&db) <= LOCKS_MAX + 1_000);
    assert!(!can_put(&db, &tree, &key(0)) && can_put(&db, &tree, &key(n)));
    // Another one that wants few gets them.
    let mut small = at(&db, ReadCommitted);
    for n in n + 1..n + 500 {
        small.get_for_update(&tree, &key(n), &mut out).expect("few are always had");
    }
    drop(small);
    // What it has not locked it may still change, and all of it is committed.
    txn.put(&other, b"l", b"changed").expect("a change");
    db.wait(txn.commit().expect("a commit"), Durability::Synced).expect("durable");
    assert_eq!(bytes(&db), 0);
    assert_eq!(other.get(b"k").expect("a read"), Some(b"changed".to_vec()));
    assert_eq!(other.get(b"l").expect("a read"), Some(b"changed".to_vec()));
}

#[test]
fn skipping_what_is_locked_ends_where_locks_do() {
    let (db, tree) = filled();
    let mut txn = at(&db, RepeatableRead);
    let (met, end) = scan(&mut txn, &tree, true);
    assert!(end.is_err_and(|e| is_too_many(&e)));
    assert!((3_000..ROWS).contains(&met), "{met}");
    // To a savepoint, and on with other things.
    txn.rollback().expect("rollback");
    assert_eq!(bytes(&db), 0);
}

#[test]
fn rows_given_up_on_the_way_make_place() {
    let (db, tree) = filled();
    let mut txn = at(&db, ReadCommitted);
    let mut cursor = txn.cursor_for_update(&tree);
    let mut on = cursor.seek_first(&mut txn).expect("seek");
    let mut met = 0;
    while on {
        met += 1;
        txn.release_between(0..txn.lock_mark(), [&tree].into_iter());
        on = cursor.next(&mut txn).expect("a step: nothing is held");
    }
    assert_eq!((met, db.stats().locks.ranges), (ROWS, 0));
}
