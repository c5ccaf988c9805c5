//! Small databases of tables.
use std::sync::Arc;

use weir::{
    Background, Config, Db, DoubleWriteConfig, Durability, Isolation, SimVolume, Txn, TxnOptions,
    Wait,
};
use weir_table::{ColumnType, Direction, Index, Range, Row, Schema, Table, Tables, Value, desc};

pub(crate) fn config() -> Config {
    Config {
        pool_bytes: 2 << 20,
        log_bytes: 4 << 20,
        page_size: 4096,
        doublewrite: DoubleWriteConfig { files: 1, pages: 8, ..DoubleWriteConfig::default() },
        background: Background::Manual,
        pages_max: 4096,
        ..Config::default()
    }
}

pub(crate) fn open(volume: &SimVolume) -> (Db, Tables) {
    let db = Db::open_on(Arc::new(volume.clone()), config()).expect("the database opens");
    // No thread does it here.
    while db.stats().losers > 0 {
        db.step().expect("a step");
    }
    let tables = Tables::open(&db).expect("its tables open");
    (db, tables)
}

/// With another log.
pub(crate) fn new_with_log(seed: u64, log_bytes: u64) -> (Db, Tables) {
    let config = Config { log_bytes, ..config() };
    let db = Db::open_on(Arc::new(SimVolume::new(seed)), config).expect("a database");
    let tables = Tables::open(&db).expect("its tables open");
    (db, tables)
}

pub(crate) fn new(seed: u64) -> (Db, Tables) {
    open(&SimVolume::new(seed))
}

/// A transaction that never waits.
pub(crate) fn begin(db: &Db) -> Txn {
    at(db, Isolation::RepeatableRead)
}

pub(crate) fn at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

/// Birds: a number, perhaps a ring that no other has, a name, a weight.
pub(crate) fn schema() -> Schema {
    Schema::new()
        .column("id", ColumnType::U64)
        .nullable("ring", ColumnType::U32)
        .column("name", ColumnType::Text)
        .column("weight", ColumnType::I32)
        .primary_key(["id"])
        .auto_increment("id")
        .index(Index::unique("by_ring", ["ring"]))
        .index(Index::new("by_name", ["name".into(), desc("weight")]))
}

pub(crate) fn birds(tables: &Tables) -> Table {
    assert!(tables.create_table("birds", &schema()).expect("a table"));
    tables.open_table("birds").expect("the table")
}

pub(crate) fn bird(id: u64, ring: Option<u32>, name: &str, weight: i32) -> Row {
    vec![id.into(), ring.into(), name.into(), weight.into()]
}

pub(crate) fn fill(db: &Db, table: &Table, ids: std::ops::Range<u64>) {
    let mut txn = begin(db);
    for id in ids {
        let ring = (!id.is_multiple_of(3)).then_some(id as u32);
        let name = format!("bird {}", id % 7);
        table.insert(&mut txn, &bird(id, ring, &name, -(id as i32))).expect("an insert");
        // What one transaction may change is limited by the log.
        if id.is_multiple_of(500) {
            let done = std::mem::replace(&mut txn, begin(db));
            let _ = done.commit().expect("a commit");
        }
    }
    txn.commit_durably(Durability::Synced).expect("a commit");
}

pub(crate) fn rows(
    table: &Table,
    txn: &mut Txn,
    index: Option<&str>,
    range: &Range,
    direction: Direction,
) -> Vec<Row> {
    let mut scan = table.scan(txn, index, range, direction).expect("a scan");
    let mut rows = Vec::new();
    while let Some(row) = scan.next(txn).expect("a step") {
        rows.push(row);
    }
    rows
}

pub(crate) fn ids(rows: &[Row]) -> Vec<u64> {
    let id = |row: &Row| match row[0] {
        Value::UInt(id) => id,
        ref other => panic!("{other:?} is no number"),
    };
    rows.iter().map(id).collect()
}

/// The indexes agree with the rows, and all pages have an owner.
pub(crate) fn assert_sound(db: &Db, tables: &Tables) {
    for name in tables.names().expect("names") {
        let table = tables.open_table(&name).expect("the table");
        let report = table.check(&mut begin(db)).expect("a check");
        assert_eq!(report.problems, Vec::<String>::new(), "table {name}");
    }
    for _ in 0..8 {
        db.step().expect("a step");
    }
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}
