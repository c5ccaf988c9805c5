//! Numbers that grow: positions in the log, transactions, trees, the changes of one transaction.
//! Each passes the powers of two at which fewer bits would come round, over crashes; where one
//! ends, that is an error with a way out, and what is there can be read.
use std::sync::Arc;

use weir::{Config, Db, Durability, Error, Isolation, Numbers, SimVolume, Tree, TxnOptions};
use weir_base::{Lsn, TreeId, TxnId};

use crate::support::{Model, assert_sound, assert_whole, tiny};

/// A row whose change was not acknowledged: its key, and its values before and after.
type Unknown = (Vec<u8>, Option<Vec<u8>>, Vec<u8>);

fn open(volume: &SimVolume, first: Numbers) -> Db {
    let config = Config { first, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config).expect("a database")
}

/// Three rows by a transaction that another one's snapshot does not see, one row by itself, a
/// rollback, and enough redo that the log comes round.
fn work(db: &Db, tree: &Tree, model: &mut Model, round: u8) {
    let rows = model.entry("herons").or_default();
    let mut reader = db.begin(TxnOptions::default());
    let before = reader.get(tree, b"a").expect("a read");
    let mut txn = db.begin(TxnOptions::default());
    for key in [b"a", b"b", b"c"] {
        txn.put(tree, key, &[round; 300]).expect("a change");
        rows.insert(key.to_vec(), vec![round; 300]);
    }
    db.wait(txn.commit().expect("a commit"), Durability::Synced).expect("durable");
    assert_eq!(reader.get(tree, b"a").expect("a read"), before, "the snapshot is as it was");
    drop(reader);
    let mut undone = db.begin(TxnOptions::default());
    undone.put(tree, b"b", b"never").expect("a change");
    undone.rollback().expect("a rollback");
    for n in 0..40u8 {
        let value = vec![round ^ n; 900];
        tree.put(&[n, 1], &value, Durability::Lazy).expect("a row");
        rows.insert(vec![n, 1], value);
        db.step().expect("a step");
    }
    tree.put(b"last", &[round], Durability::Synced).expect("a row");
    rows.insert(b"last".to_vec(), vec![round]);
}

/// Twenty-five lives of one database, each ended by a crash, with a tree made and dropped in each.
fn lives(first: Numbers) {
    let mut volume = SimVolume::new(7);
    let mut model = Model::new();
    for life in 0..25u8 {
        let db = open(&volume, first);
        assert_whole(&db, &model);
        let tree = match db.tree("herons").expect("read") {
            Some(tree) => tree,
            None => db.create_tree("herons").expect("a tree"),
        };
        let other = db.create_tree("weirs").expect("a tree");
        other.put(b"x", &[life; 5_000], Durability::Lazy).expect("a row");
        for round in 0..3 {
            work(&db, &tree, &mut model, life.wrapping_mul(3) ^ round);
        }
        drop(other);
        db.drop_tree("weirs").expect("dropped");
        assert_sound(&db);
        if life % 3 == 1 {
            db.checkpoint().expect("a checkpoint");
        }
        tree.put(b"end", &[life], Durability::Synced).expect("a row");
        model.entry("herons").or_default().insert(b"end".to_vec(), vec![life]);
        volume = volume.crash(life.into());
    }
    let db = open(&volume, first);
    assert_whole(&db, &model);
    assert_sound(&db);
}

#[test]
fn the_log_grows_past_every_power_of_two() {
    for bits in [32, 41, 48, 56, 62] {
        let lsn = Lsn((1 << bits) - (1 << 20));
        lives(Numbers { lsn, ..Numbers::default() });
    }
}

#[test]
fn where_the_log_has_no_more_positions_the_engine_halts_and_rows_can_be_read_and_copied() {
    let mut volume = SimVolume::new(7);
    let first = Numbers { lsn: Lsn((1 << 63) - (1 << 42) - (2 << 20)), ..Numbers::default() };
    let row = |n: u32| (vec![n as u8 % 50], n.to_be_bytes().repeat(200));
    let mut model = Model::new();
    let mut unknown: Option<Unknown> = None;
    for life in 0..4u8 {
        let db = open(&volume, first);
        let tree = match db.tree("herons").expect("read") {
            Some(tree) => tree,
            None => db.create_tree("herons").expect("a tree"),
        };
        let rows = model.entry("herons").or_default();
        // What was not acknowledged last time is there, or it is not.
        if let Some((key, old, new)) = unknown.take() {
            let found = tree.get(&key).expect("a read");
            assert!(found == old || found.as_ref() == Some(&new));
            found.map(|value| rows.insert(key, value));
        }
        let refused = (0..9_000u32).find_map(|n| {
            let _ = db.step();
            let (key, value) = row(n);
            let put = tree.put(&key, &value, Durability::Synced);
            put.map(|()| rows.insert(key, value)).err().map(|e| (n, e))
        });
        let (n, refused) = refused.expect("positions end");
        assert!(matches!(refused, Error::Halted(_)), "{refused:?}");
        assert!(refused.to_string().contains("weir copy"), "{refused}");
        assert!(life > 0 || n > 100, "{n} rows before it");
        let (key, new) = row(n);
        let old = rows.get(&key).cloned();
        if tree.get(&key).expect("a read").as_ref() == Some(&new) {
            rows.insert(key.clone(), new.clone());
        }
        unknown = Some((key, old, new));
        assert_whole(&db, &model);
        volume = volume.crash(life.into());
    }
}

#[test]
fn transactions_and_trees_are_numbered_past_every_power_of_two() {
    for bits in [16, 24, 32, 40, 47] {
        let txn = TxnId((1 << bits) - 700);
        lives(Numbers { txn, ..Numbers::default() });
    }
    for bits in [16, 32, 48, 63] {
        let tree = TreeId((1 << bits) - 9);
        lives(Numbers { tree, ..Numbers::default() });
    }
}

#[test]
fn where_transactions_cannot_be_numbered_any_more_rows_can_be_read_and_copied() {
    let volume = SimVolume::new(1);
    let first = Numbers { txn: TxnId(TxnId::MAX.0 - 60), ..Numbers::default() };
    let db = open(&volume, first);
    let tree = db.create_tree("herons").expect("a tree");
    let mut model = Model::new();
    let rows = model.entry("herons").or_default();
    let refused = (0..100u8).find_map(|n| {
        // Singly, and as transactions: both are numbered.
        let put = || match n % 2 {
            0 => tree.put(&[n], &[n; 99], Durability::Synced).map(|_| ()),
            _ => {
                let mut txn = db.begin(TxnOptions::default());
                txn.put(&tree, &[n], &[n; 99])?;
                txn.commit().and_then(|commit| db.wait(commit, Durability::Synced))
            }
        };
        put().map(|()| rows.insert(vec![n], vec![n; 99])).err()
    });
    let refused = refused.expect("numbers end");
    assert!(rows.len() > 30, "{} rows before it", rows.len());
    assert!(matches!(refused, Error::Transaction(_)) && !refused.is_retryable(), "{refused:?}");
    assert!(refused.to_string().contains("weir copy"), "{refused}");
    for again in [tree.put(b"x", b"y", Durability::Lazy), tree.put(b"x", b"z", Durability::Synced)]
    {
        assert!(again.is_err());
    }
    let mut txn = db.begin(TxnOptions { isolation: Isolation::Serializable, ..Default::default() });
    assert!(txn.put(&tree, b"x", b"y").is_err());
    drop(txn);
    assert_whole(&db, &model);
    assert_sound(&db);
    db.checkpoint().expect("a checkpoint");
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("copy");
    let mut reader = db.begin(TxnOptions::default());
    db.copy_to(&mut reader, &at).expect("a copy");
    drop((reader, tree, db));
    let again = open(&volume.crash(3), first);
    assert_whole(&again, &model);
    let copy =
        Db::open(&at, Config { pool_bytes: 1 << 20, ..Config::default() }).expect("the copy");
    assert_whole(&copy, &model);
    let tree = copy.tree("herons").expect("read").expect("the tree");
    tree.put(b"x", b"y", Durability::Synced).expect("the copy numbers anew");
}

#[test]
fn a_transaction_of_too_many_changes_is_refused_the_next_one_and_can_be_committed() {
    let volume = SimVolume::new(2);
    let first = Numbers { changes_max: 50, ..Numbers::default() };
    let db = open(&volume, first);
    let tree = db.create_tree("herons").expect("a tree");
    for commits in [true, false] {
        let mut txn = db.begin(TxnOptions::default());
        for n in 0..50u8 {
            txn.put(&tree, &[n, commits.into()], b"row").expect("one of fifty");
        }
        let refused = txn.put(&tree, b"one more", b"row").expect_err("a change too many");
        assert!(refused.to_string().contains("the changes of one transaction"), "{refused}");
        assert!(
            txn.delete(&tree, &[1, commits.into()]).is_err(),
            "nor is another kind of change made"
        );
        match commits {
            true => db.wait(txn.commit().expect("a commit"), Durability::Synced).expect("durable"),
            false => txn.rollback().expect("a rollback"),
        }
    }
    let mut model = Model::new();
    let rows = (0..50u8).map(|n| (vec![n, 1], b"row".to_vec())).collect();
    model.insert("herons", rows);
    assert_whole(&db, &model);
    drop((tree, db));
    assert_whole(&open(&volume.crash(3), first), &model);
}
