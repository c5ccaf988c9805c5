//! Pages handed out and freed, over a simulated disk.
mod holes;

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_base::{DbId, Lsn, PageNo, TreeId};
use weir_change::{Group, Header, Op};
use weir_device::{Fault, FaultyVolume, OpKind, SimVolume, Volume};
use weir_page::Kind;
use weir_pool::{
    Cause, DoubleWriteConfig, DoubleWriteMode, InPlaceStore, PageUse, Pool, PoolConfig, PoolError,
};
use weir_redo::{Durability, Log, LogConfig};
use weir_space::{Space, SpaceError};

const PAGE: usize = 4096;
/// Pages that one map page of this size describes.
const PER_MAP: u32 = (4096 - 48) * 8;

struct Site {
    sim: SimVolume,
    faulty: FaultyVolume,
    log: Arc<Log>,
    pool: Arc<Pool>,
}

fn pool(volume: &Arc<dyn Volume>, log: &Arc<Log>, create: bool) -> Arc<Pool> {
    let config = DoubleWriteConfig { mode: DoubleWriteMode::Off, ..DoubleWriteConfig::default() };
    let store = if create {
        InPlaceStore::create(volume, DbId(1), PAGE, 8, config)
    } else {
        InPlaceStore::open(volume, DbId(1), PAGE, config)
    };
    let config = PoolConfig {
        bytes: 64 * PAGE as u64,
        pages_max: 1 << 17,
        log_usual_bytes: 4 << 20,
        log_span_bytes: 16 << 20,
        manual: true,
        skip_log_gate: false,
        page_use: PageUse::Changed,
    };
    let pool = Pool::new(&config, Arc::new(store.expect("a store")), log.clone()).expect("a pool");
    pool.begin_at(log.end());
    Arc::new(pool)
}

fn site() -> Site {
    let sim = SimVolume::new(5);
    let faulty = FaultyVolume::new(Arc::new(sim.clone()));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let config = LogConfig { db: DbId(1), capacity_bytes: 8 << 20, buffer_bytes: 1 << 20 };
    let log = Arc::new(Log::create(volume.clone(), config, Lsn(4096)).expect("a log"));
    let pool = pool(&volume, &log, true);
    Site { sim, faulty, log, pool }
}

/// Claims pages and notes it in a group that makes them.
fn take(site: &Site, space: &Space, count: usize) -> Vec<PageNo> {
    let pages = space.claim(count).expect("pages");
    let mut group = Group::begin(Header::default());
    space.log_used(&mut group, &pages).expect("noted");
    group.commit(&site.log).expect("logged");
    // One of them is really made.
    let mut group = Group::begin(Header::default());
    let held = group.hold(site.pool.fresh(pages[0]).expect("a page"));
    let init = Op::Init { page: pages[0], kind: Kind::Meta, level: 0, tree: TreeId(1) };
    group.apply(held, &init);
    group.commit(&site.log).expect("logged");
    pages
}

fn free(site: &Site, space: &Space, pages: &[PageNo]) {
    let mut group = Group::begin(Header::default());
    space.log_free(&mut group, pages).expect("noted");
    group.commit(&site.log).expect("logged");
    space.unclaim(pages);
}

/// The space as another opening finds it.
fn reopened(site: &Site) -> Space {
    reopened_with(site, 1).expect("opened")
}

/// All pages are written, those that were freed while they were dirty, too.
fn flush(site: &Site) {
    site.log.flush(Durability::Synced).expect("flushed");
    while site.pool.residence().dirty > 0 {
        let pages = site.pool.take_oldest(64, site.log.end());
        site.pool.write_back(0, &pages, Cause::Shutdown, 64, &mut |_| {}).expect("written");
    }
}

fn reopened_with(site: &Site, maps: u32) -> Result<Space, SpaceError> {
    flush(site);
    let volume: Arc<dyn Volume> = Arc::new(site.faulty.clone());
    Space::open(pool(&volume, &site.log, false), 1 << 17, maps)
}

#[test]
fn what_is_in_use_is_in_use_after_opening_again() {
    let site = site();
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    let mut random = fastrand::Rng::with_seed(1);
    let mut model: BTreeSet<PageNo> = BTreeSet::new();
    for round in 0..400 {
        if random.bool() || model.is_empty() {
            let pages = take(&site, &space, random.usize(1..40));
            for &page in &pages {
                assert!(model.insert(page), "page {page} is given twice");
                assert!(!space.is_map(page) && space.is_used(page));
            }
        } else {
            let some: Vec<PageNo> =
                model.iter().copied().filter(|_| random.u8(0..3) == 0).collect();
            free(&site, &space, &some);
            some.iter().for_each(|page| assert!(model.remove(page)));
        }
        assert_eq!(space.used(), model.len() as u64 + 1);
        if round % 100 == 99 {
            let again = reopened(&site);
            assert_eq!((again.used(), again.end()), (space.used(), space.end()));
            assert!(model.iter().all(|&page| again.is_used(page)));
        }
    }
    // Low pages are used again before the file grows.
    let end = space.end();
    let gaps = u64::from(end) - space.used();
    let pages = take(&site, &space, gaps as usize);
    assert!(pages.iter().all(|page| page.0 < end));
}

/// Claims that cross into the range of a second map page, logged in one group, and back.
#[test]
fn a_second_map_page_is_made() {
    let site = site();
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    let first = take(&site, &space, PER_MAP as usize - 10);
    let across = take(&site, &space, 100);
    assert!(across.first().is_some_and(|p| p.0 < PER_MAP));
    assert!(across.last().is_some_and(|p| p.0 > PER_MAP));
    assert!(space.is_map(PageNo(PER_MAP)) && space.is_used(PageNo(PER_MAP)));
    assert!(!across.contains(&PageNo(PER_MAP)));
    assert_eq!(reopened(&site).used(), space.used());
    free(&site, &space, &across);
    assert_eq!(space.used(), first.len() as u64 + 2);
    let again = reopened(&site);
    assert_eq!(again.used(), space.used());
    assert!(!again.is_used(across[50]) && again.is_used(PageNo(PER_MAP)));
}

/// A map page that is known to have been made is not the end of the maps when it is zeros.
#[test]
fn a_zeroed_map_page_is_damage() {
    let site = site();
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    take(&site, &space, PER_MAP as usize + 90);
    assert_eq!(space.maps(Lsn::ZERO), 0);
    assert_eq!(space.maps(site.log.end()), 2);
    let whole = reopened_with(&site, 2).expect("sound");
    assert_eq!((whole.maps(Lsn::ZERO), whole.used()), (2, space.used()));
    let at = u64::from(PER_MAP) * PAGE as u64;
    let raw = site.sim.read_raw("pages").expect("the file");
    for offset in 0..PAGE as u64 {
        let byte = raw[(at + offset) as usize];
        site.sim.corrupt("pages", at + offset, byte).expect("zeroed");
    }
    match reopened_with(&site, 2).map(|space| space.used()) {
        Err(SpaceError::Pool(PoolError::Damaged { page, file, offset, .. })) => {
            assert_eq!((page, file.as_str(), offset), (PageNo(PER_MAP), "pages", at));
        }
        other => panic!("the second map is gone: {other:?}"),
    }
}

/// Nor is another sound page of this number a map.
#[test]
fn another_page_in_a_maps_place_is_damage() {
    let site = site();
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    take(&site, &space, 5);
    let mut group = Group::begin(Header::default());
    let held = group.hold(site.pool.exclusive(PageNo(0)).expect("the map"));
    let init = Op::Init { page: PageNo(0), kind: Kind::Leaf, level: 0, tree: TreeId(1) };
    group.apply(held, &init);
    group.commit(&site.log).expect("logged");
    assert!(matches!(
        reopened_with(&site, 1).map(|space| space.used()),
        Err(SpaceError::Pool(PoolError::Damaged { page: PageNo(0), .. }))
    ));
}

#[test]
fn a_claim_that_fails_claims_nothing() {
    let site = site();
    let space = Space::create(site.pool.clone(), 300).expect("a space");
    let used = space.used();
    site.faulty.full_disk(true);
    assert!(matches!(space.claim(100), Err(SpaceError::DiskFull(_))));
    assert_eq!(space.used(), used);
    let few = space.claim(5).expect("there is room in the file");
    site.faulty.full_disk(false);
    assert!(matches!(space.claim(1_000), Err(SpaceError::TooLarge(300))));
    assert_eq!(space.used(), used + 5);
    space.unclaim(&few);
    assert_eq!(space.claim(5).expect("the same again"), few);
}

/// A second map page that cannot be read: the group that needs both is refused before it has
/// changed the first.
#[test]
fn a_map_page_that_cannot_be_read_refuses_the_whole_group() {
    let site = site();
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    take(&site, &space, PER_MAP as usize - 10);
    let across = space.claim(100).expect("pages");
    reopened(&site);
    // The pool forgets the map pages: other pages are made until they are evicted.
    for page in 1..400 {
        drop(site.pool.fresh(PageNo(page)).expect("a page"));
    }
    drop(site.pool.exclusive(PageNo(0)).expect("the first map page"));
    site.faulty.fail_all("pages", OpKind::Read, Fault::Broken);
    let end = site.log.end();
    let mut group = Group::begin(Header::default());
    assert!(matches!(space.log_used(&mut group, &across), Err(SpaceError::Pool(_))));
    assert!(group.is_empty(), "nothing was changed that is not logged");
    drop(group);
    assert_eq!(site.log.end(), end);
    let first = site.pool.exclusive(PageNo(0)).expect("in memory");
    let bit = across[0].0;
    assert_eq!(weir_change::map_bit(first.bytes(), bit), Some(false));
}
