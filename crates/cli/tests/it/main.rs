//! Runs the real `weir` command.
#![forbid(unsafe_code)]

mod address_space;
mod backup;
mod backup_resume;
mod bad_input;
mod bench;
mod codec;
mod commands;
mod compact;
mod dump;
mod encrypted;
mod forced;
mod kill;
mod lab;
mod pages;
mod read_only;
mod report;
mod salvage;
mod tpcc;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The command, with its output captured.
fn weir<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a command ended and what it printed.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the command starts");
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("errors are UTF-8"),
    }
}

/// Runs `weir` with these words and expects this exit code.
fn expect(code: i32, words: &[&str]) -> Ran {
    let ran = ran(&mut weir(words));
    assert_eq!(ran.code, Some(code), "weir {}: {ran:#?}", words.join(" "));
    ran
}

/// A directory that goes away with the test.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Scratch(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        text(&self.path(name))
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary directories have UTF-8 names").to_owned()
}

/// The words of a bench that is small and starts at once.
fn small_bench(workload: &str, dir: &str) -> Vec<String> {
    let flags = "--rows 10000 --threads 4 --warmup 0 --pool 32MiB --log 16MiB --no-raw";
    let mut words =
        vec!["bench".to_owned(), workload.to_owned(), "--dir".to_owned(), dir.to_owned()];
    words.extend(flags.split(' ').map(str::to_owned));
    words
}

/// Replaces the value of a flag.
fn with(mut words: Vec<String>, flag: &str, value: &str) -> Vec<String> {
    let at = words.iter().position(|word| word == flag).expect("the flag is there");
    words[at + 1] = value.to_owned();
    words
}

/// Sends a signal by name; std knows SIGKILL only.
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success(), "signal {name}");
}

/// Reads the child's output until a line contains `what`; gives back the reader.
fn wait_for_line(child: &mut Child, what: &str) -> (String, impl Read + use<>) {
    let mut reader = BufReader::new(child.stdout.take().expect("output is piped"));
    let mut all = String::new();
    while !all.contains(what) {
        let read = reader.read_line(&mut all).expect("output is UTF-8");
        assert_ne!(read, 0, "it ended without saying {what}: {all}");
    }
    (all, reader)
}
