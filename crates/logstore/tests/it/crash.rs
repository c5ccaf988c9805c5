//! The machine stops at every step that the store takes on its disk, and again in recovery.
use fastrand::Rng;
use weir_device::{CrashMode, SimVolume};
use weir_logstore::{LogStore, StoreError};

use crate::odd_disk::{Ways, odd};
use crate::support::{DB, Model, act, create, open};

const ACTIONS: usize = 40;
/// Histories in the tests of a change; `WEIR_CRASH_SEEDS` has others.
const SEEDS: u64 = 2;

/// Works until the disk crashes; `true`: it did.
fn history(store: &LogStore, model: &mut Model, seed: u64) -> bool {
    let mut dice = Rng::with_seed(seed);
    (0..ACTIONS).any(|_| act(store, model, &mut dice).is_err())
}

/// Opens what a crash left, crashing again at each step of that; then works, ends without a word,
/// and opens again.
fn survive(sim: &SimVolume, model: &Model, seed: u64) -> Result<(), String> {
    let modes = [CrashMode::Random, CrashMode::LoseAll, CrashMode::KeepAll];
    let mut sim = sim.crash_with(modes[seed as usize % 3], seed);
    let mut model = model.clone();
    // Some recoveries do not come to their end at first.
    for again in 0..seed % 3 {
        sim.set_crash_after(Some((seed / 3 + again) % 5));
        let opened = open(&sim);
        if let Err(e) = opened
            && !sim.has_crashed()
        {
            return Err(e.to_string());
        }
        sim = sim.crash_with(modes[(seed / 7) as usize % 3], seed + again);
    }
    let mut store = open(&sim).map_err(|e| e.to_string())?;
    model.check(&store)?;
    history(&store, &mut model, seed ^ 1);
    drop(store);
    // A process that ends keeps what it wrote; what it did not sync may be lost later.
    store = open(&sim).map_err(|e| e.to_string())?;
    model.check(&store)?;
    drop(store);
    let sim = sim.crash_with(CrashMode::Random, seed);
    let store = open(&sim).map_err(|e| e.to_string())?;
    model.check(&store)
}

/// How many steps a history takes.
fn steps_of(seed: u64) -> (u64, u64) {
    let sim = SimVolume::new(seed);
    let store = create(&sim).expect("a store");
    let created = sim.writes_so_far();
    assert!(!history(&store, &mut Model::new(), seed));
    (created, sim.writes_so_far())
}

#[test]
fn a_crash_at_every_step_loses_nothing_that_was_acknowledged() {
    let wanted = std::env::var("WEIR_CRASH_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..wanted.unwrap_or(SEEDS) {
        let (created, steps) = steps_of(seed);
        for crash_at in 0..steps - created {
            let sim = SimVolume::new(seed);
            let store = create(&sim).expect("a store");
            sim.set_crash_after(Some(crash_at));
            let mut model = Model::new();
            assert!(history(&store, &mut model, seed));
            let survived = survive(&sim, &model, crash_at + 1000 * seed);
            survived.unwrap_or_else(|e| panic!("seed {seed}, crash at {crash_at}: {e}"));
        }
    }
}

#[test]
fn a_disk_that_does_not_sync_is_caught() {
    let is_caught = |seed: u64| {
        let sim = SimVolume::new(seed);
        drop(create(&sim).expect("a store"));
        let store = LogStore::open(&odd(&sim, Ways { lies: true, ..Ways::default() }), DB)
            .expect("a store");
        let mut model = Model::new();
        history(&store, &mut model, seed);
        survive(&sim, &model, seed).is_err()
    };
    assert!((0..20).any(is_caught));
}

/// What a killed process wrote and did not sync is there when the store is opened, and may not be
/// lost any more once it was seen.
#[test]
fn a_kill_at_every_step_and_then_a_power_failure() {
    for kill_at in 0..160 {
        let sim = SimVolume::new(kill_at);
        drop(create(&sim).expect("a store"));
        let mut model = Model::new();
        // Opening takes five changes: two syncs, two copies of the root, a sync.
        let store =
            LogStore::open(&odd(&sim, Ways::killed_after(kill_at + 5)), DB).expect("a store");
        history(&store, &mut model, kill_at % 4);
        drop(store);
        let store = open(&sim).expect("a store");
        model.check(&store).unwrap_or_else(|e| panic!("killed at {kill_at}: {e}"));
        if kill_at % 2 == 0 {
            history(&store, &mut model, kill_at);
        }
        drop(store);
        let mode = if kill_at % 3 == 0 { CrashMode::LoseAll } else { CrashMode::Random };
        let store = open(&sim.crash_with(mode, kill_at)).expect("a store");
        let lost = model.check(&store);
        lost.unwrap_or_else(|e| panic!("killed at {kill_at}, then without power: {e}"));
    }
}

#[test]
fn a_store_that_has_halted_only_reads() {
    let sim = SimVolume::new(77);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    model.write(&store, &[1, 2, 3], 3).expect("written");
    sim.set_crash_after(Some(0));
    let failed = model.write(&store, &[2], 1).expect_err("the disk is gone");
    assert!(matches!(failed, StoreError::Device { .. }), "{failed}");
    let refused = model.write(&store, &[3], 1).expect_err("halted");
    assert!(matches!(refused, StoreError::Halted(_)), "{refused}");
    assert!(matches!(store.checkpoint_map(), Err(StoreError::Halted(_))));
    assert!(matches!(store.step_clean(1, &weir_logstore::NeverDirty), Err(StoreError::Halted(_))));
}
