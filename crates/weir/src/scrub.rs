//! The scrub: pages that are in use are verified as they lie on disk, one after the other, whether
//! or not a thread needs them: checksum, number, the database's mark, and that the page is neither
//! older than it was written nor ahead of the log. What is damaged is put right where something has
//! what it held (`weir_pool`), and reported otherwise. That each page has one owner, and the order
//! of keys, is for [`crate::Db::check`].
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::lock::Mutex;
use weir_base::{Clock, Lsn, PageNo, rank};
use weir_checkpoint::Checkpointer;
use weir_pool::{ERA_PAGES, OnDisk, PageFinding, Pool, PoolError, RebuildPage};
use weir_redo::Log;
use weir_space::Space;
use weir_txn::PlantedBug;

use crate::scrub_pace::{ScrubLoad, pages_per_second};

/// Pages that are looked at in one step: 128 KiB of them are one read.
const STEP_PAGES: u32 = 16;
/// As many where a simulation makes each step.
const STEP_PAGES_MANUAL: u32 = 2;
/// After opening a database there is much else to do.
const BEGIN_MICROS: u64 = 60_000_000;
/// A page that is damaged is looked at again after so long before it is reported.
const AGAIN_MICROS: u64 = 200_000;
/// The database is idle when no thread has read or changed anything for so long.
const IDLE_MICROS: u64 = 1_000_000;
/// The next step comes after so long at most, and at least.
const PAUSE_MICROS: std::ops::RangeInclusive<u64> = 1_000..=5_000_000;

/// How the scrub stands.
#[derive(Clone, Debug, Default)]
pub struct ScrubLook {
    /// Pages per second that are verified now; 0: it rests, or has not begun.
    pub pages_per_second: f64,
    /// Pages gone through of the pass that is under way, in use or not.
    pub pass_pages: u64,
    /// Pages that there are to go through.
    pub pass_of: u64,
    /// Pages that the last pass verified; `None`: none was completed since opening.
    pub last_pass_pages: Option<u64>,
    /// How long it took, in seconds.
    pub last_pass_seconds: f64,
    /// How long ago it ended, in seconds.
    pub last_pass_ago_seconds: f64,
    /// Pages that were found damaged since opening, also by threads that needed them: the last few,
    /// newest first.
    pub findings: Vec<PageFinding>,
}

/// What a whole pass came to.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// Pages verified.
    pub pages: u64,
    /// Pages found damaged, newest first, repaired or not: the last few.
    pub findings: Vec<PageFinding>,
    /// Damaged pages that were repaired.
    pub repaired: u64,
    /// Damaged pages that could not be.
    pub lost: u64,
}

#[derive(Default)]
struct State {
    /// The first page of the pass that is under way, and how many there were then.
    pass: Option<Pass>,
    /// When the last whole pass began.
    last_began_micros: Option<u64>,
    /// Pages that were damaged under their latch, and when they are looked at once more.
    suspects: BTreeMap<PageNo, u64>,
    /// What had been read and logged at the last look, and since when it is that.
    others: (u64, Lsn),
    quiet_since_micros: u64,
}

/// What is shown: a thread that looks at it must not wait for a disk.
#[derive(Default)]
struct Shown {
    rate_bits: AtomicU64,
    pass_done: AtomicU64,
    passes: AtomicU64,
    last_pages: AtomicU64,
    last_took_micros: AtomicU64,
    last_ended_micros: AtomicU64,
}

#[derive(Clone, Copy)]
struct Pass {
    from: u32,
    end: u32,
    done: u32,
    verified: u64,
    began_micros: u64,
}

/// Verifies pages on disk.
pub(crate) struct Scrub {
    pool: Arc<Pool>,
    space: Arc<Space>,
    checkpointer: Arc<Checkpointer>,
    clock: Arc<dyn Clock>,
    opened_micros: u64,
    /// Where a pass begins: another place after each opening, so that a database that is open for
    /// minutes at a time is gone through as well.
    salt: u64,
    planted: PlantedBug,
    state: Mutex<rank::ScrubPass, State>,
    shown: Shown,
}

impl Scrub {
    pub(crate) fn new(
        (pool, space): (Arc<Pool>, Arc<Space>),
        checkpointer: Arc<Checkpointer>,
        clock: Arc<dyn Clock>,
        openings: u64,
        planted: PlantedBug,
    ) -> Scrub {
        let opened_micros = clock.now_micros();
        pool.rebuild_by(Box::new(FromLog { log: pool.log().clone() }));
        let salt = openings.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (state, shown) = (Mutex::default(), Shown::default());
        Scrub { pool, space, checkpointer, clock, opened_micros, salt, planted, state, shown }
    }

    /// A step of the background's pace. Returns after how long the next one is due.
    ///
    /// # Errors
    /// Device and log failures; the pool has halted then.
    pub(crate) fn step(&self) -> Result<u64, PoolError> {
        let now = self.clock.now_micros();
        let mut state = self.state.lock();
        self.settle(&mut state, now)?;
        // What is pending comes first: until then pages on disk are not what they are to be.
        if now < self.opened_micros + BEGIN_MICROS || self.pool.pending_pages() > 0 {
            return Ok(BEGIN_MICROS / 600);
        }
        let rate = pages_per_second(self.look(&mut state, now));
        self.shown.rate_bits.store(rate.to_bits(), Relaxed);
        if rate <= 0.0 {
            return Ok(*PAUSE_MICROS.end());
        }
        let gone = self.go_on(&mut state, STEP_PAGES)?;
        let pause = (f64::from(gone) / rate * 1e6) as u64;
        Ok(pause.clamp(*PAUSE_MICROS.start(), *PAUSE_MICROS.end()))
    }

    /// A step of a simulation: without a pace, pass after pass.
    ///
    /// # Errors
    /// As [`Scrub::step`].
    pub(crate) fn step_manual(&self) -> Result<(), PoolError> {
        let now = self.clock.now_micros();
        let mut state = self.state.lock();
        self.settle(&mut state, now)?;
        if self.pool.pending_pages() == 0 {
            self.go_on(&mut state, STEP_PAGES_MANUAL)?;
        }
        Ok(())
    }

    /// Writes what was mended in memory, and is still damaged on disk: before the database is
    /// closed, with which it is forgotten what had been written.
    ///
    /// # Errors
    /// As [`Scrub::step`].
    pub(crate) fn write_mended(&self) -> Result<(), PoolError> {
        self.pool.unwritten().into_iter().try_for_each(|page| self.pool.write_mended(page))
    }

    fn look(&self, state: &mut State, now: u64) -> ScrubLoad {
        let others = (self.pool.stats().frames_taken.get(), self.pool.log().end());
        if others != state.others {
            (state.others, state.quiet_since_micros) = (others, now);
        }
        let last = state.last_began_micros.filter(|_| state.pass.is_none());
        ScrubLoad {
            capacity_pages_per_second: self.checkpointer.verdict().capacity_pages_per_second,
            is_idle: now.saturating_sub(state.quiet_since_micros) >= IDLE_MICROS,
            seconds_since_pass: last.map(|began| seconds(now, began)),
        }
    }

    /// Looks at pages of which something is to be settled.
    fn settle(&self, state: &mut State, now: u64) -> Result<(), PoolError> {
        self.write_mended()?;
        let due = state.suspects.iter().filter(|&(_, &at)| at <= now).map(|(&page, _)| page);
        for page in due.collect::<Vec<_>>() {
            state.suspects.remove(&page);
            if self.is_damaged(page)? {
                self.pool.mend_or_report(page)?;
            }
        }
        Ok(())
    }

    /// Whether a page that is in use is damaged on disk, as its latch shows. One that is in memory
    /// is written again.
    fn is_damaged(&self, page: PageNo) -> Result<bool, PoolError> {
        // In this order: a page is what its map says before the map says so, and a page that is
        // freed meanwhile may give up its place.
        let is_noted = || self.space.is_noted(page).unwrap_or(true) && self.space.is_used(page);
        if !is_noted() {
            return Ok(false);
        }
        let seen = self.pool.look_again(page)?;
        Ok(matches!(seen, OnDisk::Damaged(_)) && is_noted())
    }

    /// The next pages of the pass, or of the next one. Returns how many were gone through.
    fn go_on(&self, state: &mut State, most: u32) -> Result<u32, PoolError> {
        let now = self.clock.now_micros();
        let mut pass = state.pass.take().unwrap_or_else(|| self.begin(now));
        let most = most.min(pass.end - pass.done);
        let at = (pass.from + pass.done) % pass.end.max(1);
        // Neighbours, up to the end of the file.
        let most = most.min(pass.end - at);
        let (verified, bad) = self.verify((at..at + most).map(PageNo).collect());
        pass.verified += verified;
        pass.done += most;
        for page in bad {
            if self.planted == PlantedBug::ScrubAsksNoPool {
                self.pool.mend_or_report(page)?;
            } else if self.is_damaged(page)? {
                state.suspects.insert(page, now + AGAIN_MICROS);
            }
        }
        self.shown.pass_done.store(u64::from(pass.done), Relaxed);
        if pass.done < pass.end {
            state.pass = Some(pass);
        } else {
            self.end_pass(state, pass.began_micros, pass.verified);
        }
        Ok(most)
    }

    fn end_pass(&self, state: &mut State, began_micros: u64, pages: u64) {
        let ended_micros = self.clock.now_micros();
        state.last_began_micros = Some(began_micros);
        self.pool.scrub_stats().passes.add(1);
        self.shown.last_pages.store(pages, Relaxed);
        self.shown.last_took_micros.store(ended_micros.saturating_sub(began_micros), Relaxed);
        self.shown.last_ended_micros.store(ended_micros, Relaxed);
        self.shown.passes.fetch_add(1, Relaxed);
    }

    fn begin(&self, began_micros: u64) -> Pass {
        let end = self.space.end().min(self.pool.store().pages());
        let from = (self.salt % u64::from(end.max(1))) as u32;
        Pass { from, end, done: 0, verified: 0, began_micros }
    }

    /// Those that are in use are verified: how many, and which of them need another look.
    fn verify(&self, mut pages: Vec<PageNo>) -> (u64, Vec<PageNo>) {
        pages.retain(|page| !ERA_PAGES.contains(page));
        self.space.retain_used(&mut pages);
        if self.planted != PlantedBug::ScrubAsksNoPool {
            self.pool.retain_settled(&mut pages);
        }
        (pages.len() as u64, self.pool.verify(&pages))
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// All pages at once, and what came of it; `None` when `progress` said `false`.
    pub(crate) fn report(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<ScrubReport>, PoolError> {
        let stats = self.pool.scrub_stats();
        let mended =
            || stats.mended_memory.get() + stats.mended_copy.get() + stats.mended_log.get();
        let (repaired_before, damaged_before) = (mended(), stats.damaged.get());
        let Some(pages) = self.pass(progress)? else { return Ok(None) };
        let repaired = mended() - repaired_before;
        let lost = (stats.damaged.get() - damaged_before).saturating_sub(repaired);
        Ok(Some(ScrubReport { pages, findings: self.pool.findings(), repaired, lost }))
    }

    /// All pages at once, as fast as the disk gives them.
    fn pass(&self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<Option<u64>, PoolError> {
        let began = self.clock.now_micros();
        let end = self.space.end().min(self.pool.store().pages());
        let (mut pages, mut suspects) = (0, Vec::new());
        for at in (0..end).step_by(STEP_PAGES as usize) {
            if !progress(u64::from(at), u64::from(end)) {
                return Ok(None);
            }
            let (verified, bad) = self.verify((at..end.min(at + STEP_PAGES)).map(PageNo).collect());
            pages += verified;
            for page in bad {
                if self.is_damaged(page)? {
                    suspects.push(page);
                }
            }
        }
        if !suspects.is_empty() {
            self.clock.sleep_micros(AGAIN_MICROS);
        }
        for page in suspects {
            if self.is_damaged(page)? {
                self.pool.mend_or_report(page)?;
            }
        }
        progress(u64::from(end), u64::from(end));
        self.end_pass(&mut self.state.lock(), began, pages);
        Ok(Some(pages))
    }

    pub(crate) fn stand(&self) -> ScrubLook {
        let shown = &self.shown;
        let has_passed = shown.passes.load(Relaxed) > 0;
        let ended = shown.last_ended_micros.load(Relaxed);
        let ago = seconds(self.clock.now_micros(), ended);
        ScrubLook {
            pages_per_second: f64::from_bits(shown.rate_bits.load(Relaxed)),
            pass_pages: shown.pass_done.load(Relaxed),
            pass_of: u64::from(self.space.end()),
            last_pass_pages: has_passed.then(|| shown.last_pages.load(Relaxed)),
            last_pass_seconds: seconds(shown.last_took_micros.load(Relaxed), 0),
            last_pass_ago_seconds: if has_passed { ago } else { 0.0 },
            findings: self.pool.findings(),
        }
    }
}

fn seconds(now: u64, since: u64) -> f64 {
    now.saturating_sub(since) as f64 / 1e6
}

/// Pages that the log makes from nothing.
struct FromLog {
    log: Arc<Log>,
}

impl RebuildPage for FromLog {
    fn rebuild(&self, page: PageNo, bytes: &mut [u8]) -> bool {
        let (from, to) = (self.log.checkpoint(), self.log.durable());
        // That its files are used again meanwhile is an error like others.
        let reader = self.log.reader(None);
        weir_recovery::rebuild(&reader, from, to, page, bytes).unwrap_or(false)
    }
}
