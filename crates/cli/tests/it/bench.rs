//! Short benches: figures, reuse, phases, Ctrl-C.
use crate::{Scratch, ran, signal, small_bench, wait_for_line, weir, with};
use std::io::Read;
use std::process::Stdio;

pub(crate) fn json(path: &std::path::Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn two_seconds_of_each_workload() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    for workload in ["update", "insert", "read", "scan"] {
        let name = format!("{workload}.json");
        let mut command = weir(small_bench(workload, &dir));
        command.args(["--seconds", "2", "--json", &scratch.text(&name)]);
        let ran = ran(&mut command);
        assert_eq!(ran.code, Some(0), "{workload}: {ran:#?}");
        assert_eq!(ran.out.matches(" tps   age ").count(), 2, "a line a second: {}", ran.out);
        assert!(ran.out.contains("verified  "), "{}", ran.out);
        let report = json(&scratch.path(&name));
        assert_eq!(report["verified"], true, "{workload}");
        assert_eq!(report["durability"], "synced");
        let numbers = "tps_mean tps_cv tps_worst_second_over_mean stalled_seconds \
            redo_bytes_per_transaction page_writes_per_transaction \
            checkpoint_age_mean_over_limit checkpoint_age_max_over_limit device_writes \
            device_bytes_written";
        for number in numbers.split_whitespace() {
            assert!(report[number].is_number(), "{workload} {number}: {}", report[number]);
        }
        for percentile in ["p50", "p99", "p999", "max"] {
            assert!(report["latency_micros"][percentile].is_u64(), "{workload} {percentile}");
        }
        assert!(report["tps_mean"].as_f64() > Some(0.0), "{workload}");
        assert_eq!(report["series"]["tps"].as_array().map(Vec::len), Some(2));
        assert_eq!(report["setup"]["rows"], 10_000);
    }
}

#[test]
fn phases_reuse_and_the_raw_rate() {
    let scratch = Scratch::new();
    let (dir, path) = (scratch.text("db"), scratch.path("r.json"));
    let mut words = with(small_bench("update", &dir), "--threads", "1:1s,4:1s");
    words.retain(|word| word != "--no-raw");
    let set = scratch.text("set.json");
    words.extend(["--figure", &set, "--commit", "abc1234"].map(str::to_owned));
    words.extend(["--json".to_owned(), scratch.text("r.json"), "--force".to_owned()]);
    for run in 0..2 {
        let ran = ran(&mut weir(&words));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.out.contains("using the table"), run == 1, "{}", ran.out);
        let report = json(&path);
        assert_eq!(report["setup"]["table_reused"], run == 1);
        assert_eq!(report["phases"][0]["threads"], 1);
        assert_eq!(report["phases"][1]["threads"], 4);
        for rate in ["raw_sync_rate", "raw_sync_rate_before", "raw_sync_rate_after"] {
            assert!(report[rate].as_f64() > Some(1.0), "{rate}");
        }
    }
    // Both runs are one figure of one workload.
    let set = json(&scratch.path("set.json"));
    assert_eq!((&set["transcribed"], &set["run"]["commit"]), (&false.into(), &"abc1234".into()));
    let [figure] = set["figures"].as_array().map_or(&[][..], Vec::as_slice) else {
        panic!("{set:#}")
    };
    assert_eq!(figure["workload"], "update of 10000 rows, 1 / 4 threads, synced");
    assert_eq!(figure["weir"].as_array().map(Vec::len), Some(2), "{figure:#}");
    let mut other = with(small_bench("update", &dir), "--rows", "500");
    let refused = ran(&mut weir(&other));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.err.contains("--fresh") && refused.err.contains("10000"), "{}", refused.err);
    other.extend(["--fresh", "--seconds", "1"].map(str::to_owned));
    let fresh = ran(&mut weir(&other));
    assert_eq!(fresh.code, Some(0), "{fresh:#?}");
    assert!(fresh.out.contains("500 rows read back"), "{}", fresh.out);
}

#[test]
fn ctrl_c_ends_cleanly() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let mut command = weir(small_bench("update", &dir));
    let json_path = scratch.text("r.json");
    let mut child =
        command.args(["--seconds", "600", "--json", &json_path]).spawn().expect("it starts");
    let (_, mut rest) = wait_for_line(&mut child, " tps ");
    signal(&child, "-INT");
    let mut out = String::new();
    rest.read_to_string(&mut out).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{out}");
    assert!(out.contains("interrupted") && out.contains("rows read back"), "{out}");
    let report = json(&scratch.path("r.json"));
    assert_eq!((&report["interrupted"], &report["verified"]), (&true.into(), &true.into()));
    crate::expect(0, &["check", &dir]);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_verification() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let mut command = weir(small_bench("update", &dir));
    let mut child = command.args(["--seconds", "600"]).stderr(Stdio::null()).spawn().unwrap();
    let (_, rest) = wait_for_line(&mut child, " tps ");
    drop(rest);
    let status = child.wait().unwrap();
    assert!(status.code().is_some(), "it left by itself");
    crate::expect(0, &["bench", "verify", "--dir", &dir]);
}
