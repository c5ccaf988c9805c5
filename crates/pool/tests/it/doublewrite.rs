//! Crashes at every step of writing pages, in every mode of keeping them whole.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use weir_base::{Lsn, PageNo, TreeId};
use weir_device::{
    AtomicPromise, CrashMode, Fault, FaultyVolume, OpKind, Outcome, Rule, SimVolume, Volume, When,
};
use weir_page::{Damage, Kind};
use weir_pool::{
    DoubleWriteConfig, DoubleWriteMode, InPlaceStore, PageStore, PageWrite, PoolError,
};

use crate::support::{DB, SIZE, doublewrite};

const PAGES: u32 = 12;

fn open(sim: &SimVolume, config: DoubleWriteConfig) -> InPlaceStore {
    let volume: Arc<dyn Volume> = Arc::new(sim.clone());
    InPlaceStore::open(&volume, DB, SIZE, config).expect("a store")
}

/// A sealed page of round `round`, different in every sector.
fn page(number: u32, round: u64) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    weir_page::format(&mut bytes, Kind::Meta, 0, TreeId(1), PageNo(number));
    weir_page::set_lsn(&mut bytes, Lsn(round));
    for sector in bytes[48..].chunks_mut(8) {
        sector.fill(round as u8);
    }
    weir_page::seal(&mut bytes, DB);
    bytes
}

fn write(store: &InPlaceStore, shard: usize, numbers: &[u32], round: u64) -> Result<(), PoolError> {
    write_paced(store, shard, numbers, round, &mut |_| 2)
}

fn write_paced(
    store: &InPlaceStore,
    shard: usize,
    numbers: &[u32],
    round: u64,
    pace: &mut dyn FnMut(usize) -> usize,
) -> Result<(), PoolError> {
    let bytes: Vec<Vec<u8>> = numbers.iter().map(|&n| page(n, round)).collect();
    let writes: Vec<PageWrite<'_>> = numbers
        .iter()
        .zip(&bytes)
        .map(|(&n, bytes)| PageWrite { page: PageNo(n), lsn: Lsn(round), bytes })
        .collect();
    store.write_batch(shard, &writes, pace)
}

/// Rounds of batches over both files; returns, for each page, the round that is durable at least.
fn history(store: &InPlaceStore, durable: &mut [u64], from: u64, rounds: u64) {
    let mut random = fastrand::Rng::with_seed(from);
    for round in from..from + rounds {
        let mut numbers: Vec<u32> = (0..PAGES).filter(|_| random.bool()).collect();
        random.shuffle(&mut numbers);
        if write(store, round as usize, &numbers, round).is_err() {
            return;
        }
        numbers.iter().for_each(|&n| durable[n as usize] = round);
    }
}

fn round_of(store: &InPlaceStore, number: u32) -> Result<u64, PoolError> {
    let mut buf = vec![0; SIZE + 4096];
    // Aligned for direct I/O.
    let skip = buf.as_ptr().align_offset(4096);
    let buf = &mut buf[skip..skip + SIZE];
    store.read(PageNo(number), buf)?;
    Ok(weir_page::lsn(buf).0)
}

fn created(mode: DoubleWriteMode) -> (SimVolume, InPlaceStore) {
    let sim = SimVolume::new(11);
    let volume: Arc<dyn Volume> = Arc::new(sim.clone());
    let store = InPlaceStore::create(&volume, DB, SIZE, PAGES, doublewrite(mode)).expect("a store");
    (sim, store)
}

/// Wherever the power fails, every page is whole afterwards and not older than what was said to be
/// durable. The store is then used on, crashes again, and is whole again.
#[test]
fn on_repairs_every_torn_page() {
    let mut repaired = 0;
    for steps in 0..90 {
        for mode in [CrashMode::Random, CrashMode::LoseAll, CrashMode::KeepAll] {
            let (sim, store) = created(DoubleWriteMode::On);
            let mut durable = vec![0; PAGES as usize];
            history(&store, &mut durable, 1, 2);
            sim.set_crash_after(Some(steps));
            history(&store, &mut durable, 3, 8);
            let sim = sim.crash_with(mode, steps);
            let store = open(&sim, doublewrite(DoubleWriteMode::On));
            repaired += store.repair().expect("repaired").repaired;
            let check = |store: &InPlaceStore, durable: &[u64]| {
                for number in 0..PAGES {
                    let round = match round_of(store, number) {
                        Ok(round) => round,
                        Err(PoolError::Damaged { found: Damage::Zeroed, .. }) => 0,
                        Err(e) => panic!("after {steps} steps, {mode:?}: {e}"),
                    };
                    assert!(round >= durable[number as usize], "page {number}: {round} is old");
                }
            };
            check(&store, &durable);
            sim.set_crash_after(Some(40 + steps % 7));
            history(&store, &mut durable, 20, 8);
            let sim = sim.crash_with(mode, steps + 1);
            let store = open(&sim, doublewrite(DoubleWriteMode::On));
            repaired += store.repair().expect("repaired").repaired;
            check(&store, &durable);
        }
    }
    assert!(repaired > 20, "the crashes tore pages: {repaired}");
}

/// Detect-only finds every torn page when the store is opened, and refuses nothing else.
#[test]
fn detect_only_finds_every_torn_page() {
    let (mut torn, mut whole) = (0, 0);
    for steps in 0..90 {
        for mode in [CrashMode::Random, CrashMode::LoseAll, CrashMode::KeepAll] {
            let (sim, store) = created(DoubleWriteMode::DetectOnly);
            let mut durable = vec![0; PAGES as usize];
            sim.set_crash_after(Some(steps));
            history(&store, &mut durable, 1, 8);
            let sim = sim.crash_with(mode, steps);
            let store = open(&sim, doublewrite(DoubleWriteMode::DetectOnly));
            let bad: Vec<u32> = (0..PAGES)
                .filter(|&n| {
                    !matches!(
                        round_of(&store, n),
                        Ok(_) | Err(PoolError::Damaged { found: Damage::Zeroed, .. })
                    )
                })
                .collect();
            match store.repair() {
                Ok(repair) => {
                    assert_eq!(repair.repaired, 0);
                    assert!(bad.is_empty(), "torn pages {bad:?} were not found, {steps} {mode:?}");
                    whole += 1;
                }
                Err(PoolError::Damaged { page, .. }) => {
                    assert!(bad.contains(&page.0), "page {page} is not torn, {steps} {mode:?}");
                    torn += 1;
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
    assert!(torn > 10 && whole > 10, "{torn} torn, {whole} whole");
}

/// A copy of a settled batch is old: a page that was damaged later is damage, never that copy.
#[test]
fn copies_of_settled_batches_are_never_used() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2], 1).expect("written");
    write(&store, 1, &[1, 3], 2).expect("written");
    let crashed = sim.crash_with(CrashMode::LoseAll, 0);
    crashed.corrupt("pages", 2 * SIZE as u64 + 50, 1).expect("corrupted");
    crashed.corrupt("pages", 3 * SIZE as u64 + 50, 1).expect("corrupted");
    let store = open(&crashed, doublewrite(DoubleWriteMode::On));
    let repair = store.repair().expect("repaired");
    // Only the last batch of all may be unsettled as far as can be seen.
    assert_eq!((repair.checked, repair.repaired), (2, 1));
    assert!(matches!(round_of(&store, 2), Err(PoolError::Damaged { .. })));
    assert_eq!(round_of(&store, 3).expect("repaired"), 2);
    assert_eq!(open(&crashed, doublewrite(DoubleWriteMode::On)).repair().expect("done").checked, 0);
}

/// A batch whose own write was torn leaves copies of an older batch behind its header.
#[test]
fn a_copy_of_another_batch_is_not_taken_for_this_ones() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2], 1).expect("written");
    let old = sim.read_raw("doublewrite-0").expect("the file");
    write(&store, 0, &[1, 2], 2).expect("written");
    let mut torn = sim.read_raw("doublewrite-0").expect("the file");
    torn[4096..].copy_from_slice(&old[4096..]);
    let crashed = sim.crash_with(CrashMode::LoseAll, 0);
    crashed.write_raw("doublewrite-0", &torn).expect("torn");
    crashed.corrupt("pages", 2 * SIZE as u64 + 50, 1).expect("corrupted");
    let store = open(&crashed, doublewrite(DoubleWriteMode::On));
    assert_eq!(store.repair().expect("looked at").repaired, 0);
    assert!(matches!(round_of(&store, 2), Err(PoolError::Damaged { .. })), "not an old state");
    assert_eq!(round_of(&store, 1).expect("whole"), 2);
}

/// Fewer files, another mode, other batches: what an earlier configuration left is used or not as
/// it would have been.
#[test]
fn other_configurations_after_a_crash() {
    for steps in 0..60 {
        let sim = SimVolume::new(11);
        let volume: Arc<dyn Volume> = Arc::new(sim.clone());
        let four = DoubleWriteConfig { files: 4, ..doublewrite(DoubleWriteMode::On) };
        let store = InPlaceStore::create(&volume, DB, SIZE, PAGES, four).expect("a store");
        let mut durable = vec![0; PAGES as usize];
        sim.set_crash_after(Some(steps));
        history(&store, &mut durable, 1, 9);
        let sim = sim.crash(steps);
        let one = DoubleWriteConfig { files: 1, pages: 12, ..four };
        let store = open(&sim, one);
        store.repair().expect("repaired");
        for number in 0..PAGES {
            match round_of(&store, number) {
                Ok(round) => assert!(round >= durable[number as usize]),
                Err(PoolError::Damaged { found: Damage::Zeroed, .. }) => {
                    assert_eq!(durable[number as usize], 0);
                }
                Err(e) => panic!("after {steps} steps: {e}"),
            }
        }
        // Then a time without any doublewrite, ended by a crash: torn pages stay torn, for the
        // copies that there are were made before.
        let off = DoubleWriteConfig { mode: DoubleWriteMode::Off, ..one };
        let store = open(&sim, off);
        store.repair().expect("nothing to repair");
        write(&store, 0, &(0..PAGES).collect::<Vec<_>>(), 100).expect("written");
        sim.corrupt("pages", (steps % 12) * SIZE as u64 + 60, 1).expect("corrupted");
        let store = open(&sim, one);
        assert_eq!(store.repair().expect("looked at").repaired, 0);
        assert!(round_of(&store, (steps % 12) as u32).is_err());
    }
}

/// A database's area is not taken for another's.
#[test]
fn a_foreign_area_repairs_nothing() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2], 1).expect("written");
    sim.corrupt("pages", 2 * SIZE as u64 + 50, 1).expect("corrupted");
    let volume: Arc<dyn Volume> = Arc::new(sim.clone());
    let config = doublewrite(DoubleWriteMode::On);
    let other = InPlaceStore::open(&volume, weir_base::DbId(8), SIZE, config).expect("a store");
    assert_eq!(other.repair().expect("looked at").checked, 0);
}

/// For a torn page a drive may answer with an error instead of its bytes.
#[test]
fn an_unreadable_torn_page_is_repaired_too() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2, 3], 1).expect("written");
    let crashed = sim.crash_with(CrashMode::LoseAll, 0);
    crashed.corrupt("pages", 2 * SIZE as u64 + 50, 1).expect("corrupted");
    let faulty = FaultyVolume::new(Arc::new(crashed.clone()));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let config = doublewrite(DoubleWriteMode::On);
    let store = InPlaceStore::open(&volume, DB, SIZE, config).expect("a store");
    let rule = faulty.fail_nth("pages", OpKind::Read, 2, Fault::Broken);
    assert_eq!(store.repair().expect("repaired").repaired, 1);
    assert_eq!(faulty.hits(rule), 1);
    assert_eq!(round_of(&store, 2).expect("whole"), 1);
}

/// One that stays unreadable when it has been written again is an error, not a repaired page.
#[test]
fn what_stays_unreadable_is_not_called_repaired() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2, 3], 1).expect("written");
    let faulty = FaultyVolume::new(Arc::new(sim.crash_with(CrashMode::LoseAll, 0)));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let config = doublewrite(DoubleWriteMode::On);
    let store = InPlaceStore::open(&volume, DB, SIZE, config).expect("a store");
    faulty.fail_all("pages", OpKind::Read, Fault::Broken);
    assert!(matches!(store.repair(), Err(PoolError::Device { .. })));
}

/// A header that cannot be read is one whose write was torn: no page was touched after it.
#[test]
fn an_unreadable_header_is_no_batch() {
    let (sim, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1, 2], 1).expect("written");
    let crashed = sim.crash_with(CrashMode::LoseAll, 0);
    let faulty = FaultyVolume::new(Arc::new(crashed.clone()));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let config = doublewrite(DoubleWriteMode::On);
    let store = InPlaceStore::open(&volume, DB, SIZE, config).expect("a store");
    let flag = Arc::new(AtomicBool::new(true));
    faulty.add(Rule {
        name_prefix: "doublewrite-0".into(),
        op: OpKind::Read,
        when: When::While(flag.clone()),
        outcome: Outcome::Error(Fault::Broken),
    });
    assert_eq!(store.repair().expect("nothing to do").checked, 0);
    flag.store(false, Relaxed);
    crashed.corrupt("pages", 2 * SIZE as u64 + 50, 1).expect("corrupted");
    assert_eq!(store.repair().expect("nothing to do").checked, 0, "and never comes back");
    assert_eq!(round_of(&store, 1).expect("whole"), 1);
}

/// A thread that paces itself does not hold up another one that has the same file.
#[test]
fn no_thread_sleeps_in_a_file_that_others_wait_for() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(31));
    let config = DoubleWriteConfig { files: 1, ..DoubleWriteConfig::default() };
    let store = InPlaceStore::create(&volume, DB, SIZE, 64, config).expect("made");
    let (asleep, begin) = std::sync::mpsc::channel();
    let (done, woken) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let store = &store;
        let sleeper = scope.spawn(move || {
            let mut overtaken = false;
            let mut pace = |left: usize| {
                if left == 4 {
                    asleep.send(()).expect("told");
                    overtaken = woken.recv_timeout(Duration::from_secs(60)).is_ok();
                }
                2.min(left)
            };
            write_paced(store, 0, &[5, 6, 7, 8], 3, &mut pace).expect("written");
            overtaken
        });
        begin.recv().expect("asleep");
        write_paced(store, 2, &[20, 21], 4, &mut |left| left).expect("written");
        done.send(()).expect("told");
        assert!(sleeper.join().expect("no panic"), "the other one had to wait");
    });
    assert_eq!(round_of(&store, 7).expect("read"), 3);
}

/// A device that promises atomic writes, and how the pages are after each crash: every page whole,
/// and as new as what was durable.
fn crashes_with(promise: AtomicPromise) -> (u64, u64) {
    let (mut lost, mut doubled) = (0, 0);
    for seed in 0..300 {
        let sim = SimVolume::new(seed);
        sim.set_atomic(Some(promise));
        let volume: Arc<dyn Volume> = Arc::new(sim.clone());
        let config = doublewrite(DoubleWriteMode::On);
        let store = InPlaceStore::create(&volume, DB, SIZE, PAGES, config).expect("a store");
        let mut durable = [0; PAGES as usize];
        write(&store, 0, &(0..PAGES).collect::<Vec<_>>(), 1).expect("written");
        durable.fill(1);
        sim.set_crash_after(Some(seed % 40));
        history(&store, &mut durable, 2, 6);
        let found = open(&sim.crash(seed), config);
        doubled += u64::from(!found.doublewrite_copies().is_empty());
        let repaired = found.repair();
        for (number, &least) in (0..PAGES).zip(&durable) {
            lost += u64::from(!round_of(&found, number).is_ok_and(|round| round >= least));
        }
        assert!(repaired.is_ok());
    }
    (lost, doubled)
}

#[test]
fn where_writes_are_atomic_pages_are_written_once_and_stay_whole() {
    assert_eq!(crashes_with(AtomicPromise::Kept(SIZE as u64)), (0, 0));
    // Too small for a page: as if it promised nothing.
    let (lost, doubled) = crashes_with(AtomicPromise::Kept(SIZE as u64 / 2));
    assert!(lost == 0 && doubled > 0, "{doubled}");
    // It refuses after all: from then on the doublewrite area keeps them whole.
    let (lost, doubled) = crashes_with(AtomicPromise::Refused(SIZE as u64));
    assert!(lost == 0 && doubled > 0, "{doubled}");
    // One that lies tears them, and it is found.
    let (lost, _) = crashes_with(AtomicPromise::Broken(SIZE as u64));
    assert!(lost > 0);
}
