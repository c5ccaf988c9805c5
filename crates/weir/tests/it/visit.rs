//! Rows lent by a cursor: the same as those met one by one, whatever happens meanwhile.
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use std::sync::Arc;

use weir::{
    Background, Config, Cursor, Db, Durability, Isolation, SimVolume, Tree, TxnOptions, Wait,
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
    // Rows that somebody is about to change, remove and add: they are seen as they were.
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

/// What is taken back while the visitor is at work was never there, nor was what its writer has
/// changed once more.
#[test]
fn nothing_is_lent_that_was_never_committed() {
    let db = open(4);
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..4 {
        tree.put(&key(n), b"before", Durability::Lazy).expect("a put");
    }
    for (commits, early) in [(false, false), (false, true), (true, false), (true, true)] {
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
                other.rollback().expect("taken back");
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
        assert_eq!(values, [b"before", b"before", third, b"before"], "{commits} {early}");
        tree.put(&key(2), b"before", Durability::Lazy).expect("a put");
    }
}
