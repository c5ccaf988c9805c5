//! What every store must do here: the narrowest interface that lets one driver run them all.

use std::path::Path;

use anyhow::Result;

/// Eight big-endian bytes, so that byte order and number order agree.
pub type Key = [u8; 8];

/// What a commit has promised by the time it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a crash of the process; a power failure may take the last of them.
    Lazy,
    /// It survives a power failure.
    Synced,
}

/// Settings that every store gets alike.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Memory a store may use to cache data, bytes. Larger than the data in every published table.
    pub cache_bytes: usize,
    /// Threads that will call it at once.
    pub threads: usize,
    pub durability: Durability,
}

/// One store, open.
pub trait Engine: Sync {
    /// Adds rows in ascending key order; called once, on an empty store. Durable on return.
    fn load(&self, rows: &mut dyn Iterator<Item = (Key, Vec<u8>)>) -> Result<()>;

    /// Calls `body` with this thread's own handle. By callback, so that an engine can keep prepared
    /// statements and their connection together on the stack.
    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()>;

    /// Visits every row in key order; returns how many there were.
    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64>;

    /// Makes every lazy commit so far durable. A store that does so by itself does nothing here.
    fn sync(&self) -> Result<()>;

    /// Whether the store must be synced about once a second even when the user did not ask for it.
    fn sync_required(&self) -> bool {
        false
    }

    /// How commits were made durable in this run, in a few words for the table.
    fn how(&self) -> String;
}

/// One thread's handle.
pub trait Worker {
    /// One point read in a snapshot of its own; `check` sees the value in place. False: no such
    /// row.
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// One transaction that replaces one row's value.
    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()>;
}

/// Opens the store called `name` in `dir`, creating it if there is none.
pub fn open(name: &str, dir: &Path, setup: Setup) -> Result<Box<dyn Engine>> {
    std::fs::create_dir_all(dir)?;
    Ok(match name {
        "rocksdb" => Box::new(crate::rocksdb::Rocks::open(dir, setup)?),
        "lmdb" => Box::new(crate::lmdb_store::LmdbStore::open(dir, setup, false)?),
        "lmdb-writemap" => Box::new(crate::lmdb_store::LmdbStore::open(dir, setup, true)?),
        "redb" => Box::new(crate::redb_store::RedbStore::open(dir, setup)?),
        "sqlite" => Box::new(crate::sqlite_store::SqliteStore::open(dir, setup)?),
        #[cfg(feature = "weir")]
        "weir" => Box::new(crate::weir_store::WeirStore::open(dir, setup)?),
        #[cfg(not(feature = "weir"))]
        "weir" => anyhow::bail!("built without Weir; build with --features weir"),
        other => anyhow::bail!(
            "unknown engine {other:?}: rocksdb, lmdb, lmdb-writemap, redb, sqlite or weir"
        ),
    })
}

/// The version of each library in use, for the head of the report.
pub fn version(name: &str) -> String {
    match name {
        "rocksdb" => crate::rocksdb::VERSION.to_string(),
        "lmdb" | "lmdb-writemap" => crate::lmdb_store::version(),
        "redb" => "4.4 (see Cargo.lock)".to_string(),
        "sqlite" => rusqlite::version().to_string(),
        _ => "this tree".to_string(),
    }
}
