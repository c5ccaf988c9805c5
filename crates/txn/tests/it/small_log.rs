//! Transactions larger than what the log can hold at a time.
use std::collections::BTreeMap;

use weir_txn::{Batch, BatchOp, TxnError};

use crate::support::site;

const SMALLEST: u64 = 640 << 10;

/// The value is five times the log: its own undo is carried forward so that it never holds the
/// checkpoint that it waits for.
#[test]
fn a_long_value_through_the_smallest_log() {
    let site = site(128, SMALLEST);
    let tree = site.tree(10);
    let mut model = BTreeMap::new();
    for round in 0..3u8 {
        let value: Vec<u8> = (0..3u32 << 20).map(|i| (i >> 9) as u8 ^ round).collect();
        let began = site.log.end();
        site.writer.put(&tree, b"long", &value).expect("put");
        assert!(site.log.end().bytes_since(began) > 3 << 20);
        model.insert(b"long".to_vec(), value);
        site.check(&[(&tree, &model)]);
    }
    assert!(site.writer.delete(&tree, b"long").expect("deleted").is_some());
    model.clear();
    site.check(&[(&tree, &model)]);
}

/// The same, taken back at the end.
#[test]
fn a_long_value_is_taken_back_through_the_smallest_log() {
    let site = site(128, SMALLEST);
    let tree = site.tree(10);
    let mut model = BTreeMap::new();
    for n in 0u8..50 {
        site.writer.put(&tree, &[n], &[n; 300]).expect("put");
        model.insert(vec![n], vec![n; 300]);
    }
    let mut batch = Batch::default();
    for n in 0u8..50 {
        batch.add(&tree, &[n], if n % 2 == 0 { BatchOp::Delete } else { BatchOp::Put(vec![9; 9]) });
    }
    batch.add(&tree, &[60], BatchOp::Put(vec![1; 2 << 20]));
    batch.add(&tree, &[61; 2_000], BatchOp::Put(vec![1; 5_000]));
    let failed = site.writer.write(&batch);
    assert!(matches!(failed, Err(TxnError::Tree(_))), "{failed:?}");
    site.check(&[(&tree, &model)]);
}

/// Long values from several threads, and small ones between them, through one small log: who holds
/// the checkpoint never waits for it without end.
#[test]
fn long_and_short_values_at_once() {
    let site = site(256, 1 << 20);
    let trees: Vec<_> = (0..4).map(|n| site.tree(10 + n)).collect();
    std::thread::scope(|scope| {
        for (n, tree) in trees.iter().enumerate() {
            let writer = &site.writer;
            scope.spawn(move || {
                let big = if n < 2 { 700_000 } else { 300 };
                for round in 0..if n < 2 { 4 } else { 3_000u32 } {
                    let key = (round % 50).to_be_bytes();
                    writer.put(tree, &key, &vec![round as u8; big]).expect("put");
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
