//! Batches of several threads over the same rows.
use std::collections::BTreeMap;

use weir_txn::{Batch, BatchOp};

use crate::support::{Site, relogging, rows, site};

/// Each batch gives a set of keys one value in both trees, or deletes them in both, sometimes with
/// long values, and sometimes fails at its end. Whatever the order, the trees are equal afterwards.
fn overlapping(site: &Site, rounds: u32) {
    let (left, right) = (site.tree(10), site.tree(11));
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (left, right) = (&left, &right);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for round in 0..rounds {
                    let mut batch = Batch::default();
                    let len = if random.u8(0..8) == 0 { random.usize(1_000..12_000) } else { 40 };
                    let mut value = vec![thread as u8; len];
                    value[..4].copy_from_slice(&round.to_be_bytes());
                    let delete = random.u8(0..4) == 0;
                    for _ in 0..random.usize(1..12) {
                        let key = [random.u8(0..40); 5];
                        for tree in [left, right] {
                            let put = BatchOp::Put(value.clone());
                            batch.add(tree, &key, if delete { BatchOp::Delete } else { put });
                        }
                    }
                    let fails = random.u8(0..5) == 0;
                    if fails {
                        batch.add(right, &[0xff; 2_000], BatchOp::Delete);
                    }
                    let written = site.auto.write(&batch);
                    assert_eq!(written.is_err(), fails, "{written:?}");
                    // A single write between the batches, to a key of its own in both.
                    let own = [200 + thread as u8];
                    site.auto.put(left, &own, &value).expect("put");
                    site.auto.put(right, &own, &value).expect("put");
                }
            });
        }
    });
    // One may have been passed over that was just logged again.
    while site.background.purge(usize::MAX) > 0 {}
    let (l, r) = (rows(&left), rows(&right));
    assert!(l == r, "the trees are equal");
    site.check(&[(&left, &l), (&right, &r)]);
}

#[test]
fn batches_are_atomic_among_each_other() {
    overlapping(&site(1024, 16 << 20), 400);
}

#[test]
fn also_in_a_small_pool_and_a_small_log() {
    let site = site(96, 1 << 20);
    relogging(&site, || overlapping(&site, 200));
}

/// Single writes and batches to the same few rows: each waits for the other, no transaction for
/// ever.
#[test]
fn single_writes_wait_for_batches() {
    let site = site(256, 8 << 20);
    let tree = site.tree(10);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (site, tree) = (&site, &tree);
            scope.spawn(move || {
                for round in 0..200u32 {
                    let value = vec![thread; if round % 10 == 0 { 5_000 } else { 20 }];
                    if thread % 2 == 0 {
                        let mut batch = Batch::default();
                        for key in 0..4u8 {
                            batch.add(tree, &[key], BatchOp::Put(value.clone()));
                        }
                        site.auto.write(&batch).expect("written");
                    } else if round % 3 == 0 {
                        site.auto.delete(tree, &[round as u8 % 4]).expect("deleted");
                    } else {
                        site.auto.put(tree, &[round as u8 % 4], &value).expect("put");
                    }
                }
            });
        }
    });
    let now: BTreeMap<_, _> = rows(&tree);
    site.check(&[(&tree, &now)]);
}
