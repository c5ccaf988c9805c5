//! A real database damaged in more than twenty ways, each named: which rows are saved against those
//! that could have been, and that each row saved is right, or reported as one that may be older.
#![forbid(unsafe_code)]

mod damages;
mod encrypted;
mod fixture;
mod forced;
mod layout;
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir::{Config, Create, Db, TxnOptions};
use weir_salvage::{Report, SavedTree, salvage};

use fixture::{Fixture, Key, value_of};

/// What became of a damaged copy.
struct Outcome {
    report: Report,
    /// Rows of the new database, by tree and key; those that may be older apart.
    rows: BTreeMap<Key, Vec<u8>>,
    strays: BTreeMap<Key, Vec<u8>>,
    /// How the new database is called, for what is only there.
    db: Db,
    _dir: tempfile::TempDir,
}

/// Damages a copy of `from` and saves what is left of it.
fn after(from: &Fixture, damage: impl FnOnce(&Path)) -> Outcome {
    let dir = tempfile::tempdir().expect("a directory");
    let (damaged, saved) = (dir.path().join("damaged"), dir.path().join("saved"));
    fixture::copy(&from.dir, &damaged);
    damage(&damaged);
    let before = fixture::contents(&damaged);
    let report = salvage(&damaged, &saved, &from.options(), &mut |_, _, _| ()).expect("salvaged");
    assert!(fixture::contents(&damaged) == before, "the source is as it was");
    let db = Db::open(
        &saved,
        Config {
            create: Create::Never,
            pool_bytes: 4 << 20,
            encryption: from.encryption.clone(),
            ..Config::default()
        },
    )
    .expect("the new database opens");
    let problems = db.check(&mut |_, _| ()).expect("checked").problems;
    assert!(problems.is_empty(), "{problems:?}");
    println!("{report}");
    let kind = |dir: &Path| fixture::contents(dir).contains_key("pages");
    assert_eq!(kind(&saved), kind(&from.dir), "pages in place, or in segments, as they were");
    let (mut rows, mut strays) = (BTreeMap::new(), BTreeMap::new());
    for tree in &report.trees {
        has_its_codec(&db, tree, report.is_current);
        // Named by its number where its name was lost.
        let name = from.names.get(&tree.number).unwrap_or(&tree.name);
        read(&db, &tree.name, name, &mut rows);
        if tree.stray_rows > 0 {
            read(&db, &tree.stray_name(), name, &mut strays);
        }
    }
    let told: u64 = report.rows();
    assert_eq!(rows.len() as u64, told, "the report counts the rows");
    Outcome { report, rows, strays, db, _dir: dir }
}

/// A tree that has its name asks for the codec that it had; before its last one where what was
/// saved may be older.
fn has_its_codec(db: &Db, tree: &SavedTree, is_current: bool) {
    let mut txn = db.begin(TxnOptions::default());
    let mut asks = |name: &str| txn.codec(name).expect("read").expect("the tree");
    let codec = asks(&tree.name);
    if tree.stray_rows > 0 {
        assert_eq!(asks(&tree.stray_name()), codec, "{}", tree.name);
    }
    if is_current && fixture::TREES.contains(&tree.name.as_str()) {
        assert_eq!(codec, fixture::codec_of(&tree.name), "{}", tree.name);
    }
}

fn read(db: &Db, tree: &str, as_name: &str, out: &mut BTreeMap<Key, Vec<u8>>) {
    let tree = db.open_tree(tree).expect("a tree");
    let mut cursor = tree.cursor();
    let mut on = cursor.seek_first().expect("read");
    while on {
        let key = (as_name.to_owned(), cursor.key().to_vec());
        out.insert(key, cursor.value().expect("read").to_vec());
        on = cursor.next().expect("read");
    }
}

impl Outcome {
    /// All rows are there as they were last, and nothing else.
    fn is_all_of(&self, from: &Fixture) {
        self.has_all_but(from, &BTreeSet::new());
        assert_eq!(self.strays.len(), 0);
    }

    /// All rows are there as they were last, but for these, and nothing else.
    fn has_all_but(&self, from: &Fixture, lost: &BTreeSet<Key>) {
        for (key, value) in &from.rows {
            match self.rows.get(key) {
                Some(saved) => assert!(saved == value, "{key:?} is another than it was"),
                None => assert!(lost.contains(key), "{} {:?} is not saved", key.0, shown(&key.1)),
            }
        }
        for key in self.rows.keys() {
            assert!(from.rows.contains_key(key), "{} {:?} was no row", key.0, shown(&key.1));
        }
    }

    /// Every row is one that it has been once; how many are as they were last, and how many are
    /// others.
    fn are_all_from_its_past(&self, from: &Fixture) -> (usize, usize) {
        for (key, value) in self.rows.iter().chain(&self.strays) {
            if fixture::TREES.contains(&key.0.as_str()) {
                let version = fixture::version_in(value);
                assert!(value_of(&key.0, &key.1, version) == *value, "{key:?} was never that");
                assert!(version <= from.versions[key], "{key:?} was never that");
            }
        }
        let same = self.rows.iter().filter(|(key, value)| from.rows.get(*key) == Some(value));
        let same = same.count();
        (same, self.rows.len() - same)
    }

    fn tree(&self, from: &Fixture, name: &str) -> &SavedTree {
        let is_it = |tree: &&SavedTree| from.names.get(&tree.number).is_some_and(|n| n == name);
        self.report.trees.iter().find(is_it).expect("the tree")
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
