//! Weir with the memory that every store gets and a log of 1 GiB, which is what RocksDB's files and
//! LMDB's and redb's copied pages may grow to as well; nothing else is set.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use weir::{Batch, Config, Cursor, Db, Durability as WeirDurability, StoreKind, Tree};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

/// The log's capacity.
const LOG_BYTES: u64 = 1 << 30;

pub const KNOWN: Known = Known {
    name: "weir",
    version: || "this tree".to_string(),
    setup: "the memory, and a log of 1 GiB; nothing else (crates/weir/src/config.rs: nothing else \
            is needed). Sorted load by Tree::bulk_load; single rows by Tree::put.",
    limits: "",
    usual: true,
    is_log: |file| file.starts_with("redo-") || file.starts_with("doublewrite-"),
    open: |dir, setup| Ok(Box::new(WeirStore::open(dir, setup, StoreKind::InPlace)?)),
};

/// The same with its other page store.
pub const KNOWN_SEGMENTS: Known = Known {
    name: "weir-segments",
    setup: "as weir, with pages in segments (docs/decisions/log-structured.md)",
    usual: false,
    open: |dir, setup| Ok(Box::new(WeirStore::open(dir, setup, StoreKind::Log)?)),
    ..KNOWN
};

struct WeirStore {
    db: Option<Db>,
    tree: Tree,
    durability: WeirDurability,
}

impl WeirStore {
    fn open(dir: &Path, setup: Setup, store: StoreKind) -> Result<WeirStore> {
        let config = Config {
            pool_bytes: setup.cache_bytes as u64,
            log_bytes: LOG_BYTES,
            store: Some(store),
            ..Config::default()
        };
        let db = Db::open(dir, config)?;
        let tree = db.open_tree("rows")?;
        let durability = match setup.durability {
            Durability::Lazy => WeirDurability::Lazy,
            Durability::Written => WeirDurability::Written,
            Durability::Synced => WeirDurability::Synced,
        };
        Ok(WeirStore { db: Some(db), tree, durability })
    }
}

impl Drop for WeirStore {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.db.take().map(Db::close) {
            eprintln!("closing weir: {error}");
        }
    }
}

impl Engine for WeirStore {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        self.tree.bulk_load(rows)?;
        Ok(())
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut WeirWorker {
            store: self,
            value: Vec::new(),
            batch: Batch::new(),
            cursor: self.tree.cursor(),
        })
    }

    /// A synced commit makes all earlier ones durable as well.
    fn sync(&self) -> Result<()> {
        if let Some(db) = &self.db {
            let last = db.open_tree("synced")?;
            last.put(b"synced", b"", WeirDurability::Synced)?;
        }
        Ok(())
    }

    fn how(&self) -> String {
        match self.durability {
            WeirDurability::Lazy => "log written and synced once a second",
            WeirDurability::Written => "log written at each commit",
            WeirDurability::Synced => "log synced, group commit",
        }
        .to_string()
    }
}

struct WeirWorker<'a> {
    store: &'a WeirStore,
    value: Vec<u8>,
    batch: Batch,
    cursor: Cursor,
}

impl Worker for WeirWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let found = self.store.tree.get_into(key, &mut self.value)?;
        if found {
            check(&self.value);
        }
        Ok(found)
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.store.tree.put(key, value, self.store.durability)?)
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        self.batch.clear();
        for key in gone {
            self.batch.delete(&self.store.tree, key);
        }
        for (key, value) in new {
            self.batch.put(&self.store.tree, key, value);
        }
        if let Some(db) = &self.store.db {
            db.write(&self.batch, self.store.durability)?;
        }
        Ok(())
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut rows = 0;
        self.cursor.expect_rows(limit);
        if self.cursor.seek(from)? {
            self.cursor.visit(|key, value| {
                visit(key, value);
                rows += 1;
                if rows == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        Ok(rows)
    }
}
