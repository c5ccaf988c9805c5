//! A pool whose pages hold counters, over a simulated disk.
use std::sync::Arc;

use weir_base::{DbId, Lsn, PageNo, TreeId};
use weir_device::{SimVolume, Volume};
use weir_page::{HEADER_BYTES, Kind};
use weir_pool::{
    Cause, DoubleWriteConfig, DoubleWriteMode, Exclusive, InPlaceStore, PageUse, Pool, PoolConfig,
};
use weir_redo::{Durability, Log, LogConfig};

pub(crate) const DB: DbId = DbId(7);
pub(crate) const SIZE: usize = 4096;

pub(crate) fn pool_config(frames: u64) -> PoolConfig {
    PoolConfig {
        bytes: frames * SIZE as u64,
        pages_max: 1 << 16,
        log_usual_bytes: 16 << 20,
        log_span_bytes: 64 << 20,
        manual: true,
        skip_log_gate: false,
        page_use: PageUse::Changed,
    }
}

pub(crate) fn new_log(volume: &Arc<dyn Volume>) -> Arc<Log> {
    let config = LogConfig { db: DB, capacity_bytes: 32 << 20, buffer_bytes: 1 << 20 };
    Arc::new(Log::create(volume.clone(), config, Lsn(4096)).expect("a log"))
}

pub(crate) fn doublewrite(mode: DoubleWriteMode) -> DoubleWriteConfig {
    DoubleWriteConfig { mode, files: 2, pages: 16 }
}

pub(crate) struct Site {
    pub(crate) sim: SimVolume,
    pub(crate) log: Arc<Log>,
    pub(crate) pool: Arc<Pool>,
}

/// A pool with room for `pages` pages on disk.
pub(crate) fn site(frames: u64, pages: u32, mode: DoubleWriteMode) -> Site {
    let sim = SimVolume::new(3);
    let volume: Arc<dyn Volume> = Arc::new(sim.clone());
    let log = new_log(&volume);
    let store = InPlaceStore::create(&volume, DB, SIZE, pages, doublewrite(mode)).expect("a store");
    let pool =
        Arc::new(Pool::new(&pool_config(frames), Arc::new(store), log.clone()).expect("a pool"));
    pool.begin_at(log.end());
    Site { sim, log, pool }
}

/// The counter in a page, twice, at both ends: halves of two states differ.
pub(crate) fn counter(bytes: &[u8]) -> u64 {
    let at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    let (front, back) = (at(HEADER_BYTES), at(bytes.len() - 8));
    assert_eq!(front, back, "one state of the page");
    front
}

/// Changes a page and logs it, as a group does.
pub(crate) fn set(log: &Log, mut held: Exclusive<'_>, value: u64) -> Lsn {
    let page = held.page();
    let bytes = held.bytes_mut();
    if weir_page::verify(bytes, DB, page).is_err() && bytes[16] == 0 {
        weir_page::format(bytes, Kind::Meta, 0, TreeId(1), page);
    }
    let end = bytes.len();
    bytes[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&value.to_le_bytes());
    bytes[end - 8..].copy_from_slice(&value.to_le_bytes());
    // As large as small changes are.
    let body = [value as u8; 40];
    log.append(&body, |span| held.log_change(span)).expect("logged").end
}

pub(crate) fn make(site: &Site, pages: u32) {
    for page in 0..pages {
        set(&site.log, site.pool.fresh(PageNo(page)).expect("a page"), u64::from(page));
    }
}

/// Writes everything; nothing is dirty afterwards.
pub(crate) fn drain(site: &Site) {
    site.log.flush(Durability::Synced).expect("flushed");
    while site.pool.residence().dirty > 0 {
        let pages = site.pool.take_oldest(16, site.log.end());
        assert!(!pages.is_empty(), "a dirty page is missing from the list");
        site.pool.write_back(0, &pages, Cause::Shutdown, 4, &mut |_| {}).expect("written");
    }
    assert_eq!(site.pool.pages_in_flight(), 0);
    assert_eq!(site.pool.oldest(), site.log.published());
    assert_eq!(site.pool.age_counts().counts.iter().sum::<u32>(), 0);
}
