//! fjall, an LSM tree in Rust.
//!
//! As its documentation says: a block cache that holds the data ("or more if the data set fully
//! fits into memory", `Builder::cache_size`), filters set up so that reads are for rows that exist
//! (`expect_point_read_hits`), blocks and journal not compressed as nowhere else here. Its sorted
//! load is `Keyspace::start_ingestion`. Each synced commit calls `persist` (`PersistMode`); the
//! journal is synced under its lock, one commit at a time. A keyspace keeps the settings that it
//! was made with, hence `manual_journal_persist` always, and `persist` by hand for each durability.

use std::path::Path;

use anyhow::Result;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

pub const KNOWN: Known = Known {
    name: "fjall",
    version: || "3.1 (see Cargo.lock)".to_string(),
    setup: "block cache larger than the data, expect_point_read_hits, no compression: \
            https://docs.rs/fjall/latest/fjall/struct.KeyspaceCreateOptions.html; durability by \
            PersistMode and manual_journal_persist: \
            https://docs.rs/fjall/latest/fjall/enum.PersistMode.html. Sorted load by ingestion.",
    limits: "synced commits do not share a sync",
    usual: true,
    is_log: |file| file.ends_with(".jnl"),
    open: |dir, setup| Ok(Box::new(FjallStore::open(dir, setup)?)),
};

struct FjallStore {
    db: Database,
    rows: Keyspace,
    durability: Durability,
}

impl FjallStore {
    fn open(dir: &Path, setup: Setup) -> Result<FjallStore> {
        let db = Database::builder(dir)
            .cache_size(setup.cache_bytes as u64)
            .journal_compression(CompressionType::None)
            .manual_journal_persist(true)
            .open()?;
        let rows = db.keyspace("rows", || {
            KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
                .expect_point_read_hits(true)
                .manual_journal_persist(true)
        })?;
        Ok(FjallStore { db, rows, durability: setup.durability })
    }

    /// What a commit has to do about the journal.
    fn mode(&self) -> Option<PersistMode> {
        match self.durability {
            Durability::Lazy => None,
            Durability::Written => Some(PersistMode::Buffer),
            Durability::Synced => Some(PersistMode::SyncData),
        }
    }
}

impl Engine for FjallStore {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let mut ingestion = self.rows.start_ingestion()?;
        for (key, value) in rows {
            ingestion.write(key, value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn after_load(&self) -> Result<()> {
        self.rows.rotate_memtable_and_wait()?;
        Ok(self.rows.major_compact()?)
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut FjallWorker(self))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn sync_every_second(&self) -> bool {
        self.durability == Durability::Lazy
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "manual_journal_persist, SyncData once a second",
            Durability::Written => "journal written at each commit (Buffer)",
            Durability::Synced => "SyncData at each commit",
        }
        .to_string()
    }
}

struct FjallWorker<'a>(&'a FjallStore);

impl Worker for FjallWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.0.rows.get(key)? {
            Some(value) => {
                check(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.0.rows.insert(*key, value)?;
        if let Some(mode) = self.0.mode() {
            self.0.db.persist(mode)?;
        }
        Ok(())
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        let mut batch = self.0.db.batch().durability(self.0.mode());
        for key in gone {
            batch.remove(&self.0.rows, *key);
        }
        for (key, value) in new {
            batch.insert(&self.0.rows, *key, value.as_slice());
        }
        Ok(batch.commit()?)
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut rows = 0;
        for row in self.0.rows.range(*from..) {
            let (key, value) = row.into_inner()?;
            visit(&key, &value);
            rows += 1;
            if rows == limit {
                break;
            }
        }
        Ok(rows)
    }
}
