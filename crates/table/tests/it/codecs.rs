//! A table that asks for a codec: its trees do, and those that it gets later.
use std::sync::Arc;

use weir::{Background, Config, Db, PageCodec, SimVolume, StoreKind, TxnOptions};
use weir_table::{EntryBuf, IndexSpec, Redefinition, RowBuf, RowImage, Tables};

/// What the trees of tables ask for, each.
fn asked(db: &Db) -> Vec<Option<PageCodec>> {
    let mut txn = db.begin(TxnOptions::default());
    let names = db.tree_names().expect("read").into_iter();
    let names = names.filter(|name| name.starts_with("weir.table."));
    names.map(|name| txn.codec(&name).expect("read").expect("there")).collect()
}

#[test]
fn all_trees_of_a_table_ask_for_its_codec() {
    let volume = SimVolume::new(1);
    let open = || {
        let config = Config { store: Some(StoreKind::Log), ..Config::default() };
        Db::open_on(Arc::new(volume.clone()), config).expect("opened")
    };
    let db = open();
    let tables = Tables::open(&db).expect("opened");
    let index = |name: &str| IndexSpec { name: name.into(), ..IndexSpec::default() };
    let lz4 = Some(PageCodec::Lz4);
    assert!(!tables.set_codec("t", lz4).expect("asked"), "there is no such table");
    assert!(tables.create_raw("t", b"", &[index("i")]).expect("made"));
    assert_eq!((tables.codec("t").expect("read"), asked(&db)), (None, vec![None; 2]));
    assert!(tables.set_codec("t", lz4).expect("asked"));
    assert_eq!((tables.codec("t").expect("read"), asked(&db)), (lz4, vec![lz4; 2]));
    // Emptied, renamed, with rows and indexes on their way.
    assert!(tables.truncate("t").expect("emptied"));
    assert!(tables.rename("t", "u").expect("renamed"));
    tables.announce_rewrite("u", &[index("i"), index("j")], None).expect("announced");
    let trees = asked(&db);
    assert!(trees.len() >= 5 && trees.iter().all(|codec| *codec == lz4), "{trees:?}");
    tables.abandon_indexes("u").expect("abandoned");
    drop(tables);
    db.close().expect("closed");
    let db = open();
    let tables = Tables::open(&db).expect("opened");
    assert_eq!(tables.codec("u").expect("read"), lz4);
    assert!(tables.set_codec("u", None).expect("asked"));
    assert!(asked(&db).iter().all(Option::is_none));
}

/// A table of many rows and an index, in segments, with what it writes.
struct Packed {
    db: Db,
    tables: Tables,
}

const ROWS: u32 = 5_000;

fn index(name: &str) -> IndexSpec {
    IndexSpec { name: name.into(), ..IndexSpec::default() }
}

fn row(n: u32) -> Vec<u8> {
    format!("heron {n} ").repeat(20).into_bytes()
}

impl Packed {
    fn new(codec: Option<PageCodec>) -> Packed {
        let config = Config {
            store: Some(StoreKind::Log),
            background: Background::Manual,
            log_bytes: 64 << 20,
            ..Config::default()
        };
        let db = Db::open_on(Arc::new(SimVolume::new(2)), config).expect("opened");
        let tables = Tables::open(&db).expect("opened");
        assert!(tables.create_raw_with("t", b"", &[], codec).expect("made"));
        let mut txn = db.begin(TxnOptions::default());
        let table = tables.open_raw("t").expect("opened");
        for n in 0..ROWS {
            let row = RowImage { key: &n.to_be_bytes(), row: &row(n), entries: &[] };
            table.insert(&mut txn, row).expect("inserted");
        }
        let _ = txn.commit().expect("committed");
        db.checkpoint().expect("written");
        Packed { db, tables }
    }

    /// Pages that `act` has written: not packed, by LZ4, by zstd.
    fn written(&self, act: impl FnOnce(&Tables)) -> [u64; 3] {
        let look = || self.db.stats().segments.expect("segments").pages_by_codec;
        let before = look();
        act(&self.tables);
        self.db.checkpoint().expect("written");
        let after = look();
        std::array::from_fn(|i| after[i] - before[i])
    }

    /// Most pages that `act` has written were written by this codec.
    fn writes_by(&self, codec: PageCodec, act: impl FnOnce(&Tables)) {
        let pages = self.written(act);
        let by = pages[codec as usize];
        assert!(by * 5 > pages.iter().sum::<u64>() * 4 && by >= 20, "{codec}: {pages:?}");
    }
}

fn redefinition(codec: Option<Option<PageCodec>>) -> Redefinition<'static> {
    Redefinition { table: "t", definition: b"", codec, ..Redefinition::default() }
}

/// What an ALTER writes anew is packed at once as it will be afterwards, not when it is written the
/// next time, which for a table that is only read never comes.
#[test]
fn rows_written_anew_with_another_codec_are_packed_by_that() {
    for (codec, then) in [(Some(PageCodec::Lz4), PageCodec::Lz4), (None, PageCodec::Zstd)] {
        let packed = Packed::new(Some(PageCodec::None));
        let mut make = |_: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
            *made = RowBuf { key: key.to_vec(), row: row.to_vec(), entries: Vec::new() };
            Ok(())
        };
        packed.writes_by(then, |tables| {
            tables.announce_rewrite("t", &[], Some(codec)).expect("announced");
            assert_eq!(tables.codec("t").expect("read"), Some(PageCodec::None), "not yet");
            tables.fill_rewrite("t", true, &mut make, &mut || true).expect("filled");
            packed.db.checkpoint().expect("written");
        });
        let new = redefinition(Some(codec));
        packed.tables.finish_rewrite(&[new], &mut make).expect("finished");
        assert_eq!(packed.tables.codec("t").expect("read"), codec);
        assert!(asked(&packed.db).iter().all(|asked| *asked == codec));
    }
}

#[test]
fn so_are_the_entries_of_an_index_that_comes_with_another_codec() {
    let packed = Packed::new(Some(PageCodec::None));
    let lz4 = Some(PageCodec::Lz4);
    let mut make = |_: usize, _: &[u8], row: &[u8], entry: &mut EntryBuf| {
        entry.key.extend_from_slice(row);
        Ok(())
    };
    packed.writes_by(PageCodec::Lz4, |tables| {
        tables.announce_indexes("t", &[index("i")], Some(lz4)).expect("announced");
        tables.fill_indexes("t", &mut make, &mut || true).expect("filled");
        packed.db.checkpoint().expect("written");
    });
    packed.tables.abandon_indexes("t").expect("abandoned");
    let trees = asked(&packed.db);
    assert_eq!(trees, [Some(PageCodec::None)], "what was given up has changed nothing");
}
