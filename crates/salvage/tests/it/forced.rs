//! The same damages, and the database opened all the same, to be looked at (`force_recovery`):
//! which rows are read at each step, what is refused, and that no file changes.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use weir::{Batch, Config, Create, Db, Error, TxnOptions};
use weir_page::{Kind, Node};

use crate::damages::{middle_of_log, only};
use crate::fixture::{
    self, Fixture, Key, PAGE, TREES, closed, crashed, deep, encrypted_closed, encrypted_crashed,
    keys, value_of, version_in,
};
use crate::layout::{
    change, change_file, files, flip, number_of, pages_of, rows_on, rows_over, zero,
};

/// What could be read of a damaged copy.
#[derive(Default)]
struct Looked {
    rows: BTreeMap<Key, Vec<u8>>,
    /// Trees of which nothing can be read, or that cannot be found.
    failed: BTreeSet<String>,
    remarks: String,
    passed_over: u64,
    /// What a check found.
    problems: Vec<String>,
}

/// Opens copies of `from`, damaged, with each of the steps.
struct Damaged<'f> {
    from: &'f Fixture,
    dir: tempfile::TempDir,
    before: BTreeMap<String, Vec<u8>>,
}

impl Damaged<'_> {
    fn new(from: &Fixture, damage: impl FnOnce(&Path)) -> Damaged<'_> {
        let dir = tempfile::tempdir().expect("a directory");
        let db = dir.path().join("db");
        fixture::copy(&from.dir, &db);
        damage(&db);
        let before = fixture::contents(&db);
        Damaged { from, dir, before }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("db")
    }

    fn open(&self, step: u8) -> Result<Db, Error> {
        let config = Config {
            create: Create::Never,
            pool_bytes: 2 << 20,
            encryption: self.from.encryption.clone(),
            force_recovery: step,
            ..Config::default()
        };
        if step > 0 {
            return Db::open(&self.path(), config);
        }
        // It may write.
        let tried = self.dir.path().join("tried");
        fixture::copy(&self.path(), &tried);
        let opened = Db::open(&tried, config);
        std::fs::remove_dir_all(&tried).expect("removed");
        opened
    }

    /// That it is not opened.
    fn refuses(&self, step: u8) -> Error {
        let refused = self.open(step).err();
        self.is_untouched();
        refused.unwrap_or_else(|| panic!("it opens with step {step}"))
    }

    fn is_untouched(&self) {
        let after = fixture::contents(&self.path());
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&self.before));
        for (name, bytes) in &after {
            assert!(*bytes == self.before[name], "'{name}' has changed");
        }
    }

    /// All that is read with a step, and that nothing but that is done.
    fn look(&self, step: u8) -> Looked {
        let db = self.open(step).unwrap_or_else(|e| panic!("step {step}: {e}"));
        let begun = db.stats();
        let remarks = db.recovery_remarks().join("\n");
        let mut looked = Looked { remarks, ..Looked::default() };
        for name in self.from.names.values() {
            looked.read(&db, name);
        }
        // What transactions without an end have left to do is left to do.
        looked.problems = db.check(&mut |_, _| ()).expect("checked").problems;
        refuses_changes(&db, step);
        let ended = db.stats();
        assert_eq!((ended.log_end, ended.losers), (begun.log_end, begun.losers));
        assert_eq!((ended.dirty_pages, ended.page_writes.total()), (0, 0), "step {step}");
        looked.passed_over = ended.passed_over;
        db.close().expect("closed");
        self.is_untouched();
        looked
    }
}

fn refuses_changes(db: &Db, step: u8) {
    let refused = |done: Option<Error>| {
        let e = done.expect("it is refused");
        assert!(matches!(e, Error::ForcedRecovery(s) if s == step), "{e:?}");
        let text = e.to_string();
        assert!(text.contains(&format!("force_recovery={step}")), "{text}");
        assert!(text.contains("weir salvage"), "{text}");
    };
    refused(db.create_tree("new").err());
    refused(db.scrub(&mut |_, _| ()).err());
    refused(db.set_pool_bytes(8 << 20).err());
    let to = std::env::temp_dir().join("never made");
    let mut txn = db.begin(TxnOptions::default());
    refused(db.copy_to(&mut txn, &to).err());
    assert!(!to.exists());
    let options = weir::BackupOptions::default();
    refused(db.backup(std::io::sink(), &options, &mut |_| true).err());
    if let Ok(Some(tree)) = db.tree("herons") {
        refused(txn.put(&tree, b"k", b"v").err());
        let mut batch = Batch::new();
        batch.put(&tree, b"k", b"v");
        refused(db.write(&batch, weir::Durability::Lazy).err());
    }
    txn.rollback().expect("there is nothing to roll back");
}

impl Looked {
    fn read(&mut self, db: &Db, name: &str) {
        let Ok(Some(tree)) = db.tree(name) else {
            self.failed.insert(name.to_owned());
            return;
        };
        let mut txn = db.begin(TxnOptions::default());
        let mut cursor = txn.cursor(&tree);
        let mut up = Vec::new();
        let mut on = cursor.seek_first(&mut txn);
        while let Ok(true) = on {
            up.push((cursor.key().to_vec(), cursor.value().to_vec()));
            on = cursor.next(&mut txn);
        }
        if let Err(e) = on {
            assert!(matches!(e, Error::Damaged(_)), "{e:?}");
            self.failed.insert(name.to_owned());
        }
        assert!(up.is_sorted_by(|a, b| a.0 < b.0), "{name}: each row once, in order");
        let mut down = Vec::new();
        let mut on = cursor.seek_last(&mut txn);
        while let Ok(true) = on {
            down.push((cursor.key().to_vec(), cursor.value().to_vec()));
            on = cursor.prev(&mut txn);
        }
        down.reverse();
        assert!(up == down, "{name}: {} rows up, {} down", up.len(), down.len());
        let mut visited = 0;
        if cursor.seek_first(&mut txn).is_ok_and(|on| on) {
            let count = |_: &[u8], _: &[u8]| {
                visited += 1;
                std::ops::ControlFlow::Continue(())
            };
            cursor.visit(&mut txn, count).expect("visited");
        }
        assert_eq!(visited, up.len(), "{name}");
        self.rows.extend(up.into_iter().map(|(key, value)| ((name.to_owned(), key), value)));
    }

    /// As they were committed last, all but these.
    fn are_all_but(&self, from: &Fixture, lost: &BTreeSet<Key>) {
        let left: BTreeMap<&Key, &Vec<u8>> =
            from.rows.iter().filter(|(key, _)| !lost.contains(*key)).collect();
        for (key, value) in &left {
            match self.rows.get(*key) {
                Some(row) => assert!(row == *value, "{key:?} is another than it was"),
                None => panic!("{} {} is missing", key.0, String::from_utf8_lossy(&key.1)),
            }
        }
        assert_eq!(self.rows.len(), left.len(), "no others");
        assert_eq!(self.passed_over > 0, !lost.is_empty());
    }

    /// How many are as they were last; all are what they have been once.
    fn are_from_the_past(&self, from: &Fixture) -> usize {
        for (key, value) in self.rows.iter().filter(|(key, _)| TREES.contains(&key.0.as_str())) {
            let version = version_in(value);
            assert!(value_of(&key.0, &key.1, version) == *value, "{key:?} was never that");
            assert!(version <= from.versions[key], "{key:?} was never that");
        }
        self.rows.iter().filter(|(key, value)| from.rows.get(*key) == Some(value)).count()
    }
}

fn nothing_lost() -> BTreeSet<Key> {
    BTreeSet::new()
}

#[test]
fn f01_nothing_is_damaged() {
    for from in [closed(), crashed(), encrypted_closed(), encrypted_crashed()] {
        let damaged = Damaged::new(from, |_| ());
        for step in 1..=3 {
            let looked = damaged.look(step);
            looked.are_all_but(from, &nothing_lost());
            assert!(looked.problems.is_empty(), "{:?}", looked.problems);
            assert_eq!(
                looked.remarks.contains("1 prepared"),
                from.rows.len() != closed().rows.len()
            );
        }
        let same = damaged.look(4).are_from_the_past(from);
        println!("step 4: {same} of {} rows as they were last", from.rows.len());
        assert!(same * 2 > from.rows.len());
        let e = damaged.refuses(5);
        assert!(matches!(&e, Error::Config(text) if text.contains("the last is 4")), "{e}");
    }
}

#[test]
fn f02_nothing_goes_on_in_the_background() {
    let damaged = Damaged::new(crashed(), |_| ());
    let db = damaged.open(1).expect("opened");
    let begun = db.stats();
    assert!(begun.losers > 0 && begun.pages_pending_redo > 0);
    std::thread::sleep(Duration::from_millis(1_500));
    let ended = db.stats();
    assert_eq!(ended.losers, begun.losers, "none is rolled back");
    assert_eq!(ended.pages_pending_redo, begun.pages_pending_redo);
    assert_eq!(ended.log_end, begun.log_end);
    db.close().expect("closed");
    damaged.is_untouched();
}

#[test]
fn f03_leaves_damaged() {
    for from in [closed(), encrypted_closed()] {
        let leaves = only::<5>(&pages_of(from, Kind::Leaf, "herons"));
        let lost = rows_on(from, &leaves);
        assert!(lost.len() > 50, "{}", lost.len());
        for damage in [flip, zero] {
            let damaged = Damaged::new(from, |dir| damage(dir, &leaves));
            for step in 1..=4 {
                let looked = damaged.look(step);
                looked.are_all_but(from, &lost);
                assert!(looked.problems.iter().any(|problem| problem.contains("'herons'")));
            }
            // One row is an error, or what it was.
            let db = damaged.open(1).expect("opened");
            let tree = db.tree("herons").expect("read").expect("the tree");
            for (name, key) in lost.iter().filter(|key| key.0 == "herons") {
                let e = tree.get(key).err().unwrap_or_else(|| panic!("{name} {key:?} is read"));
                assert!(matches!(e, Error::Damaged(_)), "{e:?}");
            }
            let (key, value) = from.rows.iter().find(|(key, _)| !lost.contains(*key)).expect("one");
            assert_eq!(
                db.tree(&key.0).expect("read").expect("it").get(&key.1).expect("read").as_ref(),
                Some(value)
            );
            db.close().expect("closed");
            // Today's way: what walks comes to an error, and no further.
            let db = damaged.open(0);
            drop(db);
        }
    }
}

/// The leaves below an inner page.
fn leaves_below(pages: &[u8], page: u32, leaves: &mut Vec<u32>) {
    let node = Node::new(&pages[page as usize * PAGE..][..PAGE]);
    if node.is_leaf() {
        leaves.push(page);
        return;
    }
    for index in 0..=node.count() {
        leaves_below(pages, node.child(index).0, leaves);
    }
}

#[test]
fn f04_inner_pages_damaged() {
    for from in [&deep(None), &deep(Some(keys()))] {
        let (pages, inner) = (from.pages(), pages_of(from, Kind::Inner, "ponds"));
        let level = |page: u32| Node::new(&pages[page as usize * PAGE..][..PAGE]).level();
        let top = inner.iter().map(|&page| level(page)).max().expect("a root");
        assert!(top >= 2, "there is a level between root and leaves");
        let between: Vec<u32> = inner.into_iter().filter(|&page| level(page) < top).collect();
        for &page in &only::<2>(&between) {
            let mut leaves = Vec::new();
            leaves_below(&pages, page, &mut leaves);
            let lost = rows_on(from, &leaves);
            assert!(!lost.is_empty());
            let damaged = Damaged::new(from, |dir| flip(dir, &[page]));
            for step in [1, 2, 3] {
                damaged.look(step).are_all_but(from, &lost);
            }
        }
    }
}

#[test]
fn f05_a_root_damaged() {
    let from = closed();
    let pages = from.pages();
    let level = |page: &u32| Node::new(&pages[*page as usize * PAGE..][..PAGE]).level();
    let root = pages_of(from, Kind::Inner, "herons").into_iter().max_by_key(level).expect("one");
    let damaged = Damaged::new(from, |dir| flip(dir, &[root]));
    let looked = damaged.look(1);
    assert_eq!(looked.failed, BTreeSet::from(["herons".to_owned()]));
    let others = from.rows.keys().filter(|key| key.0 != "herons").count();
    assert_eq!(looked.rows.len(), others);
}

#[test]
fn f06_overflow_pages_damaged() {
    let from = closed();
    let overflow = only::<5>(&pages_of(from, Kind::Overflow, "weirs"));
    let lost = rows_over(from, &overflow);
    assert!(lost.len() >= 3, "{lost:?}");
    let damaged = Damaged::new(from, |dir| flip(dir, &overflow));
    damaged.look(1).are_all_but(from, &lost);
}

#[test]
fn f07_a_space_map_damaged() {
    for from in [closed(), crashed()] {
        let damaged = Damaged::new(from, |dir| {
            flip(dir, &[0]);
            crate::layout::remove(dir, "doublewrite-");
        });
        // A crash leaves the log to make it anew, unless it is older than the checkpoint.
        if from.rows.len() == closed().rows.len() {
            assert!(matches!(damaged.refuses(0), Error::Damaged(_)));
        }
        let looked = damaged.look(1);
        assert_eq!(looked.failed, BTreeSet::new());
        let same = looked.are_from_the_past(from);
        assert_eq!((same, looked.rows.len()), (from.rows.len(), from.rows.len()));
        assert!(looked.remarks.contains("page 0 in 'pages'"), "{}", looked.remarks);
    }
}

#[test]
fn f08_the_catalog_damaged() {
    let from = closed();
    let pages = from.pages();
    let of_catalog = |page: &u32| {
        let node = Node::new(&pages[*page as usize * PAGE..][..PAGE]);
        node.tree().0 == 1 && matches!(node.kind(), Some(Kind::Leaf | Kind::Inner))
    };
    let all: Vec<u32> = (0..(pages.len() / PAGE) as u32).filter(of_catalog).collect();
    let damaged = Damaged::new(from, |dir| flip(dir, &all));
    for step in [1, 4] {
        let looked = damaged.look(step);
        assert_eq!(looked.failed.len(), from.names.len(), "a salvage finds them");
        assert!(looked.rows.is_empty());
    }
}

#[test]
fn f09_the_log_damaged_in_the_middle() {
    for from in [crashed(), encrypted_crashed()] {
        let damaged = Damaged::new(from, |dir| {
            let (file, at) = middle_of_log(from);
            change_file(dir, &file, |bytes| bytes[at + 100] ^= 1);
        });
        for step in 0..=2 {
            let e = damaged.refuses(step);
            assert!(e.to_string().contains("the redo log is damaged"), "{e}");
        }
        let looked = damaged.look(3);
        let with_half = looked.are_from_the_past(from);
        assert!(looked.remarks.contains("is applied up to position"), "{}", looked.remarks);
        let looked = damaged.look(4);
        let without = looked.are_from_the_past(from);
        let all = from.rows.len();
        println!("of {all} rows {with_half} as they were last with step 3, {without} with step 4");
        assert!(looked.remarks.contains("the log is not applied"), "{}", looked.remarks);
        assert!(with_half > without && without * 2 > all, "{with_half}, {without} of {all}");
    }
}

#[test]
fn f10_the_log_removed() {
    let from = crashed();
    let damaged = Damaged::new(from, |dir| crate::layout::remove(dir, "redo-"));
    for step in 0..=2 {
        damaged.refuses(step);
    }
    for step in [3, 4] {
        let same = damaged.look(step).are_from_the_past(from);
        assert!(same * 2 > from.rows.len(), "{same}");
    }
    // One file of several, and the header of one.
    for bytes in [0, 24] {
        let damaged = Damaged::new(from, |dir| {
            let (file, _) = middle_of_log(from);
            match bytes {
                0 => std::fs::remove_file(dir.join(file)).expect("removed"),
                at => change_file(dir, &file, |bytes| bytes[at] ^= 1),
            }
        });
        damaged.refuses(2);
        let same = damaged.look(3).are_from_the_past(from);
        assert!(same * 2 > from.rows.len(), "{same}");
    }
}

#[test]
fn f11_the_data_file_cut_short() {
    let from = closed();
    let whole = from.pages().len() / PAGE;
    let kept = whole * 2 / 3;
    let cut: Vec<u32> = (kept as u32..whole as u32).collect();
    let mut lost = rows_on(from, &cut);
    lost.extend(rows_over(from, &cut));
    let damaged = Damaged::new(from, |dir| change(dir, |bytes| bytes.truncate(kept * PAGE)));
    assert!(damaged.refuses(0).to_string().contains("cut short"));
    let looked = damaged.look(1);
    assert!(looked.remarks.contains("cut short"), "{}", looked.remarks);
    // Inner pages beyond the cut had leaves before it.
    let same = looked.are_from_the_past(from);
    let (all, read) = (from.rows.len(), looked.rows.len());
    println!("{same} of {all}, {} of them were cut off, {read} are read", lost.len());
    assert!(same == read && same > 100 && same < all);
}

#[test]
fn f12_pages_damaged_that_have_pending_redo() {
    for from in [crashed(), encrypted_crashed()] {
        let leaves = pages_of(from, Kind::Leaf, "herons");
        let some: Vec<u32> = leaves.iter().copied().step_by(3).collect();
        let damaged = Damaged::new(from, |dir| flip(dir, &some));
        // What a transaction without an end changed in them cannot be had.
        let step = if damaged.open(1).is_ok() { 1 } else { 2 };
        let looked = damaged.look(step);
        let same = looked.are_from_the_past(from);
        println!(
            "step {step}: {same} of {} rows, {} passed over",
            from.rows.len(),
            looked.passed_over
        );
        assert!(looked.passed_over > 0 && looked.failed.is_empty());
        assert!(same * 3 > from.rows.len(), "{same}");
        // Nothing of it halts the engine.
        let db = damaged.open(step).expect("opened");
        std::thread::sleep(Duration::from_millis(200));
        let mut txn = db.begin(TxnOptions::default());
        let tree = db.tree("ponds").expect("read").expect("the tree");
        let mut out = Vec::new();
        txn.get_for_update(&tree, b"none", &mut out).expect("locked");
        txn.rollback().expect("rolled back");
        db.close().expect("closed");
    }
}

#[test]
fn f13_undo_that_cannot_be_read() {
    let from = crashed();
    let leaves = pages_of(from, Kind::Leaf, "herons");
    let damaged = Damaged::new(from, |dir| zero(dir, &leaves));
    let looked = damaged.look(2);
    // A leaf that the log makes is there.
    assert!(looked.passed_over > 0);
    let others = |key: &&Key| key.0 != "herons";
    for key in from.rows.keys().filter(others) {
        assert!(looked.rows.contains_key(key), "{key:?}");
    }
    assert!(number_of(from, "herons") > 1 && !files(&damaged.path(), "redo-").is_empty());
}

#[test]
fn f14_pages_that_only_a_salvage_finds() {
    let from = closed();
    let inner = pages_of(from, Kind::Inner, "herons");
    let damaged = Damaged::new(from, |dir| flip(dir, &inner));
    let looked = damaged.look(1);
    assert_eq!(looked.failed, BTreeSet::from(["herons".to_owned()]));
    crate::after(from, |dir| flip(dir, &inner)).is_all_of(from);
}

#[test]
fn f15_without_a_control_file_no_step_opens_it() {
    let damaged = Damaged::new(closed(), |dir| change_file(dir, "control", |bytes| bytes.fill(0)));
    for step in 0..=4 {
        assert!(damaged.refuses(step).to_string().contains("control"));
    }
}
