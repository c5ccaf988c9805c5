//! What a database says of itself.

/// What a backup holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// Trees.
    pub trees: u64,
    /// Rows of all of them.
    pub rows: u64,
}

/// What opening had to do after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes of log behind the checkpoint.
    pub log_bytes: u64,
    /// Pages that a crash tore, put right.
    pub pages_repaired: u64,
    /// Pages that lack some of the log: they get it when they are first used, or by and by.
    pub pages_pending: u64,
    /// Transactions rolled back.
    pub rolled_back: u64,
    /// Transactions that are prepared, and wait to be decided.
    pub prepared: u64,
    /// Microseconds that opening took.
    pub micros: u64,
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// Each tree.
    pub trees: Vec<TreeCheck>,
    /// All that is not as it must be. Empty: the database is sound.
    pub problems: Vec<String>,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the file that are free.
    pub pages_free: u64,
}

/// What a check found of one tree.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct TreeCheck {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Its pages.
    pub pages: u64,
}

/// What a database says of itself; what counts counts from opening.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Commits.
    pub commits: u64,
    /// Bytes of log written.
    pub log_bytes_written: u64,
    /// Syncs of the log: one may be for many commits.
    pub log_syncs: u64,
    /// The log's capacity, in bytes.
    pub log_capacity_bytes: u64,
    /// Bytes of log that opening would have to read after a crash now.
    pub checkpoint_age_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Pages in use on disk.
    pub pages_used: u64,
    /// Pages that memory has room for.
    pub cache_pages: u64,
    /// Of these, the free ones.
    pub cache_pages_free: u64,
    /// Pages in memory that are changed and not yet written.
    pub dirty_pages: u64,
    /// Pages read.
    pub page_reads: u64,
    /// Pages written.
    pub page_writes: u64,
    /// Times that an iterator passed over rows that cannot be read
    /// ([`Config::force_recovery`](crate::Config::force_recovery)).
    pub passed_over: u64,
    /// Transactions that have changed something and go on.
    pub open_transactions: u64,
    /// Snapshots held by readers and transactions.
    pub snapshots: u64,
    /// How many commits the oldest of them lies back.
    pub oldest_snapshot_commits: u64,
    /// Memory for older versions of rows, in bytes.
    pub version_bytes: u64,
    /// Waits for row locks.
    pub lock_waits: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Bytes read from the device.
    pub device_bytes_read: u64,
    /// Bytes written to the device.
    pub device_bytes_written: u64,
    /// Why the database has halted, if it has.
    pub halted: Option<String>,
}

impl From<weir::StatsSnapshot> for Stats {
    fn from(raw: weir::StatsSnapshot) -> Self {
        Stats {
            commits: raw.commits,
            log_bytes_written: raw.log_bytes_written,
            log_syncs: raw.log_syncs,
            log_capacity_bytes: raw.log_capacity_bytes,
            checkpoint_age_bytes: raw.checkpoint_age_bytes,
            page_bytes: raw.page_size,
            pages_used: raw.pages_allocated,
            cache_pages: raw.pool_frames,
            cache_pages_free: raw.pool_frames_free,
            dirty_pages: raw.dirty_pages,
            page_reads: raw.page_reads,
            page_writes: raw.page_writes.total(),
            passed_over: raw.passed_over,
            open_transactions: raw.open_transactions,
            snapshots: raw.snapshots,
            oldest_snapshot_commits: raw.oldest_snapshot_commits,
            version_bytes: raw.version_bytes,
            lock_waits: raw.locks.waits,
            deadlocks: raw.locks.deadlocks,
            device_bytes_read: raw.device.bytes_read,
            device_bytes_written: raw.device.bytes_written,
            halted: raw.halted,
        }
    }
}
