//! What a process that had a database open has left of it, with the GNU C library.
use std::process::Command;

use weirdb::{Config, Db, Durability};

/// Runs the test of this file alone, with its database there.
const ALONE: &str = "WEIRDB_TEST_MEMORY";

/// The memory that this process has of its own, without files and programs, in KiB.
fn own_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

fn open(path: &std::path::Path) -> Db {
    let config = Config::new().cache_bytes(256 << 20).log_bytes(256 << 20);
    config.durability(Durability::Lazy).open(path).expect("opened")
}

/// Threads with heaps of their own, several times: arrays of megabytes are freed, and the next are
/// taken from a heap instead of the system.
fn work(path: &std::path::Path) {
    for round in 0..3_u64 {
        let db = open(path);
        let tree = db.open_tree("t").expect("there");
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let tree = &tree;
                scope.spawn(move || {
                    for number in (0..10_000).map(|n| (thread * 10_000 + n) * 3 + round) {
                        tree.put(number.to_be_bytes(), [7_u8; 300]).expect("put");
                    }
                });
            }
        });
        drop(tree);
        db.close().expect("closed");
    }
}

/// A database that is closed leaves its process as it was: with little memory, what stays is taken
/// from the next, and from the programs' own pages. 3 MiB stay, 11 where the heap is not trimmed,
/// and 45 where large arrays were in it.
#[test]
fn a_closed_database_leaves_no_memory_behind() {
    if let Some(path) = std::env::var_os(ALONE) {
        let before = own_kib();
        work(std::path::Path::new(&path));
        let left = own_kib().saturating_sub(before);
        assert!(left < 6 << 10, "{left} KiB are left, of {before} before");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "memory::a_closed_database_leaves_no_memory_behind"]);
    // Ended threads' stacks are kept by the C library as well.
    command.env("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0");
    let output = command.env(ALONE, dir.path().join("db")).output().expect("run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
