//! `weir backup --resume`: backups that were killed, lost their database's process or met a full
//! disk, gone on with; what is in them is tested in `weir`.
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Scratch, expect};

fn weir() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weir"))
}

/// The names of what is left of requests in the database's directory.
fn requests(scratch: &Scratch) -> Vec<String> {
    let names = std::fs::read_dir(scratch.path("db")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("backup")).collect()
}

/// Starts a backup that takes its time, and kills the command when so much is there.
fn killed(scratch: &Scratch, to: &str, bytes: u64) {
    killed_with(scratch, to, bytes, &[]);
}

/// As [`killed`], with further words of the command.
fn killed_with(scratch: &Scratch, to: &str, bytes: u64, words: &[&str]) {
    let dir = scratch.text("db");
    let mut command = weir()
        .args(["backup", &dir, &scratch.text(to), "--rate", "4MiB"])
        .args(words)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let part = scratch.path(&format!("{to}.part"));
    let began = Instant::now();
    while part.metadata().map_or(0, |m| m.len()) < bytes {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes too long");
        assert!(command.try_wait().unwrap().is_none(), "it was faster");
        std::thread::sleep(Duration::from_millis(20));
    }
    command.kill().unwrap();
    command.wait().unwrap();
}

#[test]
fn a_backup_that_was_killed_is_gone_on_with() {
    let scratch = Scratch::new();
    let (dir, full, again) = (scratch.text("db"), scratch.text("full"), scratch.text("again"));
    let config = weir::Config { pool_bytes: 8 << 20, ..weir::Config::default() };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let tree = db.create_tree("rows").unwrap();
    tree.bulk_load((0..60_000u32).map(|n| (n.to_be_bytes(), [7; 300]))).unwrap();
    db.checkpoint().unwrap();
    let part = scratch.path("full.part");

    let ran = expect(2, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("full.part"), "{ran:?}");
    let ran = expect(2, &["backup", &dir, "-", "--resume"]);
    assert!(ran.err.contains("name a file"), "{ran:?}");

    // Of a database that is open: by its process, as often as it takes.
    killed(&scratch, "full", 3 << 20);
    let ran = expect(2, &["backup", &dir, &full]);
    assert!(ran.err.contains("--resume goes on with it"), "{ran:?}");
    for n in (0..60_000u32).step_by(7) {
        tree.put(&n.to_be_bytes(), &[8; 200], weir::Durability::Lazy).unwrap();
    }
    tree.put(b"key", b"value", weir::Durability::Synced).unwrap();
    // That the command is not there any more the process finds out by itself.
    let began = Instant::now();
    while scratch.path("db/backup.request").exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(50));
    }
    // A foreign one is refused, and stays as it is.
    let other = scratch.text("other");
    expect(0, &["put", &other, "people", "ada", "countess"]);
    let before = std::fs::read(&part).unwrap();
    let ran = expect(2, &["backup", &other, &full, "--resume"]);
    assert!(ran.err.contains("begin another backup"), "{ran:?}");
    assert!(std::fs::read(&part).unwrap() == before);

    let ran = expect(0, &["backup", &dir, &full, "--resume", "--rate", "1GiB"]);
    assert!(ran.err.contains("going on behind") && ran.err.contains("pages"), "{ran:?}");
    assert!(!part.exists() && requests(&scratch).is_empty(), "{:?}", requests(&scratch));
    assert!(expect(0, &["verify", &full]).out.ends_with("sound\n"));
    let ran = expect(0, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("it was finished already"), "{ran:?}");
    expect(0, &["restore", &again, &full]);
    db.close().unwrap();
    let rows = |dir: &str| expect(0, &["scan", dir, "rows"]).out;
    assert!(rows(&again) == rows(&dir), "the restored rows are others");
    assert!(expect(0, &["check", &again]).out.ends_with("sound\n"));

    // Of one that no process has open any more; only the name, or the end, may be missing.
    let bytes = std::fs::read(scratch.path("full")).unwrap();
    std::fs::remove_file(scratch.path("full")).unwrap();
    for (number, keep) in [bytes.len() / 3, bytes.len() - 1, bytes.len()].into_iter().enumerate() {
        std::fs::write(&part, &bytes[..keep]).unwrap();
        let ran = expect(0, &["backup", &dir, &full, "--resume"]);
        assert_eq!(ran.err.contains("going on behind"), number == 0, "{ran:?}");
        let to = scratch.text(&format!("to {number}"));
        expect(0, &["restore", &to, &full]);
        assert!(rows(&to) == rows(&dir), "{number}");
        std::fs::rename(scratch.path("full"), scratch.path("done")).unwrap();
    }
    for (bytes, why) in [(&bytes[..100], "cut short"), (b"something else", "not a backup")] {
        std::fs::write(&part, bytes).unwrap();
        let ran = expect(2, &["backup", &dir, &full, "--resume"]);
        assert!(ran.err.contains(why), "{ran:?}");
    }
}

#[test]
fn a_backup_on_a_full_disk_is_gone_on_with_when_there_is_room() {
    let scratch = Scratch::new();
    let (dir, full, again) = (scratch.text("db"), scratch.text("full"), scratch.text("again"));
    let mut words = crate::small_bench("read", &dir);
    words.extend(["--seconds".to_owned(), "1".to_owned()]);
    assert_eq!(crate::ran(&mut crate::weir(&words)).code, Some(0));
    // A file that may have 200 KiB is as a disk that is full, to one that does not mind the signal.
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_weir");
    let ran = Command::new("bash").args(["-c", script, program, "backup", &dir, &full]).output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("full.part: the same with --resume goes on with it"), "{said}");
    let ran = expect(0, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("going on behind"), "{ran:?}");
    expect(0, &["restore", &again, &full]);
    let trees = expect(0, &["trees", &dir]).out;
    for tree in trees.lines() {
        let rows = |dir: &str| expect(0, &["scan", dir, tree]).out;
        assert!(rows(&again) == rows(&dir), "{tree}");
    }
}

#[test]
fn a_backup_of_a_process_that_was_killed_is_gone_on_with() {
    let scratch = Scratch::new();
    let (dir, full, again) = (scratch.text("db"), scratch.text("full"), scratch.text("again"));
    let mut work = crate::weir(crate::small_bench("update", &dir)).spawn().unwrap();
    let (_, _rest) = crate::wait_for_line(&mut work, " tps ");
    let backup = weir()
        .args(["backup", &dir, &full, "--rate", "1MiB"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = scratch.path("full.part");
    let began = Instant::now();
    while part.metadata().map_or(0, |m| m.len()) < 600 << 10 {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
    work.kill().unwrap();
    work.wait().unwrap();
    let ran = backup.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("--resume goes on with it"), "{said}");
    let ran = expect(0, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("going on behind"), "{ran:?}");
    expect(0, &["restore", &again, &full]);
    assert!(expect(0, &["check", &again]).out.ends_with("sound\n"));
    for tree in expect(0, &["trees", &dir]).out.lines() {
        let rows = |dir: &str| expect(0, &["scan", dir, tree]).out;
        assert!(rows(&again) == rows(&dir), "{tree}");
    }
}

#[test]
fn a_backup_that_is_being_written_is_not_gone_on_with() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = weir::Config { pool_bytes: 8 << 20, ..weir::Config::default() };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let tree = db.create_tree("rows").unwrap();
    tree.bulk_load((0..20_000u32).map(|n| (n.to_be_bytes(), [7; 300]))).unwrap();
    let full = scratch.text("full");
    let mut first = weir().args(["backup", &dir, &full, "--rate", "1MiB"]).spawn().unwrap();
    let began = Instant::now();
    while scratch.path("full.part").metadata().map_or(0, |m| m.len()) < 64 << 10 {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = expect(2, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("another backup writes"), "{ran:?}");
    crate::signal(&first, "-INT");
    assert_eq!(first.wait().unwrap().code(), Some(130));
    db.close().unwrap();
    // Ctrl-C is no other end than any.
    expect(0, &["backup", &dir, &full, "--resume"]);
    expect(0, &["verify", &full]);
}

/// Of an encrypted database: by its process and without, with the keys only.
#[test]
fn a_backup_of_an_encrypted_database_is_gone_on_with() {
    let scratch = Scratch::new();
    let (dir, full, again) = (scratch.text("db"), scratch.text("full"), scratch.text("again"));
    let [keys, others] = ["keys", "others"].map(|name| {
        weir::KeyFile::generate(&scratch.path(name), false).unwrap();
        scratch.text(name)
    });
    let encryption = weir::Encryption::new(std::sync::Arc::new(weir::KeyFile::at(&keys)));
    let config = weir::Config {
        pool_bytes: 8 << 20,
        encryption: Some(encryption),
        ..weir::Config::default()
    };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let tree = db.create_tree("rows").unwrap();
    tree.bulk_load((0..60_000u32).map(|n| (n.to_be_bytes(), b"known text".repeat(30)))).unwrap();
    db.checkpoint().unwrap();
    let part = scratch.path("full.part");
    let with = |code: i32, keys: &str, words: &[&str]| {
        let words: Vec<&str> = words.iter().chain(&["--key-file", keys]).copied().collect();
        expect(code, &words)
    };
    let killed = |bytes: u64| {
        let mut words = vec!["--key-file", keys.as_str()];
        words.extend(part.exists().then_some("--resume"));
        killed_with(&scratch, "full", bytes, &words);
        let began = Instant::now();
        while scratch.path("db/backup.request").exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "it takes too long");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let is_sealed = || {
        let bytes = std::fs::read(&part).unwrap();
        assert!(!bytes.windows(20).any(|bytes| bytes == b"known textknown text"));
        bytes
    };
    killed(3 << 20);
    // With another key, or none, nothing is touched.
    let before = is_sealed();
    let ran = with(2, &others, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("it is another key"), "{ran:?}");
    let ran = expect(2, &["backup", &dir, &full, "--resume"]);
    assert!(ran.err.contains("--key-file"), "{ran:?}");
    assert!(std::fs::read(&part).unwrap() == before, "it was touched");
    for n in (0..60_000u32).step_by(7) {
        tree.put(&n.to_be_bytes(), &[8; 200], weir::Durability::Lazy).unwrap();
    }
    tree.put(b"key", b"value", weir::Durability::Synced).unwrap();
    // Cut off a second time, and the key rotated in between.
    killed(8 << 20);
    let second = is_sealed();
    assert!(second[..1 << 20] == before[..1 << 20] && second.len() > before.len());
    expect(0, &["key", "add", &keys]);
    db.rotate_key().unwrap();
    let ran = with(0, &keys, &["backup", &dir, &full, "--resume", "--rate", "1GiB"]);
    assert!(ran.err.contains("going on behind") && ran.err.contains("pages"), "{ran:?}");
    assert!(!part.exists() && requests(&scratch).is_empty(), "{:?}", requests(&scratch));
    assert!(with(0, &keys, &["verify", &full]).out.ends_with("sound\n"));
    with(0, &keys, &["restore", &again, &full]);
    drop(tree);
    db.close().unwrap();
    let rows = |dir: &str| with(0, &keys, &["scan", dir, "rows"]).out;
    assert!(rows(&again) == rows(&dir), "the restored rows are others");
    assert!(with(0, &keys, &["check", &again]).out.ends_with("sound\n"));

    // Of one that no process has open any more; only the name, or the last piece, may be missing.
    let bytes = std::fs::read(&full).unwrap();
    std::fs::remove_file(&full).unwrap();
    for (number, keep) in [bytes.len() / 3, bytes.len() - 1, bytes.len()].into_iter().enumerate() {
        std::fs::write(&part, &bytes[..keep]).unwrap();
        let ran = with(0, &keys, &["backup", &dir, &full, "--resume"]);
        assert_eq!(ran.err.contains("going on behind"), number < 2, "{ran:?}");
        let to = scratch.text(&format!("to {number}"));
        with(0, &keys, &["restore", &to, &full]);
        assert!(rows(&to) == rows(&dir), "{number}");
        std::fs::remove_file(&full).unwrap();
    }
    // Of another database that is open: the process says so, and the file stays as it is.
    let other = scratch.text("other");
    let encryption = weir::Encryption::new(std::sync::Arc::new(weir::KeyFile::at(&keys)));
    let config = weir::Config { encryption: Some(encryption), ..weir::Config::default() };
    let open = weir::Db::open(&scratch.path("other"), config).unwrap();
    std::fs::write(&part, &before).unwrap();
    let ran = with(2, &keys, &["backup", &other, &full, "--resume"]);
    assert!(ran.err.contains("begin another backup"), "{ran:?}");
    assert!(std::fs::read(&part).unwrap() == before);
    drop(open);
}
