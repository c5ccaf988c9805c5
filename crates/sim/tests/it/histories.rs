//! Random histories for a bounded time, and those that once failed.
use std::sync::atomic::{AtomicU64, Ordering};

use weir::{Clock, SystemClock};
use weir_sim::{Planted, Scenario, Shorten, Tally};

/// Time for random histories. `cargo run --release -p weir-sim -- --seconds N` has more.
const MICROS: u64 = 30_000_000;

#[test]
fn random_histories_end_well() {
    let clock = SystemClock::new();
    let next = AtomicU64::new(0);
    let run = || {
        let (mut tally, mut count) = (Tally::default(), 0);
        while clock.now_micros() < MICROS {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let scenario = Scenario::random(seed, Planted::Nothing);
            match scenario.run() {
                Ok(one) => tally.add(&one),
                Err(e) => panic!(
                    "seed {seed} with {:?}: {e:#} | cargo run --release -p weir-sim -- --seed \
                     {seed} --seeds 1 makes it shorter",
                    scenario.setup
                ),
            }
            count += 1;
        }
        (count, tally)
    };
    let (a, b) = std::thread::scope(|scope| {
        let other = scope.spawn(run);
        (run(), other.join().expect("the other thread"))
    });
    let (count, mut tally) = a;
    tally.add(&b.1);
    println!("{} histories: {tally:?}", count + b.0);
    assert!(tally.recoveries > 20, "far too slow: {tally:?}");
    assert!(tally.recovery_crashes > 0 && tally.ops > 1_000, "{tally:?}");
}

#[test]
fn what_once_failed_ends_well() {
    let past = [
        // The checkpoint passed the records of a batch under way whose undo, logged again, was
        // not durable yet: half of the batch stayed.
        1149,
        // A torn page of the catalog, which the undo of a loser needs, was reported as a halt.
        503_681,
    ];
    for seed in past {
        let scenario = Scenario::random(seed, Planted::Nothing);
        scenario.run().unwrap_or_else(|e| panic!("{}: {e:#}", scenario.arguments()));
    }
}
