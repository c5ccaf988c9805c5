//! A log that ends before pages that were written: seen at opening. Each of these pages is ahead of
//! the log, and read at once it would be found so; but the log grows over their LSNs, and then
//! nothing in them says that they have changes of a log that is gone. What knows of them is the
//! doublewrite area (`docs/decisions/whose-page.md`).
use std::sync::Arc;

use weir::{Config, Db, Durability, Error, SimVolume, Tree};

use crate::support::tiny;

/// More than the pool of 64 frames holds: pages leave it, which writes them.
const ROWS: u32 = 3_000;

fn config() -> Config {
    Config { log_bytes: 8 << 20, pages_max: 4096, ..tiny() }
}

fn open(volume: &SimVolume) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), config())
}

fn put(tree: &Tree, row: u32, byte: u8) {
    tree.put(&row.to_be_bytes(), &[byte; 200], Durability::Synced).expect("a put");
}

/// The files of the log that are there.
fn log_of(volume: &SimVolume) -> Vec<(String, Vec<u8>)> {
    let names = (0..64).map(|n| format!("redo-{n:02}"));
    names.filter_map(|name| Some((name.clone(), volume.read_raw(&name).ok()?))).collect()
}

fn written_pages(db: &Db) -> u64 {
    let writes = db.stats().page_writes;
    writes.deadline + writes.free_frames + writes.idle + writes.shutdown
}

#[test]
fn a_log_that_ends_before_written_pages_is_reported_at_opening() {
    let volume = SimVolume::new(21);
    let db = open(&volume).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    (0..ROWS).for_each(|row| put(&tree, row, 1));
    db.checkpoint().expect("a checkpoint");
    let (control, log) = (volume.read_raw("control").expect("control"), log_of(&volume));
    let log_end = db.stats().log_durable;
    // Without a step no checkpoint is taken: pages are written because others want their frames.
    let written = written_pages(&db);
    (0..ROWS).step_by(3).for_each(|row| put(&tree, row, 2));
    assert!(written_pages(&db) > written + 5, "no page was written");
    assert!(
        volume.read_raw("control").expect("control") == control,
        "the control file knows no more than before"
    );
    let found = volume.snapshot();
    drop((tree, db));

    // With its own log all is there.
    let db = open(&found.fork()).expect("opened");
    let tree = db.tree("t").expect("read").expect("the tree");
    assert_eq!(tree.get(&0u32.to_be_bytes()).expect("a get"), Some(vec![2; 200]));
    drop((tree, db));

    // With the older one the synced rows are not there; that is not to be believed.
    for (name, bytes) in &log {
        found.write_raw(name, bytes).expect("put back");
    }
    let error = open(&found).map(drop).expect_err("a log that is older than the pages");
    let told = error.to_string();
    let ends = format!("the redo log ends at position {log_end}, but pages with changes up to");
    assert!(matches!(error, Error::Damaged(_)) && told.contains(&ends), "{told}");
    assert!(told.contains("doublewrite-0"), "{told}");
}
