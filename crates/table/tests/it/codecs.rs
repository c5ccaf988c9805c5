//! A table that asks for a codec: its trees do, and those that it gets later.
use std::sync::Arc;

use weir::{Config, Db, PageCodec, SimVolume, StoreKind, TxnOptions};
use weir_table::{IndexSpec, Tables};

/// What the trees of tables ask for, each.
fn asked(db: &Db) -> Vec<Option<PageCodec>> {
    let mut txn = db.begin(TxnOptions::default());
    let names = db.tree_names().expect("read").into_iter();
    let names = names.filter(|name| name.starts_with("weir.table."));
    names.map(|name| txn.codec(&name).expect("read").expect("there")).collect()
}

#[test]
fn all_trees_of_a_table_ask_for_its_codec() {
    let volume = SimVolume::new(1);
    let open = || {
        let config = Config { store: Some(StoreKind::Log), ..Config::default() };
        Db::open_on(Arc::new(volume.clone()), config).expect("opened")
    };
    let db = open();
    let tables = Tables::open(&db).expect("opened");
    let index = |name: &str| IndexSpec { name: name.into(), ..IndexSpec::default() };
    let lz4 = Some(PageCodec::Lz4);
    assert!(!tables.set_codec("t", lz4).expect("asked"), "there is no such table");
    assert!(tables.create_raw("t", b"", &[index("i")]).expect("made"));
    assert_eq!((tables.codec("t").expect("read"), asked(&db)), (None, vec![None; 2]));
    assert!(tables.set_codec("t", lz4).expect("asked"));
    assert_eq!((tables.codec("t").expect("read"), asked(&db)), (lz4, vec![lz4; 2]));
    // Emptied, renamed, with rows and indexes on their way.
    assert!(tables.truncate("t").expect("emptied"));
    assert!(tables.rename("t", "u").expect("renamed"));
    tables.announce_rewrite("u", &[index("i"), index("j")]).expect("announced");
    let trees = asked(&db);
    assert!(trees.len() >= 5 && trees.iter().all(|codec| *codec == lz4), "{trees:?}");
    tables.abandon_indexes("u").expect("abandoned");
    drop(tables);
    db.close().expect("closed");
    let db = open();
    let tables = Tables::open(&db).expect("opened");
    assert_eq!(tables.codec("u").expect("read"), lz4);
    assert!(tables.set_codec("u", None).expect("asked"));
    assert!(asked(&db).iter().all(Option::is_none));
}
