//! Weir with the memory that every store gets and a log of 1 GiB, which is what RocksDB's files and
//! LMDB's and redb's copied pages may grow to as well; nothing else is set.

use std::path::Path;

use anyhow::Result;
use weir::{Config, Db, Durability as WeirDurability, Tree};

use crate::engine::{Durability, Engine, Key, Setup, Worker};

/// The log's capacity.
const LOG_BYTES: u64 = 1 << 30;

pub struct WeirStore {
    db: Db,
    tree: Tree,
    durability: Durability,
}

impl WeirStore {
    pub fn open(dir: &Path, setup: Setup) -> Result<WeirStore> {
        let config = Config {
            pool_bytes: setup.cache_bytes as u64,
            log_bytes: LOG_BYTES,
            ..Config::default()
        };
        let db = Db::open(dir, config)?;
        let tree = match db.tree("rows")? {
            Some(tree) => tree,
            None => db.create_tree("rows")?,
        };
        Ok(WeirStore { db, tree, durability: setup.durability })
    }
}

impl Engine for WeirStore {
    fn load(&self, rows: &mut dyn Iterator<Item = (Key, Vec<u8>)>) -> Result<()> {
        self.tree.bulk_load(rows.map(|(key, value)| (key.to_vec(), value)))?;
        Ok(self.db.checkpoint()?)
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        let durability = match self.durability {
            Durability::Lazy => WeirDurability::Lazy,
            Durability::Synced => WeirDurability::Synced,
        };
        body(&mut WeirWorker { tree: self.tree.clone(), durability, value: Vec::new() })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut cursor = self.tree.cursor();
        let mut rows = 0;
        let mut on = cursor.seek_first()?;
        let mut key = Vec::new();
        while on {
            key.clear();
            key.extend_from_slice(cursor.key());
            visit(&key, cursor.value()?);
            rows += 1;
            on = cursor.next()?;
        }
        Ok(rows)
    }

    /// Lazy commits are written and synced about once a second without being asked.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "log (1 GiB) written and synced once a second",
            Durability::Synced => "log (1 GiB) synced, group commit",
        }
        .to_string()
    }
}

struct WeirWorker {
    tree: Tree,
    durability: WeirDurability,
    value: Vec<u8>,
}

impl Worker for WeirWorker {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let found = self.tree.get_into(key, &mut self.value)?;
        if found {
            check(&self.value);
        }
        Ok(found)
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.tree.put(key, value, self.durability)?)
    }
}
