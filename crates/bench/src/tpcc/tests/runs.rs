//! Whole runs.
use super::{NOW, embedded, found, loaded, remove};
use crate::ack::Acknowledged;
use crate::durability::Durability;
use crate::engine::Engine;
use crate::fake::{Fake, Faults};
use crate::options::{DoubleWrite, Options, Phases, WorkloadKind};
use crate::run::Outcome as RunOutcome;
use crate::tpcc::backend::Backend;
use crate::tpcc::embedded::Embedded;
use crate::tpcc::population::Population;
use crate::tpcc::report::TpccReport;
use crate::tpcc::rows::OrderLine;
use crate::tpcc::run::{TpccOptions, check_only, run};
use crate::tpcc::scale::tests::tiny;
use crate::tpcc::store::Isolation;
use crate::tpcc::terminals::order_number;
use std::sync::atomic::AtomicBool;
use weir_base::SystemClock;

pub(super) fn options(phases: &str, fresh: bool) -> TpccOptions {
    let run = Options {
        encryption: None,
        workload: WorkloadKind::Tpcc,
        dir: "unused".into(),
        rows: 0,
        phases: Phases::parse(phases, None).unwrap(),
        durability: Durability::Lazy,
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        recovery_seconds: 0.0,
        page_size: 0,
        disk: None,
        warmup_seconds: Some(1),
        fresh,
        store: None,
        doublewrite: DoubleWrite::default(),
        ack_file: None,
        raw: false,
        lab: crate::options::Lab::default(),
        feed: crate::feed::Feed::default(),
        compact: false,
    };
    TpccOptions { run, scale: tiny(2), pipeline: false, restarted: false, seed: 4 }
}

fn run_on(fake: &Fake, options: &TpccOptions) -> (TpccReport, String) {
    let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
    let outcome =
        run(&embedded(fake), fake, options, "a fake", None, &clock, &stop, &mut out).unwrap();
    let RunOutcome::Done(report) = outcome else { panic!("not interrupted") };
    (*report, String::from_utf8(out).unwrap())
}

#[test]
fn whole_runs() {
    let fake = Fake::default();
    for pipeline in [false, true] {
        let asked = TpccOptions { pipeline, ..options("2:1s,3:1s", false) };
        let (report, text) = run_on(&fake, &asked);
        assert!(report.report.verified, "{text}");
        assert!(text.contains("3.3.2.12 hold"), "{text}");
        assert_eq!(text.contains("using the 2 warehouses"), pipeline, "{text}");
        assert!(text.contains("   tpmC "), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        for n in 1..=12 {
            assert_eq!(json["consistency"][format!("3.3.2.{n}")], true);
        }
        assert_eq!(json["setup"]["workload"], "tpcc");
        assert!(json["tpmc"].as_f64() > Some(1.0) && json["tps_mean"].as_f64() > Some(1.0));
        let count = |kind| json["types"][kind]["count"].as_u64().unwrap();
        let kinds = ["new_order", "payment", "order_status", "delivery", "stock_level"];
        let total: u64 = kinds.into_iter().map(count).sum();
        let transactions = json["transactions"].as_u64().unwrap();
        assert!(total.abs_diff(transactions) <= transactions / 50, "{total} of {transactions}");
        assert!(json["types"]["delivery"]["latency_micros"]["p99"].is_u64());
        assert_eq!(json["retries"]["deadlock"], 0);
    }
    let mut out = Vec::new();
    assert_eq!(check_only(&embedded(&fake), None, &mut out).unwrap(), Some(true));
    remove(&fake, &found(&fake, |row: &OrderLine| row.o == 60));
    assert_eq!(check_only(&embedded(&fake), None, &mut out).unwrap(), Some(false));
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("violated: 3.3.2.4, 3.3.2.6"), "{text}");
    let (report, text) = run_on(&fake, &options("1:1s", true));
    assert!(report.report.verified && !report.report.setup.table_reused, "{text}");
}

/// A restart is seen from its first second: nothing is read before, and what cannot be known
/// without that is not judged. The conditions are.
#[test]
fn a_restart_is_measured_at_once() {
    let fake = Fake::default();
    let (report, text) = run_on(&fake, &options("1:1s", false));
    assert!(report.report.verified && !report.restarted, "{text}");
    let mut asked = options("2:1s", false);
    asked.restarted = true;
    asked.run.warmup_seconds = Some(0);
    let (report, text) = run_on(&fake, &asked);
    assert!(report.report.verified && report.restarted, "{text}");
    assert!(!text.contains("warming") && text.contains("as far as the conditions go"), "{text}");
    remove(&fake, &found(&fake, |row: &OrderLine| row.o == 60));
    let (report, text) = run_on(&fake, &asked);
    assert!(!report.report.verified, "{text}");
}

#[test]
fn another_scale_is_refused_and_a_partial_load_is_no_load() {
    let (fake, _) = loaded(1);
    let (stop, clock) = (AtomicBool::new(false), SystemClock::new());
    let refused =
        run(&embedded(&fake), &fake, &options("1:1s", false), "", None, &clock, &stop, &mut vec![]);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("1 warehouses, not 2") && error.contains("--fresh"), "{error}");

    let fake = Fake::default();
    let population = Population::new(tiny(2), 3, NOW);
    embedded(&fake).load(&population, &mut |rows| rows < 1000).unwrap();
    assert_eq!(embedded(&fake).loaded().unwrap(), None);
    assert_eq!(check_only(&embedded(&fake), None, &mut Vec::new()).unwrap(), None);
    let (report, text) = run_on(&fake, &options("1:1s", false));
    assert!(report.report.verified, "{text}");
}

#[test]
fn acknowledged_orders_are_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("acks");
    let fake = Fake::default();
    let mut asked = options("2:1s", false);
    asked.run.ack_file = Some(file.clone());
    let (report, text) = run_on(&fake, &asked);
    assert!(report.report.verified, "{text}");
    let mut acks = Acknowledged::read(&file).unwrap();
    assert!(acks.orders.len() as u64 >= report.types["new_order"].count);
    let check = |acks: &Acknowledged| {
        check_only(&embedded(&fake), Some(acks), &mut Vec::new()).unwrap().unwrap()
    };
    assert!(check(&acks));
    acks.orders.insert(order_number(1, 1, 4_000_000), 0);
    assert!(!check(&acks));
}

/// What never becomes durable is never acknowledged.
#[test]
fn commits_that_are_not_durable_do_not_count() {
    let fake = Fake::lying(Faults { never_sync: true, ..Faults::default() });
    for pipeline in [false, true] {
        let backend = Embedded::new(&fake, Durability::Synced, Isolation::default());
        let asked = TpccOptions { pipeline, ..options("2:1s", true) };
        let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
        let outcome =
            run(&backend, &fake, &asked, "a fake", None, &clock, &stop, &mut out).unwrap();
        let RunOutcome::Done(report) = outcome else { panic!("not interrupted") };
        let report = *report;
        assert!(report.report.error.as_ref().is_some_and(|error| error.contains("on fire")));
        assert!(!report.report.verified && report.tpmc == 0.0);
        assert_eq!(report.types.values().map(|figures| figures.count).sum::<u64>(), 0);
        assert!(
            report.consistency.is_some_and(|found| found.holds()),
            "only the acknowledgement is missing"
        );
    }
}

/// On the real engine, with more terminals than rows to go round: all wait for all.
#[test]
fn whole_runs_on_weir() {
    let dir = tempfile::tempdir().unwrap();
    let config = weir::Config { pool_bytes: 8 << 20, log_bytes: 8 << 20, ..Default::default() };
    let db = weir::Db::open(dir.path(), config).unwrap();
    let engine = Engine::new(db);
    let levels = [
        (Isolation::RepeatableRead, false),
        (Isolation::Snapshot, false),
        (Isolation::ReadCommitted, true),
        (Isolation::Serializable, false),
    ];
    for (isolation, pipeline) in levels {
        // Where neighbours take the disk away, commits may stand for a while (controller.md).
        let mut asked = TpccOptions { pipeline, ..options("8:3s,2:2s", false) };
        asked.run.durability = Durability::Synced;
        let backend = Embedded::new(&engine, Durability::Synced, isolation);
        let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
        let outcome =
            run(&backend, &engine, &asked, "weir", None, &clock, &stop, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let RunOutcome::Done(report) = outcome else { panic!("not interrupted") };
        assert!(report.report.verified, "{text}");
        assert!(report.types["delivery"].count > 0, "{text}");
        let conflicts = report.retries["write_conflict"];
        assert_eq!(conflicts > 0, isolation == Isolation::Snapshot, "{text}");
    }
    let checked = engine.db().check(&mut |_, _| {}).unwrap();
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
    engine.close().unwrap();
}
