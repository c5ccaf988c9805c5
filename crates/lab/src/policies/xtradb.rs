//! XtraDB's three adaptive checkpoints (Percona Server 5.0 and 5.1). User threads and the loops of
//! the master thread are those of `master.rs`; what differs is the loop of a second.
use super::master::{Due, MasterState, rest, ten_seconds, too_many_dirty, users};
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};
use weir_base::Lsn;

/// What is remembered between looks.
#[derive(Clone, Debug, Default)]
pub struct XtradbState {
    master: MasterState,
    /// End of the log when the loop came by last.
    log_end_before: Option<Lsn>,
    /// As `keep_average` saw it last: when, and dirty pages.
    averaged: Option<Averaged>,
    /// Whether the last orders were `keep_average`'s, so that what they wrote is known.
    asked: bool,
    /// Pages written for its orders before.
    wrote: u64,
}

#[derive(Clone, Copy, Debug)]
struct Averaged {
    due_micros: u64,
    dirty_pages: u64,
}

/// `keep_average` looks ten times a second.
const TENTH_MICROS: u64 = 100_000;

/// Below half of the greatest age nothing, up to three quarters a tenth of C, from there to seven
/// eighths C, again and again without sleep; beyond, user threads write and this does not.
pub fn reflex(knobs: &Knobs, state: &mut XtradbState, look: &Look<'_>) -> Orders {
    each_second(knobs, state, look, |state, limits| {
        let seen = look.seen;
        let age = seen.log_end.bytes_since(seen.oldest_dirty);
        let max = limits.max_age;
        let percent = match age {
            _ if age > max - max / 8 => return rest(knobs, limits),
            _ if age > max - max / 4 => 100,
            _ if age > max / 2 => 10,
            _ => return rest(knobs, limits),
        };
        state.master.skip_sleep(seen.now_micros);
        Orders { pages: knobs.percent_of_capacity(percent), ..rest(knobs, limits) }
    })
}

/// From a quarter of the greatest age on: as many pages as follow from the redo of the last second,
/// were the room that the pages have left distributed evenly; but none that is younger than that
/// second's redo behind the oldest.
pub fn estimate(knobs: &Knobs, state: &mut XtradbState, look: &Look<'_>) -> Orders {
    each_second(knobs, state, look, |state, limits| {
        let seen = look.seen;
        let age = seen.log_end.bytes_since(seen.oldest_dirty);
        let max = limits.max_age;
        let before = state.log_end_before.unwrap_or(seen.log_end);
        let redo = seen.log_end.bytes_since(before);
        if age > max - max / 8 || age <= max / 4 {
            return rest(knobs, limits);
        }
        let pages = u128::from(seen.dirty_pages);
        let level: u128 = room_left(look, max);
        let mut wanted = (pages * pages * u128::from(redo)).checked_div(level).unwrap_or(0);
        if !knobs.doublewrite {
            // Writing is faster without: so it can be done later.
            wanted = wanted * 7 / 8;
        }
        Orders {
            pages: u64::try_from(wanted).unwrap_or(u64::MAX),
            before: seen.oldest_dirty.advanced(redo),
            ..rest(knobs, limits)
        }
    })
}

/// The sum over all dirty pages of what may still be logged before each must be written.
fn room_left(look: &Look<'_>, max_age: u64) -> u128 {
    let seen = look.seen;
    let width = seen.dirty.bucket_bytes.max(1);
    let buckets = (0u64..).zip(&seen.dirty.counts).filter(|(_, count)| **count > 0);
    buckets
        .map(|(i, count)| {
            let first = seen.dirty.first.advanced(i * width).max(seen.oldest_dirty);
            let room = max_age.saturating_sub(seen.log_end.bytes_since(first));
            u128::from(room) * u128::from(*count)
        })
        .sum()
}

/// Ten times a second: the dirty pages' share that the redo of this tenth is of the asynchronous
/// point, less what was written beyond what had been asked for.
pub fn keep_average(knobs: &Knobs, state: &mut XtradbState, look: &Look<'_>) -> Orders {
    let limits = Limits::classic(look.log_bytes, look.seen.page_bytes, knobs.threads);
    if std::mem::take(&mut state.asked) {
        state.wrote = look.wrote;
    }
    if let Some(orders) = users(knobs, &limits, look) {
        return orders;
    }
    let seen = look.seen;
    if let Due::TenSeconds = state.master.due(seen.now_micros) {
        return ten_seconds(knobs, &limits, look);
    }
    let redo = seen.log_end.bytes_since(state.log_end_before.unwrap_or(seen.log_end));
    let last = state.averaged;
    if last.is_some_and(|last| seen.now_micros < last.due_micros) {
        return rest(knobs, &limits);
    }
    let due_micros = seen.now_micros + TENTH_MICROS;
    let (pages, head) = (seen.dirty_pages, state.log_end_before);
    state.averaged = Some(Averaged { due_micros, dirty_pages: pages });
    state.log_end_before = Some(seen.log_end);
    let (Some(last), Some(head)) = (last, head) else { return rest(knobs, &limits) };
    if let Some(orders) = too_many_dirty(knobs, &limits, &mut state.master, look) {
        return orders;
    }
    // Pages that became dirty since, and so those that became clean, by whatever cause.
    let new = seen.dirty.pages().saturating_sub(seen.dirty.pages_older_than(head));
    let cleaned = (new + last.dirty_pages).saturating_sub(pages);
    let mut wanted = (u128::from(pages) * u128::from(redo) / u128::from(limits.async_age.max(1)))
        .min(u128::from(u32::MAX)) as i64;
    if cleaned > state.wrote {
        wanted -= (cleaned - state.wrote) as i64;
    }
    state.asked = true;
    let pages = if wanted > 0 { wanted as u64 + 1 } else { 0 };
    Orders { pages, before: seen.oldest_dirty.advanced(redo), ..rest(knobs, &limits) }
}

/// User threads, too many dirty pages, and the loop of ten seconds come before `second`.
fn each_second(
    knobs: &Knobs,
    state: &mut XtradbState,
    look: &Look<'_>,
    second: impl FnOnce(&mut XtradbState, &Limits) -> Orders,
) -> Orders {
    let limits = Limits::classic(look.log_bytes, look.seen.page_bytes, knobs.threads);
    if let Some(orders) = users(knobs, &limits, look) {
        return orders;
    }
    match state.master.due(look.seen.now_micros) {
        Due::Nothing => rest(knobs, &limits),
        Due::TenSeconds => ten_seconds(knobs, &limits, look),
        Due::Second => {
            let orders = too_many_dirty(knobs, &limits, &mut state.master, look);
            let orders = orders.unwrap_or_else(|| second(state, &limits));
            state.log_end_before = Some(look.seen.log_end);
            orders
        }
    }
}
