//! Databases that earlier builds made, kept in `tests/fixtures`: each must open, hold what it held
//! and go on (`docs/format-policy.md`). They are never made anew; a format that has none gets its
//! own by `WEIR_MAKE_FIXTURES=1 cargo test -p weir-table fixtures`.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use weir::{Batch, Config, Db, Durability, SimVolume, Tree, Txn};
use weir_table::{Column, ColumnChange, ColumnType, Index, Row, Schema, Tables, Value};

use crate::archive::{pack, unpack};
use crate::support::{assert_sound, begin, bird, birds, config, open, rows};

/// Bytes that an archive may have: the tree is no place for databases.
const ARCHIVE_BYTES_MAX: usize = 48 << 10;
const XID: &[u8] = b"a prepared transaction";

/// How the process that made it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    /// With a prepared transaction, one without an end, and changes that only the log has.
    Crashed,
    /// As closed, with a table whose rows are of several layouts.
    Laid,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn name_of(end: End) -> String {
    format!("format-{}-{}.arc", weir_checkpoint::FORMAT, format!("{end:?}").to_lowercase())
}

/// What the tree `plain` holds.
fn plain(end: End) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    for i in 0..60u8 {
        rows.insert(format!("row {i:03}").into_bytes(), vec![i; 20 + usize::from(i) * 3]);
    }
    rows.insert(b"long".to_vec(), vec![7; 20_000]);
    rows.insert(vec![0, 0xff, 0], Vec::new());
    rows.remove(&b"row 007"[..]);
    if end == End::Crashed {
        for i in (10..60u8).step_by(9) {
            rows.insert(
                format!("row {i:03}").into_bytes(),
                vec![i ^ 0x80; 20 + usize::from(i) * 3],
            );
        }
        rows.insert(b"batched".to_vec(), b"with others".to_vec());
        rows.insert(b"long".to_vec(), vec![8; 9_000]);
        rows.remove(&b"row 020"[..]);
    }
    rows
}

fn bird_rows() -> Vec<Row> {
    (1..40)
        .map(|id: u64| {
            let ring = (!id.is_multiple_of(3)).then_some(id as u32);
            bird(id, ring, &format!("bird {}", id % 7), -(id as i32))
        })
        .collect()
}

fn small() -> Config {
    Config { pool_bytes: 512 << 10, log_bytes: 640 << 10, ..config() }
}

/// Makes the database that a fixture is of.
fn make(end: End) -> SimVolume {
    let volume = SimVolume::new(5);
    let db = Db::open_on(Arc::new(volume.clone()), small()).expect("a database");
    let tree = db.create_tree("plain").expect("a tree");
    for (key, value) in plain(End::Closed) {
        tree.put(&key, &value, Durability::Lazy).expect("a put");
    }
    tree.put(b"row 007", b"deleted", Durability::Lazy).expect("a put");
    tree.delete(b"row 007", Durability::Lazy).expect("a deletion");
    let gone = db.create_tree("dropped").expect("a tree");
    gone.put(b"a", b"b", Durability::Lazy).expect("a put");
    drop(gone);
    assert!(db.drop_tree("dropped").expect("a drop"));
    let tables = Tables::open(&db).expect("tables");
    let table = birds(&tables);
    let mut txn = begin(&db);
    for row in bird_rows() {
        table.insert(&mut txn, &row).expect("an insert");
    }
    txn.commit_durably(Durability::Synced).expect("a commit");
    if end == End::Laid {
        laid_out(&db, &tables);
    }
    if end != End::Crashed {
        drop((tree, table, tables));
        db.close().expect("it closes");
        return volume;
    }
    db.checkpoint().expect("a checkpoint");
    crash(&db, &tree, &volume)
}

/// Rows before and behind each of two changes of the columns.
fn laid_out(db: &Db, tables: &Tables) {
    let schema = Schema::new()
        .column("id", ColumnType::U64)
        .column("kind", ColumnType::Text)
        .nullable("weight", ColumnType::I32)
        .primary_key(["id"])
        .index(Index::new("by_weight", ["weight"]));
    assert!(tables.create_table("laid", &schema).expect("a table"));
    let insert = |rows: &[Row]| {
        let (table, mut txn) = (tables.open_table("laid").expect("the table"), begin(db));
        for row in rows {
            let _ = table.insert(&mut txn, row).expect("an insert");
        }
        txn.commit_durably(Durability::Synced).expect("a commit");
    };
    insert(&[
        vec![1u64.into(), "seed".into(), 7.into()],
        vec![2u64.into(), "nut".into(), Value::Null],
    ]);
    let column = |name: &str, kind| Column { name: name.into(), kind, nullable: true };
    let place = ColumnChange::Add {
        column: column("place", ColumnType::Text),
        value: "hill".into(),
        at: 1,
    };
    tables.change_columns("laid", &[place, ColumnChange::Drop("kind".into())]).expect("changed");
    insert(&[vec![3u64.into(), "pond".into(), 9.into()]]);
    let seen =
        ColumnChange::Add { column: column("seen", ColumnType::U32), value: Value::Null, at: 3 };
    tables.change_columns("laid", &[seen, ColumnChange::Move("place".into(), 3)]).expect("changed");
    insert(&[vec![4u64.into(), Value::Null, 11u32.into(), "barn".into()]]);
}

fn laid_rows() -> Vec<Row> {
    vec![
        vec![1u64.into(), 7.into(), Value::Null, "hill".into()],
        vec![2u64.into(), Value::Null, Value::Null, "hill".into()],
        vec![3u64.into(), 9.into(), Value::Null, "pond".into()],
        vec![4u64.into(), Value::Null, 11u32.into(), "barn".into()],
    ]
}

/// Changes that only the log has, and the disk as it is then.
fn crash(db: &Db, tree: &Tree, volume: &SimVolume) -> SimVolume {
    let mut prepared = begin(db);
    prepared.put(tree, b"prepared", b"not decided").expect("a put");
    prepared.prepare(XID).expect("it is prepared");
    let mut lost = begin(db);
    lost.put(tree, b"row 030", b"of a transaction without an end").expect("a put");
    lost.put(tree, b"lost", &[9; 5_000]).expect("a put");
    lost.delete(tree, b"row 040").expect("a deletion");
    let mut batch = Batch::new();
    for (key, value) in plain(End::Crashed) {
        if plain(End::Closed).get(&key) != Some(&value) {
            batch.put(tree, &key, &value);
        }
    }
    batch.delete(tree, b"row 020");
    db.write(&batch, Durability::Synced).expect("a batch");
    let disk = volume.snapshot();
    drop(lost);
    disk
}

fn rows_of(tree: &Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut cursor = tree.cursor();
    let mut found = cursor.seek_first().expect("a seek");
    let mut rows = BTreeMap::new();
    while found {
        rows.insert(cursor.key().to_vec(), cursor.value().expect("a value").to_vec());
        found = cursor.next().expect("a step");
    }
    rows
}

/// Opens it, checks it, changes it, closes it, and opens it again.
fn check(name: &str, archive: &[u8], end: End) {
    let volume = unpack(archive);
    let (db, tables) = open(&volume);
    let tree = db.tree("plain").expect("read").unwrap_or_else(|| panic!("{name}: no tree"));
    assert!(rows_of(&tree) == plain(end), "{name}: other rows than were put");
    assert_eq!(db.tree("dropped").expect("read").map(|_| ()), None, "{name}");
    let expected: Vec<Vec<u8>> = if end == End::Crashed { vec![XID.to_vec()] } else { vec![] };
    assert_eq!(db.prepared(), expected, "{name}");
    if end == End::Crashed {
        assert!(db.commit_prepared(XID, Durability::Synced).expect("a commit"), "{name}");
        assert_eq!(tree.get(b"prepared").expect("read").as_deref(), Some(&b"not decided"[..]));
    }
    let table = tables.open_table("birds").expect("the table");
    let all = |txn: &mut Txn| {
        rows(&table, txn, None, &weir_table::Range::all(), weir_table::Direction::Up)
    };
    assert_eq!(all(&mut begin(&db)), bird_rows(), "{name}");
    if end == End::Laid {
        let table = tables.open_table("laid").expect("the table");
        let range = weir_table::Range::all();
        let found = rows(&table, &mut begin(&db), None, &range, weir_table::Direction::Up);
        assert_eq!(found, laid_rows(), "{name}");
        tables.rewrite("laid", None, &mut || true).expect("written anew");
        let found = rows(&table, &mut begin(&db), None, &range, weir_table::Direction::Up);
        assert_eq!(found, laid_rows(), "{name}");
    }
    let mut txn = begin(&db);
    let late = bird(1000, Some(1000), "late", 1);
    table.insert(&mut txn, &late).expect("an insert");
    txn.commit_durably(Durability::Synced).expect("a commit");
    tree.put(b"after", b"by today's build", Durability::Synced).expect("a put");
    assert_sound(&db, &tables);
    drop((tree, table, tables));
    db.close().expect("it closes");

    let (db, tables) = open(&volume);
    let tree = db.tree("plain").expect("read").expect("the tree");
    let after = tree.get(b"after").expect("read");
    assert_eq!(after.as_deref(), Some(&b"by today's build"[..]), "{name}");
    assert_sound(&db, &tables);
}

#[test]
fn databases_of_earlier_builds_open() {
    let folder = folder();
    for end in [End::Closed, End::Crashed, End::Laid] {
        let path = folder.join(name_of(end));
        // Never in the place of one that is there.
        if std::env::var_os("WEIR_MAKE_FIXTURES").is_some() && !path.exists() {
            std::fs::write(&path, pack(&make(end))).expect("it is written");
        }
        assert!(path.exists(), "{} is missing; see docs/format-policy.md", path.display());
    }
    let files = std::fs::read_dir(&folder).expect("the folder").map(|file| file.expect("a file"));
    for file in files {
        let name = file.file_name().into_string().expect("a name");
        let archive = std::fs::read(file.path()).expect("a file");
        assert!(archive.len() <= ARCHIVE_BYTES_MAX, "{name} has {} bytes", archive.len());
        let is = |end: &End| name.contains(&format!("{end:?}").to_lowercase());
        let end = [End::Crashed, End::Laid].into_iter().find(is).unwrap_or(End::Closed);
        check(&name, &archive, end);
    }
}

/// What is kept is what this build makes, so that a fixture of the next format is as rich.
#[test]
fn todays_build_makes_what_is_checked() {
    for end in [End::Closed, End::Crashed, End::Laid] {
        check("made now", &pack(&make(end)), end);
    }
}
