//! TPC-C: a run, another on what it left, kills in the middle.
use crate::bench::json;
use crate::kill::kill_when_it_has_acknowledged;
use crate::{Scratch, expect, ran, weir};

const KILLS: u64 = 4;

/// What is said of a server that is not there.
#[cfg(feature = "mysql")]
const MYSQL: &[&str] = &["cannot connect", "/nowhere/socket"];
#[cfg(not(feature = "mysql"))]
const MYSQL: &[&str] = &["--features mysql"];

/// One warehouse: as small as the specification allows.
fn words(dir: &str) -> Vec<String> {
    let flags = "--warehouses 1 --threads 4 --warmup 0 --pool 96MiB --log 32MiB --no-raw";
    let words = ["bench", "tpcc", "--dir", dir].into_iter().chain(flags.split(' '));
    words.map(str::to_owned).collect()
}

#[test]
fn it_runs_and_is_consistent_also_after_kills() {
    let scratch = Scratch::new();
    let (dir, acks) = (scratch.text("db"), scratch.text("acks"));
    for (run, pipeline) in [false, true].into_iter().enumerate() {
        let mut command = weir(words(&dir));
        command.args(["--seconds", "2", "--force", "--json", &scratch.text("r.json")]);
        command.args(pipeline.then_some("--pipeline"));
        let ran = ran(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.out.contains("3.3.2.12 hold") && ran.out.contains("verified  "), "{ran:#?}");
        assert_eq!(ran.out.contains("using the 1 warehouses"), run == 1, "{ran:#?}");
        let report = json(&scratch.path("r.json"));
        assert!((1..=12).all(|n| report["consistency"][format!("3.3.2.{n}")] == true));
        assert_eq!((&report["verified"], &report["pipeline"]), (&true.into(), &pipeline.into()));
        assert!(report["tpmc"].as_f64() > Some(0.0));
        assert_eq!(report["types"].as_object().map(serde_json::Map::len), Some(5));
    }
    for kill in 0..KILLS {
        let mut command = weir(words(&dir));
        command.args(["--seconds", "600", "--ack-file", &acks]);
        command.args((kill % 2 == 1).then_some("--pipeline"));
        kill_when_it_has_acknowledged(command, &scratch.path("acks"), 100 + 200 * kill);
        let check = ["bench", "tpcc", "--check-only", "--dir", &dir, "--ack-file", &acks];
        let checked = expect(0, &check);
        assert!(checked.err.contains("recovered"), "kill {kill} left nothing to recover");
        assert!(checked.out.contains(" 0 of them missing"), "{checked:#?}");
    }
    expect(0, &["check", &dir]);
}

/// The control: orders whose commits were in memory only must be missed after a kill, or the test
/// above proves nothing.
#[test]
fn a_kill_that_loses_orders_is_found_out() {
    let scratch = Scratch::new();
    let (dir, acks) = (scratch.text("db"), scratch.text("acks"));
    let lost = (0..5).any(|_| {
        let mut command = weir(words(&dir));
        command.args(["--seconds", "600", "--durability", "lazy", "--ack-file", &acks]);
        kill_when_it_has_acknowledged(command, &scratch.path("acks"), 100);
        let check = ["bench", "tpcc", "--check-only", "--dir", &dir, "--ack-file", &acks];
        let checked = ran(&mut weir(check));
        assert!(checked.out.contains("3.3.2.12 hold"), "lost, but consistent: {checked:#?}");
        checked.code == Some(1) && !checked.out.contains(" 0 of them missing")
    });
    assert!(lost, "five kills with lazy commits lost no order that was acknowledged");
}

#[test]
fn what_cannot_run_says_why() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    for (more, words) in [
        (&["--warehouses", "0"][..], &["0 warehouses"][..]),
        (&["--warehouses", "70000"], &["65535"]),
        (&["--pipeline", "--durability", "written"], &["--pipeline", "lazy"]),
        (&["--check-only"], &["no directory"]),
        (&["--isolation", "none"], &["none", "snapshot", "serializable"]),
        (&["--mysql", "/nowhere/socket"], MYSQL),
        (&["--engine", "Weir"], &["--mysql"]),
        (&["--rows", "7"], &["--rows"]),
    ] {
        let mut all = vec!["bench", "tpcc", "--dir", &dir];
        all.extend(more);
        let ran = expect(2, &all);
        for word in words {
            assert!(ran.err.contains(word), "{more:?}: no '{word}' in {}", ran.err);
        }
    }
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let ran = expect(2, &["bench", "tpcc", "--dir", &dir, "--check-only"]);
    assert!(ran.err.contains("no TPC-C database"), "{}", ran.err);
}
