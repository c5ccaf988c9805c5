//! What the engines before 5.6 have in common: user threads that write pages when the log is nearly
//! full, and a master thread with a loop of one second and one of ten.
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};
use weir_base::Lsn;

/// When the master thread has something to do next.
#[derive(Clone, Debug, Default)]
pub struct MasterState {
    second_due: Option<u64>,
    ten_seconds_due: u64,
}

const SECOND_MICROS: u64 = 1_000_000;
/// How often the user threads' part is looked at: in the originals at every change.
const USERS_MICROS: u64 = 5_000;
/// With more dirty pages than this percentage, the loop of ten seconds writes C pages, else C/10.
const MANY_DIRTY_PERCENT: f64 = 70.0;

/// What part of the master thread is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Second,
    TenSeconds,
}

impl MasterState {
    /// What is due at `now`, each once.
    pub(crate) fn due(&mut self, now: u64) -> Due {
        let Some(due) = self.second_due else {
            self.second_due = Some(now + SECOND_MICROS);
            self.ten_seconds_due = now + 10 * SECOND_MICROS;
            return Due::Nothing;
        };
        if now >= self.ten_seconds_due {
            self.ten_seconds_due = now + 10 * SECOND_MICROS;
            return Due::TenSeconds;
        }
        if now >= due {
            self.second_due = Some(now + SECOND_MICROS);
            return Due::Second;
        }
        Due::Nothing
    }

    /// The loop of a second is not to sleep this time.
    pub(crate) fn skip_sleep(&mut self, now: u64) {
        self.second_due = Some(now);
    }
}

/// Orders to write nothing now.
pub(crate) fn rest(knobs: &Knobs, limits: &Limits) -> Orders {
    Orders {
        pages: 0,
        before: Lsn::MAX,
        stop_writers: false,
        writers_wait_at: limits.max_age,
        again_micros: USERS_MICROS,
        free_frames: knobs.lru_pages(),
        free_writes: None,
    }
}

/// What user threads do before a change once the age is beyond the asynchronous point: bring the
/// oldest page forward by as much as the age is beyond that point; beyond the synchronous one by
/// twice as much, and wait for it.
pub(crate) fn users(knobs: &Knobs, limits: &Limits, look: &Look<'_>) -> Option<Orders> {
    let seen = look.seen;
    let age = seen.log_end.bytes_since(seen.oldest_dirty);
    let urgent = age > limits.sync_age;
    let advance = if urgent {
        2 * (age - limits.sync_age)
    } else if age > limits.async_age {
        age - limits.async_age
    } else {
        return None;
    };
    let before = seen.oldest_dirty.advanced(advance);
    Some(Orders {
        pages: seen.dirty.pages_older_than(before).max(1),
        before,
        stop_writers: urgent,
        ..rest(knobs, limits)
    })
}

/// The loop of ten seconds.
pub(crate) fn ten_seconds(knobs: &Knobs, limits: &Limits, look: &Look<'_>) -> Orders {
    let seen = look.seen;
    let dirty = Knobs::dirty_percent(seen.dirty_pages, seen.frames_total);
    let percent = if dirty > MANY_DIRTY_PERCENT { 100 } else { 10 };
    Orders { pages: knobs.percent_of_capacity(percent), ..rest(knobs, limits) }
}

/// The loop of a second, where there are too many dirty pages: C of them, and no sleep after it.
pub(crate) fn too_many_dirty(
    knobs: &Knobs,
    limits: &Limits,
    state: &mut MasterState,
    look: &Look<'_>,
) -> Option<Orders> {
    let seen = look.seen;
    let dirty = Knobs::dirty_percent(seen.dirty_pages, seen.frames_total);
    if dirty <= knobs.max_dirty_pct {
        return None;
    }
    state.skip_sleep(seen.now_micros);
    Some(Orders { pages: knobs.percent_of_capacity(100), ..rest(knobs, limits) })
}
