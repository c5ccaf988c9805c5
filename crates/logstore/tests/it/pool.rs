//! The pool over this store, by an adapter that only the test has: pages are changed, evicted, read
//! again and written back, the cleaner asks the pool what is dirty and has it flushed, and map
//! checkpoints are made, all at the same time.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use weir_base::{DbId, Era, Lsn, PageNo, TreeId};
use weir_device::{SimVolume, Volume};
use weir_logstore::{Dirty, LogStore, LogStoreConfig, PageImage, StoreError};
use weir_page::{Damage, HEADER_BYTES, Kind};
use weir_pool::{
    Cause, Exclusive, Neighbours, NoteGrowth, PageStore, PageWrite, Pool, PoolConfig, PoolError,
    StoreRead,
};
use weir_redo::{Durability, Log, LogConfig};

use crate::support::{DB, volume};

const SIZE: usize = 4096;
const PAGES: u32 = 900;
const FRAMES: u64 = 256;

/// The store as the pool sees one.
struct Adapter(LogStore);

fn to_pool(page: PageNo, e: StoreError) -> PoolError {
    match e {
        StoreError::NoSuchPage(page) => PoolError::NoSuchPage(page),
        StoreError::Absent(_) | StoreError::Damaged { .. } => PoolError::Damaged {
            page,
            file: "segments".to_owned(),
            offset: 0,
            found: Damage::Zeroed,
        },
        other => PoolError::device("the store", std::io::Error::other(other.to_string())),
    }
}

impl PageStore for Adapter {
    fn page_size(&self) -> usize {
        self.0.page_bytes()
    }

    fn db(&self) -> DbId {
        DB
    }

    fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<(), PoolError> {
        let lsn = self.0.read(page, buf).map_err(|e| to_pool(page, e))?;
        assert_eq!(weir_page::verify(buf, DB, page), Ok(()));
        assert_eq!(weir_page::lsn(buf), lsn);
        Ok(())
    }

    fn read_many(&self, reads: &mut [StoreRead<'_>]) {
        for read in reads {
            read.outcome = self.read(read.page, read.buf);
        }
    }

    fn write_batch(
        &self,
        _: usize,
        pages: &[PageWrite<'_>],
        pace: &mut dyn FnMut(usize) -> usize,
    ) -> Result<(), PoolError> {
        let image = |w: &PageWrite<'_>| (w.page, w.lsn, w.bytes.to_vec());
        let owned: Vec<(PageNo, Lsn, Vec<u8>)> = pages.iter().map(image).collect();
        let images: Vec<PageImage<'_>> = owned
            .iter()
            .map(|(page, lsn, bytes)| PageImage { page: *page, lsn: *lsn, bytes })
            .collect();
        self.0.write_batch(&images, pace).map_err(|e| to_pool(PageNo(0), e))
    }

    fn batch_max(&self) -> usize {
        64
    }

    fn pages(&self) -> u32 {
        self.0.pages()
    }

    fn grow(&self, pages: u32) -> Result<(), PoolError> {
        self.0.grow(pages).map_err(|e| to_pool(PageNo(0), e))
    }

    fn note_growth(&self, _: Box<NoteGrowth>) {}

    fn place(&self, page: PageNo) -> (String, u64) {
        let (file, offset) = self.0.place(page).unwrap_or(("segments", 0));
        (file.to_owned(), offset)
    }

    fn eras(&self) -> [Result<Era, PoolError>; 2] {
        [Ok(Era::default()), Ok(Era::default())]
    }

    fn set_era(&self, _: Era) -> Result<(), PoolError> {
        Ok(())
    }
}

struct Site {
    sim: SimVolume,
    log: Arc<Log>,
    pool: Pool,
    adapter: Arc<Adapter>,
}

impl Site {
    fn new() -> Site {
        let sim = SimVolume::new(12);
        let disk: Arc<dyn Volume> = volume(&sim);
        let config = LogConfig { db: DB, capacity_bytes: 32 << 20, buffer_bytes: 1 << 20 };
        let log = Arc::new(Log::create(disk.clone(), config, Lsn(4096)).expect("a log"));
        let config = LogStoreConfig {
            page_bytes: SIZE,
            segment_bytes: 128 << 10,
            segments: 24,
            pages: PAGES,
        };
        let store = LogStore::create(&disk, DB, &config).expect("a store");
        disk.sync_directory().expect("synced");
        let adapter = Arc::new(Adapter(store));
        let config = PoolConfig {
            bytes: FRAMES * SIZE as u64,
            pages_max: 1 << 16,
            log_usual_bytes: 16 << 20,
            log_span_bytes: 64 << 20,
            manual: true,
            skip_log_gate: false,
        };
        let pool = Pool::new(&config, adapter.clone(), log.clone()).expect("a pool");
        pool.begin_at(log.end());
        Site { sim, log, pool, adapter }
    }

    /// Writes some of the oldest dirty pages.
    fn sweep(&self, shard: usize) {
        let pages = self.pool.take_oldest(16, self.log.end());
        self.pool.write_back(shard, &pages, Cause::Deadline, 4, &mut |_| {}).expect("written");
    }

    /// A step of cleaning; what is dirty is flushed.
    fn clean(&self) {
        let cleaned = self.adapter.0.step_clean(64 << 10, self).expect("a step");
        let wanted = cleaned.flush_wanted.iter().filter_map(|&page| self.listed(page));
        let wanted: Vec<(PageNo, Lsn)> = wanted.collect();
        self.pool.write_back(0, &wanted, Cause::Deadline, 16, &mut |_| {}).expect("written");
    }

    fn listed(&self, page: PageNo) -> Option<(PageNo, Lsn)> {
        // The neighbour's area of 16 pages is this page's, too.
        let neighbours = self.pool.dirty_neighbours(PageNo(page.0 ^ 1), Neighbours::Area);
        neighbours.into_iter().find(|(neighbour, _)| *neighbour == page)
    }
}

impl Dirty for Site {
    fn is_dirty(&self, page: PageNo) -> bool {
        self.listed(page).is_some()
    }
}

fn counter(bytes: &[u8]) -> u64 {
    let at = |at: usize| bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    assert_eq!(at(HEADER_BYTES), at(bytes.len() - 8), "one state of the page");
    at(HEADER_BYTES)
}

fn set(log: &Log, mut held: Exclusive<'_>, value: u64) {
    let bytes = held.bytes_mut();
    let end = bytes.len();
    bytes[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&value.to_le_bytes());
    bytes[end - 8..].copy_from_slice(&value.to_le_bytes());
    // Something that does not pack to nothing.
    Rng::with_seed(value).fill(&mut bytes[100..2000]);
    log.append(&[value as u8; 40], |span| held.log_change(span)).expect("logged");
}

fn change(site: &Site, added: &[AtomicU64], seed: u64, is_over: &AtomicBool) {
    let mut dice = Rng::with_seed(seed);
    while !is_over.load(Ordering::Relaxed) {
        let page = dice.u32(..PAGES);
        let held = site.pool.exclusive(PageNo(page)).expect("the page");
        let value = counter(held.bytes());
        assert_eq!(value, added[page as usize].load(Ordering::Relaxed), "page {page}");
        if dice.u8(..3) > 0 {
            added[page as usize].store(value + 1, Ordering::Relaxed);
            set(&site.log, held, value + 1);
        }
    }
}

#[test]
fn the_pool_finds_its_pages_whatever_the_store_does() {
    let site = Site::new();
    for page in (0..PAGES).map(PageNo) {
        let mut held = site.pool.fresh(page).expect("a page");
        weir_page::format(held.bytes_mut(), Kind::Meta, 0, TreeId(1), page);
        set(&site.log, held, 0);
    }
    let added: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
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
                site.clean();
            }
        });
        scope.spawn(move || {
            while until() {
                site.adapter.0.checkpoint_map().expect("a map checkpoint");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let began = Instant::now();
        let stats = site.adapter.0.stats();
        let few = || stats.pages_written.get() < 4000 || stats.pages_copied.get() < 100;
        let long = || began.elapsed() > Duration::from_secs(60);
        while began.elapsed() < Duration::from_secs(1) || few() && !long() {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let stats = site.adapter.0.stats();
    assert!(stats.pages_written.get() > 1000 && stats.segments_opened.get() > 24);
    site.log.flush(Durability::Synced).expect("flushed");
    while site.pool.residence().dirty > 0 {
        site.sweep(1);
    }
    let store = LogStore::open(&volume(&site.sim.snapshot()), DB).expect("a store");
    let mut buf = vec![0; SIZE];
    for (page, added) in (0..).map(PageNo).zip(&added) {
        store.read(page, &mut buf).expect("there");
        assert_eq!(weir_page::verify(&buf, DB, page), Ok(()));
        assert_eq!(counter(&buf), added.load(Ordering::Relaxed), "page {page}");
    }
}
