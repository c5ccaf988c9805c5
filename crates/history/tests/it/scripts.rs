//! The catalogue on the toy: each level does what is expected of it, and a toy that breaks a
//! promise is told from one that keeps it.

use crate::toy::{Broken, toys};
use weir_history::{CATALOGUE, Demand, Level, Outcome, Played, check};

fn play(broken: Broken, level: Level, script: &weir_history::Script) -> Played {
    script.play(level, |rows, sessions| toys(broken, rows, sessions))
}

/// All scripts at all levels whose outcome is not the expected one, or whose history breaks a
/// promise.
fn surprises(broken: Broken) -> Vec<String> {
    let mut surprises = Vec::new();
    for script in CATALOGUE {
        for level in Level::ALL {
            let played = play(broken, level, script);
            let report = check(&played.history, &Demand::OWN);
            if played.outcome != script.expected(level) || !report.is_clean() {
                surprises.push(format!(
                    "{} at {level}: {:?} instead of {:?}\n{}{}",
                    script.name,
                    played.outcome,
                    script.expected(level),
                    played.transcript,
                    report.explain(&played.history)
                ));
            }
        }
    }
    surprises
}

#[test]
fn each_level_does_what_is_expected() {
    let surprises = surprises(Broken::Nothing);
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

#[test]
fn broken_promises_are_surprises() {
    let seen_by_scripts = [
        (Broken::WriteLocks, "G0"),
        (Broken::CommittedReads, "G1a"),
        (Broken::Snapshots, "G-single"),
        (Broken::HalfSnapshots, "PMP"),
        (Broken::FirstUpdaterWins, "P4"),
        (Broken::RangeLocks, "G2"),
        (Broken::ReadLocks, "G2-item"),
        (Broken::Rollback, "G1a"),
        (Broken::Savepoint, "G1a"),
    ];
    for (broken, name) in seen_by_scripts {
        let surprises = surprises(broken);
        assert!(
            surprises.iter().any(|surprise| surprise.starts_with(name)),
            "{broken:?}: {}",
            surprises.join("\n")
        );
    }
}

#[test]
fn the_same_script_gives_the_same_history() {
    for script in CATALOGUE {
        for level in Level::ALL {
            let one = play(Broken::Nothing, level, script);
            let other = play(Broken::Nothing, level, script);
            assert_eq!(one.history, other.history);
            assert_eq!(one.transcript, other.transcript);
            assert!(one.transcript.lines().count() >= script.steps.len() / 2);
        }
    }
}

#[test]
fn a_waiting_session_goes_on_when_the_other_ends() {
    let script = CATALOGUE.iter().find(|s| s.name.starts_with("an insert waits for one that is r"));
    let played = play(Broken::Nothing, Level::ReadCommitted, script.expect("it is there"));
    assert_eq!(played.outcome, Outcome::Waits);
    let lines: Vec<&str> = played.transcript.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "session 1: Insert(3): done",
            "session 2: Insert(3): waits",
            "session 1: Rollback: done",
            "session 2: Insert(3): done",
            "session 2: Commit: done",
        ]
    );
}
