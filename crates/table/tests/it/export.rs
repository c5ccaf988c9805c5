//! Tables as streams of bytes, out of one database and into another.
use std::io::{self, Read};

use weir::{Db, SimVolume};
use weir_table::{Direction, Error, ExportHead, Exported, Index, Range, Tables, verify_export};

use crate::support::{assert_sound, begin, bird, birds, fill, new, open, rows};

pub(crate) fn exported(tables: &Tables, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let table = tables.open_raw(name).expect("the table");
    let done = table.export(b"as birds", &mut out, &mut || true).expect("exported");
    assert_eq!(done.bytes, out.len() as u64);
    out
}

fn verified(mut bytes: &[u8]) -> Result<(ExportHead, Exported), Error> {
    verify_export(&mut bytes, &mut || true)
}

fn import(tables: &Tables, mut bytes: &[u8]) -> Result<Exported, Error> {
    tables.import("birds", &mut bytes, &mut || true)
}

type Seen = (Vec<Vec<weir_table::Value>>, Vec<Vec<weir_table::Value>>, u64);

fn look(db: &Db, tables: &Tables) -> Seen {
    let table = tables.open_table("birds").expect("the table");
    let (all, mut txn) = (Range::all(), begin(db));
    let by_rows = rows(&table, &mut txn, None, &all, Direction::Up);
    let by_name = rows(&table, &mut txn, Some("by_name"), &all, Direction::Up);
    let next = tables.open_raw("birds").expect("the table").next_number().expect("a number");
    (by_rows, by_name, next)
}

#[test]
fn a_table_comes_whole_into_another_database() {
    for (seed, from, to) in [(1, 1..3000, 1..9), (2, 1..5, 7..400), (3, 1..1, 3..30)] {
        let (db, tables) = new(seed);
        fill(&db, &birds(&tables), from.clone());
        let bytes = exported(&tables, "birds");
        let (head, all) = verified(&bytes).expect("sound");
        let count = from.count() as u64;
        assert_eq!((&head.heading[..], head.indexes.len(), all.rows), (&b"as birds"[..], 2, count));
        assert_eq!(head.definition, tables.open_raw("birds").expect("there").info().definition);

        let disk = SimVolume::new(seed + 50);
        let (other, others) = open(&disk);
        fill(&other, &birds(&others), to);
        assert_eq!(import(&others, &bytes).expect("imported"), all);
        assert_eq!(look(&other, &others), look(&db, &tables));
        assert_sound(&other, &others);
        // Numbers go on where they were.
        let table = others.open_table("birds").expect("the table");
        let mut txn = begin(&other);
        let next = look(&db, &tables).2;
        table.insert(&mut txn, &bird(next, None, "next", 1)).expect("an insert");
        let _ = txn.commit().expect("a commit");
        drop((table, others));
        other.close().expect("closed");
        let (other, others) = open(&disk);
        assert_eq!(look(&other, &others).0.len() as u64, count + 1);
        assert_sound(&other, &others);
    }
}

#[test]
fn what_is_not_committed_is_not_exported_and_what_is_read_meanwhile_is_of_one_moment() {
    let (db, tables) = new(4);
    let table = birds(&tables);
    fill(&db, &table, 1..100);
    let mut open = begin(&db);
    table.insert(&mut open, &bird(500, Some(7_000), "open", 1)).expect("an insert");
    assert!(table.delete(&mut open, &[5u64.into()]).expect("deleted"));
    let (mut out, mut asked) = (Vec::new(), 0);
    let mut open = Some(open);
    let mut go_on = || {
        asked += 1;
        if asked == 50 {
            let _ = open.take().expect("one").commit().expect("a commit");
        }
        true
    };
    tables.open_raw("birds").expect("there").export(b"", &mut out, &mut go_on).expect("exported");
    let (other, others) = new(5);
    birds(&others);
    assert_eq!(import(&others, &out).expect("imported").rows, 99);
    assert_sound(&other, &others);
}

#[test]
fn rows_without_a_key_keep_their_numbers_and_none_comes_twice() {
    let (db, tables) = new(6);
    assert!(tables.create_raw("birds", b"", &[]).expect("made"));
    let take = |db: &Db, tables: &Tables| {
        let table = tables.open_raw("birds").expect("there");
        table.take_row_id(&mut begin(db)).expect("a number")
    };
    let first = take(&db, &tables);
    let bytes = exported(&tables, "birds");
    let (other, others) = new(7);
    assert!(others.create_raw("birds", b"", &[]).expect("made"));
    import(&others, &bytes).expect("imported");
    assert!(take(&other, &others) > first);
}

#[test]
fn each_cut_and_each_flipped_bit_is_found_and_changes_nothing() {
    let (db, tables) = new(8);
    fill(&db, &birds(&tables), 1..40);
    let bytes = exported(&tables, "birds");
    let (other, others) = new(9);
    fill(&other, &birds(&others), 100..120);
    let before = look(&other, &others);
    for len in 0..bytes.len() {
        let found = verified(&bytes[..len]);
        let cut = matches!(&found, Err(Error::Damaged(why)) if why.contains("not complete"));
        assert!(cut, "{len}: {found:?}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(
        matches!(verified(&longer), Err(Error::Damaged(why)) if why.contains("behind its end"))
    );
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(verified(&flipped).is_err(), "byte {at}");
        if at % 97 == 0 {
            assert!(import(&others, &flipped).is_err(), "byte {at}");
            assert!(import(&others, &bytes[..at]).is_err(), "byte {at}");
        }
    }
    assert_eq!(look(&other, &others), before);
    assert_sound(&other, &others);
    // Parts that are whole, but not where they were.
    let second = 20 + 24 + u64::from_le_bytes(bytes[28..36].try_into().expect("eight")) as usize;
    let twice = [&bytes[..second], &bytes[20..]].concat();
    assert!(matches!(verified(&twice), Err(Error::Damaged(why)) if why.contains("twice")));
}

#[test]
fn what_is_no_export_is_of_a_later_version_or_has_other_indexes_is_refused_by_name() {
    let (db, tables) = new(10);
    fill(&db, &birds(&tables), 1..10);
    let bytes = exported(&tables, "birds");
    let mut later = bytes.clone();
    later[8] = 9;
    let is_input = |found: Result<(ExportHead, Exported), Error>, said: &str| {
        assert!(matches!(&found, Err(Error::Input(why)) if why.contains(said)), "{found:?}");
    };
    is_input(verified(&later), "format 9");
    is_input(verified(&[7; 100]), "begins otherwise");
    let before = look(&db, &tables);
    assert!(tables.add_index("birds", &Index::new("more", ["weight"])).expect("added"));
    let refused = import(&tables, &bytes);
    assert!(matches!(refused, Err(Error::Definition(ref why)) if why.contains("other indexes")));
    assert!(matches!(tables.import("none", &mut &bytes[..], &mut || true), Err(Error::NoTable(_))));
    assert_eq!(look(&db, &tables), before);
}

#[test]
fn it_is_given_up_where_the_caller_says_so_or_the_source_fails() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let _ = room;
            self.0 += 1;
            Err(io::Error::other("a cable"))
        }
    }
    let (db, tables) = new(11);
    fill(&db, &birds(&tables), 1..40);
    let (bytes, before) = (exported(&tables, "birds"), look(&db, &tables));
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        asked < 50
    };
    let given_up = tables.import("birds", &mut &bytes[..], &mut go_on);
    assert!(matches!(given_up, Err(Error::Interrupted)), "{given_up:?}");
    let failed = tables.import("birds", &mut (&bytes[..60]).chain(Failing(0)), &mut || true);
    assert!(matches!(&failed, Err(e) if e.to_string().contains("a cable")), "{failed:?}");
    assert_eq!(look(&db, &tables), before);
    assert_sound(&db, &tables);
    // And then it is done all the same.
    assert_eq!(import(&tables, &bytes).expect("imported").rows, 39);
    assert_eq!(look(&db, &tables), before);
}

#[test]
fn a_snapshot_from_before_is_refused() {
    let (db, tables) = new(12);
    let table = birds(&tables);
    fill(&db, &table, 1..40);
    let bytes = exported(&tables, "birds");
    let mut before = begin(&db);
    assert_eq!(rows(&table, &mut before, None, &Range::all(), Direction::Up).len(), 39);
    import(&tables, &bytes).expect("imported");
    let now = tables.open_table("birds").expect("the table");
    let mut seen = now.scan(&mut before, None, &Range::all(), Direction::Up);
    let seen = seen.as_mut().map(|scan| scan.next(&mut before).map(|_| ()));
    assert!(matches!(seen, Err(Error::Changed) | Ok(Err(Error::Changed))), "{seen:?}");
    assert_eq!(rows(&now, &mut begin(&db), None, &Range::all(), Direction::Up).len(), 39);
}
