//! redb.
//!
//! As its documentation of `Builder` and `Durability` says: a cache larger than the data; synced is
//! `Durability::Immediate` (the default, one-phase commit); lazy is `Durability::None`, whose pages
//! are only freed, and whose commits are only persisted, by a later durable commit: hence one
//! durable commit a second.

use std::path::Path;

use anyhow::Result;
use redb::{Database, Durability as RedbDurability, ReadableDatabase};
use redb::{TableDefinition, WriteTransaction};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

const TABLE: TableDefinition<'static, &[u8; 8], &[u8]> = TableDefinition::new("rows");

pub const KNOWN: Known = Known {
    name: "redb",
    version: || "4.4 (see Cargo.lock)".to_string(),
    setup: "cache larger than the data, the rest as it comes: \
            https://docs.rs/redb/latest/redb/struct.Builder.html; Durability::Immediate for \
            synced, None with one Immediate a second for lazy: \
            https://docs.rs/redb/latest/redb/enum.Durability.html. Sorted load in one transaction.",
    limits: "one writer at a time; no commit that is written and not synced",
    usual: true,
    is_log: |_| false,
    open: |dir, setup| Ok(Box::new(RedbStore::open(dir, setup)?)),
};

struct RedbStore {
    db: Database,
    durability: Durability,
}

impl RedbStore {
    fn open(dir: &Path, setup: Setup) -> Result<RedbStore> {
        let mut builder = Database::builder();
        builder.set_cache_size(setup.cache_bytes);
        let db = builder.create(dir.join("rows.redb"))?;
        let store = RedbStore { db, durability: setup.durability };
        // Readers want the table to exist.
        let txn = store.begin(Durability::Synced)?;
        txn.open_table(TABLE)?;
        txn.commit()?;
        Ok(store)
    }

    fn begin(&self, durability: Durability) -> Result<WriteTransaction> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(match durability {
            Durability::Lazy => RedbDurability::None,
            Durability::Written | Durability::Synced => RedbDurability::Immediate,
        })?;
        Ok(txn)
    }
}

impl Engine for RedbStore {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let txn = self.begin(Durability::Synced)?;
        {
            let mut table = txn.open_table(TABLE)?;
            for (key, value) in rows {
                table.insert(&key, value.as_slice())?;
            }
        }
        Ok(txn.commit()?)
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut RedbWorker(self))
    }

    fn sync(&self) -> Result<()> {
        Ok(self.begin(Durability::Synced)?.commit()?)
    }

    fn sync_every_second(&self) -> bool {
        self.durability == Durability::Lazy
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "Durability::None, one Immediate a second",
            Durability::Written | Durability::Synced => "Durability::Immediate",
        }
        .to_string()
    }
}

struct RedbWorker<'a>(&'a RedbStore);

impl Worker for RedbWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.0.db.begin_read()?.open_table(TABLE)?;
        match table.get(key)? {
            Some(value) => {
                check(value.value());
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let txn = self.0.begin(self.0.durability)?;
        txn.open_table(TABLE)?.insert(key, value)?;
        Ok(txn.commit()?)
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        let txn = self.0.begin(self.0.durability)?;
        {
            let mut table = txn.open_table(TABLE)?;
            for key in gone {
                table.remove(key)?;
            }
            for (key, value) in new {
                table.insert(key, value.as_slice())?;
            }
        }
        Ok(txn.commit()?)
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let table = self.0.db.begin_read()?.open_table(TABLE)?;
        let mut rows = 0;
        for row in table.range::<&[u8; 8]>(from..)? {
            let (key, value) = row?;
            visit(key.value(), value.value());
            rows += 1;
            if rows == limit {
                break;
            }
        }
        Ok(rows)
    }
}
