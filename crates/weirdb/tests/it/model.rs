//! A database against maps: whatever is done, it shows what they show.
use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use weirdb::{Batch, Db, Error, ReadTxn, Rows, Slice, Swap, Tree, WriteTxn};

use crate::new;

type Bytes = Vec<u8>;
type Map = BTreeMap<Bytes, Bytes>;
type Range = (Bound<Bytes>, Bound<Bytes>);

#[derive(Clone, Debug)]
enum Act {
    Put(Bytes, Bytes),
    Insert(Bytes, Bytes),
    Remove(Bytes),
    Append(Bytes, Option<u8>),
    Swap(Bytes, Option<Bytes>, Option<Bytes>),
    Batch(Vec<(Bytes, Option<Bytes>)>),
    /// Looks, taking from the front where `true`, else from the back.
    Look(Range, Vec<bool>),
    Prefix(Bytes, Vec<bool>),
    /// Reads these, in this order.
    Many(Vec<Bytes>),
    Snapshot,
    /// Takes some acts together, and then commits or not.
    Txn(Vec<Act>, bool),
    /// As a part of a transaction that may fail.
    Nested(Vec<Act>, bool),
}

fn key() -> impl Strategy<Value = Bytes> {
    let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)];
    prop::collection::vec(byte, 0..4)
}

fn value() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 3000..9000usize).prop_map(|(byte, len)| vec![byte; len])
    ]
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

fn ends() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), 0..40)
}

fn change() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Act::Put(key, value)),
        2 => (key(), value()).prop_map(|(key, value)| Act::Insert(key, value)),
        3 => key().prop_map(Act::Remove),
        2 => (key(), any::<Option<u8>>()).prop_map(|(key, byte)| Act::Append(key, byte)),
        2 => (key(), any::<bool>(), value(), any::<bool>(), value()).prop_map(
            |(key, is, expected, puts, new)| {
                Act::Swap(key, is.then_some(expected), puts.then_some(new))
            }
        ),
        3 => (range(), ends()).prop_map(|(range, ends)| Act::Look(range, ends)),
        1 => (key(), ends()).prop_map(|(prefix, ends)| Act::Prefix(prefix, ends)),
        1 => prop::collection::vec(key(), 0..12).prop_map(Act::Many),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let part = (prop::collection::vec(change(), 0..6), any::<bool>());
    let part = part.prop_map(|(acts, fails)| Act::Nested(acts, fails));
    let in_txn = prop_oneof![6 => change(), 1 => part];
    let batch = prop::collection::vec((key(), prop::option::of(value())), 0..12);
    prop_oneof![
        8 => change(),
        2 => batch.prop_map(Act::Batch),
        1 => Just(Act::Snapshot),
        3 => (prop::collection::vec(in_txn, 0..12), any::<bool>())
            .prop_map(|(acts, commits)| Act::Txn(acts, commits)),
    ]
}

/// What an act is done with.
enum By<'a> {
    Tree,
    Txn(&'a mut WriteTxn),
}

fn as_vecs(row: Result<(Slice, Slice), Error>) -> (Bytes, Bytes) {
    let (key, value) = row.expect("read");
    (key.into_vec(), value.into_vec())
}

/// Both iterators, from both ends.
fn assert_same<'m>(
    mut rows: Rows<'_>,
    mut model: impl DoubleEndedIterator<Item = (&'m Bytes, &'m Bytes)>,
    ends: &[bool],
) {
    for from_front in ends {
        let (found, expected) = match from_front {
            true => (rows.next(), model.next()),
            false => (rows.next_back(), model.next_back()),
        };
        let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(found.map(as_vecs), expected);
        if expected.is_none() {
            return assert!(rows.next().is_none() && rows.next_back().is_none());
        }
    }
    let expected: Vec<_> = model.map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(rows.map(as_vecs).collect::<Vec<_>>(), expected);
}

fn is_empty(range: &Range) -> bool {
    use Bound::{Excluded, Included};
    match range {
        (Included(a), Included(b)) => a > b,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => a >= b,
        _ => false,
    }
}

fn with_prefix<'m>(
    map: &'m Map,
    prefix: &'m [u8],
) -> impl DoubleEndedIterator<Item = (&'m Bytes, &'m Bytes)> {
    map.iter().filter(move |(key, _)| key.starts_with(prefix))
}

fn put(map: &mut Map, key: &Bytes, value: Option<Bytes>) {
    match value {
        Some(value) => drop(map.insert(key.clone(), value)),
        None => drop(map.remove(key)),
    }
}

/// Does `$call` by a transaction, or by the tree alone.
macro_rules! by {
    ($by:expr, $tree:expr, $call:ident($($argument:expr),*)) => {
        match $by {
            By::Tree => $tree.$call($($argument),*),
            By::Txn(txn) => txn.$call($tree, $($argument),*),
        }
    };
}

fn take(by: &mut By<'_>, tree: &Tree, map: &mut Map, act: &Act) {
    match act {
        Act::Put(key, value) => {
            by!(by, tree, put(key, value)).expect("put");
            put(map, key, Some(value.clone()));
        }
        Act::Insert(key, value) => {
            let done = by!(by, tree, insert(key, value));
            match map.contains_key(key) {
                true => assert!(matches!(done, Err(Error::Exists(_))), "{done:?}"),
                false => done.expect("inserted"),
            }
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Act::Remove(key) => {
            let removed = by!(by, tree, remove(key)).expect("removed");
            assert_eq!(removed, map.remove(key).is_some());
        }
        Act::Append(key, byte) => {
            let change =
                |old: Option<&[u8]>| byte.map(|byte| [old.unwrap_or_default(), &[byte]].concat());
            let old = by!(by, tree, update(key, change)).expect("updated");
            assert_eq!(old.as_deref(), map.get(key).map(Vec::as_slice));
            put(map, key, change(old.as_deref()));
        }
        Act::Swap(key, expected, new) => {
            let there = map.get(key).cloned();
            let (expected, given) = (expected.as_deref(), new.as_deref());
            let swap = by!(by, tree, compare_and_swap(key, expected, given)).expect("compared");
            if there.as_deref() == expected {
                assert_eq!(swap, Swap::Swapped);
                put(map, key, new.clone());
            } else {
                assert_eq!(swap, Swap::Differs(there.map(Slice::from)));
            }
        }
        Act::Look(range, ends) => {
            // Fewer are asked for than was said, or more, or it was not said.
            let rows = by!(by, tree, range(range.clone())).expect_rows(ends.len() / 2 * 5 % 17);
            match is_empty(range) {
                true => assert_same(rows, [].into_iter(), ends),
                false => assert_same(rows, map.range(range.clone()), ends),
            }
        }
        Act::Prefix(prefix, ends) => {
            assert_same(by!(by, tree, prefix(prefix)), with_prefix(map, prefix), ends);
        }
        Act::Many(keys) => {
            let values = by!(by, tree, get_many(keys)).expect("read");
            let found = values.into_iter().map(|value| value.map(|value| value.to_vec()));
            assert!(found.eq(keys.iter().map(|key| map.get(key).cloned())), "{keys:?}");
        }
        Act::Nested(acts, fails) => {
            let By::Txn(txn) = by else { return };
            let mut inner = map.clone();
            let done: Result<(), Error> = txn.nested(|txn| {
                for act in acts {
                    take(&mut By::Txn(txn), tree, &mut inner, act);
                }
                if *fails { Err(Error::Closed) } else { Ok(()) }
            });
            match done {
                Ok(()) => *map = inner,
                Err(e) => assert!(*fails && matches!(e, Error::Closed), "{e:?}"),
            }
        }
        Act::Batch(_) | Act::Snapshot | Act::Txn(..) => {}
    }
}

fn assert_shows(txn: &ReadTxn, tree: &Tree, map: &Map) {
    assert_same(txn.iter(tree), map.iter(), &[]);
    assert_eq!(txn.len(tree).expect("counted"), map.len() as u64);
    let row = |row: Option<(Slice, Slice)>| row.map(|row| as_vecs(Ok(row)));
    let own = |row: Option<(&Bytes, &Bytes)>| row.map(|(k, v)| (k.clone(), v.clone()));
    assert_eq!(row(txn.first(tree).expect("read")), own(map.first_key_value()));
    assert_eq!(row(txn.last(tree).expect("read")), own(map.last_key_value()));
    for (key, value) in map {
        assert_eq!(txn.get(tree, key).expect("read").as_deref(), Some(&value[..]));
    }
}

fn run(db: &Db, name: &str, acts: &[Act]) {
    let tree = db.create_tree(name).expect("made");
    let mut map = Map::new();
    let mut snapshots: Vec<(ReadTxn, Map)> = Vec::new();
    for act in acts {
        match act {
            Act::Batch(changes) => {
                let mut batch = Batch::new();
                for (key, value) in changes {
                    match value {
                        Some(value) => batch.put(&tree, key, value),
                        None => batch.remove(&tree, key),
                    }
                    put(&mut map, key, value.clone());
                }
                db.apply(&batch).expect("applied");
            }
            Act::Snapshot => snapshots.push((db.read(), map.clone())),
            Act::Txn(acts, commits) => {
                let (mut txn, mut own) = (db.write(), map.clone());
                for act in acts {
                    take(&mut By::Txn(&mut txn), &tree, &mut own, act);
                }
                assert_same(txn.iter(&tree), own.iter(), &[]);
                assert_same(tree.iter(), map.iter(), &[]);
                if *commits {
                    txn.commit().expect("committed");
                    map = own;
                }
            }
            act => take(&mut By::Tree, &tree, &mut map, act),
        }
    }
    assert_shows(&db.read(), &tree, &map);
    for (txn, map) in &snapshots {
        assert_shows(txn, &tree, map);
    }
}

#[test]
fn it_is_a_map_in_transactions() {
    let (_dir, db) = new();
    let number = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 150,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&prop::collection::vec(act(), 0..50), |acts| {
        number.set(number.get() + 1);
        run(&db, &format!("tree {}", number.get()), &acts);
        Ok(())
    });
    outcome.expect("as the model");
    assert_eq!(db.check(|_, _| {}).expect("checked").problems, Vec::<String>::new());
    db.close().expect("closed");
}
