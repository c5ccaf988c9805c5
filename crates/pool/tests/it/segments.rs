//! The pool over the log-structured store: pages are changed, evicted, read again and written
//! back, the store's upkeep asks what is dirty and has it flushed, and pages are given up, all at
//! the same time.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use weir_base::{Era, Lsn, PageNo, TreeId};
use weir_device::{SimVolume, Volume};
use weir_page::{Damage, Kind};
use weir_pool::{Cause, Exclusive, LogStructuredStore, PageStore, Pool, PoolError, StoreRead};
use weir_redo::{Durability, Log};

use crate::support::{DB, SIZE, counter, new_log, pool_config, set};

const PAGES: u32 = 900;
const FRAMES: u64 = 256;

struct Site {
    sim: SimVolume,
    log: Arc<Log>,
    pool: Pool,
}

fn site_on(sim: SimVolume) -> Site {
    let disk: Arc<dyn Volume> = Arc::new(sim.clone());
    let log = new_log(&disk);
    let store = LogStructuredStore::create(&disk, DB, SIZE, PAGES).expect("a store");
    disk.sync_directory().expect("synced");
    let pool = Pool::new(&pool_config(FRAMES), Arc::new(store), log.clone()).expect("a pool");
    pool.begin_at(log.end());
    Site { sim, log, pool }
}

impl Site {
    fn make(&self, pages: u32) {
        for page in (0..pages).map(PageNo) {
            let mut held = self.pool.fresh(page).expect("a page");
            weir_page::format(held.bytes_mut(), Kind::Meta, 0, TreeId(1), page);
            change_to(&self.log, held, 0);
        }
    }

    /// Writes some of the oldest dirty pages.
    fn sweep(&self, shard: usize) {
        let pages = self.pool.take_oldest(16, self.log.end());
        self.pool.write_back(shard, &pages, Cause::Deadline, 4, &mut |_| {}).expect("written");
    }

    fn drain(&self) {
        self.log.flush(Durability::Synced).expect("flushed");
        while self.pool.residence().dirty > 0 {
            self.sweep(1);
        }
    }

    fn opened_again(&self) -> LogStructuredStore {
        let disk: Arc<dyn Volume> = Arc::new(self.sim.snapshot());
        LogStructuredStore::open(&disk, DB).expect("a store")
    }
}

/// With something that does not pack to nothing.
fn change_to(log: &Log, mut held: Exclusive<'_>, value: u64) {
    Rng::with_seed(value).fill(&mut held.bytes_mut()[100..3800]);
    set(log, held, value);
}

fn change(site: &Site, added: &[AtomicU64], seed: u64, is_over: &AtomicBool) {
    let mut dice = Rng::with_seed(seed);
    while !is_over.load(Ordering::Relaxed) {
        change_one(site, added, dice.u32(..PAGES), dice.u8(..3) > 0);
    }
}

fn change_one(site: &Site, added: &[AtomicU64], page: u32, is_changed: bool) {
    site.pool.check_room(8).expect("room");
    let held = site.pool.exclusive(PageNo(page)).expect("the page");
    let value = counter(held.bytes());
    assert_eq!(value, added[page as usize].load(Ordering::Relaxed), "page {page}");
    if is_changed {
        added[page as usize].store(value + 1, Ordering::Relaxed);
        change_to(&site.log, held, value + 1);
    }
}

#[test]
fn the_pool_finds_its_pages_whatever_the_store_does() {
    let site = site_on(SimVolume::new(12));
    site.make(PAGES);
    let added: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let until = || !is_over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let (site, added, is_over) = (&site, &added, &is_over);
        (0..2).for_each(|seed| drop(scope.spawn(move || change(site, added, seed, is_over))));
        scope.spawn(move || {
            while until() {
                site.sweep(0);
            }
        });
        scope.spawn(move || {
            while until() {
                // Time goes fast: what is written a second is much.
                let now = began.elapsed().as_micros() as u64;
                site.pool.step_upkeep(now).expect("a step");
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let look = || site.pool.store().look().expect("a look");
        let few = || look().pages_written < 4000 || look().pages_copied < 100;
        let long = || began.elapsed() > Duration::from_secs(60);
        while began.elapsed() < Duration::from_secs(1) || few() && !long() {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let look = site.pool.store().look().expect("a look");
    assert!(look.pages_written >= 4000 && look.pages_copied >= 100, "{look:?}");
    let (counted, seen) = site.pool.count_gives_back();
    assert!(counted <= seen, "never more than what is there: {counted}, {seen}");
    // The thread that sweeps may have ended last and left nothing dirty.
    site.drain();
    (0..50).for_each(|page| change_one(&site, &added, page, true));
    let (counted, seen) = site.pool.count_gives_back();
    assert!(counted == seen && seen > 0, "of each page that is dirty: {counted}, {seen}");
    site.drain();
    let store = site.opened_again();
    let mut buf = vec![0; SIZE];
    for (page, added) in (0..).map(PageNo).zip(&added) {
        store.read(page, &mut buf).expect("there");
        assert_eq!(counter(&buf), added.load(Ordering::Relaxed), "page {page}");
    }
    assert!(store.newest_written().is_some_and(|(_, newest)| newest > Lsn(4096)));
}

#[test]
fn pages_that_are_given_up_free_their_room_unless_they_are_in_use_again() {
    let site = site_on(SimVolume::new(13));
    site.make(500);
    site.drain();
    let live = || site.pool.store().look().expect("a look").live_bytes;
    let before = live();
    let unused: Vec<PageNo> = (100..400).map(PageNo).collect();
    let store = site.pool.store();
    let found = store.placed(&unused);
    let end = site.log.end();
    assert_eq!(site.pool.give_up(&found, end).expect("given up"), 300);
    assert!(live() < before / 2, "{before} {}", live());
    assert_eq!(site.pool.give_up(&found, end).expect("nothing left"), 0);
    assert!(store.placed(&unused).is_empty());
    // One of them is in use again, and written before it is said that it is not.
    let placed = {
        let mut held = site.pool.fresh(PageNo(450)).expect("a page");
        weir_page::format(held.bytes_mut(), Kind::Meta, 0, TreeId(1), PageNo(450));
        let placed = store.placed(&[PageNo(450), PageNo(451)]);
        change_to(&site.log, held, 7);
        placed
    };
    site.drain();
    assert_eq!(store.give_up(&placed, site.log.end()).expect("given up"), 1);
    let again = site.opened_again();
    let mut buf = vec![0; SIZE];
    again.read(PageNo(450), &mut buf).expect("it is in use");
    assert_eq!(counter(&buf), 7);
    for gone in [100, 399, 451].map(PageNo) {
        let found = again.read(gone, &mut buf);
        let is_absent =
            |e: &PoolError| matches!(e, PoolError::Damaged { found: Damage::Zeroed, .. });
        assert!(found.as_ref().is_err_and(is_absent), "{found:?}");
    }
}

#[test]
fn many_pages_are_read_at_once_and_an_era_is_noted() {
    let site = site_on(SimVolume::new(14));
    site.make(200);
    site.drain();
    let store = site.opened_again();
    let mut bufs = vec![vec![0; SIZE]; 210];
    let mut reads: Vec<StoreRead<'_>> = (0..)
        .zip(&mut bufs)
        .map(|(page, buf)| StoreRead { page: PageNo(page), buf, outcome: Ok(()) })
        .collect();
    store.read_many(&mut reads);
    for (i, read) in reads.iter().enumerate() {
        assert_eq!(read.outcome.is_ok(), i < 200, "page {i}: {:?}", read.outcome);
        assert!(i >= 200 || counter(read.buf) == 0);
    }
    let era = Era { number: 5, mark: 99 };
    site.pool.store().set_era(era).expect("noted");
    let [_, odd] = site.opened_again().eras();
    assert_eq!(odd.expect("an era"), era);
}

#[test]
fn a_full_disk_refuses_a_change_before_it_is_made_and_all_that_was_changed_is_written() {
    let sim = SimVolume::new(15);
    let site = site_on(sim.clone());
    site.make(4);
    site.drain();
    let names = sim.list().expect("names");
    let used: usize = names.iter().map(|name| sim.read_raw(name).expect("a file").len()).sum();
    sim.set_capacity(Some(used as u64 + (1 << 20)));
    let mut made = 4;
    let refused = loop {
        assert!(made < PAGES, "never full");
        if let Err(e) = site.pool.check_room(64) {
            break e;
        }
        let mut held = site.pool.fresh(PageNo(made)).expect("a page");
        weir_page::format(held.bytes_mut(), Kind::Meta, 0, TreeId(1), PageNo(made));
        change_to(&site.log, held, u64::from(made));
        made += 1;
        if site.pool.residence().dirty > FRAMES / 2 {
            site.sweep(0);
        }
    };
    assert!(refused.is_disk_full(), "{refused}");
    assert!(made > 300, "{made}");
    site.drain();
    let (store, mut buf) = (site.opened_again(), vec![0; SIZE]);
    for page in 4..made {
        store.read(PageNo(page), &mut buf).expect("there");
        assert_eq!(counter(&buf), u64::from(page));
    }
    // What is there already may be changed: it is written in the place of what it was.
    for page in 4..204 {
        site.pool.check_room(0).expect("room for what gives as much back");
        let held = site.pool.exclusive(PageNo(page)).expect("the page");
        change_to(&site.log, held, u64::from(page) + 1000);
    }
    let (counted, seen) = site.pool.count_gives_back();
    assert!(counted == seen && counted > 150 * u64::from(u16::MAX), "{counted} {seen}");
    site.drain();
    assert_eq!(site.pool.count_gives_back(), (0, 0));
    sim.set_capacity(None);
    site.pool.check_room(64).expect("room again");
}

/// POOL-13: what dirty pages give back is counted page by page, also where they are given up while
/// they are dirty, changed while an older copy is on its way, or have nothing yet.
#[test]
fn what_dirty_pages_give_back_is_what_lies_there_of_them() {
    let site = site_on(SimVolume::new(16));
    site.make(200);
    assert_eq!(site.pool.count_gives_back(), (0, 0), "they lie nowhere");
    site.drain();
    let again = |pages: std::ops::Range<u32>| {
        for page in pages {
            let held = site.pool.exclusive(PageNo(page)).expect("the page");
            change_to(&site.log, held, 1);
        }
    };
    again(0..100);
    let (counted, seen) = site.pool.count_gives_back();
    assert!(counted == seen && counted > 80 * u64::from(u16::MAX), "{counted} {seen}");
    let unused: Vec<PageNo> = (0..50).map(PageNo).collect();
    let found = site.pool.store().placed(&unused);
    assert_eq!(site.pool.give_up(&found, site.log.end()).expect("given up"), 50);
    let (counted, seen) = site.pool.count_gives_back();
    assert!(counted == seen && counted < 50 * u64::from(u16::MAX), "{counted} {seen}");
    site.drain();
    assert_eq!(site.pool.count_gives_back(), (0, 0));

    // A page that is changed by the pace of its own batch: an older copy is on its way.
    again(0..8);
    site.log.flush(Durability::Synced).expect("flushed");
    let pages = site.pool.take_oldest(8, site.log.end());
    let mut during = None;
    site.pool
        .write_back(0, &pages, Cause::Deadline, 8, &mut |_| {
            again(0..4);
            during = Some(site.pool.count_gives_back());
        })
        .expect("written");
    assert_eq!(during, Some((0, 0)));
    assert_eq!(site.pool.residence().dirty, 4);
    assert_eq!(site.pool.count_gives_back().0, 0, "what they will give back was not known");
    site.drain();
    assert_eq!(site.pool.count_gives_back(), (0, 0));
}
