//! `weir codec`: shown and changed, here and by the process that has the database open; kept by
//! what makes another database of one.
use std::path::Path;

use weir::{Background, Config, Db, Durability, PageCodec, StoreKind};

use crate::{Scratch, expect, ran, weir};

fn in_segments() -> Config {
    Config { store: Some(StoreKind::Log), pool_bytes: 16 << 20, ..Config::default() }
}

fn fill(db: &Db, name: &str) {
    let tree = db.open_tree(name).unwrap();
    for n in 0..2_000u32 {
        let value = format!("heron {n} ").repeat(20);
        tree.put(&n.to_be_bytes(), value.as_bytes(), Durability::Lazy).unwrap();
    }
    db.checkpoint().unwrap();
}

/// Pages that `act` has written: not packed, by LZ4, by zstd.
fn written(db: &Db, act: impl FnOnce()) -> [u64; 3] {
    let look = || db.stats().segments.unwrap().pages_by_codec;
    let before = look();
    act();
    let after = look();
    std::array::from_fn(|i| after[i] - before[i])
}

#[test]
fn it_is_shown_and_changed() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    expect(2, &["codec", &dir]);
    assert!(!scratch.path("db").exists(), "looking makes nothing");
    let db = Db::open(Path::new(&dir), in_segments()).unwrap();
    db.create_tree_with("packed", Some(PageCodec::Zstd)).unwrap();
    fill(&db, "any");
    db.close().unwrap();
    assert_eq!(expect(0, &["codec", &dir]).out, "any\tdefault\npacked\tzstd\n");
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tzstd\n");
    assert_eq!(expect(0, &["codec", &dir, "any", "lz4"]).out, "any\tlz4\n");
    assert_eq!(expect(0, &["codec", &dir, "packed", "none"]).out, "packed\tnone\n");
    let all = expect(0, &["codec", &dir]);
    assert_eq!((&all.out[..], &all.err[..]), ("any\tlz4\npacked\tnone\n", ""));
    expect(0, &["codec", &dir, "packed", "default"]);
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tdefault\n");
    let ran = expect(2, &["codec", &dir, "other", "lz4"]);
    assert!(ran.err.contains("'other'") && ran.err.contains("any, packed"), "{ran:?}");
    let ran = expect(2, &["codec", &dir, "any", "gzip"]);
    assert!(ran.err.contains("'gzip' is no codec") && ran.err.contains("default"), "{ran:?}");
    assert_eq!(expect(0, &["codec", &dir]).out, "any\tlz4\npacked\tdefault\n", "as it was");
    let db = Db::open(Path::new(&dir), in_segments()).unwrap();
    let pages = written(&db, || fill(&db, "any"));
    assert!(pages[PageCodec::Lz4 as usize] * 2 > pages.iter().sum(), "{pages:?}");
    db.close().unwrap();
    // In place it is kept, and said to have no effect.
    let place = scratch.text("place");
    expect(0, &["copy", &dir, &place, "--store", "in-place"]);
    let ran = expect(0, &["codec", &place, "packed", "zstd"]);
    assert!(ran.out == "packed\tzstd\n" && ran.err.contains("none are packed"), "{ran:?}");
}

/// All that makes another database of one keeps what its trees ask for.
#[test]
fn copies_backups_and_what_is_salvaged_keep_it() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let db = Db::open(Path::new(&dir), in_segments()).unwrap();
    let codecs = [Some(PageCodec::None), Some(PageCodec::Lz4), Some(PageCodec::Zstd), None];
    for (name, codec) in ["a", "b", "c", "d"].into_iter().zip(codecs) {
        db.create_tree_with(name, codec).unwrap();
        fill(&db, name);
    }
    db.close().unwrap();
    let asked = "a\tnone\nb\tlz4\nc\tzstd\nd\tdefault\n";
    let to = |name: &str| scratch.text(name);
    expect(0, &["copy", &dir, &to("copy")]);
    expect(0, &["copy", &dir, &to("place"), "--store", "in-place"]);
    expect(0, &["copy", &to("place"), &to("log"), "--store", "log"]);
    expect(0, &["backup", &dir, &to("backup")]);
    expect(0, &["restore", &to("restored"), &to("backup")]);
    expect(0, &["restore", &to("restored place"), &to("backup"), "--store", "in-place"]);
    expect(0, &["salvage", &dir, &to("saved")]);
    expect(0, &["salvage", &dir, &to("saved place"), "--store", "in-place"]);
    expect(0, &["salvage", &to("saved place"), &to("saved again"), "--store", "log"]);
    let in_segments = ["copy", "log", "restored", "saved", "saved again"];
    for name in in_segments.into_iter().chain(["place", "restored place", "saved place"]) {
        let ran = expect(0, &["codec", &to(name)]);
        assert_eq!(ran.out, asked, "{name}");
        let is_packed = in_segments.contains(&name);
        assert_eq!(ran.err.is_empty(), is_packed, "{name}: {ran:?}");
        assert_eq!(scratch.path(name).join("segments").exists(), is_packed, "{name}");
        expect(0, &["check", &to(name)]);
    }
    // And its pages are written so.
    for name in ["copy", "saved"] {
        let db = Db::open(&scratch.path(name), in_segments_there()).unwrap();
        for (name, codec) in ["a", "b", "c"].into_iter().zip(codecs.into_iter().flatten()) {
            let pages = written(&db, || fill(&db, name));
            assert!(pages[codec as usize] * 2 > pages.iter().sum(), "{name}: {pages:?}");
        }
        db.close().unwrap();
    }
}

fn in_segments_there() -> Config {
    Config { store: None, ..in_segments() }
}

/// What is left in the directory of requests and answers.
fn requests(scratch: &Scratch) -> usize {
    let names = std::fs::read_dir(scratch.path("db")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("codec")).count()
}

#[test]
fn an_open_database_shows_and_changes_it_through_its_process() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    // What another process asked for that was killed is not answered.
    let db = Db::open(Path::new(&dir), in_segments()).unwrap();
    db.create_tree_with("packed", Some(PageCodec::Zstd)).unwrap();
    fill(&db, "line\nbreak");
    db.close().unwrap();
    let mut request = b"tree 7061636b6564\ncodec none\nend\n".to_vec();
    request.resize(4096, 0);
    std::fs::write(scratch.path("db/codec.request"), request).unwrap();
    let db = Db::open(Path::new(&dir), in_segments_there()).unwrap();
    let began = std::time::Instant::now();
    while requests(&scratch) > 0 {
        assert!(began.elapsed().as_secs() < 60, "it is still there");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tzstd\n");
    assert_eq!(expect(0, &["codec", &dir, "packed", "lz4"]).out, "packed\tlz4\n");
    let codec = |name: &str| db.begin(weir::TxnOptions::default()).codec(name).unwrap().unwrap();
    assert_eq!(codec("packed"), Some(PageCodec::Lz4));
    let pages = written(&db, || fill(&db, "packed"));
    assert!(pages[PageCodec::Lz4 as usize] * 2 > pages.iter().sum(), "{pages:?}");
    let all = expect(0, &["codec", &dir]);
    assert_eq!(all.out.lines().count(), 2, "{all:?}");
    assert!(all.out.ends_with("packed\tlz4\n") && all.err.is_empty(), "{all:?}");
    let unknown = expect(2, &["codec", &dir, "other", "lz4"]);
    assert!(unknown.err.contains("no tree 'other'") && unknown.err.contains("packed"));
    assert!(unknown.err.contains("is in use"), "{unknown:?}");
    // A transaction that has not ended has the entry.
    let mut txn = db.begin(weir::TxnOptions::default());
    assert!(txn.set_codec("packed", None).unwrap());
    let locked = expect(2, &["codec", &dir, "packed", "none"]);
    assert!(locked.err.contains("it could not") && locked.err.contains("CODEC="), "{locked:?}");
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tlz4\n");
    txn.commit_durably(Durability::Synced).unwrap();
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tdefault\n");
    assert_eq!(requests(&scratch), 0);
    expect(0, &["codec", &dir, "packed", "none"]);
    // Killed: what was said to be changed is changed.
    let killed = scratch.text("killed");
    std::fs::create_dir(&killed).unwrap();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), Path::new(&killed).join(entry.file_name())).unwrap();
    }
    assert_eq!(expect(0, &["codec", &killed, "packed"]).out, "packed\tnone\n");
    db.close().unwrap();
    assert_eq!(expect(0, &["codec", &dir, "packed"]).out, "packed\tnone\n");
}

#[test]
fn it_is_changed_in_the_middle_of_a_compaction() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let db = Db::open(Path::new(&dir), in_segments()).unwrap();
    for n in 0..8 {
        fill(&db, &format!("tree {n}"));
    }
    let slow = weir(["compact", &dir, "--rate", "100KiB"]).spawn().unwrap();
    let began = std::time::Instant::now();
    while !scratch.path("db/compact.answer").exists() {
        assert!(began.elapsed().as_secs() < 60, "a compaction takes long to begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    expect(0, &["codec", &dir, "tree 7", "lz4"]);
    assert!(scratch.path("db/compact.request").exists(), "it was over already");
    crate::signal(&slow, "-INT");
    slow.wait_with_output().unwrap();
    db.close().unwrap();
    assert!(expect(0, &["codec", &dir]).out.ends_with("tree 7\tlz4\n"));
}

#[test]
fn one_that_does_not_answer_is_left_as_it_is() {
    let scratch = Scratch::new();
    let config = Config { background: Background::Manual, ..in_segments() };
    let db = Db::open(&scratch.path("db"), config).unwrap();
    db.create_tree("t").unwrap();
    let ran = ran(&mut weir(["codec", &scratch.text("db"), "t", "lz4"]));
    assert!(ran.code == Some(2) && ran.err.contains("does not answer"), "{ran:?}");
    assert_eq!(requests(&scratch), 0);
    db.close().unwrap();
    assert_eq!(expect(0, &["codec", &scratch.text("db")]).out, "t\tdefault\n");
}
