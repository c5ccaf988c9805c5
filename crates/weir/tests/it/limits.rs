//! What there can be at most (`docs/guide/limits.md`), at lowered limits: an error, and no damage.
use std::sync::Arc;

use weir::{Config, Db, Durability, Error, SimVolume, StoreKind};

use crate::support::tiny;

/// A database of as many pages as it may have: a writer that needs one fails; what is there can
/// be read, changed and deleted, and then there is room again.
#[test]
fn a_database_of_the_greatest_size_goes_on() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let volume = SimVolume::new(91);
        let config = Config { pages_max: 128, store: Some(store), ..tiny() };
        let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("opened");
        let tree = db.create_tree("rows").expect("a tree");
        let key = |n: u32| n.to_be_bytes();
        let mut rows = 0;
        let refused = loop {
            match tree.put(&key(rows), &[rows as u8; 900], Durability::Synced) {
                Ok(()) => rows += 1,
                Err(e) => break e,
            }
            assert!(rows < 2_000, "{store}: {rows} rows in 128 pages");
        };
        assert!(matches!(refused, Error::DiskFull(_)), "{store}: {refused:?}");
        assert!(refused.to_string().contains("128 pages"), "{store}: {refused}");
        assert!(matches!(db.create_tree("more"), Err(Error::DiskFull(_))));
        assert!(rows > 200 && db.stats().halted.is_none());
        for n in 0..rows {
            assert_eq!(tree.get(&key(n)).expect("read"), Some(vec![n as u8; 900]), "{store} {n}");
        }
        tree.put(&key(3), &[9; 900], Durability::Synced).expect("changed in its place");
        for n in 0..rows / 2 {
            tree.delete(&key(n), Durability::Synced).expect("deleted");
        }
        for _ in 0..200 {
            db.step().expect("a step");
        }
        db.create_tree("more").expect("there is room");
        drop(tree);
        db.close().expect("closed");
        let db = Db::open_on(Arc::new(volume), config).expect("opened again");
        let report = db.check(&mut |_, _| {}).expect("checked");
        assert!(report.problems.is_empty(), "{store}: {:?}", report.problems);
        db.close().expect("closed");
    }
}

/// Many trees, transactions prepared and snapshots held at a time: nothing but memory and pages
/// bounds them.
#[test]
fn many_trees_prepared_transactions_and_snapshots() {
    let volume = SimVolume::new(92);
    let config = Config { pages_max: 8_192, pool_bytes: 4 << 20, log_bytes: 4 << 20, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("opened");
    for n in 0..1_500u32 {
        let tree = db.create_tree(&format!("tree {n}")).expect("a tree");
        tree.put(b"row", &n.to_be_bytes(), Durability::Lazy).expect("a put");
    }
    let tree = db.tree("tree 0").expect("looked").expect("a tree");
    let snapshots: Vec<_> = (0..1_000).map(|_| db.snapshot()).collect();
    for n in 0..1_000u32 {
        let mut txn = db.begin(weir::TxnOptions::default());
        txn.put(&tree, &n.to_be_bytes(), b"prepared").expect("a put");
        let prepared = txn.prepare(format!("xid {n}").as_bytes()).map_err(|e| e.to_string());
        prepared.expect("prepared");
    }
    drop(snapshots);
    db.close().expect("closed");
    let db = Db::open_on(Arc::new(volume), config).expect("opened again");
    assert_eq!(db.tree_names().expect("names").len(), 1_500);
    assert_eq!(db.prepared().len(), 1_000);
    db.close().expect("closed");
}
