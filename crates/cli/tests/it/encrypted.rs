//! Key files and encrypted databases on the command line; what is seen in the files is tested in
//! `weir`.
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::{Scratch, expect};

#[test]
fn a_database_is_made_read_copied_and_backed_up_with_its_key() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.text(name);
    let (db, keys, other) = (at("db"), at("keys"), at("other"));
    for path in [&keys, &other] {
        assert!(expect(0, &["key", "new", path]).out.contains("version 1"));
    }
    assert!(expect(2, &["key", "new", &keys]).err.contains("weir key add"));
    assert!(expect(2, &["key", "add", &at("none")]).err.contains("weir key new"));
    let mode = std::fs::metadata(scratch.path("keys")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);

    expect(0, &["put", &db, "people", "ada", "countess", "--key-file", &keys]);
    let get = ["get", &db, "people", "ada"];
    let with = |args: &[&str], keys: &str| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        [args, vec!["--key-file".to_owned(), keys.to_owned()]].concat()
    };
    let run = |code, args: &[&str], keys: &str| {
        let args = with(args, keys);
        expect(code, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(run(0, &get, &keys).out, "countess\n");
    let told = expect(2, &get).err;
    assert!(told.contains("key 1, version 1") && told.contains("--key-file"), "{told}");
    assert!(run(2, &get, &other).err.contains("another key"));
    assert!(run(2, &get, &at("none")).err.contains("No such file"));
    for args in [&["check", &db][..], &["stat", &db], &["dump", "control", &db], &["trees", &db]] {
        assert!(expect(2, args).err.contains("key 1, version 1"), "{args:?}");
        run(0, args, &keys);
    }
    let told = expect(2, &["salvage", &db, &at("saved")]).err;
    assert!(told.contains("key 1, version 1"), "{told}");
    run(0, &["salvage", &db, &at("saved")], &keys);
    assert_eq!(run(0, &["get", &at("saved"), "people", "ada"], &keys).out, "countess\n");

    // By the environment, which no list of processes shows the key in either.
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let ran = weir.args(get).env("WEIR_KEY_FILE", &keys).output().unwrap();
    assert_eq!(ran.stdout, b"countess\n");

    run(0, &["copy", &db, &at("plain"), "--decrypt"], &keys);
    assert_eq!(expect(0, &["get", &at("plain"), "people", "ada"]).out, "countess\n");
    assert!(run(2, &["get", &at("plain"), "people", "ada"], &keys).err.contains("not encrypted"));
    expect(0, &["copy", &at("plain"), &at("again"), "--to-key-file", &other]);
    assert_eq!(run(0, &["get", &at("again"), "people", "ada"], &other).out, "countess\n");

    run(0, &["backup", &db, &at("full")], &keys);
    assert!(!std::fs::read(scratch.path("full")).unwrap().windows(8).any(|b| b == b"countess"));
    assert!(expect(2, &["verify", &at("full")]).err.contains("the backup is encrypted"));
    run(0, &["verify", &at("full")], &keys);
    run(0, &["put", &db, "people", "grace", "admiral"], &keys);
    run(0, &["backup", &db, &at("next"), "--since", &at("full")], &keys);
    expect(2, &["restore", &at("restored"), &at("full"), &at("next")]);
    run(0, &["restore", &at("restored"), &at("full"), &at("next")], &keys);
    assert_eq!(run(0, &["get", &at("restored"), "people", "grace"], &keys).out, "admiral\n");

    let old = std::fs::read(scratch.path("keys")).unwrap();
    assert!(expect(0, &["key", "add", &keys]).out.contains("version 2"));
    assert!(run(0, &["key", "rotate", &db], &keys).out.contains("key 1, version 2"));
    assert!(run(0, &["stat", &db], &keys).out.contains("AES-256-HCTR2, key 1, version 2"));
    std::fs::write(scratch.path("old"), old).unwrap();
    assert!(run(2, &get, &at("old")).err.contains("key 1, version 2"));
    // It was made with version 1.
    run(0, &["verify", &at("full")], &at("old"));
    assert!(expect(2, &["key", "rotate", &at("plain")]).err.contains("not encrypted"));
}
