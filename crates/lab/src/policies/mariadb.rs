//! The page cleaner of MariaDB 10.5 to 11. Without a low-water mark of dirty pages (the default)
//! the percentage is out of the formula, and the set-point of the age is C itself.
use super::mysql8::{Averages, SCAN_FACTOR, SECOND_MICROS};
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};
use weir_base::Lsn;

/// What is remembered between looks.
#[derive(Clone, Debug, Default)]
pub struct MariadbState {
    averages: Averages,
}

/// Asleep while there is room; then a mean of C, of what was written lately, and of what the next
/// seconds' redo makes old; beyond the asynchronous point Cm a second; beyond the greatest age
/// everything, at once.
pub fn mariadb_10_5(knobs: &Knobs, state: &mut MariadbState, look: &Look<'_>) -> Orders {
    let seen = look.seen;
    let limits = Limits::mariadb(look.log_bytes, seen.page_bytes);
    let age = seen.log_end.bytes_since(seen.oldest_dirty);
    let scarce = seen.frames_free < knobs.lru_scan_depth / 2;
    let rest = Orders {
        pages: 0,
        before: Lsn::MAX,
        stop_writers: false,
        writers_wait_at: limits.max_age,
        again_micros: SECOND_MICROS,
        free_frames: if scarce { knobs.lru_scan_depth } else { knobs.lru_scan_depth / 2 },
        free_writes: None,
    };
    // Batches of Cm up to the point where there is room again, without sleep between.
    if age > limits.max_age {
        let before = seen.log_end.back(limits.async_age);
        return Orders { pages: knobs.io_capacity_max, before, again_micros: 0, ..rest };
    }
    if age > limits.async_age {
        let before = seen.log_end.back(limits.async_age);
        return Orders { pages: knobs.io_capacity_max, before, ..rest };
    }
    let dirty = Knobs::dirty_percent(seen.dirty_pages, seen.frames_total);
    let low = age <= knobs.adaptive_flushing_lwm * limits.capacity / 100;
    let threshold =
        if knobs.max_dirty_pct_lwm == 0.0 { knobs.max_dirty_pct } else { knobs.max_dirty_pct_lwm };
    if low && dirty < threshold {
        return rest;
    }
    if state.averages.is_first(seen.now_micros, seen.log_end) {
        return Orders { pages: knobs.io_capacity.min(seen.dirty_pages), ..rest };
    }
    state.averages.observe(knobs.avg_loops, seen.now_micros, seen.log_end, look.wrote);
    let ahead = seen.oldest_dirty.advanced(state.averages.redo_rate * SCAN_FACTOR).advanced(1);
    // Counted up to Cm, and divided only then.
    let due = (seen.dirty.pages_older_than(ahead).min(knobs.io_capacity_max) / SCAN_FACTOR).max(1);
    let percent = percent(knobs, &limits, age, dirty);
    let pages = (knobs.percent_of_capacity(percent) + state.averages.page_rate + due) / 3;
    Orders { pages: pages.min(knobs.io_capacity_max), ..rest }
}

fn percent(knobs: &Knobs, limits: &Limits, age: u64, dirty_percent: f64) -> u64 {
    if knobs.max_dirty_pct_lwm == 0.0 {
        return 100;
    }
    let for_age = super::mysql56::percent_for_age(knobs, limits, age);
    for_age.max((dirty_percent * 100.0 / (knobs.max_dirty_pct + 1.0)) as u64)
}
