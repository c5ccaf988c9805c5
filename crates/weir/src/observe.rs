//! Observing a database at work, for advice on the size of its log.
use crate::advise::{Observed, POINTS};
use crate::db::Db;
use crate::engine::Engine;
use crate::report::RecoveryReport;
use crate::workers::Site;

/// Below this part of the log an age says little about the work.
const AGE_LEAST: u64 = 16;

impl Site {
    /// What can be observed now, but for the speed of recovery; `None` when too little is dirty to
    /// say anything.
    pub(crate) fn observe(&self) -> Option<Observed> {
        let age_bytes = self.checkpointer.age_bytes();
        let log_bytes = self.log.capacity_bytes();
        let end = self.log.end();
        if age_bytes < log_bytes / AGE_LEAST {
            return None;
        }
        let mut ages: Vec<u64> = Vec::new();
        self.pool.visit_dirty(&mut |lsn| ages.push(end.bytes_since(lsn)));
        ages.sort_unstable();
        let point = |i: usize| {
            // Closer together where the curve bends: at the short end.
            let bytes = (age_bytes as f64 * 2f64.powf(-(((POINTS - 1 - i) as f64) / 3.0))) as u64;
            (bytes, ages.partition_point(|&age| age <= bytes) as u64)
        };
        let working_set = (0..POINTS).map(point).filter(|&(_, pages)| pages > 0).collect();
        Some(Observed {
            age_bytes,
            log_bytes,
            page_size: self.pool.page_size() as u64,
            recovery_bytes_per_second: 0,
            working_set,
        })
    }
}

impl Engine {
    /// Log read back in a second, as was measured when a database was opened after a crash: this
    /// time, or earlier.
    pub(crate) fn read_back_bytes_per_second(&self) -> Option<u64> {
        // Where only the end of the log was read, little was measured.
        let whole = |report: &RecoveryReport| report.read_bytes == report.redo_bytes();
        let now = self.report.filter(|r| whole(r) && r.read_bytes > 1 << 20).map(|report| {
            (report.read_bytes as f64 * 1e6 / report.total_micros.max(1) as f64) as u64
        });
        let before = || Observed::read(&self.volume).map(|kept| kept.recovery_bytes_per_second);
        now.or_else(before).filter(|&rate| rate > 0)
    }

    /// What can be observed now, or was lately; `None` when it was always too little.
    pub(crate) fn observe(&self) -> Option<Observed> {
        let observed = self.site().observe().or_else(|| self.seen.lock().clone())?;
        let rate = self.read_back_bytes_per_second().unwrap_or(0);
        Some(Observed { recovery_bytes_per_second: rate, ..observed })
    }
}

impl Db {
    /// What was observed of this database at work: now, if enough is going on, or else when it was
    /// closed last. `None` when neither was enough.
    #[must_use]
    pub fn observed(&self) -> Option<Observed> {
        self.engine.observe().or_else(|| Observed::read(&self.engine.volume))
    }
}
