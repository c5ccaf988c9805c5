//! A new table is filled that no other transaction knows.
use weir_table::{Direction, Entry, Error, IndexSpec, KeyRange, Lock, RawTable, RowImage, Tables};

use crate::support::{begin, new_with_log};

fn table(tables: &Tables) -> RawTable {
    let index = |name: &str, unique| IndexSpec {
        name: name.into(),
        unique,
        several: false,
        definition: vec![],
    };
    assert!(tables.create_raw("t", b"", &[index("u", true), index("n", false)]).expect("made"));
    tables.open_raw("t").expect("the table")
}

fn with_image<T>(key: u16, u: u16, run: impl FnOnce(RowImage<'_>) -> T) -> T {
    let (key, u, n) = (key.to_be_bytes(), u.to_be_bytes(), [key as u8 % 7]);
    let entry = |key, has_null| Entry { key, has_null, payload: b"pay" };
    run(RowImage { key: &key, row: b"row", entries: &[entry(&u, u == [0, 0]), entry(&n, false)] })
}

/// Primary keys by the rows, and by each index.
fn seen(db: &weir::Db, table: &RawTable, index: Option<usize>) -> Vec<Vec<u8>> {
    let (mut txn, mut keys) = (begin(db), Vec::new());
    let all = KeyRange::prefix(b"");
    let mut scan = table.scan_with(&mut txn, index, all, Direction::Up, Lock::Plain).expect("walk");
    while scan.next(&mut txn).expect("a step") {
        keys.push(scan.primary_key().expect("a key").to_vec());
    }
    keys
}

#[test]
fn rows_and_entries_are_there_in_whatever_order_they_came() {
    for (seed, order) in [(81, 0u16), (82, 1), (83, 2)] {
        let (db, tables) = new_with_log(seed, 16 << 20);
        let (table, mut txn) = (table(&tables), begin(&db));
        let mut keys: Vec<u16> = (0..if order == 2 { 0 } else { 3_000 }).collect();
        if order == 1 {
            // In order at first.
            fastrand::Rng::with_seed(seed).shuffle(&mut keys[1_000..]);
        }
        let mut copy = table.copy().expect("begun");
        for &key in &keys {
            // Many NULLs.
            let u = if key % 3 == 0 { 0 } else { 9_000 - key };
            with_image(key, u, |row| copy.push(&mut txn, row)).expect("taken");
        }
        copy.finish(&mut || true, &mut Vec::new()).expect("finished");
        let _ = txn.commit().expect("a commit");
        keys.sort_unstable();
        let keys: Vec<_> = keys.iter().map(|key| key.to_be_bytes().to_vec()).collect();
        assert!(seen(&db, &table, None) == keys, "rows, order {order}");
        for index in [Some(0), Some(1)] {
            let mut found = seen(&db, &table, index);
            found.sort();
            assert!(found == keys, "{index:?}, order {order}");
        }
        db.close().expect("close");
    }
}

#[test]
fn what_is_there_twice_is_said() {
    let (db, tables) = new_with_log(84, 16 << 20);
    let (table, mut txn) = (table(&tables), begin(&db));
    let mut copy = table.copy().expect("begun");
    let mut push = |key, u| with_image(key, u, |row| copy.push(&mut txn, row));
    push(1, 10).expect("taken");
    assert!(matches!(push(1, 11), Err(Error::Duplicate { index: None })));
    push(2, 10).expect("taken");
    let mut twice = Vec::new();
    let done = copy.finish(&mut || true, &mut twice);
    assert!(matches!(done, Err(Error::Duplicate { index: Some(0) })), "{done:?}");
    assert_eq!(twice, [0, 2]);
    drop(txn);
    assert!(tables.drop_table("t").expect("dropped"));
}

#[test]
fn a_copy_that_is_given_up_can_be_dropped() {
    let (db, tables) = new_with_log(85, 16 << 20);
    let (table, mut txn) = (table(&tables), begin(&db));
    let mut copy = table.copy().expect("begun");
    for key in 0..500 {
        with_image(key, key, |row| copy.push(&mut txn, row)).expect("taken");
    }
    let stopped = copy.finish(&mut || false, &mut Vec::new());
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    drop((txn, table));
    assert!(tables.drop_table("t").expect("dropped"));
    let table = self::table(&tables);
    let mut txn = begin(&db);
    let mut copy = table.copy().expect("begun");
    with_image(1, 1, |row| copy.push(&mut txn, row)).expect("taken");
    drop((copy, txn, table));
    assert!(tables.drop_table("t").expect("dropped"));
    db.close().expect("close");
}
