//! Commands that only look change nothing, and need no more than to read: by another user, in a
//! directory that cannot be written to.
use crate::{Scratch, expect, ran, signal, small_bench, wait_for_line, weir};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// A user with no rights, on every Linux system.
const NOBODY: u32 = 65534;

/// All that can be seen of the files.
fn files(dir: &str) -> BTreeMap<String, (Vec<u8>, SystemTime, u32)> {
    let files = std::fs::read_dir(dir).expect("listed").map(|file| file.expect("a file"));
    let seen = |file: std::fs::DirEntry| {
        let data = file.metadata().expect("metadata");
        let bytes = std::fs::read(file.path()).expect("bytes");
        let time = data.modified().expect("a time");
        (file.file_name().into_string().expect("a name"), (bytes, time, data.mode()))
    };
    files.map(seen).collect()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// A database that was killed at work.
fn killed(dir: &str) {
    let mut child = weir(small_bench("update", dir)).spawn().expect("started");
    let (_, _rest) = wait_for_line(&mut child, " tps ");
    signal(&child, "-KILL");
    child.wait().expect("it ends");
}

#[test]
fn looking_changes_nothing() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    killed(&dir);
    let before = files(&dir);
    let check = expect(0, &["check", &dir]);
    assert!(
        check.out.ends_with("sound\n") && check.err.contains("files are as they were"),
        "{check:?}"
    );
    expect(0, &["stat", &dir]);
    let trees = expect(0, &["trees", &dir]).out;
    let tree = trees.lines().next().expect("a tree");
    let rows = expect(0, &["scan", &dir, tree, "--limit", "3"]).out;
    assert_eq!(rows.lines().count(), 3);
    assert!(files(&dir) == before, "a file has changed");
    let copy = scratch.text("copy");
    let copied = expect(0, &["copy", &dir, &copy]);
    assert!(copied.out.contains("rows"), "{copied:?}");
    assert!(files(&dir) == before, "a file has changed");
    assert_eq!(expect(0, &["scan", &copy, tree, "--limit", "3"]).out, rows);
    expect(0, &["check", &copy]);
    let again = expect(2, &["copy", &dir, &copy]);
    assert!(again.err.contains("copy"), "{again:?}");
}

/// Needs another user to be had: without root it tries with what modes alone keep from this one.
#[test]
fn a_user_that_may_only_read_sees_all() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    killed(&dir);
    let program = scratch.path("weir");
    std::fs::copy(env!("CARGO_BIN_EXE_weir"), &program).expect("a copy of the program");
    set_mode(scratch.0.path(), 0o755);
    set_mode(&program, 0o755);
    for file in std::fs::read_dir(&dir).expect("listed") {
        set_mode(&file.expect("a file").path(), 0o444);
    }
    set_mode(Path::new(&dir), 0o555);
    let is_root = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir("/");
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        ran(&mut command)
    };
    let before = files(&dir);
    let check = run(&["check", &dir]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.out.ends_with("sound\n"), "{check:?}");
    for words in [&["stat", &dir][..], &["trees", &dir]] {
        let ran = run(words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let put = run(&["put", &dir, "t", "k", "v"]);
    assert!(put.code != Some(0) && put.err.contains("ermission denied"), "{put:?}");
    assert!(files(&dir) == before, "a file has changed");
    set_mode(Path::new(&dir), 0o755);
}
