//! Walks of which a move fails: going on misses nothing, and shows nothing that is not so.
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use weir::{
    Background, Config, Db, Durability, Error, FaultyVolume, Isolation, SimVolume, Tree, Txn,
    TxnCursor, TxnError, TxnOptions, Wait,
};
use weir_device::{Fault, OpKind, Outcome, Rule, When};

use crate::support::{open, tiny};

use Isolation::{ReadCommitted, RepeatableRead, Serializable};

fn key(n: u8) -> [u8; 2] {
    [b'k', n]
}

/// Rows at the even numbers from 2 to 18.
fn filled(seed: u64) -> (Db, Tree) {
    let db = open(&SimVolume::new(seed)).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    for n in (2..20).step_by(2) {
        tree.put(&key(n), &[n; 200], Durability::Lazy).expect("put");
    }
    (db, tree)
}

fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

fn number(cursor: &TxnCursor) -> u8 {
    cursor.key()[1]
}

/// The error of a move that met a lock. The cursor shows nothing after it.
fn refused(cursor: &TxnCursor, moved: Result<bool, Error>) {
    let e = moved.expect_err("the row is locked");
    assert!(e.is_retryable(), "{e}");
    assert!(cursor.key().is_empty() && cursor.value().is_empty() && !cursor.is_unlocked());
}

/// Walks over the rows from 4 to 16, of which 10 is locked until that has been met a few times,
/// written or not; returns the numbers met, and whether a row could be added beside 10 then.
fn walk_into(db: &Db, tree: &Tree, txn: &mut Txn, way: Way) -> (Vec<u8>, bool) {
    let mut holder = at(db, ReadCommitted);
    if way.written {
        holder.put(tree, &key(10), b"not yet").expect("put");
    } else {
        assert!(holder.get_for_update(tree, &key(10), &mut Vec::new()).expect("locked"));
    }
    let mut holder = Some(holder);
    let mut cursor =
        if way.exclusive { txn.cursor_for_update(tree) } else { txn.cursor_for_share(tree) };
    cursor.set_bounds(&key(4), Some(&key(17)));
    let step = |cursor: &mut TxnCursor, txn: &mut Txn| {
        if way.up { cursor.next(txn) } else { cursor.prev(txn) }
    };
    let mut on = if way.up { cursor.seek_first(txn) } else { cursor.seek_last(txn) };
    let (mut met, mut added) = (Vec::new(), false);
    loop {
        match on {
            Ok(true) => met.push(number(&cursor)),
            Ok(false) => break,
            failed => {
                refused(&cursor, failed);
                for _ in 0..3 {
                    let again = step(&mut cursor, txn);
                    refused(&cursor, again);
                }
                holder.take().expect("met once").rollback().expect("rollback");
                let between = key(if way.up { 9 } else { 11 });
                let mut other = at(db, ReadCommitted);
                added = other.put(tree, &between, &[between[1]; 200]).is_ok();
                other.commit_durably(Durability::Lazy).expect("commit");
            }
        }
        on = step(&mut cursor, txn);
    }
    assert!(holder.is_none(), "the lock was not met");
    if !way.up {
        met.reverse();
    }
    (met, added)
}

#[derive(Clone, Copy, Debug)]
struct Way {
    up: bool,
    exclusive: bool,
    written: bool,
}

#[test]
fn a_walk_comes_to_the_row_that_it_could_not_lock() {
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        for case in 0..8 {
            let bit = |n: u32| case >> n & 1 == 1;
            let way = Way { up: bit(0), exclusive: bit(1), written: bit(2) };
            let (db, tree) = filled(1);
            let mut txn = at(&db, level);
            let (met, added) = walk_into(&db, &tree, &mut txn, way);
            // What could not be locked is not: nor what lies between it and the row before.
            assert!(added || way.written && level != ReadCommitted, "{level:?} {way:?}");
            let expected: &[u8] = match (added, way.up) {
                (false, _) => &[4, 6, 8, 10, 12, 14, 16],
                (true, true) => &[4, 6, 8, 9, 10, 12, 14, 16],
                (true, false) => &[4, 6, 8, 10, 11, 12, 14, 16],
            };
            assert_eq!(met, expected, "{level:?} {way:?}");
            for n in (4..17).filter(|_| level != ReadCommitted) {
                let put = at(&db, ReadCommitted).put(&tree, &key(n), b"x");
                assert!(put.is_err(), "{level:?} {way:?}: {n} can be written");
            }
        }
    }
}

#[test]
fn it_comes_back_the_other_way() {
    for level in [ReadCommitted, RepeatableRead] {
        let (db, tree) = filled(2);
        let mut holder = at(&db, ReadCommitted);
        holder.put(&tree, &key(10), b"not yet").expect("put");
        let mut txn = at(&db, level);
        let mut cursor = txn.cursor_for_update(&tree);
        assert!(cursor.seek(&mut txn, &key(8)).expect("seek"));
        let moved = cursor.next(&mut txn);
        refused(&cursor, moved);
        assert!(cursor.prev(&mut txn).expect("prev"), "{level:?}");
        assert_eq!(number(&cursor), 8, "{level:?}");
        assert!(cursor.seek(&mut txn, &key(12)).expect("seek"));
        let moved = cursor.prev(&mut txn);
        refused(&cursor, moved);
        assert!(cursor.next(&mut txn).expect("next"), "{level:?}");
        assert_eq!(number(&cursor), 12, "{level:?}");
    }
}

/// A way to a row that is locked, the step that tries again, and the one the other way, with what
/// that comes to.
type Seeking = (fn(&mut TxnCursor, &mut Txn) -> Result<bool, Error>, bool, Option<u8>);

#[test]
fn a_place_that_could_not_be_gone_to_is_gone_to_by_the_next_step() {
    let cases: [(u8, Seeking); 4] = [
        (10, (|cursor, txn| cursor.seek(txn, &key(9)), true, Some(8))),
        (10, (|cursor, txn| cursor.seek_before(txn, &key(11)), false, Some(12))),
        (2, (TxnCursor::seek_first, true, None)),
        (18, (TxnCursor::seek_last, false, None)),
    ];
    for level in [ReadCommitted, RepeatableRead] {
        for (locked, (seek, up, other)) in cases {
            for back in [false, true] {
                let (db, tree) = filled(3);
                let mut holder = at(&db, ReadCommitted);
                holder.put(&tree, &key(locked), &[locked; 200]).expect("put");
                let mut txn = at(&db, level);
                let mut cursor = txn.cursor_for_update(&tree);
                let moved = seek(&mut cursor, &mut txn);
                refused(&cursor, moved);
                if back {
                    let on = if up { cursor.prev(&mut txn) } else { cursor.next(&mut txn) };
                    assert_eq!(on.expect("free").then(|| number(&cursor)), other);
                    continue;
                }
                let moved = if up { cursor.next(&mut txn) } else { cursor.prev(&mut txn) };
                refused(&cursor, moved);
                holder.commit_durably(Durability::Lazy).expect("commit");
                let moved = if up { cursor.next(&mut txn) } else { cursor.prev(&mut txn) };
                assert!(moved.expect("free"), "{level:?} {locked}");
                assert_eq!((number(&cursor), cursor.value()), (locked, &[locked; 200][..]));
            }
        }
    }
}

#[test]
fn lock_current_can_be_tried_again() {
    for down in [false, true] {
        let (db, tree) = filled(4);
        let mut holder = at(&db, ReadCommitted);
        holder.put(&tree, &key(10), &[1; 200]).expect("put");
        let mut txn = at(&db, ReadCommitted);
        let mut cursor = txn.cursor_for_update(&tree);
        cursor.set_semi_consistent(true);
        assert!(cursor.seek(&mut txn, &key(10)).expect("unlocked") && cursor.is_unlocked());
        for _ in 0..2 {
            let moved = cursor.lock_current(&mut txn, down);
            refused(&cursor, moved);
        }
        // Or looks at it once more.
        let moved = if down { cursor.prev(&mut txn) } else { cursor.next(&mut txn) };
        assert!(moved.expect("unlocked") && cursor.is_unlocked());
        assert_eq!((number(&cursor), cursor.value()), (10, &[10; 200][..]));
        let moved = cursor.lock_current(&mut txn, down);
        refused(&cursor, moved);
        holder.commit_durably(Durability::Lazy).expect("commit");
        assert!(cursor.lock_current(&mut txn, down).expect("free") && !cursor.is_unlocked());
        assert_eq!((number(&cursor), cursor.value()), (10, &[1; 200][..]));
    }
}

#[test]
fn a_visit_that_met_a_lock_goes_on_there() {
    let (db, tree) = filled(5);
    let mut holder = at(&db, ReadCommitted);
    holder.put(&tree, &key(10), b"not yet").expect("put");
    let mut txn = at(&db, RepeatableRead);
    let mut cursor = txn.cursor_for_share(&tree);
    let mut met = Vec::new();
    let mut visit = |cursor: &mut TxnCursor, txn: &mut Txn| {
        cursor.visit(txn, |key, _| {
            met.push(key[1]);
            ControlFlow::Continue(())
        })
    };
    assert!(cursor.seek_first(&mut txn).expect("seek"));
    assert!(visit(&mut cursor, &mut txn).is_err());
    assert!(visit(&mut cursor, &mut txn).is_err());
    holder.rollback().expect("rollback");
    visit(&mut cursor, &mut txn).expect("free");
    assert_eq!(met, [2, 4, 6, 8, 10, 12, 14, 16, 18]);
}

/// Short rows and long ones on more pages than the pool holds, some of them gone.
fn on_disk(volume: &FaultyVolume) -> (Db, Tree, Vec<Vec<u8>>) {
    let config = Config { pages_max: 1 << 12, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..500u32 {
        let long = if n % 40 == 7 { 9_000 } else { 600 };
        tree.put(&n.to_be_bytes(), &vec![n as u8; long], Durability::Lazy).expect("a put");
    }
    for n in (0..500u32).filter(|n| n % 7 == 3) {
        assert!(tree.delete(&n.to_be_bytes(), Durability::Lazy).expect("a delete"));
    }
    db.checkpoint().expect("a checkpoint");
    let keys = (0..500u32).filter(|n| n % 7 != 3).map(|n| n.to_be_bytes().to_vec()).collect();
    (db, tree, keys)
}

/// Tries again until it is done; returns how often it failed.
fn persistent<T>(mut act: impl FnMut() -> Result<T, Error>) -> (T, u32) {
    let mut failures = 0;
    loop {
        match act() {
            Ok(done) => return (done, failures),
            Err(Error::Io { .. }) => failures += 1,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Goes through all rows, of which one read of a page fails.
fn walk(db: &Db, tree: &Tree, how: How) -> (Vec<Vec<u8>>, u32) {
    let (mut met, mut failures) = (Vec::new(), 0);
    let mut txn = db.begin(TxnOptions::default());
    let (mut seen, mut plain) = (txn.cursor(tree), tree.cursor());
    let mut seek = || match how {
        How::Up | How::Visit => seen.seek_first(&mut txn),
        How::Down => seen.seek_last(&mut txn),
        How::UpAlone | How::VisitAlone => plain.seek_first(),
        How::DownAlone => plain.seek_last(),
    };
    let (mut on, failed) = persistent(&mut seek);
    failures += failed;
    let mut note = |key: &[u8], value: &[u8]| {
        assert!(value.len() >= 600 && value.iter().all(|&byte| byte == key[3]));
        met.push(key.to_vec());
        ControlFlow::Continue(())
    };
    while on {
        let moved = persistent(|| match how {
            How::Visit => seen.visit(&mut txn, &mut note).map(|()| false),
            How::VisitAlone => plain.visit(&mut note).map(|()| false),
            How::Up | How::Down => {
                if !seen.key().is_empty() {
                    let _ = note(seen.key(), seen.value());
                }
                if how == How::Up { seen.next(&mut txn) } else { seen.prev(&mut txn) }
            }
            How::UpAlone | How::DownAlone => {
                if !plain.key().is_empty() {
                    let _ = note(plain.key(), plain.row().1);
                }
                if how == How::UpAlone { plain.next() } else { plain.prev() }
            }
        });
        on = moved.0;
        failures += moved.1;
    }
    if matches!(how, How::Down | How::DownAlone) {
        met.reverse();
    }
    (met, failures)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Up,
    Down,
    Visit,
    UpAlone,
    DownAlone,
    VisitAlone,
}

#[test]
fn a_read_that_fails_once_costs_no_row() {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(6)));
    let (db, tree, keys) = on_disk(&volume);
    for how in [How::Up, How::Down, How::Visit, How::UpAlone, How::DownAlone, How::VisitAlone] {
        let mut failed = 0;
        for nth in 1.. {
            let (name_prefix, op) = ("pages".into(), OpKind::Read);
            let outcome = Outcome::Error(Fault::Broken);
            let rule = volume.add(Rule { name_prefix, op, when: When::Nth(nth), outcome });
            let (met, failures) = walk(&db, &tree, how);
            assert!(met == keys, "{how:?}, read {nth}: {} rows, {failures} errors", met.len());
            let hits = volume.hits(rule);
            volume.clear();
            if hits == 0 {
                break;
            }
            failed += failures;
        }
        assert!(failed > 20, "{how:?}: only {failed} reads failed");
    }
}

/// A transaction that a deadlock has ended as it did `last`, for which it had to lock key 18;
/// `first` is done with it before.
fn ended_by<T>(
    db: &Db,
    tree: &Tree,
    isolation: Isolation,
    first: impl FnOnce(&mut Txn) -> T,
    last: impl FnOnce(&mut Txn) -> Result<(), Error>,
) -> (Txn, T) {
    let lock_wait = Wait::Until(Duration::from_secs(30));
    let mut txn = db.begin(TxnOptions { isolation, lock_wait });
    let done = first(&mut txn);
    // The transaction that has changed more goes on.
    let mut other = db.begin(TxnOptions { isolation: ReadCommitted, lock_wait });
    for n in 30..40 {
        other.put(tree, &key(n), b"more").expect("put");
    }
    txn.put(tree, &key(2), b"mine").expect("put");
    other.put(tree, &key(18), b"theirs").expect("put");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            other.put(tree, &key(2), b"theirs")?;
            other.commit_durably(Durability::Lazy)
        });
        while db.stats().locks.waiting == 0 {
            std::thread::yield_now();
        }
        let e = last(&mut txn).expect_err("a deadlock");
        assert!(e.is_deadlock() && txn.has_ended(), "{e}");
        waits.join().expect("a thread").expect("the other one goes on");
    });
    (txn, done)
}

/// As [`ended_by`], by a change.
fn ended<T>(
    db: &Db,
    tree: &Tree,
    isolation: Isolation,
    first: impl FnOnce(&mut Txn) -> T,
) -> (Txn, T) {
    ended_by(db, tree, isolation, first, |txn| txn.put(tree, &key(18), b"mine"))
}

fn evens(dir: &tempfile::TempDir) -> (Db, Tree) {
    let config = Config { background: Background::Threads, ..tiny() };
    let db = Db::open(dir.path(), config).expect("open");
    let tree = db.create_tree("t").expect("a tree");
    for n in (2..20).step_by(2) {
        tree.put(&key(n), b"old", Durability::Lazy).expect("put");
    }
    (db, tree)
}

#[test]
fn a_statement_that_a_deadlock_ends_holds_no_snapshot() {
    for way in 0..4 {
        let dir = tempfile::tempdir().expect("a directory");
        let (db, tree) = evens(&dir);
        let last = |txn: &mut Txn| match way {
            0 => txn.delete(&tree, &key(18)).map(drop),
            1 => txn.get_for_share(&tree, &key(18), &mut Vec::new()).map(drop),
            2 => txn.cursor_for_update(&tree).seek(txn, &key(17)).map(drop),
            _ => txn.drop_tree("t").map(drop),
        };
        let (txn, ()) = ended_by(&db, &tree, ReadCommitted, Txn::begin_statement, last);
        assert_eq!(db.stats().snapshots, 0, "{way}");
        drop(txn);
        db.close().expect("close");
    }
}

#[test]
fn a_cursor_ends_with_its_transaction() {
    for isolation in [Isolation::ReadUncommitted, ReadCommitted, RepeatableRead, Serializable] {
        let dir = tempfile::tempdir().expect("a directory");
        let (db, tree) = evens(&dir);
        let (mut txn, mut cursor) = ended(&db, &tree, isolation, |txn| {
            let mut cursor = txn.cursor(&tree);
            assert!(cursor.seek(txn, &key(4)).expect("seek"));
            cursor
        });
        let has_ended = |moved: Result<bool, Error>| {
            assert!(matches!(moved, Err(Error::Transaction(TxnError::Ended))), "{moved:?}");
        };
        for _ in 0..2 {
            has_ended(cursor.next(&mut txn));
            has_ended(cursor.prev(&mut txn));
            has_ended(cursor.seek(&mut txn, &key(6)));
            has_ended(cursor.seek_first(&mut txn));
            has_ended(cursor.visit(&mut txn, |_, _| panic!("a row")).map(|()| true));
        }
        has_ended(txn.cursor(&tree).seek_last(&mut txn));
        drop(cursor);
        // Nothing of what it could still be told to do holds a snapshot.
        txn.take_snapshot();
        txn.begin_statement();
        assert_eq!(txn.snapshot_sequence(), None);
        let moment = db.snapshot();
        txn.share(&moment).expect("of this database");
        drop(moment);
        assert_eq!(db.stats().snapshots, 0, "{isolation:?}");
        drop(txn);
        db.close().expect("close");
    }
}
