//! What every store must do here: the narrowest interface that lets one driver run them all.

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Eight big-endian bytes, so that byte order and number order agree.
pub type Key = [u8; 8];

/// A row to be written.
pub type Row = (Key, Vec<u8>);

/// What a commit has promised by the time it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The store stays whole; a crash, even of the process alone, may take the last second.
    Lazy,
    /// It survives a crash of the process; a power failure may take the last of them.
    Written,
    /// It survives a power failure.
    Synced,
}

impl Durability {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Lazy => "lazy",
            Durability::Written => "written",
            Durability::Synced => "synced",
        }
    }
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

/// One store, open. Dropping it closes it in order.
pub trait Engine: Sync {
    /// Adds rows in ascending key order, by the way that its documentation recommends for that;
    /// called once, on an empty store. Durable on return.
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()>;

    /// What its documentation recommends between a load and the first reads; not measured.
    fn after_load(&self) -> Result<()> {
        Ok(())
    }

    /// Calls `body` with this thread's own handle. By callback, so that an engine can keep prepared
    /// statements and their connection together on the stack.
    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()>;

    /// Makes every commit so far durable.
    fn sync(&self) -> Result<()>;

    /// Whether a thread must call [`Engine::sync`] about once a second for its lazy commits to be
    /// as durable as [`Durability::Lazy`] says: nothing of it does so by itself.
    fn sync_every_second(&self) -> bool {
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

    /// One transaction that adds a row which is not there.
    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.update(key, value)
    }

    /// One transaction that removes rows, then adds others which are not there.
    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()>;

    /// Visits at most `limit` rows in key order from the first that is not below `from`; returns
    /// how many.
    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64>;
}
