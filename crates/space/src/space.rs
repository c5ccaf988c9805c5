//! Allocation: claimed in memory first, made lasting by the group that uses the page.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;

use thiserror::Error;
use weir_base::{Lsn, PageNo, TreeId};
use weir_change::{Group, Header, Op};
use weir_page::{Bytes, Damage, HEADER_BYTES, Kind};
use weir_pool::{Pool, PoolError};
use weir_redo::RedoError;

use crate::bitmap::Bitmap;
use crate::blocks::{Blocks, HoleLimits};
use crate::holes::SpaceStats;

/// Why there is no page to be had.
#[derive(Debug, Error)]
pub enum SpaceError {
    /// The file system has no room. Nothing has changed; reads go on; writes go on once there is
    /// room again.
    #[error("the disk is full: the database could not be made larger ({0})")]
    DiskFull(PoolError),
    /// The database has as many pages as it may have.
    #[error("the database has reached its largest size of {0} pages")]
    TooLarge(u32),
    /// A map page could not be read or written.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log refused.
    #[error(transparent)]
    Redo(#[from] RedoError),
}

pub(crate) fn disk_full(e: PoolError) -> SpaceError {
    if e.is_disk_full() { SpaceError::DiskFull(e) } else { SpaceError::Pool(e) }
}

/// What is known of the pages.
pub(crate) struct State {
    /// Which are in use.
    pub(crate) used: Bitmap,
    /// Which have blocks of the file system.
    pub(crate) blocks: Blocks,
}

impl State {
    fn take(&mut self, page: u32) {
        self.used.set(page, true);
        self.blocks.touch(page);
    }
}

/// Takes in what the map page `map` says.
fn note_used(bytes: &[u8], map: u32, state: &mut Bitmap) {
    for at in (HEADER_BYTES..bytes.len()).step_by(8) {
        let word = bytes.u64_at(at);
        for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
            state.set(map + ((at - HEADER_BYTES) * 8) as u32 + bit, true);
        }
    }
}

/// The pages of a database: which are in use.
pub struct Space {
    pub(crate) pool: Arc<Pool>,
    pub(crate) bits_per_map: u32,
    pages_max: u32,
    pub(crate) state: Mutex<rank::SpaceBits, State>,
    pub(crate) stats: SpaceStats,
    /// Pages that were given back.
    freed: AtomicU64,
    /// For each map page, where the log must be durable so that it will be found.
    maps: Mutex<rank::MapList, Vec<Lsn>>,
}

impl Space {
    /// Pages that one map page describes, itself the first of them.
    fn bits_per_map(page_size: usize) -> u32 {
        ((page_size - HEADER_BYTES) * 8) as u32
    }

    fn new(pool: Arc<Pool>, pages_max: u32) -> Self {
        let bits_per_map = Self::bits_per_map(pool.page_size());
        let blocks = Blocks::new(HoleLimits::default(), pool.page_size());
        Space {
            pool,
            bits_per_map,
            pages_max,
            state: Mutex::new(State { used: Bitmap::default(), blocks }),
            stats: SpaceStats::default(),
            freed: AtomicU64::new(0),
            maps: Mutex::default(),
        }
    }

    /// The space of a new database: nothing is in use but the first map page.
    ///
    /// # Errors
    /// [`SpaceError`] when the first map page cannot be made.
    pub fn create(pool: Arc<Pool>, pages_max: u32) -> Result<Self, SpaceError> {
        let space = Self::new(pool, pages_max);
        space.make_map(&mut space.state.lock(), 0)?;
        Ok(space)
    }

    /// The space of a database that exists: reads its map pages. At least `maps` were made.
    ///
    /// # Errors
    /// [`SpaceError::Pool`] when one of them is damaged; where pages are only looked at, all that
    /// it would describe count as in use.
    pub fn open(pool: Arc<Pool>, pages_max: u32, maps: u32) -> Result<Self, SpaceError> {
        let space = Self::new(pool, pages_max);
        let pages = space.pool.store().pages();
        let mut state = space.state.lock();
        let mut map = 0u32;
        while map < pages {
            let held = match space.pool.exclusive(PageNo(map)) {
                Ok(held) if held.node().kind() == Some(Kind::SpaceMap) => Some(held),
                Ok(_) if space.pool.is_looked_at() => None,
                Ok(_) => return Err(space.pool.damaged(PageNo(map), Damage::NotASpaceMap).into()),
                // Room that was never used: there is no map there yet, nor behind it.
                Err(PoolError::Damaged { found: Damage::Zeroed, .. })
                    if map / space.bits_per_map >= maps =>
                {
                    break;
                }
                Err(_) if space.pool.is_looked_at() => None,
                Err(e) => return Err(e.into()),
            };
            space.maps.lock().push(Lsn::ZERO);
            match held {
                Some(held) => note_used(held.bytes(), map, &mut state.used),
                None => {
                    let end = map.saturating_add(space.bits_per_map).min(pages);
                    for page in map..end {
                        state.used.set(page, true);
                    }
                }
            }
            let Some(next) = map.checked_add(space.bits_per_map) else { break };
            map = next;
        }
        state.blocks.doubt(pages);
        drop(state);
        Ok(space)
    }

    /// With other limits for what is given back; before anything is claimed.
    #[must_use]
    pub fn with_hole_limits(self, limits: HoleLimits) -> Self {
        let mut blocks = Blocks::new(limits, self.pool.page_size());
        // What is reserved once more than need be costs little.
        blocks.doubt(self.pool.store().pages());
        self.state.lock().blocks = blocks;
        self
    }

    /// Pages in use, map pages included.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state.lock().used.used()
    }

    /// The number behind the last page in use.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.state.lock().used.end()
    }

    /// Whether a page is in use.
    #[must_use]
    pub fn is_used(&self, page: PageNo) -> bool {
        self.state.lock().used.is_used(page.0)
    }

    /// Whether the map page says that a page is in use: the group that uses it has been made. A
    /// page that is only claimed need not be anything yet.
    ///
    /// # Errors
    /// [`PoolError`] when the map page cannot be read.
    pub fn is_noted(&self, page: PageNo) -> Result<bool, PoolError> {
        let map = self.map_of(page);
        let bit = (page.0 - map.0) as usize;
        loop {
            let look = self.pool.optimistic(map)?;
            let word = look.raw().u64_at(HEADER_BYTES + bit / 64 * 8);
            if look.still() {
                return Ok(word >> (bit % 64) & 1 == 1);
            }
        }
    }

    /// Leaves out the pages that are not in use now.
    pub fn retain_used(&self, pages: &mut Vec<PageNo>) {
        let state = self.state.lock();
        pages.retain(|page| state.used.is_used(page.0));
    }

    /// Whether a page is a map page.
    #[must_use]
    pub fn is_map(&self, page: PageNo) -> bool {
        page.0.is_multiple_of(self.bits_per_map)
    }

    /// Claims `count` pages, near each other where possible. They are this caller's until it gives
    /// them back with [`Space::unclaim`], and lasting once a group with [`Space::log_used`] is
    /// committed. To be called without latches: it may have to make the file larger.
    ///
    /// # Errors
    /// [`SpaceError`]; nothing is claimed then.
    pub fn claim(&self, count: usize) -> Result<Vec<PageNo>, SpaceError> {
        let mut pages = Vec::with_capacity(count);
        self.pool.check_room(count as u64).map_err(disk_full)?;
        let mut state = self.state.lock();
        let mut from = 0;
        while pages.len() < count {
            match self.claim_one(&mut state, from) {
                Ok(page) => {
                    from = page + 1;
                    pages.push(PageNo(page));
                }
                Err(e) => {
                    for page in pages {
                        state.used.set(page.0, false);
                    }
                    return Err(e);
                }
            }
        }
        Ok(pages)
    }

    /// As [`Space::claim`], of the lowest free page, if that lies below `page`: the file does not
    /// become larger. `None`: there is none, or the disk has no room for its blocks.
    ///
    /// # Errors
    /// [`SpaceError`]; nothing is claimed then.
    pub fn claim_below(&self, page: PageNo) -> Result<Option<PageNo>, SpaceError> {
        let mut state = self.state.lock();
        let free = state.used.first_free(0);
        if free >= page.0 || free.is_multiple_of(self.bits_per_map) {
            return Ok(None);
        }
        match self.take_blocks(&mut state, free) {
            Ok(()) => state.take(free),
            Err(SpaceError::DiskFull(_)) => return Ok(None),
            Err(e) => return Err(e),
        }
        Ok(Some(PageNo(free)))
    }

    /// The lowest page that is free: what lies below all is in use.
    #[must_use]
    pub fn lowest_free(&self) -> PageNo {
        PageNo(self.state.lock().used.first_free(0))
    }

    fn claim_one(&self, state: &mut State, from: u32) -> Result<u32, SpaceError> {
        let mut page = state.used.first_free(from);
        if page.is_multiple_of(self.bits_per_map) {
            self.make_map(state, page)?;
            page = state.used.first_free(page + 1);
        }
        self.make_room(page)?;
        page = match self.take_blocks(state, page) {
            Ok(()) => page,
            Err(e @ SpaceError::DiskFull(_)) => self.next_with_blocks(state, page).ok_or(e)?,
            Err(e) => return Err(e),
        };
        state.take(page);
        Ok(page)
    }

    /// Makes the file large enough for `page`, by an eighth at a time so that growing is rare.
    fn make_room(&self, page: u32) -> Result<(), SpaceError> {
        if page >= self.pages_max {
            return Err(SpaceError::TooLarge(self.pages_max));
        }
        let store = self.pool.store();
        let have = store.pages();
        if page < have {
            return Ok(());
        }
        let step = (have / 8).clamp(64, ((64 << 20) / store.page_size()) as u32);
        let wanted = page.saturating_add(step).min(self.pages_max);
        self.pool.reach(wanted)?;
        match store.grow(wanted) {
            Err(e) if e.is_disk_full() => store.grow(page + 1).map_err(SpaceError::DiskFull),
            Err(e) => {
                // What a failed sync has lost is not known: perhaps pages of others.
                self.pool.halt(&e.to_string());
                Err(SpaceError::Pool(e))
            }
            Ok(()) => Ok(()),
        }
    }

    fn make_map(&self, state: &mut State, page: u32) -> Result<(), SpaceError> {
        self.make_room(page)?;
        self.take_blocks(state, page)?;
        let mut group = Group::begin(Header::default());
        let number = PageNo(page);
        let held = group.hold(self.pool.fresh(number)?);
        group.apply(
            held,
            &Op::Init { page: number, kind: Kind::SpaceMap, level: 0, tree: TreeId(0) },
        );
        group.apply(held, &Op::MapSet { page: number, first_bit: 0, count: 1, value: true });
        // Held meanwhile: the thread that asks for the number of maps with a checkpoint that has
        // passed this group must see it.
        let mut maps = self.maps.lock();
        maps.push(group.commit(self.pool.log())?.end);
        drop(maps);
        state.take(page);
        Ok(())
    }

    /// How many map pages will be found whatever happens when the log is durable up to `durable`.
    #[must_use]
    pub fn maps(&self, durable: Lsn) -> u32 {
        self.maps.lock().iter().take_while(|&&end| end <= durable).count() as u32
    }

    /// Gives back pages that were claimed and never logged.
    pub fn unclaim(&self, pages: &[PageNo]) {
        let mut state = self.state.lock();
        for page in pages {
            state.used.set(page.0, false);
        }
        self.freed.fetch_add(pages.len() as u64, Ordering::Relaxed);
    }

    /// Pages that were given back since the space was opened.
    #[must_use]
    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// The pages of map number `map` that are not in use; `None`: there is no such map.
    #[must_use]
    pub fn unused_of(&self, map: u32) -> Option<Vec<PageNo>> {
        let first = map.checked_mul(self.bits_per_map)?;
        let end = first.saturating_add(self.bits_per_map).min(self.pool.store().pages());
        let state = self.state.lock();
        let used = &state.used;
        (first < used.end())
            .then(|| (first..end).filter(|&page| !used.is_used(page)).map(PageNo).collect())
    }

    /// Notes in the group that claimed pages are in use.
    ///
    /// # Errors
    /// [`SpaceError::Pool`] when a map page cannot be read; nothing is noted then.
    pub fn log_used<'p>(
        &'p self,
        group: &mut Group<'p>,
        pages: &[PageNo],
    ) -> Result<(), SpaceError> {
        self.log_set(group, pages, true)
    }

    /// Notes in the group that pages are free. After the group is committed, and not before, they
    /// are to be given to [`Space::unclaim`].
    ///
    /// # Errors
    /// As [`Space::log_used`].
    pub fn log_free<'p>(
        &'p self,
        group: &mut Group<'p>,
        pages: &[PageNo],
    ) -> Result<(), SpaceError> {
        self.log_set(group, pages, false)
    }

    /// Notes in the group that what was on the pages `from` is on the claimed pages `to`, so that
    /// `from` are free: as [`Space::log_used`] and [`Space::log_free`]. Both ascend.
    ///
    /// # Errors
    /// As [`Space::log_used`].
    pub fn log_moved<'p>(
        &'p self,
        group: &mut Group<'p>,
        to: &[PageNo],
        from: &[PageNo],
    ) -> Result<(), SpaceError> {
        let mut all = [to, from].concat();
        all.sort_unstable();
        self.take_maps(group, &all)?;
        self.log_set(group, to, true)?;
        self.log_set(group, from, false)
    }

    /// SPACE-2: all map pages first. Once one of them is changed the group must be committed, so
    /// nothing may fail from there on.
    fn take_maps<'p>(&'p self, group: &mut Group<'p>, pages: &[PageNo]) -> Result<(), SpaceError> {
        for page in pages {
            let map = self.map_of(*page);
            if group.find(map).is_none() {
                group.hold(self.pool.exclusive(map)?);
            }
        }
        Ok(())
    }

    fn map_of(&self, page: PageNo) -> PageNo {
        PageNo(page.0 / self.bits_per_map * self.bits_per_map)
    }

    fn log_set<'p>(
        &'p self,
        group: &mut Group<'p>,
        pages: &[PageNo],
        value: bool,
    ) -> Result<(), SpaceError> {
        self.take_maps(group, pages)?;
        let mut i = 0;
        while i < pages.len() {
            let map = self.map_of(pages[i]);
            let mut count = 1;
            while pages.get(i + count).is_some_and(|p| {
                p.0 == pages[i].0 + count as u32 && p.0 < map.0 + self.bits_per_map
            }) {
                count += 1;
            }
            let Some(held) = group.find(map) else {
                unreachable!("SPACE-2: every map page was taken above")
            };
            let first_bit = pages[i].0 - map.0;
            group.apply(held, &Op::MapSet { page: map, first_bit, count: count as u32, value });
            i += count;
        }
        Ok(())
    }
}
