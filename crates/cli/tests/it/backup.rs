//! `weir backup`, `verify` and `restore`: codes and words, of a database that is closed, and of one
//! that another process has open; what is in a backup is tested in `weir`.
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Scratch, expect};

fn weir() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weir"))
}

#[test]
fn a_closed_database_is_backed_up_and_restored() {
    let scratch = Scratch::new();
    let (dir, again) = (scratch.text("db"), scratch.text("again"));
    let (full, next) = (scratch.text("full"), scratch.text("next"));
    let ran = expect(2, &["backup", &dir, &full]);
    assert!(ran.err.contains("no directory") && !scratch.path("full.part").exists(), "{ran:?}");
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let ran = expect(2, &["backup", &dir, &full, "--follow"]);
    assert!(ran.err.contains("nothing to follow"), "{ran:?}");
    let ran = expect(0, &["backup", &dir, &full]);
    assert!(ran.err.contains("pages") && ran.out.is_empty(), "{ran:?}");
    let ran = expect(2, &["backup", &dir, &full]);
    assert!(ran.err.contains("not overwritten"), "{ran:?}");
    expect(0, &["put", &dir, "people", "grace", "admiral"]);
    expect(0, &["backup", &dir, &next, "--since", &full]);
    for backup in [&full, &next] {
        assert!(expect(0, &["verify", backup]).out.ends_with("sound\n"));
    }
    let ran = expect(2, &["restore", &again, &next]);
    assert!(ran.err.contains("give that one before it"), "{ran:?}");
    assert!(!scratch.path("again").join("control").exists());
    expect(0, &["restore", &again, &full, &next]);
    assert_eq!(expect(0, &["get", &again, "people", "grace"]).out, "admiral\n");
    assert!(expect(0, &["check", &again]).out.contains("sound"));
    let ran = expect(2, &["restore", &again, &full]);
    assert!(ran.err.contains("a database in this directory already"), "{ran:?}");
    let ran = expect(2, &["backup", &again, &scratch.text("other"), "--since", &full]);
    assert!(ran.err.contains("make a full backup"), "{ran:?}");

    let mut bytes = std::fs::read(scratch.path("full")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(scratch.path("full"), &bytes).unwrap();
    assert!(expect(1, &["verify", &full]).out.contains("damaged at byte"));
    std::fs::write(scratch.path("full"), &bytes[..middle]).unwrap();
    assert!(expect(1, &["verify", &full]).out.contains("cut short"));
    expect(2, &["restore", &scratch.text("third"), &full]);
    expect(2, &["verify", &scratch.text("db/control")]);
}

#[test]
fn a_backup_goes_through_pipes() {
    let scratch = Scratch::new();
    let (dir, again) = (scratch.text("db"), scratch.text("again"));
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let mut from = weir().args(["backup", &dir, "-"]).stdout(Stdio::piped()).spawn().unwrap();
    let into = weir().args(["restore", &again, "-"]).stdin(from.stdout.take().unwrap()).output();
    assert!(from.wait().unwrap().success() && into.unwrap().status.success());
    assert_eq!(expect(0, &["get", &again, "people", "ada"]).out, "countess\n");
}

#[test]
fn a_database_that_is_open_is_backed_up_by_its_process() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = weir::Config { pool_bytes: 8 << 20, ..weir::Config::default() };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let tree = db.create_tree("rows").unwrap();
    let rows = (0..30_000u32).map(|n| (n.to_be_bytes(), [7; 300]));
    tree.bulk_load(rows).unwrap();
    let (full, next, again) = (scratch.text("full"), scratch.text("next"), scratch.text("again"));
    expect(0, &["backup", &dir, &full, "--rate", "1GiB"]);
    expect(0, &["verify", &full]);

    // One that follows, until it is interrupted.
    let mut follower = weir()
        .args(["backup", &dir, &next, "--since", &full, "--follow"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = scratch.path("next.part");
    let began = Instant::now();
    let wait = |what: &dyn Fn() -> bool| {
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(60), "it takes too long");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let len = || part.metadata().map_or(0, |m| m.len());
    let mut told = BufReader::new(follower.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.starts_with("following"), "{line}");
    tree.put(b"key", b"value", weir::Durability::Synced).unwrap();
    let before = len();
    wait(&|| len() > before);
    let killed = Command::new("kill").args(["-INT", &follower.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let ended = follower.wait().unwrap();
    let mut said = String::new();
    told.read_to_string(&mut said).unwrap();
    assert!(ended.success() && said.contains("position"), "{said}");
    expect(0, &["restore", &again, &full, &next]);
    assert_eq!(expect(0, &["get", &again, "rows", "key"]).out, "value\n");

    // What cannot be: the process that has it open says why.
    let other = scratch.text("other");
    expect(0, &["put", &other, "people", "ada", "countess"]);
    let foreign = scratch.text("foreign");
    expect(0, &["backup", &other, &foreign]);
    let ran = expect(2, &["backup", &dir, &scratch.text("never"), "--since", &foreign]);
    assert!(ran.err.contains("make a full backup"), "{ran:?}");
    assert!(!scratch.path("never").exists() && !scratch.path("never.part").exists());
    // Nothing is left of it, and the database is as it was.
    let left: Vec<_> = std::fs::read_dir(scratch.path("db"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    db.close().unwrap();
    expect(0, &["check", &dir]);
}

#[test]
fn a_damaged_page_is_made_again_from_a_backup_that_reaches_far_enough() {
    let scratch = Scratch::new();
    let (dir, full) = (scratch.text("db"), scratch.text("full"));
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    expect(0, &["backup", &dir, &full]);
    let ran = expect(2, &["repair", &dir, "--page", "4", "--from", &full]);
    assert!(ran.err.contains("is sound"), "{ran:?}");
    let ran = expect(2, &["repair", &dir, "--page", "4000000", "--from", &full]);
    assert!(ran.err.contains("there is no page"), "{ran:?}");
    let pages = scratch.path("db").join("pages");
    let damage = || {
        let mut bytes = std::fs::read(&pages).unwrap();
        bytes[4 * 8192 + 200] ^= 1;
        std::fs::write(&pages, bytes).unwrap();
    };
    damage();
    let ran = expect(0, &["repair", &dir, "--page", "4", "--from", &full]);
    assert!(ran.out.contains("page 4 is as it was"), "{ran:?}");
    assert!(expect(0, &["check", &dir]).out.contains("sound"));
    assert_eq!(expect(0, &["get", &dir, "people", "ada"]).out, "countess\n");
    // The database has gone on since.
    expect(0, &["put", &dir, "people", "ada", "lovelace"]);
    damage();
    let ran = expect(2, &["repair", &dir, "--page", "4", "--from", &full]);
    assert!(ran.err.contains("nothing says what page 4 held last"), "{ran:?}");
}

#[test]
fn one_that_follows_is_read_again_and_ends_where_it_is_damaged() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = weir::Config { pool_bytes: 8 << 20, ..weir::Config::default() };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let tree = db.create_tree("rows").unwrap();
    tree.bulk_load((0..10_000u32).map(|n| (n.to_be_bytes(), [7; 300]))).unwrap();
    let (full, again) = (scratch.text("full"), scratch.text("again"));
    let mut follower = weir()
        .args(["backup", &dir, &full, "--follow", "--verify-every", "1"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = BufReader::new(follower.stderr.take().unwrap());
    let mut line = String::new();
    says.read_line(&mut line).unwrap();
    assert!(line.starts_with("following"), "{line}");
    // What is whole is taken for whole, also while it is written.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) {
        tree.put(b"key", &[1; 5_000], weir::Durability::Synced).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(follower.try_wait().unwrap().is_none(), "it goes on");
    let part =
        std::fs::File::options().read(true).write(true).open(scratch.path("full.part")).unwrap();
    let (at, mut byte) = (1 << 20, [0]);
    part.read_exact_at(&mut byte, at).unwrap();
    part.write_all_at(&[!byte[0]], at).unwrap();
    // Nothing else ends it.
    let began = Instant::now();
    let ended = loop {
        match follower.try_wait().unwrap() {
            Some(ended) => break ended,
            None if began.elapsed() > Duration::from_secs(60) => {
                follower.kill().unwrap();
                panic!("the damage is not found");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut said = String::new();
    says.read_to_string(&mut said).unwrap();
    assert_eq!(ended.code(), Some(2), "{said}");
    assert!(said.contains("was read again, and is damaged: begin another"), "{said}");
    assert!(said.contains("full.part"), "{said}");
    assert!(!scratch.path("full").exists() && scratch.path("full.part").exists());
    // The database knows nothing of that, and another one may be made.
    expect(0, &["backup", &dir, &again, "--rate", "1GiB"]);
    expect(0, &["verify", &again]);
    db.close().unwrap();
    expect(2, &["backup", &dir, &again, "--verify-every", "1"]);
}
