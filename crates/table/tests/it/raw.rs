//! Tables of rows that the caller has encoded.
use weir::{Durability, Isolation, Wait};
use weir_table::{
    Direction, Entry, EntryBuf, Error, IndexSpec, KeyRange, RawTable, Redefinition, Rename,
    RowImage, Tables,
};

use crate::support::{at, begin, new};

fn index(name: &str, unique: bool) -> IndexSpec {
    IndexSpec { name: name.into(), unique, several: false, definition: b"as I like".to_vec() }
}

fn table(tables: &Tables) -> RawTable {
    let indexes = [index("u", true), index("n", false)];
    assert!(tables.create_raw("t", b"mine", &indexes).expect("a table"));
    tables.open_raw("t").expect("the table")
}

fn entries<'a>(unique: &'a [u8], other: &'a [u8]) -> [Entry<'a>; 2] {
    [
        Entry { key: unique, has_null: unique == b"null", payload: b"pay" },
        Entry { key: other, has_null: false, payload: b"load" },
    ]
}

#[test]
fn bytes_go_in_and_come_out() {
    let (db, tables) = new(41);
    let table = table(&tables);
    assert_eq!(table.info().definition, b"mine");
    assert_eq!(table.info().indexes[1].definition, b"as I like");
    let mut txn = begin(&db);
    let insert = |txn: &mut _, key: &[u8], u: &[u8], n: &[u8]| {
        table.insert(txn, RowImage { key, row: b"row", entries: &entries(u, n) })
    };
    insert(&mut txn, b"k1", b"u1", b"n").expect("an insert");
    insert(&mut txn, b"k2", b"null", b"n").expect("an insert");
    insert(&mut txn, b"k3", b"null", b"m").expect("an insert");
    let taken = insert(&mut txn, b"k4", b"u1", b"n");
    assert!(matches!(taken, Err(Error::Duplicate { index: Some(0) })));
    let of_taken = table.find_for_update(&mut txn, 0, b"u1").expect("a look");
    assert_eq!(of_taken.as_deref(), Some(&b"k1"[..]), "what REPLACE asks next");
    assert_eq!(table.find_for_update(&mut txn, 0, b"u9").expect("a look"), None);
    assert!(matches!(table.find_for_update(&mut txn, 1, b"n"), Err(Error::Input(_))));
    let few = RowImage { key: b"k5", row: b"", entries: &[] };
    assert!(matches!(table.insert(&mut txn, few), Err(Error::Input(_))));

    let at = table.index("n").expect("an index");
    let mut scan =
        table.scan(&mut txn, Some(at), KeyRange::prefix(b"n"), Direction::Up).expect("a scan");
    let mut seen = Vec::new();
    while scan.next(&mut txn).expect("a step") {
        assert_eq!(scan.index_key().expect("a key"), b"n");
        assert_eq!(scan.payload().expect("a payload"), b"load");
        seen.push(scan.primary_key().expect("a key").to_vec());
    }
    assert_eq!(seen, [b"k1", b"k2"]);

    let (old, new) = (entries(b"u1", b"n"), entries(b"u2", b"n"));
    let image = |key, entries| RowImage { key, row: b"row", entries };
    table.update(&mut txn, image(b"k1", &old), image(b"k1", &new)).expect("an update");
    insert(&mut txn, b"k4", b"u1", b"n").expect("the key is free");
    table.delete(&mut txn, image(b"k1", &new)).expect("a delete");
    let gone = table.delete(&mut txn, image(b"k1", &new));
    assert!(matches!(gone, Err(Error::Damaged(_))), "{gone:?}");
    txn.commit_durably(Durability::Synced).expect("a commit");

    let mut txn = begin(&db);
    let made = table.take_numbers(&mut txn, 10, 100).expect("numbers");
    assert_eq!((made, table.next_number().expect("a number")), (1, 11));
    assert!(matches!(table.take_numbers(&mut txn, 91, 100), Err(Error::Exhausted)));
    let (a, b) = (table.take_row_id(&mut txn), table.take_row_id(&mut txn));
    assert!(a.expect("an id") < b.expect("an id"));
    let mut row = Vec::new();
    assert!(!table.get(&mut txn, b"k1", &mut row).expect("get"));
    assert!(table.get_for_share(&mut txn, b"k2", &mut row).expect("get"));
    assert_eq!(row, b"row");
    assert_eq!(table.count(&mut txn).expect("count"), 3);
}

#[test]
fn writers_learn_of_an_index_that_they_do_not_know() {
    let (db, tables) = new(42);
    let old = table(&tables);
    let mut make = |key: &[u8], _: &[u8], entry: &mut weir_table::EntryBuf| {
        entry.key.extend_from_slice(&key[1..]);
        Ok(())
    };
    assert!(tables.add_index_raw("t", &index("added", false), &mut make).expect("an index"));
    let mut txn = begin(&db);
    let known = entries(b"u", b"n");
    let refused = old.insert(&mut txn, RowImage { key: b"k", row: b"", entries: &known });
    assert!(matches!(refused, Err(Error::Changed)), "{refused:?}");
    let now = tables.open_raw("t").expect("the table");
    let added = Entry { key: b"k", ..Entry::default() };
    let all = [known[0], known[1], added];
    now.insert(&mut txn, RowImage { key: b"k", row: b"", entries: &all }).expect("an insert");
}

/// 300 rows of which the last has the same index key as the first; a unique index is built over
/// them, and `meanwhile` runs once, when the first batch of rows has its entries.
fn build_over_twins(
    seed: u64,
    meanwhile: impl Fn(&mut weir::Txn, &RawTable, RowImage<'_>),
) -> (Result<bool, Error>, Vec<String>) {
    let (db, tables) = new(seed);
    assert!(tables.create_raw("t", b"", &[]).expect("a table"));
    let table = tables.open_raw("t").expect("the table");
    let mut txn = begin(&db);
    let key = |n: u32| n.to_be_bytes();
    for n in 0..300 {
        let row = if n == 299 { key(0) } else { key(n) };
        let image = RowImage { key: &key(n), row: &row, entries: &[] };
        table.insert(&mut txn, image).expect("an insert");
    }
    txn.commit_durably(Durability::Synced).expect("a commit");
    let mut make = |primary: &[u8], row: &[u8], entry: &mut weir_table::EntryBuf| {
        if primary == key(270) {
            let table = tables.open_raw("t").expect("the table");
            let row = key(0);
            let twin = [Entry { key: &row, has_null: false, payload: b"" }];
            let mut txn = begin(&db);
            let image = RowImage { key: &key(299), row: &row, entries: &twin };
            meanwhile(&mut txn, &table, image);
            let _ = txn.commit().expect("a commit");
        }
        entry.key.extend_from_slice(row);
        Ok(())
    };
    let built = tables.add_index_raw("t", &index("i", true), &mut make);
    let table = tables.open_raw("t").expect("the table");
    let mut make = |_: usize, _: &[u8], row: &[u8], entry: &mut EntryBuf| {
        entry.key.extend_from_slice(row);
        Ok(())
    };
    let report = table.check(&mut begin(&db), &mut make, &mut || true);
    (built, report.expect("a check").problems)
}

#[test]
fn two_rows_of_one_key_fail_a_unique_index_whatever_becomes_of_them() {
    let (built, problems) = build_over_twins(43, |txn, table, twin| {
        table.delete(txn, twin).expect("a delete");
    });
    assert!(matches!(built, Err(Error::Duplicate { index: Some(0) })), "{built:?}");
    assert_eq!(problems, Vec::<String>::new());
    let (built, problems) = build_over_twins(44, |txn, table, twin| {
        let changed = [Entry { payload: b"changed", ..twin.entries[0] }];
        table.update(txn, twin, RowImage { entries: &changed, ..twin }).expect("another");
        table.update(txn, RowImage { entries: &changed, ..twin }, twin).expect("back");
    });
    assert!(matches!(built, Err(Error::Duplicate { index: Some(0) })), "{built:?}");
    assert_eq!(problems, Vec::<String>::new());
    // Of two rows that a writer makes equal, the one that was there goes.
    let (built, problems) = build_over_twins(45, |txn, table, twin| {
        let (one, row) = (1u32.to_be_bytes(), 2u32.to_be_bytes());
        let (old, new) =
            ([Entry { key: &one, ..twin.entries[0] }], [Entry { key: &row, ..twin.entries[0] }]);
        let was = RowImage { key: &one, row: &one, entries: &old };
        table.update(txn, was, RowImage { row: &row, entries: &new, ..was }).expect("another key");
        let gone = RowImage { key: &row, row: &row, entries: &new };
        table.delete(txn, gone).expect("the one that had it");
        table.delete(txn, RowImage { row: &row, entries: &new, ..was }).expect("and the other");
        table.delete(txn, twin).expect("a delete");
    });
    assert!(matches!(built, Err(Error::Duplicate { index: Some(0) })), "{built:?}");
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn numbers_begin_anew_and_are_settled_before_an_orderly_end() {
    let (_, tables) = new(42);
    let table = table(&tables);
    let mut txn = begin(tables.db());
    assert_eq!(table.take_numbers(&mut txn, 7, 1000).expect("numbers"), 1);
    table.reset_numbers(3).expect("a new beginning");
    assert_eq!(table.take_numbers(&mut txn, 1, 1000).expect("a number"), 3);
    table.reset_numbers(1).expect("a new beginning");
    assert_eq!(table.take_numbers(&mut txn, 2, 1000).expect("numbers"), 1);
    drop(txn);
    tables.settle_numbers().expect("settled");
    // The next opening reads what is written down.
    let again = Tables::open(tables.db()).expect("its tables").open_raw("t").expect("the table");
    assert_eq!(again.next_number().expect("a number"), 3);
}

#[test]
fn a_snapshot_from_before_a_table_was_made_does_not_take_it_for_empty() {
    let (db, tables) = new(43);
    let mut older = begin(&db);
    older.take_snapshot();
    let table = table(&tables);
    let row = RowImage { key: b"k", row: b"row", entries: &entries(b"u", b"n") };
    let mut txn = begin(&db);
    table.insert(&mut txn, row).expect("an insert");
    txn.commit_durably(Durability::Lazy).expect("a commit");
    let mut out = Vec::new();
    let mut newer = begin(&db);
    for _ in 0..3 {
        assert!(table.get(&mut newer, b"k", &mut out).expect("a look"));
        assert!(matches!(table.get(&mut older, b"k", &mut out), Err(Error::Changed)));
    }
    // What a handle has found out ends with the next change.
    assert!(tables.truncate("t").expect("emptied"));
    assert!(matches!(table.get(&mut begin(&db), b"k", &mut out), Err(Error::Changed)));
    let again = tables.open_raw("t").expect("the table");
    assert!(!again.get(&mut begin(&db), b"k", &mut out).expect("a look"));
    assert!(matches!(again.get(&mut newer, b"k", &mut out), Err(Error::Changed)));
}

/// A caller that knew it by its name may come to it late, and does not hold it any more.
#[test]
fn what_was_set_aside_is_dropped_at_once() {
    let (db, tables) = new(47);
    let table = table(&tables);
    let hasty = tables.with_lock_wait(Wait::No);
    let mut early = begin(&db);
    let mut row = Vec::new();
    assert!(!table.get_for_share(&mut early, b"k", &mut row).expect("a look"));
    assert!(matches!(hasty.set_aside("t", "aside"), Err(Error::Store(_))));
    assert_eq!(tables.names().expect("names"), ["t"]);
    early.rollback().expect("rollback");
    assert!(hasty.set_aside("t", "aside").expect("no holder"));
    assert!(!hasty.set_aside("t", "another").expect("there is none"));
    let mut late = begin(&db);
    for _ in 0..2 {
        let looked = table.get_for_share(&mut late, b"k", &mut row);
        assert!(matches!(looked, Err(Error::Changed)), "{looked:?}");
    }
    assert!(hasty.drop_table("aside").expect("no holder"));
    assert!(tables.names().expect("names").is_empty());
}

#[test]
fn built_indexes_come_into_use_together_with_a_definition_or_not_at_all() {
    let (db, tables) = new(44);
    let table = table(&tables);
    let mut txn = begin(&db);
    for n in 0..600u32 {
        let (key, unique) = (n.to_be_bytes(), (n * 3).to_be_bytes());
        let row = RowImage { key: &key, row: b"row", entries: &entries(&unique, b"n") };
        table.insert(&mut txn, row).expect("an insert");
    }
    txn.commit_durably(Durability::Lazy).expect("a commit");
    let mut make = |nth: usize, key: &[u8], _: &[u8], entry: &mut EntryBuf| {
        // The first has a key for each row, the second one for all.
        entry.key.extend_from_slice(if nth == 0 { key } else { b"same" });
        Ok(())
    };
    let (good, bad) = ([index("a", true), index("b", false)], [index("a", true), index("c", true)]);
    tables.announce_indexes("t", &bad, None).expect("announced");
    let twice = tables.fill_indexes("t", &mut make, &mut || true);
    assert!(matches!(twice, Err(Error::Duplicate { index: Some(1) })), "{twice:?}");
    tables.abandon_indexes("t").expect("abandoned");
    assert_eq!(tables.open_raw("t").expect("the table").info().indexes.len(), 2);

    tables.announce_indexes("t", &good, None).expect("announced");
    tables.fill_indexes("t", &mut make, &mut || true).expect("filled");
    let before = tables.open_raw("t").expect("the table");
    assert!(before.info().indexes[2].building && before.index("a").is_err());
    tables.finish_indexes("t", b"another", &["n"]).expect("finished");
    let after = tables.open_raw("t").expect("the table");
    let names: Vec<_> = after.info().indexes.iter().map(|index| &index.name[..]).collect();
    assert_eq!((names, &after.info().definition[..]), (vec!["u", "a", "b"], &b"another"[..]));
    let (mut txn, mut seen) = (begin(&db), 0);
    let mut scan =
        after.scan(&mut txn, Some(2), KeyRange::prefix(b"same"), Direction::Down).expect("a scan");
    while scan.next(&mut txn).expect("a step") {
        seen += 1;
    }
    assert_eq!(seen, 600);
    tables.announce_indexes("t", &[index("d", false)], None).expect("announced");
    tables.abandon_indexes("t").expect("abandoned");
    assert_eq!(tables.open_raw("t").expect("the table").info().indexes.len(), 3);
    assert!(matches!(tables.finish_indexes("t", b"", &["d"]), Err(Error::NoIndex(_))));
}

/// Which index a writer has failed is remembered for the one that finishes, whatever becomes of the
/// others meanwhile.
#[test]
fn no_index_is_dropped_while_another_is_being_built() {
    let (db, tables) = new(46);
    let _ = table(&tables);
    tables
        .announce_indexes("t", &[index("m", false), index("new", true)], None)
        .expect("announced");
    let both = tables.open_raw("t").expect("the table");
    for key in [b"1", b"2"] {
        let plain = Entry { key, has_null: false, payload: b"" };
        let same = Entry { key: b"same", ..plain };
        let mut txn = begin(&db);
        let row = RowImage { key, row: b"row", entries: &[plain, plain, plain, same] };
        both.insert(&mut txn, row).expect("an insert");
        let _ = txn.commit().expect("a commit");
    }
    for name in ["u", "n", "new"] {
        let dropped = tables.drop_index("t", name);
        assert!(matches!(dropped, Err(Error::Definition(_))), "{name}: {dropped:?}");
    }
    assert!(!tables.drop_index("t", "none").expect("there is none"));
    let finished = tables.finish_indexes("t", b"", &["u", "n"]);
    assert!(matches!(finished, Err(Error::Duplicate { index: Some(1) })), "{finished:?}");
    tables.abandon_indexes("t").expect("abandoned");
    // What was abandoned fails nothing.
    tables.finish_indexes("t", b"", &["n"]).expect("finished");
    assert!(tables.drop_index("t", "u").expect("an index"));
    tables.finish_indexes("t", b"", &[]).expect("finished");
    assert!(tables.open_raw("t").expect("the table").info().indexes.is_empty());
}

/// Each row has a problem; the first hundred are reported, and the check can be ended at any row.
#[test]
fn a_check_is_bounded_and_can_be_interrupted() {
    let (db, tables) = new(48);
    let table = table(&tables);
    let mut txn = begin(&db);
    for n in 0..150u32 {
        let key = n.to_be_bytes();
        let row = RowImage { key: &key, row: b"row", entries: &entries(&key, b"n") };
        table.insert(&mut txn, row).expect("an insert");
    }
    txn.commit_durably(Durability::Lazy).expect("a commit");
    let mut make = |_: usize, _: &[u8], _: &[u8], entry: &mut EntryBuf| {
        entry.key.extend_from_slice(b"no row has this");
        Ok(())
    };
    let report = table.check(&mut begin(&db), &mut make, &mut || true).expect("a check");
    assert_eq!((report.rows, report.problems.len()), (150, 100));
    for asked_max in [0, 149, 299, 449] {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            asked <= asked_max
        };
        let ended = table.check(&mut begin(&db), &mut make, &mut go_on);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
        assert_eq!(asked, asked_max + 1);
    }
}

#[test]
fn every_tree_of_a_table_is_known_by_its_name() {
    let (_db, tables) = new(43);
    assert!(tables.create_raw("d/birds", b"", &[index("by_age", false)]).expect("made"));
    let mut found: Vec<_> = tables.tree_owners().expect("read").into_values().collect();
    found.sort();
    let birds = || "d/birds".to_owned();
    assert_eq!(found, [(birds(), None), (birds(), Some("by_age".to_owned()))]);
}

#[test]
fn definitions_change_together_and_with_a_name_or_not_at_all() {
    let (db, tables) = new(47);
    let first = table(&tables);
    assert!(tables.create_raw("other", b"speaks of t", &[]).expect("a table"));
    let mut writer = begin(&db);
    let row = RowImage { key: b"k", row: b"row", entries: &entries(b"u", b"n") };
    first.insert(&mut writer, row).expect("an insert");
    let other = |definition| Redefinition { table: "other", definition, ..Redefinition::default() };
    let swapped = Redefinition {
        table: "t",
        definition: b"mine too",
        renamed: &[("u", "n"), ("n", "u")],
        layouts: None,
        codec: None,
    };
    // The writer has not ended, and need not.
    let renamed = tables.rename_with("t", "t2", &[other(b"speaks of t2"), swapped], Rename::Whole);
    assert!(renamed.expect("a new name"));
    let row = RowImage { key: b"l", row: b"row", entries: &entries(b"v", b"n") };
    first.insert(&mut writer, row).expect("the handle is good");
    let definitions = || {
        let all = tables.definitions().expect("the definitions").into_iter();
        all.map(|(name, info)| (name, info.definition)).collect::<Vec<_>>()
    };
    let told = vec![
        ("other".to_string(), b"speaks of t2".to_vec()),
        ("t2".to_string(), b"mine too".to_vec()),
    ];
    assert_eq!(definitions(), told);
    let again = tables.open_raw("t2").expect("the table");
    assert_eq!((again.index("n").expect("an index"), again.index("u").expect("an index")), (0, 1));
    let unknown = Redefinition { table: "gone", definition: b"", ..Redefinition::default() };
    let failed = tables.redefine(&[other(b"lost"), unknown]);
    assert!(matches!(failed, Err(Error::NoTable(name)) if name == "gone"));
    let twice = Redefinition {
        table: "t2",
        definition: b"lost",
        renamed: &[("n", "u")],
        layouts: None,
        codec: None,
    };
    let failed = tables.redefine(&[other(b"lost"), twice]);
    assert!(matches!(failed, Err(Error::IndexExists(name)) if name == "u"));
    let _ = writer.commit().expect("a commit");
    assert_eq!(definitions(), told);
    tables.redefine(&[other(b"kept")]).expect("a definition");
    assert_eq!(tables.open_raw("other").expect("the table").info().definition, b"kept");
}

#[test]
fn keys_are_found_at_even_distances() {
    let (db, tables) = new(48);
    assert!(tables.create_raw("t", b"", &[index("n", false)]).expect("a table"));
    let table = tables.open_raw("t").expect("the table");
    assert_eq!(table.key_at(None, 0, 1).expect("a look"), None);
    let mut txn = begin(&db);
    for n in 0..3000u32 {
        let (key, of_index) = (n.to_be_bytes(), (n / 100).to_be_bytes());
        let entry = Entry { key: &of_index, has_null: false, payload: b"" };
        table.insert(&mut txn, RowImage { key: &key, row: b"row", entries: &[entry] }).expect("in");
    }
    let _ = txn.commit().expect("a commit");
    let number = |key: &[u8]| u32::from_be_bytes(key[..4].try_into().expect("four bytes"));
    for nth in 0..10 {
        let row = table.key_at(None, nth, 10).expect("a look").expect("a key");
        assert!(number(&row).abs_diff(nth * 300 + 150) < 200, "{nth}: {}", number(&row));
        let entry = table.key_at(Some(0), nth, 10).expect("a look").expect("a key");
        assert_eq!(entry.len(), 8);
        assert!(number(&entry).abs_diff(nth * 3 + 1) < 3, "{nth}: {}", number(&entry));
    }
    assert!(matches!(table.key_at(Some(1), 0, 1), Err(Error::NoIndex(_))));
}

#[test]
fn a_snapshot_from_before_a_filled_table_got_its_name_is_an_error() {
    let (db, tables) = new(48);
    let old = table(&tables);
    let put = |table: &RawTable, key: &[u8]| {
        let mut txn = begin(&db);
        let entries = entries(key, b"n");
        let row = RowImage { key, row: b"row", entries: &entries };
        table.insert(&mut txn, row).expect("an insert");
        let _ = txn.commit().expect("a commit");
    };
    put(&old, b"a");
    assert!(tables.create_raw("copy", b"", &[index("u", true), index("n", false)]).expect("made"));
    let copy = tables.open_raw("copy").expect("the copy");
    put(&copy, b"a");
    // It sees one row of two.
    let mut before = begin(&db);
    assert!(copy.get(&mut before, b"a", &mut Vec::new()).expect("a read"));
    put(&copy, b"b");
    assert!(tables.drop_table("t").expect("dropped"));
    let filled = tables.rename_with("copy", "t", &[], Rename::Filled);
    assert!(filled.expect("a name"));
    let renewed = tables.open_raw("t").expect("the table");
    for at in [None, Some(0), Some(1)] {
        let scan = renewed.scan(&mut before, at, KeyRange::all(), Direction::Up);
        assert!(matches!(scan, Err(Error::Changed)), "{at:?}");
    }
    let got = renewed.get(&mut before, b"a", &mut Vec::new());
    assert!(matches!(got, Err(Error::Changed)), "{got:?}");
    let mut after = begin(&db);
    assert!(renewed.get(&mut after, b"b", &mut Vec::new()).expect("a read"));
}

/// A walk that goes from range to range has one snapshot at READ COMMITTED, and finds in each range
/// what a walk of its own finds there.
#[test]
fn a_walk_goes_on_in_another_range_with_its_snapshot() {
    let (db, tables) = new(43);
    let table = table(&tables);
    let insert = |key: &[u8]| {
        let mut txn = begin(&db);
        table
            .insert(&mut txn, RowImage { key, row: b"row", entries: &entries(key, key) })
            .expect("an insert");
        let _ = txn.commit().expect("committed");
    };
    [b"b1", b"b2", b"d1", b"f1"].into_iter().for_each(|key| insert(key));
    let mut txn = at(&db, Isolation::ReadCommitted);
    let range = |from: &[u8], to: &[u8]| KeyRange { from: from.to_vec(), to: Some(to.to_vec()) };
    let index = Some(table.index("n").expect("an index"));
    let mut scan = table.scan(&mut txn, index, range(b"b", b"c"), Direction::Up).expect("a scan");
    let rest = |txn: &mut weir::Txn, scan: &mut weir_table::RawScan| {
        let mut keys = Vec::new();
        while scan.next(txn).expect("a step") {
            keys.push(scan.primary_key().expect("a key").to_vec());
        }
        keys
    };
    assert_eq!(rest(&mut txn, &mut scan), [b"b1", b"b2"]);
    insert(b"d2");
    scan.set_range(range(b"d", b"e"));
    assert_eq!(rest(&mut txn, &mut scan), [b"d1"], "what was committed when the walk began");
    scan.set_range(range(b"e", b"e"));
    assert!(rest(&mut txn, &mut scan).is_empty());
    scan.set_range(range(b"b2", b"f"));
    assert_eq!(rest(&mut txn, &mut scan), [b"b2", b"d1"], "also one that lies before");
    let mut again = table.scan(&mut txn, index, range(b"d", b"e"), Direction::Up).expect("a scan");
    let keys = rest(&mut txn, &mut again);
    assert_eq!(keys, [b"d1", b"d2"], "another walk has a snapshot of its own");
}
