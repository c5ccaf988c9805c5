//! How far the log of a given size may fill in each version, and the points on the way there.

/// Points of the checkpoint age, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What percentages of the log (low-water marks) are taken of.
    pub capacity: u64,
    /// From here on pages are written harder, by which thread depends on the version.
    pub async_age: u64,
    /// From here on writers wait for pages to be written (or the cleaner no longer sleeps).
    pub sync_age: u64,
    /// Never beyond: writers wait for a checkpoint.
    pub max_age: u64,
    /// Reserve for what is being written by running threads, where the version names it.
    pub margin: u64,
}

/// What a thread may add to the log at once, in pages.
const PAGES_PER_THREAD: u64 = 4;
/// Threads that are there besides those of users.
const OTHER_THREADS: u64 = 10;
/// Room for the checkpoint itself, in pages.
const EXTRA_PAGES: u64 = 8;
/// The head of a log file.
const FILE_HEADER_BYTES: u64 = 2048;

impl Limits {
    /// MySQL 4.0 to 5.7 and XtraDB: a tenth is kept free twice, about 0.81 of the log are left.
    #[must_use]
    pub fn classic(log_bytes: u64, page_bytes: u64, threads: u64) -> Self {
        let capacity = log_bytes - log_bytes / 10;
        let free = (PAGES_PER_THREAD * (OTHER_THREADS + threads) + EXTRA_PAGES) * page_bytes;
        let margin = capacity.saturating_sub(free);
        let max_age = margin - margin / 10;
        Limits {
            capacity,
            async_age: max_age - max_age / 8,
            sync_age: max_age - max_age / 16,
            max_age,
            margin: 0,
        }
    }

    /// MariaDB 10.5 on: as before, with a fixed reserve for threads.
    #[must_use]
    pub fn mariadb(log_bytes: u64, page_bytes: u64) -> Self {
        let usable = log_bytes.saturating_sub(FILE_HEADER_BYTES);
        let capacity = usable - usable / 10;
        let reserve = (PAGES_PER_THREAD * OTHER_THREADS + EXTRA_PAGES) * page_bytes;
        let margin = capacity.saturating_sub(reserve);
        let max_age = margin - margin / 10;
        Limits { capacity, async_age: max_age - max_age / 8, sync_age: max_age, max_age, margin: 0 }
    }

    /// MySQL 8.0 before 8.0.30. Seed 0's "Max Checkpoint Age" of 16.61 of 20 GiB is `async_age`.
    #[must_use]
    pub fn mysql_8(log_bytes: u64) -> Self {
        let max_age = (log_bytes as f64 * 0.95) as u64;
        Limits {
            capacity: max_age,
            async_age: max_age - max_age / 8,
            sync_age: max_age - max_age / 16,
            max_age,
            margin: 0,
        }
    }

    /// MySQL 8.0.30 on: 32 files, of which two are kept, and a tenth of one more.
    #[must_use]
    pub fn redo_capacity(log_bytes: u64, page_bytes: u64, threads: u64) -> Self {
        let file = log_bytes / 32;
        let hard = (30 * file).saturating_sub(30 * FILE_HEADER_BYTES + file / 10);
        let soft = (hard as f64 * 0.95) as u64;
        let margin = PAGES_PER_THREAD * page_bytes * threads + soft / 20;
        let max_age = soft.saturating_sub(margin);
        Limits {
            capacity: max_age,
            async_age: (soft - soft / 8).saturating_sub(margin),
            sync_age: (soft - soft / 16).saturating_sub(margin),
            max_age,
            margin,
        }
    }
}
