//! explore
use crate::model::disk::DiskSpec;
use crate::model::load::{Clients, Pages};
use crate::report::Report;
use crate::scenario::{LIMIT, Scenario};

fn flood(_: f64) -> f64 {
    60000.0
}
fn sine(t: f64) -> f64 {
    8000.0 + 6000.0 * (t * 6.28318 / 37.0).sin()
}
fn burst(t: f64) -> f64 {
    if t % 60.0 < 10.0 { 16000.0 } else { 5000.0 }
}
fn half(_: f64) -> f64 {
    5000.0
}

#[test]
fn explore() {
    let closed = |n: usize| {
        move |s: &mut crate::model::world::Setup| s.clients = Clients::Closed(vec![(0.0, n)])
    };
    let steps: Vec<(f64, usize)> =
        (0..15).map(|i| (20.0 * i as f64, if i % 2 == 0 { 2 } else { 32 })).collect();
    let all = vec![
        Scenario::new("steady 8"),
        Scenario::new("steady 8 nogather").with(|s| s.gather = false),
        Scenario::new("steady 2").with(closed(2)).lasting(300),
        Scenario::new("steady 32").with(closed(32)),
        Scenario::new("steady 128").with(closed(128)),
        Scenario::new("steady 512").with(closed(512)),
        Scenario::new("step")
            .with(|s| s.clients = Clients::Closed(steps.clone()))
            .lasting(300)
            .segments((0..15).map(|i| 20 * i)),
        Scenario::new("halving")
            .with(|s| s.disk = DiskSpec::issue().schedule(&[(80.0, 0.5), (110.0, 1.0)]))
            .segments([80, 110]),
        Scenario::new("x0.3").with(|s| s.disk = DiskSpec::issue().times(0.3)).lasting(300),
        Scenario::new("x3").with(|s| s.disk = DiskSpec::issue().times(3.0)).lasting(100),
        Scenario::new("bw-bound").with(|s| s.disk = DiskSpec::new(20000.0, 32.0)).lasting(100),
        Scenario::new("slices").with(|s| s.disk = DiskSpec::issue().sliced(0.1)).lasting(300),
        Scenario::new("stalls").with(|s| {
            s.disk =
                DiskSpec::issue().stalls(&[(60.05, 0.2), (70.13, 0.5), (90.0, 1.0), (120.0, 1.0)])
        }),
        Scenario::new("lazy")
            .with(|s| s.clients = Clients::Lazy { threads: 4, cpu_seconds: 20e-6 })
            .lasting(100),
        Scenario::new("lazy halving")
            .with(|s| {
                s.clients = Clients::Lazy { threads: 4, cpu_seconds: 20e-6 };
                s.disk = DiskSpec::issue().schedule(&[(50.0, 0.5), (80.0, 1.0)])
            })
            .lasting(120)
            .segments([50, 80]),
        Scenario::new("flood open").with(|s| s.clients = Clients::Open(flood)).lasting(60),
        Scenario::new("sine").with(|s| s.clients = Clients::Open(sine)).lasting(180),
        Scenario::new("burst").with(|s| s.clients = Clients::Open(burst)).lasting(240),
        Scenario::new("half load").with(|s| s.clients = Clients::Open(half)).lasting(240),
        Scenario::new("skewed").with(|s| s.pages = Pages::Skewed { hot: 2000, cold: 100_000 }),
        Scenario::new("append").with(|s| s.pages = Pages::Append { old: 2000, per_page: 50 }),
        Scenario::new("log/4").with(|s| s.limits = vec![(0.0, LIMIT / 4)]),
        Scenario::new("grow, shrink")
            .with(|s| s.limits = vec![(0.0, LIMIT), (60.0, 2 * LIMIT), (150.0, LIMIT)])
            .lasting(240)
            .segments([60, 120, 150, 180]),
        Scenario::new("spike").with(|s| s.all_dirty_at_start = true),
        Scenario::new("spike 32").with(|s| {
            s.all_dirty_at_start = true;
            s.clients = Clients::Closed(vec![(0.0, 32)])
        }),
        Scenario::new("coarse").with(|s| {
            s.tick_jitter = 0.8;
            s.sweep_seconds = 0.03
        }),
        Scenario::new("coarse step")
            .with(|s| {
                s.tick_jitter = 0.8;
                s.sweep_seconds = 0.03;
                s.clients = Clients::Closed(steps.clone())
            })
            .lasting(300)
            .segments((0..15).map(|i| 20 * i)),
        Scenario::new("outage")
            .with(|s| s.disk = DiskSpec::issue().schedule(&[(60.0, 0.05), (70.0, 1.0)]))
            .segments([60, 70])
            .lasting(300),
        Scenario::new("step slices")
            .with(|s| {
                s.disk = DiskSpec::issue().sliced(0.1);
                s.clients = Clients::Closed(steps.clone())
            })
            .lasting(300)
            .segments((0..15).map(|i| 20 * i)),
        Scenario::new("step log/4")
            .with(|s| {
                s.limits = vec![(0.0, LIMIT / 4)];
                s.clients = Clients::Closed(steps.clone())
            })
            .lasting(300)
            .segments((0..15).map(|i| 20 * i)),
        Scenario::new("step fast")
            .with(|s| {
                s.disk = DiskSpec::issue().times(5.0);
                s.clients = Clients::Closed(steps.clone())
            })
            .lasting(200)
            .segments((0..10).map(|i| 20 * i)),
        Scenario::new("pace x0.5").with(|s| s.pace_error = 0.5),
        Scenario::new("pace x1.5").with(|s| s.pace_error = 1.5),
    ];
    let only = std::env::var("ONLY").ok();
    Report::print_header();
    for scenario in all {
        if only.as_ref().is_some_and(|only| only != scenario.name) {
            continue;
        }
        let start = std::time::Instant::now();
        let report = scenario.run();
        report.print(scenario.name);
        println!(
            "    {:?} {:?}",
            start.elapsed(),
            report.cv_by_wrap.iter().map(|c| format!("{c:.2}")).collect::<Vec<_>>()
        );
    }
}
