//! Keys that are longer than a page allows.
use std::collections::BTreeMap;

use weir::{Db, Extent, Isolation, Txn};
use weir_table::{
    Direction, Entry, Error, IndexSpec, KeyRange, Lock, RawScan, RawTable, RowImage, Tables,
};

use crate::support::{at, begin, new_with_log};

/// Bytes that many keys begin with: as many as stand in a tree, and around that.
const SAME: usize = 1168;

/// Text as an encoder writes it: no key is the beginning of another.
fn text(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0, 0]].concat()
}

/// A key that begins as most do.
fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(..8) {
        0 => random.usize(1..40),
        1 => random.usize(SAME - 4..SAME + 40),
        2 => random.usize(1..20_000),
        _ => random.usize(SAME - 2..SAME + 4),
    };
    let mut bytes = vec![if random.u8(..4) == 0 { 255 } else { 7 }; len];
    for _ in 0..random.usize(..4) {
        bytes.push(random.u8(1..4));
    }
    text(&bytes)
}

fn table(tables: &Tables) -> RawTable {
    let index = |name: &str, unique| IndexSpec {
        name: name.into(),
        unique,
        several: false,
        definition: vec![],
    };
    let indexes = [index("u", true), index("n", false)];
    assert!(tables.create_raw("t", b"", &indexes).expect("a table"));
    tables.open_raw("t").expect("the table")
}

/// Row by primary key: the keys of the two indexes, the first of which may be NULL.
type Model = BTreeMap<Vec<u8>, (Option<Vec<u8>>, Vec<u8>)>;
type Keys = (Option<Vec<u8>>, Vec<u8>);

fn with_image<T>(key: &[u8], (u, n): &Keys, run: impl FnOnce(RowImage<'_>) -> T) -> T {
    let null = text(b"");
    let entries = [
        Entry { key: u.as_deref().unwrap_or(&null), has_null: u.is_none(), payload: b"pay" },
        Entry { key: n, has_null: false, payload: b"load" },
    ];
    run(RowImage { key, row: n, entries: &entries })
}

/// What a walk comes to: whole key, primary key, row or payload.
fn seen(
    table: &RawTable,
    txn: &mut Txn,
    index: Option<usize>,
    range: &KeyRange,
    direction: Direction,
    lock: Lock,
) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let scan = table.scan_with(txn, index, range.clone(), direction, lock);
    let (mut scan, mut all) = (scan.expect("a scan"), Vec::new());
    while scan.next(txn).expect("a step") {
        let value = if index.is_some() { scan.payload().expect("a payload") } else { scan.row() };
        let primary = scan.primary_key().expect("a key").to_vec();
        all.push((scan.tree_key().to_vec(), primary, value.to_vec()));
    }
    all
}

/// The rows, of which the first bytes are enough, or all of some.
fn assert_fronts(table: &RawTable, txn: &mut Txn, model: &Model, random: &mut fastrand::Rng) {
    let direction = if random.bool() { Direction::Up } else { Direction::Down };
    let mut scan = table.scan(txn, None, KeyRange::all(), direction).expect("a scan");
    scan.set_fronts(true);
    let mut rows: Vec<_> = model.iter().collect();
    if direction == Direction::Down {
        rows.reverse();
    }
    for (key, (_, row)) in rows {
        assert!(scan.next(txn).expect("a step") && scan.tree_key() == key);
        if scan.is_front() {
            assert!(row.starts_with(scan.row()) && scan.row().len() < row.len());
            assert!(key.len() <= SAME, "a folded key's row is shown whole");
            if random.bool() {
                assert!(scan.whole(txn).expect("all of it") && scan.tree_key() == key);
            }
        }
        assert!(scan.is_front() || scan.row() == row);
        let mut out = Vec::new();
        match table.get_front(txn, key, &mut out).expect("a read") {
            Extent::Nothing => panic!("{key:?} is not there"),
            Extent::Front => assert!(row.starts_with(&out) && out.len() < row.len()),
            Extent::Whole => assert!(out == *row),
        }
    }
    assert!(!scan.next(txn).expect("a step"));
    assert_eq!(table.count(txn).expect("counted"), model.len() as u64);
}

fn expected(model: &Model, index: Option<usize>) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = model
        .iter()
        .map(|(key, (u, n))| match (index, u) {
            (None, _) => (key.clone(), key.clone(), n.clone()),
            (Some(0), Some(u)) => (u.clone(), key.clone(), b"pay".to_vec()),
            (Some(0), None) => ([text(b""), key.clone()].concat(), key.clone(), b"pay".to_vec()),
            _ => ([&n[..], key].concat(), key.clone(), b"load".to_vec()),
        })
        .collect();
    all.sort();
    all
}

fn assert_same(table: &RawTable, txn: &mut Txn, model: &Model, random: &mut fastrand::Rng) {
    assert_fronts(table, txn, model, random);
    for index in [None, Some(0), Some(1)] {
        let all = expected(model, index);
        for ways in 0..6 {
            let (mut from, mut to) = (key(random), key(random));
            if let Some(row) = all.get(random.usize(..all.len().max(1))).filter(|_| ways % 2 == 0) {
                from = row.0[..row.0.len() - random.usize(..3)].to_vec();
            }
            if random.bool() {
                to = from.clone();
                to.push(255);
            }
            let range = match ways {
                0 => KeyRange::all(),
                1 => KeyRange { from, to: None },
                2 => KeyRange::prefix(&from),
                _ => KeyRange { from, to: Some(to) },
            };
            let lock = [Lock::Plain, Lock::Share, Lock::Update][random.usize(..3)];
            let mut within: Vec<_> = all.clone();
            within.retain(|(key, ..)| {
                *key >= range.from && range.to.as_ref().is_none_or(|to| key < to)
            });
            let up = seen(table, txn, index, &range, Direction::Up, lock);
            assert!(up == within, "up, {index:?}, {lock:?}: {} of {}", up.len(), within.len());
            within.reverse();
            let down = seen(table, txn, index, &range, Direction::Down, lock);
            assert!(down == within, "down, {index:?}, {lock:?}: {}, {}", down.len(), within.len());
        }
    }
}

/// Whether the statement is to fail, and for which index.
fn taken(
    model: &Model,
    without: Option<&Vec<u8>>,
    key: &[u8],
    keys: &Keys,
) -> Option<Option<usize>> {
    let mut others = model.iter().filter(|(at, _)| Some(*at) != without);
    if others.clone().any(|(at, _)| at == key) {
        return Some(None);
    }
    (keys.0.is_some() && others.any(|(_, of)| of.0 == keys.0)).then_some(Some(0))
}

fn one(table: &RawTable, txn: &mut Txn, model: &mut Model, random: &mut fastrand::Rng) {
    let is_null = random.u8(..4) == 0;
    let keys: Keys = ((!is_null).then(|| key(random)), key(random));
    let existing = (!model.is_empty() && random.u8(..3) == 0)
        .then(|| model.keys().nth(random.usize(..model.len())).expect("one").clone());
    let (done, expected) = match existing {
        None => {
            let primary = key(random);
            let expected = taken(model, None, &primary, &keys);
            let done = with_image(&primary, &keys, |image| table.insert(txn, image));
            if expected.is_none() {
                model.insert(primary, keys);
            }
            (done, expected)
        }
        Some(old) if random.bool() => {
            let was = model.remove(&old).expect("there");
            with_image(&old, &was, |image| table.delete(txn, image)).expect("a delete");
            return;
        }
        Some(old) => {
            let new = if random.bool() { old.clone() } else { key(random) };
            let was = model[&old].clone();
            let expected = taken(model, Some(&old), &new, &keys);
            let done = with_image(&old, &was, |old| {
                with_image(&new, &keys, |new| table.update(txn, old, new))
            });
            if expected.is_none() {
                model.remove(&old);
                model.insert(new, keys);
            }
            (done, expected)
        }
    };
    match (done, expected) {
        (Ok(()), None) => {}
        (Err(Error::Duplicate { index }), Some(expected)) => assert_eq!(index, expected),
        (done, expected) => panic!("{done:?}, not {expected:?}"),
    }
}

#[test]
fn a_table_of_long_keys_is_a_map() {
    let (db, tables) = new_with_log(71, 16 << 20);
    let table = table(&tables);
    let (mut model, mut random) = (Model::new(), fastrand::Rng::with_seed(71));
    for round in 0..30 {
        let (mut txn, before) = (begin(&db), model.clone());
        for _ in 0..10 {
            one(&table, &mut txn, &mut model, &mut random);
        }
        assert_same(&table, &mut txn, &model, &mut random);
        for (key, (u, n)) in &model {
            let mut row = Vec::new();
            assert!(table.get(&mut txn, key, &mut row).expect("get") && row == *n);
            let found = u.as_ref().map(|u| table.find_for_update(&mut txn, 0, u).expect("a look"));
            assert!(found.flatten().is_none_or(|found| found == *key), "the row of another key");
        }
        if round % 3 == 2 {
            txn.rollback().expect("a rollback");
            model = before;
        } else {
            let _ = txn.commit().expect("a commit");
        }
    }
    assert!(model.len() > 40, "{} rows", model.len());
    assert_same(&table, &mut begin(&db), &model, &mut random);
}

/// Rows with the keys `0 ..`, all of one run, of a megabyte and a half.
fn long_run(db: &Db, tables: &Tables) -> (RawTable, Vec<Vec<u8>>) {
    assert!(tables.create_raw("run", b"", &[]).expect("a table"));
    let table = tables.open_raw("run").expect("the table");
    let keys = (1..=250u8).map(|n| text(&[&[7; 3000][..], &[n]].concat()));
    let keys: Vec<_> = keys.collect();
    let mut txn = begin(db);
    for key in &keys {
        table.insert(&mut txn, RowImage { key, row: b"row", entries: &[] }).expect("an insert");
    }
    for key in [&[6; 4000][..], &[7; SAME - 1], &[7, 8], &[8; 4000]] {
        let key = &text(key);
        table.insert(&mut txn, RowImage { key, row: b"row", entries: &[] }).expect("an insert");
    }
    let _ = txn.commit().expect("a commit");
    (table, keys)
}

#[test]
fn a_run_that_is_larger_than_the_memory_for_one_is_in_order() {
    let (db, tables) = new_with_log(72, 16 << 20);
    let (table, keys) = long_run(&db, &tables);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for lock in [Lock::Plain, Lock::Update] {
            let mut txn = at(&db, isolation);
            let range = KeyRange::prefix(&[7; 1000]);
            let of = |seen: Vec<(Vec<u8>, _, _)>| seen.into_iter().map(|(key, ..)| key);
            let up = seen(&table, &mut txn, None, &range, Direction::Up, lock);
            let mut up: Vec<_> = of(up).collect();
            assert_eq!(up.remove(0), text(&[7; SAME - 1]));
            assert!(up == keys, "{} keys up", up.len());
            let down = seen(&table, &mut txn, None, &range, Direction::Down, lock);
            assert!(of(down).eq(keys.iter().rev().cloned().chain([text(&[7; SAME - 1])])));
            assert_eq!(table.count(&mut txn).expect("a count"), 254);
        }
    }
}

/// Steps a walk over a run of which another transaction has locked the row `blocked`.
fn step_over(db: &Db, table: &RawTable, blocked: &[u8], go: impl Fn(&mut RawScan, &mut Txn, Txn)) {
    let mut other = begin(db);
    assert!(table.get_for_update(&mut other, blocked, &mut Vec::new()).expect("a row"));
    let mut txn = at(db, Isolation::ReadCommitted);
    let range = KeyRange::prefix(&[7; 2000]);
    let scan = table.scan_with(&mut txn, None, range, Direction::Up, Lock::Update);
    go(&mut scan.expect("a scan"), &mut txn, other);
}

#[test]
fn a_step_in_a_run_that_failed_is_taken_again() {
    let (db, tables) = new_with_log(73, 16 << 20);
    let (table, keys) = long_run(&db, &tables);
    step_over(&db, &table, &keys[240], |scan, txn, other| {
        // All of a run is locked with its first row.
        assert!(scan.next(txn).is_err() && scan.tree_key().is_empty());
        other.rollback().expect("a rollback");
        for key in &keys {
            assert!(scan.next(txn).expect("a step") && scan.tree_key() == key);
        }
        assert!(!scan.next(txn).expect("a step"));
    });
}

#[test]
fn rows_of_a_run_that_others_have_are_passed_over_or_shown() {
    let (db, tables) = new_with_log(74, 16 << 20);
    let (table, keys) = long_run(&db, &tables);
    step_over(&db, &table, &keys[4], |scan, txn, _other| {
        scan.skip_locked();
        for key in keys.iter().filter(|key| **key != keys[4]) {
            assert!(scan.next(txn).expect("a step") && scan.tree_key() == key);
        }
        assert!(!scan.next(txn).expect("a step"));
    });
    step_over(&db, &table, &keys[4], |scan, txn, mut other| {
        scan.set_semi_consistent(true);
        for key in &keys[..5] {
            assert!(scan.next(txn).expect("a step") && scan.tree_key() == key);
            assert_eq!(scan.is_unlocked(), *key == keys[4]);
        }
        assert!(scan.lock_current(txn).is_err() && scan.tree_key().is_empty());
        assert!(
            scan.next(txn).expect("a step") && scan.tree_key() == keys[4] && scan.is_unlocked()
        );
        let image = RowImage { key: &keys[4], row: b"row", entries: &[] };
        table.delete(&mut other, image).expect("a delete");
        let _ = other.commit().expect("a commit");
        assert!(scan.lock_current(txn).expect("a step") && scan.tree_key() == keys[5]);
        assert!(!scan.is_unlocked() && scan.next(txn).expect("a step"));
        assert!(scan.tree_key() == keys[6]);
    });
}

#[test]
fn an_index_of_long_keys_is_built_over_long_keys() {
    let (db, tables) = new_with_log(75, 16 << 20);
    let (table, keys) = long_run(&db, &tables);
    let spec = IndexSpec { name: "late".into(), unique: true, several: false, definition: vec![] };
    let make = |key: &[u8], row: &[u8], entry: &mut weir_table::EntryBuf| {
        assert_eq!(row, b"row");
        entry.key.extend_from_slice(key);
        Ok(())
    };
    // A writer beside it takes one row away, puts it back, and has another no more.
    drop(table);
    tables.announce_indexes("run", &[spec], None).expect("announced");
    let (table, mut writer) = (tables.open_raw("run").expect("the table"), begin(&db));
    let entries = |key| [Entry { key, has_null: false, payload: b"" }];
    let (stays, goes) = (entries(&keys[2]), entries(&keys[3]));
    let image = |key, entries| RowImage { key, row: b"row", entries };
    table.delete(&mut writer, image(&keys[2], &stays)).expect("a delete");
    table.delete(&mut writer, image(&keys[3], &goes)).expect("a delete");
    table.insert(&mut writer, image(&keys[2], &stays)).expect("an insert");
    let _ = writer.commit().expect("a commit");
    let mut make_any = |_: usize, key: &[u8], row: &[u8], entry: &mut _| make(key, row, entry);
    tables.fill_indexes("run", &mut make_any, &mut || true).expect("filled");
    tables.finish_indexes("run", b"", &[]).expect("finished");
    let keys = [&keys[..3], &keys[4..]].concat();
    let table = tables.open_raw("run").expect("the table");
    let mut txn = begin(&db);
    let range = KeyRange::prefix(&[7; 2000]);
    let all = seen(&table, &mut txn, Some(0), &range, Direction::Up, Lock::Plain);
    assert!(all.iter().map(|(_, primary, _)| primary).eq(&keys));
    let report =
        table.check(&mut txn, &mut |_, key, row, entry| make(key, row, entry), &mut || true);
    assert_eq!(report.expect("a check").problems, Vec::<String>::new());
}
