//! Every policy on a small database on a slow disk: it writes pages, and nothing that was
//! acknowledged is lost, whatever the policy asks for.
use std::sync::atomic::AtomicBool;
use weir::lab::Neighbours;
use weir_bench::{Durability, Lab, Options, Outcome, Phases, Report, Target, WorkloadKind};
use weir_lab::policies::{Kind, Knobs, setup};

fn options(dir: &std::path::Path, lab: Lab, seconds: u64) -> Options {
    let phases = Phases::parse("4", Some(seconds)).expect("phases");
    Options {
        rows: 20_000,
        durability: Durability::Lazy,
        pool_bytes: 16 << 20,
        log_bytes: 4 << 20,
        page_size: 4096,
        disk: Some("3000iops,64MiB".to_owned()),
        warmup_seconds: Some(1),
        lab,
        ..Options::new(WorkloadKind::Update, dir.to_owned(), phases)
    }
}

fn run(dir: &std::path::Path, lab: Lab, seconds: u64) -> Report {
    let options = options(dir, lab, seconds);
    let opened = weir_bench::open(&options, None).expect("opened");
    let (stop, mut out) = (AtomicBool::new(false), Vec::new());
    let clock = opened.clock.as_ref();
    let run = weir_bench::run(&opened.engine, &options, "a disk", None, clock, &stop, &mut out);
    opened.engine.close().expect("closed");
    match run.expect("it runs") {
        Outcome::Done(report) => *report,
        Outcome::InterruptedWhileLoading => panic!("not interrupted"),
    }
}

#[test]
fn every_policy_writes_pages_and_loses_nothing() {
    let scratch = tempfile::tempdir().expect("a directory");
    for kind in Kind::ALL {
        let knobs = Knobs::defaults(kind).with_capacity(400, 800);
        let neighbours =
            if kind == Kind::Reflex { Neighbours::Contiguous } else { Neighbours::None };
        // Where other work takes the processors, no page may be due within two seconds.
        for seconds in [2, 10, 50] {
            let dir = scratch.path().join(format!("{}-{seconds}", kind.name()));
            let lab = Lab::with_policy(setup(kind, &knobs, neighbours, 1));
            let report = run(&dir, lab, seconds);
            let figures = &report.figures;
            assert!(report.verified, "{kind}: {:?}", report.problems);
            assert!(figures.checkpoint_age_max_over_limit <= 1.0, "{kind}: {figures:?}");
            if figures.page_writes.total() > 0 {
                break;
            }
            assert!(seconds < 50, "{kind} writes no page: {figures:?}");
        }
    }
}

#[test]
fn an_ordinary_opening_has_no_laboratory() {
    let scratch = tempfile::tempdir().expect("a directory");
    let options = options(scratch.path(), Lab::default(), 1);
    let opened = weir_bench::open(&options, None).expect("opened");
    assert!(opened.engine.table("bench-rows").expect("looked").is_none());
    assert!(weir::Config::default().lab.is_none());
    opened.engine.close().expect("closed");
}
