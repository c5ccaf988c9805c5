//! A disk that does nothing for long: no verdict that it leads to may outlast it.
use crate::model::disk::DiskSpec;
use crate::model::lanes::Sweeper;
use crate::report::{Report, Second, mean};
use crate::scenario::Scenario;

/// When it begins, in seconds.
const FROM: usize = 60;
/// How long the load takes to be what it was.
const AGAIN: usize = 15;

fn commits(report: &Report, from: usize, to: usize) -> f64 {
    let commits = |Second { commits, .. }: &Second| *commits;
    mean(&report.seconds[from..to].iter().map(commits).collect::<Vec<_>>())
}

#[test]
fn a_disk_that_did_nothing_for_long_is_used_again() {
    println!("{}", Report::header());
    for sweeper in [Sweeper::Simple, Sweeper::Lanes] {
        for stall in [5, 30, 120] {
            let scenario = Scenario::new("a long stall").with(|setup| {
                setup.disk = DiskSpec::issue().stalls(&[(FROM as f64, stall as f64)]);
                setup.tick_seconds = 0.05;
                setup.sweeper = sweeper;
            });
            let report = scenario.lasting(FROM + stall + AGAIN + 20).run();
            println!("{}", report.row(&format!("{sweeper:?}, {stall} s")));
            let (before, from) = (commits(&report, 30, FROM), FROM + stall + AGAIN);
            let after = commits(&report, from, from + 20);
            assert!(after > 0.9 * before, "{sweeper:?}, {stall} s: {after} after {before}");
        }
    }
}
