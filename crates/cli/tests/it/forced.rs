//! `--force-recovery`: damaged databases are read as far as they can be, what is missing is said on
//! standard error and by the exit code, no file changes, and what would write is refused.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weir::{Background, Batch, Config, Db, Durability, TxnOptions};

use crate::{Ran, Scratch, expect};

const PAGE: usize = 8192;
const ROWS: u32 = 8_000;

fn key(n: u32) -> String {
    format!("bird {n:05}")
}

fn value(n: u32, version: &str) -> String {
    format!("{version} {}", "feathers ".repeat(1 + n as usize % 20))
}

fn put(db: &Db, tree: &str, rows: impl IntoIterator<Item = u32>, version: &str) {
    let tree = db.open_tree(tree).expect("a tree");
    let rows: Vec<u32> = rows.into_iter().collect();
    for some in rows.chunks(100) {
        let mut batch = Batch::new();
        for &n in some {
            batch.put(&tree, key(n).as_bytes(), value(n, version).as_bytes());
        }
        db.write(&batch, Durability::Lazy).expect("written");
    }
    db.sync().expect("durable");
}

/// Rows of two trees, all written. What is tested is a copy: a command that another test starts may
/// hold the lock of this one for a moment, from its fork to its exec. No thread writes pages: on a
/// slow machine they would be on disk before the crash.
fn made(scratch: &Scratch) -> Db {
    let config = Config {
        pool_bytes: 8 << 20,
        log_bytes: 4 << 20,
        background: Background::Manual,
        ..Config::default()
    };
    let db = Db::open(&scratch.path("made"), config).expect("opened");
    put(&db, "birds", 0..ROWS, "first");
    put(&db, "few", 0..100, "first");
    db.checkpoint().expect("written");
    db
}

/// Closed in order.
fn closed() -> Scratch {
    let scratch = Scratch::new();
    made(&scratch).close().expect("closed");
    copy(&scratch.path("made"), &scratch.path("db"));
    scratch
}

/// As a crash leaves it: changes that only the log has, and a transaction without an end.
fn crashed() -> Scratch {
    let scratch = Scratch::new();
    let db = made(&scratch);
    let few = db.open_tree("few").expect("a tree");
    let mut txn = db.begin(TxnOptions::default());
    txn.put(&few, b"never", b"committed").expect("put");
    put(&db, "birds", (0..ROWS).step_by(10), "second");
    copy(&scratch.path("made"), &scratch.path("db"));
    txn.rollback().expect("rolled back");
    db.close().expect("closed");
    scratch
}

/// The control file first and the log last: what is written meanwhile is in the log.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    let mut names: Vec<String> = files(from)
        .into_keys()
        .map(|file| file.file_name().expect("a name").to_str().expect("UTF-8").to_owned())
        .collect();
    let order = |name: &str| match name {
        "control" => 0,
        "pages" => 1,
        name if name.starts_with("redo-") => 3,
        _ => 2,
    };
    names.sort_by_key(|name| order(name));
    for name in names {
        std::fs::copy(from.join(&name), to.join(&name)).expect("copied");
    }
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(dir).expect("listed").map(|file| file.expect("a file").path());
    files.map(|file| (file.clone(), std::fs::read(file).expect("read"))).collect()
}

fn change(file: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file).expect("read");
    with(&mut bytes);
    std::fs::write(file, bytes).expect("written");
}

/// Files of this prefix, in order.
fn named(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_it = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    files(dir).into_keys().filter(is_it).collect()
}

/// A damaged database.
struct Damaged {
    scratch: Scratch,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Damaged {
    fn new(scratch: Scratch, damage: impl FnOnce(&Path)) -> Damaged {
        damage(&scratch.path("db"));
        let before = files(&scratch.path("db"));
        Damaged { scratch, before }
    }

    /// Runs a command of the database with a step, and expects this code and no change.
    fn run(&self, code: i32, step: u8, command: &str, more: &[&str]) -> Ran {
        let (dir, step_text) = (self.scratch.text("db"), step.to_string());
        let mut words = vec![command, &dir];
        words.extend(more);
        if step > 0 {
            words.extend(["--force-recovery", &step_text]);
        }
        let ran = expect(code, &words);
        let after = files(&self.scratch.path("db"));
        assert!(after.keys().eq(self.before.keys()), "files came or went: {words:?}");
        for (file, bytes) in &after {
            assert!(*bytes == self.before[file], "{} has changed: {words:?}", file.display());
        }
        ran
    }

    /// Rows that a scan prints, by their keys.
    fn rows(&self, code: i32, step: u8, tree: &str) -> (BTreeMap<String, String>, String) {
        let ran = self.run(code, step, "scan", &[tree]);
        let line = |line: &str| {
            let (key, value) = line.split_once('\t').expect("a key and a value");
            (key.to_owned(), value.to_owned())
        };
        let opened = format!("opened with --force-recovery {step}: nothing is changed\n");
        assert!(ran.err.starts_with(&opened), "{ran:?}");
        (ran.out.lines().map(line).collect(), ran.err)
    }
}

/// How many rows are as they were when all of this version had been written; all are of one of
/// both.
fn of_version(rows: &BTreeMap<String, String>, version: &str) -> usize {
    for (key, row) in rows {
        let n = key.trim_start_matches("bird ").parse().expect("a number");
        let row = row.trim_end();
        let is = |version: &str| row == value(n, version).trim_end();
        assert!(is("first") || is("second"), "{key} was never {row}");
    }
    rows.values().filter(|row| row.starts_with(version)).count()
}

#[test]
fn one_that_is_sound_is_read_as_ever() {
    let sound = Damaged::new(closed(), |_| ());
    let ever = sound.run(0, 0, "scan", &["birds"]).out;
    for step in 1..=3 {
        let forced = sound.run(0, step, "scan", &["birds"]);
        assert!(forced.out == ever && forced.err.lines().count() == 1, "{}", forced.err);
    }
    let said = sound.run(1, 4, "scan", &["birds"]);
    assert!(said.out == ever && said.err.contains("left out: the log is not applied"), "{said:?}");
    let check = sound.run(0, 1, "check", &[]);
    assert!(check.out.ends_with("sound\n"), "{check:?}");
    assert_eq!(sound.run(0, 1, "trees", &[]).out, "birds\nfew\n");
    assert!(sound.run(0, 1, "stat", &[]).out.contains("birds"));
    assert!(sound.run(0, 1, "get", &["birds", "bird 00007"]).out.starts_with("first"));
    let advice = sound.run(1, 1, "advise", &[]);
    assert!(advice.out.contains("too little has been observed"), "{advice:?}");
    let dir = sound.scratch.text("db");
    let dump = expect(2, &["dump", "control", &dir, "--force-recovery", "1"]);
    assert!(dump.err.contains("leave it out"), "{dump:?}");
    let missing = sound.run(1, 1, "get", &["birds", "none"]);
    assert!(missing.err.contains("no key none"), "{missing:?}");
    for step in ["0", "5", "x", ""] {
        let dir = sound.scratch.text("db");
        let refused = expect(2, &["trees", &dir, "--force-recovery", step]);
        assert!(refused.err.contains("--force-recovery"), "{refused:?}");
    }
}

/// Leaves of a tree, and the keys on them, as `weir dump` prints them.
fn leaves(dir: &str) -> Vec<(usize, BTreeSet<String>)> {
    let pages = expect(0, &["dump", "page", dir]).out;
    let numbers = pages.lines().filter(|line| line.contains("leaf of tree 2"));
    let rows = |number: &str| {
        let page = expect(0, &["dump", "page", dir, number]).out;
        let keys = page.lines().filter_map(|line| line.split('\'').nth(1));
        let keys = keys.filter(|key| key.starts_with("bird ")).map(str::to_owned);
        (number.parse().expect("a number"), keys.collect())
    };
    numbers.filter_map(|line| line.split([' ', ':']).nth(1)).step_by(5).map(rows).collect()
}

#[test]
fn damaged_leaves_are_passed_over() {
    let mut lost = BTreeSet::new();
    let damaged = Damaged::new(closed(), |dir| {
        let some = leaves(dir.to_str().expect("UTF-8"));
        assert!(some.len() >= 10, "{}", some.len());
        for (page, keys) in some.into_iter().take(8) {
            change(&dir.join("pages"), |bytes| bytes[page * PAGE + 3000] ^= 1);
            lost.extend(keys);
        }
        for file in named(dir, "doublewrite-") {
            change(&file, |bytes| bytes.fill(0));
        }
    });
    assert!(lost.len() > 100, "{}", lost.len());
    let stopped = damaged.run(2, 0, "scan", &["birds"]);
    assert!(stopped.err.contains("--force-recovery 1 reads what can be read"), "{stopped:?}");
    for step in 1..=4 {
        let (rows, err) = damaged.rows(1, step, "birds");
        let wanted = (0..ROWS).map(key).filter(|key| !lost.contains(key));
        assert!(rows.keys().cloned().eq(wanted), "step {step}: {} rows", rows.len());
        assert_eq!(of_version(&rows, "first"), rows.len());
        assert!(err.contains("passed over at 8 places"), "{err}");
        assert_eq!(err.matches("\ndamaged: ").count(), 8, "{err}");
        assert!(err.contains("in 'pages' at byte"), "{err}");
    }
    // What is whole is whole.
    assert_eq!(damaged.rows(0, 1, "few").0.len(), 100);
    let one = lost.first().expect("one");
    let failed = damaged.run(2, 1, "get", &["birds", one]);
    assert!(failed.err.contains("--force-recovery 2"), "{failed:?}");
    let check = damaged.run(1, 1, "check", &[]);
    assert!(check.out.contains("problem: tree 'birds'") && check.out.contains("tree few: 100"));
}

#[test]
fn a_log_is_read_up_to_damage() {
    let sound = Damaged::new(crashed(), |_| ());
    let seconds = ROWS as usize / 10;
    // What a transaction without an end has changed is not seen; that is said.
    let (few, err) = sound.rows(1, 1, "few");
    assert!(few.len() == 100 && err.contains("1 transactions without an end"), "{err}");
    let (rows, _) = sound.rows(1, 1, "birds");
    assert_eq!((rows.len(), of_version(&rows, "second")), (ROWS as usize, seconds));
    let check = sound.run(1, 1, "check", &[]);
    assert!(check.out.ends_with("sound\n"), "{check:?}");

    let damaged = Damaged::new(crashed(), |dir| {
        // A block of each sixteen KiB that have any, wherever the checkpoint is.
        for file in named(dir, "redo-") {
            change(&file, |bytes| {
                for block in bytes[PAGE..].chunks_mut(512).step_by(32) {
                    if block.iter().any(|&byte| byte != 0) {
                        block[100..200].fill(0x5a);
                    }
                }
            });
        }
    });
    for step in 0..=2 {
        let refused = damaged.run(2, step, "scan", &["birds"]);
        let next = format!("--force-recovery {} reads", step + 1);
        assert!(refused.err.contains(&next) && refused.err.contains("redo"), "{refused:?}");
        let check = damaged.run(1, step, "check", &[]);
        assert!(check.out.contains("1 problem: ") && check.out.contains("redo"), "{check:?}");
    }
    let (rows, err) = damaged.rows(1, 3, "birds");
    assert!(of_version(&rows, "second") < seconds && rows.len() == ROWS as usize);
    assert!(err.contains("left out: the log is applied up to position"), "{err}");
    // A file of the log that was never used is not damage.
    let is_unused = |file: &PathBuf| damaged.before[file].iter().all(|&byte| byte == 0);
    assert!(named(&damaged.scratch.path("db"), "redo-").iter().any(is_unused));
    assert!(!err.contains("is left out"), "{err}");
    let (rows, err) = damaged.rows(1, 4, "birds");
    assert!(of_version(&rows, "second") < seconds && rows.len() == ROWS as usize);
    assert!(err.contains("left out: the log is not applied"), "{err}");
}

#[test]
fn without_its_control_file_none_is_opened() {
    let damaged = Damaged::new(closed(), |dir| change(&dir.join("control"), |it| it.fill(0)));
    for step in 0..=4 {
        let refused = damaged.run(2, step, "trees", &[]);
        assert!(refused.err.contains("control"), "{refused:?}");
        assert_eq!(refused.err.contains("weir salvage"), step == 4, "{refused:?}");
    }
}

#[test]
fn what_writes_refuses() {
    let sound = Damaged::new(closed(), |_| ());
    let to = sound.scratch.text("to");
    let refuse = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["--force-recovery", "1"]);
        let refused = expect(2, &words);
        assert!(refused.err.contains("is only read") && refused.err.contains("weir salvage"));
    };
    let dir = sound.scratch.text("db");
    refuse(&["put", &dir, "birds", "k", "v"]);
    refuse(&["delete", &dir, "birds", "bird 00001"]);
    refuse(&["copy", &dir, &to]);
    refuse(&["backup", &dir, &to]);
    refuse(&["restore", &to, &dir]);
    refuse(&["repair", &dir, "--page", "7", "--from", &to]);
    refuse(&["salvage", &dir, &to]);
    refuse(&["key", "rotate", &dir]);
    refuse(&["bench", "update", "--dir", &dir]);
    assert!(!sound.scratch.path("to").exists());
    sound.run(0, 0, "check", &[]);
}
