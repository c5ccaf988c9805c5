//! A store made again of its segments, without its root and its map.
use fastrand::Rng;
use weir_base::DbId;
use weir_device::{CrashMode, SimVolume};
use weir_logstore::{Known, LogStore, ROOT_FILE, Rebuilt, SEGMENTS_FILE, StoreError};

use crate::support::{DB, Model, PAGE, PAGES, act, create, open, volume};

fn rebuild(sim: &SimVolume) -> Result<Rebuilt, StoreError> {
    let volume = volume(sim);
    if volume.exists(ROOT_FILE).expect("looked") {
        volume.remove(ROOT_FILE).expect("removed");
    }
    LogStore::rebuild(&volume, DB, Known { page_bytes: None, pages: PAGES })
}

/// A store that has worked in a few lives.
fn worked(seed: u64) -> (SimVolume, Model) {
    let sim = SimVolume::new(seed);
    drop(create(&sim).expect("a store"));
    let (mut model, mut dice) = (Model::new(), Rng::with_seed(seed));
    for _ in 0..dice.usize(1..4) {
        let store = open(&sim).expect("opened");
        for _ in 0..dice.usize(1..90) {
            act(&store, &mut model, &mut dice).expect("an action");
        }
    }
    (sim, model)
}

#[test]
fn every_page_lies_where_its_newest_block_is() {
    for seed in 0..40 {
        let (sim, mut model) = worked(seed);
        let Rebuilt { store, pages, pages_damaged } = rebuild(&sim).expect("made again");
        assert_eq!((store.page_bytes(), store.pages(), pages_damaged), (PAGE, PAGES, 0));
        model.check_but_freed(&store).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(pages > 0 || seed > 0);
        // It is a store like any other.
        let mut dice = Rng::with_seed(seed);
        for _ in 0..20 {
            act(&store, &mut model, &mut dice).expect("an action");
        }
        model.check_but_freed(&store).unwrap_or_else(|e| panic!("seed {seed}, worked on: {e}"));
    }
}

#[test]
fn what_a_crash_left_is_what_recovery_makes_of_it() {
    for seed in 0..60 {
        let sim = SimVolume::new(seed);
        let store = create(&sim).expect("a store");
        let (mut model, mut dice) = (Model::new(), Rng::with_seed(seed));
        // Something is there to be found.
        model.write(&store, &[1], 1).expect("written");
        sim.set_crash_after(Some(dice.u64(1..400)));
        while act(&store, &mut model, &mut dice).is_ok() {}
        drop(store);
        let modes = [CrashMode::Random, CrashMode::LoseAll, CrashMode::KeepAll];
        let left = sim.crash_with(modes[seed as usize % 3], seed);
        let Rebuilt { store, pages_damaged, .. } = rebuild(&left).expect("made again");
        assert_eq!(pages_damaged, 0, "seed {seed}: torn ones were not durable");
        model.check_but_freed(&store).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

#[test]
fn a_damaged_block_is_its_pages_all_the_same() {
    let (mut told, mut dice) = (0, Rng::with_seed(7));
    for seed in 0..30 {
        let (sim, model) = worked(100 + seed);
        let store = open(&sim).expect("opened");
        let page = dice.u32(..PAGES);
        let Some((_, at)) = store.place(weir_base::PageNo(page)) else { continue };
        drop(store);
        sim.corrupt(SEGMENTS_FILE, at + 40, 1).expect("a byte");
        let Rebuilt { store, pages_damaged, .. } = rebuild(&sim).expect("made again");
        let read = store.read(weir_base::PageNo(page), &mut [0; PAGE]);
        told += u64::from(matches!(read, Err(StoreError::Damaged { .. })));
        assert!(pages_damaged <= 1);
        let mut model = model.clone();
        for other in (0..PAGES).filter(|other| *other != page) {
            model
                .check_but_freed_page(&store, other)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
    // But where it was in the last chunks of a life: of these nothing says that they were durable.
    assert!(told > 8, "{told}");
}

#[test]
fn any_bytes_end_without_a_panic() {
    let (sim, _) = worked(9);
    let len = sim.read_raw(SEGMENTS_FILE).expect("the file").len() as u64;
    let mut dice = Rng::with_seed(1);
    for _ in 0..60 {
        let copy = sim.fork();
        for _ in 0..dice.usize(1..200) {
            copy.corrupt(SEGMENTS_FILE, dice.u64(..len), dice.u8(1..)).expect("a byte");
        }
        let Rebuilt { store, .. } = rebuild(&copy).expect("made again");
        let mut buf = [0; PAGE];
        for page in 0..PAGES {
            let _ = store.read(weir_base::PageNo(page), &mut buf);
        }
    }
    let copy = sim.fork();
    let mut bytes = vec![0; len as usize];
    bytes.fill_with(|| dice.u8(..));
    copy.write_raw(SEGMENTS_FILE, &bytes).expect("written");
    assert!(matches!(rebuild(&copy).err(), Some(StoreError::Damaged { .. })));
}

#[test]
fn segments_say_whose_they_are_and_another_databases_stay() {
    let (sim, _) = worked(11);
    assert_eq!(LogStore::find_db(&*volume(&sim)), Some(DB));
    let other = LogStore::rebuild(&volume(&sim), DbId(4), Known::default());
    assert!(matches!(other.err(), Some(StoreError::OtherStore { .. })));
    volume(&sim).remove(ROOT_FILE).expect("removed");
    assert_eq!(LogStore::find_db(&*volume(&sim)), Some(DB));
    let other = LogStore::rebuild(&volume(&sim), DbId(4), Known::default());
    assert!(matches!(other.err(), Some(StoreError::Damaged { .. })));
}
