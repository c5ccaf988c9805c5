//! The file of segments becomes smaller when much of it is not needed any more, whatever lay at its
//! end, whatever crash comes, and while others read.
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use weir_base::PageNo;
use weir_device::{CrashMode, SimVolume, Volume};
use weir_logstore::{Dirty, LogStore, NeverDirty, SEGMENTS_FILE, Upkeep};

use crate::support::{EverySeventh, Model, PAGE, PAGES, config, create, open};

/// A store whose file was large once: what is live lies all over it.
fn large(sim: &SimVolume) -> (LogStore, Model) {
    let store = create(sim).expect("a store");
    let mut model = Model::new();
    store.make_room_for(15_000).expect("room");
    // Pages that are written once lie among others that are written again and again.
    let mut dice = Rng::with_seed(5);
    let (often, once) = (0..PAGES / 7, PAGES / 7..PAGES);
    for page in once.rev() {
        let mut pages: Vec<u32> = (0..23).map(|_| dice.u32(often.clone())).chain([page]).collect();
        pages.sort_unstable();
        pages.dedup();
        model.write(&store, &pages, 64).expect("written");
        if store.is_checkpoint_due() {
            store.checkpoint_map().expect("a map checkpoint");
        }
    }
    model.write(&store, &often.collect::<Vec<u32>>(), 64).expect("written");
    (store, model)
}

fn segments(store: &LogStore) -> u64 {
    store.observe().bytes / config().segment_bytes as u64
}

/// Upkeep, every tenth of a second for so many steps; `true`: without an error.
fn keep(
    store: &LogStore,
    upkeep: &mut Upkeep,
    steps: std::ops::Range<u64>,
    dirty: &dyn Dirty,
) -> bool {
    let mut each = steps.map(|step| store.step_upkeep(upkeep, step * 100_000, dirty));
    each.all(|kept| kept.is_ok())
}

#[test]
fn room_goes_back_to_the_file_system_and_all_pages_stay() {
    let sim = SimVolume::new(1);
    let (store, mut model) = large(&sim);
    let before = segments(&store);
    assert!(before > 120, "{before}");
    let mut upkeep = Upkeep::default();
    upkeep.held_bytes = 300 * PAGE as u64;
    assert!(keep(&store, &mut upkeep, 1..3_000, &NeverDirty));
    let after = segments(&store);
    assert!(after < 60, "{before} segments, then {after}");
    let file = sim.open(SEGMENTS_FILE).expect("the file").len();
    assert_eq!(file, after * config().segment_bytes as u64);
    assert!(store.stats().cuts.get() > 1, "the file is cut on the way, too");
    assert!(store.room_pages() >= 300, "{}", store.room_pages());
    model.check(&store).expect("every page");
    // It stays as it is, and grows when it has to.
    assert!(keep(&store, &mut upkeep, 3_000..4_000, &NeverDirty));
    assert_eq!(segments(&store), after);
    store.make_room_for(15_000).expect("room");
    assert!(segments(&store) > 100);
    drop(store);
    let store = open(&sim.crash_with(CrashMode::LoseAll, 1)).expect("opened");
    model.check(&store).expect("every page");
}

#[test]
fn dirty_pages_are_asked_for_and_not_moved() {
    let sim = SimVolume::new(2);
    let (store, mut model) = large(&sim);
    let before = segments(&store);
    let (mut upkeep, dirty) = (Upkeep::default(), EverySeventh(3));
    for step in 1..4_000 {
        let kept = store.step_upkeep(&mut upkeep, step * 100_000, &dirty).expect("upkeep");
        let wanted: Vec<u32> = kept.cleaned.flush_wanted.iter().map(|page| page.0).collect();
        assert!(wanted.iter().all(|page| dirty.is_dirty(PageNo(*page))));
        if !wanted.is_empty() {
            model.write(&store, &wanted, 8).expect("written");
        }
    }
    assert!(segments(&store) < before / 2, "{before}, then {}", segments(&store));
    model.check(&store).expect("every page");
}

#[test]
fn a_crash_on_the_way_loses_nothing() {
    let sim = SimVolume::new(3);
    let (store, model) = large(&sim);
    let before = sim.writes_so_far();
    assert!(keep(&store, &mut Upkeep::default(), 1..3_000, &NeverDirty));
    let (steps, small) = (sim.writes_so_far() - before, segments(&store));
    let mut sizes = std::collections::BTreeSet::new();
    let modes = [CrashMode::Random, CrashMode::LoseAll, CrashMode::KeepAll];
    for crash_at in (0..steps).step_by(3) {
        let sim = SimVolume::new(3);
        let (store, _) = large(&sim);
        sim.set_crash_after(Some(crash_at));
        assert!(!keep(&store, &mut Upkeep::default(), 1..3_000, &NeverDirty));
        let mut model = model.clone();
        let found = sim.crash_with(modes[crash_at as usize % 3], crash_at);
        let store = open(&found).unwrap_or_else(|e| panic!("crash at {crash_at}: {e}"));
        model.check(&store).unwrap_or_else(|e| panic!("crash at {crash_at}: {e}"));
        sizes.insert(segments(&store));
        // And goes on.
        assert!(keep(&store, &mut Upkeep::default(), 1..3_000, &NeverDirty));
        assert!(segments(&store) <= small + 2, "crash at {crash_at}: {}", segments(&store));
        model.check(&store).unwrap_or_else(|e| panic!("crash at {crash_at}, later: {e}"));
    }
    assert!(sizes.len() > 2, "crashes before, between and behind cuts: {sizes:?}");
}

#[test]
fn readers_and_writers_go_on_meanwhile() {
    let sim = SimVolume::new(4);
    let (store, mut model) = large(&sim);
    let before = segments(&store);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (store, is_done) = (&store, &is_done);
            scope.spawn(move || {
                let (mut dice, mut buf) = (Rng::with_seed(seed), vec![0; PAGE]);
                while !is_done.load(Ordering::Relaxed) {
                    let page = dice.u32(..PAGES);
                    let read = store.read(PageNo(page), &mut buf);
                    read.unwrap_or_else(|e| panic!("page {page}: {e}"));
                }
            });
        }
        scope.spawn(|| {
            assert!(keep(&store, &mut Upkeep::default(), 1..4_000, &NeverDirty));
            is_done.store(true, Ordering::Relaxed);
        });
        let mut dice = Rng::with_seed(9);
        while !is_done.load(Ordering::Relaxed) {
            let mut pages: Vec<u32> = (0..8).map(|_| dice.u32(..PAGES)).collect();
            pages.sort_unstable();
            pages.dedup();
            model.write(&store, &pages, 8).expect("written");
        }
    });
    assert!(segments(&store) < before, "{before}, then {}", segments(&store));
    model.check(&store).expect("every page");
}
