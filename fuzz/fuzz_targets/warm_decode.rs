//! Any bytes as the list of pages that were in memory: refused, or a list that is written and read
//! back as it is, of pages that are there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_pool::{WarmList, WarmPlan};

/// Pages of the database.
const PAGES: u32 = 5_000;

fuzz_target!(|input: &[u8]| {
    let Some(list) = WarmList::decode(input, PAGES) else { return };
    let again = list.encode(1 << 20);
    assert_eq!(WarmList::decode(&again, PAGES), Some(list.clone()));
    assert!(again.len() <= input.len().max(1 << 16), "{} of {}", again.len(), input.len());
    let (hot, rest) = list.clone().hottest(100);
    assert!(hot.pages() <= 100 && hot.pages() + rest.len() == list.pages());
    let mut plan = WarmPlan::new(&hot);
    let all: Vec<_> = std::iter::from_fn(|| Some(plan.take(&rest, 7)).filter(|p| !p.is_empty()))
        .flatten()
        .collect();
    assert!(all.len() <= hot.pages() && all.iter().chain(&rest).all(|page| page.0 < PAGES));
});
