//! Dumps of databases that are sound, not closed, and damaged in each file.
#![forbid(unsafe_code)]

mod damaged;
mod sound;

use std::path::Path;

use weir::{Config, Create, Db, Durability};
use weir_base::PageNo;
use weir_dump::{Files, LogQuery, PageQuery, Sound};

const PAGE_SIZE: usize = 4096;
const EVERYTHING: LogQuery = LogQuery { from: None, page: None, txn: None, limit: u64::MAX };

fn config() -> Config {
    Config {
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        page_size: PAGE_SIZE,
        create: Create::IfMissing,
        ..Config::default()
    }
}

/// A database with two trees, one of them of several pages and with a long value, closed in order.
fn make(dir: &Path) {
    let db = Db::open(dir, config()).unwrap();
    let birds = db.open_tree("birds").unwrap();
    for i in 0..200 {
        birds.put(format!("bird {i:03}").as_bytes(), &[b'x'; 40], Durability::Lazy).unwrap();
    }
    birds.put(b"long", &[b'l'; 30_000], Durability::Lazy).unwrap();
    let fish = db.open_tree("fish").unwrap();
    fish.put(b"carp", b"in the pond", Durability::Synced).unwrap();
    db.close().unwrap();
}

/// As after a crash: the log has a change that no page has.
fn change_and_crash(dir: &Path) {
    let db = Db::open(dir, config()).unwrap();
    let fish = db.open_tree("fish").unwrap();
    fish.put(b"pike", b"hungry", Durability::Synced).unwrap();
    std::fs::create_dir(dir.join("crashed")).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), dir.join("crashed").join(entry.file_name())).unwrap();
        }
    }
    db.close().unwrap();
}

/// Runs one of the four, and returns what it printed.
fn dump(dir: &Path, what: &str) -> (Sound, String) {
    let files = Files::open(dir, None).unwrap();
    let mut out = Vec::new();
    let all = PageQuery { from: PageNo(0), count: u32::MAX };
    let sound = match what {
        "control" => weir_dump::control(&files, &mut out),
        "log" => weir_dump::log(&files, EVERYTHING, &mut out),
        "catalog" => weir_dump::catalog(&files, &mut out),
        "pages" => weir_dump::pages(&files, all, &mut out),
        "full" => weir_dump::page(&files, all, &mut out),
        other => panic!("{other}"),
    };
    (sound.unwrap(), String::from_utf8(out).unwrap())
}

/// The line that contains a text.
fn line<'a>(printed: &'a str, what: &str) -> &'a str {
    printed.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {printed}"))
}
