//! Damage, and devices that fail.
use std::sync::Arc;

use weir_base::PageNo;
use weir_device::{Fault, FaultyVolume, OpKind, SimVolume, Volume};
use weir_page::{Damage, HEADER_BYTES};
use weir_pool::{Cause, DoubleWriteMode, InPlaceStore, Pool, PoolError};
use weir_redo::Durability;

use crate::support::{
    DB, SIZE, Site, counter, doublewrite, drain, make, new_log, pool_config, set, site,
};

#[test]
fn damage_names_page_file_and_offset() {
    let site = site(16, 200, DoubleWriteMode::On);
    make(&site, 100);
    drain(&site);
    site.sim.corrupt("pages", 42 * SIZE as u64 + 100, 0x10).expect("corrupted");
    for page in 50..100 {
        site.pool.optimistic(PageNo(page)).expect("others are readable");
    }
    for _ in 0..40 {
        match site.pool.exclusive(PageNo(42)).map(|held| held.page()) {
            Err(PoolError::Damaged { page: PageNo(42), file, offset, found }) => {
                assert_eq!((file.as_str(), offset), ("pages", 42 * SIZE as u64));
                assert!(found.to_string().contains("checksum"), "{found}");
            }
            other => panic!("page 42 is damaged, not {other:?}"),
        }
    }
    assert!(site.pool.halted().is_none());
    for page in (0..100).filter(|&p| p != 42) {
        let held = site.pool.exclusive(PageNo(page)).expect("others are readable");
        assert_eq!(counter(held.bytes()), u64::from(page));
    }
    // A page that is made anew needs no reading.
    set(&site.log, site.pool.fresh(PageNo(42)).expect("fresh"), 5);
    drain(&site);
}

fn faulty(frames: u64) -> (Site, FaultyVolume) {
    let sim = SimVolume::new(3);
    let faulty = FaultyVolume::new(Arc::new(sim.clone()));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let log = new_log(&volume);
    let mode = doublewrite(DoubleWriteMode::On);
    let store = InPlaceStore::create(&volume, DB, SIZE, 600, mode).expect("a store");
    let config = pool_config(frames);
    let pool = Arc::new(Pool::new(&config, Arc::new(store), log.clone()).expect("a pool"));
    pool.begin_at(log.end());
    (Site { sim, log, pool }, faulty)
}

/// After a failed write nothing is written any more, the checkpoint stays before the pages that
/// failed, and no thread is shown an old state of them.
#[test]
fn a_failed_write_halts_and_shows_no_old_page() {
    for (name, op) in
        [("pages", OpKind::Write), ("pages", OpKind::Sync), ("doublewrite-", OpKind::DurableWrite)]
    {
        let (site, faulty) = faulty(64);
        make(&site, 200);
        drain(&site);
        let before = site.log.end();
        for page in 0..10 {
            let held = site.pool.exclusive(PageNo(page)).expect("the page");
            set(&site.log, held, 1_000 + u64::from(page));
        }
        faulty.fail_nth(name, op, 1, Fault::Broken);
        let pages = site.pool.take_oldest(16, site.log.end());
        assert_eq!(pages.len(), 10);
        let failed = site.pool.write_back(0, &pages, Cause::Deadline, 4, &mut |_| {});
        assert!(matches!(failed, Err(PoolError::Device { .. })), "{failed:?}");
        assert!(site.pool.halted().is_some());
        faulty.clear();
        assert!(site.pool.oldest() <= before.advanced(64), "the checkpoint may not pass them");
        let again = site.pool.write_back(0, &pages, Cause::Deadline, 4, &mut |_| {});
        assert!(matches!(again, Err(PoolError::Halted(_))));
        // The cleaner's thread may look once more before it notices.
        site.pool.set_free_target(16);
        for page in 10..200 {
            let _ = site.pool.refill(0, 4, &mut |_| {});
            let _ = site.pool.optimistic(PageNo(page));
        }
        for page in 0..200 {
            if let Ok(held) = site.pool.exclusive(PageNo(page)) {
                let newest = if page < 10 { 1_000 + u64::from(page) } else { u64::from(page) };
                assert_eq!(counter(held.bytes()), newest, "an old state of page {page}");
            }
        }
    }
}

#[test]
fn a_failed_read_is_an_error_and_loses_no_frame() {
    let (site, faulty) = faulty(16);
    make(&site, 100);
    drain(&site);
    let rule = faulty.fail_all("pages", OpKind::Read, Fault::Broken);
    let failed = (0..200).filter(|n| site.pool.exclusive(PageNo(n % 100)).is_err()).count();
    assert!(failed > 150 && faulty.hits(rule) >= failed as u64);
    faulty.clear();
    for page in 0..100 {
        assert_eq!(
            counter(site.pool.exclusive(PageNo(page)).expect("well again").bytes()),
            u64::from(page)
        );
    }
}

/// A full disk does not grow the file, and changes nothing.
#[test]
fn growing_on_a_full_disk() {
    let (site, faulty) = faulty(16);
    make(&site, 10);
    faulty.full_disk(true);
    let store = site.pool.store();
    let full = store.grow(5_000);
    assert!(full.is_err_and(|e| e.is_disk_full()));
    assert_eq!(store.pages(), 600);
    faulty.full_disk(false);
    store.grow(5_000).expect("there is room again");
    store.grow(10).expect("nothing to do");
    assert_eq!(store.pages(), 5_000);
    set(&site.log, site.pool.fresh(PageNo(4_999)).expect("a page"), 1);
    drain(&site);
}

/// A group that meets a halted log leaves its change in memory under the page's old LSN: it must
/// not get to disk, also while no thread that saw the error has halted the pool.
#[test]
fn a_change_that_the_log_has_refused_is_not_written() {
    let (site, faulty) = faulty(64);
    make(&site, 20);
    drain(&site);
    // Dirty, and its last change is durable.
    set(&site.log, site.pool.exclusive(PageNo(3)).expect("the page"), 33);
    site.log.flush(Durability::Synced).expect("synced");
    faulty.fail_nth("redo-", OpKind::DurableWrite, 1, Fault::Broken);
    set(&site.log, site.pool.exclusive(PageNo(4)).expect("the page"), 44);
    assert!(site.log.flush(Durability::Synced).is_err());
    faulty.clear();
    {
        let mut held = site.pool.exclusive(PageNo(3)).expect("the page");
        let at = held.bytes_mut().len() - 8;
        held.bytes_mut()[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&99u64.to_le_bytes());
        held.bytes_mut()[at..].copy_from_slice(&99u64.to_le_bytes());
        assert!(site.log.append(&[9; 40], |span| held.log_change(span)).is_err());
    }
    let mut pages = site.pool.take_oldest(16, site.log.end());
    pages.retain(|(page, _)| *page == PageNo(3));
    assert_eq!(pages.len(), 1, "it is dirty, and its LSN is durable");
    let swept = site.pool.write_back(0, &pages, Cause::Deadline, 4, &mut |_| {});
    assert!(swept.is_err(), "{swept:?}");
    let mut buf = weir_base::AlignedBuf::zeroed(SIZE);
    site.pool.store().read(PageNo(3), &mut buf).expect("readable");
    assert_ne!(counter(&buf), 99);
}

/// Reads so many other pages that `page` leaves the pool.
fn forget(site: &Site, page: PageNo) {
    for other in (100..200).map(PageNo) {
        let _ = site.pool.optimistic(other);
    }
    assert!(!site.pool.is_resident(page));
}

/// A device that has not written what it said it had leaves an older page, whole and sealed. The
/// doublewrite area has the page as it was written; without one it is lost.
#[test]
fn a_lost_write_is_damage() {
    for mode in [DoubleWriteMode::Off, DoubleWriteMode::On] {
        let site = site(16, 200, mode);
        make(&site, 200);
        drain(&site);
        let before = site.sim.read_raw("pages").expect("the file");
        set(&site.log, site.pool.exclusive(PageNo(3)).expect("the page"), 1_000);
        drain(&site);
        forget(&site, PageNo(3));
        assert_eq!(counter(site.pool.exclusive(PageNo(3)).expect("the page").bytes()), 1_000);
        forget(&site, PageNo(3));
        let mut after = site.sim.read_raw("pages").expect("the file");
        after[3 * SIZE..4 * SIZE].copy_from_slice(&before[3 * SIZE..4 * SIZE]);
        site.sim.write_raw("pages", &after).expect("lost");
        match site.pool.exclusive(PageNo(3)) {
            Ok(held) if mode == DoubleWriteMode::On => assert_eq!(counter(held.bytes()), 1_000),
            Err(PoolError::Damaged { page: PageNo(3), file, offset, found })
                if mode == DoubleWriteMode::Off =>
            {
                assert_eq!((file.as_str(), offset), ("pages", 3 * SIZE as u64));
                assert!(matches!(found, Damage::LostWrite { .. }), "{found}");
            }
            Ok(_) => panic!("the write of page 3 was lost"),
            Err(e) => panic!("{mode:?}: {e}"),
        }
        assert_eq!(site.pool.findings().len(), 1, "{mode:?}");
        assert_eq!(counter(site.pool.exclusive(PageNo(2)).expect("another").bytes()), 2);
    }
}

/// A page that the log knows nothing of is another log's.
#[test]
fn a_page_ahead_of_the_log_is_damage() {
    let site = site(16, 200, DoubleWriteMode::On);
    make(&site, 200);
    drain(&site);
    forget(&site, PageNo(3));
    let mut raw = site.sim.read_raw("pages").expect("the file");
    let durable = site.log.durable();
    for (lsn, is_sound) in [(durable, true), (durable.advanced(1), false)] {
        forget(&site, PageNo(3));
        let page = &mut raw[3 * SIZE..4 * SIZE];
        weir_page::set_lsn(page, lsn);
        weir_page::seal(page, DB);
        site.sim.write_raw("pages", &raw).expect("written");
        let found = site.pool.exclusive(PageNo(3)).map(|held| held.page());
        match found {
            Ok(_) => assert!(is_sound, "a page at {lsn} of a log of {durable}"),
            Err(PoolError::Damaged { found: Damage::Ahead { .. }, .. }) => assert!(!is_sound),
            Err(e) => panic!("{e}"),
        }
    }
}
