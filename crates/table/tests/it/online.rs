//! Indexes are built while others write.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir::{Background, Config, Db, DoubleWriteConfig, Durability, SimVolume, TxnOptions, Wait};
use weir_table::{
    Entry, EntryBuf, Error, Index, IndexSpec, Redefinition, RowImage, Table, Tables, Value,
};

use crate::support::{assert_sound, begin, bird, birds, config, fill, new_with_log};

pub(crate) const IDS: u64 = 4_000;

pub(crate) fn threaded(seed: u64) -> (Db, Tables) {
    // An area for each thread that writes pages: one that paces itself keeps others from its own.
    let doublewrite = DoubleWriteConfig { pages: 8, ..DoubleWriteConfig::default() };
    let config = Config { background: Background::Threads, doublewrite, ..config() };
    let db = Db::open_on(Arc::new(SimVolume::new(seed)), config).expect("a database");
    let tables = Tables::open(&db).expect("its tables");
    (db, tables)
}

/// Some statements in one transaction, which may meet others.
pub(crate) fn write(db: &Db, table: &Table, random: &mut fastrand::Rng) -> Result<(), Error> {
    let mut txn = db.begin(TxnOptions::default());
    for _ in 0..random.u32(1..4) {
        let id = random.u64(0..IDS);
        let name = format!("bird {}", random.u32(0..20));
        let row = bird(id, None, &name, random.i32(-50..50));
        let key = [Value::from(id)];
        match random.u32(0..4) {
            0 => table.delete(&mut txn, &key).map(|_| ())?,
            1 => match table.insert(&mut txn, &row) {
                Ok(_) | Err(Error::Duplicate { index: None }) => {}
                Err(e) => return Err(e),
            },
            _ => table.update(&mut txn, &key, |old| *old = row).map(|_| ())?,
        }
    }
    if random.u32(0..8) == 0 {
        txn.rollback()?;
    } else {
        let _ = txn.commit()?;
    }
    Ok(())
}

#[test]
fn writers_go_on_while_an_index_is_built() {
    let (db, tables) = threaded(31);
    let table = birds(&tables);
    fill(&db, &table, 1..IDS);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, table, stop, done) = (&db, &table, &stop, &done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !stop.load(Ordering::Relaxed) {
                    match write(db, table, &mut random) {
                        Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        Err(e) if e.is_retryable() => {}
                        Err(e) => {
                            stop.store(true, Ordering::Relaxed);
                            panic!("{e}");
                        }
                    }
                }
            });
        }
        let mut meanwhile = 0;
        for round in 0..4 {
            let before = done.load(Ordering::Relaxed);
            let unique = Index::unique("built", ["weight", "id"]);
            let index = if round % 2 == 0 { Index::new("built", ["weight"]) } else { unique };
            let built = tables.add_index("birds", &index);
            meanwhile += done.load(Ordering::Relaxed) - before;
            let problems = table.check(&mut begin(&db)).map(|report| report.problems);
            let dropped = tables.drop_index("birds", "built");
            let sound = problems.as_ref().is_ok_and(Vec::is_empty);
            if built.is_err() || dropped.is_err() || !sound {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(built.expect("built"));
            assert_eq!(problems.expect("a check"), Vec::<String>::new());
            assert!(dropped.expect("dropped"));
            while done.load(Ordering::Relaxed) == before && !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(meanwhile > 0, "no row was written while an index was built");
    });
    let report = table.check(&mut begin(&db)).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
    db.close().expect("close");
}

#[test]
fn a_unique_index_on_what_is_not_unique_fails_and_harms_nothing() {
    let (db, tables) = threaded(32);
    let table = birds(&tables);
    fill(&db, &table, 1..IDS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(9);
            while !stop.load(Ordering::Relaxed) {
                if let Err(e) = write(&db, &table, &mut random) {
                    assert!(e.is_retryable(), "{e}");
                }
            }
        });
        for _ in 0..3 {
            let built = tables.add_index("birds", &Index::unique("by_kind", ["name"]));
            if !matches!(built, Err(Error::Duplicate { index: Some(2) })) {
                stop.store(true, Ordering::Relaxed);
                panic!("{built:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(table.schema().expect("a schema").indexes().len(), 2);
    let report = table.check(&mut begin(&db)).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Between the announcement of an index and its first rows no transaction holds a lock.
#[test]
fn dropping_an_index_does_not_move_the_one_being_built() {
    let (db, tables) = threaded(37);
    let spec = |name: &str| IndexSpec {
        name: name.into(),
        unique: false,
        several: false,
        definition: vec![],
    };
    let wait_for = |waiting| {
        while db.stats().locks.waiting < waiting {
            std::thread::yield_now();
        }
    };
    for round in 0..20 {
        let name = format!("t{round}");
        assert!(tables.create_raw(&name, b"", &[spec("old")]).expect("made"));
        let table = tables.open_raw(&name).expect("the table");
        let mut holder = begin(&db);
        let entries = [Entry { key: b"same", has_null: false, payload: b"" }];
        let row = RowImage { key: b"k", row: b"row", entries: &entries };
        table.insert(&mut holder, row).expect("an insert");
        std::thread::scope(|scope| {
            let builder = scope.spawn(|| {
                tables.add_index_raw(&name, &spec("new"), &mut |key, _, entry| {
                    entry.key.extend_from_slice(key);
                    Ok(())
                })
            });
            wait_for(1);
            let dropper = scope.spawn(|| tables.drop_index(&name, "old"));
            wait_for(2);
            let _ = holder.commit().expect("a commit");
            assert!(builder.join().expect("the builder").expect("an index"));
            let dropped = dropper.join().expect("the other");
            assert!(matches!(dropped, Ok(true) | Err(Error::Definition(_))), "{dropped:?}");
        });
        let after = tables.open_raw(&name).expect("the table");
        let indexes = &after.info().indexes;
        assert!(indexes.iter().any(|index| index.name == "new" && !index.building));
    }
    db.close().expect("close");
}

#[test]
fn large_keys_and_a_small_log() {
    let (db, tables) = new_with_log(33, 640 << 10);
    let table = birds(&tables);
    for id in 0..400 {
        let mut txn = begin(&db);
        let name = format!("{id}").repeat(120);
        table.insert(&mut txn, &bird(id, None, &name, 1)).expect("an insert");
        let _ = txn.commit().expect("a commit");
    }
    assert!(tables.add_index("birds", &Index::new("again", ["name"])).expect("an index"));
    assert_sound(&db, &tables);
}

fn entry_is_key(_: usize, key: &[u8], _: &[u8], entry: &mut EntryBuf) -> Result<(), Error> {
    entry.key.extend_from_slice(key);
    Ok(())
}

/// Rows that others hold are waited for by no transaction but a transaction that brings the index
/// into use.
#[test]
fn a_builder_waits_for_no_row() {
    let (db, tables) = start(&SimVolume::new(38));
    assert!(tables.create_raw("t", b"", &[]).expect("made"));
    let (table, mut txn) = (tables.open_raw("t").expect("the table"), begin(&db));
    for key in 0..20u8 {
        let row = RowImage { key: &[key], row: b"row", entries: &[] };
        table.insert(&mut txn, row).expect("an insert");
    }
    let _ = txn.commit().expect("a commit");
    let spec = IndexSpec { name: "more".into(), unique: true, several: false, definition: vec![] };
    let unfilled = tables.fill_indexes("t", &mut entry_is_key, &mut || true);
    assert!(matches!(unfilled, Err(Error::Definition(_))), "{unfilled:?}");
    tables.announce_indexes("t", &[spec], None).expect("announced");
    let refused = tables.finish_indexes("t", b"", &[]);
    assert!(matches!(refused, Err(Error::Definition(_))), "not filled: {refused:?}");
    let table = tables.open_raw("t").expect("the table");
    let (mut holder, mut row) = (begin(&db), Vec::new());
    assert!(table.get_for_update(&mut holder, &[10], &mut row).expect("a row"));
    let entries = |key| [Entry { key, has_null: false, payload: b"" }];
    let (ten, other) = (entries(&[10]), entries(&[11]));
    let image = |key, entries| RowImage { key, row: b"row", entries };
    table.delete(&mut holder, image(&[10], &ten)).expect("deleted");
    let stopped = {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            asked < 5
        };
        tables.fill_indexes("t", &mut entry_is_key, &mut go_on)
    };
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    let waits_not = tables.with_lock_wait(Wait::No);
    let left = waits_not.abandon_indexes("t");
    assert!(matches!(&left, Err(Error::Store(e)) if e.is_retryable()), "{left:?}");
    holder.rollback().expect("rollback");
    waits_not.abandon_indexes("t").expect("abandoned");

    let spec = IndexSpec { name: "more".into(), unique: true, several: false, definition: vec![] };
    tables.announce_indexes("t", &[spec], None).expect("announced");
    let table = tables.open_raw("t").expect("the table");
    let mut holder = begin(&db);
    table.delete(&mut holder, image(&[10], &ten)).expect("deleted");
    waits_not.fill_indexes("t", &mut entry_is_key, &mut || true).expect("filled");
    let refused = waits_not.finish_indexes("t", b"", &[]);
    assert!(matches!(&refused, Err(Error::Store(e)) if e.is_retryable()), "{refused:?}");
    // The key goes from one row to another.
    table.delete(&mut holder, image(&[11], &other)).expect("deleted");
    table.insert(&mut holder, image(&[10], &other)).expect("inserted");
    let _ = holder.commit().expect("a commit");
    waits_not.finish_indexes("t", b"", &[]).expect("finished");
    let table = tables.open_raw("t").expect("the table");
    let mut txn = begin(&db);
    let found = |txn: &mut _, key| table.find_for_update(txn, 0, key).expect("looked for");
    assert_eq!(found(&mut txn, &[10]), None);
    assert_eq!(found(&mut txn, &[11]).as_deref(), Some(&[10][..]));
    assert_eq!(found(&mut txn, &[9]).as_deref(), Some(&[9][..]));
    drop(txn);
    db.close().expect("close");
}

/// The partitions of a table: one's duplicate keeps the others from what they have ready.
#[test]
fn parts_get_their_indexes_all_at_once() {
    let (db, tables) = start(&SimVolume::new(39));
    let spec = IndexSpec { name: "more".into(), unique: true, several: false, definition: vec![] };
    let redefinition =
        |table| Redefinition { table, definition: b"then", ..Redefinition::default() };
    let parts = ["a", "b"].map(redefinition);
    let announce = || {
        for part in parts {
            tables
                .announce_indexes(part.table, std::slice::from_ref(&spec), None)
                .expect("announced");
            tables.fill_indexes(part.table, &mut entry_is_key, &mut || true).expect("filled");
        }
    };
    for part in parts {
        assert!(tables.create_raw(part.table, b"before", &[]).expect("made"));
    }
    let write = |table: &str, key: &[u8], unique: &[u8]| {
        let (table, mut txn) = (tables.open_raw(table).expect("the table"), begin(&db));
        let entries = [Entry { key: unique, has_null: false, payload: b"" }];
        let row = RowImage { key, row: b"row", entries: &entries };
        table.insert(&mut txn, row).expect("an insert");
        let _ = txn.commit().expect("a commit");
    };
    announce();
    write("a", &[1], &[7]);
    write("b", &[2], &[8]);
    write("b", &[3], &[8]);
    let refused = tables.finish_indexes_of(&parts, &[]);
    assert!(matches!(refused, Err(Error::Duplicate { index: Some(0) })), "{refused:?}");
    for part in parts {
        let table = tables.open_raw(part.table).expect("the table");
        assert!(table.info().definition == b"before" && table.index("more").is_err());
        tables.abandon_indexes(part.table).expect("abandoned");
    }
    let (b, mut txn) = (tables.open_raw("b").expect("the table"), begin(&db));
    b.delete(&mut txn, RowImage { key: &[3], row: b"row", entries: &[] }).expect("a delete");
    let _ = txn.commit().expect("a commit");

    announce();
    write("a", &[9], &[9]);
    // Again: what was written to one while the other was filled.
    tables.fill_indexes("a", &mut entry_is_key, &mut || true).expect("filled");
    tables.finish_indexes_of(&parts, &[]).expect("finished");
    for (name, rows) in [("a", vec![1, 9]), ("b", vec![2])] {
        let (table, mut txn) = (tables.open_raw(name).expect("the table"), begin(&db));
        assert_eq!(table.info().definition, b"then");
        for key in rows {
            let found = table.find_for_update(&mut txn, 0, &[key]).expect("looked for");
            assert_eq!(found.as_deref(), Some(&[key][..]));
        }
    }
    db.close().expect("close");
}

/// A database with its threads, as it is found.
fn start(volume: &SimVolume) -> (Db, Tables) {
    let threads = Config { background: Background::Threads, ..config() };
    let db = Db::open_on(Arc::new(volume.clone()), threads).expect("a database");
    let tables = Tables::open(&db).expect("its tables");
    (db, tables)
}

/// A restart does not wait for what is prepared, as the transaction that decides it comes later.
#[test]
fn an_unfinished_index_stays_until_what_is_prepared_is_decided() {
    let volume = SimVolume::new(35);
    let (db, tables) = start(&volume);
    let spec = |name: &str| IndexSpec {
        name: name.into(),
        unique: false,
        several: false,
        definition: vec![],
    };
    assert!(tables.create_raw("t", b"", &[]).expect("made"));
    tables.announce_indexes("t", &[spec("more")], None).expect("announced");
    let insert = |db: &Db, tables: &Tables, key: &[u8]| {
        let table = tables.open_raw("t").expect("the table");
        let entries = [Entry { key: b"same", has_null: false, payload: b"" }];
        let entries = &entries[..table.info().indexes.len()];
        let mut txn = begin(db);
        table.insert(&mut txn, RowImage { key, row: b"row", entries }).expect("an insert");
        txn
    };
    insert(&db, &tables, b"1").prepare(b"x").expect("prepared");
    drop(tables);
    db.close().expect("close");
    let (db, tables) = start(&volume);
    let indexes = |tables: &Tables| tables.open_raw("t").expect("the table").info().indexes.len();
    tables.drop_unfinished(Wait::No).expect("left");
    assert_eq!(indexes(&tables), 1);
    let _ = insert(&db, &tables, b"2").commit().expect("a commit");
    assert!(db.rollback_prepared(b"x").expect("rolled back"));
    tables.drop_unfinished(Wait::No).expect("dropped");
    assert_eq!(indexes(&tables), 0);
    let _ = insert(&db, &tables, b"3").commit().expect("a commit");
    db.close().expect("close");
}

/// What a prepared transaction has inserted is in an index that is added after a restart.
#[test]
fn an_index_waits_for_what_is_prepared_also_after_a_restart() {
    let volume = SimVolume::new(34);
    let (db, tables) = start(&volume);
    let table = birds(&tables);
    fill(&db, &table, 1..20);
    let mut txn = begin(&db);
    table.insert(&mut txn, &bird(100, None, "late", 7)).expect("an insert");
    txn.prepare(b"x").expect("prepared");
    drop((table, tables));
    db.close().expect("close");
    let (db, tables) = start(&volume);
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| tables.add_index("birds", &Index::new("more", ["weight"])));
        while db.stats().locks.waiting == 0 && !builder.is_finished() {
            std::thread::yield_now();
        }
        assert!(db.commit_prepared(b"x", Durability::Synced).expect("a commit"));
        assert!(builder.join().expect("the builder").expect("an index"));
    });
    assert_sound(&db, &tables);
    db.close().expect("close");
}

/// A transaction that has locked a definition knows it until the end, and a transaction that
/// changes it waits for that.
#[test]
fn a_definition_stays_as_it_is_while_it_is_locked() {
    let (db, tables) = start(&SimVolume::new(36));
    assert!(tables.create_raw("t", b"", &[]).expect("made"));
    let table = tables.open_raw("t").expect("the table");
    let mut txn = begin(&db);
    table.lock_definition(&mut txn).expect("locked");
    std::thread::scope(|scope| {
        let emptied = scope.spawn(|| tables.truncate("t"));
        while db.stats().locks.waiting == 0 && !emptied.is_finished() {
            std::thread::yield_now();
        }
        assert!(!emptied.is_finished(), "the definition has changed under a lock");
        let row = RowImage { key: b"k", row: b"row", entries: &[] };
        table.insert(&mut txn, row).expect("no wait, and no need to open it anew");
        let _ = txn.commit().expect("a commit");
        assert!(emptied.join().expect("the other").expect("emptied"));
    });
    let late = table.lock_definition(&mut begin(&db));
    assert!(matches!(late, Err(Error::Changed)), "{late:?}");
    db.close().expect("close");
}
