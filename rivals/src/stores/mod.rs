//! The stores: what they are called, how each is opened, and what their documentation says.

mod fjall;
mod lmdb;
mod redb;
mod rocksdb;
mod rocksdb_ffi;
mod sqlite;
mod weir;
#[cfg(feature = "wiredtiger")]
mod wiredtiger;

use std::path::Path;

use anyhow::{Result, bail};

use crate::engine::{Durability, Engine, Setup};

/// What is known of a store without opening it.
pub struct Known {
    pub name: &'static str,
    /// The library in use.
    pub version: fn() -> String,
    /// How it is set up here, and where its documentation recommends that.
    pub setup: &'static str,
    /// What it cannot do, as far as it matters here.
    pub limits: &'static str,
    /// Whether it is run unless asked for by name.
    pub usual: bool,
    /// Whether a file of this name is a log or journal, which is there whatever the data is.
    pub is_log: fn(&str) -> bool,
    open: fn(&Path, Setup) -> Result<Box<dyn Engine>>,
}

/// All that this program was built with, in the order in which they take turns.
pub const ALL: &[Known] = &[
    weir::KNOWN,
    weir::KNOWN_SEGMENTS,
    rocksdb::KNOWN,
    #[cfg(feature = "wiredtiger")]
    wiredtiger::KNOWN,
    lmdb::KNOWN,
    lmdb::KNOWN_WRITEMAP,
    redb::KNOWN,
    fjall::KNOWN,
    sqlite::KNOWN,
];

/// The store of this name.
///
/// # Errors
/// Which ones there are.
pub fn find(name: &str) -> Result<&'static Known> {
    match ALL.iter().find(|known| known.name == name) {
        Some(known) => Ok(known),
        None => bail!("unknown engine {name:?}; there are {}", names().join(", ")),
    }
}

/// Whether it is Weir, with either page store: no rival of itself.
pub fn is_weir(name: &str) -> bool {
    [weir::KNOWN.name, weir::KNOWN_SEGMENTS.name].contains(&name)
}

/// The names of all.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|known| known.name).collect()
}

/// Opens the store called `name` in `dir`, creating it if there is none.
pub fn open(name: &str, dir: &Path, setup: Setup) -> Result<Box<dyn Engine>> {
    let known = find(name)?;
    std::fs::create_dir_all(dir)?;
    (known.open)(dir, setup)
}

/// Whether the store offers this durability at all.
pub fn offers(name: &str, durability: Durability) -> bool {
    // redb persists a transaction with `Immediate`, or with the next one that is (3.0 removed
    // `Eventual`): nothing in between.
    !(name == "redb" && durability == Durability::Written)
}
