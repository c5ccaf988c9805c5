//! A crash at every write of a workload; at every write of a recovery; and during that one again.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::{DoubleWriteConfig, DoubleWriteMode, Durability, ManualClock, SimVolume, StoreKind};
use weir_device::AtomicPromise;
use weir_device::CrashMode;
use weir_sim::{Crash, Generator, Model, Op, Player, Scenario, Setup, Tally, Value, recover};

fn workload(seed: u64, count: usize) -> Vec<Op> {
    Generator::new(seed).take(count)
}

fn scenario(setup: Setup, ops: &[Op], crash: Crash) -> Scenario {
    Scenario {
        seed: 7,
        setup,
        ops: ops.to_vec(),
        kept: (0..ops.len()).collect(),
        crashes: vec![crash],
    }
}

/// The disk's steps from the opening to the end of the workload.
fn steps_of(setup: &Setup, ops: &[Op]) -> u64 {
    fastrand::seed(7);
    let clock = Arc::new(ManualClock::default());
    let volume = SimVolume::new(7);
    let db = recover(setup, &volume, &clock).expect("a new database");
    let before = volume.writes_so_far();
    let model = Model::new(setup.page_size);
    let mut player = Player::new(*setup, volume.clone(), clock, db, model);
    player.play(ops).expect("the workload without a crash");
    volume.writes_so_far() - before
}

/// Runs all crashes on all cores; panics with the first that ends badly.
fn run_all(setup: Setup, ops: &[Op], crashes: &[Crash]) -> Tally {
    let next = AtomicU64::new(0);
    let work = || {
        let mut tally = Tally::default();
        while let Some(crash) = crashes.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            match scenario(setup, ops, crash.clone()).run() {
                Ok(one) => tally.add(&one),
                Err(e) => panic!("{setup:?}, {crash:?}: {e:#}"),
            }
        }
        tally
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut tally = work();
        tally.add(&other.join().expect("the other half"));
        tally
    })
}

const MODES: [CrashMode; 3] = [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random];

fn crash(after: u64, mode: CrashMode, in_recovery: Vec<u64>) -> Crash {
    Crash { after, mode, seed: after ^ 0x5eed, in_recovery }
}

fn every_write(setup: Setup, seed: u64, count: usize, at_least: u64) {
    every_write_of(setup, &workload(seed, count), at_least);
}

fn every_write_of(setup: Setup, ops: &[Op], at_least: u64) {
    let steps = steps_of(&setup, ops);
    assert!(steps >= at_least, "a workload of {steps} writes only");
    // Each crash point in one mode; which, changes from point to point. Torn is the most telling.
    let crashes: Vec<Crash> = (0..steps)
        .map(|after| {
            let mode = MODES[[0, 1, 2, 2, 2][(after % 5) as usize]];
            crash(after, mode, Vec::new())
        })
        .collect();
    let tally = run_all(setup, ops, &crashes);
    assert_eq!(tally.crashes, steps);
    println!("{steps} crash points: {tally:?}");
}

#[test]
fn at_every_write_with_pages_of_4096() {
    every_write(Setup::tiny(4096), 3, 260, 400);
}

#[test]
fn at_every_write_of_pages_in_segments() {
    let setup = Setup { store: StoreKind::Log, ..Setup::tiny(4096) };
    every_write(setup, 3, 260, 300);
}

#[test]
fn at_every_write_with_pages_of_8192() {
    every_write(Setup::tiny(8192), 12, 260, 300);
}

#[test]
fn at_every_write_with_pages_of_16384() {
    every_write(Setup::tiny(16384), 25, 110, 300);
}

/// Trees that are thinned at random and made dense, among changes: rows, separators and pages in
/// use are what they must be after each crash.
fn compactions(page_size: usize) -> Vec<Op> {
    let mut random = fastrand::Rng::with_seed(page_size as u64);
    let mut ops = Vec::new();
    for tree in 0..2 {
        ops.push(Op::Create(tree));
        // In an order that cuts leaves in their middle.
        let mut keys: Vec<u16> = (0..600).collect();
        random.shuffle(&mut keys);
        for keys in keys.chunks(60) {
            let value = |key| Some(Value { seed: u32::from(key) << 8, len: 300 });
            let rows = keys.iter().map(|&key| (tree, key, value(key))).collect();
            ops.push(Op::Batch { rows, durability: Durability::Lazy });
        }
    }
    for round in 0..3 {
        for tree in 0..2 {
            let mut rows: Vec<_> = (0..600).filter(|_| random.u8(0..4) > 0).collect();
            random.shuffle(&mut rows);
            let rows = rows.into_iter().map(|key| (tree, key, None)).collect();
            ops.push(Op::Batch { rows, durability: Durability::Synced });
            ops.push(Op::Compact(tree));
            let value = Value { seed: round << 8 | 1, len: 200 };
            let rows = (0..60).map(|_| (tree, random.u16(0..600), Some(value))).collect();
            ops.push(Op::Batch { rows, durability: Durability::Synced });
            ops.extend((0..4).map(|_| Op::Step));
        }
        ops.push(Op::Checkpoint);
        ops.extend((0..4).map(|_| Op::Step));
    }
    ops
}

#[test]
fn at_every_write_of_compactions() {
    for (page_size, store) in
        [(4096, StoreKind::InPlace), (8192, StoreKind::InPlace), (4096, StoreKind::Log)]
    {
        let setup = Setup { store, ..Setup::tiny(page_size) };
        every_write_of(setup, &compactions(page_size), 300);
    }
}

/// The same of long values, whose chains move as far to the front as may be.
fn compactions_of_long_values() -> Vec<Op> {
    let mut random = fastrand::Rng::with_seed(12);
    let mut value = |seed: u32| Value { seed, len: random.u32(2_000..14_000) };
    let mut ops = vec![Op::Create(0), Op::Create(1)];
    for key in 0..50 {
        let rows = (0..2).map(|tree| (tree, key, Some(value(u32::from(key))))).collect();
        ops.push(Op::Batch { rows, durability: Durability::Lazy });
    }
    for round in 0..2 {
        for tree in 0..2 {
            let gone = (0..50).filter(|key| (key + round) % 4 > 0);
            let rows = gone.map(|key| (tree, key, None)).collect();
            ops.push(Op::Batch { rows, durability: Durability::Synced });
            ops.push(Op::Compact(tree));
            let rows = (0..50).step_by(7).map(|key| (tree, key, Some(value(u32::from(key) << 9))));
            ops.push(Op::Batch { rows: rows.collect(), durability: Durability::Synced });
            ops.extend((0..4).map(|_| Op::Step));
        }
        ops.push(Op::Checkpoint);
        ops.extend((0..4).map(|_| Op::Step));
    }
    ops
}

#[test]
fn at_every_write_of_compactions_of_long_values() {
    // So large that a group may hold the pages of a chain.
    let (pool_bytes, log_bytes) = (2 << 20, 4 << 20);
    for page_size in [4096, 8192] {
        let setup = Setup { pool_bytes, log_bytes, ..Setup::tiny(page_size) };
        every_write_of(setup, &compactions_of_long_values(), 200);
    }
}

/// Where the device writes each page whole, and where it refuses to after all.
#[test]
fn at_every_write_where_writes_are_atomic() {
    for atomic in [AtomicPromise::Kept(4096), AtomicPromise::Refused(4096)] {
        every_write(Setup { atomic: Some(atomic), ..Setup::tiny(4096) }, 3, 260, 300);
    }
}

/// Without a doublewrite area nothing tears here: whole writes survive or are lost.
#[test]
fn at_every_write_without_a_doublewrite_area() {
    for mode in [DoubleWriteMode::Off, DoubleWriteMode::DetectOnly] {
        let doublewrite = DoubleWriteConfig { mode, files: 1, pages: 16 };
        let setup = Setup { doublewrite, ..Setup::tiny(4096) };
        let ops = workload(41, 120);
        let steps = steps_of(&setup, &ops);
        let crashes: Vec<Crash> =
            (0..steps).map(|n| crash(n, MODES[(n % 2) as usize], Vec::new())).collect();
        let tally = run_all(setup, &ops, &crashes);
        assert_eq!((tally.crashes, tally.recoveries, tally.torn), (steps, steps, 0));
    }
}

/// Several places of the workload; at each, a crash at every write of the recovery, and for some of
/// those another during the recovery from that.
#[test]
fn at_every_write_of_the_recovery() {
    recoveries_crash(Setup { pool_bytes: 256 << 10, ..Setup::tiny(4096) });
}

/// The same of pages in segments.
#[test]
fn at_every_write_of_the_recovery_of_segments() {
    recoveries_crash(Setup { store: StoreKind::Log, ..Setup::tiny(4096) });
}

fn recoveries_crash(setup: Setup) {
    let ops = workload(3, 260);
    let steps = steps_of(&setup, &ops);
    let mut crashes = Vec::new();
    for part in 1..=6 {
        let after = steps * part / 7;
        for mode in MODES {
            let most = recovery_steps(&setup, &ops, after, mode);
            for k in 0..most {
                crashes.push(crash(after, mode, vec![k]));
                if k % 3 == 0 {
                    crashes.push(crash(after, mode, vec![k, k / 2, k + 1]));
                }
            }
        }
    }
    let tally = run_all(setup, &ops, &crashes);
    assert!(tally.recovery_crashes > 300, "{tally:?}");
    println!("{} crashes of recoveries: {tally:?}", tally.recovery_crashes);
}

/// The disk's steps of the recovery from this crash, with the checkpoint that follows it.
fn recovery_steps(setup: &Setup, ops: &[Op], after: u64, mode: CrashMode) -> u64 {
    fastrand::seed(7);
    let clock = Arc::new(ManualClock::default());
    let volume = SimVolume::new(7);
    let db = recover(setup, &volume, &clock).expect("a new database");
    volume.set_crash_after(Some(after));
    let model = Model::new(setup.page_size);
    let mut player = Player::new(*setup, volume.clone(), clock.clone(), db, model);
    player.play(ops).expect("the workload up to the crash");
    let found = volume.crash_with(mode, after ^ 0x5eed);
    let db = recover(setup, &found, &clock).expect("recovered");
    db.checkpoint().expect("a checkpoint");
    let steps = found.writes_so_far();
    drop(db);
    steps
}
