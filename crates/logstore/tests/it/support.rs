//! Stores over simulated disks, and a model of what must be in them.
use std::sync::Arc;

use fastrand::Rng;
use weir_base::{DbId, Lsn, PageNo};
use weir_device::{SimVolume, Volume};
use weir_logstore::{Dirty, LogStore, LogStoreConfig, PageImage, StoreError};

pub(crate) const DB: DbId = DbId(0x5eed);
pub(crate) const PAGE: usize = 512;
pub(crate) const PAGES: u32 = 700;

pub(crate) fn config() -> LogStoreConfig {
    LogStoreConfig { page_bytes: PAGE, segment_bytes: 64 << 10, segments: 16, pages: PAGES }
}

pub(crate) fn volume(sim: &SimVolume) -> Arc<dyn Volume> {
    Arc::new(sim.clone())
}

pub(crate) fn create(sim: &SimVolume) -> Result<LogStore, StoreError> {
    let volume = volume(sim);
    let store = LogStore::create(&volume, DB, &config())?;
    let synced = volume.sync_directory();
    synced.map_err(|e| StoreError::Device { what: "sync".to_owned(), cause: Arc::new(e) })?;
    Ok(store)
}

pub(crate) fn open(sim: &SimVolume) -> Result<LogStore, StoreError> {
    LogStore::open(&volume(sim), DB)
}

/// The bytes that a page has as of an LSN; some pages can be packed, some not.
pub(crate) fn bytes_of(page: u32, lsn: u64) -> Vec<u8> {
    let mut dice = Rng::with_seed(u64::from(page) << 32 ^ lsn);
    let mut bytes = vec![page as u8; PAGE];
    let random = [PAGE, PAGE / 2, PAGE / 8][dice.usize(..3)];
    bytes[..random].fill_with(|| dice.u8(..));
    bytes[PAGE - 8..].copy_from_slice(&lsn.to_le_bytes());
    bytes
}

/// Pages that the cleaner takes for dirty.
pub(crate) struct EverySeventh(pub(crate) u32);

impl Dirty for EverySeventh {
    fn is_dirty(&self, page: PageNo) -> bool {
        page.0 % 7 == self.0 % 7
    }
}

/// A state of a page: as of an LSN, there or freed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct State {
    pub(crate) lsn: u64,
    pub(crate) is_free: bool,
}

/// What each page must be: what was acknowledged last, or anything that was asked for since.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) lsn: u64,
    acknowledged: Vec<State>,
    asked: Vec<Vec<State>>,
}

impl Model {
    pub(crate) fn new() -> Model {
        let free = State { lsn: 0, is_free: true };
        let pages = PAGES as usize;
        Model { lsn: 0, acknowledged: vec![free; pages], asked: vec![Vec::new(); pages] }
    }

    /// Writes pages, under one LSN.
    pub(crate) fn write(
        &mut self,
        store: &LogStore,
        pages: &[u32],
        group: usize,
    ) -> Result<(), StoreError> {
        self.lsn += 1;
        let state = State { lsn: self.lsn, is_free: false };
        pages.iter().for_each(|&page| self.asked[page as usize].push(state));
        let bytes: Vec<Vec<u8>> = pages.iter().map(|&page| bytes_of(page, self.lsn)).collect();
        let image = |(&page, bytes): (&u32, &'_ Vec<u8>)| (PageNo(page), bytes.clone());
        let owned: Vec<(PageNo, Vec<u8>)> = pages.iter().zip(&bytes).map(image).collect();
        let images: Vec<PageImage<'_>> = owned
            .iter()
            .map(|(page, bytes)| PageImage { page: *page, lsn: Lsn(self.lsn), bytes, codec: None })
            .collect();
        store.write_batch(&images, &mut |_| group)?;
        pages.iter().for_each(|&page| self.acknowledge(page, state));
        Ok(())
    }

    pub(crate) fn forget(
        &mut self,
        store: &LogStore,
        first: u32,
        count: u32,
    ) -> Result<(), StoreError> {
        self.lsn += 1;
        let state = State { lsn: self.lsn, is_free: true };
        let pages = first..(first + count).min(PAGES);
        pages.clone().for_each(|page| self.asked[page as usize].push(state));
        store.forget(PageNo(first), count, Lsn(self.lsn))?;
        pages.for_each(|page| self.acknowledge(page, state));
        Ok(())
    }

    fn acknowledge(&mut self, page: u32, state: State) {
        self.acknowledged[page as usize] = state;
        self.asked[page as usize].clear();
    }

    /// Whether a page is what it may be; what it is counts from now on.
    pub(crate) fn check_page(&mut self, store: &LogStore, page: u32) -> Result<(), String> {
        let mut buf = vec![0; PAGE];
        let found = match store.read(PageNo(page), &mut buf) {
            Ok(lsn) => State { lsn: lsn.0, is_free: false },
            Err(StoreError::Absent(_)) => State { lsn: 0, is_free: true },
            Err(e) => return Err(format!("page {page}: {e}")),
        };
        let acknowledged = self.acknowledged[page as usize];
        let asked = &self.asked[page as usize];
        let is_it = |state: &State| {
            state.is_free == found.is_free && (state.is_free || state.lsn == found.lsn)
        };
        let Some(state) = asked.iter().rev().chain([&acknowledged]).find(|s| is_it(s)) else {
            return Err(format!("page {page}: {found:?}, not {acknowledged:?} or {asked:?}"));
        };
        if !state.is_free && buf != bytes_of(page, state.lsn) {
            return Err(format!("page {page}: other bytes than those of {state:?}"));
        }
        let state = *state;
        self.acknowledge(page, state);
        Ok(())
    }

    /// As [`Model::check_page`], of a store that does not know any more which pages are none: such
    /// a one may be there as it was once.
    pub(crate) fn check_but_freed_page(
        &mut self,
        store: &LogStore,
        page: u32,
    ) -> Result<(), String> {
        let mut buf = vec![0; PAGE];
        match store.read(PageNo(page), &mut buf) {
            Ok(lsn) if self.may_be_free(page) => match buf == bytes_of(page, lsn.0) {
                true => Ok(()),
                false => Err(format!("page {page}: it never was that")),
            },
            _ => self.check_page(store, page),
        }
    }

    fn may_be_free(&self, page: u32) -> bool {
        let states = self.asked[page as usize].iter().chain([&self.acknowledged[page as usize]]);
        states.into_iter().any(|state| state.is_free)
    }

    pub(crate) fn check_but_freed(&mut self, store: &LogStore) -> Result<(), String> {
        (0..PAGES).try_for_each(|page| self.check_but_freed_page(store, page))
    }

    pub(crate) fn check(&mut self, store: &LogStore) -> Result<(), String> {
        (0..PAGES).try_for_each(|page| self.check_page(store, page))
    }
}

/// One random thing to do.
pub(crate) fn act(store: &LogStore, model: &mut Model, dice: &mut Rng) -> Result<(), StoreError> {
    match dice.u8(..22) {
        0..13 => {
            // Some pages are written often, most seldom.
            let reach = if dice.bool() { PAGES / 10 } else { PAGES };
            let mut pages: Vec<u32> = (0..dice.usize(1..24)).map(|_| dice.u32(..reach)).collect();
            pages.sort_unstable();
            pages.dedup();
            dice.shuffle(&mut pages);
            let group = dice.usize(1..24);
            model.write(store, &pages, group)
        }
        13 => {
            let (first, count) = (dice.u32(..PAGES), dice.u32(1..9));
            // Sometimes page by page, so often that segments hold nothing but free records.
            let times = if dice.u8(..16) == 0 { 40 } else { 1 };
            (0..times).try_for_each(|_| model.forget(store, first, count))
        }
        14 => store.checkpoint_map(),
        20.. => {
            let budget = dice.usize(1..32 << 10);
            let dirty = EverySeventh(dice.u32(..9));
            store.step_shrink(dice.usize(10..24), budget, &dirty).map(drop)
        }
        _ => {
            let budget = dice.usize(1..32 << 10);
            let dirty = EverySeventh(dice.u32(..9));
            store.step_clean(budget, &dirty).map(drop)
        }
    }
}
