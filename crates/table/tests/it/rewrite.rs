//! Rows are written anew while others write.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use weir::{Db, Durability, Txn, Wait};
use weir_table::{Column, ColumnChange, ColumnType, Direction, Error, Range, Table, Value, desc};

use crate::online::{IDS, threaded, write};
use crate::support::{assert_sound, begin, bird, birds, fill, new, new_with_log, rows};

/// All rows, in the order of their ids.
fn all(db: &Db, table: &Table) -> Vec<Vec<Value>> {
    let mut rows = rows(table, &mut begin(db), None, &Range::all(), Direction::Up);
    let id = |row: &Vec<Value>| match row[0] {
        Value::UInt(id) => id,
        ref other => panic!("{other:?} is no number"),
    };
    rows.sort_by_key(id);
    rows
}

type Rows = BTreeMap<u64, Vec<Value>>;

/// One small transaction after another, each of which may stay open until a later step ends it.
struct Writer {
    random: fastrand::Rng,
    /// With what the table is to hold once it is committed.
    open: Option<(Txn, Rows)>,
    committed: Rows,
}

impl Writer {
    fn new(db: &Db, table: &Table, seed: u64) -> Writer {
        let committed = (1..).zip(all(db, table)).collect();
        Writer { random: fastrand::Rng::with_seed(seed), open: None, committed }
    }

    fn step(&mut self, db: &Db, table: &Table) {
        let begun = || (begin(db), self.committed.clone());
        let (mut txn, mut rows) = self.open.take().unwrap_or_else(begun);
        for _ in 0..self.random.u32(1..4) {
            let (id, deletes) = (self.random.u64(1..600), self.random.bool());
            let name = format!("bird {}", self.random.u32(0..9));
            let row = bird(id, None, &name, self.random.i32(-9..9));
            match rows.contains_key(&id) {
                false => {
                    let _ = table.insert(&mut txn, &row).expect("an insert");
                }
                true if deletes => assert!(table.delete(&mut txn, &[id.into()]).expect("deleted")),
                true => {
                    let is = |old: &mut Vec<Value>| old.clone_from(&row);
                    assert!(table.update(&mut txn, &[id.into()], is).expect("updated"));
                }
            }
            if rows.contains_key(&id) && deletes {
                rows.remove(&id);
            } else {
                rows.insert(id, row);
            }
        }
        match self.random.u32(0..8) {
            0 => txn.rollback().expect("rolled back"),
            1..3 => self.open = Some((txn, rows)),
            _ => {
                let _ = txn.commit().expect("a commit");
                self.committed = rows;
            }
        }
    }

    fn end(&mut self) {
        if let Some((txn, rows)) = self.open.take() {
            let _ = txn.commit().expect("a commit");
            self.committed = rows;
        }
    }
}

#[test]
fn what_writers_do_at_any_moment_is_in_the_rows_written_anew() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..16 {
        let (db, tables) = new_with_log(seed, 16 << 20);
        let table = birds(&tables);
        fill(&db, &table, 1..400);
        let mut writer = Writer::new(&db, &table, seed);
        let key = [desc("weight"), "id".into()];
        let primary = (seed % 2 == 0).then_some(&key[..]);
        let mut asked = 0u64;
        let hasty = tables.with_lock_wait(Wait::No);
        let rewritten = hasty.rewrite("birds", primary, &mut || {
            asked += 1;
            if asked.is_multiple_of(5) {
                writer.step(&db, &table);
            }
            if asked.is_multiple_of(50) {
                db.step().expect("a step");
            }
            true
        });
        match rewritten {
            Ok(()) => done += 1,
            // A transaction was open when the rows were to take their place.
            Err(e) => {
                assert!(e.is_retryable(), "seed {seed}: {e}");
                refused += 1;
            }
        }
        writer.end();
        tables.abandon_indexes("birds").expect("abandoned");
        let there: Vec<_> = writer.committed.values().cloned().collect();
        assert_eq!(all(&db, &table), there, "seed {seed}");
        assert_sound(&db, &tables);
        if asked > 0 {
            tables.rewrite("birds", primary, &mut || true).expect("written anew");
        }
        assert_eq!(all(&db, &table), there, "seed {seed}");
        assert_sound(&db, &tables);
    }
    assert!(done > 3 && refused > 1, "{done} done, {refused} refused");
}

#[test]
fn threads_write_while_rows_are_written_anew() {
    let (db, tables) = threaded(41);
    let table = birds(&tables);
    fill(&db, &table, 1..IDS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !stop.load(Ordering::Relaxed) {
                    match write(db, table, &mut random) {
                        Ok(()) => {}
                        Err(e) if e.is_retryable() => {}
                        Err(e) => {
                            stop.store(true, Ordering::Relaxed);
                            panic!("{e}");
                        }
                    }
                }
            });
        }
        for _ in 0..4 {
            let done = tables.rewrite("birds", None, &mut || true);
            let problems = table.check(&mut begin(&db)).map(|report| report.problems);
            if done.is_err() || !problems.as_ref().is_ok_and(Vec::is_empty) {
                stop.store(true, Ordering::Relaxed);
            }
            done.expect("written anew");
            assert_eq!(problems.expect("a check"), Vec::<String>::new());
        }
        stop.store(true, Ordering::Relaxed);
    });
    db.close().expect("close");
}

#[test]
fn rows_with_one_key_keep_a_table_as_it_is() {
    let (db, tables) = new(42);
    let table = birds(&tables);
    fill(&db, &table, 1..300);
    let before = all(&db, &table);
    let twice = tables.rewrite("birds", Some(&["name".into()]), &mut || true);
    assert!(matches!(twice, Err(Error::Duplicate { index: None })), "{twice:?}");
    // Of a writer that comes too late for the first look.
    let mut asked = 0;
    let late = tables.rewrite("birds", Some(&["weight".into()]), &mut || {
        asked += 1;
        if asked == 300 {
            let mut txn = begin(&db);
            table.insert(&mut txn, &bird(500, None, "late", -7)).expect("an insert");
            txn.commit_durably(Durability::Synced).expect("a commit");
        }
        true
    });
    assert!(matches!(late, Err(Error::Duplicate { index: None })), "{late:?}");
    let stopped = tables.rewrite("birds", None, &mut || false);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(all(&db, &table)[..299], before[..]);
    assert_sound(&db, &tables);
    tables.rewrite("birds", None, &mut || true).expect("nothing is left of those");
}

#[test]
fn layouts_are_gone_and_older_snapshots_are_refused() {
    let (db, tables) = new(43);
    let table = birds(&tables);
    fill(&db, &table, 1..300);
    tables.drop_index("birds", "by_name").expect("dropped");
    let column = Column { name: "more".into(), kind: ColumnType::Text, nullable: false };
    let add = ColumnChange::Add { column, value: "some".into(), at: 1 };
    let gone = ColumnChange::Drop("weight".into());
    tables.change_columns("birds", &[add, gone]).expect("changed");
    let raw = tables.open_raw("birds").expect("open");
    assert!(!raw.info().layouts.is_empty());
    let before = all(&db, &table);
    let mut old = begin(&db);
    let key = [Value::from(7u64)];
    assert!(table.get(&mut old, &key).expect("read").is_some());
    tables.rewrite("birds", None, &mut || true).expect("written anew");
    let anew = tables.open_table("birds").expect("the table");
    assert!(matches!(anew.get(&mut old, &key), Err(Error::Changed)));
    old.rollback().expect("rolled back");
    assert!(tables.open_raw("birds").expect("open").info().layouts.is_empty());
    assert_eq!(all(&db, &table), before);
    assert_sound(&db, &tables);
}
