//! The page cleaner of MySQL 5.6: once a second, a mean of what the age asks for and of what was
//! written lately, up to a position in the log that follows from its mean rate.
use super::master::users;
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};
use weir_base::Lsn;

/// What is remembered between looks.
#[derive(Clone, Debug, Default)]
pub struct Mysql56State {
    due_micros: u64,
    commits: u64,
    /// End of the log when rates were averaged last.
    averaged_at: Option<Lsn>,
    /// End of the log at the last look.
    last_end: Lsn,
    looks: u64,
    pages: u64,
    page_rate: u64,
    redo_rate: u64,
    age_factor: u64,
    /// Pages asked for, and written for that (plus one), last time.
    asked: u64,
    wrote: u64,
    adaptive: bool,
}

const SECOND_MICROS: u64 = 1_000_000;
const USERS_MICROS: u64 = 5_000;

/// Percent of C that the age asks for: INT(Cm/C) f^1.5 / 7.5 with f = INT(100 A/async), rounded
/// down.
pub(crate) fn percent_for_age(knobs: &Knobs, limits: &Limits, age: u64) -> u64 {
    if age < knobs.adaptive_flushing_lwm * limits.capacity / 100 {
        return 0;
    }
    let factor = age * 100 / limits.async_age.max(1);
    let ratio = knobs.io_capacity_max / knobs.io_capacity.max(1);
    (ratio as f64 * (factor as f64 * (factor as f64).sqrt()) / 7.5) as u64
}

/// Percent of C that dirty pages ask for.
pub(crate) fn percent_for_dirty(knobs: &Knobs, dirty_percent: f64) -> u64 {
    if knobs.max_dirty_pct_lwm == 0.0 {
        return if dirty_percent >= knobs.max_dirty_pct { 100 } else { 0 };
    }
    if dirty_percent < knobs.max_dirty_pct_lwm {
        return 0;
    }
    (dirty_percent * 100.0 / (knobs.max_dirty_pct + 1.0)) as u64
}

/// User threads still write at the synchronous point; the asynchronous one is the cleaner's.
pub fn mysql_5_6(knobs: &Knobs, state: &mut Mysql56State, look: &Look<'_>) -> Orders {
    let limits = Limits::classic(look.log_bytes, look.seen.page_bytes, knobs.threads);
    let seen = look.seen;
    if std::mem::take(&mut state.adaptive) {
        state.wrote = look.wrote + 1;
        state.pages += look.wrote;
    }
    if let Some(orders) = users(knobs, &limits, look).filter(|orders| orders.stop_writers) {
        return Orders {
            again_micros: USERS_MICROS,
            free_writes: Some(knobs.lru_pages()),
            ..orders
        };
    }
    if seen.now_micros < state.due_micros {
        return cleaner(knobs, &limits, 0, Lsn::MAX);
    }
    state.due_micros = seen.now_micros + SECOND_MICROS;
    let idle = state.averaged_at.is_some() && seen.commits == state.commits;
    state.commits = seen.commits;
    if idle {
        return cleaner(knobs, &limits, knobs.percent_of_capacity(100), Lsn::MAX);
    }
    adaptive(knobs, &limits, state, look)
}

fn cleaner(knobs: &Knobs, limits: &Limits, pages: u64, before: Lsn) -> Orders {
    Orders {
        pages,
        before,
        stop_writers: false,
        writers_wait_at: limits.max_age,
        again_micros: USERS_MICROS,
        free_frames: knobs.lru_pages(),
        // `lru_scan_depth` is for each instance and each second.
        free_writes: Some(knobs.lru_pages()),
    }
}

fn adaptive(knobs: &Knobs, limits: &Limits, state: &mut Mysql56State, look: &Look<'_>) -> Orders {
    let seen = look.seen;
    let Some(averaged_at) = state.averaged_at else {
        state.averaged_at = Some(seen.log_end);
        return cleaner(knobs, limits, 0, Lsn::MAX);
    };
    // Of the end at the last averaging, not of that at the last look.
    if averaged_at == seen.log_end {
        return cleaner(knobs, limits, 0, Lsn::MAX);
    }
    state.looks += 1;
    if state.looks >= knobs.avg_loops {
        state.page_rate = (state.pages / knobs.avg_loops + state.page_rate) / 2;
        let redo_rate = seen.log_end.bytes_since(averaged_at) / knobs.avg_loops;
        state.redo_rate = u64::midpoint(state.redo_rate, redo_rate);
        state.averaged_at = Some(seen.log_end);
        (state.looks, state.pages) = (0, 0);
    }
    let age = seen.log_end.bytes_since(seen.oldest_dirty);
    let dirty = Knobs::dirty_percent(seen.dirty_pages, seen.frames_total);
    let percent = percent_for_dirty(knobs, dirty).max(percent_for_age(knobs, limits, age));
    let pages = (knobs.percent_of_capacity(percent) + state.page_rate) / 2;
    let pages = pages.min(knobs.io_capacity_max);
    let redo = seen.log_end.bytes_since(state.last_end);
    if state.wrote > 0 && redo > state.redo_rate / 2 {
        state.age_factor = state.asked / state.wrote;
    }
    state.asked = pages;
    state.last_end = seen.log_end;
    state.adaptive = true;
    // Until the first averaging the rate is 0, and so nothing at all is older than this.
    let before = seen.oldest_dirty.advanced(state.redo_rate * (state.age_factor + 1));
    cleaner(knobs, limits, pages, before)
}
