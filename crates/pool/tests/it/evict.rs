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

/// Many pages at once, absent and present and missing among each other, in the order asked for.
#[test]
fn many_at_once() {
    let site = site(64, 200, DoubleWriteMode::On);
    make(&site, 100);
    drain(&site);
    let wanted: Vec<PageNo> = [5, 99, 3, 150, 42, 7, 60, 8].map(PageNo).to_vec();
    let got = site.pool.exclusive_many(&wanted);
    for (page, got) in wanted.iter().zip(&got) {
        match got {
            Ok(held) => {
                assert_eq!((held.page(), counter(held.bytes())), (*page, u64::from(page.0)))
            }
            Err(e) => {
                assert_eq!(*page, PageNo(150), "{e}");
                assert!(matches!(e, PoolError::Damaged { .. }));
            }
        }
    }
    drop(got);
    let beyond = site.pool.exclusive_many(&[PageNo(4000), PageNo(1)]);
    assert!(matches!(beyond[0], Err(PoolError::NoSuchPage(PageNo(4000)))));
    assert!(beyond[1].is_ok());
    drop(beyond);
    assert!(matches!(site.pool.optimistic(PageNo(u32::MAX)), Err(PoolError::NoSuchPage(_))));
    let residence = site.pool.residence();
    site.pool.set_free_target(16);
    while !site.pool.refill(0, 4, &mut |_| {}).expect("refilled") {}
    assert!(site.pool.residence().free >= 16, "no frame was lost: {residence:?}");
}
