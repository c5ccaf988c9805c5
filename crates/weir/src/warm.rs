//! A restarted database is as fast as it was: the pages that were in memory are listed in a file,
//! when the database is closed and now and then before (a killed process closes nothing), and read
//! in again after the next opening, before any thread asks for them.
//!
//! It is a hint and no more. A file that is torn, foreign or of another version is not looked at, a
//! page that cannot be read is left to a thread that needs it, and no failure here matters.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{ALIGN, AlignedBuf, Clock, DbId, Lsn, PageNo};
use weir_device::Volume;
use weir_pool::{Pool, WarmList, WarmPlan};
use weir_space::Space;

use crate::sealed::{HEAD_BYTES, Sealed, hint_file};

/// The file that lists the pages.
pub(crate) const FILE: &str = "warm";
const SEALED: Sealed =
    Sealed { magic: u64::from_le_bytes(*b"WEIRWRM1"), bytes_max: LIST_BYTES_MAX };
/// A longer list is cut: closing must not take long.
const LIST_BYTES_MAX: usize = (8 << 20) - HEAD_BYTES;
/// Written in pieces of this size, so that others get their turn in between.
const PIECE_BYTES: usize = 256 << 10;

/// The list is written for the first time after so long, and then as often at most.
const KEEP_FIRST_MICROS: u64 = 60_000_000;
const KEEP_MICROS: u64 = 300_000_000;
/// Only when so large a part of what is in memory has come since.
const KEEP_SHARE: u64 = 8;

/// Pages read in one batch, at least and at most.
const BATCH_PAGES_MIN: usize = 16;
const BATCH_PAGES_MAX: usize = 256;
/// What a batch may take while others use the disk, where a commit may have to wait for it. And
/// while no thread does.
const BATCH_MICROS_BUSY: u64 = 2_000;
const BATCH_MICROS_IDLE: u64 = 32_000;
/// While others use the disk, what follows a batch is theirs alone: as long as the batch where a
/// page of it took so long, longer where it took longer, in the same proportion. A page that comes
/// unasked spares others a read of their own, which takes about 100 us on the disks that are quick:
/// where it costs a small part of that, they gain by waiting for it; where it costs as much as
/// theirs, they lose.
const PAUSE_PAGE_MICROS: u64 = 50;
/// The longest pause, in batches: two thirds of the time are others' then.
const PAUSE_BATCHES_MAX: u64 = 2;
/// The shortest is this part of a batch: reads and commits that wait for the disk get on it.
const PAUSE_BATCH_SHARE: u64 = 8;
/// The longest pause: closing waits for it.
const PAUSE_MICROS_MAX: u64 = 100_000;
/// While pages have pending redo, which comes first.
const PAUSE_MICROS_PENDING: u64 = 20_000;

/// What is to follow a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another one, after a pause.
    Again { pause_micros: u64 },
    /// Nothing: all is read that there was room for.
    Done,
}

/// What a page of a batch takes, from what it was thought to take and what one of `pages` took.
/// Less is believed at once, more little by little: what a busy machine adds is not the disk's.
fn page_micros(before: Option<u64>, pages: usize, took_micros: u64) -> u64 {
    let now = (took_micros / pages.max(1) as u64).max(1);
    before.map_or(now, |before| now.min(before + before / 8 + 1))
}

/// How many pages the next batch has, where a page takes so long, and the pause before it, when the
/// last one took `took_micros`.
fn pace(page_micros: u64, took_micros: u64, is_busy: bool) -> (usize, u64) {
    let (may_take, pause) = if is_busy {
        let pause = (took_micros.saturating_mul(page_micros) / PAUSE_PAGE_MICROS)
            .clamp(took_micros / PAUSE_BATCH_SHARE, took_micros * PAUSE_BATCHES_MAX);
        (BATCH_MICROS_BUSY, pause.min(PAUSE_MICROS_MAX))
    } else {
        (BATCH_MICROS_IDLE, 0)
    };
    let pages = usize::try_from(may_take / page_micros.max(1)).unwrap_or(usize::MAX);
    (pages.clamp(BATCH_PAGES_MIN, BATCH_PAGES_MAX), pause)
}

/// How far reading has come.
enum Reading {
    /// The list has not been looked at.
    NotBegun,
    /// What is to be read still.
    At(WarmPlan),
    Done,
}

struct State {
    reading: Reading,
    /// Listed, and not read: there was no room. Kept for an opening with more memory, as long as
    /// nothing better is known.
    rest: Vec<PageNo>,
    batch: usize,
    /// What a page of a batch takes; none was read yet.
    page_micros: Option<u64>,
    /// What others had read and logged at the last look.
    others: (u64, Lsn),
    /// Frames taken when the list was written last.
    kept_at: u64,
}

/// Reads in what was in memory before, and writes down what is in memory now.
pub(crate) struct Warm {
    volume: Arc<dyn Volume>,
    db: DbId,
    pool: Arc<Pool>,
    space: Arc<Space>,
    clock: Arc<dyn Clock>,
    /// Apart: a thread that looks at it must not wait for a read.
    keep_next_micros: AtomicU64,
    /// Held over the reading of a batch.
    state: Mutex<rank::WarmList, State>,
}

impl Warm {
    pub(crate) fn new(
        volume: Arc<dyn Volume>,
        db: DbId,
        pool: Arc<Pool>,
        space: Arc<Space>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let state = State {
            reading: Reading::NotBegun,
            rest: Vec::new(),
            batch: BATCH_PAGES_MIN,
            page_micros: None,
            others: (0, Lsn::ZERO),
            kept_at: 0,
        };
        let keep_next_micros = AtomicU64::new(clock.now_micros() + KEEP_FIRST_MICROS);
        Warm { volume, db, pool, space, clock, keep_next_micros, state: Mutex::new(state) }
    }

    /// Reads in some of the pages that were in memory before.
    pub(crate) fn step(&self) -> Step {
        // What the log has for pages comes first, and is held in memory until then.
        if self.pool.pending_pages() > 0 {
            return Step::Again { pause_micros: PAUSE_MICROS_PENDING };
        }
        let mut state = self.state.lock();
        self.begin(&mut state);
        let room = self.pool.spare_frames().min(state.batch as u64) as usize;
        let Reading::At(plan) = &mut state.reading else { return Step::Done };
        let is_halted = self.pool.halted().is_some();
        let mut pages = plan.take(&self.pool.take_asked(), if is_halted { 0 } else { room });
        if pages.is_empty() {
            let left: Vec<PageNo> = plan.left().collect();
            state.rest.extend(left);
            state.reading = Reading::Done;
            return Step::Done;
        }
        let began = self.clock.now_micros();
        // A page that was given back may never have been written.
        self.space.retain_used(&mut pages);
        let come = self.pool.warm(&pages);
        let took = self.clock.now_micros().saturating_sub(began);
        if come > 0 {
            state.page_micros = Some(page_micros(state.page_micros, come as usize, took));
        }
        let others = self.others();
        let is_busy = others != std::mem::replace(&mut state.others, others);
        let (batch, pause_micros) =
            pace(state.page_micros.unwrap_or(PAUSE_PAGE_MICROS), took, is_busy);
        state.batch = batch;
        Step::Again { pause_micros }
    }

    /// Reads the list, once.
    fn begin(&self, state: &mut State) {
        if !matches!(state.reading, Reading::NotBegun) {
            return;
        }
        state.others = self.others();
        let list = self.read().unwrap_or_default();
        let spare = usize::try_from(self.pool.spare_frames()).unwrap_or(usize::MAX);
        let (hot, rest) = list.hottest(spare);
        state.reading = Reading::At(WarmPlan::new(&hot));
        state.rest = rest;
    }

    /// Pages that others have read, and where they have the log.
    fn others(&self) -> (u64, Lsn) {
        let stats = self.pool.stats();
        (stats.reads.get().saturating_sub(stats.warmed.get()), self.pool.log().end())
    }

    fn read(&self) -> Option<WarmList> {
        let file = self.volume.open(FILE).ok()?;
        let mut head = AlignedBuf::zeroed(ALIGN);
        file.read_at(0, &mut head).ok()?;
        let list_bytes = SEALED.hint_bytes(&head, self.db)?;
        let mut bytes = AlignedBuf::zeroed(Sealed::file_bytes(list_bytes));
        file.read_at(0, &mut bytes).ok()?;
        WarmList::decode(SEALED.unseal(&bytes, self.db)?, self.pool.store().pages())
    }

    /// Writes the list if it is time, in pieces with pauses between.
    pub(crate) fn keep_if_due(&self) {
        let now = self.clock.now_micros();
        if now < self.keep_next_micros.load(Ordering::Relaxed) {
            return;
        }
        self.keep_next_micros.store(now + KEEP_MICROS, Ordering::Relaxed);
        let taken = self.pool.stats().frames_taken.get();
        {
            let mut state = self.state.lock();
            if matches!(state.reading, Reading::Done) {
                // What is in memory by now says more than what was.
                state.rest.clear();
            }
            let residence = self.pool.residence();
            let resident = residence.frames - residence.free.min(residence.frames);
            if (taken - state.kept_at) * KEEP_SHARE < resident.max(1) {
                return;
            }
            state.kept_at = taken;
        }
        self.keep(&mut |micros| self.clock.sleep_micros(micros));
    }

    /// Writes the list, at once.
    pub(crate) fn keep_now(&self) {
        self.keep(&mut |_| {});
    }

    /// Writes down which pages are in memory, and which were to be read in still. A failure does
    /// not matter.
    fn keep(&self, pause: &mut dyn FnMut(u64)) {
        let mut list = self.pool.warm_list();
        {
            let mut state = self.state.lock();
            // A process that closes the database at once has not looked at the list of those
            // before.
            self.begin(&mut state);
            let plan = match &state.reading {
                Reading::At(plan) => Some(plan),
                Reading::NotBegun | Reading::Done => None,
            };
            let left = plan.into_iter().flat_map(WarmPlan::left).chain(state.rest.iter().copied());
            list.add_coldest(left.filter(|page| !self.pool.is_resident(*page)));
        }
        let bytes = SEALED.seal(&list.encode(LIST_BYTES_MAX), self.db);
        let Ok(file) = hint_file(&*self.volume, FILE, bytes.len() as u64) else { return };
        for (offset, piece) in (0..).step_by(PIECE_BYTES).zip(bytes.chunks(PIECE_BYTES)) {
            let began = self.clock.now_micros();
            if file.write_at(offset, piece).is_err() {
                return;
            }
            pause(self.clock.now_micros().saturating_sub(began).min(PAUSE_MICROS_MAX));
        }
        let _ = file.sync();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_short_while_others_use_the_disk() {
        // (micros a page, micros of the batch, busy, next pages, pause)
        let rows = [
            (6, 100, false, 256, 0),
            (500, 32_000, false, 64, 0),
            (31_250, 500_000, false, 16, 0),
            // Cheap pages: others wait for most of the time.
            (6, 96, true, 256, 12),
            (8, 2_048, true, 250, 327),
            // By the pages' cost, not by what a busy machine made of the batch.
            (8, 9_000, true, 250, 1_440),
            (25, 2_000, true, 80, 1_000),
            // 50 us: as long as the batch. 100 us and more: twice as long.
            (50, 1_600, true, 40, 1_600),
            (100, 3_200, true, 20, 6_400),
            (563, 9_000, true, 16, 18_000),
            (312_500, 5_000_000, true, 16, PAUSE_MICROS_MAX),
            (0, 0, true, 256, 0),
        ];
        for (page, took, is_busy, next, pause) in rows {
            assert_eq!(pace(page, took, is_busy), (next, pause), "{page} {took} {is_busy}");
        }
    }

    #[test]
    fn a_busy_machine_is_not_taken_for_a_slow_disk() {
        assert_eq!(page_micros(None, 16, 1_600), 100);
        assert_eq!(page_micros(Some(100), 16, 160), 10, "cheaper: at once");
        assert_eq!(page_micros(Some(10), 16, 16_000), 12, "dearer: little by little");
        assert_eq!((page_micros(Some(10), 0, 0), page_micros(None, 16, 0)), (1, 1));
        let grown = (0..40).fold(10, |before, _| page_micros(Some(before), 16, 16_000));
        assert_eq!(grown, 1_000, "but it comes to be known");
    }

    /// A disk that does one thing at a time, at its worst: while it reads a batch, threads
    /// that need it wait.
    struct Disk {
        /// What it takes to read a page that a thread asks for,
        read_micros: f64,
        /// and a page of a batch.
        batched_micros: f64,
    }

    /// Threads that together go through transactions of so many pages, drawn evenly, after a
    /// restart.
    const TXN_PAGES: f64 = 20.0;
    const TXN_MICROS: f64 = 100.0;
    const PAGES: f64 = 250_000.0;

    /// Transactions in each second after a restart.
    fn seconds(disk: &Disk, count: usize, is_warmed: bool) -> Vec<f64> {
        let mut done = vec![0.0; count];
        let (mut here, mut now, mut batch) = (0.0, 0.0, BATCH_PAGES_MIN);
        while now < count as f64 * 1e6 {
            let took = batch as f64 * disk.batched_micros;
            let (next, pause) = pace(disk.batched_micros as u64, took as u64, true);
            let theirs = if is_warmed && here < PAGES {
                // What others have read before is passed over, at no cost.
                here = (here + batch as f64).min(PAGES);
                now += took;
                pause as f64
            } else {
                1_000.0
            };
            let missed = TXN_PAGES * (1.0 - here / PAGES);
            let txns = theirs / (TXN_MICROS + missed * disk.read_micros);
            here = (here + txns * missed).min(PAGES);
            now += theirs;
            if let Some(second) = done.get_mut((now / 1e6) as usize) {
                *second += txns;
            }
            batch = next;
        }
        done
    }

    /// Sessions after a restart do not lose by what is read unasked: on a disk where it is cheap
    /// all is in memory within seconds, and where it costs as much as it spares, most of the disk
    /// is theirs.
    #[test]
    fn sessions_do_not_lose_by_it() {
        let full = 1e6 / TXN_MICROS;
        // (disk, by the end of which second what is done is as much as without, in which the rate
        // is nine tenths of the full one, the least share of what is done without in any second)
        let rows = [
            (Disk { read_micros: 100.0, batched_micros: 8.0 }, 3, 4, 0.15),
            (Disk { read_micros: 100.0, batched_micros: 20.0 }, 7, 8, 0.25),
            (Disk { read_micros: 500.0, batched_micros: 244.0 }, 100, 98, 0.6),
        ];
        for (disk, as_much_by, at_rate_in, least) in rows {
            let (with, without) = (seconds(&disk, 120, true), seconds(&disk, 120, false));
            let sum = |done: &[f64], to: usize| done[..to].iter().sum::<f64>();
            let what = format!("{} us a page", disk.batched_micros);
            assert!(sum(&with, as_much_by) >= sum(&without, as_much_by), "{what}: behind");
            let rate = with[at_rate_in - 1];
            assert!(rate >= 0.9 * full, "{what}: {rate}");
            for (second, (with, without)) in with.iter().zip(&without).enumerate() {
                assert!(*with >= least * without, "{what}: second {second}, {with} {without}");
            }
        }
    }
}
