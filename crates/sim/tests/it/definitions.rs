//! Changes of definitions, crashed at every write, and again while that is recovered: the old or
//! the new is there, in the catalog, the trees, the rows and the indexes; no page is lost or used
//! twice; and the change can be made again, whatever became of it.
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use weir::{Db, Durability, Isolation, ManualClock, PlantedBug, SimVolume, Txn, TxnOptions, Wait};
use weir_base::checksum;
use weir_device::CrashMode;
use weir_sim::{Planted, Setup, recover};
use weir_table::{
    Column, ColumnChange, ColumnType, Direction, Error, Index, Range, Schema, Table, Tables, Value,
};

const MODES: [CrashMode; 3] = [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random];

/// A change of a definition; `false`: there was nothing to do.
pub(crate) type Change = fn(&Tables) -> Result<bool, Error>;

fn schema() -> Schema {
    Schema::new()
        .column("id", ColumnType::U64)
        .nullable("ring", ColumnType::U32)
        .column("name", ColumnType::Text)
        .column("notes", ColumnType::Bytes)
        .primary_key(["id"])
        .auto_increment("id")
        .index(Index::unique("by_ring", ["ring"]))
        .index(Index::new("by_name", ["name"]))
}

pub(crate) fn begin(db: &Db) -> Txn {
    db.begin(TxnOptions { isolation: Isolation::RepeatableRead, lock_wait: Wait::No })
}

/// Every sixteenth row has a value on pages of its own.
fn fill(db: &Db, table: &Table) -> Result<()> {
    let mut txn = begin(db);
    for id in 1..120u64 {
        let ring = if id.is_multiple_of(3) { Value::Null } else { Value::from(id as u32) };
        let notes = vec![id as u8; if id.is_multiple_of(16) { 9_000 } else { 20 }];
        let name = format!("bird {}", id % 7);
        table.insert(&mut txn, &[id.into(), ring, name.into(), notes.into()])?;
    }
    Ok(txn.commit_durably(Durability::Synced)?)
}

/// Opens what is there, and rolls back what a crash has left under way.
pub(crate) fn open(setup: &Setup, volume: &SimVolume) -> Result<(Db, Tables)> {
    let db = recover(setup, volume, &Arc::new(ManualClock::default()))?;
    while db.stats().losers > 0 {
        db.step()?;
    }
    let tables = Tables::open(&db)?;
    Ok((db, tables))
}

fn short(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => format!("{:x} ", checksum(bytes)),
        value => format!("{value:?} "),
    }
}

/// All there is: each table, its rows, and what is found through each index.
fn look(db: &Db, tables: &Tables) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    for name in tables.names()? {
        let table = tables.open_table(&name)?;
        let mut txn = begin(db);
        let schema = table.schema()?;
        let indexes = schema.indexes().iter().map(|index| Some(index.name.clone()));
        for index in std::iter::once(None).chain(indexes) {
            let mut scan = table.scan(&mut txn, index.as_deref(), &Range::all(), Direction::Up)?;
            let mut rows = Vec::new();
            while let Some(row) = scan.next(&mut txn)? {
                rows.push(row.iter().map(short).collect::<String>());
            }
            seen.push(format!("{name} {index:?}: {rows:?}"));
        }
    }
    Ok(seen)
}

/// Indexes agree with rows, and each page has one owner.
pub(crate) fn pages_are_sound(db: &Db) -> Result<()> {
    let report = db.check(&mut |_, _| {})?;
    ensure!(report.problems.is_empty(), "{}", report.problems.join("; "));
    let marked: u64 = report.trees.iter().map(|(_, tree)| tree.marked_rows).sum();
    ensure!(marked == 0, "{marked} rows are marked deleted, and nothing will remove them");
    Ok(())
}

fn is_sound(db: &Db, tables: &Tables) -> Result<()> {
    for name in tables.names()? {
        let report = tables.open_table(&name)?.check(&mut begin(db))?;
        ensure!(report.problems.is_empty(), "table {name}: {}", report.problems.join("; "));
    }
    pages_are_sound(db)
}

/// What is left to do after a change goes to the disk too.
fn settle(db: &Db) -> Result<(), weir::Error> {
    (0..3).try_for_each(|_| db.step())?;
    db.checkpoint()
}

struct Case {
    setup: Setup,
    change: Change,
    old: Vec<String>,
    new: Vec<String>,
}

/// What was met.
#[derive(Default, Debug)]
struct Met {
    old: u64,
    new: u64,
    in_recovery: u64,
}

impl Case {
    /// Opens what a crash has left, and holds it against what it may be.
    fn judge(&self, disk: &SimVolume, acknowledged: bool) -> Result<bool> {
        let (db, tables) = open(&self.setup, disk)?;
        let seen = look(&db, &tables)?;
        let is_new = seen == self.new;
        ensure!(is_new || !acknowledged && seen == self.old, "neither old nor new: {seen:.400?}");
        is_sound(&db, &tables)?;
        match (self.change)(&tables) {
            Ok(did) => ensure!(did || is_new, "there is still something to do"),
            Err(Error::TableExists(_)) if is_new => {}
            Err(e) => return Err(e).context("making the change again"),
        }
        ensure!(look(&db, &tables)? == self.new, "made again, it is another");
        is_sound(&db, &tables).context("made again")?;
        db.close()?;
        Ok(is_new)
    }

    /// Crashes at some of the writes of the recovery from this, which ones differs with `at`.
    fn crash_recovery(&self, found: &SimVolume, at: u64, sure: bool, met: &mut Met) -> Result<()> {
        let calm = found.fork();
        let (db, tables) = open(&self.setup, &calm)?;
        db.checkpoint()?;
        let steps = calm.writes_so_far() - found.writes_so_far();
        drop((db, tables));
        let stride = 1 + steps / 5;
        for k in (at % stride..steps).step_by(stride as usize) {
            let again = found.fork();
            again.set_crash_after(Some(k));
            if let Ok((db, _)) = open(&self.setup, &again) {
                let _ = db.checkpoint();
            }
            let left = again.crash_with(MODES[(k % 3) as usize], at ^ k);
            self.judge(&left, sure).with_context(|| format!("crash {k} of its recovery"))?;
            met.in_recovery += 1;
        }
        Ok(())
    }
}

fn crash_everywhere(seed: u64, change: Change, planted: Planted) -> Result<Met> {
    let setup = Setup { planted, ..Setup::tiny(4096) };
    fastrand::seed(seed);
    let volume = SimVolume::new(seed);
    let (db, tables) = open(&setup, &volume)?;
    for name in ["birds", "others"] {
        ensure!(tables.create_table(name, &schema())?);
        fill(&db, &tables.open_table(name)?)?;
    }
    let old = look(&db, &tables)?;
    db.close()?;
    drop(tables);

    let calm = volume.fork();
    let (db, tables) = open(&setup, &calm)?;
    let start = calm.writes_so_far();
    ensure!(change(&tables)?, "there was nothing to do");
    settle(&db)?;
    let writes = calm.writes_so_far() - start;
    let new = look(&db, &tables)?;
    ensure!(old != new, "it changes nothing");
    is_sound(&db, &tables).context("without a crash")?;
    drop((db, tables));
    let (case, mut met) = (Case { setup, change, old, new }, Met::default());
    for at in 0..=writes {
        let disk = volume.fork();
        let (db, tables) = open(&setup, &disk)?;
        disk.set_crash_after(Some(at));
        let sure = change(&tables).is_ok();
        let _ = settle(&db);
        for mode in MODES {
            let told = || format!("crash {at} of {writes}, {mode:?}");
            let found = disk.crash_with(mode, at ^ seed);
            case.crash_recovery(&found, at, sure, &mut met).with_context(told)?;
            let is_new = case.judge(&found, sure).with_context(told)?;
            (met.new, met.old) = (met.new + u64::from(is_new), met.old + u64::from(!is_new));
        }
        drop((db, tables));
    }
    Ok(met)
}

fn ends_well(seed: u64, change: Change) {
    let met = crash_everywhere(seed, change, Planted::Nothing).unwrap_or_else(|e| panic!("{e:#}"));
    println!("{met:?}");
    assert!(met.old > 0 && met.new > 0 && met.in_recovery > 100, "{met:?}");
}

fn is_found(seed: u64, change: Change, bug: PlantedBug) {
    let run = || crash_everywhere(seed, change, Planted::Txn(bug)).is_err();
    // What the engine does not expect may also stop an assertion of its.
    assert!(std::panic::catch_unwind(run).unwrap_or(true), "{bug:?} was not found");
}

fn create(tables: &Tables) -> Result<bool, Error> {
    tables.create_table("more", &schema())
}

fn drop_table(tables: &Tables) -> Result<bool, Error> {
    tables.drop_table("birds")
}

fn rename(tables: &Tables) -> Result<bool, Error> {
    tables.rename("birds", "flock")
}

fn truncate(tables: &Tables) -> Result<bool, Error> {
    tables.truncate("birds")
}

fn add_index(tables: &Tables) -> Result<bool, Error> {
    tables.add_index("birds", &Index::new("more", ["name", "ring"]))
}

fn drop_index(tables: &Tables) -> Result<bool, Error> {
    tables.drop_index("birds", "by_name")
}

/// One comes, one goes, one moves; rows and what they have on pages of their own stay.
fn change_columns(tables: &Tables) -> Result<bool, Error> {
    if tables.open_table("birds")?.schema()?.position("seen").is_some() {
        return Ok(false);
    }
    let column = Column { name: "seen".into(), kind: ColumnType::U32, nullable: false };
    let changes = [
        ColumnChange::Add { column, value: 7u32.into(), at: 1 },
        ColumnChange::Drop("notes".into()),
        ColumnChange::Move("name".into(), 1),
    ];
    tables.change_columns("birds", &changes)?;
    Ok(true)
}

/// Rows are written anew in another order.
fn rewrite(tables: &Tables) -> Result<bool, Error> {
    let definition = tables.open_raw("birds")?.info().definition.clone();
    tables.rewrite("birds", Some(&["name".into(), "id".into()]), &mut || true)?;
    Ok(tables.open_raw("birds")?.info().definition != definition)
}

#[test]
fn rows_are_written_anew() {
    ends_well(28, rewrite);
}

#[test]
fn columns_are_changed() {
    ends_well(27, change_columns);
}

#[test]
fn tables_are_created() {
    ends_well(21, create);
}

#[test]
fn tables_are_dropped() {
    ends_well(22, drop_table);
}

#[test]
fn tables_are_renamed() {
    ends_well(23, rename);
}

#[test]
fn tables_are_truncated() {
    ends_well(24, truncate);
}

#[test]
fn indexes_are_added() {
    ends_well(25, add_index);
}

#[test]
fn indexes_are_dropped() {
    ends_well(26, drop_index);
}

#[test]
fn planted_bugs_of_definitions_are_found() {
    for change in [drop_table, truncate, drop_index] {
        is_found(31, change, PlantedBug::DroppedTreeNotFreed);
    }
    is_found(32, drop_table, PlantedBug::PurgeNotNoted);
    is_found(33, add_index, PlantedBug::IndexTooEarly);
    is_found(34, change_columns, PlantedBug::ColumnsBeforeLayouts);
}
