//! Updates of one length are logged as the bits that differ: flipped once too often, or not at all,
//! they leave a row that no transaction has written. So losers are rolled back over many crashes.
use std::collections::BTreeMap;

use weir::{Db, Durability, Error, Isolation, SimVolume, Tree, TxnOptions, Wait};

use crate::support::{assert_sound, assert_whole, open};

const ROWS: u8 = 8;

fn key(n: u8) -> Vec<u8> {
    format!("row {n}").into_bytes()
}

/// Some differ in a few bytes only, some in all bits.
fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = [11, 60][random.usize(..2)];
    let low = random.u8(..9);
    (0..60).map(|at| if at < len { random.digit(10) as u8 } else { b'0' } | low << 4).collect()
}

/// Changes each row several times, all but the last with values of the same length.
fn change(db: &Db, tree: &Tree, random: &mut fastrand::Rng) -> Result<weir::Txn, Error> {
    let isolation = Isolation::ReadCommitted;
    let mut txn = db.begin(TxnOptions { isolation, lock_wait: Wait::No });
    for round in 0..4 {
        for n in 0..ROWS {
            txn.put(tree, &key(n), &value(random))?;
            if round == 2 && n % 3 == 0 {
                txn.delete(tree, &key(n))?;
                txn.insert(tree, &key(n), &value(random))?;
            }
            if round == 3 && n % 4 == 1 {
                txn.put(tree, &key(n), b"short")?;
            }
        }
    }
    Ok(txn)
}

#[test]
fn losers_are_rolled_back_over_any_number_of_crashes() {
    let mut in_the_middle = 0;
    for seed in 0..60u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut volume = SimVolume::new(seed);
        let db = open(&volume).expect("a new database");
        let (tree, marker) = (db.create_tree("t"), db.create_tree("u"));
        let (tree, marker) = (tree.expect("a tree"), marker.expect("a tree"));
        let mut rows = BTreeMap::new();
        for n in 0..ROWS {
            rows.insert(key(n), value(&mut random));
            tree.put(&key(n), &rows[&key(n)], Durability::Synced).expect("a put");
        }
        let txn = change(&db, &tree, &mut random).expect("changes");
        let is_prepared = seed % 3 == 0;
        let txn = if is_prepared {
            txn.prepare(b"x").expect("prepared");
            None
        } else {
            Some(txn)
        };
        if seed % 2 == 0 {
            db.checkpoint().expect("a checkpoint");
        }
        marker.put(b"k", b"", Durability::Synced).expect("a synced put");
        volume = volume.crash(seed);
        drop(txn);
        for life in 0..4 {
            let db = open(&volume).expect("recovered");
            let marker = db.tree("u").expect("a look").expect("the tree");
            volume.set_crash_after(Some(random.u64(..4)));
            for _ in 0..random.u8(..4) {
                let _ = db.step();
            }
            let cut = marker.put(b"k", b"", Durability::Synced);
            in_the_middle += u32::from(cut.is_err());
            volume = volume.crash(seed + life);
        }
        let db = open(&volume).expect("recovered");
        if is_prepared {
            assert!(db.rollback_prepared(b"x").expect("rolled back"));
        }
        while db.stats().losers > 0 {
            db.step().expect("a step");
        }
        let marked = BTreeMap::from([(b"k".to_vec(), Vec::new())]);
        assert_whole(&db, &BTreeMap::from([("t", rows), ("u", marked)]));
        assert_sound(&db);
    }
    assert!(in_the_middle > 20, "{in_the_middle}");
}

/// A delete mark is rolled back without a word about the row's bytes; so they must still be there
/// when a later change, of the same transaction, was rolled back to a savepoint before.
#[test]
fn a_deletion_is_rolled_back_after_what_came_behind_a_savepoint() {
    for long in [false, true] {
        let volume = SimVolume::new(17);
        let db = open(&volume).expect("a new database");
        let tree = db.create_tree("t").expect("a tree");
        let old = vec![b'o'; if long { 40_000 } else { 40 }];
        tree.put(&key(1), &old, Durability::Synced).expect("a put");
        let mut txn = db.begin(TxnOptions::default());
        assert!(txn.delete(&tree, &key(1)).expect("deleted"));
        let savepoint = txn.savepoint();
        txn.insert(&tree, &key(1), b"new").expect("inserted");
        txn.rollback_to(savepoint).expect("rolled back");
        tree.put(&key(2), b"", Durability::Synced).expect("a synced put");
        let found = volume.crash(3);
        drop(txn);
        let db = open(&found).expect("recovered");
        while db.stats().losers > 0 {
            db.step().expect("a step");
        }
        let rows = BTreeMap::from([(key(1), old), (key(2), Vec::new())]);
        assert_whole(&db, &BTreeMap::from([("t", rows)]));
        assert_sound(&db);
    }
}

/// A value of 20,000 bytes, the first of which count.
fn long(count: u64) -> Vec<u8> {
    let mut value: Vec<u8> = (0..20_000u32).map(|at| (at % 251) as u8).collect();
    value[..8].copy_from_slice(&count.to_be_bytes());
    value
}

/// Takes what has ended to its end, and says how many pages are in use.
fn pages(db: &Db) -> u64 {
    (0..20).for_each(|_| db.step().expect("a step"));
    assert_sound(db);
    db.stats().pages_allocated
}

#[test]
fn the_chain_of_a_row_stays_when_only_its_front_changes() {
    let volume = SimVolume::new(91);
    let db = open(&volume).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    let begin = |isolation| db.begin(TxnOptions { isolation, lock_wait: Wait::No });
    let put = |old: &[u8], new: &[u8]| {
        let mut txn = begin(Isolation::ReadCommitted);
        txn.replace(&tree, b"k", old, new).expect("a replacement");
        txn
    };
    let commit = |txn: weir::Txn| txn.commit_durably(Durability::Synced).expect("a commit");
    // Of a row that is not there, it is an insert.
    commit(put(&long(0), &long(1)));
    // What no snapshot sees any more has been given up when the chain is read again.
    commit(put(&long(1), &long(0)));
    let one = pages(&db);
    commit(put(&long(0), &long(1)));
    assert_eq!((tree.get(b"k").expect("a read"), pages(&db)), (Some(long(1)), one));
    let log = db.stats().log_end;
    let mut older = begin(Isolation::RepeatableRead);
    assert_eq!(older.get(&tree, b"k").expect("a read"), Some(long(1)));
    for count in 2..50 {
        commit(put(&long(count - 1), &long(count)));
    }
    assert!(db.stats().log_end - log < 48 * 1000, "the chain was written again");
    assert_eq!(older.get(&tree, b"k").expect("a read"), Some(long(1)));
    // Longer and shorter in front of the chain, and back.
    let longer = [&b"longer"[..], &long(49)].concat();
    commit(put(&long(49), &longer));
    let shorter = &long(49)[20..];
    commit(put(&longer, shorter));
    assert_eq!(tree.get(b"k").expect("a read").as_deref(), Some(shorter));
    // Rolled back: with the chain that stays, and with another one over it.
    let mut txn = put(shorter, &long(50));
    let before = txn.savepoint();
    txn.replace(&tree, b"k", &long(50), &long(51)).expect("a replacement");
    txn.put(&tree, b"k", &vec![7; 30_000]).expect("a put");
    txn.rollback_to(before).expect("back");
    assert_eq!(txn.get(&tree, b"k").expect("a read"), Some(long(50)));
    txn.put(&tree, b"k", &vec![7; 30_000]).expect("a put");
    txn.rollback().expect("back");
    assert_eq!(tree.get(b"k").expect("a read").as_deref(), Some(shorter));
    // A caller that is wrong about what is there writes what is to be there.
    commit(put(&vec![9; 20_000], &[&[8; 4][..], &vec![9; 19_996]].concat()));
    assert_eq!(tree.get(b"k").expect("a read"), Some([&[8; 4][..], &vec![9; 19_996]].concat()));
    assert_eq!(older.get(&tree, b"k").expect("a read"), Some(long(1)));
    let _ = older.commit().expect("a commit");
    assert_eq!(pages(&db), one, "a chain was lost");
    // And if only the chain is another than was named: in a byte, or in its length.
    for (told, count) in [(15_000, 51), (19_999, 53), (20_000, 55), (19_000, 57)] {
        commit(put(b"", &long(50)));
        let (mut old, mut new) = (long(50), long(count));
        for value in [&mut old, &mut new] {
            value.resize(20_000.max(told + 1), 3);
            value[told] ^= 1;
            value.truncate(if told == 19_000 { 19_000 } else { value.len() });
        }
        commit(put(&old, &new));
        assert!(tree.get(b"k").expect("a read") == Some(new), "{told}");
    }
    commit(put(b"", &long(60)));
    assert_eq!(pages(&db), one, "a chain was lost");
    // A loser that has only changed the front.
    let loser = put(&long(60), &long(61));
    assert_eq!(tree.get(b"k").expect("a read"), Some(long(60)), "not committed");
    db.step().expect("a step");
    let crashed = volume.crash(91);
    drop((loser, tree, db));
    let db = open(&crashed).expect("the database opens");
    let tree = db.open_tree("t").expect("the tree");
    assert_eq!(tree.get(b"k").expect("a read"), Some(long(60)));
    tree.delete(b"k", Durability::Synced).expect("a delete");
    assert!(pages(&db) < one, "the chain was lost");
}
