//! kill -9 under load, again and again: every acknowledged change must be there.
use crate::{Scratch, expect, ran, small_bench, weir};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const KILLS: u64 = 50;

#[test]
fn fifty_kills_lose_nothing() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let acks = scratch.text("acks");
    let mut noted = 0;
    for round in 0..KILLS {
        // Inserts split pages and grow files, updates wrap the log: both must survive.
        let workload = if round % 3 == 2 { "insert" } else { "update" };
        let mut command = weir(small_bench(workload, &dir));
        command.args(["--seconds", "600", "--ack-file", &acks]);
        let written = ["synced", "written"][(round % 2) as usize];
        command.args(["--durability", written]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // A different moment each time, and never before something was acknowledged.
        let before = noted;
        while noted == before {
            std::thread::sleep(Duration::from_millis(5));
            noted = length(&scratch.path("acks"));
            if let Some(status) = child.try_wait().unwrap() {
                let output = child.wait_with_output().unwrap();
                panic!("round {round}: ended by itself: {status}: {output:?}");
            }
        }
        std::thread::sleep(Duration::from_millis(20 + round * 7 % 130));
        child.kill().unwrap();
        child.wait().unwrap();
        let verdict = ran(&mut weir(["bench", "verify", "--dir", &dir, "--ack-file", &acks]));
        assert_eq!(verdict.code, Some(0), "after kill {round} ({workload}): {verdict:#?}");
        noted = length(&scratch.path("acks"));
    }
    expect(0, &["check", &dir]);
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
