//! Single writes and batches against models.
use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_redo::Durability;
use weir_txn::{Batch, BatchOp};

use crate::support::{rows, site};

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, u16),
    Delete(u8, u8),
    Batch(Vec<(u8, u8, Option<u16>)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![4 => 0u16..300, 1 => 500u16..30_000];
    let change = (0u8..2, 0u8..60, proptest::option::of(len()));
    let step = prop_oneof![
        3 => (0u8..2, 0u8..60, len()).prop_map(|(t, k, l)| Step::Put(t, k, l)),
        2 => (0u8..2, 0u8..60).prop_map(|(t, k)| Step::Delete(t, k)),
        2 => proptest::collection::vec(change, 0..20).prop_map(Step::Batch),
    ];
    proptest::collection::vec(step, 1..60)
}

fn key(k: u8) -> Vec<u8> {
    vec![k; 1 + usize::from(k)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Long values that replace short ones and the other way round, deletes of both, keys named
    /// twice in a batch, in two trees, through a log that is small and a pool that is tiny.
    #[test]
    fn writes_do_what_they_say(steps in steps(), tiny in any::<bool>()) {
        let site = site(if tiny { 16 } else { 1024 }, 2 << 20);
        let trees = [site.tree(10), site.tree(11)];
        let mut models = [BTreeMap::new(), BTreeMap::new()];
        for (n, step) in steps.iter().enumerate() {
            match step {
                Step::Put(t, k, len) => {
                    let value = vec![n as u8; usize::from(*len)];
                    let t = usize::from(*t);
                    site.auto.put(&trees[t], &key(*k), &value).expect("put");
                    models[t].insert(key(*k), value);
                }
                Step::Delete(t, k) => {
                    let t = usize::from(*t);
                    let was = site.auto.delete(&trees[t], &key(*k)).expect("delete");
                    prop_assert_eq!(was.is_some(), models[t].remove(&key(*k)).is_some());
                }
                Step::Batch(changes) => {
                    let mut batch = Batch::default();
                    for (t, k, len) in changes {
                        let t = usize::from(*t);
                        let key = key(*k);
                        match len {
                            Some(len) => {
                                let value = vec![n as u8; usize::from(*len)];
                                batch.add(&trees[t], &key, BatchOp::Put(value.clone()));
                                models[t].insert(key, value);
                            }
                            None => {
                                batch.add(&trees[t], &key, BatchOp::Delete);
                                models[t].remove(&key);
                            }
                        }
                    }
                    let end = site.auto.write(&batch).expect("written");
                    prop_assert!(end <= site.log.end());
                }
            }
        }
        site.check(&[(&trees[0], &models[0]), (&trees[1], &models[1])]);
    }
}

#[test]
fn a_bulk_load_is_one_transaction() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    let model: BTreeMap<Vec<u8>, Vec<u8>> = (0u32..3_000)
        .map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; if n % 500 == 0 { 9_000 } else { 30 }]))
        .collect();
    let (count, end) = site.auto.bulk_load(&tree, model.iter()).expect("loaded");
    assert_eq!((count, end), (3_000, site.log.end()));
    site.check(&[(&tree, &model)]);
    // Out of order in the end: everything taken so far is given back.
    let second = site.tree(11);
    let wrong = model.iter().chain(model.iter().take(1));
    assert!(site.auto.bulk_load(&second, wrong).is_err());
    site.check(&[(&tree, &model), (&second, &BTreeMap::new())]);
    assert!(site.auto.bulk_load(&tree, model.iter()).is_err(), "not empty");
    assert_eq!(rows(&tree).len(), 3_000);
}

/// Between two pages a bulk load waits for its caller: what it has done so far is logged again
/// meanwhile, and does not hold the log.
#[test]
fn a_bulk_load_that_waits_for_its_caller_holds_no_log() {
    let site = site(256, 1 << 20);
    let (tree, other) = (site.tree(10), site.tree(11));
    let busy = |n: u32| {
        for i in 0..200 {
            site.auto.put(&other, b"busy", &[(n + i) as u8; 400]).expect("put");
        }
        site.context.relog_all().expect("relogged");
        let oldest = site.registry.oldest().unwrap_or(site.log.end());
        // As recording the checkpoint does.
        site.log.flush(Durability::Synced).expect("synced");
        site.log.set_checkpoint(oldest);
        let age = site.log.end().bytes_since(oldest);
        assert!(age <= site.log.limit_bytes() / 2, "{age} bytes after {n} waits");
    };
    let entries = (0u32..3_000).inspect(|n| {
        if *n == 1_500 {
            (0..30).for_each(&busy);
        }
    });
    let entries = entries.map(|n| (n.to_be_bytes(), [1; 100]));
    site.auto.bulk_load(&tree, entries).expect("loaded");
    assert!(site.context.relogged_bytes() > 0);
    let (loaded, busy) = (rows(&tree), rows(&other));
    assert_eq!(loaded.len(), 3_000);
    site.check(&[(&tree, &loaded), (&other, &busy)]);
}
