//! Rows lent by a cursor: the same as those met one by one, whatever happens meanwhile.
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use std::sync::Arc;

use weir::{
    Background, Config, Cursor, Db, Durability, Isolation, SimVolume, Tree, Txn, TxnCursor,
    TxnOptions, Wait,
};

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn open(seed: u64) -> Db {
    let config = Config {
        pool_bytes: 4 << 20,
        log_bytes: 1 << 20,
        page_size: 4096,
        background: Background::Manual,
        pages_max: 1 << 16,
        ..Config::default()
    };
    Db::open_on(Arc::new(SimVolume::new(seed)), config).expect("a new database")
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Short rows, long ones, and holes, over many leaves.
fn filled(db: &Db) -> Tree {
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..4_000u32 {
        let value = vec![n as u8; if n % 97 == 0 { 20_000 } else { 40 }];
        tree.put(&key(n), &value, Durability::Lazy).expect("a put");
    }
    for n in (0..4_000).filter(|n| n % 5 == 3 || (1_000..1_300).contains(n)) {
        tree.delete(&key(n), Durability::Lazy).expect("a delete");
    }
    tree
}

fn one_by_one(tree: &Tree) -> Rows {
    let mut cursor = tree.cursor();
    let mut rows = Vec::new();
    let mut on = cursor.seek_first().expect("a seek");
    while on {
        let (key, value) = cursor.row();
        rows.push((key.to_vec(), value.to_vec()));
        on = cursor.next().expect("a step");
    }
    rows
}

/// All rows from the one stood on, `most` at most.
fn lent(cursor: &mut Cursor, most: usize) -> Rows {
    let mut rows = Rows::new();
    let visit = |key: &[u8], value: &[u8]| {
        rows.push((key.to_vec(), value.to_vec()));
        if rows.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    cursor.visit(visit).expect("visited");
    rows
}

#[test]
fn rows_lent_are_those_met_one_by_one() {
    let db = open(1);
    let tree = filled(&db);
    // Rows that a transaction is about to change, remove and add: they are seen as they were.
    let mut other =
        db.begin(TxnOptions { isolation: Isolation::RepeatableRead, lock_wait: Wait::No });
    for n in (0..4_000).filter(|n| n % 11 == 0) {
        other.put(&tree, &key(n), b"not yet").expect("a put");
    }
    for n in (0..4_000).filter(|n| n % 13 == 0) {
        other.delete(&tree, &key(n)).expect("a delete");
    }
    let expected = one_by_one(&tree);
    assert!(expected.len() > 2_500 && expected.iter().all(|(_, value)| value != b"not yet"));
    let mut cursor = tree.cursor();
    assert_eq!(lent(&mut cursor, 1), Rows::new(), "it stands on none");
    assert!(cursor.seek_first().expect("a seek"));
    assert!(lent(&mut cursor, usize::MAX) == expected);
    assert_eq!(cursor.row(), (&b""[..], &b""[..]), "it stands on none any more");
    other.rollback().expect("rolled back");
}

#[test]
fn it_stands_where_the_visit_broke_off() {
    let db = open(2);
    let tree = filled(&db);
    let expected = one_by_one(&tree);
    for most in [1, 2, 3, 96, 97, 98, 500] {
        let mut cursor = tree.cursor();
        let mut rows = Rows::new();
        let mut on = cursor.seek_first().expect("a seek");
        while on {
            rows.extend(lent(&mut cursor, most));
            let Some((key, value)) = rows.last() else { break };
            if cursor.key().is_empty() {
                break;
            }
            assert_eq!(cursor.row(), (&key[..], &value[..]), "at most {most}");
            on = cursor.next().expect("a step");
        }
        assert!(rows == expected, "{most} at a time");
        // And backwards from there.
        assert!(cursor.seek_first().expect("a seek"));
        lent(&mut cursor, most.max(2));
        assert!(cursor.prev().expect("a step"));
        assert_eq!(cursor.key(), &expected[most.max(2) - 2].0[..]);
    }
}

#[test]
fn what_is_there_all_along_is_met_once_though_the_visitor_changes_the_tree() {
    let db = open(3);
    let tree = filled(&db);
    let expected: BTreeMap<Vec<u8>, Vec<u8>> = one_by_one(&tree).into_iter().collect();
    let mut cursor = tree.cursor();
    assert!(cursor.seek_first().expect("a seek"));
    let mut met: Vec<Vec<u8>> = Vec::new();
    let visit = |at: &[u8], _: &[u8]| {
        if expected.contains_key(at) {
            met.push(at.to_vec());
        }
        // Splits the leaves around, before and behind, then empties others so that they are joined.
        let n = met.len() as u32;
        for i in 0..3u8 {
            let mut new = at.to_vec();
            new.push(i);
            tree.put(&new, &[7; 300], Durability::Lazy).expect("a put");
            let far = [&key(n * 37 % 4_000)[..], &[i]].concat();
            tree.put(&far, &[8; 300], Durability::Lazy).expect("a put");
            let gone = [&key(n * 29 % 4_000)[..], &[i]].concat();
            tree.delete(&gone, Durability::Lazy).expect("a delete");
        }
        ControlFlow::Continue(())
    };
    cursor.visit(visit).expect("visited");
    assert!(met.iter().eq(expected.keys()), "{} of {}", met.len(), expected.len());
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// What is rolled back while the visitor is at work was never there, nor was what its writer has
/// changed once more.
#[test]
fn nothing_is_lent_that_was_never_committed() {
    let db = open(4);
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..4 {
        tree.put(&key(n), b"before", Durability::Lazy).expect("a put");
    }
    for case in 0..8 {
        let (commits, early, known) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
        // As long as it is held, a transaction that has ended stays known.
        let held = known.then(|| db.snapshot());
        let wait = TxnOptions { isolation: Isolation::RepeatableRead, lock_wait: Wait::No };
        let mut other = db.begin(wait);
        other.put(&tree, &key(2), b"not yet").expect("a put");
        let mut other = Some(other);
        let mut end = || {
            let Some(mut other) = other.take() else { return };
            if commits {
                other.put(&tree, &key(2), b"after").expect("a put");
                other.commit_durably(Durability::Lazy).expect("committed");
            } else {
                other.rollback().expect("rolled back");
            }
        };
        let mut cursor = tree.cursor();
        assert!(cursor.seek_first().expect("a seek"));
        if early {
            end();
        }
        let mut values = Vec::new();
        let visit = |_: &[u8], value: &[u8]| {
            values.push(value.to_vec());
            end();
            ControlFlow::Continue(())
        };
        cursor.visit(visit).expect("visited");
        let third: &[u8] = if commits { b"after" } else { b"before" };
        let expected = [b"before", b"before", third, b"before"];
        assert_eq!(values, expected, "commits {commits}, early {early}, known {known}");
        drop(held);
        tree.put(&key(2), b"before", Durability::Lazy).expect("a put");
    }
}

fn at(isolation: Isolation) -> TxnOptions {
    TxnOptions { isolation, lock_wait: Wait::No }
}

/// All rows that a transaction's cursor lends from the one stood on, `most` at a time, and where it
/// stands each time.
fn lent_within(cursor: &mut TxnCursor, txn: &mut Txn, most: usize) -> Rows {
    let mut rows = Rows::new();
    loop {
        let before = rows.len();
        let visit = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            if rows.len() < before + most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        cursor.visit(txn, visit).expect("visited");
        if rows.len() < before + most {
            assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]), "it stands on none");
            return rows;
        }
        let (key, value) = &rows[rows.len() - 1];
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        if !cursor.next(txn).expect("a step") {
            return rows;
        }
    }
}

#[test]
fn a_transaction_is_lent_the_rows_that_it_meets_one_by_one() {
    use Isolation::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable, Snapshot};
    let db = open(5);
    let tree = filled(&db);
    let (low, high) = (key(700), key(3_100));
    for isolation in [ReadUncommitted, ReadCommitted, RepeatableRead, Snapshot, Serializable] {
        let mut txn = db.begin(at(isolation));
        txn.take_snapshot();
        // Rows of others, committed and not, and its own, in the same leaves.
        for n in (0..4_000).filter(|n| n % 17 == 0) {
            tree.put(&key(n), b"later", Durability::Lazy).expect("a put");
        }
        let mut other = db.begin(at(RepeatableRead));
        let others = |n: &u32| n.is_multiple_of(23) && isolation != Serializable;
        for n in (0..4_000).filter(others) {
            other.put(&tree, &key(n), b"not yet").expect("a put");
        }
        for n in (0..4_000).filter(|n| n % 19 == 0 && n % 17 != 0 && !others(n)) {
            txn.put(&tree, &key(n), b"its own").expect("a put");
        }
        for bounds in [None, Some((&low[..], Some(&high[..]))), Some((&high[..], None))] {
            for most in [1, 3, 100, usize::MAX / 2] {
                let mut cursors = [txn.cursor(&tree), txn.cursor(&tree)];
                if let Some((from, to)) = bounds {
                    cursors.iter_mut().for_each(|cursor| cursor.set_bounds(from, to));
                }
                let [single, lending] = &mut cursors;
                let mut expected = Rows::new();
                let mut on = single.seek_first(&mut txn).expect("a seek");
                while on {
                    expected.push((single.key().to_vec(), single.value().to_vec()));
                    on = single.next(&mut txn).expect("a step");
                }
                assert!(lent_within(lending, &mut txn, most).is_empty(), "it stands on none");
                assert!(lending.seek_first(&mut txn).expect("a seek"));
                let rows = lent_within(lending, &mut txn, most);
                assert!(rows == expected && rows.len() > 400, "{isolation:?} {bounds:?} {most}");
            }
        }
        other.rollback().expect("rolled back");
        txn.rollback().expect("rolled back");
    }
}

/// What it changes between is met, also in the leaf that the cursor has copied.
#[test]
fn a_transaction_is_lent_what_it_has_just_changed() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let db = open(6);
        let tree = db.create_tree("t").expect("a tree");
        for n in [1, 2, 3, 4] {
            tree.put(&key(n), b"old", Durability::Lazy).expect("a put");
        }
        let mut txn = db.begin(at(isolation));
        let mut cursor = txn.cursor(&tree);
        assert!(cursor.seek_first(&mut txn).expect("a seek"));
        txn.put(&tree, &key(2), b"new").expect("a put");
        txn.delete(&tree, &key(3)).expect("a delete");
        txn.put(&tree, &key(5), b"new").expect("a put");
        let rows = lent_within(&mut cursor, &mut txn, 100);
        let expected = [(1, "old"), (2, "new"), (4, "old"), (5, "new")];
        assert_eq!(rows, expected.map(|(n, value)| (key(n).to_vec(), value.into())));
    }
}
