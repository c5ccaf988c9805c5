//! Two real databases, made once: one closed in order, one as a crash leaves it, with transactions
//! that have not ended. Both with splits, joins, deletes, long values, several trees and a table.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir::{
    Background, Batch, Config, Db, DoubleWriteConfig, Durability, Encryption, FileVolume, KeyFile,
    PageCodec, StoreKind, TxnOptions,
};
use weir_base::PageNo;
use weir_device::{OverlayVolume, Volume};
use weir_pool::{LogStructuredStore, PageStore};
use weir_table::{ColumnType, Index, Schema, Tables};

pub(crate) const PAGE: usize = 4096;
pub(crate) const TREES: [&str; 3] = ["herons", "ponds", "weirs"];

/// A tree's name and a key.
pub(crate) type Key = (String, Vec<u8>);

/// A database's files, and what is known of its rows.
pub(crate) struct Fixture {
    pub(crate) dir: PathBuf,
    /// What was committed last.
    pub(crate) rows: BTreeMap<Key, Vec<u8>>,
    /// The last version of each row that there ever was.
    pub(crate) versions: BTreeMap<Key, u32>,
    /// Trees by their numbers.
    pub(crate) names: BTreeMap<u64, String>,
    /// Its keys, if it is encrypted.
    pub(crate) encryption: Option<Encryption>,
    _temp: tempfile::TempDir,
}

impl Fixture {
    /// The data file, deciphered; of segments, what it would be.
    pub(crate) fn pages(&self) -> Vec<u8> {
        match self.dir.join("pages").exists() {
            true => self.file("pages"),
            false => self.with_segments(|store| {
                let mut bytes = vec![0; store.pages() as usize * PAGE];
                for (at, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
                    if store.read(PageNo(at as u32), page).is_err() {
                        page.fill(0);
                    }
                }
                bytes
            }),
        }
    }

    /// Its pages in segments.
    pub(crate) fn with_segments<T>(&self, act: impl FnOnce(&LogStructuredStore) -> T) -> T {
        let below = FileVolume::open_read_only(&self.dir).expect("opened");
        let below = weir::open_volume(Arc::new(below), self.encryption.as_ref()).expect("keys");
        let volume: Arc<dyn Volume> = Arc::new(OverlayVolume::new(below).expect("a layer"));
        let db = LogStructuredStore::find_db(&*volume).expect("its number");
        act(&LogStructuredStore::open(&volume, db).expect("a store"))
    }

    /// A file, deciphered: each byte is where it is.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        let volume = FileVolume::open_read_only(&self.dir).expect("opened");
        let volume = weir::open_volume(Arc::new(volume), self.encryption.as_ref()).expect("keys");
        let file = volume.open(name).expect("opened");
        let mut bytes = weir_base::AlignedBuf::zeroed(file.len() as usize);
        file.read_at(0, &mut bytes).expect("read");
        bytes.to_vec()
    }

    /// How a salvage of it is to be done.
    pub(crate) fn options(&self) -> weir_salvage::Options {
        options(self.encryption.clone())
    }
}

fn options(encryption: Option<Encryption>) -> weir_salvage::Options {
    weir_salvage::Options { pool_bytes: 4 << 20, encryption, ..Default::default() }
}

/// Keys for those that are encrypted.
pub(crate) fn keys() -> Encryption {
    static KEYS: OnceLock<(Encryption, tempfile::TempDir)> = OnceLock::new();
    let made = || {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("keys");
        KeyFile::generate(&file, false).expect("made");
        (Encryption::new(Arc::new(KeyFile::at(file))), dir)
    };
    KEYS.get_or_init(made).0.clone()
}

fn config(store: StoreKind, encryption: Option<Encryption>) -> Config {
    Config {
        store: Some(store),
        encryption,
        pool_bytes: 2 << 20,
        log_bytes: 1 << 20,
        page_size: PAGE,
        doublewrite: DoubleWriteConfig { files: 2, pages: 16, ..DoubleWriteConfig::default() },
        background: Background::Manual,
        ..Config::default()
    }
}

/// The value of a row's version: the version in digits, then bytes that follow from all of it.
pub(crate) fn value_of(tree: &str, key: &[u8], version: u32) -> Vec<u8> {
    let mut value = format!("{version:08} {tree} {} ", String::from_utf8_lossy(key)).into_bytes();
    let seed =
        key.iter().fold(u64::from(version), |sum, &byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut random = fastrand::Rng::with_seed(seed);
    let len = match tree {
        // Long ones: a few pages each.
        "weirs" if random.u8(..) < 90 => random.usize(3_000..20_000),
        _ => random.usize(40..160),
    };
    value.resize_with(len.max(value.len()), || random.u8(..));
    value
}

pub(crate) fn version_in(value: &[u8]) -> u32 {
    std::str::from_utf8(&value[..8]).expect("digits").parse().expect("a version")
}

struct Work {
    db: Db,
    rows: BTreeMap<Key, Vec<u8>>,
    versions: BTreeMap<Key, u32>,
    random: fastrand::Rng,
}

impl Work {
    fn key(&mut self, tree: &str) -> Vec<u8> {
        let many = match tree {
            "herons" => 6_000,
            "weirs" => 300,
            _ => 40,
        };
        format!("{tree} row {:05}", self.random.u32(0..many)).into_bytes()
    }

    fn next_value(&mut self, tree: &str, key: &[u8]) -> Vec<u8> {
        let version = self.versions.entry((tree.to_owned(), key.to_vec())).or_insert(0);
        *version += 1;
        value_of(tree, key, *version)
    }

    /// Rows of one tree, changed together.
    fn change(&mut self, deletes_in_ten: u8) {
        let name = TREES[[0, 0, 0, 0, 0, 0, 1, 2][self.random.usize(0..8)]];
        let tree = self.db.open_tree(name).expect("a tree");
        let mut batch = Batch::new();
        let mut after = BTreeMap::new();
        for _ in 0..self.random.usize(1..5) {
            let key = self.key(name);
            if self.random.u8(0..10) < deletes_in_ten {
                batch.delete(&tree, &key);
                after.insert(key, None);
            } else {
                let value = self.next_value(name, &key);
                batch.put(&tree, &key, &value);
                after.insert(key, Some(value));
            }
        }
        self.db.write(&batch, Durability::Lazy).expect("written");
        for (key, value) in after {
            match value {
                Some(value) => self.rows.insert((name.to_owned(), key), value),
                None => self.rows.remove(&(name.to_owned(), key)),
            };
        }
        if self.random.u8(..) < 20 {
            self.db.step().expect("a step");
        }
    }

    fn run(&mut self, changes: u32, deletes_in_ten: u8) {
        (0..changes).for_each(|_| self.change(deletes_in_ten));
    }
}

fn table(db: &Db) {
    let tables = Tables::open(db).expect("tables");
    let schema = Schema::new()
        .column("id", ColumnType::U64)
        .column("name", ColumnType::Text)
        .primary_key(["id"])
        .index(Index::new("by_name", ["name"]));
    assert!(tables.create_table("birds", &schema).expect("a table"));
    let birds = tables.open_table("birds").expect("the table");
    let mut txn = db.begin(TxnOptions::default());
    for id in 0..BIRDS {
        let row = vec![id.into(), format!("bird {}", id % 97).as_str().into()];
        birds.insert(&mut txn, &row).expect("inserted");
    }
    let _ = txn.commit().expect("committed");
}

/// Rows of the table.
pub(crate) const BIRDS: u64 = 1_500;

/// Everything but the trees of the workload, as the engine reads it.
fn add_others(db: &Db, rows: &mut BTreeMap<Key, Vec<u8>>) {
    for name in db.tree_names().expect("names") {
        if TREES.contains(&name.as_str()) {
            continue;
        }
        let tree = db.open_tree(&name).expect("a tree");
        let mut cursor = tree.cursor();
        let mut on = cursor.seek_first().expect("read");
        while on {
            rows.insert(
                (name.clone(), cursor.key().to_vec()),
                cursor.value().expect("read").to_vec(),
            );
            on = cursor.next().expect("read");
        }
    }
}

/// What a tree asked for last.
pub(crate) fn codec_of(tree: &str) -> Option<PageCodec> {
    match tree {
        "herons" => Some(PageCodec::Lz4),
        "weirs" => Some(PageCodec::Zstd),
        _ => None,
    }
}

fn make(is_closed: bool, store: StoreKind, encryption: Option<Encryption>) -> Fixture {
    let temp = tempfile::tempdir().expect("a directory");
    let live = temp.path().join("live");
    let db = Db::open(&live, config(store, encryption.clone())).expect("a database");
    db.create_tree_with("herons", codec_of("herons")).expect("a tree");
    db.create_tree_with("weirs", Some(PageCodec::None)).expect("a tree");
    table(&db);
    let dropped = db.open_tree("dropped").expect("a tree");
    for number in 0..400u32 {
        dropped.put(&number.to_be_bytes(), &[7; 90], Durability::Lazy).expect("put");
    }
    let random = fastrand::Rng::with_seed(11);
    let mut work = Work { db, rows: BTreeMap::new(), versions: BTreeMap::new(), random };
    work.run(4_000, 2);
    assert!(work.db.drop_tree("dropped").expect("dropped"));
    work.run(2_000, 7);
    assert!(work.db.set_codec("weirs", codec_of("weirs")).expect("asked"));
    work.run(3_000, 3);
    if is_closed {
        add_others(&work.db, &mut work.rows);
        work.db.close().expect("closed");
        let Work { rows, versions, .. } = work;
        let names = names(&live, encryption.clone());
        return Fixture { dir: live, rows, versions, names, encryption, _temp: temp };
    }
    // Some of it is in pages, the rest in the log alone.
    for _ in 0..40 {
        work.db.step().expect("a step");
    }
    work.run(60, 3);
    add_others(&work.db, &mut work.rows);
    let Work { db, rows, mut versions, .. } = work;
    let (herons, weirs) = (db.open_tree("herons"), db.open_tree("weirs"));
    let (herons, weirs) = (herons.expect("a tree"), weirs.expect("a tree"));
    let mut losers = db.begin(TxnOptions::default());
    let mut prepared = db.begin(TxnOptions::default());
    let changed: Vec<Key> = rows
        .keys()
        .filter(|key| key.0 == "herons" || key.0 == "weirs")
        .step_by(9)
        .cloned()
        .collect();
    for (number, (tree, key)) in changed.into_iter().enumerate() {
        let handle = if tree == "herons" { &herons } else { &weirs };
        let txn = if number % 4 == 0 { &mut prepared } else { &mut losers };
        let version = versions.get_mut(&(tree.clone(), key.clone())).expect("a version");
        *version += 1;
        match number % 5 {
            0 => assert!(txn.delete(handle, &key).expect("deleted")),
            _ => txn.put(handle, &key, &value_of(&tree, &key, *version)).expect("put"),
        }
    }
    assert!(losers.set_codec("herons", None).expect("asked"));
    assert!(prepared.set_codec("ponds", Some(PageCodec::None)).expect("asked"));
    losers.put(&herons, b"herons row new", b"00000001 never committed").expect("put");
    prepared.prepare(b"coordinator's").expect("prepared");
    // Durable up to here.
    herons
        .put(b"herons row last", &value_of("herons", b"herons row last", 1), Durability::Synced)
        .expect("put");
    let mut rows = rows;
    let last: Key = ("herons".to_owned(), b"herons row last".to_vec());
    rows.insert(last.clone(), value_of("herons", &last.1, 1));
    versions.insert(last, 1);
    let crashed = temp.path().join("crashed");
    copy(&live, &crashed);
    drop(losers);
    let names = names(&crashed, encryption.clone());
    Fixture { dir: crashed, rows, versions, names, encryption, _temp: temp }
}

/// Closed in order, with one tree of three levels.
pub(crate) fn deep(encryption: Option<Encryption>) -> Fixture {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("live");
    let db = Db::open(&dir, config(StoreKind::InPlace, encryption.clone())).expect("a database");
    let tree = db.open_tree("ponds").expect("a tree");
    let (mut rows, mut versions) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..16_000 {
        let key = format!("ponds row {number:05}").into_bytes();
        let value = value_of("ponds", &key, 1);
        tree.put(&key, &value, Durability::Lazy).expect("put");
        versions.insert(("ponds".to_owned(), key.clone()), 1);
        rows.insert(("ponds".to_owned(), key), value);
    }
    drop(tree);
    db.close().expect("closed");
    let names = names(&dir, encryption.clone());
    Fixture { dir, rows, versions, names, encryption, _temp: temp }
}

/// What number each tree has, as a salvage of the sound files tells. That it saves all rows under
/// these names is tested.
fn names(dir: &Path, encryption: Option<Encryption>) -> BTreeMap<u64, String> {
    let to = dir.with_extension("names");
    let options = options(encryption);
    let report = weir_salvage::salvage(dir, &to, &options, &mut |_, _, _| ()).expect("salvaged");
    report.trees.into_iter().map(|tree| (tree.number, tree.name)).collect()
}

/// The same rows, of another directory.
pub(crate) fn alike(of: &Fixture, dir: PathBuf) -> Fixture {
    Fixture {
        dir,
        rows: of.rows.clone(),
        versions: of.versions.clone(),
        names: of.names.clone(),
        encryption: of.encryption.clone(),
        _temp: tempfile::tempdir().expect("a directory"),
    }
}

/// Closed in order.
pub(crate) fn closed() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(true, StoreKind::InPlace, None))
}

/// As a crash leaves it.
pub(crate) fn crashed() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(false, StoreKind::InPlace, None))
}

/// As a crash leaves it, with pages in segments.
pub(crate) fn crashed_in_segments() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(false, StoreKind::Log, None))
}

/// Closed in order, with pages in segments.
pub(crate) fn closed_in_segments() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(true, StoreKind::Log, None))
}

/// As [`closed`], encrypted.
pub(crate) fn encrypted_closed() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(true, StoreKind::InPlace, Some(keys())))
}

/// As [`crashed`], encrypted.
pub(crate) fn encrypted_crashed() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| make(false, StoreKind::InPlace, Some(keys())))
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Every file's bytes, without the lock's.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry"));
    let named =
        entries.map(|entry| (entry.file_name().into_string().expect("a name"), entry.path()));
    named
        .filter(|(name, _)| name != "LOCK")
        .map(|(name, path)| (name, std::fs::read(path).expect("read")))
        .collect()
}
