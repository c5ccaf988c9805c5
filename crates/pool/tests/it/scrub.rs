//! Pages verified on disk while others use them; damaged ones mended from what has what they held.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use weir_base::PageNo;
use weir_pool::{Cause, DoubleWriteMode, Mended, OnDisk, RebuildPage};
use weir_redo::Durability;

use crate::support::{DB, SIZE, counter, drain, make, set, site};

fn at(page: u32) -> u64 {
    u64::from(page) * SIZE as u64 + 100
}

fn on_disk(sim: &weir_device::SimVolume, page: u32) -> Result<(), weir_page::Damage> {
    let from = page as usize * SIZE;
    let bytes = sim.read_raw("pages").expect("the file")[from..from + SIZE].to_vec();
    weir_page::verify(&bytes, DB, PageNo(page))
}

#[test]
fn a_damaged_page_that_is_in_memory_is_written_again() {
    let site = site(64, 32, DoubleWriteMode::On);
    make(&site, 20);
    drain(&site);
    let all: Vec<PageNo> = (0..20).map(PageNo).collect();
    assert!(site.pool.verify(&all).is_empty());
    site.sim.corrupt("pages", at(5), 4).expect("a flip");
    assert_eq!(site.pool.verify(&all), [PageNo(5)]);
    assert!(matches!(site.pool.look_again(PageNo(5)), Ok(OnDisk::Repaired)));
    assert_eq!(on_disk(&site.sim, 5), Ok(()));
    let found = site.pool.findings();
    assert_eq!((found.len(), found[0].page, found[0].offset), (1, PageNo(5), 5 * SIZE as u64));
    assert!(found[0].text.contains("page 5 in 'pages' at byte 20480"), "{}", found[0].text);
    assert_eq!(found[0].mended, Mended::FromMemory);
    assert!(site.pool.verify(&all).is_empty() && site.pool.scrub_stats().damaged.get() == 1);
    // One that is changed meanwhile is not on disk what it is to be, and that is no finding.
    site.sim.corrupt("pages", at(6), 4).expect("a flip");
    set(&site.log, site.pool.exclusive(PageNo(6)).expect("the page"), 66);
    let mut settled = all.clone();
    site.pool.retain_settled(&mut settled);
    assert!(settled.len() == 19 && site.pool.verify(&settled).is_empty());
    assert!(matches!(site.pool.look_again(PageNo(6)), Ok(OnDisk::Unsettled)));
    drain(&site);
    assert_eq!((on_disk(&site.sim, 6), site.pool.findings().len()), (Ok(()), 1));
}

/// Makes pages with their number in them.
struct Numbers(AtomicU64);

impl RebuildPage for Numbers {
    fn rebuild(&self, _page: PageNo, _bytes: &mut [u8]) -> bool {
        self.0.fetch_add(1, Relaxed);
        false
    }
}

/// Of pages that have left memory, the doublewrite area has the copies of the last batches.
#[test]
fn a_damaged_page_is_mended_from_its_copy_or_reported() {
    let site = site(16, 64, DoubleWriteMode::On);
    site.pool.rebuild_by(Box::new(Numbers(AtomicU64::new(0))));
    make(&site, 60);
    // The log is needed for what is written when frames are wanted.
    drain(&site);
    let (mut copies, mut lost) = (0, 0);
    for page in (0..60).map(PageNo) {
        site.sim.corrupt("pages", at(page.0), 4).expect("a flip");
        let known = site.pool.findings().len();
        match site.pool.look_again(page).expect("looked") {
            OnDisk::Damaged(found) => {
                assert!(found.to_string().contains(&format!("page {page} in")))
            }
            OnDisk::Repaired => continue,
            other => panic!("page {page}: {other:?}"),
        }
        site.pool.mend_or_report(page).expect("reported");
        let found = site.pool.findings();
        assert_eq!((found.len(), found[0].page), ((known + 1).min(32), page));
        match found[0].mended {
            Mended::FromCopy => {
                copies += 1;
                assert_eq!(on_disk(&site.sim, page.0), Ok(()), "written at once");
                let held = site.pool.exclusive(page).expect("the page");
                assert_eq!(counter(held.bytes()), u64::from(page.0));
            }
            Mended::No => {
                lost += 1;
                assert!(site.pool.exclusive(page).is_err());
                site.sim.corrupt("pages", at(page.0), 4).expect("flipped back");
                assert!(site.pool.exclusive(page).is_ok());
            }
            other => panic!("page {page}: {other:?}"),
        }
        assert!(site.pool.unwritten().is_empty());
    }
    assert!(copies > 0 && lost > 0, "{copies} from copies, {lost} lost");
    assert_eq!(site.pool.scrub_stats().mended_copy.get(), copies);
    assert!(site.pool.stats().lost.get() >= lost);
}

/// An older copy is not taken: the page was written again since.
#[test]
fn a_copy_of_an_older_state_mends_nothing() {
    let site = site(16, 64, DoubleWriteMode::On);
    make(&site, 1);
    drain(&site);
    // Written again by the other file of the area: the first still has the older state.
    set(&site.log, site.pool.exclusive(PageNo(0)).expect("the page"), 77);
    site.log.flush(Durability::Synced).expect("flushed");
    let pages = site.pool.take_oldest(16, site.log.end());
    site.pool.write_back(1, &pages, Cause::Shutdown, 4, &mut |_| {}).expect("written");
    // And others by that file.
    for page in 1..60 {
        set(&site.log, site.pool.fresh(PageNo(page)).expect("a page"), u64::from(page));
        site.log.flush(Durability::Synced).expect("flushed");
        let pages = site.pool.take_oldest(16, site.log.end());
        site.pool.write_back(1, &pages, Cause::Shutdown, 4, &mut |_| {}).expect("written");
    }
    site.sim.corrupt("pages", at(0), 4).expect("a flip");
    let damaged = matches!(site.pool.look_again(PageNo(0)), Ok(OnDisk::Damaged(_)));
    assert!(damaged, "it has left memory");
    site.pool.mend_or_report(PageNo(0)).expect("reported");
    assert_eq!(site.pool.findings()[0].mended, Mended::No);
}

/// While pages are changed, written and leave memory, none that is sound is taken for damaged.
#[test]
fn beside_writers_no_sound_page_is_found_damaged() {
    const PAGES: u32 = 200;
    let site = site(48, PAGES, DoubleWriteMode::On);
    make(&site, PAGES);
    drain(&site);
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let site = &site;
        let stop = &stop;
        for writer in 0..2u64 {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer);
                while !stop.load(Relaxed) {
                    let page = PageNo(random.u32(0..PAGES));
                    let held = site.pool.exclusive(page).expect("the page");
                    set(&site.log, held, random.u64(..));
                }
            });
        }
        scope.spawn(move || {
            while !stop.load(Relaxed) {
                site.log.flush(Durability::Synced).expect("flushed");
                let pages = site.pool.take_oldest(16, site.log.end());
                site.pool.write_back(0, &pages, Cause::Deadline, 4, &mut |_| {}).expect("written");
                site.log.set_checkpoint(site.pool.oldest());
                let _ = site.log.maintain();
            }
        });
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..4_000 {
            let from = random.u32(0..PAGES - 16);
            let pages: Vec<PageNo> = (from..from + 16).map(PageNo).collect();
            // The first look may be wrong; the second may not, of any page.
            let bad = site.pool.verify(&pages);
            for page in bad.into_iter().chain([PageNo(random.u32(0..PAGES))]) {
                let seen = site.pool.look_again(page).expect("looked");
                assert!(matches!(seen, OnDisk::Sound | OnDisk::Unsettled), "{page}: {seen:?}");
                looks.fetch_add(u64::from(matches!(seen, OnDisk::Sound)), Relaxed);
            }
        }
        stop.store(true, Relaxed);
    });
    assert!(looks.load(Relaxed) > 100, "{} pages were settled", looks.load(Relaxed));
    assert!(site.pool.findings().is_empty());
}
