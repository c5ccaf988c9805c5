//! What an open database can say of itself.
use weir_base::Stats;
use weir_device::IoStats;
use weir_pool::StoreLook;

use crate::config::StoreKind;
use crate::db::Db;
use crate::scrub::ScrubLook;

/// Pages written, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageWrites {
    /// The checkpoint's deadline asked for it.
    pub deadline: u64,
    /// The frame was wanted for another page.
    pub free_frames: u64,
    /// Nothing else was to be done.
    pub idle: u64,
    /// Their segment is to be free.
    pub segment: u64,
    /// A full checkpoint, or closing.
    pub shutdown: u64,
}

impl PageWrites {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.deadline + self.free_frames + self.idle + self.segment + self.shutdown
    }
}

/// A look at all statistics at one moment.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // Each is named with its unit; `visit` carries the help texts.
pub struct StatsSnapshot {
    pub commits: u64,
    pub redo_bytes: u64,
    pub log_end: u64,
    pub log_durable: u64,
    pub checkpoint: u64,
    pub checkpoint_age_bytes: u64,
    pub checkpoint_age_limit_bytes: u64,
    pub checkpoint_age_max_bytes: u64,
    pub log_capacity_bytes: u64,
    pub log_writes: u64,
    pub log_bytes_written: u64,
    pub log_syncs: u64,
    pub log_commit_waits: u64,
    pub dirty_pages: u64,
    pub pages_pending_redo: u64,
    pub pages_in_flight: u64,
    pub pool_frames: u64,
    pub pool_frames_free: u64,
    pub page_size: usize,
    pub pages_allocated: u64,
    /// Bytes of the file that has the pages.
    pub data_file_bytes: u64,
    /// Bytes that it takes on the device: free pages have given back the others. `None`: unknown.
    pub data_on_disk_bytes: Option<u64>,
    /// Whether the blocks of free pages can go to the file system, as far as is known.
    pub gives_back: bool,
    pub page_reads: u64,
    /// Of these, pages read before any thread asked, because they were in memory when the database
    /// was open last.
    pub pages_warmed: u64,
    /// And pages that a scan had read before it came to them.
    pub pages_read_ahead: u64,
    /// Times that a reader passed over rows that cannot be read
    /// ([`crate::Config::force_recovery`]).
    pub passed_over: u64,
    pub page_evictions: u64,
    pub page_writes: PageWrites,
    pub free_frame_waits: u64,
    pub admission_waits: u64,
    pub admission_wait_micros: u64,
    pub admission_gate_closed: u64,
    pub admission_bytes_per_second: Option<f64>,
    pub deadline_pages_per_second: f64,
    pub capacity_pages_per_second: f64,
    pub open_transactions: u64,
    /// Transactions still being rolled back in the background: recovery found them unfinished, or a
    /// rollback failed.
    pub losers: u64,
    /// Transactions that have ended and whose older versions some snapshot may need: the length of
    /// the history.
    pub history_transactions: u64,
    /// Snapshots held.
    pub snapshots: u64,
    /// How many commits the oldest snapshot lies back.
    pub oldest_snapshot_commits: u64,
    /// Memory that ended transactions take, mostly versions that some snapshot may need.
    pub version_bytes: u64,
    /// Versions that old snapshots find in trees, because memory has no room for them.
    pub archived_versions: u64,
    /// Redo that named once more what recovery would need of transactions that began far back.
    pub relogged_bytes: u64,
    /// Explicit locks, waits, deadlocks.
    pub locks: weir_txn::LockStats,
    /// The version of the master key that opens the database; 0: it is not encrypted.
    pub key_version: u32,
    /// Where the database keeps its pages.
    pub store: StoreKind,
    /// How its segments stand, if it has any.
    pub segments: Option<StoreLook>,
    /// How the scrub of pages on disk stands, and what was found damaged.
    pub scrub: ScrubLook,
    pub device: IoStats,
    pub device_description: String,
    pub halted: Option<String>,
}

impl Db {
    /// Bytes of the pages file that no tree uses: what is dropped comes back to it, and new pages
    /// are taken from it. Of the whole database.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let e = &self.engine;
        let pages = u64::from(e.pool.store().pages()).saturating_sub(e.space.used());
        pages * e.pool.page_size() as u64
    }

    /// Everything there is to know, now.
    #[must_use]
    pub fn stats(&self) -> StatsSnapshot {
        let e = &self.engine;
        let (pool, redo) = (e.pool.stats(), e.log.stats());
        let (residence, verdict) = (e.pool.residence(), e.checkpointer.verdict());
        let pending = e.pool.pending_pages();
        let admission = e.checkpointer.admission().stats();
        let (data_file_bytes, data_on_disk_bytes) = e.pool.store().file_bytes();
        let (transactions, locks) = (e.registry.stats(), e.context.locks().stats());
        StatsSnapshot {
            commits: e.checkpointer.commits(),
            redo_bytes: e.log.end().0,
            log_end: e.log.end().0,
            log_durable: e.log.durable().0,
            checkpoint: e.control.get().checkpoint.0,
            checkpoint_age_bytes: e.checkpointer.age_bytes(),
            checkpoint_age_limit_bytes: e.checkpointer.age_limit_bytes(),
            checkpoint_age_max_bytes: e.checkpointer.age_max_bytes(),
            log_capacity_bytes: e.log.capacity_bytes(),
            log_writes: redo.writes.get(),
            log_bytes_written: redo.bytes_written.get(),
            log_syncs: redo.syncs.get(),
            log_commit_waits: redo.commit_waits.get(),
            dirty_pages: residence.dirty.saturating_sub(pending),
            pages_in_flight: e.pool.pages_in_flight(),
            pages_pending_redo: pending,
            pool_frames: residence.frames,
            pool_frames_free: residence.free,
            page_size: e.pool.page_size(),
            pages_allocated: e.space.used(),
            data_file_bytes,
            data_on_disk_bytes,
            gives_back: e.pool.store().can_punch() || e.pool.store().room_pages().is_some(),
            page_reads: pool.reads.get(),
            pages_warmed: pool.warmed.get(),
            pages_read_ahead: pool.read_ahead.get(),
            passed_over: pool.passed_over.get(),
            page_evictions: pool.evictions.get(),
            page_writes: PageWrites {
                deadline: pool.writes_deadline.get(),
                free_frames: pool.writes_free_frames.get(),
                idle: pool.writes_idle.get(),
                segment: pool.writes_segment.get(),
                shutdown: pool.writes_shutdown.get(),
            },
            free_frame_waits: pool.free_frame_waits.get(),
            admission_waits: admission.waits.get(),
            admission_wait_micros: admission.wait_micros.get(),
            admission_gate_closed: admission.gate_closed.get(),
            admission_bytes_per_second: verdict.admission_bytes_per_second,
            deadline_pages_per_second: verdict.deadline_pages_per_second,
            capacity_pages_per_second: verdict.capacity_pages_per_second,
            open_transactions: transactions.open,
            losers: e.background.losers() as u64,
            history_transactions: transactions.history,
            snapshots: transactions.snapshots,
            oldest_snapshot_commits: transactions.oldest_snapshot_commits,
            version_bytes: transactions.version_bytes,
            archived_versions: transactions.archived_versions,
            relogged_bytes: e.context.relogged_bytes(),
            locks,
            key_version: e.crypt.as_ref().map_or(0, |crypt| crypt.key_name().version),
            store: e.store_kind,
            segments: e.pool.store().look(),
            scrub: e.scrub.stand(),
            device: e.volume.io_stats(),
            device_description: e.volume.describe(),
            halted: e.halted(),
        }
    }

    /// Forgets the greatest checkpoint age seen so far.
    pub fn reset_peaks(&self) {
        self.engine.checkpointer.reset_peaks();
    }

    /// Visits the declared counters: `pool.reads`, unit, help text, value.
    pub fn visit_counters(&self, visit: &mut dyn FnMut(&str, &'static str, &'static str, u64)) {
        let e = &self.engine;
        let tables: [(&str, &dyn Stats); 5] = [
            ("pool", e.pool.stats()),
            ("scrub", e.pool.scrub_stats()),
            ("space", e.space.stats()),
            ("log", e.log.stats()),
            ("admission", e.checkpointer.admission().stats()),
        ];
        let segments = e.pool.store().counters().map(|counters| ("segments", counters));
        for (owner, table) in tables.into_iter().chain(segments) {
            table.visit(&mut |name, unit, help, value| {
                visit(&format!("{owner}.{name}"), unit, help, value);
            });
        }
    }
}
