//! What cannot run ends with code 2, says why, and changes nothing.
use crate::{Scratch, expect, ran, small_bench, weir};

#[test]
fn help_and_version() {
    let help = expect(0, &["--help"]);
    for word in ["bench", "check", "stat", "get", "put", "delete", "scan", "trees", "Examples"] {
        assert!(help.out.contains(word), "{word}: {}", help.out);
    }
    let update = expect(0, &["bench", "update", "--help"]);
    let flags = concat!(
        "--dir --rows --threads --seconds --durability --pool --log --page-size --disk --json ",
        "--force --warmup --fresh --doublewrite --doublewrite-files --doublewrite-pages --ack-file"
    );
    for flag in flags.split_whitespace() {
        assert!(update.out.contains(flag), "{flag}: {}", update.out);
    }
    let version = expect(0, &["--version"]);
    assert_eq!(version.out, format!("weir {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(ran(&mut weir::<&str>([])).code, Some(2), "no command is no success");
}

/// Words after `bench update` and what the error must contain.
const WRONG: &[(&str, &[&str])] = &[
    ("--pool 12parsecs", &["12parsecs", "64MiB"]),
    ("--log -1", &["-1"]),
    ("--log 99999999TiB", &["99999999TiB"]),
    ("--log 0", &["0 bytes"]),
    ("--log 1", &["1 B", "640 KiB"]),
    ("--pool 0", &["0 B", "256 KiB"]),
    ("--recovery-seconds nan", &["NaN seconds"]),
    ("--recovery-seconds=-1", &["-1 seconds"]),
    ("--ack-file no/such/acks", &["no/such"]),
    ("--ack-file Cargo.toml", &["Cargo.toml is there and is no ack file"]),
    ("--rows many", &["many"]),
    ("--rows 0", &["0 rows"]),
    ("--threads 0", &["0 threads"]),
    ("--threads x", &["x", "2:20s"]),
    ("--threads 2:20s,3 --seconds 5", &["--seconds"]),
    ("--seconds 0", &["0 seconds"]),
    ("--durability hopefully", &["hopefully", "synced"]),
    ("--disk floppy", &["floppy", "iops", "sata-ssd", "cloud-slices"]),
    ("--page-size 5000", &["5000"]),
    ("--doublewrite maybe", &["maybe", "detect-only"]),
    ("--doublewrite-files 65", &["65", "1 to 64"]),
    ("--doublewrite-files 0", &["0 files"]),
    ("--doublewrite-pages 337", &["337", "1 to 336"]),
    ("--doublewrite-pages 0", &["0 pages"]),
    ("--http 0.0.0.0:9600", &["0.0.0.0:9600", "--http-public"]),
    ("--http nowhere", &["nowhere", "127.0.0.1:9600"]),
    ("--http-public", &["--http"]),
    ("--frobnicate", &["--frobnicate"]),
];

#[test]
fn wrong_words_are_named() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    for (words, expected) in WRONG {
        let mut all = vec!["bench", "update", "--dir", &dir, "--no-raw"];
        all.extend(words.split(' '));
        let ran = expect(2, &all);
        for word in *expected {
            assert!(ran.err.contains(word), "{words}: no '{word}' in {}", ran.err);
        }
        assert!(!scratch.path("db").exists(), "{words}: made before it was refused");
    }
}

#[test]
fn a_taken_address_is_reported_before_a_database_is_made() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = expect(2, &["bench", "update", "--dir", &dir, "--http", &address]);
    assert!(ran.err.contains(&address) && ran.err.contains("--http"), "{}", ran.err);
    assert!(!scratch.path("db").exists());
}

#[test]
fn an_unknown_experiment_lists_those_there_are() {
    let list = expect(0, &["lab", "list"]);
    let of_seeds = list.out.lines().filter(|line| line.contains("seed ")).count();
    assert_eq!(of_seeds, 14, "{}", list.out);
    for which in ["15", "0", "every", "-"] {
        let ran = expect(2, &["lab", "run", which, "--quick"]);
        assert!(ran.err.contains("waves") && ran.err.contains("'all'"), "{which}: {}", ran.err);
    }
    let ran = expect(2, &["lab", "run", "5", "--quick", "--policy", "brave"]);
    assert!(ran.err.contains("brave") && ran.err.contains("mysql_5_6"), "{}", ran.err);
    let dir = Scratch::new().text("lab");
    let absent = ["lab", "run", "5", "--quick", "--policy", "reflex", "--dir", &dir];
    let ran = expect(2, &absent);
    assert!(ran.err.contains("it has deadline, mysql_8"), "{}", ran.err);
}

#[test]
fn a_report_is_never_replaced_unasked() {
    let scratch = Scratch::new();
    let (dir, json) = (scratch.text("db"), scratch.text("r.json"));
    std::fs::write(&json, "precious").unwrap();
    let ran = expect(2, &["bench", "update", "--dir", &dir, "--json", &json]);
    assert!(ran.err.contains("--force"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&json).unwrap(), "precious");
    let nowhere = scratch.text("no/such/dir/r.json");
    let ran = expect(2, &["bench", "update", "--dir", &dir, "--json", &nowhere]);
    assert!(ran.err.contains("no/such/dir"), "{}", ran.err);
    assert!(!scratch.path("db").exists(), "it could have known before making a database");
}

#[test]
fn nothing_is_made_by_looking() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    for words in [
        &["check", &dir][..],
        &["stat", &dir],
        &["trees", &dir],
        &["get", &dir, "t", "k"],
        &["delete", &dir, "t", "k"],
        &["scan", &dir, "t"],
        &["bench", "verify", "--dir", &dir],
    ] {
        let ran = expect(2, words);
        assert!(ran.err.contains(&dir), "{words:?}: {}", ran.err);
    }
    assert!(!scratch.path("db").exists());
    std::fs::create_dir(&dir).unwrap();
    for words in [&["check", &dir][..], &["bench", "verify", "--dir", &dir]] {
        let ran = expect(2, words);
        assert!(ran.err.contains("no database"), "{words:?}: {}", ran.err);
    }
    assert!(std::fs::read_dir(&dir).unwrap().next().is_none(), "an empty directory stays so");
}

#[test]
fn foreign_files_stay_as_they_are() {
    let scratch = Scratch::new();
    let dir = scratch.text("photos");
    std::fs::create_dir(&dir).unwrap();
    let theirs = [("LOCK", "of the album"), ("cat.jpg", "meow")];
    for (name, text) in theirs {
        std::fs::write(scratch.path("photos").join(name), text).unwrap();
    }
    let bench = small_bench("update", &dir);
    for words in [
        &["check", &dir][..],
        &["stat", &dir],
        &["put", &dir, "t", "k", "v"],
        &bench.iter().map(String::as_str).collect::<Vec<_>>(),
    ] {
        let ran = expect(2, words);
        assert!(ran.err.contains("photos"), "{words:?}: {}", ran.err);
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), theirs.len(), "something is left behind");

    let file = scratch.text("photos/cat.jpg");
    let bench = small_bench("update", &file);
    for words in [
        &["check", &file][..],
        &["put", &file, "t", "k", "v"],
        &bench.iter().map(String::as_str).collect::<Vec<_>>(),
    ] {
        let ran = expect(2, words);
        assert!(ran.err.contains("cat.jpg") && ran.err.contains("a file"), "{}", ran.err);
    }
    for (name, text) in theirs {
        let path = scratch.path("photos").join(name);
        assert_eq!(std::fs::read_to_string(path).unwrap(), text, "{name}");
    }
}
