//! Opening, writing, reading, reopening.
use std::collections::BTreeMap;
use std::sync::Arc;

use weir::{Background, Batch, Config, Db, Durability, SimVolume};

fn small() -> Config {
    Config {
        pool_bytes: 2 << 20,
        log_bytes: 1 << 20,
        page_size: 4096,
        background: Background::Manual,
        pages_max: 1 << 16,
        ..Config::default()
    }
}

fn check(db: &Db) {
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn rows_survive_closing() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = || Config { background: Background::Threads, ..small() };
    let db = Db::open(dir.path(), config()).expect("a new database");
    let tree = db.create_tree("birds").expect("a tree");
    for i in 0..5_000u32 {
        tree.put(&i.to_be_bytes(), &[i as u8; 100], Durability::Lazy).expect("a put");
    }
    check(&db);
    drop(tree);
    db.close().expect("closed in order");
    let db = Db::open(dir.path(), config()).expect("opened again");
    assert_eq!(db.recovery_report(), None);
    let tree = db.tree("birds").expect("read").expect("the tree");
    for i in 0..5_000u32 {
        assert_eq!(tree.get(&i.to_be_bytes()).expect("a get"), Some(vec![i as u8; 100]));
    }
    check(&db);
}

#[test]
fn a_crash_loses_nothing_that_was_synced() {
    let volume = SimVolume::new(1);
    let db = Db::open_on(Arc::new(volume.clone()), small()).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    let mut model = BTreeMap::new();
    let mut random = fastrand::Rng::with_seed(3);
    for step in 0..20_000u32 {
        let key = random.u32(0..3_000).to_be_bytes().to_vec();
        if random.u8(0..10) == 0 {
            let was = tree.delete(&key, Durability::Synced).expect("a delete");
            assert_eq!(was, model.remove(&key).is_some());
        } else {
            let value = vec![step as u8; random.usize(0..300)];
            tree.put(&key, &value, Durability::Synced).expect("a put");
            model.insert(key, value);
        }
        if step % 4_000 == 3_999 {
            let mut batch = Batch::new();
            for i in 0..50u32 {
                batch.put(&tree, &(100_000 + i).to_be_bytes(), &vec![7; 5_000]);
                model.insert((100_000 + i).to_be_bytes().to_vec(), vec![7; 5_000]);
            }
            db.write(&batch, Durability::Synced).expect("a batch");
        }
    }
    check(&db);
    let crashed = volume.crash(99);
    let db = Db::open_on(Arc::new(crashed), small()).expect("recovered");
    assert!(db.recovery_report().is_some());
    check(&db);
    let tree = db.tree("t").expect("read").expect("the tree");
    let mut cursor = tree.cursor();
    let mut found = cursor.seek_first().expect("a seek");
    let mut seen = BTreeMap::new();
    while found {
        let key = cursor.key().to_vec();
        seen.insert(key, cursor.value().expect("a value").to_vec());
        found = cursor.next().expect("a step");
    }
    assert_eq!(seen.len(), model.len());
    assert!(seen == model);
}

#[test]
fn trees_come_and_go() {
    let volume = SimVolume::new(1);
    let db = Db::open_on(Arc::new(volume.clone()), small()).expect("a new database");
    let before = db.stats().pages_allocated;
    for round in 0..3 {
        let tree = db.create_tree("t").expect("a tree");
        assert!(db.create_tree("t").is_err());
        for i in 0..2_000u32 {
            let value = vec![1; if i % 100 == 0 { 20_000 } else { 50 }];
            tree.put(&i.to_be_bytes(), &value, Durability::Lazy).expect("a put");
        }
        check(&db);
        assert_eq!(db.tree_names().expect("names"), vec!["t".to_owned()]);
        assert!(db.drop_tree("t").expect("dropped"), "round {round}");
        assert!(!db.drop_tree("t").expect("dropped"));
        check(&db);
        assert_eq!(db.stats().pages_allocated, before);
    }
}
