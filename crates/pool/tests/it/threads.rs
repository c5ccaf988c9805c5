//! Changing, evicting and writing back at the same time.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_base::PageNo;
use weir_page::{Bytes, HEADER_BYTES};
use weir_pool::{Cause, DoubleWriteMode};
use weir_redo::Durability;

use crate::support::{SIZE, Site, counter, drain, make, set, site};

const PAGES: usize = 400;

/// Threads add to counters in pages while others write back and evict. Nothing is lost, nothing is
/// shown in halves, and at the end nothing is dirty.
fn storm(frames: u64, manual: bool, seconds: f64) {
    let site = site(frames, PAGES as u32, DoubleWriteMode::On);
    make(&site, PAGES as u32);
    site.pool.set_manual(manual);
    let added: Vec<AtomicU64> = (0..PAGES).map(|n| AtomicU64::new(n as u64)).collect();
    let stop = AtomicBool::new(false);
    let running = || !stop.load(Ordering::Relaxed);
    let changes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (site, added, changes) = (&site, &added, &changes);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                while running() {
                    let page = random.usize(0..PAGES);
                    let held = site.pool.exclusive(PageNo(page as u32)).expect("the page");
                    let value = counter(held.bytes()) + 1;
                    // Still under the latch: the model is changed in the order of the page.
                    assert_eq!(added[page].fetch_add(1, Ordering::Relaxed) + 1, value);
                    set(&site.log, held, value);
                    changes.fetch_add(1, Ordering::Relaxed);
                    look(site, random.usize(0..PAGES), &added[..]);
                }
            });
        }
        for shard in 0..2 {
            let site = &site;
            scope.spawn(move || {
                while running() {
                    sweep(site, shard);
                }
            });
        }
        if !manual {
            let site = &site;
            scope.spawn(move || {
                while running() {
                    site.pool.wait_until_wanted(Duration::from_millis(1));
                    site.pool.refill(1, 8, &mut |_| {}).expect("refilled");
                }
            });
        }
        let began = Instant::now();
        let mut last = weir_base::Lsn::ZERO;
        let few = || changes.load(Ordering::Relaxed) <= 500;
        // On a busy machine it takes longer until enough has happened.
        let long = || began.elapsed() > Duration::from_secs(60);
        while began.elapsed() < Duration::from_secs_f64(seconds) || few() && !long() {
            let oldest = site.pool.oldest();
            assert!(oldest >= last, "the oldest position moved back");
            last = oldest;
            std::thread::sleep(Duration::from_micros(200));
        }
        // The thread that waits for a frame gets one before the cleaner goes.
        site.pool.set_manual(true);
        stop.store(true, Ordering::Relaxed);
    });
    assert!(changes.load(Ordering::Relaxed) > 500);
    drain(&site);
    let durable = site.sim.snapshot().read_raw("pages").expect("the file");
    for (page, added) in added.iter().enumerate() {
        let value = added.load(Ordering::Relaxed);
        assert_eq!(counter(&durable[page * SIZE..(page + 1) * SIZE]), value, "page {page}");
        let held = site.pool.exclusive(PageNo(page as u32)).expect("the page");
        assert_eq!(counter(held.bytes()), value);
    }
}

/// An optimistic look counts only if it still holds, and then it saw one state.
fn look(site: &Site, page: usize, added: &[AtomicU64]) {
    let look = site.pool.optimistic(PageNo(page as u32)).expect("the page");
    let raw = look.raw();
    let (front, back) = (raw.u64_at(HEADER_BYTES), raw.u64_at(SIZE - 8));
    if look.still() {
        assert_eq!(front, back, "page {page} in halves");
        assert!(front <= added[page].load(Ordering::Relaxed));
    }
}

fn sweep(site: &Site, shard: usize) {
    let pages = site.pool.take_oldest(24, site.log.published());
    let done = site.pool.write_back(shard, &pages, Cause::Deadline, 4, &mut |_| {});
    let done = done.expect("written");
    assert_eq!(done.pages + done.skipped, pages.len());
    let oldest = site.pool.oldest();
    site.log.wait(oldest, Durability::Synced).expect("synced");
    site.log.set_checkpoint(oldest);
    site.log.maintain().expect("maintained");
}

#[test]
fn everything_at_once_in_memory() {
    storm(1024, true, 1.0);
}

#[test]
fn everything_at_once_with_evictions() {
    storm(16, true, 1.0);
    storm(64, true, 0.5);
}

#[test]
fn everything_at_once_with_a_cleaner() {
    storm(64, false, 1.0);
}

/// The same page, over and over, by all threads, while one writes it: never twice at once, and the
/// last state is the one on disk.
#[test]
fn one_page_written_while_it_changes() {
    let site = site(16, 4, DoubleWriteMode::On);
    make(&site, 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..4_000 {
                    let held = site.pool.exclusive(PageNo(0)).expect("the page");
                    let value = counter(held.bytes()) + 1;
                    set(&site.log, held, value);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        for shard in 0..2 {
            let (site, stop) = (&site, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    sweep(site, shard);
                    assert!(site.pool.pages_in_flight() <= 1, "one page is in flight once");
                }
            });
        }
    });
    drain(&site);
    let durable = site.sim.snapshot().read_raw("pages").expect("the file");
    assert_eq!(counter(&durable[..SIZE]), 8_000);
}
