//! `weir compact`: trees made dense, here and by the process that has the database open.
use std::path::Path;
use std::time::{Duration, Instant};

use weir::{Background, Batch, Config, Db, Durability, Tree};

use crate::{Scratch, expect};

/// Keys in random order, nine tenths of which are deleted.
fn thinned(db: &Db, rows: u32) -> Tree {
    let tree = db.create_tree("rows").unwrap();
    let mut batch = Batch::new();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b1).to_be_bytes();
    (0..rows).for_each(|n| batch.put(&tree, &key(n), &[7; 200]));
    db.write(&batch, Durability::Lazy).unwrap();
    batch.clear();
    (0..rows).filter(|n| n % 10 > 0).for_each(|n| batch.delete(&tree, &key(n)));
    db.write(&batch, Durability::Lazy).unwrap();
    tree
}

fn leaves(tree: &Tree) -> u64 {
    tree.check(&mut |_| {}).unwrap().leaves
}

/// What is left lies in few leaves, of a small file.
#[test]
fn a_thinned_tree_is_made_dense() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = Config { background: Background::Manual, ..Config::default() };
    let db = Db::open(Path::new(&dir), config).unwrap();
    let before = leaves(&thinned(&db, 40_000));
    db.create_tree("empty").unwrap();
    db.close().unwrap();
    let unknown = expect(2, &["compact", &dir, "rows", "row"]);
    assert!(unknown.err.contains("'row'") && unknown.err.contains("empty, rows"), "{unknown:?}");
    let size =
        || std::os::unix::fs::MetadataExt::blocks(&scratch.path("db/pages").metadata().unwrap());
    let (long, ran) = (size(), expect(0, &["compact", &dir]));
    assert!(ran.out.contains("tree empty: 0 pages freed, 0 moved, 1 leaves"), "{ran:?}");
    assert!(ran.out.contains("tree rows: ") && ran.out.contains("data on disk: "), "{ran:?}");
    let check = expect(0, &["check", &dir]);
    assert!(check.out.contains("rows: 4000 rows") && check.out.ends_with("sound\n"), "{check:?}");
    let db = Db::open(Path::new(&dir), Config::default()).unwrap();
    let after = leaves(&db.tree("rows").unwrap().unwrap());
    assert!(after * 2 < before, "{after} of {before}");
    assert!(size() * 2 < long || !db.stats().gives_back, "{} of {long}", size());
    db.close().unwrap();
}

/// How many leaves there are when what is only marked deleted has gone.
fn settled(tree: &Tree) -> u64 {
    let (mut before, mut now) = (0, leaves(tree));
    wait_until("purging", || {
        std::thread::sleep(Duration::from_millis(300));
        (before, now) = (now, leaves(tree));
        before == now
    });
    now
}

/// What is left in the directory of requests and answers.
fn requests(scratch: &Scratch) -> Vec<String> {
    let names = std::fs::read_dir(scratch.path("db")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("compact")).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn compacted_through(config: Config, more: &[&str]) {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let run = |code: i32, words: &[&str]| {
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        expect(code, &words)
    };
    let db = Db::open(Path::new(&dir), config).unwrap();
    let tree = thinned(&db, 40_000);
    db.create_tree("line\nbreak").unwrap();
    let before = settled(&tree);
    let unknown = run(2, &["compact", &dir, "rows", "row"]);
    assert!(unknown.err.contains("no tree 'row'") && unknown.err.contains("rows"), "{unknown:?}");
    assert!(unknown.out.is_empty() && leaves(&tree) == before, "{unknown:?}");

    // Ctrl-C ends it, and keeps what is done.
    let words = ["compact", &dir, "rows", "--rate", "500KiB"];
    let slow = crate::weir(words.iter().chain(more)).spawn().unwrap();
    wait_until("a compaction", || leaves(&tree) < before - 10);
    let busy = run(2, &["compact", &dir]);
    assert!(busy.err.contains("compact.request") && busy.err.contains("is in use"), "{busy:?}");
    crate::signal(&slow, "-INT");
    let slow = slow.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&slow.stdout);
    assert!(slow.status.code() == Some(130) && out.contains("(interrupted)"), "{slow:?}");
    let between = leaves(&tree);
    assert!(between * 4 > before, "it was not ended: {between} of {before}");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(leaves(&tree), between, "it goes on");
    assert!(requests(&scratch).is_empty(), "{:?}", requests(&scratch));

    let ran = run(0, &["compact", &dir, "--rate", "1GiB"]);
    assert!(ran.out.contains("tree rows: ") && ran.out.contains("goes back"), "{ran:?}");
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("tree ")).count(), 2, "{ran:?}");
    let after = leaves(&tree);
    assert!(after * 2 < before && after < between, "{after} of {before}");
    assert!(requests(&scratch).is_empty(), "{:?}", requests(&scratch));
    drop(tree);
    db.close().unwrap();
    let check = run(0, &["check", &dir]);
    assert!(check.out.contains("rows: 4000 rows") && check.out.ends_with("sound\n"), "{check:?}");
}

#[test]
fn an_open_database_is_compacted_by_its_process() {
    compacted_through(Config::default(), &[]);
}

#[test]
fn so_is_one_that_is_encrypted() {
    let scratch = Scratch::new();
    let keys = scratch.text("keys");
    weir::KeyFile::generate(Path::new(&keys), false).unwrap();
    let provider = std::sync::Arc::new(weir::KeyFile::at(&keys));
    let encryption = Some(weir::Encryption::new(provider));
    let config = Config { encryption, ..Config::default() };
    compacted_through(config, &["--key-file", &keys]);
}

#[test]
fn a_request_of_before_is_forgotten_and_one_without_an_answer_withdrawn() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = Config { background: Background::Manual, ..Config::default() };
    let db = Db::open(Path::new(&dir), config).unwrap();
    thinned(&db, 40_000);
    let ran = expect(2, &["compact", &dir]);
    assert!(ran.err.contains("does not answer") && ran.err.contains("OPTIMIZE TABLE"), "{ran:?}");
    assert!(requests(&scratch).is_empty(), "{:?}", requests(&scratch));
    db.close().unwrap();
    // Both were killed: nothing asks any more.
    let mut request = b"end\n".to_vec();
    request.resize(4096, 0);
    std::fs::write(scratch.path("db/compact.request"), request).unwrap();
    let db = Db::open(Path::new(&dir), Config::default()).unwrap();
    wait_until("forgetting", || requests(&scratch).is_empty());
    let tree = db.tree("rows").unwrap().unwrap();
    let before = settled(&tree);
    expect(0, &["compact", &dir, "--rate", "1GiB"]);
    let after = leaves(&tree);
    assert!(after * 2 < before, "it was answered: {before} leaves, then {after}");
    db.close().unwrap();
}
