//! A crash at every write of each change of a definition leaves the old or the new, and no page
//! without an owner.
use weir::{Db, PageCodec, SimVolume};
use weir_table::{
    Column, ColumnChange, ColumnType, Direction, Error, Index, IndexInfo, IndexSpec, Range,
    RawTable, Redefinition, Tables, Value,
};

use crate::support::{assert_sound, begin, birds, fill, open, rows};

/// What can be seen of all tables: name, the primary key, by the names of all columns, and indexes
/// and what is found through each, number of rows,
/// whether auto-increment is at its beginning, and which codec it asks for, with all its trees.
type Seen = Vec<(String, Vec<(String, usize)>, u64, bool, Option<PageCodec>)>;

fn look(db: &Db, tables: &Tables) -> Seen {
    let mut seen = Seen::new();
    for name in tables.names().expect("names") {
        let table = tables.open_table(&name).expect("the table");
        let columns = table.schema().expect("a schema");
        let columns: Vec<_> = columns.columns().iter().map(|column| column.name.clone()).collect();
        let all = rows(&table, &mut begin(db), None, &Range::all(), Direction::Up);
        assert!(all.iter().all(|row| row.len() == columns.len()));
        let mut indexes = vec![(columns.join(","), all.len())];
        for index in table.schema().expect("a schema").indexes() {
            let mut txn = begin(db);
            let all = rows(&table, &mut txn, Some(&index.name), &Range::all(), Direction::Up);
            indexes.push((index.name.clone(), all.len()));
        }
        let count = table.count(&mut begin(db)).expect("count");
        let next = tables.open_raw(&name).expect("the table").next_number().expect("a number");
        let codec = codec_of_all(db, &tables.open_raw(&name).expect("the table"));
        assert_eq!(tables.codec(&name).expect("a codec"), codec);
        seen.push((name, indexes, count, next == 1, codec));
    }
    seen
}

/// The codec that each tree of a table asks for: all the same.
fn codec_of_all(db: &Db, table: &RawTable) -> Option<PageCodec> {
    let (mut txn, info) = (begin(db), table.info());
    let names = info.tree_names().into_iter();
    let codecs = names.map(|tree| txn.codec(&tree).expect("read").expect("there"));
    let codecs: Vec<_> = codecs.collect();
    assert!(codecs.iter().all(|codec| *codec == codecs[0]), "{codecs:?}");
    codecs[0]
}

fn crash_everywhere(seed: u64, change: impl Fn(&Tables) -> Result<bool, Error>) {
    let volume = SimVolume::new(seed);
    let (db, tables) = open(&volume);
    fill(&db, &birds(&tables), 1..60);
    let old = look(&db, &tables);
    drop(tables);
    db.close().expect("close");

    let whole = volume.fork();
    let (db, tables) = open(&whole);
    let start = whole.writes_so_far();
    assert!(change(&tables).expect("the change"));
    let writes = whole.writes_so_far() - start;
    let new = look(&db, &tables);
    assert_ne!(old, new);
    assert_sound(&db, &tables);
    let (mut olds, mut news) = (0, 0);
    for at in 0..=writes {
        let disk = volume.fork();
        let (db, tables) = open(&disk);
        disk.set_crash_after(Some(at));
        let changed = change(&tables);
        // Only what was synced, and two mixtures of what was not.
        for after in [disk.snapshot(), disk.crash(at), disk.crash(at + writes)] {
            let seen = recovered(&after, &change, &old);
            match changed {
                Ok(_) => assert_eq!(seen, new, "it was said to be done, crash at {at}"),
                Err(_) => assert!(seen == old || seen == new, "crash at {at}: {seen:?}"),
            }
            (olds, news) = (olds + u64::from(seen == old), news + u64::from(seen == new));
        }
        drop((tables, db));
    }
    assert!(olds > 0 && news > 0, "{olds} old, {news} new of {writes}");
}

/// What is there after the crash; all goes on, and the change, if it is still to be made, can be.
fn recovered(
    disk: &SimVolume,
    change: impl Fn(&Tables) -> Result<bool, Error>,
    old: &Seen,
) -> Seen {
    let (db, tables) = open(disk);
    let seen = look(&db, &tables);
    assert_sound(&db, &tables);
    if seen == *old {
        assert!(change(&tables).expect("the change"));
        assert_sound(&db, &tables);
    }
    seen
}

#[test]
fn create() {
    crash_everywhere(21, |tables| tables.create_table("more", &crate::support::schema()));
}

#[test]
fn create_with_a_codec() {
    crash_everywhere(32, |tables| {
        let info = tables.open_raw("birds")?.info().clone();
        let spec = |index: &IndexInfo| {
            let (name, definition) = (index.name.clone(), index.definition.clone());
            IndexSpec { name, unique: index.unique, several: index.several, definition }
        };
        let indexes: Vec<_> = info.indexes.iter().map(spec).collect();
        tables.create_raw_with("more", &info.definition, &indexes, Some(PageCodec::Lz4))
    });
}

#[test]
fn set_codec() {
    crash_everywhere(33, |tables| tables.set_codec("birds", Some(PageCodec::None)));
}

/// Anew or not, all that an ALTER changes comes at once.
#[test]
fn redefine_with_a_codec() {
    for anew in [false, true] {
        crash_everywhere(34, |tables| {
            let definition = tables.open_raw("birds")?.info().definition.clone();
            let renamed: &[_] = &[("by_name", "by_its_name")];
            let codec = Some(Some(PageCodec::Zstd));
            let new = Redefinition {
                table: "birds",
                definition: &definition,
                renamed,
                layouts: None,
                codec,
            };
            if anew {
                tables.redefine_anew(&[new])?
            } else {
                tables.redefine(&[new])?
            }
            Ok(true)
        });
    }
}

#[test]
fn indexes_change_with_a_codec() {
    crash_everywhere(35, |tables| {
        let definition = tables.open_raw("birds")?.info().definition.clone();
        let (table, codec) = ("birds", Some(Some(PageCodec::Lz4)));
        let new = Redefinition { table, definition: &definition, codec, ..Redefinition::default() };
        tables.finish_indexes_of(&[new], &["by_name"])?;
        Ok(true)
    });
}

#[test]
fn an_emptied_table_goes_on_asking_for_its_codec() {
    let (db, tables) = open(&SimVolume::new(36));
    fill(&db, &birds(&tables), 1..60);
    assert!(tables.set_codec("birds", Some(PageCodec::Lz4)).expect("asked"));
    assert!(tables.truncate("birds").expect("emptied"));
    let info = tables.open_raw("birds").expect("the table");
    assert_eq!(codec_of_all(&db, &info), Some(PageCodec::Lz4));
}

#[test]
fn drop_table() {
    crash_everywhere(22, |tables| tables.drop_table("birds"));
}

#[test]
fn rename() {
    crash_everywhere(23, |tables| tables.rename("birds", "flock"));
}

#[test]
fn rename_of_a_filled_one() {
    let filled = weir_table::Rename::Filled;
    crash_everywhere(29, |tables| tables.rename_with("birds", "flock", &[], filled));
}

#[test]
fn set_aside() {
    crash_everywhere(27, |tables| tables.set_aside("birds", "aside"));
}

#[test]
fn truncate() {
    crash_everywhere(24, |tables| tables.truncate("birds"));
}

#[test]
fn import() {
    let (db, tables) = open(&SimVolume::new(1));
    fill(&db, &birds(&tables), 100..350);
    let bytes = crate::export::exported(&tables, "birds");
    crash_everywhere(31, |tables| {
        tables.import("birds", &mut &bytes[..], &mut || true).map(|_| true)
    });
}

#[test]
fn begin_anew() {
    crash_everywhere(28, |tables| tables.begin_anew("birds", 1));
}

#[test]
fn add_index() {
    crash_everywhere(25, |tables| tables.add_index("birds", &Index::new("more", ["weight"])));
}

#[test]
fn change_columns() {
    crash_everywhere(30, |tables| {
        let column = Column { name: "seen".into(), kind: ColumnType::U32, nullable: false };
        let add = ColumnChange::Add { column, value: Value::UInt(7), at: 0 };
        tables.change_columns("birds", &[add, ColumnChange::Move("weight".into(), 1)])?;
        Ok(true)
    });
}

#[test]
fn redefine_anew() {
    crash_everywhere(31, |tables| {
        let definition = tables.open_raw("birds")?.info().definition.clone();
        let renamed: &[_] = &[("by_name", "by_its_name")];
        let new = Redefinition {
            table: "birds",
            definition: &definition,
            renamed,
            layouts: None,
            codec: None,
        };
        tables.redefine_anew(&[new])?;
        Ok(true)
    });
}

#[test]
fn drop_index() {
    crash_everywhere(26, |tables| tables.drop_index("birds", "by_name"));
}
