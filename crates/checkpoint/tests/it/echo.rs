//! A burst of page writes leaves a dense stretch in the dirty list, which comes due one log wrap
//! later. It must not come back as a wave.
use crate::report::{cv, mean};
use crate::scenario::Scenario;

/// CV of the per-second page writes in each log wrap.
fn waves(scenario: &Scenario) -> Vec<f64> {
    let waves = scenario.run().cv_by_wrap;
    let shown: Vec<_> = waves.iter().map(|wave| format!("{wave:.3}")).collect();
    println!("{}: CV of page writes by log wrap: {}", scenario.name, shown.join(" "));
    waves
}

#[test]
fn the_room_used_by_a_fresh_database_leaves_no_echo() {
    let waves = waves(&Scenario::new("fresh").lasting(240));
    assert!(waves[0] > 0.05, "no spike, nothing shown: {waves:?}");
    // In the first, room is used, so more is dirtied at its end; that is half gone in the second.
    assert!(waves[1] < 0.2 && waves[2..].iter().all(|&wave| wave < 0.02), "{waves:?}");
}

#[test]
fn pages_dirtied_all_at_once_are_spread_over_a_wrap() {
    let scenario = Scenario::new("all dirty at once").with(|s| s.all_dirty_at_start = true);
    let waves = waves(&scenario.lasting(240));
    assert!(waves[1..].iter().all(|&wave| wave < 0.03), "{waves:?}");
}

#[test]
fn an_outage_leaves_no_echo() {
    let outage = vec![(60.0, 0.05), (70.0, 1.0)];
    let scenario = Scenario::new("outage").with(|s| s.disk.schedule = outage).lasting(200);
    let waves = waves(&scenario);
    assert!(waves[1] > 0.2, "the outage is in the second wrap: {waves:?}");
    assert!(waves[2..].iter().all(|&wave| wave < 0.03), "{waves:?}");
}

#[test]
fn cv_is_the_standard_deviation_over_the_mean() {
    assert_eq!(mean(&[1.0, 3.0]), 2.0);
    assert_eq!(cv(&[1.0, 3.0]), 0.5);
    assert_eq!(cv(&[0.0, 0.0]), 0.0);
}
