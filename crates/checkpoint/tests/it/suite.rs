//! All scenarios, each with what it must hold.
use crate::model::disk::DiskSpec;
use crate::model::load::{Clients, Pages};
use crate::model::world::Setup;
use crate::report::Report;
use crate::scenario::{Bounds, LIMIT, Scenario};
use std::f64::consts::TAU;

fn threads(count: usize) -> impl FnOnce(&mut Setup) {
    move |setup| setup.clients = Clients::Closed(vec![(0.0, count)])
}

/// The issue's steps: 2, 32, 2, ... threads, 20 seconds each.
fn steps(name: &'static str, seconds: usize) -> Scenario {
    let steps = |at: usize| (20.0 * at as f64, if at.is_multiple_of(2) { 2 } else { 32 });
    Scenario::new(name)
        .with(|setup| setup.clients = Clients::Closed((0..seconds / 20).map(steps).collect()))
        .lasting(seconds)
        .segments((0..seconds / 20).map(|at| 20 * at))
}

fn open(name: &'static str, rate: fn(f64) -> f64) -> Scenario {
    Scenario::new(name).with(|setup| setup.clients = Clients::Open(rate)).bounds(Bounds {
        cv: f64::MAX,
        worst_second: 0.0,
        ..Bounds::STRICT
    })
}

/// Without this, the rule that no thread waits where a feasible schedule exists might never apply.
#[test]
fn feasibility_is_asked_where_it_should_be() {
    assert!(open("half", |_| 5000.0).admissible());
    assert!(open("burst", |_| 15_000.0).admissible());
    assert!(!open("flood", |_| 60_000.0).admissible());
    let halved = open("halved", |_| 15_000.0);
    assert!(!halved.with(|setup| setup.disk.schedule = vec![(9.0, 0.5)]).admissible());
}

fn lazy(name: &'static str) -> Scenario {
    let clients = Clients::Lazy { threads: 4, cpu_seconds: 20e-6 };
    Scenario::new(name).with(|setup| setup.clients = clients).lasting(100).warmup(30)
}

/// Runs the scenarios, prints their table, and fails with all that did not hold.
fn hold(scenarios: Vec<Scenario>) {
    let mut broken = Vec::new();
    let mut table = vec![Report::header()];
    for scenario in scenarios {
        let report = scenario.run();
        table.push(report.row(scenario.name));
        broken.extend(scenario.check(&report).err());
    }
    println!("{}", table.join("\n"));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_issue_s_jobs() {
    hold(vec![
        Scenario::new("8 threads"),
        Scenario::new("8 threads, groups overlap").with(|setup| setup.gather = false),
        Scenario::new("2 threads").with(threads(2)).lasting(400),
        Scenario::new("32 threads").with(threads(32)),
        steps("2 -> 32 -> 2 threads", 240),
        Scenario::new("disk halved for 30 s")
            .with(|setup| setup.disk.schedule = vec![(80.0, 0.5), (110.0, 1.0)])
            .segments([80, 110]),
    ]);
}

#[test]
fn loads() {
    hold(vec![
        Scenario::new("128 threads").with(threads(128)).lasting(90),
        Scenario::new("512 threads").with(threads(512)).lasting(90),
        open("half the disk", |_| 5000.0).lasting(300),
        open("ramp 2000 to 12000", |at| 2000.0 + at.min(150.0) * 66.0),
        open("sine, period A/R", |at| 7000.0 + 4000.0 * (at * TAU / 55.0).sin()),
        open("sine, period 0.7 A/R", |at| 7000.0 + 4000.0 * (at * TAU / 38.0).sin()),
        open("sine, period 6 s", |at| 7000.0 + 4000.0 * (at * TAU / 6.0).sin()),
        open("bursts x3, 10 s of 60", |at| if at % 60.0 < 10.0 { 15_000.0 } else { 5000.0 })
            .lasting(240),
        open("flood, open loop", |_| 60_000.0).lasting(90).warmup(30).bounds(Bounds {
            cv: 0.06,
            worst_second: 0.8,
            ..Bounds::STRICT
        }),
        lazy("flood, commits not awaited"),
        Scenario::new("skewed: 90 % on 2 %")
            .with(|setup| setup.pages = Pages::Skewed { hot: 2000, cold: 100_000 })
            .warmup(90),
        Scenario::new("appending")
            .with(|setup| setup.pages = Pages::Append { old: 2000, per_page: 50 })
            .warmup(70),
        Scenario::new("all dirty at once at the start")
            .with(|setup| setup.all_dirty_at_start = true),
    ]);
}

#[test]
fn disks() {
    let disk = |name, disk: DiskSpec| Scenario::new(name).with(|setup| setup.disk = disk);
    let stalls = [(60.05, 0.2), (70.13, 0.5), (90.0, 1.0), (120.0, 1.0)];
    hold(vec![
        disk("x0.3", DiskSpec::issue().times(0.3)).lasting(400),
        disk("x3", DiskSpec::issue().times(3.0)).lasting(100),
        disk("limited by bandwidth", DiskSpec::new(20_000.0, 32.0)).lasting(100),
        disk("slices of 100 ms", DiskSpec::issue().sliced(0.1)).lasting(240),
        disk("stalls of 0.2, 0.5, 1, 1 s", DiskSpec::issue().stalls(&stalls))
            .segments([60, 61, 70, 71, 90, 91, 120, 121]),
        disk("x0.3, x3, x1 every 30 s", {
            let factors = [(60.0, 0.3), (90.0, 3.0), (120.0, 1.0)];
            DiskSpec::issue().schedule(&factors)
        })
        .segments([60, 90, 120]),
        disk("x0.05 for 10 s", DiskSpec::issue().schedule(&[(60.0, 0.05), (70.0, 1.0)]))
            .segments([60, 61, 70, 71]),
        steps("steps, x5 (4.7 s a wrap)", 200)
            .with(|setup| setup.disk = DiskSpec::issue().times(5.0))
            .bounds(Bounds { pages_over_least: 1.10, ..Bounds::STRICT }),
        steps("steps, slices of 100 ms", 200)
            .with(|setup| setup.disk = DiskSpec::issue().sliced(0.1))
            .bounds(Bounds { cv: 0.14, worst_second: 0.65, ..Bounds::STRICT }),
        lazy("flood, disk halved for 30 s")
            .with(|setup| setup.disk.schedule = vec![(50.0, 0.5), (80.0, 1.0)])
            .segments([50, 80])
            .bounds(Bounds { cv: 0.13, worst_second: 0.6, ..Bounds::STRICT }),
    ]);
}

#[test]
fn logs_and_errors() {
    let steps_small = steps("steps, log / 4", 240);
    hold(vec![
        Scenario::new("log x2").with(|setup| setup.limits = vec![(0.0, 2 * LIMIT)]).lasting(240),
        Scenario::new("log / 4").with(|setup| setup.limits = vec![(0.0, LIMIT / 4)]),
        steps_small.with(|setup| setup.limits = vec![(0.0, LIMIT / 4)]),
        Scenario::new("log x2, then back")
            .with(|setup| {
                setup.limits = vec![(0.0, LIMIT), (60.0, 2 * LIMIT), (150.0, LIMIT)];
            })
            .lasting(250)
            .segments([60, 150])
            // The age climbs for a wrap after each growth; it ends where it belongs.
            .bounds(Bounds { cv: 0.10, worst_second: 0.55, age_mean: 0.80, pages_over_least: 0.0 }),
        Scenario::new("writer at half its pace").with(|setup| setup.pace_error = 0.5),
        Scenario::new("writer at 1.5 times its pace").with(|setup| setup.pace_error = 1.5),
        Scenario::new("ticks of 25 ms").with(|setup| setup.tick_seconds = 0.025),
        steps("steps, ticks of 50 ms", 200).with(|setup| setup.tick_seconds = 0.05),
        Scenario::new("ticks of 100 to 180 ms, batches of 30 ms").with(coarse),
        steps("steps, the same", 200).with(coarse).bounds(Bounds {
            cv: 0.10,
            worst_second: 0.65,
            ..Bounds::STRICT
        }),
    ]);
}

/// A sweeper with one batch after the other, as each lane of `sweep.rs` is.
#[test]
fn batch_after_batch() {
    let batches = |setup: &mut Setup| setup.batch_seconds = 0.025;
    hold(vec![
        Scenario::new("8 threads, batches").with(batches),
        Scenario::new("2 threads, batches").with(threads(2)).with(batches).lasting(400),
        Scenario::new("32 threads, batches").with(threads(32)).with(batches),
        Scenario::new("128 threads, batches").with(threads(128)).with(batches).lasting(90),
        steps("2 -> 32 -> 2 threads, batches", 240).with(batches),
        steps("the same, ticks of 50 ms", 240)
            .with(batches)
            .with(|setup| setup.tick_seconds = 0.05),
        Scenario::new("disk halved for 30 s, batches")
            .with(|setup| setup.disk.schedule = vec![(80.0, 0.5), (110.0, 1.0)])
            .with(batches)
            .segments([80, 110]),
        lazy("flood, commits not awaited, batches").with(batches),
    ]);
}

/// Short batches leave the disk to the log more often: the lab's quick site, 16 threads and a log
/// that wraps in some seconds.
#[test]
fn long_batches_cost_commits() {
    let quick = |batch_seconds: f64| {
        let scenario = Scenario::new("quick").with(threads(16)).with(|setup| {
            setup.pages = Pages::Uniform(4000);
            setup.limits = vec![(0.0, 5_500_000)];
            setup.tick_seconds = 0.05;
            setup.batch_seconds = batch_seconds;
        });
        scenario.lasting(60).warmup(20).run()
    };
    let (long, short) = (quick(0.05), quick(0.0125));
    println!("{}\n{}\n{}", Report::header(), long.row("50 ms"), short.row("12.5 ms"));
    assert!(short.tps_mean > 1.05 * long.tps_mean, "{} and {}", short.tps_mean, long.tps_mean);
    assert!(short.tps_cv < 0.03 && short.age_mean > 0.85, "{} {}", short.tps_cv, short.age_mean);
}

/// A busy machine: late ticks, rare batches.
fn coarse(setup: &mut Setup) {
    setup.tick_jitter = 0.8;
    setup.sweep_seconds = 0.03;
}
