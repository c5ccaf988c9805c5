//! Which pages are in memory, those used most first, as bytes that outlive the process: after a
//! restart the same pages are read in again. A hint and no more: bytes that are no list are
//! refused, and pages that are not there any more do not matter.
use weir_base::{PageNo, varint};

/// Degrees of heat, the hottest first; the last is that of pages that are in no frame.
const CLASSES: usize = 5;
/// The greatest heat of a frame.
const HEAT_MAX: usize = CLASSES - 2;
/// Of a larger pool these are noted, the most used ones; a longer list is none.
const PAGES_MAX: u64 = (1 << 24) - 2;

/// Pages by heat, each class ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmList {
    classes: [Vec<PageNo>; CLASSES],
}

impl WarmList {
    /// Pages on it.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.classes.iter().map(Vec::len).sum()
    }

    /// Adds pages that are in no frame and may be wanted again.
    pub fn add_coldest(&mut self, pages: impl IntoIterator<Item = PageNo>) {
        let coldest = &mut self.classes[CLASSES - 1];
        coldest.extend(pages);
        coldest.sort_unstable();
        coldest.dedup();
    }

    /// The list of the `most` hottest pages, and all others.
    #[must_use]
    pub fn hottest(mut self, most: usize) -> (WarmList, Vec<PageNo>) {
        let (mut room, mut rest) = (most, Vec::new());
        for class in &mut self.classes {
            rest.extend(class.split_off(room.min(class.len())));
            room -= class.len();
        }
        (self, rest)
    }

    /// The pages, each with its heat, the hottest first.
    pub fn with_heat(&self) -> impl Iterator<Item = (PageNo, u8)> {
        let heats = (0..CLASSES as u8).rev();
        let classes = self.classes.iter().zip(heats);
        classes.flat_map(|(class, heat)| class.iter().map(move |&page| (page, heat)))
    }

    /// The list of pages that are in frames, with the frames' heat. One that moved from frame to
    /// frame may be met twice.
    pub(crate) fn of_resident(pages: impl IntoIterator<Item = (PageNo, u8)>) -> Self {
        let mut list = WarmList::default();
        for (page, heat) in pages {
            list.classes[HEAT_MAX - usize::from(heat).min(HEAT_MAX)].push(page);
        }
        for class in &mut list.classes {
            class.sort_unstable();
            class.dedup();
        }
        list
    }

    #[cfg(test)]
    pub(crate) fn of_classes(classes: [Vec<PageNo>; CLASSES]) -> Self {
        WarmList { classes }
    }

    /// As at most `bytes_max` bytes: the coldest pages are left out of a longer list.
    ///
    /// Of each class: the number of runs, and for each run twice the distance to the one before,
    /// odd when it has more than one page, of which the number less two follows.
    #[must_use]
    pub fn encode(&self, bytes_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut pages = 0;
        for class in &self.classes {
            let mut body = Vec::new();
            let mut count = 0u64;
            let mut end = 0;
            for (first, len) in runs(class) {
                let before = body.len();
                varint::put(&mut body, (u64::from(first) - end) << 1 | u64::from(len > 1));
                if len > 1 {
                    varint::put(&mut body, len - 2);
                }
                // Each class has a number of runs, if only 0.
                let all = out.len() + body.len() + CLASSES * varint::LEN_MAX;
                if all > bytes_max || pages + len > PAGES_MAX {
                    body.truncate(before);
                    pages = PAGES_MAX;
                    break;
                }
                pages += len;
                count += 1;
                end = u64::from(first) + len;
            }
            varint::put(&mut out, count);
            out.extend(body);
        }
        out
    }

    /// The list that `bytes` are, without pages from `pages` on; `None` when they are none.
    #[must_use]
    pub fn decode(mut bytes: &[u8], pages: u32) -> Option<WarmList> {
        let mut list = WarmList::default();
        let mut listed = 0;
        for class in &mut list.classes {
            let mut end = 0;
            for _ in 0..varint::take(&mut bytes)? {
                let word = varint::take(&mut bytes)?;
                let first: u64 = end + (word >> 1);
                let more =
                    if word & 1 == 1 { varint::take(&mut bytes)?.checked_add(1)? } else { 0 };
                end = first.checked_add(more)?.checked_add(1)?;
                listed += end - first;
                if end > u64::from(u32::MAX) || listed > PAGES_MAX {
                    return None;
                }
                // Both fit into 32 bits now.
                let there = (first as u32).min(pages)..(end as u32).min(pages);
                class.extend(there.map(PageNo));
            }
        }
        bytes.is_empty().then_some(list)
    }
}

/// The unbroken runs of ascending pages: the first, and how many.
fn runs(pages: &[PageNo]) -> impl Iterator<Item = (u32, u64)> {
    debug_assert!(pages.is_sorted_by(|a, b| a < b), "ascending, each once");
    pages.chunk_by(|a, b| a.0 + 1 == b.0).map(|run| (run[0].0, run.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 1 << 20;

    fn list(classes: [&[u32]; CLASSES]) -> WarmList {
        WarmList { classes: classes.map(|class| class.iter().copied().map(PageNo).collect()) }
    }

    fn numbers(pages: impl IntoIterator<Item = PageNo>) -> Vec<u32> {
        pages.into_iter().map(|page| page.0).collect()
    }

    #[test]
    fn runs_cost_next_to_nothing() {
        let all: Vec<u32> = (1..1_000_001).collect();
        let dense = list([&all, &[], &[], &[], &[]]);
        assert_eq!(dense.encode(MAX).len(), 9);
        assert_eq!(WarmList::decode(&dense.encode(MAX), u32::MAX), Some(dense));
        let odd: Vec<u32> = (1..2_000_000).step_by(2).collect();
        let scattered = list([&odd, &[], &[], &[], &[]]);
        assert!(scattered.encode(2 << 20).len() < 1_000_010);
        assert_eq!(WarmList::decode(&scattered.encode(2 << 20), u32::MAX), Some(scattered));
    }

    #[test]
    fn of_too_many_the_hottest_are_kept() {
        let all = list([&[90, 100], &[5, 7], &[], &[1], &[3]]);
        // (most, read, rest)
        let rows: [(usize, &[u32], &[u32]); 5] = [
            (100, &[90, 100, 5, 7, 1, 3], &[]),
            (5, &[90, 100, 5, 7, 1], &[3]),
            (3, &[90, 100, 5], &[7, 1, 3]),
            (1, &[90], &[100, 5, 7, 1, 3]),
            (0, &[], &[90, 100, 5, 7, 1, 3]),
        ];
        for (most, read, rest) in rows {
            let (hot, cold) = all.clone().hottest(most);
            let hot = numbers(hot.with_heat().map(|(page, _)| page));
            assert_eq!((hot, numbers(cold)), (read.to_vec(), rest.to_vec()), "{most}");
        }
    }

    #[test]
    fn a_list_without_room_loses_its_coldest() {
        let odd: Vec<u32> = (1..2_000).step_by(2).collect();
        let long = list([&odd[..100], &odd[100..], &odd, &[7], &[9]]);
        let short = WarmList::decode(&long.encode(300), u32::MAX).expect("a list");
        assert!(long.encode(300).len() <= 300);
        assert_eq!(short.classes[0], long.classes[0]);
        let kept = short.classes[1].len();
        assert!((100..200).contains(&kept) && short.pages() == 100 + kept, "{}", short.pages());
        assert_eq!(WarmList::decode(&long.encode(0), 9), Some(WarmList::default()));
    }

    #[test]
    fn pages_beyond_the_end_are_left_out() {
        let all = list([&[4, 5, 6, 7, 8], &[2, 90], &[u32::MAX - 1], &[], &[]]);
        let left = WarmList::decode(&all.encode(MAX), 6).expect("a list");
        assert_eq!(left, list([&[4, 5], &[2], &[], &[], &[]]));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let bytes = |words: &[u64]| {
            let mut out = Vec::new();
            words.iter().for_each(|&word| varint::put(&mut out, word));
            out
        };
        let (many, max) = (PAGES_MAX, u64::MAX);
        let rows: [(&str, Vec<u8>, bool); 12] = [
            ("none", bytes(&[0, 0, 0, 0, 0]), true),
            ("one page", bytes(&[1, 8, 0, 0, 0, 0]), true),
            ("as many as can be", bytes(&[1, 1, many - 2, 0, 0, 0, 0]), true),
            ("one more", bytes(&[2, 1, many - 2, 2, 0, 0, 0, 0]), false),
            ("nothing at all", Vec::new(), false),
            ("four classes", bytes(&[0, 0, 0, 0]), false),
            ("something behind", bytes(&[0, 0, 0, 0, 0, 0]), false),
            ("more runs than there are", bytes(&[max, 8, 0, 0, 0, 0]), false),
            ("beyond the last page", bytes(&[1, u64::from(u32::MAX) << 1, 0, 0, 0, 0]), false),
            ("a run without end", bytes(&[1, 9, max, 0, 0, 0, 0]), false),
            ("far out", bytes(&[2, max - 1, 0, 0, 0, 0, 0]), false),
            ("sums that overflow", bytes(&[2, max - 1, max - 1, 0, 0, 0, 0]), false),
        ];
        for (what, bytes, good) in rows {
            assert_eq!(WarmList::decode(&bytes, 10).is_some(), good, "{what}");
        }
    }

    fn any_list() -> impl Strategy<Value = WarmList> {
        // Sparse numbers, and runs of them.
        let run = (0..u32::MAX - 64, 1..40u32).prop_map(|(from, len)| (from, len));
        let near = (0..5_000u32, 1..40u32);
        let class = prop::collection::vec(prop_oneof![run, near], 0..30).prop_map(|runs| {
            let pages: std::collections::BTreeSet<u32> =
                runs.into_iter().flat_map(|(from, len)| from..from + len).collect();
            pages.into_iter().map(PageNo).collect::<Vec<_>>()
        });
        [class.clone(), class.clone(), class.clone(), class.clone(), class]
            .prop_map(|classes| WarmList { classes })
    }

    proptest! {
        #[test]
        fn a_list_is_read_back(list in any_list(), pages: u32) {
            let bytes = list.encode(MAX);
            prop_assert_eq!(WarmList::decode(&bytes, u32::MAX), Some(list.clone()));
            let mut there = list;
            for class in &mut there.classes {
                class.retain(|page| page.0 < pages);
            }
            prop_assert_eq!(WarmList::decode(&bytes, pages), Some(there));
        }

        #[test]
        fn any_bytes_are_a_list_or_none(bytes: Vec<u8>, pages in 0..100_000u32) {
            if let Some(list) = WarmList::decode(&bytes, pages) {
                for class in &list.classes {
                    prop_assert!(class.is_sorted_by(|a, b| a < b));
                    prop_assert!(class.iter().all(|page| page.0 < pages));
                }
            }
        }

        #[test]
        fn a_shorter_list_is_a_list(list in any_list(), room in 0..2_000usize) {
            let bytes = list.encode(room);
            prop_assert!(bytes.len() <= room.max(CLASSES));
            let short = WarmList::decode(&bytes, u32::MAX).expect("a list");
            prop_assert!(short.pages() <= list.pages());
        }
    }
}
