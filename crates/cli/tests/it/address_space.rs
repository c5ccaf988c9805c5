//! How much address space a database takes goes by its size and its pool: where a process may have
//! little (`ulimit -v`, no overcommit), a small one opens, and what does not fit fails with how
//! much it is. And what a database takes beside a small pool is little.
use crate::{Scratch, expect, ran};
use std::process::{Command, Stdio};

/// `weir` with these words, in so many KiB of address space.
fn within(kib: u64, words: &[&str]) -> Command {
    limited(&format!("-v {kib}"), words)
}

fn limited(limit: &str, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit {limit}; exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_weir")).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_small_database_needs_little() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let rows = ["--rows", "20000", "--pool", "64MiB", "--log", "16MiB", "--dir", &dir];
    let bench =
        ["bench", "update", "--seconds", "1", "--warmup", "0", "--threads", "4", "--no-raw"];
    let words: Vec<&str> = bench.iter().chain(&rows).copied().collect();
    // A new database, and the same opened again. The C library's heaps for so many threads would
    // take all of it: with 512 MiB, three of four runs had nothing left for a thread's stack.
    for _ in 0..3 {
        let done = ran(&mut within(512 << 10, &words));
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let checked = ran(&mut within(512 << 10, &["check", &dir, "--pool", "64MiB"]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    expect(0, &["check", &dir]);
}

#[test]
fn what_does_not_fit_is_reported_with_its_size() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let words = ["bench", "update", "--rows", "1000", "--seconds", "1", "--no-raw", "--dir", &dir];
    let with_pool = |size| words.iter().copied().chain(["--pool", size]).collect::<Vec<&str>>();
    let refused = ran(&mut within(1 << 20, &with_pool("2GiB")));
    assert!(refused.code != Some(0), "{refused:?}");
    let told = "reserving 2 GiB for the pool: Cannot allocate memory";
    assert!(refused.err.contains(told), "{refused:?}");
    // With what there is, it is made after all.
    let done = ran(&mut within(1 << 20, &with_pool("64MiB")));
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    // In blocks of 512 bytes.
    for blocks in [0, 1, 100, 127, 400, 4000] {
        let put = ["put", &dir, "t", "k", "v"];
        let refused = ran(&mut limited(&format!("-f {blocks}"), &put));
        assert_eq!(refused.code, Some(2), "{blocks}: {refused:?}");
        assert!(refused.err.contains("ulimit -f"), "{blocks}: {refused:?}");
    }
    expect(0, &["put", &dir, "t", "k", "v"]);
    let refused = ran(&mut limited("-f 1", &["put", &dir, "t", "k", "w"]));
    assert!(refused.err.contains("ulimit -f"), "{refused:?}");
    assert_eq!(expect(0, &["get", &dir, "t", "k"]).out.trim(), "v");
}

/// The memory that process `id` has of its own now, in KiB, without the program's file; `None` when
/// it has ended.
fn own_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The most memory, in KiB, that a load of so many rows into a pool and a log of such sizes has.
fn loading_takes_kib(rows: &str, pool: &str, log: &str) -> u64 {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir"));
    bench.args(["bench", "update", "--rows", rows, "--pool", pool, "--log", log]);
    bench.args(["--threads", "2", "--durability", "lazy", "--seconds", "1", "--warmup", "0"]);
    bench.args(["--no-raw", "--dir", &dir]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = bench.spawn().expect("started");
    let mut most = 0;
    let ended = loop {
        most = most.max(own_kib(running.id()).unwrap_or(0));
        if let Some(ended) = running.try_wait().expect("waited for") {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(ended.success(), "{ended:?}");
    most
}

#[test]
fn loading_takes_little_beside_a_small_pool() {
    let most = loading_takes_kib("500000", "16MiB", "256MiB");
    // The pool and 4 MB that the bench holds: some 40 MB. It was 100 when large buffers came from
    // the allocator each time, and none knew how small the pool was.
    assert!((16 << 10..80 << 10).contains(&most), "{most} KiB");
}

#[test]
fn a_larger_pool_and_log_take_what_is_promised() {
    let most = loading_takes_kib("1000000", "64MiB", "1GiB");
    // 1.1 times the pool and 64 MiB (docs/operating/sizing.md), and what the bench holds.
    assert!((64 << 10..138 << 10).contains(&most), "{most} KiB");
}
