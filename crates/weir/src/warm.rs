//! A restarted database is as fast as it was: the pages that were in memory are listed in a file,
//! when the database is closed and now and then before (who is killed closes nothing), and read in
//! again after the next opening, before anybody asks for them.
//!
//! It is a hint and no more. A file that is torn, foreign or of another version is not looked at, a
//! page that cannot be read is left to who needs it, and no failure here is anybody's concern.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_base::{ALIGN, AlignedBuf, Clock, DbId, Lsn, PageNo};
use weir_device::Volume;
use weir_pool::{Pool, WarmList};
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
const BATCH_PAGES_MAX: usize = 64;
/// What a batch may take while others use the disk, where a commit may have to wait for it. And
/// while nobody does.
const BATCH_MICROS_BUSY: u64 = 2_000;
const BATCH_MICROS_IDLE: u64 = 32_000;
/// While others use the disk, two thirds of the time are theirs alone.
const PAUSE_BATCHES: u64 = 2;
/// The longest pause: closing waits for it.
const PAUSE_MICROS_MAX: u64 = 100_000;
/// While pages are owed redo, which comes first.
const PAUSE_MICROS_OWED: u64 = 20_000;

/// What is to follow a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another one, after a pause.
    Again { pause_micros: u64 },
    /// Nothing: all is read that there was room for.
    Over,
}

/// How many pages the next batch has, and the pause before it, from how long one of `pages` took.
fn pace(pages: usize, took_micros: u64, is_busy: bool) -> (usize, u64) {
    let (may_take, pause) = if is_busy {
        (BATCH_MICROS_BUSY, (took_micros * PAUSE_BATCHES).min(PAUSE_MICROS_MAX))
    } else {
        (BATCH_MICROS_IDLE, 0)
    };
    let next = match took_micros {
        took if took > may_take => pages / 2,
        took if took <= may_take / 2 => pages * 2,
        _ => pages,
    };
    (next.clamp(BATCH_PAGES_MIN, BATCH_PAGES_MAX), pause)
}

/// How far reading has come.
enum Reading {
    /// The list has not been looked at.
    NotBegun,
    /// To be read, ascending, and the place of the next.
    At(Vec<PageNo>, usize),
    Over,
}

struct State {
    reading: Reading,
    /// Listed, and not read: there was no room. Kept for who opens the database with more memory,
    /// as long as nothing better is known.
    rest: Vec<PageNo>,
    batch: usize,
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
    /// Apart: who looks at it must not wait for a read.
    keep_next_micros: AtomicU64,
    /// Held over the reading of a batch.
    state: Mutex<State>,
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
            others: (0, Lsn::ZERO),
            kept_at: 0,
        };
        let keep_next_micros = AtomicU64::new(clock.now_micros() + KEEP_FIRST_MICROS);
        Warm { volume, db, pool, space, clock, keep_next_micros, state: Mutex::new(state) }
    }

    /// Reads in some of the pages that were in memory before.
    pub(crate) fn step(&self) -> Step {
        // What the log has for pages comes first, and is held in memory until then.
        if self.pool.owed_pages() > 0 {
            return Step::Again { pause_micros: PAUSE_MICROS_OWED };
        }
        let mut state = self.state.lock();
        self.begin(&mut state);
        let room = self.pool.spare_frames().min(state.batch as u64) as usize;
        let Reading::At(todo, next) = &mut state.reading else { return Step::Over };
        let mut pages: Vec<PageNo> = todo[*next..].iter().copied().take(room).collect();
        if pages.is_empty() || self.pool.halted().is_some() {
            let left = todo.split_off(*next);
            state.rest.extend(left);
            state.reading = Reading::Over;
            return Step::Over;
        }
        *next += pages.len();
        let began = self.clock.now_micros();
        // A page that was given back may never have been written.
        self.space.retain_used(&mut pages);
        self.pool.warm(&pages);
        let took = self.clock.now_micros().saturating_sub(began);
        let others = self.others();
        let is_busy = others != std::mem::replace(&mut state.others, others);
        let (batch, pause_micros) = pace(state.batch, took, is_busy);
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
        let (todo, rest) = list.hottest(spare);
        state.reading = Reading::At(todo, 0);
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
            if matches!(state.reading, Reading::Over) {
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

    /// Writes down which pages are in memory, and which were to be read in still. A failure is
    /// nobody's concern.
    fn keep(&self, pause: &mut dyn FnMut(u64)) {
        let mut list = self.pool.warm_list();
        {
            let mut state = self.state.lock();
            // Who closes the database at once has not looked at the list of those before.
            self.begin(&mut state);
            let todo = match &state.reading {
                Reading::At(todo, next) => &todo[*next..],
                Reading::NotBegun | Reading::Over => &[],
            };
            let left = todo.iter().chain(&state.rest).copied();
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
        // (pages, micros, busy, next pages, pause)
        let rows = [
            (16, 100, false, 32, 0),
            (64, 16_000, false, 64, 0),
            (64, 16_001, false, 64, 0),
            (64, 40_000, false, 32, 0),
            (16, 500_000, false, 16, 0),
            (16, 100, true, 32, 200),
            (32, 1_001, true, 32, 2_002),
            (32, 2_001, true, 16, 4_002),
            (16, 9_000, true, 16, 18_000),
            (16, 5_000_000, true, 16, PAUSE_MICROS_MAX),
        ];
        for (pages, took, is_busy, next, pause) in rows {
            assert_eq!(pace(pages, took, is_busy), (next, pause), "{pages} {took} {is_busy}");
        }
    }
}
