//! Trees that ask for a codec: what is written, what is kept, what a copy has.
use std::sync::Arc;

use weir::{
    Config, CopyOptions, Db, Durability, PageCodec, SimVolume, StoreKind, Tree, TxnOptions,
};

use crate::support::{assert_sound, tiny};

const ALL: [Option<PageCodec>; 3] =
    [Some(PageCodec::None), Some(PageCodec::Lz4), Some(PageCodec::Zstd)];

fn open_in(volume: &SimVolume, store: StoreKind) -> Db {
    let config = Config { store: Some(store), pages_max: 1 << 16, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config).expect("opened")
}

/// Writes rows that pack well, and their pages.
fn fill(db: &Db, tree: &Tree, round: u32) {
    for n in 0..400u32 {
        let value = format!("heron {round} ").repeat(12);
        tree.put(&n.to_be_bytes(), value.as_bytes(), Durability::Lazy).expect("put");
    }
    db.checkpoint().expect("written");
}

/// Pages that `act` has written: not packed, by LZ4, by zstd.
fn written(db: &Db, act: impl FnOnce()) -> [u64; 3] {
    let look = || db.stats().segments.expect("segments").pages_by_codec;
    let before = look();
    act();
    let after = look();
    std::array::from_fn(|i| after[i] - before[i])
}

/// Whether most pages were written by this codec.
fn mostly(pages: [u64; 3], codec: PageCodec) -> bool {
    pages[codec as usize] * 2 > pages.iter().sum::<u64>() && pages[codec as usize] >= 5
}

fn codec(db: &Db, name: &str) -> Option<PageCodec> {
    db.begin(TxnOptions::default()).codec(name).expect("read").expect("there is one")
}

#[test]
fn pages_are_packed_as_their_tree_asks() {
    let volume = SimVolume::new(1);
    let db = open_in(&volume, StoreKind::Log);
    assert!(db.packs_pages());
    for asked in ALL.into_iter().flatten() {
        let tree = db.create_tree_with(asked.name(), Some(asked)).expect("a tree");
        let pages = written(&db, || fill(&db, &tree, 0));
        assert!(mostly(pages, asked), "{asked}: {pages:?}");
    }
    let tree = db.create_tree("any").expect("a tree");
    let pages = written(&db, || fill(&db, &tree, 0));
    assert!(mostly(pages, PageCodec::Zstd), "the store chooses: {pages:?}");
    // A crash keeps what they ask for; a clean end, too.
    let crashed = volume.crash(7);
    db.close().expect("closed");
    for volume in [crashed, volume.snapshot()] {
        let db = open_in(&volume, StoreKind::Log);
        for asked in ALL.into_iter().flatten() {
            assert_eq!(codec(&db, asked.name()), Some(asked));
            let tree = db.tree(asked.name()).expect("read").expect("there");
            db.checkpoint().expect("what recovery has changed is written");
            let pages = written(&db, || fill(&db, &tree, 1));
            assert!(mostly(pages, asked), "{asked}: {pages:?}");
        }
        assert_eq!(codec(&db, "any"), None);
        assert_sound(&db);
    }
}

#[test]
fn a_tree_asks_for_another_codec_when_that_has_committed() {
    let volume = SimVolume::new(2);
    let db = open_in(&volume, StoreKind::Log);
    let tree = db.create_tree("t").expect("a tree");
    assert!(!db.set_codec("none", Some(PageCodec::Lz4)).expect("asked"), "there is no such tree");
    let nothing = written(&db, || assert!(db.set_codec("t", ALL[1]).expect("asked")));
    assert_eq!(nothing[1], 0, "no page is written for it");
    assert!(mostly(written(&db, || fill(&db, &tree, 0)), PageCodec::Lz4));
    // Rolled back, whole or a part of it.
    let mut txn = db.begin(TxnOptions::default());
    assert!(txn.set_codec("t", ALL[0]).expect("asked"));
    assert_eq!(txn.codec("t").expect("read"), Some(ALL[0]));
    txn.rollback().expect("rolled back");
    assert!(mostly(written(&db, || fill(&db, &tree, 1)), PageCodec::Lz4));
    let mut txn = db.begin(TxnOptions::default());
    let before = txn.savepoint();
    assert!(txn.set_codec("t", None).expect("asked"));
    txn.rollback_to(before).expect("rolled back");
    txn.put(&tree, b"k", b"v").expect("put");
    txn.commit_durably(Durability::Synced).expect("committed");
    assert!(mostly(written(&db, || fill(&db, &tree, 2)), PageCodec::Lz4));
    // Another name changes nothing; nothing asked is the store's choice again.
    let mut txn = db.begin(TxnOptions::default());
    assert!(txn.rename_tree("t", "u").expect("renamed"));
    txn.commit_durably(Durability::Synced).expect("committed");
    assert_eq!(codec(&db, "u"), ALL[1]);
    assert!(mostly(written(&db, || fill(&db, &tree, 3)), PageCodec::Lz4));
    assert!(db.set_codec("u", None).expect("asked"));
    assert!(mostly(written(&db, || fill(&db, &tree, 4)), PageCodec::Zstd));
    assert_sound(&db);
}

#[test]
fn in_place_a_codec_is_kept_for_a_copy_that_packs() {
    let dirs = tempfile::tempdir().expect("a directory");
    let db = open_in(&SimVolume::new(3), StoreKind::InPlace);
    assert!(!db.packs_pages());
    let tree = db.create_tree_with("t", ALL[1]).expect("a tree");
    fill(&db, &tree, 0);
    db.create_tree("u").expect("a tree");
    let mut txn = db.begin(TxnOptions::default());
    let there = dirs.path().join("log");
    let options = CopyOptions { store: Some(StoreKind::Log), ..CopyOptions::default() };
    db.copy_to_as(&mut txn, &there, &options).expect("copied");
    let copy = Db::open(&there, Config { store: None, ..tiny() }).expect("the copy");
    assert_eq!((codec(&copy, "t"), codec(&copy, "u")), (ALL[1], None));
    let tree = copy.tree("t").expect("read").expect("there");
    assert!(mostly(written(&copy, || fill(&copy, &tree, 1)), PageCodec::Lz4));
    assert_sound(&copy);
}
