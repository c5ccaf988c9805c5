//! More pages than frames.
use std::sync::Arc;

use weir_base::PageNo;
use weir_device::Volume;
use weir_pool::{DoubleWriteMode, InPlaceStore, Pool, PoolError};

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
