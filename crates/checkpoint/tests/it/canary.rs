//! Policies known to be bad. If the suite's assertions let one of them pass, they prove nothing.
use crate::model::load::Clients;
use crate::scenario::Scenario;
use weir_checkpoint::{Limits, TickView, Verdict};

fn age_share(seen: &TickView<'_>, limits: &Limits) -> f64 {
    seen.log_end.bytes_since(seen.oldest_dirty) as f64 / limits.age_bytes as f64
}

fn verdict(pages_per_second: f64, admission: Option<f64>) -> Verdict {
    Verdict {
        deadline_pages_per_second: pages_per_second,
        free_pages_per_second: 0.0,
        idle_pages_per_second: 0.0,
        overdue_pages: 0,
        pages_per_second,
        in_flight_max: 64,
        free_frames_target: 0,
        admission_bytes_per_second: admission,
        capacity_pages_per_second: 0.0,
        age_target_bytes: 0,
    }
}

/// Furious flushing: nothing before the limit, everything at it.
fn at_the_limit(seen: &TickView<'_>, limits: &Limits) -> Verdict {
    verdict(if age_share(seen, limits) > 0.97 { 1e5 } else { 0.0 }, None)
}

/// MySQL 8's formula with a fixed io capacity, without a forecast.
fn io_capacity(seen: &TickView<'_>, limits: &Limits) -> Verdict {
    let percent = 100.0 * age_share(seen, limits) / (7.0 / 8.0);
    verdict(200.0 * percent.powf(1.5) / 750.0, None)
}

/// Looks at the oldest sixteenth of the list only, for the writer and for admission.
fn tail_only(seen: &TickView<'_>, limits: &Limits) -> Verdict {
    let span = limits.age_bytes / 16;
    let tail = seen.dirty.pages_older_than(seen.oldest_dirty.advanced(span)) as f64;
    let density = tail.max(1.0) / span as f64;
    let near = if age_share(seen, limits) > 0.9 { 1.0 } else { 0.0 };
    verdict(near * 1500.0, Some(1500.0 / density))
}

/// Holds the age well, but drains at full speed whenever it is above its target.
fn bang_bang(seen: &TickView<'_>, limits: &Limits) -> Verdict {
    verdict(if age_share(seen, limits) > 0.95 { 1500.0 } else { 100.0 }, None)
}

#[test]
fn the_assertions_reject_bad_policies() {
    type Policy = fn(&TickView<'_>, &Limits) -> Verdict;
    let policies: [(&str, Policy); 4] = [
        ("at the limit", at_the_limit),
        ("io capacity", io_capacity),
        ("tail only", tail_only),
        ("bang bang", bang_bang),
    ];
    let steady = Scenario::new("8 threads");
    let flood = Scenario::new("flood")
        .with(|setup| setup.clients = Clients::Lazy { threads: 4, cpu_seconds: 20e-6 })
        .lasting(100)
        .warmup(30);
    for (name, mut policy) in policies {
        for scenario in [&steady, &flood] {
            let report = scenario.run_with(&mut policy);
            let found = scenario.check(&report).expect_err(name);
            println!("{name}: {found}");
        }
    }
}

#[test]
fn the_assertions_accept_the_policy() {
    let steady = Scenario::new("8 threads");
    steady.check(&steady.run()).expect("the same assertions");
}
