//! kill -9 under load, again and again: every acknowledged change must be there.
use crate::{Ran, Scratch, expect, ran, small_bench, weir};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const KILLS: u64 = 50;

/// Inserts split pages and grow files, updates wrap the log: both must survive.
const WORKLOADS: [&str; 3] = ["update", "update", "insert"];

#[test]
fn fifty_kills_lose_nothing() {
    let scratch = Scratch::new();
    for round in 0..KILLS {
        let workload = WORKLOADS[round as usize % WORKLOADS.len()];
        let durability = ["synced", "written"][round as usize % 2];
        let verdict = kill_and_verify(&scratch, workload, durability, 20 + round * 7 % 130);
        assert_eq!(verdict.code, Some(0), "kill {round} ({workload} {durability}): {verdict:#?}");
        assert!(verdict.err.contains("recovered"), "kill {round} left nothing to recover");
    }
    expect(0, &["check", &scratch.text("db")]);
}

/// The control: commits that are in memory only must be missed, or the test above proves nothing.
#[test]
fn a_kill_that_loses_something_is_found_out() {
    let scratch = Scratch::new();
    let lost = (0..5).any(|_| {
        let verdict = kill_and_verify(&scratch, "update", "lazy", 100);
        verdict.code == Some(1) && verdict.out.contains("was acknowledged")
    });
    assert!(lost, "five kills with lazy commits lost nothing that was acknowledged");
}

/// Kills a bench some time after it has acknowledged something, and compares what is there with
/// all that was ever acknowledged.
fn kill_and_verify(scratch: &Scratch, workload: &str, durability: &str, millis: u64) -> Ran {
    let (dir, acks) = (scratch.text("db"), scratch.text("acks"));
    let mut command = weir(small_bench(workload, &dir));
    command.args(["--seconds", "600", "--durability", durability, "--ack-file", &acks]);
    kill_when_it_has_acknowledged(command, &scratch.path("acks"), millis);
    ran(&mut weir(["bench", "verify", "--dir", &dir, "--ack-file", &acks]))
}

/// Starts a bench and kills it, so long after it has acknowledged something for the first time.
pub(crate) fn kill_when_it_has_acknowledged(mut command: Command, acks: &Path, millis: u64) {
    let noted = length(acks);
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    while length(acks) == noted {
        std::thread::sleep(Duration::from_millis(5));
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            panic!("{command:?} ended by itself: {status}: {output:?}");
        }
    }
    std::thread::sleep(Duration::from_millis(millis));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
