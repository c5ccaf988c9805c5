//! Bursts: what a log that has room is worth to those that come all at once.
use crate::model::lanes::Sweeper;
use crate::model::load::{Clients, TPCC};
use crate::report::{Report, Second, cv, mean};
use crate::scenario::Scenario;

/// Log limit of TPC-C's scenarios: 256 MiB less what the log keeps for itself.
const LIMIT: u64 = 232 << 20;

/// 16 threads of TPC-C on `2000iops,32MiB` in a log of 256 MiB, nothing dirty at first.
fn tpcc(name: &'static str, steps: Vec<(f64, usize)>) -> Scenario {
    Scenario::new(name).with(|setup| {
        setup.pages = TPCC;
        setup.clients = Clients::Closed(steps);
        setup.limits = vec![(0.0, LIMIT)];
        setup.redo_bytes = 1008;
        setup.tick_seconds = 0.05;
        setup.sweeper = Sweeper::Lanes;
        setup.gather = false;
        setup.think_seconds = 0.0012;
    })
}

fn commits(report: &Report) -> Vec<f64> {
    report.seconds.iter().map(|Second { commits, .. }| *commits).collect()
}

/// Commits a second while no page needs to be written: a log that is out of reach.
fn free_rate(threads: usize) -> f64 {
    let far =
        tpcc("free", vec![(0.0, threads)]).with(|setup| setup.limits = vec![(0.0, 64 * LIMIT)]);
    mean(&commits(&far.lasting(12).run()))
}

/// The least of a second over the mean of the five before it.
fn steepest_fall(commits: &[f64]) -> f64 {
    commits.windows(6).map(|six| six[5] / mean(&six[..5])).fold(f64::MAX, f64::min)
}

#[test]
fn a_burst_without_an_end_uses_the_room_and_glides() {
    let free = free_rate(16);
    let report = tpcc("endless", vec![(0.0, 16)]).lasting(200).run();
    let commits = commits(&report);
    let early: Vec<f64> =
        report.seconds.iter().take_while(|s| s.age_over_limit < 0.6).map(|s| s.commits).collect();
    let quick = early.iter().filter(|&&second| second >= 0.85 * free).count();
    let settled = &commits[150..];
    println!(
        "free {free:.0}; below 60 % for {} s, {quick} of them at 0.85 of it, mean {:.2}; steepest \
         fall {:.2}, least {:.0}; settled {:.0}, CV {:.3}",
        early.len(),
        mean(&early) / free,
        steepest_fall(&commits),
        commits.iter().copied().fold(f64::MAX, f64::min),
        mean(settled),
        cv(settled),
    );
    assert!(early.len() <= 22 && quick + 4 >= early.len() && mean(&early) > 0.9 * free);
    assert!(steepest_fall(&commits) > 0.75);
    // The dense front of the list, written late, costs less than half of the steady rate.
    assert!(commits.iter().all(|&second| second > 0.6 * mean(settled)));
    assert!(cv(settled) < 0.02 && report.age_max <= 1.0 && report.gate_closed_seconds == 0.0);
}

/// Ten bursts of 30 seconds by 32 clients, with pauses of 90 seconds and one client.
#[test]
fn each_burst_finds_the_room_that_the_pause_made() {
    let steps = (0..20).map(|at| match at % 2 {
        0 => (60.0 * f64::from(at), 32),
        _ => (60.0 * f64::from(at) - 30.0, 1),
    });
    let report = tpcc("bursts", steps.collect()).lasting(1200).run();
    let commits = commits(&report);
    let bursts: Vec<f64> = (0..10).map(|at| mean(&commits[120 * at..120 * at + 30])).collect();
    let pauses: Vec<f64> =
        (0..10).map(|at| mean(&commits[120 * at + 35..120 * at + 120])).collect();
    let ages = (0..10).map(|at| report.seconds[120 * at + 119].age_over_limit);
    let ages: Vec<f64> = ages.collect();
    let shares: Vec<f64> = bursts.iter().map(|burst| burst / bursts[0]).collect();
    println!(
        "bursts {bursts:.0?}\nof the first {shares:.2?}\npauses {pauses:.0?}, ages {ages:.2?}"
    );
    assert!(report.age_max <= 1.0 && report.gate_closed_seconds == 0.0, "{}", report.age_max);
    // In the pauses room is made for the next burst, and the one client has its part of the disk.
    assert!(shares.iter().all(|&share| share > 0.88), "{shares:?}");
    assert!(ages.iter().all(|&age| age < 0.3), "{ages:?}");
    assert!(pauses.iter().all(|&pause| pause > 250.0), "{pauses:?}");
}

/// Everything is dirty and of the same age: after a crash, or a bulk load.
#[test]
fn a_burst_on_a_list_that_is_due_all_at_once() {
    let report =
        tpcc("restart", vec![(0.0, 16)]).with(|s| s.all_dirty_at_start = true).lasting(200);
    let report = report.run();
    let commits = commits(&report);
    println!("steepest fall {:.2}, {:.3}", steepest_fall(&commits), report.age_max);
    assert!(report.age_max <= 1.0 && report.gate_closed_seconds == 0.0, "{}", report.age_max);
    assert!(steepest_fall(&commits) > 0.7, "{}", steepest_fall(&commits));
}

#[test]
fn a_burst_that_meets_an_age_at_its_limit() {
    let report = tpcc("full", vec![(0.0, 2), (700.0, 32)]).lasting(780).run();
    let commits = commits(&report);
    let before = report.seconds[699].age_over_limit;
    println!("age {before:.2}, then {:?}, {:.3}", &commits[698..706], report.age_max);
    assert!(before > 0.85, "{before}");
    assert!(report.age_max <= 1.0 && report.gate_closed_seconds == 0.0, "{}", report.age_max);
    assert!(commits[701..].iter().all(|&second| second > 0.5 * mean(&commits[720..])));
}
