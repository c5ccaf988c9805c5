//! Trees made dense by the interface.
use weirdb::{CompactOptions, Config, Db, Durability, Error, Tree};

/// A tree of which nine rows of ten have been removed, in random order.
fn thinned(dir: &std::path::Path) -> (Db, Tree) {
    let db = Config::new().durability(Durability::Lazy).open(dir).expect("opened");
    let tree = db.create_tree("rows").expect("made");
    let key = |n: u32| n.wrapping_mul(0x9e37_79b1).to_be_bytes();
    db.transact(weirdb::TxnOptions::new(), |txn| {
        (0..10_000).try_for_each(|n| txn.put(&tree, key(n), [7; 200]))
    })
    .expect("put");
    db.transact(weirdb::TxnOptions::new(), |txn| {
        (0..10_000u32)
            .filter(|n| n % 10 > 0)
            .try_for_each(|n| txn.remove(&tree, key(n)).map(|_| ()))
    })
    .expect("removed");
    (db, tree)
}

#[test]
fn a_tree_is_made_dense_in_one_go_and_in_pieces() {
    let dir = tempfile::tempdir().expect("a directory");
    let fast = || CompactOptions::new().bytes_per_second(u64::MAX);
    let (db, tree) = thinned(&dir.path().join("whole"));
    let mut looks = 0;
    let whole = tree.compact(&fast(), |_| {
        looks += 1;
        true
    });
    let whole = whole.expect("compacted");
    assert!(whole.next.is_none() && whole.pages_freed > 10 && looks > 10, "{whole:?}, {looks}");
    let again = tree.compact(&CompactOptions::new(), |_| true).expect("compacted");
    assert_eq!((again.leaves, again.pages_freed), (whole.leaves, 0));
    assert!(db.check(|_, _| {}).expect("checked").problems.is_empty());

    let (db, tree) = thinned(&dir.path().join("pieces"));
    let (mut options, mut leaves, mut pieces) = (fast(), 0, 0);
    loop {
        let part = tree.compact(&options, |at| at.leaves < 2).expect("compacted");
        (leaves, pieces) = (leaves + part.leaves, pieces + 1);
        let Some(next) = part.next else { break };
        options = fast().from(next);
    }
    assert!(leaves == whole.leaves && pieces > 5, "{leaves} in {pieces}, {whole:?}");
    assert_eq!(tree.len().expect("counted"), 1_000);
    let long = tree.compact(&fast().from([0; 9_000]), |_| true);
    assert!(matches!(long, Err(Error::InvalidInput(_) | Error::TooLarge(_))), "{long:?}");
    assert!(db.drop_tree("rows").expect("dropped"));
    let gone = tree.compact(&fast(), |_| true);
    assert!(matches!(gone, Err(Error::NoTree(_))), "{gone:?}");
}
