//! The page cleaner of MySQL 8.0 (and, but for the limits, 5.7): once a second the mean of what the
//! age asks for, of what was written lately, and of what the next seconds' redo makes old.
use super::mysql56::percent_for_dirty;
use super::{Knobs, Limits};
use weir::lab::{Look, Orders};
use weir_base::Lsn;

/// What is remembered between looks.
#[derive(Clone, Debug, Default)]
pub struct Mysql8State {
    averages: Averages,
    commits: u64,
}

/// Mean rates, renewed every so many looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Averages {
    started: Option<(u64, Lsn)>,
    looks: u64,
    pages: u64,
    pub(crate) page_rate: u64,
    pub(crate) redo_rate: u64,
}

impl Averages {
    /// Whether this is the first look: then there is nothing to go by.
    pub(crate) fn is_first(&mut self, now_micros: u64, end: Lsn) -> bool {
        if self.started.is_none() {
            self.started = Some((now_micros, end));
            return true;
        }
        false
    }

    /// No redo since the last averaging.
    pub(crate) fn is_still(&self, end: Lsn) -> bool {
        self.started.is_some_and(|(_, started)| started == end)
    }

    pub(crate) fn observe(&mut self, loops: u64, now_micros: u64, end: Lsn, wrote: u64) {
        let Some((since, from)) = self.started else { return };
        self.pages += wrote;
        self.looks += 1;
        // Whole seconds, as the originals' clock counts them.
        let seconds = now_micros.saturating_sub(since) / 1_000_000;
        if self.looks < loops && seconds < loops {
            return;
        }
        let seconds = seconds.max(1) as f64;
        let page_rate = self.pages as f64 / seconds;
        self.page_rate = ((page_rate + self.page_rate as f64) / 2.0) as u64;
        let redo_rate = (end.bytes_since(from) as f64 / seconds) as u64;
        self.redo_rate = u64::midpoint(self.redo_rate, redo_rate);
        self.started = Some((now_micros, end));
        (self.looks, self.pages) = (0, 0);
    }
}

/// How many seconds of redo ahead are looked at.
pub(crate) const SCAN_FACTOR: u64 = 3;
pub(crate) const SECOND_MICROS: u64 = 1_000_000;

/// Percent of C that the age asks for. The capacities' ratio is a division of whole numbers; the
/// age's is not any more, since 8.0.
fn percent_for_age(knobs: &Knobs, limits: &Limits, age: u64) -> u64 {
    if age < knobs.adaptive_flushing_lwm * limits.capacity / 100 {
        return 0;
    }
    let factor = age as f64 * 100.0 / limits.async_age.max(1) as f64;
    let ratio = (knobs.io_capacity_max / knobs.io_capacity.max(1)) as f64;
    if knobs.high_checkpoint {
        return (ratio * (factor * factor * factor.sqrt()) / 700.5) as u64;
    }
    (ratio * (factor * factor.sqrt()) / 7.5) as u64
}

/// Once a second; without sleep and without Cm's bound while the age is beyond the synchronous
/// point.
pub fn mysql_8(knobs: &Knobs, state: &mut Mysql8State, look: &Look<'_>) -> Orders {
    let seen = look.seen;
    let limits = if knobs.redo_capacity {
        Limits::redo_capacity(look.log_bytes, seen.page_bytes, knobs.threads)
    } else {
        Limits::mysql_8(look.log_bytes)
    };
    let rest = Orders {
        pages: 0,
        before: Lsn::MAX,
        stop_writers: false,
        writers_wait_at: limits.max_age,
        again_micros: SECOND_MICROS,
        free_frames: knobs.lru_pages(),
        free_writes: Some(knobs.lru_pages()),
    };
    if state.averages.is_first(seen.now_micros, seen.log_end) {
        state.commits = seen.commits;
        return rest;
    }
    let idle = std::mem::replace(&mut state.commits, seen.commits) == seen.commits;
    let age = seen.log_end.bytes_since(seen.oldest_dirty);
    let urgent = age > limits.sync_age;
    if idle && !urgent {
        return Orders { pages: knobs.percent_of_capacity(knobs.idle_flush_pct), ..rest };
    }
    let is_still = state.averages.is_still(seen.log_end);
    state.averages.observe(knobs.avg_loops, seen.now_micros, seen.log_end, look.wrote);
    let ahead = state.averages.redo_rate * SCAN_FACTOR;
    if urgent {
        let target = seen.log_end.back(limits.sync_age).advanced(ahead);
        let pages = seen.dirty.pages_older_than(target).min(2 * knobs.io_capacity_max);
        let pages = pages.max(knobs.io_capacity);
        return Orders { pages, before: target, again_micros: 0, ..rest };
    }
    if is_still {
        return rest;
    }
    let dirty = Knobs::dirty_percent(seen.dirty_pages, seen.frames_total);
    let for_age = percent_for_age(knobs, &limits, age);
    let percent = percent_for_dirty(knobs, dirty).max(for_age);
    let due = seen.dirty.pages_older_than(seen.oldest_dirty.advanced(ahead).advanced(1));
    let due = (due / SCAN_FACTOR).clamp(1, (2 * knobs.io_capacity_max).max(1));
    let pages = (knobs.percent_of_capacity(percent) + state.averages.page_rate + due) / 3;
    let pages = pages.min(knobs.io_capacity_max);
    Orders { pages: over_instances(pages, for_age, knobs.pool_instances), ..rest }
}

/// The request is divided among the pool's instances: evenly, rounded down and one more for each,
/// while the log is no reason to look closer (30 %); by their share of old pages after that, which
/// over one list is the same with one more for each.
fn over_instances(pages: u64, percent_for_age: u64, instances: u64) -> u64 {
    let instances = instances.max(1);
    if percent_for_age > 30 { pages + instances } else { (pages / instances + 1) * instances }
}
