//! Auto-increment over crashes and orderly ends.
use weir::{Db, Durability, SimVolume};
use weir_table::{ColumnType, Error, Schema, Tables, Value};

use crate::support::{begin, bird, birds, new, open};

#[test]
fn numbers_never_go_back() {
    let volume = SimVolume::new(4);
    let mut seen = 0;
    let mut lives = volume;
    for life in 0..3u64 {
        let (db, tables) = open(&lives);
        if life == 0 {
            birds(&tables);
        }
        let table = tables.open_table("birds").expect("the table");
        for n in 0..30 {
            let mut txn = begin(&db);
            let row = [Value::Null, Value::Null, "x".into(), 1i32.into()];
            let id = table.insert(&mut txn, &row).expect("an insert").expect("a number");
            assert!(id > seen, "{id} after {seen}");
            seen = id;
            if n % 3 == 0 {
                txn.rollback().expect("rollback");
            } else {
                let _ = txn.commit().expect("a commit");
            }
        }
        let mut txn = begin(&db);
        seen += 5_000;
        table.insert(&mut txn, &bird(seen, None, "far", 1)).expect("an insert");
        txn.rollback().expect("rollback");
        assert!(tables.truncate("birds").expect("truncate"));
        lives = lives.crash(life);
    }
    let (db, tables) = new(5);
    let small = Schema::new().column("n", ColumnType::U8).primary_key(["n"]).auto_increment("n");
    assert!(tables.create_table("small", &small).expect("a table"));
    let table = tables.open_table("small").expect("the table");
    let mut txn = begin(&db);
    for _ in 0..255 {
        table.insert(&mut txn, &[Value::Null]).expect("an insert");
    }
    assert!(matches!(table.insert(&mut txn, &[Value::Null]), Err(Error::Exhausted)));
}

fn tiny() -> Schema {
    Schema::new().column("n", ColumnType::I8).primary_key(["n"]).auto_increment("n")
}

/// What a crash skips is little beside what is left: no number of crashes leaves nothing.
#[test]
fn crashes_do_not_use_up_a_small_column() {
    let mut volume = SimVolume::new(14);
    let mut seen = 0;
    for life in 0.. {
        let (db, tables) = open(&volume);
        if life == 0 {
            assert!(tables.create_table("tiny", &tiny()).expect("a table"));
        }
        let table = tables.open_table("tiny").expect("the table");
        let mut txn = begin(&db);
        if life == 30 {
            table.insert(&mut txn, &[Value::Int(120)]).expect("an insert");
        }
        match table.insert(&mut txn, &[Value::Null]) {
            Err(Error::Exhausted) => break,
            number => seen = number.expect("an insert").expect("a number"),
        }
        txn.commit_durably(Durability::Synced).expect("a commit");
        assert!(if life < 30 { seen <= 2 * life + 1 } else { seen > 120 }, "{seen} in life {life}");
        volume = volume.crash(life);
    }
    assert_eq!(seen, 127, "the last ones are given out as well");
}

#[test]
fn a_small_column_goes_on_after_truncate_and_a_crash() {
    let volume = SimVolume::new(15);
    let (db, tables) = open(&volume);
    assert!(tables.create_table("tiny", &tiny()).expect("a table"));
    let raw = tables.open_raw("tiny").expect("the table");
    assert_eq!(raw.take_numbers(&mut begin(&db), 90, 127).expect("numbers"), 1);
    raw.reset_numbers(1).expect("a new beginning");
    let (db, tables) = open(&volume.crash(1));
    let raw = tables.open_raw("tiny").expect("the table");
    assert_eq!(raw.take_numbers(&mut begin(&db), 1, 127).expect("a number"), 1);
}

/// Handles dropped before the database is closed leave no gap.
#[test]
fn numbers_are_settled_with_the_last_handle() {
    let volume = SimVolume::new(16);
    let row = [Value::Null, Value::Null, "x".into(), 1i32.into()];
    let insert = |db: &Db, tables: &Tables| {
        let table = tables.open_table("birds").expect("the table");
        let mut txn = begin(db);
        let number = table.insert(&mut txn, &row).expect("an insert");
        txn.commit_durably(Durability::Synced).expect("a commit");
        number.expect("a number")
    };
    let (db, tables) = open(&volume);
    let table = birds(&tables);
    assert_eq!(insert(&db, &tables), 1);
    drop(tables);
    drop(table);
    db.close().expect("close");
    let (db, tables) = open(&volume);
    assert_eq!(insert(&db, &tables), 2);
    // The other way round nothing can be written down any more, and nothing fails.
    db.close().expect("close");
    drop(tables);
    let (db, tables) = open(&volume);
    let number = insert(&db, &tables);
    assert!((3..=3 + 16).contains(&number), "{number}");
    // Others that were opened meanwhile have gone on from what these had written down.
    let again = Tables::open(&db).expect("its tables");
    let number = insert(&db, &again);
    drop(again);
    drop(tables);
    let again = Tables::open(&db).expect("its tables");
    assert_eq!(insert(&db, &again), number + 1);
}

/// No transaction waits for what is written down of them, and still no number of a durable row
/// comes back; and a crash skips a few only.
#[test]
fn the_number_of_a_durable_row_stays_used() {
    for seed in 0..40u64 {
        let mut volume = SimVolume::new(seed);
        let mut next_at_least = 1;
        for life in 0..4 {
            let (db, tables) = open(&volume);
            let table = if life == 0 {
                birds(&tables)
            } else {
                tables.open_table("birds").expect("the table")
            };
            let mut given = next_at_least - 1;
            for n in 0..seed + 5 * life {
                let mut txn = begin(&db);
                let row = [Value::Null, Value::Null, "x".into(), 1i32.into()];
                given = table.insert(&mut txn, &row).expect("an insert").expect("a number");
                assert!(n > 0 || given >= next_at_least, "{given} before {next_at_least}");
                if (n * 7 + seed) % 5 == 0 {
                    txn.commit_durably(Durability::Synced).expect("a commit");
                    next_at_least = given + 1;
                } else {
                    let _ = txn.commit().expect("a commit");
                }
            }
            // As kill -9 leaves it, where all that was written is there, and as less does.
            drop((table, tables));
            volume = volume.crash(seed + life);
            let (_db, tables) = open(&volume);
            let next =
                tables.open_raw("birds").expect("the table").next_number().expect("a number");
            assert!(next >= next_at_least, "{next} before {next_at_least}");
            assert!(next <= given + 1 + 16, "{next} after {given}");
        }
    }
}
