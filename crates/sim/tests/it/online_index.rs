//! An index is built, or the rows are written anew by another key, while others write, and the disk
//! crashes at every write of both: the rows are those after some commits that hold all that were
//! acknowledged as synced, what was made is there whole or not at all, and it can be made again.
use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use weir::{Db, Durability, PlantedBug, SimVolume};
use weir_device::CrashMode;
use weir_sim::{Planted, Setup};
use weir_table::{
    Direction, Entry, EntryBuf, Error, IndexSpec, KeyRange, RawTable, Redefinition, RowBuf,
    RowImage, Tables,
};

use crate::definitions::{begin, open, pages_are_sound};

const ROWS: u32 = 400;

/// Keys and rows.
type Rows = BTreeMap<u32, Vec<u8>>;

/// What is done beside the writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    Index,
    Rewrite,
}

/// The states after each commit, and how many of the commits must be found.
struct Writers {
    states: Vec<Rows>,
    synced: usize,
    random: fastrand::Rng,
    /// The disk has said no.
    stopped: bool,
}

fn spec() -> IndexSpec {
    IndexSpec { name: "built".into(), unique: false, several: false, definition: Vec::new() }
}

fn entry_of(row: &[u8]) -> &[u8] {
    &row[..4]
}

fn entries(row: &[u8], many: usize) -> Vec<Entry<'_>> {
    vec![Entry { key: entry_of(row), has_null: false, payload: b"" }; many]
}

impl Writers {
    fn last(&self) -> &Rows {
        self.states.last().expect("the state before all of them")
    }

    /// One transaction of one to three rows, which may meet the builder and is given up then.
    fn write(&mut self, db: &Db, table: &RawTable) -> Result<(), Error> {
        let (mut txn, mut after) = (begin(db), self.last().clone());
        let many = table.info().indexes.len();
        for _ in 0..self.random.u32(1..4) {
            let key = self.random.u32(0..ROWS);
            let name = key.to_be_bytes();
            let len = if self.random.u8(0..12) == 0 { 6_000 } else { 30 };
            let mut row = self.random.u32(0..50).to_be_bytes().to_vec();
            row.resize(len, key as u8);
            let is_delete = after.contains_key(&key) && self.random.u8(0..3) == 0;
            let of_row = entries(&row, many);
            let new = RowImage { key: &name, row: &row, entries: &of_row };
            let done = match after.get(&key) {
                None => table.insert(&mut txn, new),
                Some(was) => {
                    let of_old = entries(was, many);
                    let old = RowImage { key: &name, row: was, entries: &of_old };
                    if is_delete {
                        table.delete(&mut txn, old)
                    } else {
                        table.update(&mut txn, old, new)
                    }
                }
            };
            match done {
                Ok(()) if is_delete => drop(after.remove(&key)),
                Ok(()) => drop(after.insert(key, row)),
                Err(e) => return if e.is_retryable() { Ok(()) } else { Err(e) },
            }
        }
        let synced = self.random.bool();
        // It may be there, also if the disk crashes now.
        self.states.push(after);
        txn.commit_durably(if synced { Durability::Synced } else { Durability::Lazy })?;
        if synced {
            self.synced = self.states.len() - 1;
        }
        Ok(())
    }
}

fn rows_of(db: &Db, table: &RawTable) -> Result<Rows> {
    let (mut txn, mut rows) = (begin(db), Rows::new());
    let mut scan = table.scan(&mut txn, None, KeyRange::all(), Direction::Up)?;
    while scan.next(&mut txn)? {
        let key = *scan.primary_key()?.last_chunk().context("a short key")?;
        rows.insert(u32::from_be_bytes(key), scan.row().to_vec());
    }
    Ok(rows)
}

fn assert_index(db: &Db, table: &RawTable) -> Result<()> {
    let mut make = |_: usize, _: &[u8], row: &[u8], entry: &mut EntryBuf| {
        entry.key.extend_from_slice(entry_of(row));
        Ok(())
    };
    let report = table.check(&mut begin(db), &mut make, &mut || true)?;
    ensure!(report.problems.is_empty(), "{}", report.problems.join("; "));
    pages_are_sound(db)
}

/// The row's number behind the number in it, with one index.
fn row_anew(key: &[u8], row: &[u8], made: &mut RowBuf) {
    made.key = [entry_of(row), &key[key.len() - 4..]].concat();
    made.row.extend_from_slice(row);
    made.entries[0].key.extend_from_slice(entry_of(row));
}

/// `writes` is called for each row.
fn rewrite(tables: &Tables, writes: &mut dyn FnMut()) -> Result<bool, Error> {
    tables.announce_rewrite("t", &[spec()], None)?;
    let mut make = |_: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
        writes();
        row_anew(key, row, made);
        Ok(())
    };
    tables.fill_rewrite("t", false, &mut make, &mut || true)?;
    let anew =
        Redefinition { table: "t", definition: b"anew", renamed: &[], layouts: None, codec: None };
    tables.finish_rewrite(&[anew], &mut |_, key, row, made| {
        row_anew(key, row, made);
        Ok(())
    })?;
    Ok(true)
}

/// Builds, and every so many rows another thread writes.
fn build(work: Work, db: &Db, tables: &Tables, writers: &RefCell<Writers>) -> Result<bool, Error> {
    let mut rows = 0;
    let mut writes = || {
        rows += 1;
        let mut writers = writers.borrow_mut();
        if rows % 9 == 0 && !writers.stopped {
            let table = tables.open_raw("t");
            writers.stopped = table.and_then(|table| writers.write(db, &table)).is_err();
            if rows % 4 == 0 && !writers.stopped {
                writers.stopped = db.step().is_err();
            }
        }
    };
    let mut make = |_: &[u8], row: &[u8], entry: &mut EntryBuf| {
        writes();
        entry.key.extend_from_slice(entry_of(row));
        Ok(())
    };
    let built = match work {
        Work::Index => tables.add_index_raw("t", &spec(), &mut make)?,
        Work::Rewrite => rewrite(tables, &mut writes)?,
    };
    // Its failure says nothing about the index.
    let _ = db.checkpoint();
    Ok(built)
}

fn judge(
    work: Work,
    setup: &Setup,
    disk: &SimVolume,
    writers: &Writers,
    sure: bool,
) -> Result<bool> {
    let (db, tables) = open(setup, disk)?;
    let table = tables.open_raw("t")?;
    let rows = rows_of(&db, &table)?;
    let from = writers.synced;
    let known = writers.states[from..].contains(&rows);
    ensure!(known, "the rows are those of no commit from {from} on: {} rows", rows.len());
    let is_built = table.index("built").is_ok();
    ensure!(is_built || !sure, "it was acknowledged, and is not there");
    ensure!(is_built != table.info().indexes.is_empty(), "a part of an index is left");
    assert_index(&db, &table)?;
    let mut make = |_: &[u8], row: &[u8], entry: &mut EntryBuf| {
        entry.key.extend_from_slice(entry_of(row));
        Ok(())
    };
    let is_rewritten = table.info().definition == b"anew";
    ensure!(work == Work::Index || is_rewritten == is_built, "half of it is there");
    let again = match work {
        Work::Index => tables.add_index_raw("t", &spec(), &mut make)?,
        Work::Rewrite => rewrite(&tables, &mut || ())? && !is_built,
    };
    ensure!(again != is_built, "built again: {again}");
    let table = tables.open_raw("t")?;
    assert_index(&db, &table).context("built again")?;
    ensure!(rows_of(&db, &table)? == rows, "building changed rows");
    db.close()?;
    Ok(is_built)
}

fn crash_everywhere(work: Work, seed: u64, planted: Planted) -> Result<(u64, u64)> {
    let setup = Setup { planted, ..Setup::tiny(4096) };
    fastrand::seed(seed);
    let volume = SimVolume::new(seed);
    let (db, tables) = open(&setup, &volume)?;
    ensure!(tables.create_raw("t", b"", &[])?);
    let table = tables.open_raw("t")?;
    let mut first = Rows::new();
    let mut txn = begin(&db);
    for key in 0..ROWS {
        let mut row = (key % 50).to_be_bytes().to_vec();
        row.resize(if key.is_multiple_of(40) { 6_000 } else { 30 }, 1);
        let image = RowImage { key: &key.to_be_bytes(), row: &row, entries: &[] };
        table.insert(&mut txn, image)?;
        first.insert(key, row);
    }
    txn.commit_durably(Durability::Synced)?;
    db.close()?;
    drop((table, tables));
    let mut writes = None;
    let (mut at, mut met) = (0, (0, 0));
    while writes.is_none_or(|writes| at <= writes) {
        let disk = volume.fork();
        let (db, tables) = open(&setup, &disk)?;
        let start = disk.writes_so_far();
        let writers = RefCell::new(Writers {
            states: vec![first.clone()],
            synced: 0,
            random: fastrand::Rng::with_seed(seed),
            stopped: false,
        });
        // First without a crash, to learn how much it writes.
        disk.set_crash_after(writes.map(|_| at));
        let built = build(work, &db, &tables, &writers);
        let writers = writers.into_inner();
        if writes.is_none() {
            ensure!(built?, "it is there already");
            ensure!(writers.states.len() > 20, "no writer wrote meanwhile");
            ensure!(rows_of(&db, &tables.open_raw("t")?)? == *writers.last(), "other rows");
            assert_index(&db, &tables.open_raw("t")?).context("without a crash")?;
            writes = Some(disk.writes_so_far() - start);
            continue;
        }
        let modes = [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random];
        for (nth, mode) in
            modes.into_iter().enumerate().filter(|(nth, _)| (at + *nth as u64).is_multiple_of(2))
        {
            let found = disk.crash_with(mode, at ^ nth as u64);
            let is_built = judge(work, &setup, &found, &writers, matches!(built, Ok(true)))
                .with_context(|| format!("crash {at} of {writes:?}, {mode:?}"))?;
            met = (met.0 + u64::from(is_built), met.1 + u64::from(!is_built));
        }
        at += 1;
    }
    if writes.is_none_or(|writes| writes < 50) {
        bail!("{writes:?} writes only");
    }
    Ok(met)
}

#[test]
fn an_index_is_built_whole_or_not_at_all_while_others_write() {
    for seed in [41, 42] {
        let met = crash_everywhere(Work::Index, seed, Planted::Nothing)
            .unwrap_or_else(|e| panic!("{e:#}"));
        println!("{met:?} built and not");
        assert!(met.0 > 0 && met.1 > 0, "{met:?}");
    }
}

#[test]
fn an_index_published_too_early_is_found() {
    let run =
        || crash_everywhere(Work::Index, 43, Planted::Txn(PlantedBug::IndexTooEarly)).is_err();
    assert!(std::panic::catch_unwind(run).unwrap_or(true));
}

#[test]
fn rows_are_written_anew_whole_or_not_at_all_while_others_write() {
    let met = crash_everywhere(Work::Rewrite, 44, Planted::Nothing);
    let met = met.unwrap_or_else(|e| panic!("{e:#}"));
    println!("{met:?} written anew and not");
    assert!(met.0 > 0 && met.1 > 0, "{met:?}");
}

#[test]
fn rows_written_anew_without_the_last_changes_are_found() {
    let planted = Planted::Txn(PlantedBug::RewriteWithoutRest);
    let run = || crash_everywhere(Work::Rewrite, 45, planted).is_err();
    assert!(std::panic::catch_unwind(run).unwrap_or(true));
}
