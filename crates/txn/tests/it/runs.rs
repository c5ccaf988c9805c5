//! Many rows inserted in the order of their keys: as one by one.
use proptest::prelude::*;
use weir_btree::Tree;
use weir_txn::{Intent, Isolation, NewRow, Txn, TxnError, Wait};

use crate::support::{Rows, Site, site};

fn txn() -> Txn {
    Txn::new(Isolation::RepeatableRead, Wait::No)
}

fn key(n: u16) -> Vec<u8> {
    // Some share much of their beginning, so that pages have a prefix to lose.
    [&b"beginning"[..usize::from(n % 3) * 4], &n.to_be_bytes()].concat()
}

fn value(n: u16, len: u16) -> Vec<u8> {
    vec![n as u8; usize::from(len)]
}

fn insert_all(site: &Site, txn: &mut Txn, tree: &Tree, rows: &Rows) -> Result<(), TxnError> {
    let rows = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<NewRow<'_>>>();
    txn.insert_all(&site.context, tree, &rows)
}

fn purge(site: &Site) {
    while site.background.purge(64) > 0 {}
}

#[derive(Clone, Debug)]
enum Act {
    /// Rows, how long they are, and whether some are there already.
    Insert(Vec<(u16, u16)>, bool),
    Delete(u16),
    Savepoint,
    GoBack,
}

fn act() -> impl Strategy<Value = Act> {
    let len = prop_oneof![8 => 0..60u16, 1 => 900..1_100u16, 1 => 4_000..9_000u16];
    let rows = prop::collection::vec((0..2_000u16, len), 1..120);
    prop_oneof![
        6 => (rows, any::<bool>()).prop_map(|(rows, some)| Act::Insert(rows, some)),
        2 => (0..2_000u16).prop_map(Act::Delete),
        1 => Just(Act::Savepoint),
        1 => Just(Act::GoBack),
    ]
}

/// Plays them in a transaction. Returns what it should have left.
fn play(site: &Site, txn: &mut Txn, tree: &Tree, before: &Rows, acts: &[Act]) -> Rows {
    let mut model = before.clone();
    let mut point = (txn.savepoint(), model.clone());
    for act in acts {
        match act {
            Act::Insert(rows, some_there) => {
                let rows = rows.iter().map(|&(n, len)| (key(n), value(n, len)));
                let mut rows = rows.collect::<Rows>();
                if !some_there {
                    rows.retain(|key, _| !model.contains_key(key));
                }
                let done = insert_all(site, txn, tree, &rows);
                let first_there = rows.keys().find(|key| model.contains_key(*key)).cloned();
                match &first_there {
                    None => done.expect("inserted"),
                    Some(_) => assert!(matches!(done, Err(TxnError::Duplicate)), "{done:?}"),
                }
                // Those before the one that is there are inserted.
                let stays = |key: &Vec<u8>| first_there.as_ref().is_none_or(|there| key < there);
                model.extend(rows.into_iter().filter(|(key, _)| stays(key)));
            }
            Act::Delete(n) => {
                let there = model.remove(&key(*n)).is_some();
                let did = txn.change(&site.context, tree, &key(*n), Intent::Delete);
                assert_eq!(did.expect("deleted"), there);
            }
            Act::Savepoint => point = (txn.savepoint(), model.clone()),
            Act::GoBack => {
                txn.rollback_to(&site.context, point.0).expect("gone back");
                model = point.1.clone();
            }
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn rows_are_inserted_as_one_by_one_and_rolled_back_so(
        transactions in prop::collection::vec(
            (prop::collection::vec(act(), 1..8), any::<bool>()),
            1..5,
        ),
    ) {
        let site = site(1024, 1 << 20);
        let tree = site.tree(10);
        let mut model = Rows::new();
        for (acts, commits) in &transactions {
            let mut txn = txn();
            let then = play(&site, &mut txn, &tree, &model, acts);
            if *commits {
                site.commit(&mut txn).expect("committed");
                model = then;
            } else {
                txn.rollback(&site.context).expect("rolled back");
            }
        }
        purge(&site);
        site.check(&[(&tree, &model)]);
    }
}

#[test]
fn what_another_transaction_has_locked_is_not_passed_over() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let mut other = txn();
    let mut value_of = Vec::new();
    // A row that is written, and a key without one that is locked.
    let put = other.change(&site.context, &tree, &key(30), Intent::Put(b"theirs"));
    assert!(put.expect("put"));
    let there =
        other.get_locked(&site.context, &tree, &key(60), weir_txn::Kind::Share, &mut value_of);
    assert!(!there.expect("locked"));
    let mut rows = (0..90u16).map(|n| (key(n), b"ours".to_vec())).collect::<Rows>();
    for _ in 0..2 {
        let mut ours = txn();
        let done = insert_all(&site, &mut ours, &tree, &rows);
        assert!(matches!(done, Err(TxnError::Lock(_))), "{done:?}");
        ours.rollback(&site.context).expect("rolled back");
        rows.remove(&key(30));
    }
    rows.remove(&key(60));
    let mut ours = txn();
    insert_all(&site, &mut ours, &tree, &rows).expect("inserted");
    // Nor does it see more than was committed.
    let mut reader = txn();
    assert!(!reader.get(&site.context, &tree, &key(1), &mut value_of).expect("read"));
    site.commit(&mut ours).expect("committed");
    assert!(!reader.get(&site.context, &tree, &key(1), &mut value_of).expect("read"));
    reader.rollback(&site.context).expect("ended");
    other.rollback(&site.context).expect("rolled back");
    purge(&site);
    site.check(&[(&tree, &rows)]);
}

#[test]
fn keys_out_of_order_are_inserted_too() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let keys = (0..600u32).map(|n| key((n * 7_919 % 3_001) as u16)).collect::<Vec<_>>();
    let rows = keys.iter().map(|key| (&key[..], &b"value"[..])).collect::<Vec<NewRow<'_>>>();
    let mut ours = txn();
    ours.insert_all(&site.context, &tree, &rows).expect("inserted");
    site.commit(&mut ours).expect("committed");
    let model = keys.iter().map(|key| (key.clone(), b"value".to_vec())).collect::<Rows>();
    purge(&site);
    site.check(&[(&tree, &model)]);
}
