//! More pages than frames.
use std::sync::Arc;

use weir_base::{Lsn, PageNo};
use weir_device::Volume;
use weir_pool::{Cause, DoubleWriteMode, InPlaceStore, PageStore, Pool, PoolError};

use crate::support::{DB, SIZE, counter, doublewrite, drain, make, pool_config, set, site};

/// Every page comes back as it was last changed, however often it was evicted, and the disk holds
/// the same when the pool is gone.
#[test]
fn what_was_evicted_comes_back() {
    for frames in [16, 20, 64] {
        let site = site(frames, 600, DoubleWriteMode::On);
        make(&site, 500);
        let mut model: Vec<u64> = (0..500).collect();
        let mut random = fastrand::Rng::with_seed(frames);
        for step in 1_000..9_000 {
            let page = random.usize(0..500);
            let held = site.pool.exclusive(PageNo(page as u32)).expect("the page");
            assert_eq!(counter(held.bytes()), model[page], "page {page}");
            if random.bool() {
                set(&site.log, held, step);
                model[page] = step;
            }
            let residence = site.pool.residence();
            assert!(residence.free <= residence.frames && residence.dirty <= residence.frames);
        }
        assert!(site.pool.stats().evictions.get() > 1_000);
        drain(&site);
        let volume: Arc<dyn Volume> = Arc::new(site.sim.snapshot());
        let store = InPlaceStore::open(&volume, DB, SIZE, doublewrite(DoubleWriteMode::On));
        let store = store.expect("a store");
        assert_eq!(store.repair().expect("repaired").repaired, 0);
        let again = Pool::new(&pool_config(16), Arc::new(store), site.log.clone()).expect("a pool");
        for (page, value) in model.iter().enumerate() {
            let held = again.exclusive(PageNo(page as u32)).expect("the page");
            assert_eq!(counter(held.bytes()), *value);
        }
    }
}

/// A look at a page that is evicted and read in again is no longer good, and neither is its token.
#[test]
fn eviction_ends_every_look() {
    let site = site(16, 200, DoubleWriteMode::On);
    make(&site, 100);
    drain(&site);
    let look = site.pool.optimistic(PageNo(3)).expect("the page");
    let token = look.token();
    assert!(look.still() && site.pool.is_still(token));
    for page in 20..100 {
        site.pool.optimistic(PageNo(page)).expect("the page");
    }
    assert!(!look.still() && !site.pool.is_still(token));
    assert!(look.upgrade().is_none());
    site.pool.optimistic(PageNo(3)).expect("the page");
    assert!(!look.still() && !site.pool.is_still(token), "another stay in memory");
}

/// Many pages at once, absent and present and missing among each other.
#[test]
fn many_at_once() {
    let site = site(64, 200, DoubleWriteMode::On);
    make(&site, 100);
    drain(&site);
    let wanted: Vec<PageNo> = [5, 99, 3, 42, 7, 42, 60, 8].map(PageNo).to_vec();
    drop(site.pool.exclusive(PageNo(42)).expect("present"));
    let held = site.pool.exclusive(PageNo(7)).expect("held");
    site.pool.bring_in(&wanted).expect("all are there");
    drop(held);
    let reads = site.pool.stats().reads.get();
    for page in wanted {
        let held = site.pool.exclusive(page).expect("the page");
        assert_eq!((held.page(), counter(held.bytes())), (page, u64::from(page.0)));
    }
    assert_eq!(site.pool.stats().reads.get(), reads, "none is read twice");
    let damaged = site.pool.bring_in(&[PageNo(11), PageNo(150), PageNo(12)]);
    assert!(matches!(damaged, Err(PoolError::Damaged { page: PageNo(150), .. })), "{damaged:?}");
    drop(site.pool.exclusive(PageNo(12)).expect("the others are read nevertheless"));
    let beyond = site.pool.bring_in(&[PageNo(4000), PageNo(1)]);
    assert!(matches!(beyond, Err(PoolError::NoSuchPage(PageNo(4000)))), "{beyond:?}");
    assert!(matches!(site.pool.optimistic(PageNo(u32::MAX)), Err(PoolError::NoSuchPage(_))));
    let residence = site.pool.residence();
    site.pool.set_free_target(16);
    while !site.pool.refill(0, 4, &mut |_| {}).expect("refilled") {}
    assert!(site.pool.residence().free >= 16, "no frame was lost: {residence:?}");
}

/// Pages that no thread has asked for come into frames that will not be missed.
#[test]
fn warming_evicts_nothing_and_leaves_the_free_frames_alone() {
    let site = site(128, 300, DoubleWriteMode::On);
    make(&site, 200);
    drain(&site);
    // Again from the disk.
    let pages: Vec<PageNo> = (0..200).map(PageNo).collect();
    site.pool.set_free_target(32);
    while !site.pool.refill(0, 4, &mut |_| {}).expect("refilled") {}
    let (evictions, taken) =
        (site.pool.stats().evictions.get(), site.pool.stats().frames_taken.get());
    assert_eq!(site.pool.warm(&pages), 0, "32 and some are kept");
    site.pool.set_free_target(4);
    let spare = site.pool.spare_frames();
    assert!((20..28).contains(&spare), "{spare}");
    assert_eq!(site.pool.warm(&pages), spare);
    assert_eq!((site.pool.spare_frames(), site.pool.stats().warmed.get()), (0, spare));
    assert_eq!(site.pool.stats().evictions.get(), evictions);
    assert_eq!(site.pool.stats().frames_taken.get(), taken, "no demand that is to be foreseen");
    let list = site.pool.warm_list();
    assert_eq!(list.pages() as u64, 128 - site.pool.residence().free);
    let (there, _) = list.hottest(usize::MAX);
    assert!(there.with_heat().all(|(page, _)| site.pool.is_resident(page)));
    let reads = site.pool.stats().reads.get();
    for (page, _) in there.with_heat() {
        let held = site.pool.exclusive(page).expect("the page");
        assert_eq!(counter(held.bytes()), u64::from(page.0));
    }
    assert_eq!(site.pool.stats().reads.get(), reads);
}

/// Never written, damaged, beyond the end, beyond what there can be, held by a thread.
#[test]
fn warming_passes_over_what_cannot_be_had() {
    let site = site(64, 300, DoubleWriteMode::On);
    make(&site, 100);
    drain(&site);
    site.pool.set_free_target(16);
    while !site.pool.refill(0, 4, &mut |_| {}).expect("refilled") {}
    site.pool.set_free_target(4);
    let absent = |page: &u32| !site.pool.is_resident(PageNo(*page));
    let [good, damaged, held, ..] = (0..100).filter(absent).collect::<Vec<u32>>()[..] else {
        panic!("some are absent");
    };
    site.sim.corrupt("pages", u64::from(damaged) * 4096 + 99, 4).expect("corrupted");
    let free = site.pool.residence().free;
    let holder = site.pool.exclusive(PageNo(held)).expect("the page");
    let wanted = [good, damaged, held, 250, 299, 300, 5_000, 1 << 16, u32::MAX].map(PageNo);
    assert_eq!(site.pool.warm(&wanted), 1);
    drop(holder);
    assert!(site.pool.is_resident(PageNo(good)) && !site.pool.is_resident(PageNo(damaged)));
    assert_eq!(site.pool.residence().free, free - 2, "no frame is lost");
    assert!(site.pool.halted().is_none());
    let told = site.pool.optimistic(PageNo(damaged));
    assert!(matches!(told, Err(PoolError::Damaged { .. })), "the caller gets the error");
    // A page that was passed over is made as if no thread had looked.
    set(&site.log, site.pool.fresh(PageNo(250)).expect("fresh"), 250);
    drain(&site);
}

/// A page that a thread holds cannot leave: making the pool smaller ends with words, not in a wait
/// without end, and the pool is as it was.
#[test]
fn a_pool_does_not_shrink_below_what_is_held() {
    let site = site(256, 300, DoubleWriteMode::On);
    make(&site, 250);
    drain(&site);
    let held: Vec<_> =
        (0..250).map(|page| site.pool.exclusive(PageNo(page)).expect("held")).collect();
    let mut waits = 0;
    // Another thread than the one that holds them.
    let shrunk = std::thread::scope(|scope| {
        let shrink = || {
            site.pool.resize(64 * SIZE as u64, &mut |given_up| {
                waits += u32::from(given_up == 0);
                waits < 3
            })
        };
        scope.spawn(shrink).join().expect("no panic")
    });
    let words = shrunk.expect_err("pages are held").to_string();
    assert!(words.contains("pages in what is to be given up are in use"), "{words}");
    let frames = site.pool.residence().frames;
    assert!(frames > 64, "{frames}");
    drop(held);
    site.pool.resize(64 * SIZE as u64, &mut |_| true).expect("smaller");
    assert_eq!(site.pool.residence().frames, 64);
    for page in 0..250 {
        let held = site.pool.exclusive(PageNo(page)).expect("the page");
        assert_eq!(counter(held.bytes()), u64::from(page));
    }
    // Dirty pages are written first.
    for page in 0..40 {
        set(&site.log, site.pool.exclusive(PageNo(page)).expect("the page"), 1_000);
    }
    site.pool.resize(16 * SIZE as u64, &mut |_| true).expect("smaller");
    site.pool.resize(300 * SIZE as u64, &mut |_| true).expect_err("beyond what it may have");
    for page in 0..40 {
        let held = site.pool.exclusive(PageNo(page)).expect("the page");
        assert_eq!(counter(held.bytes()), 1_000);
    }
    drain(&site);
}

/// Pages that were written to free their frames leave their places on the dirty list behind. A
/// batch of one page is the oldest one nevertheless: otherwise the log could not go on.
#[test]
fn the_oldest_page_is_taken_however_many_were_written_for_their_frames() {
    const OLD: PageNo = PageNo(50);
    let site = site(256, 300, DoubleWriteMode::On);
    make(&site, 200);
    drain(&site);
    let change = |page| set(&site.log, site.pool.exclusive(page).expect("the page"), 7);
    for page in (0..100).map(PageNo) {
        change(page);
    }
    // So often that the log goes on by more than a bucket of the list.
    for round in 0..20 {
        for page in (0..100).map(PageNo).filter(|page| *page != OLD) {
            let write = [(page, Lsn(0))];
            let written = site.pool.write_back(1, &write, Cause::FreeFrames, 1, &mut |_| {});
            assert_eq!(written.expect("written").pages, 1, "round {round}");
            change(page);
        }
    }
    let before = site.pool.oldest();
    let taken = site.pool.take_oldest(1, site.log.end());
    assert_eq!(taken.iter().map(|listed| listed.0).collect::<Vec<_>>(), [OLD]);
    site.pool.write_back(0, &taken, Cause::Deadline, 1, &mut |_| {}).expect("written");
    assert!(site.pool.oldest() > before, "the checkpoint may move");
    assert_eq!(site.pool.take_oldest(1000, site.log.end()).len(), 99, "each of the others once");
}
