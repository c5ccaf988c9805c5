//! Dirty pages around a page: what disks with a moving head like to write in one go. Used by the
//! laboratory only; the engine writes by age alone.
use weir_base::{Lsn, PageNo};

use crate::pool::Pool;

/// Which of a page's neighbours are written along with it (InnoDB's `innodb_flush_neighbors`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbours {
    /// None (0).
    #[default]
    None,
    /// Those of the unbroken run of dirty pages that the page is in, within its area (1).
    Contiguous,
    /// All dirty ones of its area (2).
    Area,
}

/// Pages of an area, where the pool is large enough.
const AREA_PAGES: u32 = 64;
/// An area is at most this part of the pool.
const AREA_POOL_SHARE: u64 = 16;

/// The area that `page` lies in: its first page, and the first one behind it.
fn area(page: PageNo, frames: u64) -> (u32, u32) {
    let pages = u64::from(AREA_PAGES).min(frames / AREA_POOL_SHARE).max(1) as u32;
    let first = page.0 / pages * pages;
    (first, first.saturating_add(pages))
}

impl Pool {
    /// The dirty neighbours of a page, without itself, each with the position that it is listed
    /// under. A look without latches: what has changed meanwhile is found out when it is copied.
    #[must_use]
    pub fn dirty_neighbours(&self, page: PageNo, which: Neighbours) -> Vec<(PageNo, Lsn)> {
        let (first, end) = area(page, self.residence().frames);
        let dirty = |number: u32| {
            let page = PageNo(number);
            Some((page, self.listed(page)?))
        };
        match which {
            Neighbours::None => Vec::new(),
            Neighbours::Area => {
                (first..end).filter(|&number| number != page.0).filter_map(dirty).collect()
            }
            Neighbours::Contiguous => {
                let below = (first..page.0).rev().map_while(dirty);
                let above = (page.0 + 1..end).map_while(dirty);
                below.chain(above).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_64_pages_or_a_sixteenth_of_the_pool() {
        // (page, frames, first, end)
        let rows = [
            (0, 10_000, 0, 64),
            (63, 10_000, 0, 64),
            (64, 10_000, 64, 128),
            (200, 1_024, 192, 256),
            (200, 512, 192, 224),
            (200, 8, 200, 201),
        ];
        for (page, frames, first, end) in rows {
            assert_eq!(area(PageNo(page), frames), (first, end), "page {page} of {frames} frames");
        }
    }
}
