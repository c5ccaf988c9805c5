//! Indexes that keep several entries of a row.
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weir::{Db, Durability, Txn, TxnOptions};
use weir_table::{
    Direction, Entry, EntryBuf, Error, IndexSpec, KeyRange, RawTable, Redefinition, RowBuf,
    RowEntries, RowImage, Tables, put_entry,
};

use crate::support::new;

fn spec(name: &str) -> IndexSpec {
    IndexSpec { name: name.into(), several: true, ..IndexSpec::default() }
}

/// The words of a row, and how often it has each, as the index keeps them.
fn words_of(row: &[u8]) -> Vec<u8> {
    let mut counts: BTreeMap<&[u8], u8> = BTreeMap::new();
    let words = row.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    let mut all = Vec::new();
    for (word, count) in counts {
        put_entry(&mut all, &[word, b"\0"].concat(), &[count]);
    }
    all
}

fn make(key: &[u8], row: &[u8], entry: &mut EntryBuf) -> Result<(), Error> {
    let _ = key;
    entry.payload.extend_from_slice(&words_of(row));
    Ok(())
}

fn with_image<T>(key: u32, row: &str, run: impl FnOnce(RowImage<'_>) -> T) -> T {
    let words = words_of(row.as_bytes());
    let entries = [Entry { payload: &words, ..Entry::default() }];
    run(RowImage { key: &key.to_be_bytes(), row: row.as_bytes(), entries: &entries })
}

/// Which rows have which words, by the index.
fn found(db: &Db, table: &RawTable) -> BTreeSet<(String, u32, u8)> {
    let mut txn = db.begin(TxnOptions::default());
    let mut scan = table.scan(&mut txn, Some(0), KeyRange::all(), Direction::Up).expect("a scan");
    let mut all = BTreeSet::new();
    while scan.next(&mut txn).expect("a step") {
        let key = scan.index_key().expect("a key");
        let word = String::from_utf8(key[..key.len() - 1].to_vec()).expect("text");
        let row = scan.primary_key().expect("a key").try_into().map(u32::from_be_bytes);
        all.insert((word, row.expect("a row"), scan.payload().expect("a payload")[0]));
    }
    all
}

fn is_sound(db: &Db, table: &RawTable) -> bool {
    let mut txn = db.begin(TxnOptions::default());
    let mut make = |_: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| make(key, row, entry);
    table.check(&mut txn, &mut make, &mut || true).expect("a check").problems.is_empty()
}

fn expected(rows: &BTreeMap<u32, String>) -> BTreeSet<(String, u32, u8)> {
    let mut all = BTreeSet::new();
    for (&key, row) in rows {
        for word in row.split(' ').filter(|word| !word.is_empty()) {
            let count = row.split(' ').filter(|other| *other == word).count() as u8;
            all.insert((word.to_string(), key, count));
        }
    }
    all
}

#[derive(Clone, Debug)]
enum Act {
    Put(u32, String),
    /// Rows that are not there yet, whose entries come behind them all.
    Late(Vec<(u32, String)>),
    Delete(u32),
    Move(u32, u32),
}

fn act() -> impl Strategy<Value = Act> {
    let row = "([a-c] ){0,4}";
    prop_oneof![
        4 => (0u32..6, row).prop_map(|(key, row)| Act::Put(key, row)),
        1 => prop::collection::vec((0u32..6, row), 1..5).prop_map(Act::Late),
        1 => (0u32..6).prop_map(Act::Delete),
        1 => (0u32..6, 0u32..6).prop_map(|(from, to)| Act::Move(from, to)),
    ]
}

/// Inserts those that are not there, and then the entries of all.
fn insert_late(
    table: &RawTable,
    txn: &mut Txn,
    rows: Vec<(u32, String)>,
    then: &mut BTreeMap<u32, String>,
) {
    let mut late = Vec::new();
    for (key, row) in rows {
        if then.contains_key(&key) {
            continue;
        }
        let (bytes, entries) = (key.to_be_bytes(), [Entry::default()]);
        let image = RowImage { key: &bytes, row: row.as_bytes(), entries: &entries };
        table.insert(txn, image).expect("an insert");
        late.push((bytes, words_of(row.as_bytes())));
        then.insert(key, row);
    }
    add_late(table, txn, &late).expect("their entries");
}

fn add_late(table: &RawTable, txn: &mut Txn, late: &[([u8; 4], Vec<u8>)]) -> Result<(), Error> {
    let rows = late.iter().map(|(key, entries)| RowEntries { key, entries });
    table.add_entries(txn, 0, &rows.collect::<Vec<_>>())
}

#[test]
fn entries_that_come_later_are_all_added_or_none() {
    let (db, tables) = new(97);
    let rows = filled(&db, &tables, &[spec("words")]);
    let table = tables.open_raw("t").expect("the table");
    let mut txn = db.begin(TxnOptions::default());
    let row = |key: u32, text: &str| (key.to_be_bytes(), words_of(text.as_bytes()));
    // The row with the key 5 has the word already.
    let done = add_late(&table, &mut txn, &[row(7000, "all new"), row(5, "all other")]);
    assert!(matches!(done, Err(Error::Duplicate { index: Some(0) })), "{done:?}");
    let mut swapped = words_of(b"a b");
    swapped.rotate_left(5);
    let done = add_late(&table, &mut txn, &[row(7000, "new"), (5u32.to_be_bytes(), swapped)]);
    assert!(matches!(done, Err(Error::Input(_))), "{done:?}");
    txn.commit_durably(Durability::Lazy).expect("a commit");
    assert_eq!(found(&db, &table), expected(&rows));
    let (db, tables) = new(98);
    tables
        .create_raw("t", b"", &[IndexSpec { name: "one".into(), ..IndexSpec::default() }])
        .expect("a table");
    let table = tables.open_raw("t").expect("the table");
    let done = add_late(&table, &mut db.begin(TxnOptions::default()), &[row(1, "new")]);
    assert!(matches!(done, Err(Error::Input(_))), "{done:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_index_has_what_the_rows_have(
        transactions in prop::collection::vec(
            (prop::collection::vec(act(), 1..6), any::<bool>()),
            1..8,
        ),
    ) {
        let (db, tables) = new(93);
        tables.create_raw("t", b"", &[spec("words")]).expect("a table");
        let table = tables.open_raw("t").expect("the table");
        let mut rows: BTreeMap<u32, String> = BTreeMap::new();
        for (acts, commits) in transactions {
            let mut then = rows.clone();
            let mut txn = db.begin(TxnOptions::default());
            for act in acts {
                match act {
                    Act::Put(key, row) => {
                        match then.get(&key) {
                            None => with_image(key, &row, |new| table.insert(&mut txn, new)),
                            Some(old) => with_image(key, old, |old| {
                                with_image(key, &row, |new| table.update(&mut txn, old, new))
                            }),
                        }.expect("a change");
                        then.insert(key, row);
                    }
                    Act::Late(rows) => insert_late(&table, &mut txn, rows, &mut then),
                    Act::Delete(key) => {
                        if let Some(old) = then.remove(&key) {
                            with_image(key, &old, |old| table.delete(&mut txn, old)).expect("gone");
                        }
                    }
                    Act::Move(from, to) => {
                        if from != to && then.contains_key(&from) && !then.contains_key(&to) {
                            let old = then.remove(&from).expect("there");
                            with_image(from, &old, |was| {
                                with_image(to, &old, |is| table.update(&mut txn, was, is))
                            }).expect("moved");
                            then.insert(to, old);
                        }
                    }
                }
            }
            if commits {
                txn.commit_durably(Durability::Lazy).expect("a commit");
                rows = then;
            } else {
                txn.rollback().expect("a rollback");
            }
            prop_assert_eq!(found(&db, &table), expected(&rows));
            prop_assert!(is_sound(&db, &table));
        }
        let mut txn = db.begin(TxnOptions::default());
        prop_assert_eq!(table.count(&mut txn).expect("a count"), rows.len() as u64);
    }
}

fn filled(db: &Db, tables: &Tables, specs: &[IndexSpec]) -> BTreeMap<u32, String> {
    tables.create_raw("t", b"", specs).expect("a table");
    let table = tables.open_raw("t").expect("the table");
    let mut txn = db.begin(TxnOptions::default());
    let mut rows = BTreeMap::new();
    for key in 0..300u32 {
        let row = format!("w{} w{} all", key % 7, key % 11);
        let words = words_of(row.as_bytes());
        let entries = [Entry { payload: &words, ..Entry::default() }];
        let entries = &entries[..specs.len()];
        let image = RowImage { key: &key.to_be_bytes(), row: row.as_bytes(), entries };
        table.insert(&mut txn, image).expect("an insert");
        rows.insert(key, row);
    }
    txn.commit_durably(Durability::Lazy).expect("a commit");
    rows
}

#[test]
fn one_that_is_added_later_has_the_same_entries() {
    let (db, tables) = new(94);
    let rows = filled(&db, &tables, &[]);
    assert!(tables.add_index_raw("t", &spec("words"), &mut make).expect("added"));
    let table = tables.open_raw("t").expect("the table");
    assert_eq!(found(&db, &table), expected(&rows));
    assert!(is_sound(&db, &table));
}

#[test]
fn what_writers_do_while_one_is_added_is_in_it() {
    let (db, tables) = new(95);
    let mut rows = filled(&db, &tables, &[]);
    tables.announce_indexes("t", &[spec("words")], None).expect("announced");
    let change = |rows: &mut BTreeMap<u32, String>, from: u32| {
        let table = tables.open_raw("t").expect("the table");
        let mut txn = db.begin(TxnOptions::default());
        for key in from..from + 20 {
            let new = format!("w{} changed all all", key % 3);
            let old = rows.insert(key, new.clone()).expect("a row");
            with_image(key, &old, |was| {
                with_image(key, &new, |is| table.update(&mut txn, was, is))
            })
            .expect("changed");
            let newer = "w0 changed again".to_string();
            rows.insert(key, newer.clone());
            with_image(key, &new, |was| {
                with_image(key, &newer, |is| table.update(&mut txn, was, is))
            })
            .expect("changed again");
            let gone = rows.remove(&(key + 40)).expect("a row");
            with_image(key + 40, &gone, |old| table.delete(&mut txn, old)).expect("gone");
            let added = "added w1".to_string();
            with_image(key + 1000, &added, |new| table.insert(&mut txn, new)).expect("added");
            rows.insert(key + 1000, added);
        }
        txn.commit_durably(Durability::Lazy).expect("a commit");
    };
    change(&mut rows, 10);
    let mut make = |_: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| make(key, row, entry);
    tables.fill_indexes("t", &mut make, &mut || true).expect("filled");
    change(&mut rows, 100);
    change(&mut rows, 200);
    tables.finish_indexes("t", b"", &[]).expect("finished");
    let table = tables.open_raw("t").expect("the table");
    assert_eq!(found(&db, &table), expected(&rows));
    assert!(is_sound(&db, &table));
}

#[test]
fn one_is_there_when_the_rows_are_written_anew() {
    let (db, tables) = new(94);
    let rows = filled(&db, &tables, &[spec("words")]);
    tables.announce_rewrite("t", &[spec("words")], None).expect("announced");
    let mut anew = |_: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
        made.key.extend_from_slice(key);
        made.row.extend_from_slice(row);
        make(key, row, &mut made.entries[0])
    };
    tables.fill_rewrite("t", true, &mut anew, &mut || true).expect("filled");
    let new = Redefinition { table: "t", ..Redefinition::default() };
    tables.finish_rewrite(&[new], &mut anew).expect("finished");
    let table = tables.open_raw("t").expect("the table");
    assert_eq!(found(&db, &table), expected(&rows));
    assert!(is_sound(&db, &table));
}

#[test]
fn one_cannot_be_unique_and_what_is_malformed_changes_nothing() {
    let (db, tables) = new(94);
    let unique = IndexSpec { unique: true, ..spec("words") };
    let made = tables.create_raw("t", b"", &[unique]);
    assert!(matches!(made, Err(Error::Definition(_))), "{made:?}");
    tables.create_raw("t", b"", &[spec("words")]).expect("a table");
    let table = tables.open_raw("t").expect("the table");
    let mut txn = db.begin(TxnOptions::default());
    let mut malformed = words_of(b"a b");
    malformed.push(9);
    let entries = [Entry { payload: &malformed, ..Entry::default() }];
    let image = RowImage { key: b"0001", row: b"a b", entries: &entries };
    let inserted = table.insert(&mut txn, image);
    assert!(matches!(inserted, Err(Error::Input(_))), "{inserted:?}");
    txn.commit_durably(Durability::Lazy).expect("a commit");
    assert_eq!(found(&db, &table), BTreeSet::new());
}
