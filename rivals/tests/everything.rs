//! Every workload on every engine for a fraction of a second, through the program itself: each cell
//! reads its store back, so a cell without rows verified, or one that failed, is a finding.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const ROWS: u64 = 2_000;

fn rivals(args: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rivals")).args(args).current_dir(dir).output().unwrap()
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// The names that `rivals list` tells under this heading.
fn listed(heading: &str, dir: &Path) -> Vec<String> {
    let output = text(&rivals(&["list"], dir));
    let from = output.lines().skip_while(|line| *line != heading).skip(1);
    from.take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next().map(str::to_string))
        .collect()
}

const SHORT: [&str; 12] = [
    "--rows",
    "2000",
    "--seconds",
    "0.1",
    "--warmup",
    "0",
    "--kill-seconds",
    "0.2",
    "--rounds",
    "1",
    "--cache-mib",
    "64",
];

#[test]
fn every_workload_on_every_engine_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let engines = listed("engines:", dir.path());
    let workloads = listed("workloads:", dir.path());
    assert!(engines.len() >= 7 && workloads.len() == 21, "{engines:?} {workloads:?}");
    let mut args = SHORT.to_vec();
    let names = engines.join(",");
    args.extend(["--engines", &names, "--threads", "3", "--dir", "d"]);
    args.extend(["--json", "r.json", "--html", "r.html"]);
    let output = rivals(&args, dir.path());
    assert!(output.status.success(), "{}", text(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    let rows = report["rows"].as_array().unwrap();
    for workload in &workloads {
        for engine in &engines {
            let row = rows
                .iter()
                .find(|row| row["workload"] == **workload && row["engine"] == **engine)
                .unwrap_or_else(|| panic!("no {workload} on {engine}"));
            if row["cannot"].is_string() {
                assert_eq!((engine.as_str(), workload.as_str()), ("redb", "update-written"));
                continue;
            }
            assert!(row["median"].as_f64() > Some(0.0), "{workload} on {engine}: nothing done");
            assert!(row["verified_rows"].as_u64() >= Some(ROWS), "{workload} on {engine}: {row}");
            let sized = ["load-sorted", "load-random", "churn"].contains(&workload.as_str());
            assert_eq!(row["size"]["data"].as_u64() > Some(0), sized, "{workload} on {engine}");
            let opened = row["opened"]["acknowledged"].as_u64();
            assert_eq!(opened > Some(0), workload == "kill", "{workload} on {engine}");
        }
    }
    let html = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(html.contains("Opened after kill -9") && html.contains("ycsb-e"));
    assert!(!dir.path().join("d/weir").exists(), "stores are left behind");

    // It is all there: nothing is measured again, and no file is replaced unasked.
    let again = rivals(&args, dir.path());
    assert!(!again.status.success() && text(&again).contains("--force"), "{}", text(&again));
    args.push("--force");
    let again = rivals(&args, dir.path());
    assert!(again.status.success() && text(&again).contains("there already"));
    assert!(!text(&again).contains("1/"), "{}", text(&again));
}

#[test]
fn a_run_goes_on_and_bad_input_names_what_exists() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = SHORT.to_vec();
    args.extend(["--engines", "weir,lmdb", "--dir", "d", "--keep"]);
    let with = |more: &[&'static str]| [&args[..], more].concat();
    let first = rivals(&with(&["--workloads", "read"]), dir.path());
    assert!(first.status.success(), "{}", text(&first));
    let more = rivals(&with(&["--workloads", "read,ycsb-c"]), dir.path());
    assert!(more.status.success() && text(&more).contains("going on"), "{}", text(&more));
    assert!(text(&more).contains("ycsb-c x2 lmdb") && !text(&more).contains(" read x1 lmdb:"));
    for (bad, said) in [
        (["--workloads", "ycsb-z"], "ycsb-f"),
        (["--engines", "oracle"], "rocksdb"),
        (["--value", "8"], "16"),
        (["--threads", "0"], "256"),
        (["--rows", "5"], "1000"),
    ] {
        let refused = rivals(&bad, dir.path());
        assert!(!refused.status.success() && text(&refused).contains(said), "{}", text(&refused));
    }
    let other = rivals(&["--value", "64", "--dir", "d"], dir.path());
    assert!(text(&other).contains("--fresh"), "{}", text(&other));
    std::fs::create_dir(dir.path().join("mine")).unwrap();
    std::fs::write(dir.path().join("mine/file"), "x").unwrap();
    let mine = rivals(&["--dir", "mine", "--fresh"], dir.path());
    assert!(text(&mine).contains("something else"), "{}", text(&mine));
}

/// Whether this user may make control groups of memory here.
fn groups_can_be_made() -> bool {
    ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].iter().any(|root| {
        let dir = Path::new(root).join(format!("rivals-test-{}", std::process::id()));
        let made = std::fs::create_dir(&dir).is_ok()
            && dir.read_dir().is_ok_and(|mut d| {
                d.any(|file| {
                    file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("memory."))
                })
            });
        let _ = std::fs::remove_dir(&dir);
        made
    })
}

#[test]
fn with_less_memory_than_data_each_cell_says_what_it_took_or_that_it_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = SHORT.to_vec();
    args.retain(|arg| !["--cache-mib", "64"].contains(arg));
    args.extend(["--engines", "weir,lmdb", "--workloads", "load-sorted,read", "--dir", "d"]);
    args.extend(["--memory-mib", "192", "--cache-mib", "32", "--value", "120000"]);
    args.extend(["--json", "r.json"]);
    let output = rivals(&args, dir.path());
    if !groups_can_be_made() {
        assert!(
            !output.status.success() && text(&output).contains("control group"),
            "{}",
            text(&output)
        );
        return;
    }
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("192 MiB of memory for all of it"), "{}", text(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    for row in report["rows"].as_array().unwrap().iter().filter(|row| row["engine"] != "disk") {
        let peak = row["rounds"][0]["memory_peak_bytes"].as_u64();
        let killed = row["cannot"] == "killed for memory";
        assert!(killed || peak.is_some_and(|peak| peak <= 192 << 20), "{row}");
        assert!(!killed || row["engine"] != "weir", "{row}");
    }
    let more = rivals(&["--memory-mib", "64", "--cache-mib", "64", "--dir", "e"], dir.path());
    assert!(text(&more).contains("--memory-mib"), "{}", text(&more));
}
