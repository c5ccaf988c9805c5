//! Everything that an open database measures, with name, unit and help text, each declared once:
//! levels here, counters where they are counted. `weir stat`, the metrics endpoint, reports and the
//! live page all read this.
use crate::db::Db;
use crate::stats::StatsSnapshot;

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows while the database is open.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// What a number means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as Prometheus wants names: `weir_checkpoint_age_bytes`. Ends with the unit.
    pub name: String,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// In what it is counted; seconds and bytes are never scaled.
    pub unit: &'static str,
    /// What it tells.
    pub help: &'static str,
}

/// A level: unit, name without `weir_`, how it is read, help text.
struct Level {
    name: &'static str,
    unit: &'static str,
    kind: MetricKind,
    read: fn(&StatsSnapshot) -> f64,
    help: &'static str,
}

const fn level(
    name: &'static str,
    unit: &'static str,
    read: fn(&StatsSnapshot) -> f64,
    help: &'static str,
) -> Level {
    Level { name, unit, kind: MetricKind::Gauge, read, help }
}

const fn count(
    name: &'static str,
    unit: &'static str,
    read: fn(&StatsSnapshot) -> f64,
    help: &'static str,
) -> Level {
    Level { name, unit, kind: MetricKind::Counter, read, help }
}

/// What is not counted by any part on its own: levels, and what the whole counts.
const LEVELS: &[Level] = &[
    count("commits", "commits", |s| s.commits as f64, "transactions committed"),
    count("redo_bytes", "bytes", |s| s.redo_bytes as f64, "end of the redo log: bytes ever logged"),
    level(
        "checkpoint_age_bytes",
        "bytes",
        |s| s.checkpoint_age_bytes as f64,
        "redo between the oldest change that is not in its page's place and the end of the log",
    ),
    level(
        "checkpoint_age_limit_bytes",
        "bytes",
        |s| s.checkpoint_age_limit_bytes as f64,
        "the checkpoint age that is never passed",
    ),
    level(
        "log_capacity_bytes",
        "bytes",
        |s| s.log_capacity_bytes as f64,
        "capacity of the redo log",
    ),
    level(
        "encryption_key_version",
        "version",
        |s| f64::from(s.key_version),
        "version of the master key that opens the database; 0: it is not encrypted",
    ),
    level(
        "halted_engines",
        "engines",
        |s| f64::from(u8::from(s.halted.is_some())),
        "1: it has halted after a failure, and nothing is written any more",
    ),
    level("pool_pages", "pages", |s| s.pool_frames as f64, "pages that the pool has room for"),
    level("pool_dirty_pages", "pages", |s| s.dirty_pages as f64, "changed and not yet written"),
    level("pool_in_flight_pages", "pages", |s| s.pages_in_flight as f64, "on their way to disk"),
    level(
        "pool_pending_redo_pages",
        "pages",
        |s| s.pages_pending_redo as f64,
        "not read yet, that the log of before a crash may be ahead of",
    ),
    level("pool_free_pages", "pages", |s| s.pool_frames_free as f64, "free for immediate use"),
    level(
        "pool_clean_pages",
        "pages",
        |s| s.pool_frames.saturating_sub(s.pool_frames_free + s.dirty_pages) as f64,
        "in memory as they are on disk",
    ),
    level(
        "page_size_bytes",
        "bytes",
        |s| s.page_size as f64,
        "bytes of a page, chosen when the database was made",
    ),
    level(
        "data_allocated_pages",
        "pages",
        |s| s.pages_allocated as f64,
        "pages in use by trees, in memory or not",
    ),
    level(
        "data_file_bytes",
        "bytes",
        |s| s.data_file_bytes as f64,
        "length of the file that has the pages",
    ),
    level(
        "data_on_disk_bytes",
        "bytes",
        |s| s.data_on_disk_bytes.unwrap_or(s.data_file_bytes) as f64,
        "that this file takes on the device: free pages give the others back",
    ),
    level(
        "segments_bytes",
        "bytes",
        |s| s.segments.map_or(0.0, |look| look.bytes as f64),
        "all segments of a log-structured store; 0 where pages are kept in place",
    ),
    level(
        "segments_live_bytes",
        "bytes",
        |s| s.segments.map_or(0.0, |look| look.live_bytes as f64),
        "what is needed in segments, packed",
    ),
    level(
        "segments_free_bytes",
        "bytes",
        |s| s.segments.map_or(0.0, |look| look.free_bytes as f64),
        "segments that are free",
    ),
    level(
        "page_codec",
        "codec",
        |s| s.segments.and_then(|look| look.codec).map_or(0.0, |codec| f64::from(codec as u8)),
        "how pages are packed now whose tree asks for no codec: 0 not at all, 1 by LZ4, 2 by zstd",
    ),
    level(
        "page_map_bytes",
        "bytes",
        |s| s.segments.map_or(0.0, |look| look.map_bytes as f64),
        "memory that says where the pages lie in segments",
    ),
    level(
        "capacity_estimate_pages",
        "pages",
        |s| s.capacity_pages_per_second,
        "page writes per second that the disk is believed to take; 0 while unknown",
    ),
    level(
        "deadline_target_pages",
        "pages",
        |s| s.deadline_pages_per_second,
        "page writes per second that meet every deadline",
    ),
    level(
        "scrub_rate_pages",
        "pages",
        |s| s.scrub.pages_per_second,
        "pages per second verified on disk; 0: all were within the last day, or it has not begun",
    ),
    level(
        "scrub_pass_pages",
        "pages",
        |s| s.scrub.pass_pages as f64,
        "gone through by the pass of verifying that is under way",
    ),
    level(
        "scrub_last_pass_pages",
        "pages",
        |s| s.scrub.last_pass_pages.unwrap_or(0) as f64,
        "verified by the last whole pass since opening; 0: there was none",
    ),
    level(
        "scrub_last_pass_seconds",
        "seconds",
        |s| s.scrub.last_pass_seconds,
        "that the last whole pass of verifying took",
    ),
    level(
        "scrub_last_pass_ago_seconds",
        "seconds",
        |s| s.scrub.last_pass_ago_seconds,
        "since the last whole pass of verifying ended",
    ),
    level(
        "admission_limit_bytes",
        "bytes",
        |s| s.admission_bytes_per_second.unwrap_or(f64::INFINITY),
        "redo per second that writers are admitted for; infinite: no limit",
    ),
    level(
        "open_transactions",
        "transactions",
        |s| s.open_transactions as f64,
        "begun and not ended",
    ),
    level(
        "history_transactions",
        "transactions",
        |s| s.history_transactions as f64,
        "ended, and some snapshot may need what was before them",
    ),
    count(
        "redo_relogged_bytes",
        "bytes",
        |s| s.relogged_bytes as f64,
        "redo that repeats what recovery needs of transactions that began far back",
    ),
    level(
        "version_memory_bytes",
        "bytes",
        |s| s.version_bytes as f64,
        "memory of ended transactions and of versions that snapshots may need",
    ),
    level(
        "archived_versions",
        "versions",
        |s| s.archived_versions as f64,
        "that old snapshots find in trees, memory having no room",
    ),
    level("held_snapshots", "snapshots", |s| s.snapshots as f64, "held by readers"),
    level(
        "oldest_snapshot_commits",
        "commits",
        |s| s.oldest_snapshot_commits as f64,
        "since the oldest snapshot was taken",
    ),
    level(
        "losers_transactions",
        "transactions",
        |s| s.losers as f64,
        "left by a crash or a rollback that failed, and still being rolled back",
    ),
    level("held_locks", "locks", |s| s.locks.held as f64, "explicit locks of keys, held now"),
    level("lock_bytes", "bytes", |s| s.locks.bytes as f64, "memory for what is locked, about"),
    level("held_ranges", "ranges", |s| s.locks.ranges as f64, "locks of ranges, held now"),
    level(
        "waiting_transactions",
        "transactions",
        |s| s.locks.waiting as f64,
        "waiting for a lock now",
    ),
    count("lock_waits", "waits", |s| s.locks.waits as f64, "requests for a lock that had to wait"),
    count(
        "lock_wait_seconds",
        "seconds",
        |s| s.locks.wait_micros as f64 / 1e6,
        "waited for locks, of all waits that are over",
    ),
    count("lock_deadlocks", "deadlocks", |s| s.locks.deadlocks as f64, "ended, by one victim each"),
    count("lock_timeouts", "timeouts", |s| s.locks.timeouts as f64, "waits ended by their limit"),
    count("lock_interrupts", "interrupts", |s| s.locks.kills as f64, "waits ended by an interrupt"),
    count(
        "log_durable_bytes",
        "bytes",
        |s| s.log_durable as f64,
        "up to here the redo log is on stable storage",
    ),
    count(
        "checkpoint_position_bytes",
        "bytes",
        |s| s.checkpoint as f64,
        "where recovery would begin to read the redo log",
    ),
    level(
        "checkpoint_age_max_bytes",
        "bytes",
        |s| s.checkpoint_age_max_bytes as f64,
        "the greatest checkpoint age seen",
    ),
    count("device_read_bytes", "bytes", |s| s.device.bytes_read as f64, "read from all files"),
    count("device_write_bytes", "bytes", |s| s.device.bytes_written as f64, "written to all files"),
    count("device_reads", "reads", |s| s.device.reads as f64, "read calls to all files"),
    count("device_writes", "writes", |s| s.device.writes as f64, "write calls to all files"),
    count("device_syncs", "syncs", |s| s.device.syncs as f64, "syncs of all files"),
];

/// The metric of a declared counter, and what its values are divided by.
fn of_counter(name: &str, unit: &'static str, help: &'static str) -> (Metric, f64) {
    let plain = name.replace('.', "_");
    let (plain, unit, scale) = match unit {
        "microseconds" => (plain.trim_end_matches("_micros").to_owned(), "seconds", 1e6),
        unit => (plain, unit, 1.0),
    };
    let name = if plain.ends_with(unit) {
        format!("weir_{plain}")
    } else {
        format!("weir_{plain}_{unit}")
    };
    (Metric { name, kind: MetricKind::Counter, unit, help }, scale)
}

impl Db {
    /// Visits all metrics with their values now: in one version of the engine always the same ones
    /// in the same order.
    pub fn visit_metrics(&self, visit: &mut dyn FnMut(Metric, f64)) {
        let seen = self.stats();
        for level in LEVELS {
            let name = format!("weir_{}", level.name);
            let metric = Metric { name, kind: level.kind, unit: level.unit, help: level.help };
            visit(metric, (level.read)(&seen));
        }
        self.visit_counters(&mut |name, unit, help, value| {
            let (metric, scale) = of_counter(name, unit, help);
            visit(metric, value as f64 / scale);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_metric_is_declared_once_and_ends_with_its_unit() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), crate::Config::default()).expect("opened");
        let mut names = HashSet::new();
        db.visit_metrics(&mut |metric, value| {
            assert!(metric.name.ends_with(metric.unit), "{metric:?}");
            assert!(metric.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{metric:?}");
            assert!(!metric.help.is_empty() && !value.is_nan(), "{metric:?} is {value}");
            assert!(names.insert(metric.name.clone()), "{metric:?} is there twice");
        });
        assert!(names.contains("weir_checkpoint_age_bytes"));
        assert!(names.contains("weir_pool_writes_deadline_pages"));
        assert!(names.contains("weir_admission_wait_seconds"), "{names:?}");
        db.close().expect("closed");
    }
}
