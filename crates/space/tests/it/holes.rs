//! Free pages that give their blocks back, and are used again.
use std::collections::BTreeSet;

use weir_base::PageNo;
use weir_device::{Fault, OpKind};
use weir_pool::PoolError;
use weir_space::{GaveBack, HoleLimits, Space, SpaceError};

use crate::{PAGE, Site, flush, free, reopened, site, take};

const BYTES: u64 = PAGE as u64;

/// Two pages a granule, at least four pages kept, eight a step.
fn limits() -> HoleLimits {
    HoleLimits {
        granule_bytes: 2 * BYTES,
        kept_bytes: 4 * BYTES..64 * BYTES,
        step_bytes: 8 * BYTES,
        reserves: true,
    }
}

fn space(site: &Site) -> Space {
    let space = Space::create(site.pool.clone(), 1 << 17).expect("a space");
    space.with_hole_limits(limits())
}

/// Looks, and gives back all that was found when no page is dirty any more. Returns the steps.
fn give_back(site: &Site, space: &Space) -> Vec<u64> {
    let (mut map, mut kept, mut from, mut steps) = (0, 0, 0, Vec::new());
    while space.look_for_holes(map, &mut kept).is_some() {
        map += 1;
    }
    flush(site);
    while let GaveBack::Bytes { bytes, next } = space.give_back(from).expect("given back") {
        steps.push(bytes);
        from = next;
    }
    steps
}

fn on_disk(site: &Site) -> u64 {
    site.pool.store().file_bytes().1.expect("known") / BYTES
}

#[test]
fn whole_granules_go_back_but_for_the_lowest_and_come_again() {
    let site = site();
    let space = space(&site);
    let pages = take(&site, &space, 1_000);
    let (whole, used) = (on_disk(&site), space.used());
    assert_eq!(
        give_back(&site, &space).iter().sum::<u64>(),
        0,
        "an eighth of what is in use is kept"
    );
    free(&site, &space, &pages);
    let steps = give_back(&site, &space);
    assert!(steps.iter().all(|&bytes| bytes <= 8 * BYTES), "{steps:?}");
    let left = whole - steps.iter().sum::<u64>() / BYTES;
    assert_eq!(on_disk(&site), left);
    assert!((5..10).contains(&left), "the map, and four that are kept: {left}");
    assert_eq!(give_back(&site, &space), [], "once");
    assert_eq!(space.stats().given_back.get(), steps.iter().sum());
    // The lowest are used again without anything asked for; then more, not page by page.
    let again = take(&site, &space, 4);
    assert_eq!((again[3].0 < 10, on_disk(&site)), (true, left));
    let again = take(&site, &space, 996);
    assert_eq!(space.used(), used);
    assert!((used..=whole).contains(&on_disk(&site)));
    assert!(again.len() == 996 && space.stats().taken_again.get() > 900 * BYTES);
}

/// What is used between the look and the step keeps its blocks, also when it was freed again: the
/// checkpoint has not passed that.
#[test]
fn pages_that_were_used_since_the_look_stay() {
    let site = site();
    let space = space(&site);
    let pages = take(&site, &space, 200);
    free(&site, &space, &pages);
    let whole = on_disk(&site);
    let mut kept = 0;
    assert!(space.look_for_holes(0, &mut kept).expect("a map") > 0);
    let again = take(&site, &space, 150);
    free(&site, &space, &again);
    let (mut from, mut bytes) = (0, 0);
    while let GaveBack::Bytes { bytes: more, next } = space.give_back(from).expect("given back") {
        assert!(next > 140, "the lower ones were used");
        (from, bytes) = (next, bytes + more);
    }
    assert!(bytes > 0 && on_disk(&site) == whole - bytes / BYTES);
    let bytes = give_back(&site, &space).iter().sum::<u64>();
    assert!(bytes > 100 * BYTES, "{bytes}");
}

#[test]
fn a_full_disk_is_met_by_the_claim() {
    let site = site();
    let space = space(&site);
    let pages = take(&site, &space, 400);
    let (gone, _) = pages.split_at(300);
    free(&site, &space, gone);
    assert!(give_back(&site, &space).iter().sum::<u64>() > 200 * BYTES);
    site.faulty.full_disk(true);
    let used = space.used();
    assert!(matches!(space.claim(300), Err(SpaceError::DiskFull(_))));
    assert_eq!(space.used(), used);
    // What keeps blocks is used: the lowest, and those that were freed since.
    let few = space.claim(8).expect("kept");
    free(&site, &space, &pages[350..]);
    let more = space.claim(30).expect("freed since");
    assert!(more.iter().any(|page| page.0 > 350), "{more:?}");
    site.faulty.full_disk(false);
    let rest = space.claim(200).expect("there is room again");
    let all: BTreeSet<&PageNo> = few.iter().chain(&more).chain(&rest).collect();
    assert_eq!(all.len(), 238);
    assert!(site.pool.halted().is_none());
}

#[test]
fn what_fails_halts_and_what_is_not_supported_is_said() {
    let site = site();
    let space = space(&site);
    let pages = take(&site, &space, 100);
    free(&site, &space, &pages);
    let mut kept = 0;
    assert!(space.look_for_holes(0, &mut kept).expect("a map") > 0);
    let rule = site.faulty.fail_nth("pages", OpKind::Punch, 1, Fault::Full);
    assert_eq!(space.give_back(0).expect("no room for that"), GaveBack::Nothing);
    assert!(site.faulty.hits(rule) == 1 && site.pool.halted().is_none());
    site.faulty.fail_nth("pages", OpKind::Punch, 1, Fault::Broken);
    assert!(matches!(space.give_back(0), Err(PoolError::Device { .. })));
    assert!(site.pool.halted().is_some());
}

/// Random claims, frees, passes and openings: no page is given twice, pages that are in use keep
/// what was written, and blocks are as many as they may be.
#[test]
fn claims_and_holes_agree_with_a_model() {
    for seed in 0..12 {
        let site = site();
        let space = space(&site);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model: BTreeSet<PageNo> = BTreeSet::new();
        for round in 0..150 {
            match random.u8(..8) {
                0..4 => {
                    for page in take(&site, &space, random.usize(1..60)) {
                        assert!(model.insert(page), "page {page} is given twice");
                    }
                }
                4..6 => {
                    let share = random.u8(1..4);
                    let some = model.iter().copied().filter(|_| random.u8(..3) < share);
                    let some: Vec<PageNo> = some.collect();
                    free(&site, &space, &some);
                    some.iter().for_each(|page| assert!(model.remove(page)));
                }
                6 => {
                    give_back(&site, &space);
                    let runs = |page: &u32| !model.contains(&PageNo(*page));
                    let pages = site.pool.store().pages();
                    let free = (0..pages).filter(runs).count() as u64;
                    assert!(on_disk(&site) >= u64::from(pages) - free);
                }
                _ if round % 3 == 0 => {
                    // Which granules are holes is not known any more: room is asked for.
                    let again = reopened(&site).with_hole_limits(limits());
                    assert_eq!(again.used(), space.used());
                    let claimed = again.claim(random.usize(1..60)).expect("pages");
                    assert!(claimed.iter().all(|page| !model.contains(page)));
                    let blocks = claimed.len() as u64 + again.used();
                    assert!(on_disk(&site) >= blocks.min(model.len() as u64));
                }
                _ => {}
            }
            assert_eq!(space.used(), model.len() as u64 + 1);
        }
        assert!(space.stats().given_back.get() > 0 || seed > 0, "seed {seed}");
    }
}
