//! Trees with types against a map of the same types.
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use proptest::prelude::*;
use weirdb::{Error, TxnOptions, TypedTree};

use crate::new;

type Key = (String, i32);
type Range = (Bound<Key>, Bound<Key>);

fn key() -> impl Strategy<Value = Key> {
    let text = prop::collection::vec(prop_oneof![Just('\0'), Just('a'), Just('\u{ff}')], 0..3);
    (text.prop_map(|all| all.into_iter().collect()), -2..3i32)
}

fn range() -> impl Strategy<Value = Range> {
    let bound = || {
        prop_oneof![
            Just(Bound::Unbounded),
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded)
        ]
    };
    (bound(), bound())
}

fn run(tree: &TypedTree<Key, i64>, rows: &[(Key, Option<i64>)], range: &Range, prefix: &str) {
    let db = tree.tree().db();
    let mut map = BTreeMap::new();
    db.transact(TxnOptions::new(), |txn| {
        map.clear();
        for (key, value) in rows {
            match value {
                Some(value) => {
                    tree.put(txn, key, value)?;
                    map.insert(key.clone(), *value);
                }
                None => assert_eq!(tree.remove(txn, key)?, map.remove(key).is_some()),
            }
            assert_eq!(tree.get(txn, key)?, *value);
        }
        Ok::<(), Error>(())
    })
    .expect("committed");
    let now = db.read();
    let all: Vec<_> = tree.iter(&now).map(|row| row.expect("read")).collect();
    assert_eq!(all, map.clone().into_iter().collect::<Vec<_>>());
    let held: Vec<_> = map.iter().filter(|(key, _)| range.contains(key)).collect();
    let found = tree.range(&now, range.clone()).rev().map(|row| row.expect("read"));
    assert_eq!(found.count(), held.len());
    let found = tree.range(&now, range.clone()).map(|row| row.expect("read").0);
    assert!(found.eq(held.iter().map(|(key, _)| (*key).clone())));
    let by_first = (prefix.to_string(),);
    let found = tree.prefix(&now, &by_first).map(|row| row.expect("read").0);
    assert!(found.eq(map.keys().filter(|key| key.0 == prefix).cloned()));
    assert_eq!(tree.first(&now).expect("read").map(|row| row.0).as_ref(), map.keys().next());
    assert_eq!(tree.last(&now).expect("read").map(|row| row.0).as_ref(), map.keys().next_back());
    assert_eq!(tree.len(&now).expect("counted"), map.len() as u64);
    assert_eq!(tree.is_empty(&now).expect("read"), map.is_empty());
    let mut txn = db.write();
    for key in map.keys() {
        tree.remove(&mut txn, key).expect("removed");
    }
    txn.commit().expect("committed");
}

#[test]
fn it_is_a_map_of_its_types() {
    let (_dir, db) = new();
    let tree = db.typed_tree("t").expect("made");
    let rows = prop::collection::vec((key(), any::<Option<i64>>()), 0..30);
    let all = (rows, range(), "[\0a\u{ff}]{0,2}");
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 100,
        ..ProptestConfig::default()
    });
    runner
        .run(&all, |(rows, range, prefix)| {
            run(&tree, &rows, &range, &prefix);
            Ok(())
        })
        .expect("as the model");
}

#[test]
fn keys_are_looked_for_by_what_they_borrow() {
    let (_dir, db) = new();
    let names: TypedTree<String, u32> = db.typed_tree("names").expect("made");
    let blobs: TypedTree<Vec<u8>, String> = db.typed_tree("blobs").expect("made");
    db.transact(TxnOptions::new(), |txn| {
        names.insert(txn, "ada", &1)?;
        names.put(txn, &"adam".to_string(), &2)?;
        names.update(txn, "ada", |old| old.map(|old| old + 10))?;
        blobs.put(txn, &b"\0"[..], &"zero".into())
    })
    .expect("committed");
    let now = db.read();
    assert_eq!(names.get(&now, "ada").expect("read"), Some(11));
    assert_eq!(names.prefix(&now, "ada").count(), 2);
    assert!(blobs.contains_key(&now, &b"\0"[..]).expect("read"));
    let again = db.transact(TxnOptions::new(), |txn| names.insert(txn, "ada", &3));
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
}

#[test]
fn rows_of_other_types_are_errors_one_by_one() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let typed: TypedTree<u16, u32> = TypedTree::of(tree.clone());
    for (key, value) in [(&[0, 1][..], &[0; 4][..]), (&[0, 2], &[0; 3]), (&[3], &[0; 4])] {
        tree.put(key, value).expect("put");
    }
    let now = db.read();
    let rows: Vec<_> = typed.iter(&now).collect();
    assert!(matches!(rows[..], [Ok((1, 0)), Err(Error::Decode(_)), Err(Error::Decode(_))]));
    assert!(matches!(typed.get(&now, &2), Err(Error::Decode(_))));
    let told = typed.last(&now).expect_err("it is no key").to_string();
    assert_eq!(told, "what is stored in the tree is not of its type: it is too short");
}
