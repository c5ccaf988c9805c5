//! Locking scans: what they keep others from, what they wait for, and what is serialisable.
use std::sync::Barrier;
use std::time::Duration;

use weir::{
    Config, Db, Durability, Error, Isolation, SimVolume, Tree, Txn, TxnCursor, TxnOptions, Wait,
};

use crate::support::open;

use Isolation::{ReadCommitted, RepeatableRead, Serializable, Snapshot};

/// Rows at the even numbers below 100.
fn filled(seed: u64) -> (Db, Tree) {
    let db = open(&SimVolume::new(seed)).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    // Long enough for a few leaves.
    for n in (0..100).step_by(2) {
        tree.put(&key(n), &[n; 200], Durability::Lazy).expect("put");
    }
    (db, tree)
}

fn key(n: u8) -> [u8; 2] {
    [b'k', n]
}

fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

/// Moves through the bounds and returns the numbers met.
fn scan(txn: &mut Txn, mut cursor: TxnCursor, from: u8, to: u8, up: bool) -> Vec<u8> {
    cursor.set_bounds(&key(from), Some(&key(to)));
    let mut met = Vec::new();
    let mut on = if up { cursor.seek_first(txn) } else { cursor.seek_last(txn) }.expect("seek");
    while on {
        assert_eq!(cursor.value(), [cursor.key()[1]; 200]);
        met.push(cursor.key()[1]);
        on = if up { cursor.next(txn) } else { cursor.prev(txn) }.expect("step");
    }
    assert!(cursor.key().is_empty() && cursor.value().is_empty());
    if !up {
        met.reverse();
    }
    met
}

fn even(from: u8, to: u8) -> Vec<u8> {
    (from..to).filter(|n| n % 2 == 0).collect()
}

/// Whether another transaction may change this key: insert, update or delete, as it stands.
fn is_free(db: &Db, tree: &Tree, n: u8) -> bool {
    let mut other = at(db, ReadCommitted);
    let is_row = tree.get(&key(n)).expect("get").is_some();
    let put = other.put(tree, &key(n), b"x");
    let second = if is_row {
        other.delete(tree, &key(n)).map(|_| ())
    } else {
        other.insert(tree, &key(n), b"x").or_else(|e| match e {
            Error::Duplicate => Ok(()),
            e => Err(e),
        })
    };
    assert_eq!(put.is_ok(), second.is_ok(), "{n}");
    other.rollback().expect("rollback");
    put.is_ok()
}

#[test]
fn what_was_scanned_stays_as_it_was() {
    for level in [RepeatableRead, Snapshot, Serializable] {
        for (up, exclusive) in [(true, true), (true, false), (false, true), (false, false)] {
            let (db, tree) = filled(1);
            let mut txn = at(&db, level);
            let cursor =
                if exclusive { txn.cursor_for_update(&tree) } else { txn.cursor_for_share(&tree) };
            assert_eq!(scan(&mut txn, cursor, 11, 91, up), even(11, 91));
            for n in 0..100 {
                assert_eq!(is_free(&db, &tree, n), !(11..91).contains(&n), "{level:?} {n}");
            }
            let mut reader = at(&db, level);
            assert!(reader.get_for_share(&tree, &key(50), &mut Vec::new()).is_ok() != exclusive);
            drop(reader);
            let mut reader = at(&db, Isolation::Snapshot);
            assert!(reader.get(&tree, &key(50)).expect("readers do not wait").is_some());
            drop(reader);
            drop(txn);
            for n in 10..92 {
                assert!(is_free(&db, &tree, n), "released at the end");
            }
            assert_eq!(db.stats().locks.ranges, 0);
        }
    }
}

#[test]
fn below_repeatable_read_only_rows_are_locked() {
    let (db, tree) = filled(2);
    let mut txn = at(&db, ReadCommitted);
    let cursor = txn.cursor_for_update(&tree);
    assert_eq!(scan(&mut txn, cursor, 10, 20, true), even(10, 20));
    for n in 0..100 {
        let is_locked = (10..20).contains(&n) && n % 2 == 0;
        assert_eq!(is_free(&db, &tree, n), !is_locked, "{n}");
    }
}

#[test]
fn a_scan_locks_only_what_it_has_passed() {
    let (db, tree) = filled(3);
    let mut txn = at(&db, RepeatableRead);
    let mut cursor = txn.cursor_for_share(&tree);
    assert!(cursor.seek(&mut txn, &key(41)).expect("seek"));
    assert_eq!(cursor.key(), key(42));
    assert!(cursor.next(&mut txn).expect("next"));
    let free = |n| is_free(&db, &tree, n);
    assert!(free(40) && !free(41) && !free(42) && !free(43) && !free(44) && free(45) && free(46));
    let mut other = at(&db, RepeatableRead);
    other.insert(&tree, &key(45), &[45; 200]).expect("before it comes there");
    let refused = cursor.next(&mut txn).expect_err("it comes to a row that is not committed");
    assert!(refused.is_retryable(), "{refused}");
    let _ = other.commit().expect("commit");
    assert!(cursor.seek(&mut txn, &key(44)).expect("seek"));
    assert!(cursor.next(&mut txn).expect("next"));
    assert_eq!(cursor.key(), key(45), "what was inserted before it came there, it sees");
    assert!(cursor.prev(&mut txn).expect("prev") && cursor.prev(&mut txn).expect("prev"));
    assert_eq!(cursor.key(), key(42));
    assert!(cursor.seek_before(&mut txn, &key(30)).expect("seek"));
    assert!(free(27) && !free(28) && !free(29) && free(30));
    assert_eq!(db.stats().locks.ranges, 2);
}

#[test]
fn an_empty_range_is_locked_too() {
    let (db, tree) = filled(4);
    let mut txn = at(&db, Serializable);
    let cursor = txn.cursor(&tree);
    assert_eq!(scan(&mut txn, cursor, 101, 120, true), []);
    assert!(is_free(&db, &tree, 100) && !is_free(&db, &tree, 101) && !is_free(&db, &tree, 119));
    assert!(is_free(&db, &tree, 120));
    let mut cursor = txn.cursor(&tree);
    assert!(!cursor.seek(&mut txn, &key(200)).expect("seek"), "it runs off the end");
    assert!(is_free(&db, &tree, 199) && !is_free(&db, &tree, 200) && !is_free(&db, &tree, 255));
    let nothing = db.create_tree("nothing").expect("a tree");
    assert!(!txn.cursor(&nothing).seek_last(&mut txn).expect("seek"));
    assert!(!is_free(&db, &nothing, 0));
}

#[test]
fn serializable_reads_lock_rows_and_their_absence() {
    let (db, tree) = filled(5);
    let mut txn = at(&db, Serializable);
    assert!(txn.get(&tree, &key(10)).expect("get").is_some());
    assert!(txn.get(&tree, &key(11)).expect("get").is_none());
    assert!(!is_free(&db, &tree, 10) && !is_free(&db, &tree, 11) && is_free(&db, &tree, 12));
    let mut both = at(&db, Serializable);
    assert!(both.get(&tree, &key(10)).expect("shared").is_some());
    drop(both);
    // It sees the latest, and its own.
    txn.put(&tree, &key(12), &[12; 200]).expect("put");
    txn.delete(&tree, &key(14)).expect("delete");
    txn.insert(&tree, &key(15), &[15; 200]).expect("insert");
    let cursor = txn.cursor(&tree);
    assert_eq!(scan(&mut txn, cursor, 10, 18, true), [10, 12, 15, 16]);
    let cursor = txn.cursor_for_update(&tree);
    assert_eq!(scan(&mut txn, cursor, 10, 18, false), [10, 12, 15, 16]);
    // Writes that only find something out are reads.
    assert!(matches!(txn.insert(&tree, &key(30), b"x"), Err(Error::Duplicate)));
    assert!(!txn.delete(&tree, &key(31)).expect("delete"));
    assert!(!txn.update(&tree, &key(33), |_, _| true).expect("update"));
    assert!(txn.update(&tree, &key(34), |_, _| false).expect("update"));
    for (n, free) in [(29, true), (30, false), (31, false), (32, true), (33, false), (34, false)] {
        assert_eq!(is_free(&db, &tree, n), free, "{n}");
    }
    let mut repeatable = at(&db, RepeatableRead);
    assert!(!repeatable.delete(&tree, &key(61)).expect("delete"));
    assert!(is_free(&db, &tree, 61));
    assert!(repeatable.get(&tree, &key(60)).expect("get").is_some());
    assert!(is_free(&db, &tree, 60), "plain reads lock nothing elsewhere");
}

#[test]
fn write_skew_is_prevented() {
    let (db, tree) = filled(6);
    // Each reads what the other changes: both may at snapshot isolation, not here.
    for (level, both) in [(Snapshot, true), (Serializable, false)] {
        let (mut one, mut two) = (at(&db, level), at(&db, level));
        for txn in [&mut one, &mut two] {
            assert!(txn.get(&tree, &key(10)).expect("get").is_some());
            assert!(txn.get(&tree, &key(12)).expect("get").is_some());
        }
        assert_eq!(one.put(&tree, &key(10), b"one").is_ok(), both);
        assert_eq!(two.put(&tree, &key(12), b"two").is_ok(), both);
    }
    // The same over ranges, with inserts.
    let (mut one, mut two) = (at(&db, Serializable), at(&db, Serializable));
    let cursor = one.cursor(&tree);
    assert_eq!(scan(&mut one, cursor, 20, 30, true).len(), 5);
    let cursor = two.cursor(&tree);
    assert_eq!(scan(&mut two, cursor, 20, 30, true).len(), 5);
    assert!(one.insert(&tree, &key(21), b"one").is_err());
    assert!(two.insert(&tree, &key(23), b"two").is_err());
    drop(two);
    one.insert(&tree, &key(21), b"one").expect("the other has gone");
    let _ = one.commit().expect("commit");
}

#[test]
fn a_scan_waits_for_what_is_not_committed() {
    type Change = fn(&mut Txn, &Tree);
    let changes: [(Change, Vec<u8>); 3] = [
        (|txn, tree| txn.insert(tree, &key(15), &[15; 200]).expect("insert"), vec![14, 15, 16]),
        (|txn, tree| assert!(txn.delete(tree, &key(16)).expect("delete")), vec![14]),
        (|txn, tree| txn.put(tree, &key(14), &[14; 200]).expect("put"), vec![14, 16]),
    ];
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        for (change, then) in &changes {
            for (commits, up) in [(true, true), (true, false), (false, true)] {
                let (db, tree) = filled(7);
                let mut writer = at(&db, RepeatableRead);
                change(&mut writer, &tree);
                let mut txn = at(&db, level);
                let mut cursor = txn.cursor_for_update(&tree);
                cursor.set_bounds(&key(13), Some(&key(17)));
                let mut on = cursor.seek_first(&mut txn);
                while on.as_ref().is_ok_and(|on| *on) {
                    on = cursor.next(&mut txn);
                }
                assert!(on.expect_err("a row is locked").is_retryable());
                if commits {
                    let _ = writer.commit().expect("commit");
                } else {
                    writer.rollback().expect("rollback");
                }
                let cursor = txn.cursor_for_update(&tree);
                let expected = if commits { then.clone() } else { vec![14, 16] };
                assert_eq!(scan(&mut txn, cursor, 13, 17, up), expected, "{level:?}");
            }
        }
    }
}

#[test]
fn ranges_wait_for_rows_that_others_have_locked() {
    let (db, tree) = filled(8);
    let mut one = at(&db, RepeatableRead);
    assert!(one.get_for_share(&tree, &key(20), &mut Vec::new()).expect("share"));
    assert!(!one.get_for_update(&tree, &key(31), &mut Vec::new()).expect("absent"));
    let mut two = at(&db, RepeatableRead);
    let cursor = two.cursor_for_share(&tree);
    assert_eq!(scan(&mut two, cursor, 10, 31, true), even(10, 31), "both share");
    let mut cursor = two.cursor_for_share(&tree);
    assert!(cursor.seek(&mut two, &key(30)).expect("seek"));
    assert!(cursor.next(&mut two).is_err(), "31 is locked, though there is no row");
    let mut three = at(&db, RepeatableRead);
    let mut cursor = three.cursor_for_update(&tree);
    assert!(cursor.seek(&mut three, &key(20)).is_err());
}

#[test]
fn no_wait_and_skip_locked() {
    let (db, tree) = filled(9);
    let patient = TxnOptions { lock_wait: Wait::Until(Duration::MAX), ..TxnOptions::default() };
    let (mut one, mut two) = (db.begin(patient), db.begin(patient));
    let mut value = Vec::new();
    assert!(one.get_for_update(&tree, &key(10), &mut value).expect("update"));
    let refused = two.get_for_update_with(&tree, &key(10), Wait::No, &mut value);
    assert!(refused.expect_err("locked").is_retryable());
    assert!(two.get_for_share_with(&tree, &key(10), Wait::No, &mut value).is_err());
    assert!(two.get_for_share_with(&tree, &key(12), Wait::No, &mut value).expect("free"));
    drop(two);
    one.put(&tree, &key(14), b"changed").expect("put");
    one.insert(&tree, &key(15), b"new").expect("insert");
    one.delete(&tree, &key(16)).expect("delete");
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let mut worker = db.begin(TxnOptions { isolation, ..patient });
        let mut cursor = worker.cursor_for_update(&tree);
        cursor.skip_locked();
        assert_eq!(scan(&mut worker, cursor, 8, 20, true), [8, 12, 18]);
        let mut second = db.begin(TxnOptions { isolation, ..patient });
        let mut cursor = second.cursor_for_update(&tree);
        cursor.skip_locked();
        assert_eq!(scan(&mut second, cursor, 6, 24, false), [6, 20, 22]);
        assert!(is_free(&db, &tree, 13) && !is_free(&db, &tree, 22));
    }
}

#[test]
fn a_row_that_goes_while_it_is_waited_for_is_locked_no_longer_below_repeatable_read() {
    for (isolation, free) in [(ReadCommitted, true), (RepeatableRead, false)] {
        for up in [true, false] {
            let (db, tree) = filled(11);
            let mut one = db.begin(TxnOptions::default());
            one.delete(&tree, &key(4)).expect("delete");
            let two = std::thread::scope(|scope| {
                let two = scope.spawn(|| {
                    let lock_wait = Wait::Until(Duration::from_secs(60));
                    let mut two = db.begin(TxnOptions { isolation, lock_wait });
                    let cursor = two.cursor_for_update(&tree);
                    assert_eq!(scan(&mut two, cursor, 3, 9, up), [6, 8]);
                    two
                });
                while db.stats().locks.waiting == 0 {
                    assert!(!two.is_finished(), "it has not waited");
                    std::thread::sleep(Duration::from_micros(100));
                }
                one.commit_durably(Durability::Lazy).expect("commit");
                two.join().expect("its rows")
            });
            let is = [4, 5, 6, 8, 10].map(|n| is_free(&db, &tree, n));
            assert_eq!(is, [free, free, false, false, true], "{isolation:?} {up}");
            drop(two);
            assert!(is_free(&db, &tree, 6), "at the end all are");
        }
    }
}

#[test]
fn a_semi_consistent_read_shows_what_is_committed_and_waits_only_for_lock_current() {
    let (db, tree) = filled(9);
    let mut one = db.begin(TxnOptions::default());
    one.put(&tree, &key(4), b"changed").expect("put");
    one.insert(&tree, &key(5), b"new").expect("insert");
    one.delete(&tree, &key(6)).expect("delete");
    let mut value = Vec::new();
    assert!(one.get_for_share(&tree, &key(8), &mut value).expect("share"));
    let was = tree.get(&key(4)).expect("get").expect("a row");

    let mut two = at(&db, ReadCommitted);
    let mut cursor = two.cursor_for_update(&tree);
    cursor.set_semi_consistent(true);
    let mut seen = Vec::new();
    let mut on = cursor.seek(&mut two, &key(2)).expect("seek");
    while on && cursor.key() <= &key(10)[..] {
        seen.push((cursor.key().to_vec(), cursor.is_unlocked()));
        if cursor.key() == key(4) {
            assert_eq!(cursor.value(), was);
        }
        on = cursor.next(&mut two).expect("next");
    }
    let unlocked = |n: u8| (key(n).to_vec(), true);
    let sure = |n: u8| (key(n).to_vec(), false);
    assert_eq!(seen, [sure(2), unlocked(4), unlocked(6), unlocked(8), sure(10)]);

    // A transaction that wants the row after all waits for it, and sees it as it has become.
    assert!(cursor.seek(&mut two, &key(4)).expect("seek") && cursor.is_unlocked());
    assert!(cursor.lock_current(&mut two, false).is_err());
    assert!(cursor.seek(&mut two, &key(4)).expect("seek") && cursor.is_unlocked());
    one.commit_durably(Durability::Lazy).expect("commit");
    assert!(cursor.lock_current(&mut two, false).expect("waited") && !cursor.is_unlocked());
    assert_eq!((cursor.key(), cursor.value()), (&key(4)[..], &b"changed"[..]));
    assert!(!is_free(&db, &tree, 4));
    // A row that has gone meanwhile is passed.
    let mut three = db.begin(TxnOptions::default());
    three.delete(&tree, &key(14)).expect("delete");
    assert!(cursor.seek(&mut two, &key(13)).expect("seek") && cursor.is_unlocked());
    three.commit_durably(Durability::Lazy).expect("commit");
    assert!(cursor.lock_current(&mut two, false).expect("waited"));
    assert_eq!((cursor.key(), cursor.is_unlocked()), (&key(16)[..], false));
    drop(two);

    // Where ranges are locked all is locked.
    let mut four = db.begin(TxnOptions::default());
    four.put(&tree, &key(4), b"again").expect("put");
    let mut five = at(&db, RepeatableRead);
    let mut cursor = five.cursor_for_update(&tree);
    cursor.set_semi_consistent(true);
    assert!(cursor.seek(&mut five, &key(4)).is_err());
}

#[test]
fn plain_cursors_have_bounds_too() {
    let (db, tree) = filled(10);
    let mut txn = at(&db, RepeatableRead);
    for up in [true, false] {
        let cursor = txn.cursor(&tree);
        assert_eq!(scan(&mut txn, cursor, 11, 31, up), even(11, 31));
        let cursor = txn.cursor(&tree);
        assert_eq!(scan(&mut txn, cursor, 31, 31, up), []);
    }
    let mut cursor = txn.cursor(&tree);
    cursor.set_bounds(&key(10), Some(&key(20)));
    assert!(cursor.seek(&mut txn, &key(3)).expect("seek") && cursor.key() == key(10));
    assert!(!cursor.prev(&mut txn).expect("prev"));
    assert!(cursor.seek_before(&mut txn, &key(90)).expect("seek") && cursor.key() == key(18));
    assert!(!cursor.next(&mut txn).expect("next"));
    assert!(!cursor.seek(&mut txn, &key(19)).expect("seek"));
}

/// A database with threads of its own.
fn real() -> (tempfile::TempDir, Db, Tree) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Config::default()).expect("open");
    let tree = db.create_tree("t").expect("a tree");
    (dir, db, tree)
}

fn patient(isolation: Isolation) -> TxnOptions {
    TxnOptions { isolation, lock_wait: Wait::Until(Duration::from_secs(30)) }
}

#[test]
fn two_scans_for_update_take_turns() {
    let (_dir, db, tree) = real();
    for n in 0..10 {
        tree.put(&key(n), &[0], Durability::Lazy).expect("put");
    }
    let barrier = Barrier::new(2);
    let run = |from: u8, to: u8| {
        for _ in 0..50 {
            barrier.wait();
            let mut txn = db.begin(patient(RepeatableRead));
            let mut cursor = txn.cursor_for_update(&tree);
            cursor.set_bounds(&key(from), Some(&key(to)));
            let mut on = cursor.seek_first(&mut txn).expect("one order: no circles");
            while on {
                let value = [cursor.value()[0] + 1];
                let name = cursor.key().to_vec();
                txn.put(&tree, &name, &value).expect("its own");
                on = cursor.next(&mut txn).expect("one order: no circles");
            }
            txn.commit_durably(Durability::Lazy).expect("commit");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0, 7));
        run(3, 10);
    });
    let values: Vec<u8> =
        (0..10).map(|n| tree.get(&key(n)).expect("get").expect("a row")[0]).collect();
    assert_eq!(values, [50, 50, 50, 100, 100, 100, 100, 50, 50, 50], "no update is lost");
    let stats = db.stats().locks;
    assert_eq!((stats.deadlocks, stats.ranges, stats.held), (0, 0, 0));
    db.close().expect("close");
}

#[test]
fn in_a_circle_of_a_row_and_a_range_the_one_with_fewer_changes_is_the_victim() {
    let (_dir, db, tree) = real();
    tree.put(&key(50), b"row", Durability::Lazy).expect("put");
    for (writer_rows, scanner_rows) in [(1, 3), (3, 1)] {
        let barrier = Barrier::new(2);
        let (writer_pays, scanner_pays) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut txn = db.begin(patient(RepeatableRead));
                for n in 0..writer_rows {
                    txn.put(&tree, &key(50 + n), b"changed").expect("put");
                }
                barrier.wait();
                let done = txn.insert(&tree, &key(20), b"new");
                done.is_err_and(|e| e.is_deadlock() && txn.has_ended())
            });
            let mut txn = db.begin(patient(RepeatableRead));
            for n in 0..scanner_rows {
                txn.put(&tree, &key(90 + n), b"changed").expect("put");
            }
            let mut cursor = txn.cursor_for_share(&tree);
            cursor.set_bounds(&key(0), Some(&key(40)));
            assert!(!cursor.seek_first(&mut txn).expect("no row there"));
            barrier.wait();
            let done = txn.cursor_for_share(&tree).seek(&mut txn, &key(40));
            let pays = done.is_err_and(|e| e.is_deadlock() && txn.has_ended());
            drop(txn);
            (writer.join().expect("a thread"), pays)
        });
        let writer_less = writer_rows < scanner_rows;
        assert_eq!((writer_pays, scanner_pays), (writer_less, !writer_less));
    }
    db.close().expect("close");
}

/// Each transaction counts the rows of a group and adds one if there are few: the rule that no
/// group has more is kept only if no count is spoiled by rows that come in between.
#[test]
fn groups_counted_and_filled_by_many_threads_never_overflow() {
    const LIMIT: usize = 5;
    let (_dir, db, tree) = real();
    let name = |group: u8, n: u16| [group, (n >> 8) as u8, n as u8];
    let count = |txn: &mut Txn, mut cursor: TxnCursor, group: u8| -> Result<Vec<Vec<u8>>, Error> {
        cursor.set_bounds(&[group], Some(&[group + 1]));
        let mut rows = Vec::new();
        let mut on = cursor.seek_first(txn)?;
        while on {
            rows.push(cursor.key().to_vec());
            on = cursor.next(txn)?;
        }
        Ok(rows)
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (db, tree, count) = (&db, &tree, &count);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut committed = 0;
                while committed < 150 {
                    let serializable = random.bool();
                    let level = if serializable { Serializable } else { RepeatableRead };
                    let group = random.u8(..3);
                    let mut txn = db.begin(patient(level));
                    let mut work = || -> Result<(), Error> {
                        let cursor = match (serializable, random.bool()) {
                            (true, _) => txn.cursor(tree),
                            (false, true) => txn.cursor_for_update(tree),
                            (false, false) => txn.cursor_for_share(tree),
                        };
                        let rows = count(&mut txn, cursor, group)?;
                        assert!(rows.len() <= LIMIT, "{rows:?}");
                        // Long enough for others to come by, however busy the machine is.
                        if random.u8(..8) == 0 {
                            std::thread::sleep(Duration::from_micros(100));
                        }
                        let cursor = txn.cursor_for_share(tree);
                        assert_eq!(count(&mut txn, cursor, group)?, rows, "no phantoms");
                        if rows.len() < LIMIT {
                            txn.put(tree, &name(group, random.u16(..)), b"row")?;
                        } else {
                            txn.delete(tree, &rows[random.usize(..rows.len())])?;
                            txn.delete(tree, &rows[random.usize(..rows.len())])?;
                        }
                        Ok(())
                    };
                    match work() {
                        Ok(()) => {
                            txn.commit_durably(Durability::Lazy).expect("commit");
                            committed += 1;
                        }
                        Err(e) => assert!(e.is_deadlock() && txn.has_ended(), "{e}"),
                    }
                }
            });
        }
    });
    let stats = db.stats().locks;
    assert!(stats.waits > 0);
    assert_eq!((stats.ranges, stats.held, stats.waiting, stats.timeouts), (0, 0, 0, 0));
    tree.check(&mut |_| {}).expect("sound");
    db.close().expect("close");
}
