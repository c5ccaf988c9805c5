//! A disk in memory, for tests of programs that use a database: it crashes when it is told to, and
//! loses, tears and reorders what was not synced. For the feature `testing`.
use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::db::Db;
use crate::error::OpenError;

/// A disk in memory. Cloning gives another handle of the same.
///
/// ```
/// # fn main() -> Result<(), weirdb::Error> {
/// use weirdb::{Config, testing::SimDisk};
///
/// let mut disk = SimDisk::new(1);
/// for crash in 0..20 {
///     let db = disk.open(&Config::new().cache_bytes(1 << 20))?;
///     let visits = db.open_tree("visits")?;
///     assert_eq!(visits.add("page", 0)?, crash, "what was acknowledged is there");
///     visits.add("page", 1)?;
///     disk = disk.crash(crash as u64);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SimDisk {
    raw: weir::SimVolume,
}

impl SimDisk {
    /// An empty one; what it does to unsynced writes follows from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        SimDisk { raw: weir::SimVolume::new(seed) }
    }

    /// Opens the database on it, and makes it if need be.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, config: &Config) -> Result<Db, OpenError> {
        let raw = config.raw().map_err(OpenError::Config)?;
        let dir = Path::new("a disk in memory");
        Db::opened(dir, config, weir::Db::open_on(Arc::new(self.raw.clone()), raw))
    }

    /// The disk as a power failure at this moment leaves it: synced writes are there, of the others
    /// some. The old one goes on by itself, so that a database that is open on it may be dropped.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        SimDisk { raw: self.raw.crash(seed) }
    }

    /// Fails all that is asked for after so many more writes, as after a power failure; `None`:
    /// never.
    pub fn crash_after(&self, writes: Option<u64>) {
        self.raw.set_crash_after(writes);
    }

    /// How many bytes it has room for; `None`: any.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.raw.set_capacity(bytes);
    }

    /// Writes so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.raw.writes_so_far()
    }
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDisk").field("writes", &self.writes()).finish_non_exhaustive()
    }
}
