//! Dirty pages around a page.
use weir_base::PageNo;
use weir_pool::{Cause, DoubleWriteMode, Neighbours};
use weir_redo::Durability;

use crate::support::{drain, make, set, site};

#[test]
fn the_run_or_the_area_but_not_itself() {
    // 256 frames: areas of 16 pages.
    let site = site(256, 128, DoubleWriteMode::On);
    make(&site, 64);
    drain(&site);
    for page in [15, 16, 18, 19, 20, 22, 31, 32] {
        set(&site.log, site.pool.exclusive(PageNo(page)).expect("the page"), 7);
    }
    let near = |which| {
        let mut pages = site.pool.dirty_neighbours(PageNo(19), which);
        pages.sort_unstable();
        pages.into_iter().map(|(page, _)| page.0).collect::<Vec<u32>>()
    };
    assert_eq!(near(Neighbours::None), []);
    assert_eq!(near(Neighbours::Contiguous), [18, 20], "17 and 21 are clean");
    assert_eq!(near(Neighbours::Area), [16, 18, 20, 22, 31], "15 and 32 are of other areas");

    // Written without having been taken from the list, and from it later: nothing is left over.
    site.log.flush(Durability::Synced).expect("flushed");
    let pages = site.pool.dirty_neighbours(PageNo(19), Neighbours::Area);
    let written = site.pool.write_back(0, &pages, Cause::Deadline, 8, &mut |_| {});
    assert_eq!(written.expect("written").pages, 5);
    assert_eq!(near(Neighbours::Area), []);
    drain(&site);
}
