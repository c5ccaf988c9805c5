//! Transactions larger than what the log can hold at a time.
use std::collections::BTreeMap;

use weir_txn::{Batch, BatchOp, Intent, Isolation, Txn, TxnError, Wait};

use crate::support::{Rows, site};

const SMALLEST: u64 = 640 << 10;

/// The value is five times the log: its own undo is logged again so that it never holds the
/// checkpoint that it waits for.
#[test]
fn a_long_value_through_the_smallest_log() {
    let site = site(128, SMALLEST);
    let tree = site.tree(10);
    let mut model = BTreeMap::new();
    for round in 0..3u8 {
        let value: Vec<u8> = (0..3u32 << 20).map(|i| (i >> 9) as u8 ^ round).collect();
        let began = site.log.end();
        site.auto.put(&tree, b"long", &value).expect("put");
        assert!(site.log.end().bytes_since(began) > 3 << 20);
        model.insert(b"long".to_vec(), value);
        site.check(&[(&tree, &model)]);
    }
    assert!(site.auto.delete(&tree, b"long").expect("deleted").is_some());
    model.clear();
    site.check(&[(&tree, &model)]);
}

/// The same, rolled back at the end.
#[test]
fn a_long_value_is_rolled_back_through_the_smallest_log() {
    let site = site(128, SMALLEST);
    let tree = site.tree(10);
    let mut model = BTreeMap::new();
    for n in 0u8..50 {
        site.auto.put(&tree, &[n], &[n; 300]).expect("put");
        model.insert(vec![n], vec![n; 300]);
    }
    let mut batch = Batch::default();
    for n in 0u8..50 {
        batch.add(&tree, &[n], if n % 2 == 0 { BatchOp::Delete } else { BatchOp::Put(vec![9; 9]) });
    }
    batch.add(&tree, &[60], BatchOp::Put(vec![1; 2 << 20]));
    batch.add(&tree, &[61; 2_000], BatchOp::Put(vec![1; 5_000]));
    let failed = site.auto.write(&batch);
    assert!(matches!(failed, Err(TxnError::Tree(_))), "{failed:?}");
    site.check(&[(&tree, &model)]);
}

/// Long values from several threads, and small ones between them, through one small log: a
/// transaction that holds the checkpoint never waits for it without end.
#[test]
fn long_and_short_values_at_once() {
    let site = site(256, 1 << 20);
    let trees: Vec<_> = (0..4).map(|n| site.tree(10 + n)).collect();
    std::thread::scope(|scope| {
        for (n, tree) in trees.iter().enumerate() {
            let auto = &site.auto;
            scope.spawn(move || {
                let big = if n < 2 { 700_000 } else { 300 };
                for round in 0..if n < 2 { 4 } else { 3_000u32 } {
                    let key = (round % 50).to_be_bytes();
                    auto.put(tree, &key, &vec![round as u8; big]).expect("put");
                }
            });
        }
    });
    let models: Vec<BTreeMap<_, _>> = (0..4)
        .map(|n| {
            let (rounds, big) = if n < 2 { (4u32, 700_000) } else { (3_000, 300) };
            (0..rounds).map(|r| ((r % 50).to_be_bytes().to_vec(), vec![r as u8; big])).collect()
        })
        .collect();
    let all: Vec<_> = trees.iter().zip(&models).collect();
    site.check(&all);
}

/// Pages that are free in very many places make a value, or a bulk load, that the log cannot roll
/// back: it says so, leaves nothing behind, and goes on with smaller ones.
#[test]
fn a_value_in_too_many_places() {
    let site = site(1024, SMALLEST);
    let tree = site.tree(10);
    let mut model = Rows::new();
    for n in 0u32..9_000 {
        let key = n.to_be_bytes();
        site.auto.put(&tree, &key, &[1; 4_040]).expect("a value of one page");
        model.insert(key.to_vec(), vec![1; 4_040]);
    }
    for n in (0u32..9_000).step_by(2) {
        site.auto.delete(&tree, &n.to_be_bytes()).expect("every other page is free");
        model.remove(&n.to_be_bytes()[..]);
    }
    while site.background.purge(64) > 0 {}
    let too_long = vec![2; 16 << 20];
    let refused = site.auto.put(&tree, b"long", &too_long);
    assert!(matches!(refused, Err(TxnError::TooLarge { .. })), "{refused:?}");
    let bulk = site.tree(11);
    let entries = (0u32..100_000).map(|n| (n.to_be_bytes(), [3; 200]));
    let refused = site.auto.bulk_load(&bulk, entries);
    assert!(matches!(refused, Err(TxnError::TooLarge { .. })), "{refused:?}");

    let mut txn = Txn::new(Isolation::RepeatableRead, Wait::No);
    txn.change(&site.context, &tree, b"short", Intent::Put(b"before")).expect("changed");
    let refused = txn.change(&site.context, &tree, b"long", Intent::Put(&too_long));
    assert!(matches!(refused, Err(TxnError::TooLarge { .. })), "{refused:?}");
    let less = vec![4; 4 << 20];
    txn.change(&site.context, &tree, b"long", Intent::Put(&less)).expect("it goes on");
    site.commit(&mut txn).expect("committed");
    while site.background.purge(64) > 0 {}
    model.extend([(b"short".to_vec(), b"before".to_vec()), (b"long".to_vec(), less)]);
    site.check(&[(&tree, &model), (&bulk, &Rows::new())]);
}

/// Rows far beyond the log are changed in one transaction, until naming what is stored would be
/// much of the log. Saying it again has then cost less than the changes.
#[test]
fn more_rows_than_the_log_can_name() {
    const ROWS: u32 = 150_000;
    for commits in [true, false] {
        let site = site(1024, SMALLEST);
        let tree = site.tree(10);
        let before = (0..ROWS).map(|n| (n.to_be_bytes(), [1; 100]));
        site.auto.bulk_load(&tree, before).expect("loaded");
        let mut model: Rows = (0..ROWS).map(|n| (n.to_be_bytes().to_vec(), vec![1; 100])).collect();
        let (mut txn, began) = (Txn::new(Isolation::RepeatableRead, Wait::No), site.log.end());
        let change = |txn: &mut Txn, n: u32| {
            txn.change(&site.context, &tree, &n.to_be_bytes(), Intent::Put(b"2"))
        };
        let (mut changed, mut points) = (0, Vec::new());
        let refused = loop {
            if changed % 1_000 == 0 {
                points.push((changed, txn.savepoint()));
            }
            match change(&mut txn, changed) {
                Ok(_) => changed += 1,
                Err(e) => break e,
            }
        };
        assert!(matches!(refused, TxnError::TooLarge { .. }), "{refused}");
        assert!(u64::from(changed) * 100 > 12 * SMALLEST, "{changed} rows");
        let wrote = site.log.end().bytes_since(began);
        assert!(site.context.relogged_bytes() < wrote / 2, "most of {wrote} bytes are changes");
        // With less to roll back it goes on.
        let (kept, point) = points[points.len() / 2];
        txn.rollback_to(&site.context, point).expect("back");
        change(&mut txn, kept).expect("changed");
        if commits {
            site.commit(&mut txn).expect("committed");
            (0..=kept).for_each(|n| drop(model.insert(n.to_be_bytes().to_vec(), b"2".to_vec())));
        } else {
            txn.rollback(&site.context).expect("rolled back");
        }
        while site.background.purge(64) > 0 {}
        site.check(&[(&tree, &model)]);
    }
}
