//! Whole runs against the store in memory: honest, lying, failing, interrupted.
use crate::ack::Acknowledged;
use crate::durability::Durability;
use crate::fake::{Fake, Faults};
use crate::options::{DoubleWrite, Lab, Options, Phases, WorkloadKind};
use crate::report::{Report, write_json};
use crate::run::{Outcome, run};
use crate::target::Target;
use crate::verify::verify_trees;
use crate::workload::{INSERT_TREE, ROWS_TREE};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir_base::SystemClock;

fn options(workload: WorkloadKind, phases: &str) -> Options {
    Options {
        workload,
        dir: "unused".into(),
        encryption: None,
        rows: 5000,
        phases: Phases::parse(phases, None).unwrap(),
        durability: Durability::Lazy,
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        recovery_seconds: 0.0,
        page_size: 0,
        disk: None,
        warmup_seconds: Some(0),
        fresh: false,
        store: None,
        doublewrite: DoubleWrite::default(),
        ack_file: None,
        raw: false,
        lab: Lab::default(),
        feed: crate::feed::Feed::default(),
        compact: false,
    }
}

fn run_on(fake: &Fake, options: &Options) -> (Report, String) {
    let mut out = Vec::new();
    let stop = AtomicBool::new(false);
    let outcome =
        run(fake, options, "a fake", Some(&|| Ok(2.0)), &SystemClock::new(), &stop, &mut out)
            .unwrap();
    let Outcome::Done(report) = outcome else { panic!("not interrupted") };
    (*report, String::from_utf8(out).unwrap())
}

#[test]
fn every_workload_runs_and_verifies() {
    use WorkloadKind::{Insert, Read, Scan, Update};
    let fake = Fake::default();
    for workload in [Update, Insert, Read, Scan] {
        let (report, text) = run_on(&fake, &options(workload, "2:1s"));
        assert!(report.verified, "{text}");
        assert!(report.figures.tps_mean > 0.0, "{text}");
        assert_eq!(report.series.tps.len(), 1);
        assert_eq!(text.matches(" tps   age  95.0 %").count(), 1, "{text}");
        if workload == Update {
            assert!((report.figures.redo_bytes_per_transaction - 150.0).abs() < 10.0, "{text}");
            assert_eq!(report.figures.checkpoint_age_max_over_limit, 0.99);
            assert!(report.figures.page_writes_over_least.is_some());
        }
    }
    // A second run goes on where the first ended, whatever it wrote.
    for workload in [Update, Insert] {
        let (report, text) = run_on(&fake, &options(workload, "3:1s"));
        assert!(report.verified && report.setup.table_reused, "{text}");
        assert!(text.contains("using the table"), "{text}");
    }
    let (report, text) =
        run_on(&fake, &Options { fresh: true, rows: 7, ..options(Update, "2:1s") });
    assert!(report.verified && report.verified_rows == 7, "{text}");
}

#[test]
fn phases_have_their_own_figures_and_the_warm_up_none() {
    let fake = Fake::default();
    let asked = Options { warmup_seconds: None, ..options(WorkloadKind::Update, "1:1s,8:1s") };
    let (report, text) = run_on(&fake, &asked);
    assert_eq!(report.phases.len(), 2);
    assert_eq!(report.warmup_seconds, 1, "log wraps of one byte");
    assert_eq!(report.series.threads, [1, 8]);
    assert!(report.phases[1].tps_mean > 3.0 * report.phases[0].tps_mean, "{text}");
    assert_eq!(text.matches("(warm-up)").count(), 1, "{text}");
    let total = report.figures.transactions;
    assert_eq!(total, report.phases.iter().map(|phase| phase.transactions).sum::<u64>());
}

#[test]
fn lies_are_found() {
    let lose = Faults { lose: Some(100), ..Faults::default() };
    let flip = Faults { flip: Some(100), ..Faults::default() };
    let words = [
        (WorkloadKind::Update, lose, "acknowledged"),
        (WorkloadKind::Insert, lose, "missing"),
        (WorkloadKind::Update, flip, "no version"),
        (WorkloadKind::Insert, flip, "another's value"),
    ];
    for (workload, faults, word) in words {
        let (report, text) = run_on(&Fake::lying(faults), &options(workload, "4:1s"));
        assert!(!report.verified && text.contains("NOT VERIFIED"), "{text}");
        assert!(report.problems.iter().any(|problem| problem.contains(word)), "{word}: {text}");
    }
}

#[test]
fn a_failing_store_ends_the_run_but_not_the_report() {
    for workload in [WorkloadKind::Update, WorkloadKind::Insert] {
        let fake = Fake::lying(Faults { fail: Some(3000), ..Faults::default() });
        let (report, text) = run_on(&fake, &options(workload, "4:30s"));
        assert!(report.error.unwrap().contains("the disk is on fire"), "{text}");
        assert!(!report.verified && text.contains("THE RUN FAILED"), "{text}");
        assert!(report.problems.is_empty(), "failed changes are not claimed: {text}");
    }
}

#[test]
fn an_interrupted_run_reports_what_it_measured() {
    let fake = Fake::default();
    let stop = AtomicBool::new(false);
    let mut out = Vec::new();
    let asked = Options { warmup_seconds: Some(60), ..options(WorkloadKind::Update, "2:60s") };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(1300));
            stop.store(true, Relaxed);
        });
        run(&fake, &asked, "a fake", None, &SystemClock::new(), &stop, &mut out).unwrap()
    });
    let Outcome::Done(report) = outcome else { panic!("it was past loading") };
    let text = String::from_utf8(out).unwrap();
    assert!(report.interrupted && report.verified && report.warmup_only, "{text}");
    assert!(report.figures.tps_mean > 0.0, "{text}");

    let outcome =
        run(&Fake::default(), &asked, "a fake", None, &SystemClock::new(), &stop, &mut Vec::new())
            .unwrap();
    assert!(matches!(outcome, Outcome::InterruptedWhileLoading));
}

#[test]
fn a_table_of_another_size_is_refused() {
    let fake = Fake::default();
    run_on(&fake, &options(WorkloadKind::Read, "1:1s"));
    for workload in [WorkloadKind::Read, WorkloadKind::Update, WorkloadKind::Scan] {
        let asked = Options { rows: 6000, ..options(workload, "1:1s") };
        let stop = AtomicBool::new(false);
        let error = run(&fake, &asked, "a fake", None, &SystemClock::new(), &stop, &mut Vec::new())
            .err()
            .unwrap();
        assert!(error.to_string().contains("5000 rows, not 6000"), "{error}");
    }
}

#[test]
fn acknowledgements_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("acks");
    let fake = Fake::default();
    for workload in [WorkloadKind::Update, WorkloadKind::Insert] {
        let asked = Options { ack_file: Some(file.clone()), ..options(workload, "4:1s") };
        run_on(&fake, &asked);
    }
    let acks = Acknowledged::read(&file).unwrap();
    assert!(acks.rows.len() > 100 && acks.inserts.len() > 100);
    let verdict = verify_trees(&fake, Some(&acks)).unwrap();
    assert!(verdict.verified(), "{:?}", verdict.examples);
    assert_eq!(verdict.acknowledged, (acks.rows.len() + acks.inserts.len()) as u64);

    // One acknowledged version more than there is; one row more than there is.
    let mut more = Acknowledged::read(&file).unwrap();
    *more.rows.values_mut().next().unwrap() += 1;
    assert_eq!(verify_trees(&fake, Some(&more)).unwrap().problems, 1);
    let mut more = acks;
    more.rows.insert(5000, 1);
    assert_eq!(verify_trees(&fake, Some(&more)).unwrap().problems, 1);
    fake.drop_table(ROWS_TREE).unwrap();
    assert!(!verify_trees(&fake, Some(&more)).unwrap().verified());
    fake.drop_table(INSERT_TREE).unwrap();
    assert!(verify_trees(&fake, None).is_err(), "nothing to verify is no success");
}

#[test]
fn the_report_is_whole_and_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let (report, _) = run_on(&Fake::default(), &options(WorkloadKind::Update, "1:1s"));
    write_json(&path, &report, false).unwrap();
    let error = write_json(&path, &report, false).unwrap_err().to_string();
    assert!(error.contains("--force"), "{error}");
    write_json(&path, &report, true).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a leftover");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let names = "tps_mean tps_cv tps_worst_second_over_mean stalled_seconds \
        redo_bytes_per_transaction page_writes_per_transaction checkpoint_age_mean_over_limit \
        checkpoint_age_max_over_limit device_writes device_bytes_written";
    for name in names.split_whitespace() {
        assert!(json[name].is_number(), "{name}: {}", json[name]);
    }
    for name in ["p50", "p99", "p999", "max"] {
        assert!(json["latency_micros"][name].is_u64(), "{name}");
    }
    assert_eq!(
        (json["durability"].as_str(), json["verified"].as_bool()),
        (Some("lazy"), Some(true))
    );
    assert_eq!(json["raw_sync_rate"], 2.0);
    assert_eq!(json["series"]["tps"].as_array().unwrap().len(), 1);
    assert_eq!(json["series"]["processors_busy"].as_array().unwrap().len(), 1);
}
