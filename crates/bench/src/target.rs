//! The seam between the workloads and a store. Whatever implements these two traits can be
//! measured.
use crate::durability::Durability;
use anyhow::Result;

/// Something whose counters can be looked at while it works.
pub trait Watched: Send + Sync {
    /// What it counts. Called a hundred times a second.
    fn counters(&self) -> Counters;

    /// Forgets the greatest values seen so far (`checkpoint_age_max_bytes`).
    fn reset_peaks(&self);

    /// Whether an imitated disk is as fast as the real one from now on: while a run is prepared,
    /// and while its result is checked. A store that imitates none has nothing to do.
    fn hurry(&self, _on: bool) {}

    /// Where it keeps its pages, and how full that is, in words.
    fn kept_how(&self) -> String {
        "as the store decides".to_owned()
    }

    /// Visits everything that it measures, always in the same order, for reports and the live page.
    /// Called once a second.
    fn visit_metrics(&self, _visit: &mut dyn FnMut(weir::Metric, f64)) {}
}

/// A store that can be measured. Cheap to share between threads.
pub trait Target: Watched {
    /// One ordered map of the store.
    type Table: Table;

    /// The table of that name, if there is one.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn table(&self, name: &str) -> Result<Option<Self::Table>>;

    /// Makes an empty table.
    ///
    /// # Errors
    /// When it exists, or whatever the store reports.
    fn create_table(&self, name: &str) -> Result<Self::Table>;

    /// Removes a table with all its rows.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn drop_table(&self, name: &str) -> Result<()>;

    /// Writes all dirty pages now, so that loading is not counted as part of a run.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn checkpoint(&self) -> Result<()>;
}

/// One ordered map from bytes to bytes, used from many threads at once.
pub trait Table: Clone + Send + Sync {
    /// Puts the key's value into `out`, which is cleared first; false when the key is absent.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool>;

    /// Inserts or replaces; returns when it is as durable as asked.
    ///
    /// # Errors
    /// Whatever the store reports: then it is unknown whether the change will be seen.
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Fills an empty table from entries in key order; returns how many there were.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn bulk_load(&self, sorted: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<u64>;

    /// Visits entries with keys not below `from`, upwards, until `visit` says false.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn scan_up(&self, from: &[u8], visit: &mut Visit<'_>) -> Result<()>;

    /// Visits entries with keys below `before` (`None`: from the last), downwards, until `visit`
    /// says false.
    ///
    /// # Errors
    /// Whatever the store reports.
    fn scan_down(&self, before: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<()>;
}

/// Called with a key and its value; false ends the scan.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// A store's cumulative counts and present levels. A store without one of them leaves it at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Bytes of redo written since opening.
    pub redo_bytes: u64,
    /// Bytes of redo between the oldest change not yet in its page's place and the log's end.
    pub checkpoint_age_bytes: u64,
    /// The age that must never be passed.
    pub checkpoint_age_limit_bytes: u64,
    /// The greatest age since the last [`Watched::reset_peaks`].
    pub checkpoint_age_max_bytes: u64,
    /// The log's capacity: one log wrap.
    pub log_capacity_bytes: u64,
    /// Pages changed in memory and not yet written.
    pub dirty_pages: u64,
    /// Pages that the store's trees occupy.
    pub pages_allocated: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// Pages written, by cause.
    pub page_writes: PageWrites,
    /// Write calls of the log.
    pub log_writes: u64,
    /// Write calls of all files.
    pub device_writes: u64,
    /// Bytes written to all files.
    pub device_bytes_written: u64,
    /// Read calls of all files.
    pub device_reads: u64,
    /// Bytes read from all files.
    pub device_bytes_read: u64,
    /// Sync calls of all files.
    pub device_syncs: u64,
    /// How often a user thread had to wait for a free frame.
    pub free_frame_waits: u64,
    /// How often a user thread was held back by the admission of redo.
    pub admission_waits: u64,
    /// For how long, added up over all threads.
    pub admission_wait_micros: u64,
}

// As `weir::PageWrites`, on purpose: its names are those of the report's JSON, and stores that are
// not Weir fill it as well.
/// Pages written, by the reason for which they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct PageWrites {
    /// So that the checkpoint age stays below its limit.
    pub deadline: u64,
    /// So that frames become free.
    pub free_frames: u64,
    /// Because there was nothing else to do.
    pub idle: u64,
    /// Because their segment is to be free.
    pub segment: u64,
    /// Because the store was closed or asked to write everything.
    pub shutdown: u64,
}

impl PageWrites {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.deadline + self.free_frames + self.idle + self.segment + self.shutdown
    }

    /// Those since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &PageWrites) -> PageWrites {
        PageWrites {
            deadline: self.deadline.saturating_sub(earlier.deadline),
            free_frames: self.free_frames.saturating_sub(earlier.free_frames),
            idle: self.idle.saturating_sub(earlier.idle),
            segment: self.segment.saturating_sub(earlier.segment),
            shutdown: self.shutdown.saturating_sub(earlier.shutdown),
        }
    }
}
