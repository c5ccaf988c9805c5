//! In which order the pages that were in memory come back: decided apart from reading them.
//!
//! Pages come by extents, so that many are one read where they lie together: first the extents
//! where pages were just asked for (sessions work on some tables after a restart, and a table's
//! pages lie together), then the hottest.
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use weir_base::PageNo;

use crate::warm_list::WarmList;

/// Pages of an extent, which begins at a multiple of this: 512 KiB of pages of 8 KiB, which is
/// what the device floor makes one read of.
const EXTENT_PAGES: u32 = 64;

/// What is left to do of an extent.
#[derive(Clone, Copy, Debug)]
struct Extent {
    number: u32,
    /// Its pages: from here
    from: usize,
    /// to here.
    end: usize,
}

/// Which pages of a [`WarmList`] are to be read still, and which next.
#[derive(Debug, Default)]
pub struct WarmPlan {
    /// All, ascending.
    pages: Vec<PageNo>,
    /// Ascending by their number.
    extents: Vec<Extent>,
    /// Places in `extents`, the hottest first.
    order: Vec<u32>,
    /// Those before it in `order` are done.
    at: usize,
}

impl WarmPlan {
    /// All pages of the list.
    #[must_use]
    pub fn new(list: &WarmList) -> Self {
        let mut all: Vec<(PageNo, u8)> = list.with_heat().collect();
        // The hotter of two heats of a page is the one that stays.
        all.sort_unstable_by_key(|&(page, heat)| (page, u8::MAX - heat));
        all.dedup_by_key(|&mut (page, _)| page);
        let mut extents = Vec::new();
        let mut warmth = Vec::new();
        let mut from = 0;
        for part in all.chunk_by(|a, b| number(a.0) == number(b.0)) {
            let end = from + part.len();
            extents.push(Extent { number: number(part[0].0), from, end });
            let heat: u64 = part.iter().map(|&(_, heat)| u64::from(heat)).sum();
            warmth.push((heat, part.len() as u64));
            from = end;
        }
        let mut order: Vec<u32> = (0..extents.len() as u32).collect();
        // By mean heat; a stable sort keeps those that are alike in the order of the disk.
        order.sort_by(|&a, &b| {
            let ((heat_a, pages_a), (heat_b, pages_b)) = (warmth[a as usize], warmth[b as usize]);
            (heat_b * pages_a).cmp(&(heat_a * pages_b))
        });
        let pages = all.into_iter().map(|(page, _)| page).collect();
        WarmPlan { pages, extents, order, at: 0 }
    }

    /// At most `most` pages, each once over all calls: those around `asked` first. None when all
    /// have been given out.
    #[must_use]
    pub fn take(&mut self, asked: &[PageNo], most: usize) -> Vec<PageNo> {
        let mut out = Vec::new();
        for &page in asked {
            if let Ok(place) = self.extents.binary_search_by_key(&number(page), |e| e.number) {
                self.take_of(place, most, &mut out);
            }
        }
        while let Some(&place) = self.order.get(self.at) {
            self.take_of(place as usize, most, &mut out);
            let left = self.extents[place as usize];
            if left.from < left.end {
                break;
            }
            self.at += 1;
        }
        out
    }

    /// Pages of one extent, until there are `most`.
    fn take_of(&mut self, place: usize, most: usize, out: &mut Vec<PageNo>) {
        let extent = &mut self.extents[place];
        let end = extent.end.min(extent.from.saturating_add(most - out.len()));
        out.extend(&self.pages[extent.from..end]);
        extent.from = end;
    }

    /// Those that have not been given out.
    pub fn left(&self) -> impl Iterator<Item = PageNo> {
        self.extents.iter().flat_map(|extent| &self.pages[extent.from..extent.end]).copied()
    }
}

fn number(page: PageNo) -> u32 {
    page.0 / EXTENT_PAGES
}

/// Pages that are remembered as asked for: more would be old by the time they are looked at.
const ASKED: usize = 16;

/// Which pages were read last because a thread asked for them.
pub(crate) struct Asked {
    pages: [AtomicU32; ASKED],
    next: AtomicUsize,
}

impl Default for Asked {
    fn default() -> Self {
        let pages = std::array::from_fn(|_| AtomicU32::new(PageNo::NONE.0));
        Asked { pages, next: AtomicUsize::new(0) }
    }
}

impl Asked {
    /// A page is read. Costs next to nothing beside that.
    pub(crate) fn note(&self, page: PageNo) {
        self.pages[self.next.fetch_add(1, Relaxed) % ASKED].store(page.0, Relaxed);
    }

    /// Those since the last call, as far as they are remembered, in no order.
    pub(crate) fn take(&self) -> Vec<PageNo> {
        let taken = self.pages.iter().map(|page| PageNo(page.swap(PageNo::NONE.0, Relaxed)));
        taken.filter(|&page| page != PageNo::NONE).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pages(numbers: impl IntoIterator<Item = u32>) -> Vec<PageNo> {
        numbers.into_iter().map(PageNo).collect()
    }

    fn plan(classes: [&[u32]; 5]) -> WarmPlan {
        WarmPlan::new(&WarmList::of_classes(classes.map(|class| pages(class.iter().copied()))))
    }

    #[test]
    fn the_hottest_extents_come_first_and_each_in_one_piece() {
        // Extents 0 (cold, one hot page), 1 (hot), 3 (as hot as 1), 9 (listed as gone).
        let mut plan =
            plan([&[5, 64, 70, 192, 193], &[], &[], &[0, 1, 2, 3, 4, 6, 7], &[576, 577]]);
        assert_eq!(plan.take(&[], 3), pages([64, 70, 192]));
        assert_eq!(plan.take(&[], 3), pages([193, 0, 1]), "goes on where it stopped");
        assert_eq!(plan.left().count(), 8);
        assert_eq!(plan.take(&[], 100), pages([2, 3, 4, 5, 6, 7, 576, 577]));
        assert!(plan.take(&[], 100).is_empty() && plan.left().count() == 0);
    }

    #[test]
    fn what_lies_around_pages_that_are_asked_for_comes_first() {
        let mut plan = plan([&[1, 2], &[64, 65], &[130, 131], &[200, 201], &[]]);
        let asked = pages([199, 140, 9_000]);
        assert_eq!(plan.take(&asked, 3), pages([200, 201, 130]), "9,000 is nowhere near any");
        assert_eq!(plan.take(&asked, 2), pages([131, 1]));
        assert_eq!(plan.take(&[], 9), pages([2, 64, 65]));
        assert!(plan.take(&asked, 9).is_empty());
    }

    #[test]
    fn the_last_that_were_asked_for_are_remembered_once() {
        let asked = Asked::default();
        assert!(asked.take().is_empty());
        (0..100).for_each(|page| asked.note(PageNo(page)));
        let taken: BTreeSet<u32> = asked.take().into_iter().map(|page| page.0).collect();
        assert_eq!(taken, (100 - ASKED as u32..100).collect());
        assert!(asked.take().is_empty());
    }

    proptest! {
        #[test]
        fn each_page_comes_once(
            classes: [Vec<u16>; 5],
            calls in prop::collection::vec(
                (prop::collection::vec(any::<u16>(), 0..4), 0..300usize),
                0..40,
            ),
        ) {
            let classes = classes.map(|class| {
                let class: BTreeSet<u16> = class.into_iter().collect();
                pages(class.into_iter().map(u32::from))
            });
            let all: BTreeSet<PageNo> = classes.iter().flatten().copied().collect();
            let mut plan = WarmPlan::new(&WarmList::of_classes(classes));
            let mut come = BTreeSet::new();
            for (asked, most) in calls.into_iter().chain([(vec![], usize::MAX)]) {
                let asked = pages(asked.into_iter().map(u32::from));
                let taken = plan.take(&asked, most);
                prop_assert!(taken.len() <= most);
                prop_assert!(taken.iter().all(|page| come.insert(*page)));
                let left: BTreeSet<PageNo> = plan.left().collect();
                prop_assert!(left.is_disjoint(&come) && left.len() + come.len() == all.len());
            }
            prop_assert_eq!(come, all);
        }
    }
}
