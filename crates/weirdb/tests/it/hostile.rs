//! Sizes, keys and bounds that no program should give, to everything that takes some.
use std::ops::Bound;

use weirdb::{Batch, Error, OpenError, Swap, TxnOptions};

use crate::{config, new};

/// The longest key of a database with pages of 8192 bytes, as the error says it.
fn longest_key(tree: &weirdb::Tree) -> usize {
    let e = tree.put(vec![0; 8192], "").expect_err("too long");
    let Error::InvalidInput(what) = e else { panic!("{e:?}") };
    what.rsplit_once("may have ").expect("it says so").1.parse().expect("a number")
}

#[test]
fn keys_of_every_length() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let max = longest_key(&tree);
    for len in [0, 1, max - 1, max] {
        let key = vec![0xff; len];
        tree.put(&key, "v").expect("put");
        assert!(tree.contains_key(&key).expect("read"));
        assert_eq!(tree.range(&key[..]..=&key[..]).count(), 1, "{len}");
        assert!(tree.prefix(&key).next().is_some());
        assert!(tree.remove(&key).expect("removed"));
    }
    for len in [max + 1, 10_000, 10 << 20] {
        let key = vec![0xff; len];
        let refused = |done: Result<(), Error>| {
            assert!(matches!(done, Err(Error::InvalidInput(_))), "{len}: {done:?}");
        };
        refused(tree.put(&key, "v"));
        refused(tree.insert(&key, "v"));
        refused(tree.update(&key, |_| Some(vec![1])).map(drop));
        refused(tree.add(&key, 1).map(drop));
        refused(tree.compare_and_swap(&key, None, Some(b"v")).map(drop));
        refused(tree.bulk_load([(&key, "v")]).map(drop));
        let mut batch = Batch::new();
        batch.put(&tree, "beside", "v");
        batch.put(&tree, &key, "v");
        refused(db.apply(&batch));
        let mut txn = db.write();
        txn.put(&tree, "beside", "v").expect("put");
        refused(txn.put(&tree, &key, "v"));
        txn.put(&tree, "after", "v").expect("it goes on");
        // What is only looked for need not be possible.
        assert!(!tree.contains_key(&key).expect("read"));
        assert!(tree.get(&key).expect("read").is_none());
        refused(tree.remove(&key).map(drop));
        assert_eq!(tree.range(&key[..]..).count() + tree.range(..&key[..]).count(), 0);
        assert_eq!(
            tree.range::<&Vec<u8>>((Bound::Excluded(&key), Bound::Included(&key))).count(),
            0
        );
        assert_eq!(txn.range(&tree, ..=&key[..]).count(), 2);
        assert_eq!(tree.prefix(&key).rev().count(), 0);
    }
    assert!(tree.is_empty().expect("read"), "nothing of it was committed");
}

#[test]
fn values_of_many_lengths() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for len in [0, 1, 100, 4095, 4096, 8191, 8192, 8193, 100_000, 1 << 20] {
        let value = vec![len as u8; len];
        tree.put("k", &value).expect("put");
        assert!(tree.get("k").expect("read").is_some_and(|found| found == value), "{len}");
        let old = tree.update("k", |old| old.map(|old| [old, b"!"].concat())).expect("updated");
        assert_eq!(old.map(|old| old.len()), Some(len));
        assert_eq!(tree.iter().next_back().expect("a row").expect("read").1.len(), len + 1);
    }
}

#[test]
fn bounds_in_every_order() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for key in ["a", "b", "c"] {
        tree.put(key, key).expect("put");
    }
    let mut txn = db.write();
    #[allow(clippy::reversed_empty_ranges)]
    let none = ["c".."a", "b".."b", "d".."e", "".."a"];
    for range in none {
        assert_eq!(tree.range(range.clone()).count(), 0, "{range:?}");
        assert_eq!(tree.range(range.clone()).rev().count(), 0, "{range:?}");
        assert_eq!(txn.range(&tree, range.clone()).count(), 0, "{range:?}");
        assert_eq!(txn.range_for_update(&tree, range.clone()).count(), 0, "{range:?}");
        assert_eq!(txn.range_for_update(&tree, range).skip_locked().count(), 0);
    }
    let both = |key| (Bound::Excluded(key), Bound::Excluded(key));
    assert_eq!(tree.range::<&str>(both("b")).count(), 0);
    assert_eq!(tree.range("b"..="b").count(), 1);
    assert_eq!(tree.range::<&str>(..).count(), 3);
    assert_eq!(tree.prefix("").count(), 3);
}

#[test]
fn names_that_no_tree_can_have() {
    let (_dir, db) = new();
    for name in [String::new(), "x".repeat(256), "x".repeat(1 << 20)] {
        let refused = |done: Result<(), Error>| {
            assert!(matches!(done, Err(Error::InvalidInput(_))), "{}: {done:?}", name.len());
        };
        refused(db.open_tree(&name).map(drop));
        refused(db.create_tree(&name).map(drop));
        refused(db.get_tree(&name).map(drop));
        refused(db.drop_tree(&name).map(drop));
        refused(db.rename_tree(&name, "t").map(drop));
        refused(db.rename_tree("t", &name).map(drop));
        refused(db.write().create_tree(&name).map(drop));
        refused(db.write().prepare(&name));
    }
    for name in ["x", "\0", "../x", "\u{fc}/", &"y".repeat(255)] {
        db.open_tree(name).expect("made").put("k", name).expect("put");
    }
    assert_eq!(db.tree_names().expect("read").len(), 5);
}

#[test]
fn what_belongs_to_another_database_is_refused() {
    let ((_one, db), (_two, other)) = (new(), new());
    let (tree, foreign) = (db.open_tree("t").expect("made"), other.open_tree("t").expect("made"));
    tree.put("k", "v").expect("put");
    fn refused<T: std::fmt::Debug>(done: Result<T, Error>) {
        assert!(matches!(done, Err(Error::InvalidInput(_))), "{done:?}");
    }
    let (reader, mut writer) = (other.read(), other.write());
    refused(reader.get(&tree, "k"));
    refused(reader.len(&tree));
    refused(reader.first(&tree));
    refused(reader.iter(&tree).next_back().expect("an answer"));
    refused(writer.get(&tree, "k"));
    refused(writer.put(&tree, "k", "w"));
    refused(writer.insert(&tree, "l", "w"));
    refused(writer.remove(&tree, "k"));
    refused(writer.update(&tree, "k", |_| None));
    refused(writer.add(&tree, "k", 1));
    refused(writer.get_for_share(&tree, "k"));
    refused(writer.iter(&tree).next().expect("an answer"));
    refused(writer.range_for_update::<&str>(&tree, ..).next().expect("an answer"));
    let mut batch = Batch::new();
    batch.put(&foreign, "k", "w");
    refused(db.apply(&batch));
    batch.put(&tree, "k", "w");
    refused(db.apply(&batch));
    refused(other.apply(&batch));
    assert_eq!(tree.get("k").expect("read").as_deref(), Some(&b"v"[..]));
    assert!(foreign.is_empty().expect("read"));
}

#[test]
fn loads_that_cannot_be_leave_the_tree_as_it_was() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for wrong in [["b", "a"], ["a", "a"]] {
        let e = tree.bulk_load(wrong.map(|key| (key, "v"))).expect_err("refused");
        assert!(matches!(e, Error::InvalidInput(_)), "{e:?}");
        assert!(tree.is_empty().expect("read"));
    }
    assert_eq!(tree.bulk_load([("", ""); 0]).expect("loaded"), 0);
    assert_eq!(tree.bulk_load([("a", "1"), ("b", "2")]).expect("loaded"), 2);
    let e = tree.bulk_load([("c", "3")]).expect_err("it is not empty");
    assert!(matches!(e, Error::InvalidInput(_)), "{e:?}");
    assert_eq!(tree.len().expect("counted"), 2);
}

#[test]
fn counters_that_are_none_or_run_over() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("text", "seven").expect("put");
    assert_eq!(tree.add("n", i64::MAX).expect("added"), i64::MAX);
    for (key, by) in [("text", 1), ("n", 1)] {
        let e = tree.add(key, by).expect_err("refused");
        assert!(matches!(e, Error::InvalidInput(_)), "{e:?}");
    }
    assert_eq!(tree.add("n", i64::MIN).expect("added"), -1);
    assert_eq!(tree.get("text").expect("read").as_deref(), Some(&b"seven"[..]));
    let swap = tree.compare_and_swap("none", None, None).expect("compared");
    assert_eq!(swap, Swap::Swapped);
}

#[test]
fn sizes_of_the_log_that_cannot_be() {
    let (_dir, db) = new();
    for bytes in [0, 1, (64 << 20) + 1, 1 << 30, u64::MAX] {
        let e = db.set_log_bytes(bytes).expect_err("refused");
        assert!(matches!(e, Error::InvalidInput(_)), "{e:?}");
    }
    // Sixteen times what it was opened with.
    db.set_log_bytes(64 << 20).expect("larger");
}

#[test]
fn places_where_nothing_can_be_made() {
    for place in ["/proc/weirdb", "/sys/weirdb", "/dev/null/weirdb", "\0", ""] {
        let told = config().open(place).expect_err("refused");
        assert!(matches!(told, OpenError::Io { .. } | OpenError::Directory { .. }), "{told:?}");
    }
}

#[test]
fn sizes_that_no_machine_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let large = [
        config().cache_bytes(u64::MAX),
        config().cache_bytes(1 << 60),
        config().cache_bytes(1 << 47),
        config().pages_max(u32::MAX).recovery_threads(usize::MAX),
        config().log_bytes(1 << 40),
    ];
    // What is only reserved may be had; all else is refused.
    for (number, config) in large.into_iter().enumerate() {
        match config.open(dir.path().join(number.to_string())) {
            Ok(db) => {
                db.open_tree("t").expect("made").put("k", "v").expect("put");
                db.close().expect("closed");
            }
            Err(OpenError::Io { .. } | OpenError::Config(_) | OpenError::DiskFull { .. }) => {}
            Err(told) => panic!("{config:?}: {told:?}"),
        }
    }
}

#[test]
fn a_transaction_of_many_rows_is_one() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    db.transact(TxnOptions::new(), |txn| {
        (0..50_000u32).try_for_each(|n| txn.put(&tree, n.to_be_bytes(), [0; 100]))
    })
    .expect("committed");
    assert_eq!(tree.len().expect("counted"), 50_000);
    let mut txn = db.write();
    for n in 0..50_000u32 {
        txn.remove(&tree, n.to_be_bytes()).expect("removed");
    }
    assert!(txn.is_empty(&tree).expect("read"));
    drop(txn);
    assert_eq!(tree.len().expect("counted"), 50_000);
}

#[test]
fn values_larger_than_the_log_or_than_any_page_count() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    tree.put("k", "old").expect("put");
    // The log has 4 MiB: this is either possible or refused, and nothing in between.
    let large = vec![7; 16 << 20];
    let kept = match tree.put("k", &large) {
        Ok(()) => &large[..],
        Err(Error::TooLarge(_) | Error::DiskFull { .. } | Error::InvalidInput(_)) => b"old",
        Err(e) => panic!("{e:?}"),
    };
    assert!(tree.get("k").expect("read").is_some_and(|found| found == *kept));
    // Memory that is never touched: the length is looked at first.
    let has_room = std::fs::read_to_string("/proc/meminfo")
        .is_ok_and(|text| kib(&text, "MemAvailable:") > 6 << 20);
    if has_room {
        let over = vec![0; 1 << 32];
        let refused = |done: Result<(), Error>| {
            assert!(matches!(done, Err(Error::InvalidInput(_))), "{done:?}");
        };
        refused(tree.put("k", &over));
        refused(tree.insert("l", &over));
        let mut txn = db.write();
        refused(txn.put(&tree, "k", &over));
        txn.commit().expect("it goes on");
    }
    assert!(tree.get("k").expect("read").is_some_and(|found| found == *kept));
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
