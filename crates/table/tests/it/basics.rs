//! Each promise once.
use weir::{Durability, Isolation, SimVolume, Wait};
use weir_table::{
    ColumnType, Direction, Error, Estimate, Index, Lock, Range, Schema, Tables, Value, desc,
};

use crate::support::{assert_sound, at, begin, bird, birds, fill, ids, new, open, rows};

#[test]
fn rows_are_found_by_key_and_by_index() {
    let (db, tables) = new(1);
    let table = birds(&tables);
    fill(&db, &table, 1..50);
    let mut txn = begin(&db);
    let found = table.get(&mut txn, &[7u64.into()]).expect("get").expect("a row");
    assert_eq!(found, bird(7, Some(7), "bird 0", -7));
    assert_eq!(table.get(&mut txn, &[99u64.into()]).expect("get"), None);
    let found = table.find(&mut txn, "by_ring", &[8u32.into()]).expect("find").expect("a row");
    assert_eq!(found[0], Value::UInt(8));
    let mut of = |index, range: &Range, way| ids(&rows(&table, &mut txn, index, range, way));
    let threes = Range::equal(["bird 3"]);
    assert_eq!(of(Some("by_name"), &threes, Direction::Up), [3, 10, 17, 24, 31, 38, 45]);
    assert_eq!(of(Some("by_name"), &threes, Direction::Down), [45, 38, 31, 24, 17, 10, 3]);
    let key = |id: u64| vec![Value::from(id)];
    assert_eq!(of(None, &Range::between(key(3)..key(6)), Direction::Up), [3, 4, 5]);
    assert_eq!(of(None, &Range::between(key(47)..), Direction::Down), [49, 48, 47]);
    let nulls = Range::equal([Value::Null]);
    assert_eq!(of(Some("by_ring"), &nulls, Direction::Up).len(), 16);
    let bound = |weight: i32| vec![Value::from("bird 3"), Value::from(weight)];
    // Weights descend: from -10 on come -17, -24 and so on.
    let lighter = Range::between((
        std::ops::Bound::Excluded(bound(-10)),
        std::ops::Bound::Included(bound(-31)),
    ));
    assert_eq!(of(Some("by_name"), &lighter, Direction::Up), [17, 24, 31]);
    let mut scan = table.scan(&mut txn, Some("by_name"), &threes, Direction::Up).expect("a scan");
    let covered = scan.next_covered(&mut txn).expect("a step").expect("an entry");
    assert_eq!(covered, [3u64.into(), Value::Null, "bird 3".into(), (-3i32).into()]);
    assert_eq!(table.count(&mut txn).expect("count"), 49);
    drop(txn);
    assert_sound(&db, &tables);
}

#[test]
fn a_duplicate_takes_the_whole_statement_back_and_nothing_else() {
    let (db, tables) = new(2);
    let table = birds(&tables);
    fill(&db, &table, 1..10);
    let mut txn = begin(&db);
    table.insert(&mut txn, &bird(20, Some(20), "first", 1)).expect("an insert");
    let refused = |done: Result<Option<u64>, Error>| match done {
        Err(Error::Duplicate { index }) => index,
        other => panic!("{other:?}"),
    };
    let twice = bird(5, Some(50), "again", 1);
    assert_eq!(refused(table.insert(&mut txn, &twice)), None);
    let ring = bird(21, Some(20), "same ring", 1);
    assert_eq!(refused(table.insert(&mut txn, &ring)), Some(0));
    let changed = table.update(&mut txn, &[1u64.into()], |row| {
        row[0] = 30u64.into();
        row[1] = 2u32.into();
        row[2] = "moved".into();
    });
    assert!(matches!(changed, Err(Error::Duplicate { index: Some(0) })), "{changed:?}");
    for id in [31u64, 32] {
        table.insert(&mut txn, &bird(id, None, "no ring", 1)).expect("NULLs never conflict");
    }
    txn.commit_durably(Durability::Synced).expect("a commit");
    let mut txn = begin(&db);
    let all = rows(&table, &mut txn, None, &Range::all(), Direction::Up);
    assert_eq!(ids(&all), [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 31, 32]);
    assert_eq!(all[0], bird(1, Some(1), "bird 1", -1));
    drop(txn);
    assert_sound(&db, &tables);
}

#[test]
fn two_that_want_the_same_unique_key_meet() {
    let (db, tables) = new(3);
    let table = birds(&tables);
    fill(&db, &table, 1..3);
    let (mut one, mut two) = (begin(&db), begin(&db));
    table.insert(&mut one, &bird(10, Some(77), "one", 1)).expect("an insert");
    let met = table.insert(&mut two, &bird(11, Some(77), "two", 1)).expect_err("it is locked");
    assert!(met.is_retryable(), "{met}");
    one.rollback().expect("rollback");
    table.insert(&mut two, &bird(11, Some(77), "two", 1)).expect("the ring is free");
    assert!(table.delete(&mut two, &[1u64.into()]).expect("delete"));
    let mut one = begin(&db);
    let met = table.insert(&mut one, &bird(12, Some(1), "x", 1)).expect_err("it may come back");
    assert!(met.is_retryable(), "{met}");
    two.commit_durably(Durability::Synced).expect("a commit");
    table.insert(&mut one, &bird(12, Some(1), "x", 1)).expect("the ring is free");
    let taken = table.insert(&mut one, &bird(13, Some(77), "y", 1)).expect_err("it is taken");
    assert!(matches!(taken, Error::Duplicate { index: Some(0) }));
    one.commit_durably(Durability::Synced).expect("a commit");
    assert_sound(&db, &tables);
}

#[test]
fn tables_without_a_primary_key() {
    let (db, tables) = new(6);
    let schema = Schema::new()
        .column("word", ColumnType::Text)
        .nullable("count", ColumnType::F64)
        .index(Index::new("by_count", [desc("count")]));
    assert!(tables.create_table("words", &schema).expect("a table"));
    let table = tables.open_table("words").expect("the table");
    let mut txn = begin(&db);
    for n in 0..5 {
        let count = if n == 2 { Value::Null } else { Value::from(f64::from(n)) };
        table.insert(&mut txn, &["same".into(), count]).expect("an insert");
    }
    let by_count = Some("by_count");
    let mut scan = table.scan(&mut txn, by_count, &Range::all(), Direction::Up).expect("a scan");
    let first = scan.next(&mut txn).expect("a step").expect("a row");
    assert_eq!(first[1], Value::F64(4.0));
    let at = scan.row_key().expect("a place");
    assert!(table.update_at(&mut txn, &at, |row| row[1] = (-1.0).into()).expect("an update"));
    let second = scan.next(&mut txn).expect("a step").expect("a row");
    assert_eq!(second[1], Value::F64(3.0));
    assert!(table.delete_at(&mut txn, &scan.row_key().expect("a place")).expect("a delete"));
    let left = rows(&table, &mut txn, by_count, &Range::all(), Direction::Down);
    let counts: Vec<_> = left.into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(counts, [Value::Null, (-1.0).into(), 0.0.into(), 1.0.into()]);
    assert!(matches!(table.get(&mut txn, &[1u64.into()]), Err(Error::Input(_))));
    txn.commit_durably(Durability::Synced).expect("a commit");
    assert_sound(&db, &tables);
}

#[test]
fn definitions_change_and_say_so() {
    let (db, tables) = new(7);
    let table = birds(&tables);
    fill(&db, &table, 1..40);
    assert!(!tables.create_table("birds", &crate::support::schema()).expect("there is one"));
    assert!(tables.add_index("birds", &Index::new("by_weight", ["weight"])).expect("an index"));
    assert!(!tables.add_index("birds", &Index::new("by_weight", ["weight"])).expect("there is"));
    let mut txn = begin(&db);
    let lightest = rows(&table, &mut txn, Some("by_weight"), &Range::all(), Direction::Up);
    assert_eq!(ids(&lightest), (1..40).rev().collect::<Vec<_>>());
    drop(txn);
    let same = tables.add_index("birds", &Index::unique("by_kind", ["name"]));
    assert!(matches!(same, Err(Error::Duplicate { index: Some(3) })), "{same:?}");
    assert!(tables.drop_index("birds", "by_name").expect("an index"));
    assert!(!tables.drop_index("birds", "by_name").expect("none"));
    assert!(tables.rename("birds", "flock").expect("a table"));
    assert!(!tables.rename("birds", "flock").expect("none"));
    assert!(matches!(tables.open_table("birds"), Err(Error::NoTable(_))));
    assert_eq!(tables.names().expect("names"), ["flock"]);
    fill(&db, &table, 40..50);
    let indexes: Vec<_> =
        table.schema().expect("a schema").indexes().iter().map(|i| i.name.clone()).collect();
    assert_eq!(indexes, ["by_ring", "by_weight"]);
    assert_eq!(table.count(&mut begin(&db)).expect("count"), 49);
    birds(&tables);
    assert!(matches!(tables.rename("birds", "flock"), Err(Error::TableExists(_))));
    assert_sound(&db, &tables);
    assert!(tables.truncate("flock").expect("a table"));
    assert_eq!(table.count(&mut begin(&db)).expect("count"), 0);
    fill(&db, &table, 1..5);
    assert!(tables.drop_table("flock").expect("a table"));
    assert!(!tables.drop_table("flock").expect("none"));
    let gone = table.get(&mut begin(&db), &[1u64.into()]);
    assert!(matches!(gone, Err(Error::Changed)), "{gone:?}");
    assert!(tables.drop_table("birds").expect("a table"));
    assert_sound(&db, &tables);
    let left: Vec<_> = db.tree_names().expect("names");
    assert_eq!(left, ["weir.tables"]);
}

#[test]
fn older_snapshots_are_not_shown_half_a_table() {
    let (db, tables) = new(8);
    let table = birds(&tables);
    fill(&db, &table, 1..20);
    let mut old = begin(&db);
    old.take_snapshot();
    assert!(tables.add_index("birds", &Index::new("by_weight", ["weight"])).expect("an index"));
    fill(&db, &table, 20..30);
    let scan = table.scan(&mut old, Some("by_weight"), &Range::all(), Direction::Up);
    assert!(matches!(scan, Err(Error::Changed)), "the index lacks what the snapshot sees");
    assert_eq!(table.count(&mut old).expect("rows are all there"), 19);
    assert!(table.get(&mut old, &[3u64.into()]).expect("get").is_some());
    let mut committed = at(&db, Isolation::ReadCommitted);
    let by_weight = Some("by_weight");
    assert_eq!(rows(&table, &mut committed, by_weight, &Range::all(), Direction::Up).len(), 29);
    drop(committed);
    assert!(tables.truncate("birds").expect("a table"));
    assert!(matches!(table.get(&mut begin(&db), &[3u64.into()]), Ok(None)));
    assert!(matches!(table.get(&mut old, &[3u64.into()]), Err(Error::Changed)));
    drop(old);
    assert_sound(&db, &tables);
}

/// A walk sees the moment at which it was begun, also of a table that no transaction has altered
/// before.
#[test]
fn a_walk_that_was_begun_before_a_change_is_not_shown_half_a_table() {
    let change: [fn(&Tables); 2] = [
        |tables| assert!(tables.drop_index("birds", "by_name").expect("an index")),
        |tables| assert!(tables.truncate("birds").expect("a table")),
    ];
    for (change, by_name) in change.into_iter().flat_map(|c| [(c, Some("by_name")), (c, None)]) {
        let volume = SimVolume::new(17);
        let (db, tables) = open(&volume);
        fill(&db, &birds(&tables), 1..5);
        drop(tables);
        db.close().expect("close");
        let (db, tables) = open(&volume);
        let table = tables.open_table("birds").expect("the table");
        // It keeps the rows that are deleted.
        let mut older = begin(&db);
        older.take_snapshot();
        let mut txn = begin(&db);
        let mut scan = table.scan(&mut txn, by_name, &Range::all(), Direction::Up).expect("a scan");
        change(&tables);
        let mut other = begin(&db);
        table.insert(&mut other, &bird(50, None, "new", 1)).expect("an insert");
        let _ = other.commit().expect("a commit");
        let mut seen = 0;
        while scan.next_covered(&mut txn).expect("a step").is_some() {
            seen += 1;
        }
        assert_eq!(seen, 4);
    }
}

/// At SERIALIZABLE a reader keeps the definition, also of a table that no transaction has altered
/// before.
#[test]
fn a_serializable_walk_keeps_its_index() {
    let volume = SimVolume::new(18);
    let (db, tables) = open(&volume);
    fill(&db, &birds(&tables), 1..5);
    drop(tables);
    db.close().expect("close");
    let (db, tables) = open(&volume);
    let hasty = tables.with_lock_wait(Wait::No);
    let table = tables.open_table("birds").expect("the table");
    let mut txn = at(&db, Isolation::Serializable);
    let all = Range::all();
    let mut scan = table.scan(&mut txn, Some("by_name"), &all, Direction::Up).expect("a scan");
    let dropped = hasty.drop_index("birds", "by_name");
    assert!(dropped.expect_err("it is being read").is_retryable());
    let mut seen = 0;
    while scan.next(&mut txn).expect("a step").is_some() {
        seen += 1;
    }
    assert_eq!(seen, 4);
    txn.rollback().expect("rollback");
    assert!(hasty.drop_index("birds", "by_name").expect("an index"));
}

#[test]
fn ranges_are_estimated() {
    let (db, tables) = new(9);
    let table = birds(&tables);
    fill(&db, &table, 1..3_001);
    let key = |id: u64| vec![Value::from(id)];
    let range = |from, to| Range::between(key(from)..key(to));
    assert_eq!(table.estimate(None, &range(100, 110)).expect("some"), Estimate::Exact(10));
    for (from, to) in [(100, 150), (100, 2_100), (1, 3_001), (2_900, 3_001)] {
        let unknown = table.estimate(None, &range(from, to)).expect("some");
        assert!(matches!(unknown, Estimate::Dived(_)), "{unknown:?}");
        let (about, really) = (unknown.rows() as f64, (to - from) as f64);
        assert!((about / really - 1.0).abs() < 0.25, "{about} for {really}");
    }
    assert_eq!(table.analyze().expect("a walk"), 3_000);
    for (from, to) in [(1, 3_001), (100, 2_100), (2_000, 2_900)] {
        let about = table.estimate(None, &range(from, to)).expect("some");
        assert!(matches!(about, Estimate::Sampled(_)), "{about:?}");
        assert!(about.rows().abs_diff(to - from) <= 60, "{about:?} for {from}..{to}");
    }
    let name = Range::equal(["bird 3"]);
    let about = table.estimate(Some("by_name"), &name).expect("some").rows();
    assert!(about.abs_diff(3_000 / 7) <= 60, "{about}");
}

#[test]
fn a_sample_takes_what_is_not_committed_for_done() {
    let (db, tables) = new(17);
    let table = birds(&tables);
    fill(&db, &table, 1..101);
    let mut open = begin(&db);
    for id in 1..41u64 {
        assert!(table.delete(&mut open, &[id.into()]).expect("a delete"));
    }
    for id in 201..211 {
        table.insert(&mut open, &bird(id, None, "bird 7", 0)).expect("an insert");
    }
    assert_eq!(table.analyze().expect("a walk"), 70);
    open.rollback().expect("rollback");
    assert_eq!(table.analyze().expect("a walk"), 100);
}

#[test]
fn definitions_that_are_not_possible() {
    let (_db, tables) = new(10);
    let u = ColumnType::U32;
    let one = || Schema::new().column("a", u);
    for (schema, what) in [
        (one().column("a", u), "twice"),
        (one().primary_key(["b"]), "no such column"),
        (one().primary_key(["a", "a"]), "a key column twice"),
        (one().nullable("b", u).primary_key(["b"]), "NULL in the key"),
        (one().index(Index::new("i", Vec::<&str>::new())), "no columns"),
        (one().column("t", ColumnType::Text).auto_increment("t"), "no number"),
        (one().index(Index::new("", ["a"])), "no name"),
    ] {
        let made = tables.create_table("t", &schema);
        assert!(matches!(made, Err(Error::Definition(_))), "{what}: {made:?}");
    }
    let twice = one().index(Index::new("i", ["a"])).index(Index::new("i", ["a"]));
    assert!(matches!(tables.create_table("t", &twice), Err(Error::IndexExists(_))));
    assert!(matches!(tables.create_table("", &one()), Err(Error::Definition(_))));
    assert_eq!(tables.names().expect("names"), Vec::<String>::new());
}

#[test]
fn a_row_that_has_left_the_range_is_not_shown_in_it() {
    let (db, tables) = new(12);
    let table = birds(&tables);
    fill(&db, &table, 1..30);
    let mut reader = at(&db, Isolation::ReadCommitted);
    let threes = Range::equal(["bird 3"]);
    let by_name = Some("by_name");
    let mut scan = table.scan(&mut reader, by_name, &threes, Direction::Up).expect("a scan");
    assert_eq!(scan.next(&mut reader).expect("a step").expect("a row")[0], Value::UInt(3));
    let mut writer = begin(&db);
    table.update(&mut writer, &[10u64.into()], |row| row[2] = "x".into()).expect("an update");
    assert!(table.delete(&mut writer, &[17u64.into()]).expect("a delete"));
    writer.commit_durably(Durability::Synced).expect("a commit");
    assert_eq!(scan.next(&mut reader).expect("a step").expect("a row")[0], Value::UInt(24));
}

#[test]
fn walks_with_locks_keep_others_out_of_the_range() {
    let (db, tables) = new(13);
    let table = birds(&tables);
    fill(&db, &table, 1..30);
    for lock in [Lock::Share, Lock::Update] {
        let mut one = begin(&db);
        one.take_snapshot();
        let mut two = begin(&db);
        let renamed = table.update(&mut two, &[5u64.into()], |row| row[2] = "bird 3".into());
        assert!(renamed.expect("an update"));
        two.commit_durably(Durability::Synced).expect("a commit");
        let threes = Range::equal(["bird 3"]);
        let by_name = Some("by_name");
        let mut scan =
            table.scan_with(&mut one, by_name, &threes, Direction::Up, lock).expect("a scan");
        let mut seen = Vec::new();
        while let Some(row) = scan.next(&mut one).expect("a step") {
            seen.push(row);
        }
        assert_eq!(ids(&seen), [3, 5, 10, 17, 24], "as committed last");
        let mut two = begin(&db);
        let inserted = table.insert(&mut two, &bird(100, None, "bird 3", 0));
        assert!(inserted.expect_err("a phantom").is_retryable());
        let changed = table.update(&mut two, &[10u64.into()], |row| row[1] = Value::Null);
        assert!(changed.expect_err("a row that was read").is_retryable());
        let shared = table.get_for_share(&mut two, &[10u64.into()]);
        assert_eq!(shared.is_ok(), lock == Lock::Share);
        table.insert(&mut two, &bird(101, None, "other", 0)).expect("outside of the range");
        two.rollback().expect("rollback");
        one.rollback().expect("rollback");
        let mut two = begin(&db);
        let back = table.update(&mut two, &[5u64.into()], |row| row[2] = "bird 5".into());
        assert!(back.expect("an update"));
        two.commit_durably(Durability::Synced).expect("a commit");
    }
    assert_sound(&db, &tables);
}

/// The transaction that changes a definition says how long it waits for those that write to the
/// table; what was too long has changed nothing.
#[test]
fn without_a_wait_for_writers_no_definition_changes() {
    let (db, tables) = new(7);
    let table = birds(&tables);
    fill(&db, &table, 1..3);
    let mut writer = begin(&db);
    assert!(table.delete(&mut writer, &[1u64.into()]).expect("a row"));
    let hasty = tables.with_lock_wait(Wait::No);
    let would_wait = |done: Result<bool, Error>| match done {
        Err(Error::Store(e)) => assert!(e.is_retryable(), "{e}"),
        done => panic!("{done:?}"),
    };
    would_wait(hasty.drop_table("birds"));
    would_wait(hasty.truncate("birds"));
    would_wait(hasty.set_aside("birds", "aside"));
    would_wait(hasty.drop_index("birds", "by_name"));
    would_wait(hasty.add_index("birds", &Index::new("more", ["weight"])));
    would_wait(hasty.finish_indexes("birds", b"", &["by_name"]).map(|()| true));
    let _ = writer.commit().expect("a commit");
    assert_eq!(table.count(&mut begin(&db)).expect("count"), 1, "the handle is good");
    assert!(hasty.drop_table("birds").expect("no writer"));
    assert_sound(&db, &tables);
}
