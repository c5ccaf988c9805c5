//! Long values and what becomes of their pages when statements fail and rows come back.

use weir::{Background, Db, Durability, SimVolume, TxnOptions};

use crate::engine::database;

fn assert_sound(db: &Db) {
    let found = db.check(&mut |_, _| {}).expect("a check");
    assert!(found.problems.is_empty(), "{}", found.problems.join("; "));
}

#[test]
fn a_refused_statement_keeps_no_pages() {
    let db = database(&SimVolume::new(1), Background::Manual);
    let tree = db.open_tree("judged").expect("a tree");
    let mut txn = db.begin(TxnOptions::default());
    txn.put(&tree, b"a", &[1; 3000]).expect("a put");
    assert!(txn.insert(&tree, b"a", &[2; 3000]).is_err());
    txn.commit_durably(Durability::Synced).expect("a commit");
    assert_sound(&db);
}

#[test]
fn a_removed_row_that_a_rollback_brings_back_names_no_freed_page() {
    let db = database(&SimVolume::new(1), Background::Manual);
    let tree = db.open_tree("judged").expect("a tree");
    tree.put(b"a", &[1; 3000], Durability::Synced).expect("a put");
    let mut reader = db.begin(TxnOptions::default());
    reader.take_snapshot();
    let mut remover = db.begin(TxnOptions::default());
    assert!(remover.delete(&tree, b"a").expect("a delete"));
    remover.commit_durably(Durability::Synced).expect("a commit");
    // Over the row that is marked as removed and that the snapshot still shows.
    let mut writer = db.begin(TxnOptions::default());
    writer.put(&tree, b"a", b"short").expect("a put");
    reader.rollback().expect("a rollback");
    // The transaction that ends next removes what no snapshot sees any more.
    let mut other = db.begin(TxnOptions::default());
    other.put(&tree, b"z", b"z").expect("a put");
    other.commit_durably(Durability::Synced).expect("a commit");
    writer.rollback().expect("a rollback");
    assert_sound(&db);
}
