//! A tree with a damaged page can be dropped, and its sound pages are free afterwards: what cannot
//! be reached any more is little, and reported by the check.
use std::sync::Arc;

use weir::{Config, Db, Durability, SimVolume, Tree};

use crate::support::{assert_sound, tiny};

const PAGE: u64 = 4096;
const ROWS: u32 = 1_500;

fn open(volume: &SimVolume) -> Db {
    let config = Config { pages_max: 4096, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config).expect("a database")
}

fn fill(db: &Db, tree: &Tree) {
    for n in 0..ROWS {
        let len = if n % 150 == 7 { 9_000 } else { 100 };
        tree.put(&n.to_be_bytes(), &vec![n as u8; len], Durability::Lazy).expect("a row");
        db.step().expect("a step");
    }
}

/// A closed database with a tree to drop and one to keep.
fn made() -> (SimVolume, u64) {
    let volume = SimVolume::new(9);
    let db = open(&volume);
    for name in ["herons", "weirs"] {
        let tree = db.create_tree(name).expect("a tree");
        if name == "herons" {
            fill(&db, &tree);
        }
        tree.put(b"a row", b"to stay", Durability::Synced).expect("a row");
    }
    let used = db.check(&mut |_, _| {}).expect("a check").pages_used;
    db.close().expect("closed");
    (volume.snapshot(), used)
}

#[test]
fn whichever_page_is_damaged_the_tree_can_be_dropped() {
    let (volume, used) = made();
    let bytes = volume.read_raw("pages").expect("pages").len() as u64;
    let (mut dropped, mut whole, mut lost) = (0, 0, Vec::new());
    // The map, the catalog and the era are visible to all.
    for page in 4..bytes / PAGE {
        let volume = volume.fork();
        volume.corrupt("pages", page * PAGE + 700, 8).expect("damage");
        let db = open(&volume);
        let report = db.check(&mut |_, _| {}).expect("a check");
        if !report.problems.iter().any(|problem| problem.contains("herons")) {
            continue;
        }
        assert!(db.drop_tree("herons").expect("dropped"), "page {page}");
        for _ in 0..3 {
            db.step().expect("a step");
        }
        assert_eq!(db.tree_names().expect("names"), ["weirs"]);
        let report = db.check(&mut |_, _| {}).expect("a check");
        let undone = report.problems.iter().find(|problem| problem.contains("cannot be done"));
        assert_eq!(undone, None, "page {page}");
        lost.push(report.pages_used);
        whole += u32::from(report.problems.is_empty());
        dropped += 1;
        // What was given back is good for others, over a crash.
        let tree = db.create_tree("cranes").expect("a tree");
        fill(&db, &tree);
        tree.put(b"last", b"row", Durability::Synced).expect("a row");
        drop((tree, db));
        let db = open(&volume.crash(page));
        for (name, key) in [("weirs", &b"a row"[..]), ("cranes", b"last")] {
            let tree = db.tree(name).expect("read").expect("the tree");
            assert!(tree.get(key).expect("a read").is_some(), "page {page}");
            tree.check(&mut |_| {}).expect("sound");
        }
        if report.problems.is_empty() {
            assert_sound(&db);
        }
        db.close().expect("closed");
    }
    lost.sort_unstable();
    println!(
        "{dropped} pages, {whole} of them given back whole; in use after it: {lost:?} of {used}"
    );
    assert!(dropped > 40 && whole > 30, "{whole} of {dropped}");
    // A chain loses what is behind its damaged page; only the root takes all with it.
    let much = lost.iter().filter(|&&left| left > 10).count();
    assert!(much <= 1, "{lost:?}");
}
