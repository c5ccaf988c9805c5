//! Small databases whose contents are known.
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use weir::{
    Background, Batch, Config, Db, DoubleWriteConfig, Durability, Error, SimVolume, StoreKind, Tree,
};

/// Rows of one tree.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// Trees by name.
pub(crate) type Model = BTreeMap<&'static str, Rows>;

/// The least of everything, with one thread. Some tests open thousands of databases: the memory
/// that this process may use is asked for once.
pub(crate) fn tiny() -> Config {
    static TINY: LazyLock<Config> = LazyLock::new(made_tiny);
    TINY.clone()
}

fn made_tiny() -> Config {
    Config {
        held_log_bytes: Some(1 << 30),
        pool_bytes: 256 << 10,
        log_bytes: 640 << 10,
        page_size: 4096,
        doublewrite: DoubleWriteConfig { files: 1, pages: 8, ..DoubleWriteConfig::default() },
        background: Background::Manual,
        pages_max: 256,
        ..Config::default()
    }
}

pub(crate) fn open(volume: &SimVolume) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), tiny())
}

pub(crate) fn put(tree: &Tree, rows: &mut Rows, key: &[u8], value: Vec<u8>) {
    tree.put(key, &value, Durability::Synced).expect("a put");
    rows.insert(key.to_vec(), value);
}

/// A database of some twenty pages: two trees, long values, a part of it behind the checkpoint.
/// It is open, and everything in it is synced.
pub(crate) fn populated(volume: &SimVolume) -> (Db, Model) {
    populated_in(volume, StoreKind::InPlace)
}

/// As [`populated`], with its pages in `store`.
pub(crate) fn populated_in(volume: &SimVolume, store: StoreKind) -> (Db, Model) {
    populated_with(volume, Config { store: Some(store), ..tiny() })
}

/// As [`populated`], with these settings.
pub(crate) fn populated_with(volume: &SimVolume, config: Config) -> (Db, Model) {
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("a new database");
    let mut model = Model::new();
    for name in ["herons", "weirs"] {
        let tree = db.create_tree(name).expect("a tree");
        let rows = model.entry(name).or_default();
        for i in 0..30u8 {
            let value = vec![i; 40 + usize::from(i) * 6];
            put(&tree, rows, format!("row {i:03}").as_bytes(), value);
        }
        put(&tree, rows, b"long", vec![7; 6_000]);
    }
    db.checkpoint().expect("a checkpoint");
    for (name, rows) in &mut model {
        let tree = db.tree(name).expect("read").expect("the tree");
        for i in (0..30u8).step_by(9) {
            put(&tree, rows, format!("row {i:03}").as_bytes(), vec![i ^ 0x80; 120]);
        }
        put(&tree, rows, b"longer", vec![9; 4_500]);
        let mut batch = Batch::new();
        for i in (1..30u8).step_by(13) {
            let key = format!("row {i:03}").into_bytes();
            batch.delete(&tree, &key);
            rows.remove(&key);
        }
        db.write(&batch, Durability::Synced).expect("a batch");
    }
    (db, model)
}

/// Every row that can be read is as it must be, and no other is there.
pub(crate) fn assert_whole(db: &Db, model: &Model) {
    let names: Vec<&str> = model.keys().copied().collect();
    assert_eq!(db.tree_names().expect("names"), names);
    for (name, rows) in model {
        let tree = db.tree(name).expect("read").expect("the tree");
        let mut cursor = tree.cursor();
        let mut found = cursor.seek_first().expect("a seek");
        let mut seen = Rows::new();
        while found {
            let key = cursor.key().to_vec();
            seen.insert(key, cursor.value().expect("a value").to_vec());
            found = cursor.next().expect("a step");
        }
        assert!(seen == *rows, "{name}: {} rows, not {}", seen.len(), rows.len());
    }
}

pub(crate) fn assert_sound(db: &Db) {
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!((report.problems, report.pages_held), (Vec::<String>::new(), 0));
}
