//! Disks on which each write of pages takes long, however few it has, while the log's do not: two
//! lanes of short batches would write a page or two in that time.
use crate::model::disk::DiskSpec;
use crate::model::lanes::{BATCH_MAX, Sweeper};
use crate::model::load::Pages;
use crate::report::{Report, Second, cv};
use crate::scenario::Scenario;
use weir_checkpoint::LANES;

/// A log of 8 MiB.
const LIMIT: u64 = 8_000_000;
/// All of them are dirtied again within a tenth of it.
const PAGES: u32 = 4000;
const REDO_BYTES: u64 = 155;

/// 8 threads that each wait for their own commit; `latency` is from when on (seconds) each write of
/// pages takes so much longer (seconds).
fn scenario(name: &'static str, latency: &[(f64, f64)]) -> Scenario {
    let scenario = Scenario::new(name).with(|setup| {
        setup.disk = DiskSpec::issue().page_latency(latency);
        setup.pages = Pages::Uniform(PAGES);
        setup.limits = vec![(0.0, LIMIT)];
        setup.redo_bytes = REDO_BYTES;
        setup.tick_seconds = 0.05;
        setup.sweeper = Sweeper::Lanes;
    });
    scenario.lasting(120)
}

/// Commits of each of these seconds.
fn commits(report: &Report, from: usize, to: usize) -> Vec<f64> {
    report.seconds[from..to].iter().map(|Second { commits, .. }| *commits).collect()
}

fn mean(report: &Report, from: usize, to: usize) -> f64 {
    crate::report::mean(&commits(report, from, to))
}

/// Commits a second that the largest batches would allow: each has a doublewrite and one write in
/// place, and the disk's own work.
fn most(latency: f64) -> f64 {
    let pages = (LANES * BATCH_MAX) as f64;
    let seconds = 2.0 * latency + 1.3 * pages / 2000.0;
    let redo_bytes_a_page = LIMIT as f64 / f64::from(PAGES);
    pages / seconds * redo_bytes_a_page / REDO_BYTES as f64
}

/// What must hold once `latency` has been there for a while, in these seconds.
fn steady(report: &Report, latency: f64, from: usize, to: usize) -> Result<(), String> {
    let (mean, commits) = (mean(report, from, to), commits(report, from, to));
    let worst = commits.iter().copied().fold(f64::MAX, f64::min);
    let (share, cv) = (mean / most(latency).min(8400.0), cv(&commits));
    println!("{latency} s: {mean:.0} tx/s, {share:.2} of the most, CV {cv:.3}, worst {worst}");
    if share < 0.5 || cv > 0.3 || worst < 0.4 * mean {
        return Err(format!("{share} of the most, CV {cv}, worst {worst} of {mean}"));
    }
    Ok(())
}

fn never_over_the_limit(report: &Report) {
    assert!(report.age_max <= 1.0, "age over the limit: {}", report.age_max);
}

#[test]
fn slow_page_writes_are_written_in_batches_that_grow() {
    println!("{}", Report::header());
    for latency in [0.2, 1.0, 3.0] {
        let report = scenario("latency", &[(0.0, latency)]).run();
        println!("{}", report.row(&format!("page writes of {latency} s")));
        steady(&report, latency, 60, 120).expect("batches that grow");
        never_over_the_limit(&report);
        assert!(report.standstill_seconds < 2.0 * latency, "{}", report.standstill_seconds);
    }
}

#[test]
fn page_writes_that_become_slow_and_quick_again() {
    println!("{}", Report::header());
    for (latency, settled) in [(0.2, 33), (1.0, 40), (3.0, 50)] {
        let report = scenario("sudden", &[(30.0, latency), (80.0, 0.0)]).run();
        println!("{}", report.row(&format!("30 s to 80 s: {latency} s")));
        // The first batches are as short as before; each has two writes.
        steady(&report, latency, settled, 80).expect("batches that grow");
        never_over_the_limit(&report);
        assert!(report.standstill_seconds < 2.0 * latency, "{}", report.standstill_seconds);
        let (before, after) = (mean(&report, 15, 30), mean(&report, 90, 120));
        assert!(after > 0.97 * before, "short batches again: {after} after {before}");
    }
}

/// If the assertions let this pass, they prove nothing.
#[test]
fn lanes_that_do_not_look_at_the_time_stand_nearly_still() {
    for latency in [0.2, 1.0, 3.0] {
        let blind = |setup: &mut crate::model::world::Setup| setup.sweeper = Sweeper::BlindLanes;
        for steps in [vec![(0.0, latency)], vec![(30.0, latency)]] {
            let report = scenario("blind", &steps).with(blind).run();
            steady(&report, latency, 60, 120).expect_err("short batches");
        }
    }
}

/// Where more pages take longer, larger batches would only keep the log's writes from the disk.
#[test]
fn a_disk_with_few_operations_gets_short_batches() {
    for factor in [1.0, 0.3, 0.1, 0.05, 0.025] {
        let slow = |sweeper| {
            let scenario = scenario("few", &[]).with(|setup| {
                setup.disk.schedule = vec![(30.0, factor), (80.0, 1.0)];
                setup.sweeper = sweeper;
            });
            scenario.run()
        };
        let (report, blind) = (slow(Sweeper::Lanes), slow(Sweeper::BlindLanes));
        let (commits, as_before) = (mean(&report, 40, 80), mean(&blind, 40, 80));
        println!("x{factor}: {commits:.0} tx/s, {as_before:.0} with batches that cannot grow");
        assert!(commits > 0.97 * as_before, "x{factor}: {commits}, not {as_before}");
        never_over_the_limit(&report);
    }
    // Its writes took long before, so batches are large when it gets few operations.
    for (latency, factor) in [(0.2, 0.1), (1.0, 0.3), (1.0, 0.1)] {
        let scenario = scenario("few", &[(30.0, latency), (60.0, 0.0)]).with(|setup| {
            setup.disk.schedule = vec![(60.0, factor)];
        });
        let report = scenario.run();
        let (soon, late) = (mean(&report, 70, 80), mean(&report, 110, 120));
        println!("{latency} s, then x{factor}: {soon:.0} tx/s after 10 s, {late:.0} after 50 s");
        assert!(soon > 0.5 * late && late > 7000.0 * factor, "{soon} {late}");
        never_over_the_limit(&report);
    }
}
