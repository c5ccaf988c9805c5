//! The pool itself: what it is made of, what is dirty, halting.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Health, Lsn, PageNo, ThreadCounts, format_size};
use weir_page::{Damage, RawPage};
use weir_redo::Log;

use crate::ahead_pages::AheadPages;
use crate::ahead_thread::AheadThreads;
use crate::damages::{Damages, ScrubStats};
use crate::dirty::{AgeCounts, DirtyList};
use crate::error::PoolError;
use crate::evict::Evictor;
use crate::frame::Frames;
use crate::free::FreeFrames;
use crate::in_flight::InFlight;
use crate::latch::{FRAMES_MAX, Latch};
use crate::pending_list::PendingRedo;
use crate::recent::Recent;
use crate::stats::PoolStats;
use crate::store::PageStore;
use crate::table::PageTable;
use crate::warm_plan::Asked;

/// How large a pool is.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Memory for pages, in bytes.
    pub bytes: u64,
    /// The most pages that the database may ever have.
    pub pages_max: u32,
    /// The log's usual capacity, which sets the resolution of the age distribution.
    pub log_usual_bytes: u64,
    /// The largest age that may ever occur.
    pub log_span_bytes: u64,
    /// No background thread frees frames: a thread that needs one does the cleaner's step
    /// (simulation).
    pub manual: bool,
    /// Plants a bug: pages are written without waiting for the log. For the simulator's canary.
    pub skip_log_gate: bool,
    /// What is done with the pages.
    pub page_use: PageUse,
}

/// What is done with the pages of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageUse {
    /// They are read and changed.
    #[default]
    Changed,
    /// They are only looked at, and may be damaged: none is ever dirty, or written. A page that has
    /// pending redo gets it each time that it is read in (POOL-17).
    LookedAt {
        /// Pages may have changes that the log does not have.
        may_be_ahead: bool,
    },
}

/// The smallest pool.
pub(crate) const FRAMES_MIN: u64 = 16;

/// How full the pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residence {
    /// All frames.
    pub frames: u64,
    /// Frames without a page.
    pub free: u64,
    /// Dirty pages, not counting those being written.
    pub dirty: u64,
}

/// Pages in memory.
pub struct Pool {
    page_size: usize,
    pub(crate) frames: Frames,
    pub(crate) table: PageTable,
    pub(crate) dirty: DirtyList,
    pub(crate) pending: PendingRedo,
    pub(crate) evictor: Mutex<rank::Eviction, Evictor>,
    pub(crate) free: FreeFrames,
    pub(crate) store: Arc<dyn PageStore>,
    pub(crate) log: Arc<Log>,
    pub(crate) in_flight: InFlight,
    pub(crate) recent: Recent,
    pub(crate) asked: Asked,
    pub(crate) ahead: AheadPages,
    pub(crate) ahead_threads: AheadThreads,
    pub(crate) stats: PoolStats,
    pub(crate) skip_log_gate: bool,
    pub(crate) page_use: PageUse,
    pub(crate) scrub_stats: ScrubStats,
    pub(crate) damages: Damages,
    health: Arc<Health>,
    oldest_kept: AtomicU64,
    pub(crate) resizing: Mutex<rank::PoolSize, ()>,
}

impl Pool {
    /// A pool with all its frames free.
    ///
    /// # Errors
    /// [`PoolError::Device`] when the memory cannot be had.
    pub fn new(
        config: &PoolConfig,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
    ) -> Result<Self, PoolError> {
        Self::with_room(config, 0, store, log)
    }

    /// As [`Pool::new`], which may have up to `bytes_max` of memory later ([`Pool::resize`]), where
    /// there is address space for so much.
    ///
    /// # Errors
    /// As [`Pool::new`].
    pub fn with_room(
        config: &PoolConfig,
        bytes_max: u64,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
    ) -> Result<Self, PoolError> {
        let page_size = store.page_size();
        let of =
            |bytes: u64| (bytes / page_size as u64).clamp(FRAMES_MIN, u64::from(FRAMES_MAX)) as u32;
        let count = of(config.bytes);
        let frames = Frames::new(count, of(bytes_max), page_size).map_err(|e| {
            let bytes = u64::from(count) * page_size as u64;
            PoolError::device(format!("reserving {} for the pool", format_size(bytes)), e)
        })?;
        let table = PageTable::new(config.pages_max);
        table.reach(store.pages()).map_err(no_table)?;
        let free = FreeFrames::new(count, frames.in_huge_page(), config.manual);
        Ok(Pool {
            page_size,
            frames,
            table,
            dirty: DirtyList::new(config.log_usual_bytes, config.log_span_bytes, count),
            pending: PendingRedo::default(),
            evictor: Mutex::new(Evictor::new(count)),
            free,
            store,
            log,
            in_flight: InFlight::default(),
            recent: Recent::new(count),
            asked: Asked::default(),
            ahead: AheadPages::default(),
            ahead_threads: AheadThreads::default(),
            stats: PoolStats::default(),
            skip_log_gate: config.skip_log_gate,
            page_use: config.page_use,
            scrub_stats: ScrubStats::default(),
            damages: Damages::default(),
            health: Arc::default(),
            oldest_kept: AtomicU64::new(0),
            resizing: Mutex::new(()),
        })
    }

    /// Bytes a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The log that pages depend on.
    #[must_use]
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Where pages lie.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn PageStore> {
        &self.store
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> &PoolStats {
        &self.stats
    }

    /// How full the pool is.
    #[must_use]
    pub fn residence(&self) -> Residence {
        Residence {
            frames: u64::from(self.frames.count()),
            free: u64::from(self.free.count()),
            dirty: self.dirty.len(),
        }
    }

    /// Whether the pages are only looked at ([`PageUse::LookedAt`]).
    #[inline]
    #[must_use]
    pub fn is_looked_at(&self) -> bool {
        self.page_use != PageUse::Changed
    }

    /// Counts that a reader passed over rows that cannot be read, for the pool and for its thread.
    pub fn count_passed_over(&self) {
        self.stats.passed_over.add(1);
        ThreadCounts::passed_over();
    }

    /// Makes room for pages before `pages` in memory's table: before the data file gets them.
    ///
    /// # Errors
    /// [`PoolError::Device`] when there is no address space for it: nothing has changed then.
    pub fn reach(&self, pages: u32) -> Result<(), PoolError> {
        self.table.reach(pages).map_err(no_table)
    }

    #[inline]
    pub(crate) fn latch(&self, page: PageNo) -> Option<&Latch> {
        self.table.get(page.0)
    }

    #[inline]
    pub(crate) fn raw(&self, frame: u32) -> RawPage {
        self.frames.raw(frame)
    }

    // ---- the dirty list ----

    /// The oldest first-modification LSN of any page that is not durable, or the published end of
    /// the log: where a checkpoint may stand.
    #[must_use]
    pub fn oldest(&self) -> Lsn {
        // In this order: the log's published point before the list (POOL-2), the list before the
        // pages in flight (a page is registered there before it leaves the list).
        let published = self.log.published();
        let listed = self.dirty.oldest(published);
        let oldest = self.in_flight.oldest().map_or(listed, |lsn| lsn.min(listed));
        // Bucket bounds make it a bound, not a value: never let it run backwards.
        let kept = self.oldest_kept.fetch_max(oldest.0, Ordering::Relaxed);
        Lsn(oldest.0.max(kept))
    }

    /// The oldest first-modification LSN among pages being written.
    #[must_use]
    pub fn oldest_in_flight(&self) -> Option<Lsn> {
        self.in_flight.oldest()
    }

    /// Pages being written.
    #[must_use]
    pub fn pages_in_flight(&self) -> u64 {
        self.in_flight.pages()
    }

    /// The age distribution of dirty pages.
    #[must_use]
    pub fn age_counts(&self) -> AgeCounts {
        self.dirty.counts(self.log.published())
    }

    /// Visits the newest change of each dirty page, without latches: for statistics.
    pub fn visit_dirty(&self, visit: &mut dyn FnMut(Lsn)) {
        for frame in 0..self.free.used_end() {
            let meta = self.frames.meta(frame);
            if meta.first_lsn().is_none() {
                continue;
            }
            let Some(word) = self.latch(meta.page()).map(Latch::load) else { continue };
            if word.frame() == Some(frame) && !word.is_exclusive() {
                visit(weir_page::Node::new(self.raw(frame)).lsn());
            }
        }
    }

    /// Takes up to `most` dirty pages, oldest first, first modified before `before`, for
    /// [`Pool::write_back`].
    #[must_use]
    pub fn take_oldest(&self, most: usize, before: Lsn) -> Vec<(PageNo, Lsn)> {
        self.dirty.take_oldest(most, before, |page, first| self.may_be_dirty_since(page, first))
    }

    /// Whether a page may be dirty since `first`, without a latch. A page that is, and that the
    /// dirty list knows, is never denied: its frame said so before it was listed, and it stays
    /// there until it is written.
    pub(crate) fn may_be_dirty_since(&self, page: PageNo, first: Lsn) -> bool {
        let Some(word) = self.latch(page).map(Latch::load) else { return true };
        match word.frame() {
            _ if word.is_exclusive() => true,
            Some(frame) => self.frames.meta(frame).first_lsn() == Some(first),
            // It may have pending redo, and be listed for that.
            None => self.pending.left() > 0,
        }
    }

    /// Says that nothing before `lsn` is dirty: once, before the first change.
    pub fn begin_at(&self, lsn: Lsn) {
        self.dirty.begin_at(lsn);
        self.oldest_kept.store(lsn.0, Ordering::Relaxed);
    }

    /// The most bytes of log between the oldest dirty page and the end that the list is for: half
    /// of what it can hold.
    #[must_use]
    pub fn age_span_bytes(&self) -> u64 {
        self.dirty.ring_bytes() / 2
    }

    // ---- damage ----

    /// The error that says what is wrong with a page, and where it lies.
    #[must_use]
    pub fn damaged(&self, page: PageNo, found: Damage) -> PoolError {
        let (file, offset) = self.store.place(page);
        PoolError::Damaged { page, file, offset, found }
    }

    // ---- halting ----

    /// After this, everything that would need the device or a change fails.
    pub fn halt(&self, why: &str) {
        self.health.halt(why);
        self.free.wake_all();
    }

    /// What says whether the engine has halted, the pool and those above it, and tells a listener.
    #[must_use]
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Why the pool halted, if it did.
    #[must_use]
    pub fn halted(&self) -> Option<String> {
        self.health.why_halted().map(str::to_owned)
    }

    /// # Errors
    /// [`PoolError::Halted`] when the pool has halted.
    pub fn check_halted(&self) -> Result<(), PoolError> {
        match self.halted() {
            None => Ok(()),
            Some(why) => Err(PoolError::Halted(why)),
        }
    }
}

fn no_table(e: std::io::Error) -> PoolError {
    PoolError::device("reserving the table of pages", e)
}
