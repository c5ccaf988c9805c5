//! What belongs to another database, or another transaction, is refused, and harms nothing.
use weir::{
    Batch, Db, Durability, Error, Isolation, SimVolume, Tree, Txn, TxnCursor, TxnOptions, Wait,
};

use crate::support::{assert_sound, open};

fn begin(db: &Db) -> Txn {
    at(db, Isolation::RepeatableRead)
}

fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

/// Two databases, each with a tree of one row; the trees have the same number.
fn two() -> [(SimVolume, Db, Tree); 2] {
    [1, 2].map(|seed| {
        let volume = SimVolume::new(seed);
        let db = open(&volume).expect("a new database");
        let tree = db.create_tree("t").expect("a tree");
        tree.put(b"k", b"old", Durability::Synced).expect("put");
        (volume, db, tree)
    })
}

fn refused<T>(done: Result<T, Error>) {
    match done {
        Err(Error::Foreign(_)) => {}
        Err(e) => panic!("another error: {e}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn a_transaction_keeps_off_another_databases_tree() {
    for isolation in [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Snapshot,
        Isolation::Serializable,
    ] {
        let [(_, one, own), (volume, two, other)] = two();
        let mut txn = at(&one, isolation);
        let mut value = Vec::new();
        txn.begin_statement();
        refused(txn.put(&other, b"k", b"v"));
        refused(txn.insert(&other, b"new", b"v"));
        refused(txn.update(&other, b"k", |_, _| panic!("a row")));
        refused(txn.delete(&other, b"k"));
        refused(txn.get(&other, b"k"));
        refused(txn.get_into(&other, b"k", &mut value));
        refused(txn.get_for_update(&other, b"k", &mut value));
        refused(txn.get_for_share_with(&other, b"k", Wait::No, &mut value));
        let mut cursors =
            [txn.cursor(&other), txn.cursor_for_share(&other), txn.cursor_for_update(&other)];
        for cursor in &mut cursors {
            refused(cursor.seek(&mut txn, b"k"));
            refused(cursor.seek_last(&mut txn));
            refused(cursor.next(&mut txn));
            refused(cursor.visit(&mut txn, |_, _| panic!("a row")));
            // Nor by one of the other database.
            refused(cursor.seek_first(&mut at(&two, isolation)));
        }
        // A lock of its own tree, which has the same number, is not the other's to release.
        let mark = txn.lock_mark();
        assert!(txn.get_for_update(&own, b"k", &mut value).expect("its own"));
        txn.release_between(mark..txn.lock_mark(), [&other].into_iter());
        assert!(begin(&one).put(&own, b"k", b"v").is_err(), "still locked");
        txn.put(&own, b"k", b"new").expect("it goes on");
        txn.commit_durably(Durability::Synced).expect("commit");
        assert_eq!(own.get(b"k").expect("get").as_deref(), Some(&b"new"[..]));
        assert_eq!(other.get(b"k").expect("get").as_deref(), Some(&b"old"[..]));

        let mut its_own = at(&two, isolation);
        its_own.put(&other, b"k", b"its own").expect("put");
        its_own.commit_durably(Durability::Synced).expect("commit");
        let two = open(&volume.crash(3)).expect("recovered");
        let found = two.open_tree("t").expect("the tree").get(b"k").expect("get");
        assert_eq!(found.as_deref(), Some(&b"its own"[..]));
        assert_sound(&two);
    }
}

#[test]
fn a_batch_is_of_one_database() {
    let [(_, one, own), (_, two, other)] = two();
    let mut batch = Batch::new();
    batch.put(&other, b"k", b"v");
    refused(one.write(&batch, Durability::Lazy));
    // The same number, and so the same row, as it were.
    batch.put(&own, b"k", b"v");
    for db in [&one, &two] {
        refused(db.write(&batch, Durability::Lazy));
    }
    let mut removing = Batch::new();
    removing.put(&own, b"k", b"v");
    removing.delete(&other, b"k");
    refused(one.write(&removing, Durability::Lazy));
    for tree in [&own, &other] {
        assert_eq!(tree.get(b"k").expect("get").as_deref(), Some(&b"old"[..]));
    }
    batch.clear();
    batch.put(&own, b"k", b"new");
    refused(two.write(&batch, Durability::Lazy));
    one.write(&batch, Durability::Synced).expect("its own");
    assert_eq!(own.get(b"k").expect("get").as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_snapshot_is_of_one_database() {
    let [(_, one, own), (_, two, other)] = two();
    let before = one.snapshot();
    for byte in 0..20 {
        other.put(b"k", &[byte], Durability::Lazy).expect("put");
    }
    own.put(b"k", b"new", Durability::Lazy).expect("put");
    let mut txn = begin(&one);
    refused(txn.share(&two.snapshot()));
    txn.share(&before).expect("its own");
    assert_eq!(txn.get(&own, b"k").expect("get").as_deref(), Some(&b"old"[..]));
    assert!(one.begin_at(&two.snapshot()).is_err());
    let mut txn = one.begin_at(&before).expect("its own");
    assert_eq!(txn.get(&own, b"k").expect("get").as_deref(), Some(&b"old"[..]));
}

/// What it came by for the one, the other has neither seen nor locked.
#[test]
fn a_cursor_moves_with_the_transaction_that_made_it() {
    let [(_, db, tree), _] = two();
    tree.put(b"l", b"old", Durability::Lazy).expect("put");
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let makes: [fn(&mut Txn, &Tree) -> TxnCursor; 3] =
            [Txn::cursor, Txn::cursor_for_share, Txn::cursor_for_update];
        for make in makes {
            let (mut one, mut two) = (at(&db, isolation), at(&db, Isolation::Serializable));
            let mut cursor = make(&mut one, &tree);
            refused(cursor.seek_first(&mut two));
            assert!(cursor.seek_first(&mut one).expect("seek"));
            drop(two.cursor(&tree));
            refused(cursor.next(&mut two));
            refused(cursor.lock_current(&mut two, false));
            refused(cursor.visit(&mut two, |_, _| panic!("a row")));
            assert_eq!(cursor.key(), b"k", "it is where it was");
            assert!(cursor.next(&mut one).expect("next"));
            assert_eq!(cursor.key(), b"l");
        }
    }
}
