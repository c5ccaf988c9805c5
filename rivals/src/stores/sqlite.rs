//! SQLite, through `rusqlite` and the system's libsqlite3.
//!
//! sqlite.org/wal.html: WAL mode; `synchronous=FULL` syncs the WAL at each commit, `NORMAL` only at
//! a checkpoint (lazy: consistent after a power failure, without the last commits). A checkpoint
//! each 16,384 pages (64 MiB of WAL), where section 3 there trades read speed against write speed.
//! One connection per thread with statements prepared once, the key as the table's INTEGER PRIMARY
//! KEY (its rowid, the fastest key it has), the whole file mapped (sqlite.org/mmap.html). SQLite
//! allows one writer at a time and lets the others poll; a lock in front of it serves them better,
//! so they get one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use rusqlite::{Connection, OpenFlags, Statement};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

pub const KNOWN: Known = Known {
    name: "sqlite",
    version: || rusqlite::version().to_string(),
    setup: "https://www.sqlite.org/wal.html: WAL, synchronous=FULL for synced and NORMAL for \
            others, a checkpoint each 64 MiB of WAL; the file mapped \
            (https://www.sqlite.org/mmap.html), INTEGER PRIMARY KEY, prepared statements. Sorted \
            load in one transaction.",
    limits: "one writer at a time; a lazy commit is as a written one",
    usual: true,
    is_log: |file| file.ends_with("-wal") || file.ends_with("-shm"),
    open: |dir, setup| Ok(Box::new(SqliteStore::open(dir, setup)?)),
};

/// Integers are signed here, keys are not: the order stays the same.
fn number(key: &Key) -> i64 {
    (u64::from_be_bytes(*key) ^ (1 << 63)) as i64
}

fn key_of(number: i64) -> Key {
    (number as u64 ^ (1 << 63)).to_be_bytes()
}

struct SqliteStore {
    path: PathBuf,
    setup: Setup,
    /// Kept open so that the WAL is not deleted each time the last worker leaves.
    main: Mutex<Connection>,
    writer: Mutex<()>,
}

impl SqliteStore {
    fn open(dir: &Path, setup: Setup) -> Result<SqliteStore> {
        let path = dir.join("rows.sqlite");
        let main = connect(&path, setup)?;
        main.execute_batch("CREATE TABLE IF NOT EXISTS rows (k INTEGER PRIMARY KEY, v BLOB)")?;
        Ok(SqliteStore { path, setup, main: Mutex::new(main), writer: Mutex::new(()) })
    }
}

fn connect(path: &Path, setup: Setup) -> Result<Connection> {
    // NO_MUTEX: no connection is ever shared by two threads at once.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let synchronous = match setup.durability {
        Durability::Lazy | Durability::Written => "NORMAL",
        Durability::Synced => "FULL",
    };
    // Shared by all connections, as one cache is in the other stores; in KiB when negative.
    let cache_kib = setup.cache_bytes / 1024 / (setup.threads + 1);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA cache_size=-{cache_kib};
         PRAGMA mmap_size={}; PRAGMA wal_autocheckpoint=16384; PRAGMA busy_timeout=60000;",
        setup.cache_bytes
    ))?;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    ensure!(mode == "wal", "sqlite: journal mode is {mode}, not wal");
    Ok(connection)
}

impl Engine for SqliteStore {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let mut main = self.main.lock().unwrap_or_else(PoisonError::into_inner);
        let txn = main.transaction()?;
        {
            let mut insert = txn.prepare("INSERT INTO rows (k, v) VALUES (?1, ?2)")?;
            for (key, value) in rows {
                insert.execute((number(&key), value.as_slice()))?;
            }
        }
        txn.commit()?;
        main.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        let connection = connect(&self.path, self.setup)?;
        let scan = "SELECT k, v FROM rows WHERE k >= ?1 ORDER BY k LIMIT ?2";
        body(&mut SqliteWorker {
            store: self,
            connection: &connection,
            select: connection.prepare("SELECT v FROM rows WHERE k = ?1")?,
            update: connection.prepare("UPDATE rows SET v = ?2 WHERE k = ?1")?,
            insert: connection.prepare("INSERT INTO rows (k, v) VALUES (?1, ?2)")?,
            delete: connection.prepare("DELETE FROM rows WHERE k = ?1")?,
            scan: connection.prepare(scan)?,
        })
    }

    fn sync(&self) -> Result<()> {
        let main = self.main.lock().unwrap_or_else(PoisonError::into_inner);
        main.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn how(&self) -> String {
        match self.setup.durability {
            Durability::Lazy | Durability::Written => "WAL written, synchronous=NORMAL",
            Durability::Synced => "WAL, synchronous=FULL",
        }
        .to_string()
    }
}

struct SqliteWorker<'a> {
    store: &'a SqliteStore,
    connection: &'a Connection,
    select: Statement<'a>,
    update: Statement<'a>,
    insert: Statement<'a>,
    delete: Statement<'a>,
    scan: Statement<'a>,
}

impl Worker for SqliteWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut found = self.select.query([number(key)])?;
        match found.next()? {
            Some(row) => {
                check(row.get_ref(0)?.as_blob()?);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let _turn = self.store.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.update.execute((number(key), value))?;
        ensure!(changed == 1, "sqlite: {changed} rows changed, not 1");
        Ok(())
    }

    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let _turn = self.store.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert.execute((number(key), value))?;
        Ok(())
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        let _turn = self.store.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let txn = self.connection.unchecked_transaction()?;
        for key in gone {
            self.delete.execute([number(key)])?;
        }
        for (key, value) in new {
            self.insert.execute((number(key), value.as_slice()))?;
        }
        Ok(txn.commit()?)
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        // A negative limit is none.
        let limit = i64::try_from(limit).unwrap_or(-1);
        let mut found = self.scan.query((number(from), limit))?;
        let mut rows = 0;
        while let Some(row) = found.next()? {
            visit(&key_of(row.get(0)?), row.get_ref(1)?.as_blob()?);
            rows += 1;
        }
        Ok(rows)
    }
}
