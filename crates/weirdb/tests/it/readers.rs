//! Snapshots: of one moment, shared, and kept as long as one likes.
use std::thread;

use weirdb::{Db, ReadTxn, Rows, Slice, Tree, WriteTxn};

use crate::{config, new};

fn fill(tree: &Tree, rows: u32) {
    tree.bulk_load((0..rows).map(|n| (n.to_be_bytes(), n.to_string()))).expect("loaded");
}

#[test]
fn what_may_be_shared_and_sent() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Db>();
    shared::<Tree>();
    shared::<ReadTxn>();
    shared::<Slice>();
    shared::<weirdb::Commit>();
    shared::<weirdb::Error>();
    sent::<Rows<'static>>();
    sent::<WriteTxn>();
}

#[test]
fn threads_share_a_snapshot_while_others_write() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    fill(&tree, 3000);
    let txn = db.read();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..10 {
                        assert_eq!(txn.len(&tree).expect("counted"), 3000);
                        let mut last = None;
                        for row in txn.iter(&tree).rev() {
                            let (key, value) = row.expect("read");
                            let number = u32::from_be_bytes(key.as_ref().try_into().expect("4"));
                            assert_eq!(value, number.to_string());
                            assert!(last.is_none_or(|last| number + 1 == last));
                            last = Some(number);
                        }
                        assert_eq!(last, Some(0));
                    }
                })
            })
            .collect();
        for n in 0..3000u32 {
            match n % 3 {
                0 => drop(tree.remove(n.to_be_bytes()).expect("removed")),
                1 => tree.put(n.to_be_bytes(), "other").expect("put"),
                _ => tree.put((n + 10_000).to_be_bytes(), "new").expect("put"),
            }
        }
        for reader in readers {
            reader.join().expect("as it was");
        }
    });
    assert_eq!(tree.len().expect("counted"), 3000);
    assert_eq!(tree.get(1u32.to_be_bytes()).expect("read"), Some(Slice::from(b"other".to_vec())));
}

#[test]
fn rows_outlive_the_handles_they_came_from() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    fill(&tree, 1000);
    let mut rows = db.read().iter(&tree);
    let first = rows.next().expect("a row").expect("read");
    drop(tree);
    drop(db);
    assert_eq!(rows.len_left(), 999);
    assert_eq!(first.1, "0");
}

trait LenLeft {
    fn len_left(self) -> usize;
}

impl LenLeft for Rows<'_> {
    fn len_left(self) -> usize {
        thread::scope(|scope| {
            scope.spawn(|| self.filter(Result::is_ok).count()).join().expect("counted")
        })
    }
}

#[test]
fn long_values_and_both_ends() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for n in 0..60u8 {
        tree.put([n], vec![n; usize::from(n) * 700]).expect("put");
    }
    let mut rows = db.read().range(&tree, [10u8]..[50u8]);
    let mut seen = Vec::new();
    for at in 0.. {
        let row = if at % 3 == 0 { rows.next_back() } else { rows.next() };
        let Some(row) = row else { break };
        let (key, value) = row.expect("read");
        assert!(value.len() == usize::from(key[0]) * 700 && value.iter().all(|b| *b == key[0]));
        seen.push(key[0]);
    }
    seen.sort_unstable();
    assert_eq!(seen, (10..50).collect::<Vec<u8>>());
}

#[test]
fn a_backup_is_of_its_moment_and_opens() {
    let (dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    fill(&tree, 500);
    let txn = db.read();
    tree.put("late", "not in it").expect("put");
    let to = dir.path().join("backup");
    let backup = txn.backup(&to).expect("copied");
    assert_eq!((backup.trees, backup.rows), (1, 500));
    assert!(txn.backup(&to).is_err(), "there is one already");
    let copy = config().open(&to).expect("opened");
    let copied = copy.get_tree("t").expect("read").expect("there");
    assert_eq!(copied.len().expect("counted"), 500);
    assert!(!copied.contains_key("late").expect("read"));
    assert_eq!(copied.approximate_len().expect("estimated") / 400, 1);
}

#[test]
fn many_keys_of_more_data_than_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = config().cache_bytes(2 << 20).open(dir.path().join("db")).expect("opened");
    let tree = db.open_tree("t").expect("made");
    tree.bulk_load((0..20_000u32).map(|n| (n.to_be_bytes(), [n as u8; 400]))).expect("loaded");
    let snapshot = db.read();
    // In no order, some twice, some that are not there.
    let keys: Vec<_> = (0..3_000u32).map(|n| (n * 7_919 % 22_000).to_be_bytes()).collect();
    let expected = |key: &[u8; 4]| {
        let n = u32::from_be_bytes(*key);
        (n < 20_000).then_some([n as u8; 400])
    };
    for values in [tree.get_many(&keys), snapshot.get_many(&tree, &keys)] {
        let values = values.expect("read");
        assert_eq!(values.len(), keys.len());
        for (key, value) in keys.iter().zip(&values) {
            assert_eq!(value.as_deref(), expected(key).as_ref().map(|value| &value[..]));
        }
    }
    tree.put(keys[0], "new").expect("put");
    assert_eq!(tree.get_many(&keys[..1]).expect("read")[0].as_deref(), Some(&b"new"[..]));
    assert_ne!(
        snapshot.get_many(&tree, &keys[..1]).expect("read")[0].as_deref(),
        Some(&b"new"[..])
    );
    assert!(tree.get_many::<&[u8]>(&[]).expect("read").is_empty());
    let mut txn = db.write();
    txn.put(&tree, keys[1], "own").expect("put");
    assert_eq!(txn.get_many(&tree, &keys[1..2]).expect("read")[0].as_deref(), Some(&b"own"[..]));
}
