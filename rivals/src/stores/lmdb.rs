//! LMDB, through `lmdb-rkv` (which compiles LMDB 0.9.24 itself).
//!
//! As `lmdb.h` documents its flags. Synced: no flag, so each commit writes its pages and syncs
//! them, then writes and syncs the meta page. Lazy: `MDB_NOSYNC`. There are two stores of it in the
//! tables, because their promises differ. `lmdb` is without `MDB_WRITEMAP`: there `lmdb.h` promises
//! integrity after a system crash where the file system preserves write order. `lmdb-writemap` is
//! with it, "faster and uses fewer mallocs": a lazy commit is then a few stores to memory, and a
//! system crash before the next sync may corrupt the whole file, which no other store here risks.
//! `MDB_NORDAHEAD` is for data larger than memory; not so here. Readers reset and renew one
//! transaction handle per thread, as `mdb_txn_reset` advises.

use std::path::Path;

use anyhow::{Result, bail};
use lmdb::{
    Cursor, Database, DatabaseFlags, Environment, EnvironmentFlags, InactiveTransaction,
    Transaction, WriteFlags,
};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

/// Address space for the map, not memory: 64 GiB.
const MAP_BYTES: usize = 64 << 30;

/// Rows of a transaction of the sorted load.
const BATCH_ROWS: u64 = 100_000;

pub const KNOWN: Known = Known {
    name: "lmdb",
    version: || "0.9.24 (lmdb-rkv)".to_string(),
    setup: "http://www.lmdb.tech/doc/group__mdb.html: no flag for synced commits, MDB_NOSYNC for \
            others; readers renew their transaction handle. Sorted load with MDB_APPEND.",
    limits: "one writer at a time; a lazy commit is as a written one",
    usual: true,
    is_log: |_| false,
    open: |dir, setup| Ok(Box::new(LmdbStore::open(dir, setup, false)?)),
};

pub const KNOWN_WRITEMAP: Known = Known {
    name: "lmdb-writemap",
    setup: "as lmdb, with MDB_WRITEMAP: http://www.lmdb.tech/doc/group__mdb__env.html",
    limits: "one writer at a time; with MDB_NOSYNC a crash of the system may corrupt all of it",
    usual: false,
    open: |dir, setup| Ok(Box::new(LmdbStore::open(dir, setup, true)?)),
    ..KNOWN
};

struct LmdbStore {
    env: Environment,
    db: Database,
    durability: Durability,
    writemap: bool,
}

impl LmdbStore {
    fn open(dir: &Path, setup: Setup, writemap: bool) -> Result<LmdbStore> {
        let mut flags = EnvironmentFlags::empty();
        if setup.durability != Durability::Synced {
            flags |= EnvironmentFlags::NO_SYNC;
        }
        if writemap {
            flags |= EnvironmentFlags::WRITE_MAP;
        }
        let env = Environment::new()
            .set_flags(flags)
            .set_map_size(MAP_BYTES)
            .set_max_readers(setup.threads as u32 + 8)
            .open(dir)?;
        let db = env.create_db(None, DatabaseFlags::empty())?;
        Ok(LmdbStore { env, db, durability: setup.durability, writemap })
    }
}

impl Engine for LmdbStore {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let mut txn = self.env.begin_rw_txn()?;
        for (count, (key, value)) in (1..).zip(rows) {
            txn.put(self.db, &key, &value, WriteFlags::APPEND)?;
            if count % BATCH_ROWS == 0 {
                txn.commit()?;
                txn = self.env.begin_rw_txn()?;
            }
        }
        txn.commit()?;
        self.sync()
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        let idle = Some(self.env.begin_ro_txn()?.reset());
        body(&mut LmdbWorker { store: self, idle })
    }

    fn sync(&self) -> Result<()> {
        Ok(self.env.sync(true)?)
    }

    fn how(&self) -> String {
        match (self.durability, self.writemap) {
            (Durability::Lazy | Durability::Written, true) => {
                "NOSYNC, WRITEMAP: a system crash may corrupt the file"
            }
            (Durability::Lazy | Durability::Written, false) => "NOSYNC",
            (Durability::Synced, true) => "msync of pages and of meta, each commit",
            (Durability::Synced, false) => "fdatasync of pages, then of meta, each commit",
        }
        .to_string()
    }
}

struct LmdbWorker<'a> {
    store: &'a LmdbStore,
    idle: Option<InactiveTransaction<'a>>,
}

impl Worker for LmdbWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(idle) = self.idle.take() else { bail!("lmdb: an earlier renewal failed") };
        let txn = idle.renew()?;
        let found = match txn.get(self.store.db, key) {
            Ok(value) => {
                check(value);
                true
            }
            Err(lmdb::Error::NotFound) => false,
            Err(error) => return Err(error.into()),
        };
        self.idle = Some(txn.reset());
        Ok(found)
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let mut txn = self.store.env.begin_rw_txn()?;
        txn.put(self.store.db, key, &value, WriteFlags::empty())?;
        Ok(txn.commit()?)
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        let mut txn = self.store.env.begin_rw_txn()?;
        for key in gone {
            txn.del(self.store.db, key, None)?;
        }
        for (key, value) in new {
            txn.put(self.store.db, key, value, WriteFlags::empty())?;
        }
        Ok(txn.commit()?)
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let Some(idle) = self.idle.take() else { bail!("lmdb: an earlier renewal failed") };
        let txn = idle.renew()?;
        let mut rows = 0;
        {
            let mut cursor = txn.open_ro_cursor(self.store.db)?;
            for row in cursor.iter_from(from) {
                let (key, value) = row?;
                visit(key, value);
                rows += 1;
                if rows == limit {
                    break;
                }
            }
        }
        self.idle = Some(txn.reset());
        Ok(rows)
    }
}
