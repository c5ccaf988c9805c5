//! The interface as a program uses it.
mod compact;
mod errors;
mod hostile;
mod keys;
mod media;
#[cfg(target_env = "gnu")]
mod memory;
mod misuse;
mod model;
mod page_backup;
mod promises;
mod readers;
mod rescue;
#[cfg(feature = "server")]
mod server;
mod signatures;
mod typed;
mod writers;

use weirdb::{Config, Db, Durability};

/// Small, and quick to commit.
pub(crate) fn config() -> Config {
    Config::new().cache_bytes(4 << 20).log_bytes(4 << 20).durability(Durability::Lazy)
}

/// A new database, and the directory that goes with it.
pub(crate) fn new() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = config().open(dir.path().join("db")).expect("opened");
    (dir, db)
}
