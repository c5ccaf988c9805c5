//! How much the store writes for each page write that an in-place store would make, against the
//! study that the design rests on (its table is in `docs/decisions/log-structured.md`): pages are
//! dirtied at random and flushed a log wrap later, in batches; the cleaner flushes what is dirty
//! and copies the rest.
use std::collections::{HashMap, VecDeque};

use fastrand::Rng;
use weir_base::{Lsn, PageNo};
use weir_device::SimVolume;
use weir_logstore::{Dirty, LogStore, LogStoreConfig, PageImage};

use crate::support::{DB, volume};

const PAGES: u32 = 32 << 10;
/// With its head a block of 512 bytes, which cannot be packed.
const PAGE: usize = 448;
/// Pages a batch: with its header 32 KiB.
const BATCH: usize = 60;
/// Two full batches, a header and a footer.
const SEGMENT: usize = 72 << 10;
/// Segments that are kept free beside the store's reserve.
const AHEAD: u64 = 3;
/// Times that all pages are written, about, and how many of them are not counted.
const LAPS: u64 = 5;
const WARM: u64 = 3;

/// Which page is updated next.
enum Updates {
    Uniform,
    /// The share of pages up to each, by rank; which page has the rank.
    Zipf(Vec<f64>, Vec<u32>),
}

impl Updates {
    fn zipf(dice: &mut Rng) -> Updates {
        let mut sum = 0.0;
        let weight = |rank: u32| {
            sum += f64::from(rank + 1).powf(-0.99);
            sum
        };
        let shares: Vec<f64> = (0..PAGES).map(weight).collect();
        let mut pages: Vec<u32> = (0..PAGES).collect();
        dice.shuffle(&mut pages);
        Updates::Zipf(shares.iter().map(|share| share / sum).collect(), pages)
    }

    fn next(&self, dice: &mut Rng) -> u32 {
        match self {
            Updates::Uniform => dice.u32(..PAGES),
            Updates::Zipf(shares, pages) => {
                let at = dice.f64();
                pages[shares.partition_point(|share| *share < at).min(pages.len() - 1)]
            }
        }
    }
}

/// The pool: dirty pages, and since which update they are so.
#[derive(Default)]
struct Pool {
    dirty: HashMap<u32, u64>,
    order: VecDeque<(u32, u64)>,
}

impl Pool {
    fn update(&mut self, page: u32, now: u64) {
        self.dirty.entry(page).or_insert_with(|| {
            self.order.push_back((page, now));
            now
        });
    }

    /// A page that has been dirty for a log wrap.
    fn due(&mut self, now: u64) -> Option<u32> {
        while let Some(&(page, since)) = self.order.front() {
            // Flushed for the cleaner meanwhile, it is clean, or dirty since later.
            let is_current = self.dirty.get(&page) == Some(&since);
            if is_current && now - since < u64::from(PAGES) {
                break;
            }
            self.order.pop_front();
            if is_current {
                return Some(page);
            }
        }
        None
    }
}

impl Dirty for Pool {
    fn is_dirty(&self, page: PageNo) -> bool {
        self.dirty.contains_key(&page.0)
    }
}

/// Page writes a update that an in-place store makes.
fn in_place(updates: &Updates) -> f64 {
    let (mut pool, mut dice, mut flushed) = (Pool::default(), Rng::with_seed(1), 0);
    let laps = 4 * u64::from(PAGES);
    for now in 0..laps {
        pool.update(updates.next(&mut dice), now);
        while let Some(page) = pool.due(now) {
            pool.dirty.remove(&page);
            flushed += u64::from(now >= laps / 2);
        }
    }
    flushed as f64 / (laps / 2) as f64
}

struct Run {
    store: LogStore,
    pool: Pool,
    bytes: Vec<u8>,
    reserve: u64,
}

impl Run {
    fn new(fill: f64, pages_a_segment: f64) -> Run {
        let sim = SimVolume::new(1);
        let count = |more: u64| (f64::from(PAGES) / fill / pages_a_segment) as u32 + more as u32;
        let config = |segments| LogStoreConfig {
            page_bytes: PAGE,
            segment_bytes: SEGMENT,
            segments,
            pages: PAGES,
        };
        // What is reserved for map checkpoints, of which there are none here, is no part of the
        // fill: so small a store reserves a larger share.
        let probe = LogStore::create(&volume(&SimVolume::new(2)), DB, &config(16)).expect("made");
        let reserve = probe.observe().reserve_bytes / SEGMENT as u64;
        let segments = count(reserve - 1);
        let store = LogStore::create(&volume(&sim), DB, &config(segments)).expect("made");
        sim.set_capacity(Some(0));
        let mut dice = Rng::with_seed(7);
        let bytes = (0..PAGE).map(|_| dice.u8(..)).collect();
        let mut run = Run { store, pool: Pool::default(), bytes, reserve };
        let all: Vec<u32> = (0..PAGES).collect();
        all.chunks(BATCH).for_each(|pages| run.write(pages));
        run
    }

    fn write(&mut self, pages: &[u32]) {
        let image = |&page: &u32| PageImage {
            page: PageNo(page),
            lsn: Lsn(1),
            bytes: &self.bytes,
            codec: None,
        };
        let images: Vec<PageImage<'_>> = pages.iter().map(image).collect();
        self.store.write_batch(&images, &mut |left| left).expect("written");
        for page in pages {
            self.pool.dirty.remove(page);
        }
    }

    /// Cleans until enough is free; dirty pages of a victim go out with those that are due.
    fn clean(&mut self, due: &mut Vec<u32>) {
        while self.store.observe().free_bytes / SEGMENT as u64 <= self.reserve + AHEAD {
            let cleaned = self.store.step_clean(SEGMENT, &self.pool).expect("cleaned");
            assert!(cleaned.victim.is_some(), "something to clean");
            due.extend(cleaned.flush_wanted.iter().map(|page| page.0));
            due.sort_unstable();
            due.dedup();
            for pages in std::mem::take(due).chunks(BATCH) {
                self.write(pages);
            }
        }
    }

    /// Device writes of pages for each update.
    fn go(&mut self, updates: &Updates) -> f64 {
        let mut dice = Rng::with_seed(1);
        let (mut due, mut counted, mut now) = (Vec::new(), None, 0);
        loop {
            now += 1;
            self.pool.update(updates.next(&mut dice), now);
            while let Some(page) = self.pool.due(now) {
                due.push(page);
            }
            if due.len() < BATCH {
                continue;
            }
            for pages in std::mem::take(&mut due).chunks(BATCH) {
                self.write(pages);
            }
            self.clean(&mut due);
            let stats = self.store.stats();
            let (written, copied) = (stats.pages_written.get(), stats.pages_copied.get());
            if written > (1 + WARM) * u64::from(PAGES) && counted.is_none() {
                counted = Some((written + copied, now));
            }
            if written > (1 + LAPS) * u64::from(PAGES) {
                let (before, from) = counted.expect("it got warm");
                return (written + copied - before) as f64 / (now - from) as f64;
            }
        }
    }
}

#[test]
fn writes_are_amplified_as_the_study_says() {
    let mut dice = Rng::with_seed(3);
    // All pages resident, one update for each a log wrap; flushed where dirty. And how many pages a
    // segment had in these runs: batches that are not full end on a boundary of 4096 bytes, which
    // with pages of 512 costs an eighth.
    let fills = [0.5, 0.7, 0.8, 0.9];
    let table = [
        ("uniform", Updates::Uniform, [1.03, 1.12, 1.21, 1.38], 104.0),
        ("zipf", Updates::zipf(&mut dice), [1.21, 1.50, 1.77, 2.29], 109.0),
    ];
    let is_all = std::env::var_os("WEIR_AMPLIFICATION_ALL").is_some();
    for (name, updates, expected, pages_a_segment) in table {
        let base = in_place(&updates);
        for (fill, expected) in fills.into_iter().zip(expected) {
            // The full table is half a minute; a change of the cleaner shows in the middle of it.
            if fill != 0.8 && !is_all {
                continue;
            }
            let found = Run::new(fill, pages_a_segment).go(&updates) / base;
            let off = (found / expected - 1.0).abs();
            assert!(off < 0.1, "{name} at fill {fill}: {found:.3}, the study says {expected}");
        }
    }
}
