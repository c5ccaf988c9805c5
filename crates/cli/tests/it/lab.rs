//! `weir lab`: what a stop leaves behind, and what is never replaced.
use crate::{Scratch, expect, signal, wait_for_line, weir};
use std::io::Read;
use std::time::Duration;

#[test]
fn ctrl_c_leaves_a_report_of_what_was_seen_and_the_same_command_goes_on() {
    let scratch = Scratch::new();
    let dir = scratch.text("lab");
    let words = ["lab", "run", "1", "--quick", "--dir", &dir];
    let mut child = weir(words).spawn().expect("it starts");
    let (_, mut rest) = wait_for_line(&mut child, "loaded ");
    // Into the measured seconds of the first run, behind its warm-up of five.
    std::thread::sleep(Duration::from_secs(8));
    signal(&child, "-INT");
    let mut out = String::new();
    rest.read_to_string(&mut out).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{out}");
    assert!(out.contains("the same command goes on from here"), "{out}");
    let whole = scratch.path("lab/quick-01.html");
    assert!(!whole.exists(), "a part does not get the name of the whole");
    let seen = std::fs::read_to_string(whole.with_extension("interrupted.html")).expect("a report");
    for part in ["deadline", "weir_checkpoint_age_bytes", "lab run 1 --quick"] {
        assert!(seen.contains(part), "{part}");
    }
}

#[test]
fn a_report_of_an_experiment_is_never_replaced_unasked() {
    let scratch = Scratch::new();
    let dir = scratch.text("lab");
    std::fs::create_dir(&dir).expect("made");
    let report = scratch.path("lab/quick-05.html");
    std::fs::write(&report, "precious").expect("written");
    let ran = expect(2, &["lab", "run", "5", "--quick", "--dir", &dir]);
    assert!(ran.err.contains("quick-05.html") && ran.err.contains("--force"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&report).expect("there"), "precious");
}

#[test]
fn too_few_rounds_are_refused() {
    let scratch = Scratch::new();
    let refused = expect(2, &["lab", "cost", "--rounds", "5", "--dir", &scratch.text("lab")]);
    assert!(refused.err.contains("6 or more"), "{}", refused.err);
}
