//! Of long values only the first bytes, which lie beside the key: what they are read for, and that
//! they are those of the row that is seen.
use std::collections::BTreeMap;
use std::sync::Arc;

use weir::{
    Config, Db, Durability, Extent, Isolation, SimVolume, Tree, Txn, TxnCursor, TxnOptions, Wait,
};

use crate::support::{assert_sound, tiny};

/// A front is at least so long.
const FRONT_MIN: usize = 128;

fn open(volume: &SimVolume) -> Db {
    let config = Config { pool_bytes: 2 << 20, log_bytes: 4 << 20, pages_max: 4096, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config).expect("the database opens")
}

fn begin(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

fn key(n: u8) -> [u8; 3] {
    [b'k', b'0' + n / 10, b'0' + n % 10]
}

fn long(n: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 ^ n).collect()
}

fn page_reads(db: &Db, run: impl FnOnce()) -> u64 {
    let before = db.stats().page_reads;
    run();
    db.stats().page_reads - before
}

#[test]
fn reading_fronts_reads_no_chain() {
    const ROWS: u8 = 40;
    let volume = SimVolume::new(31);
    let db = open(&volume);
    let tree = db.create_tree("t").expect("a tree");
    for n in 0..ROWS {
        tree.put(&key(n), &long(n, 20_000), Durability::Lazy).expect("a put");
    }
    db.close().expect("closed");
    drop(tree);
    // Five pages of 4096 bytes for each value, or nearly.
    let of_chains = u64::from(ROWS) * 4;

    let db = open(&volume);
    let tree = db.open_tree("t").expect("the tree");
    let reads = page_reads(&db, || {
        let mut txn = begin(&db, Isolation::RepeatableRead);
        let mut cursor = txn.cursor(&tree);
        cursor.set_fronts(true);
        let (mut on, mut n) = (cursor.seek_first(&mut txn).expect("a seek"), 0);
        while on {
            let front = cursor.value();
            assert!(cursor.is_front() && front.len() >= FRONT_MIN && front.len() < 20_000);
            assert!(long(n, 20_000).starts_with(front));
            n += 1;
            on = cursor.next(&mut txn).expect("a step");
        }
        assert_eq!(n, ROWS);
        let mut out = Vec::new();
        let read = txn.get_front(&tree, &key(7), &mut out).expect("a read");
        assert!(read == Extent::Front && long(7, 20_000).starts_with(&out));
        assert_eq!(txn.get_front(&tree, b"x", &mut out).expect("a read"), Extent::Nothing);
    });
    assert!(reads <= u64::from(ROWS) + 10, "{reads} pages read: chains among them");
    let one = page_reads(&db, || {
        let mut txn = begin(&db, Isolation::RepeatableRead);
        let mut cursor = txn.cursor(&tree);
        cursor.set_fronts(true);
        assert!(cursor.seek(&mut txn, &key(3)).expect("a seek"));
        assert!(cursor.whole(&mut txn, false).expect("all of it"));
        assert!(!cursor.is_front() && cursor.value() == long(3, 20_000));
        assert!(cursor.next(&mut txn).expect("a step") && cursor.is_front());
    });
    assert!((4..=5).contains(&one), "{one} pages read for one chain");
    let all = page_reads(&db, || {
        let mut txn = begin(&db, Isolation::RepeatableRead);
        let mut cursor = txn.cursor(&tree);
        let mut on = cursor.seek_first(&mut txn).expect("a seek");
        while on {
            assert!(!cursor.is_front() && cursor.value().len() == 20_000);
            on = cursor.next(&mut txn).expect("a step");
        }
    });
    assert!(all + one >= of_chains, "{all} pages read for all chains");
}

type Rows = BTreeMap<[u8; 3], Vec<u8>>;

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = [30, 700, 2_000, 5_000, 9_000][random.usize(..5)] + random.usize(..40);
    long(random.u8(..), len)
}

fn change(txn: &mut Txn, tree: &Tree, rows: &mut Rows, random: &mut fastrand::Rng) {
    let key = key(random.u8(..30));
    let old = rows.get(&key).cloned().unwrap_or_default();
    match random.u8(..4) {
        0 => {
            txn.delete(tree, &key).expect("a delete");
            rows.remove(&key);
        }
        1 if old.len() > 200 => {
            // In front of a chain that stays.
            let mut new = old.clone();
            new[random.usize(..100)] ^= 1;
            let there = txn.get(tree, &key).expect("a read");
            assert_eq!(there.as_ref(), Some(&old));
            txn.replace(tree, &key, &old, &new).expect("a replacement");
            rows.insert(key, new);
        }
        _ => {
            let new = value(random);
            txn.put(tree, &key, &new).expect("a put");
            rows.insert(key, new);
        }
    }
}

/// Walks over all, and now and then asks for the whole of a row.
fn assert_seen(txn: &mut Txn, tree: &Tree, rows: &Rows, random: &mut fastrand::Rng) {
    let down = random.bool();
    let mut cursor = txn.cursor(tree);
    cursor.set_fronts(true);
    let step = |cursor: &mut TxnCursor, txn: &mut Txn| match down {
        true => cursor.prev(txn).expect("a step"),
        false => cursor.next(txn).expect("a step"),
    };
    let mut on = match down {
        true => cursor.seek_last(txn).expect("a seek"),
        false => cursor.seek_first(txn).expect("a seek"),
    };
    let mut expected: Vec<_> = rows.iter().collect();
    if down {
        expected.reverse();
    }
    for (key, value) in expected {
        assert!(on && cursor.key() == key, "{key:?}, not {:?}", cursor.key());
        if cursor.is_front() {
            assert!(cursor.value().len() >= FRONT_MIN && cursor.value().len() < value.len());
            assert!(value.starts_with(cursor.value()));
            if random.bool() {
                assert!(cursor.whole(txn, down).expect("all of it"));
            }
        }
        if !cursor.is_front() {
            assert!(cursor.value() == value, "{key:?}");
        }
        let mut out = Vec::new();
        match txn.get_front(tree, key, &mut out).expect("a read") {
            Extent::Nothing => panic!("{key:?} is not there"),
            Extent::Front => assert!(out.len() < value.len() && value.starts_with(&out)),
            Extent::Whole => assert!(out == *value),
        }
        on = step(&mut cursor, txn);
    }
    assert!(!on, "{:?} is too many", cursor.key());
}

#[test]
fn the_front_is_that_of_the_version_that_is_seen() {
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let db = open(&SimVolume::new(seed));
        let tree = db.create_tree("t").expect("a tree");
        let mut now = Rows::new();
        let mut readers: Vec<(Txn, Rows)> = Vec::new();
        for round in 0..30 {
            let mut txn = begin(&db, Isolation::RepeatableRead);
            let mut after = now.clone();
            for _ in 0..6 {
                change(&mut txn, &tree, &mut after, &mut random);
            }
            assert_seen(&mut txn, &tree, &after, &mut random);
            if round % 3 == 1 {
                assert_seen(&mut begin(&db, Isolation::ReadCommitted), &tree, &now, &mut random);
                let dirty = &mut begin(&db, Isolation::ReadUncommitted);
                assert_seen(dirty, &tree, &after, &mut random);
            }
            if random.u8(..4) == 0 {
                txn.rollback().expect("back");
            } else {
                txn.commit_durably(Durability::Lazy).expect("a commit");
                now = after;
            }
            if round % 5 == 0 {
                let mut reader = begin(&db, Isolation::RepeatableRead);
                let _ = reader.get(&tree, b"x").expect("a read");
                readers.push((reader, now.clone()));
            }
            for (reader, then) in &mut readers {
                assert_seen(reader, &tree, then, &mut random);
            }
            db.step().expect("a step");
            if random.u8(..6) == 0 && !readers.is_empty() {
                let _ = readers.swap_remove(0).0.commit().expect("a commit");
            }
        }
        drop(readers);
        (0..20).for_each(|_| db.step().expect("a step"));
        assert_sound(&db);
    }
}
