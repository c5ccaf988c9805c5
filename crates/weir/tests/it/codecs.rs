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

#[test]
fn a_copy_has_the_codecs_of_its_moment() {
    let dirs = tempfile::tempdir().expect("a directory");
    let db = open_in(&SimVolume::new(8), StoreKind::Log);
    for (name, codec) in [("changed", ALL[0]), ("dropped", ALL[1]), ("renamed", ALL[2])] {
        let tree = db.create_tree_with(name, codec).expect("a tree");
        tree.put(b"k", name.as_bytes(), Durability::Lazy).expect("put");
    }
    let mut seen = db.begin_at(&db.snapshot()).expect("begun");
    assert!(db.set_codec("changed", ALL[2]).expect("asked"));
    assert!(db.drop_tree("dropped").expect("dropped"));
    let mut txn = begin(&db);
    assert!(txn.rename_tree("renamed", "other").expect("renamed"));
    txn.commit_durably(Durability::Synced).expect("committed");
    db.create_tree_with("renamed", ALL[0]).expect("another tree of that name");

    let there = dirs.path().join("copy");
    db.copy_to(&mut seen, &there).expect("copied");
    let copy = Db::open(&there, Config { store: None, ..tiny() }).expect("the copy");
    assert_eq!(copy.tree_names().expect("read"), ["changed", "dropped", "renamed"]);
    let asked = ["changed", "dropped", "renamed"].map(|name| codec(&copy, name));
    assert_eq!(asked, ALL);
    assert_eq!(
        copy.tree("renamed").expect("read").expect("there").get(b"k").expect("read"),
        Some(b"renamed".to_vec())
    );
    assert_sound(&copy);
}

/// What the store has to know of trees.
fn asking(db: &Db) -> u64 {
    db.stats().segments.expect("segments").trees_asking
}

fn begin(db: &Db) -> weir::Txn {
    db.begin(TxnOptions::default())
}

#[test]
fn a_prepared_change_reaches_the_store_when_it_commits() {
    let volume = SimVolume::new(4);
    let db = open_in(&volume, StoreKind::Log);
    let tree = db.create_tree("t").expect("a tree");
    let ask = |db: &Db, codec, xid: &[u8]| {
        let mut txn = begin(db);
        assert!(txn.set_codec("t", codec).expect("asked"));
        txn.prepare_owned(xid).expect("prepared")
    };
    // In the hand of the one that has prepared it.
    let mut held = ask(&db, ALL[1], b"1");
    assert_eq!(asking(&db), 0, "not decided yet");
    held.commit(Durability::Synced).expect("committed");
    assert_eq!((asking(&db), codec(&db, "t")), (1, ALL[1]));
    drop(held);
    let mut held = ask(&db, None, b"2");
    held.rollback().expect("rolled back");
    drop(held);
    assert!(mostly(written(&db, || fill(&db, &tree, 0)), PageCodec::Lz4));
    // By its name.
    drop(ask(&db, ALL[0], b"3"));
    assert!(mostly(written(&db, || fill(&db, &tree, 1)), PageCodec::Lz4));
    assert!(db.commit_prepared(b"3", Durability::Synced).expect("committed"));
    assert!(mostly(written(&db, || fill(&db, &tree, 2)), PageCodec::None));
    drop(ask(&db, ALL[1], b"4"));
    assert!(db.rollback_prepared(b"4").expect("rolled back"));
    assert!(mostly(written(&db, || fill(&db, &tree, 3)), PageCodec::None));
    assert_sound(&db);
}

#[test]
fn a_prepared_change_found_by_recovery_reaches_the_store_when_it_commits() {
    for large in [false, true] {
        let volume = SimVolume::new(5);
        let db = open_in(&volume, StoreKind::Log);
        for name in ["t", "rows"] {
            db.create_tree(name).expect("a tree");
        }
        let rows = db.tree("rows").expect("read").expect("there");
        let mut txn = begin(&db);
        assert!(txn.set_codec("t", ALL[1]).expect("asked"));
        assert!(txn.rename_tree("t", "u").expect("renamed"));
        txn.create_tree_with("made", ALL[0]).expect("a tree");
        // So much that its undo is stored in pages, and the log names the pages only.
        for n in 0..if large { 3000u32 } else { 3 } {
            txn.put(&rows, &n.to_be_bytes(), &[7; 100]).expect("put");
        }
        txn.prepare(b"xid").expect("prepared");
        let crashed = volume.crash(3);
        for commits in [true, false] {
            let db = open_in(&crashed.fork(), StoreKind::Log);
            assert_eq!(asking(&db), 0, "large {large}: not decided yet");
            if !commits {
                assert!(db.rollback_prepared(b"xid").expect("rolled back"));
                assert_eq!((asking(&db), codec(&db, "t")), (0, None));
                continue;
            }
            assert!(db.commit_prepared(b"xid", Durability::Synced).expect("committed"));
            assert_eq!(asking(&db), 2, "large {large}");
            for (name, codec) in [("u", PageCodec::Lz4), ("made", PageCodec::None)] {
                let tree = db.tree(name).expect("read").expect("there");
                db.checkpoint().expect("what recovery has changed is written");
                assert!(mostly(written(&db, || fill(&db, &tree, 0)), codec), "{name}");
            }
            assert_sound(&db);
        }
    }
}

#[test]
fn the_store_forgets_what_a_tree_asked_for_that_is_gone() {
    let db = open_in(&SimVolume::new(6), StoreKind::Log);
    let steps = || (0..10).for_each(|_| db.step().expect("a step"));
    for name in ["a", "b"] {
        db.create_tree_with(name, ALL[1]).expect("a tree");
    }
    assert_eq!(asking(&db), 2);
    assert!(db.drop_tree("a").expect("dropped"));
    steps();
    assert_eq!(asking(&db), 1, "dropped");
    let mut txn = begin(&db);
    assert!(txn.drop_tree("b").expect("dropped"));
    let before = txn.savepoint();
    txn.create_tree_with("c", ALL[0]).expect("a tree");
    assert_eq!(asking(&db), 2, "its pages may be written before it commits");
    txn.rollback_to(before).expect("rolled back");
    assert_eq!(asking(&db), 1, "rolled back to a savepoint");
    txn.create_tree_with("d", ALL[0]).expect("a tree");
    txn.rollback().expect("rolled back");
    steps();
    assert_eq!((asking(&db), codec(&db, "b")), (1, ALL[1]), "rolled back as a whole");
    // Asked for by a transaction that drops it as well, and under another name.
    let mut txn = begin(&db);
    assert!(txn.set_codec("b", ALL[0]).expect("asked"));
    assert!(txn.rename_tree("b", "e").expect("renamed"));
    assert!(txn.drop_tree("e").expect("dropped"));
    txn.commit_durably(Durability::Synced).expect("committed");
    steps();
    assert_eq!(asking(&db), 0);
    assert_sound(&db);
}

#[test]
fn a_codec_is_changed_under_another_name_in_the_same_transaction() {
    let db = open_in(&SimVolume::new(7), StoreKind::Log);
    let tree = db.create_tree_with("t", ALL[0]).expect("a tree");
    let mut txn = begin(&db);
    assert!(txn.set_codec("t", ALL[1]).expect("asked"));
    assert!(txn.rename_tree("t", "u").expect("renamed"));
    txn.commit_durably(Durability::Synced).expect("committed");
    assert!(mostly(written(&db, || fill(&db, &tree, 0)), PageCodec::Lz4));
    let mut txn = begin(&db);
    assert!(txn.set_codec("u", ALL[2]).expect("asked"));
    let before = txn.savepoint();
    assert!(txn.rename_tree("u", "v").expect("renamed"));
    txn.rollback_to(before).expect("rolled back");
    txn.commit_durably(Durability::Synced).expect("committed");
    assert!(mostly(written(&db, || fill(&db, &tree, 1)), PageCodec::Zstd));
}
