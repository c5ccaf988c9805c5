//! RocksDB, through its C interface.
//!
//! Set up as the project's wiki says in "Setup Options and Basic Tuning" (general options: dynamic
//! level bytes, more background jobs, 1 MiB bytes_per_sync, bloom filter of 10 bits, one block
//! cache, newest table format), with three choices in its favour for data that fits in memory: the
//! block cache holds everything, blocks keep their default 4 KiB (16 KiB there saves memory, and
//! costs time per point read), and index and filter blocks stay outside the cache (the default). No
//! compression, since the values are random and no other store here compresses.
//!
//! Durability, from "WAL Performance" there: `WriteOptions.sync = true` syncs the WAL once per
//! group of writers; `false` hands the WAL to the operating system at each write;
//! `manual_wal_flush` keeps it in memory until `FlushWAL`, here called once a second.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr;

use anyhow::{Result, bail};

use super::Known;
use super::rocksdb_ffi::*;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

pub const KNOWN: Known = Known {
    name: "rocksdb",
    // Debian 12's package; `c.h` has no call that tells it.
    version: || "librocksdb of this system (Debian 12: 7.8.3)".to_string(),
    setup: "https://github.com/facebook/rocksdb/wiki/Setup-Options-and-Basic-Tuning: dynamic level \
            bytes, 6 background jobs, bytes_per_sync 1 MiB, bloom filter of 10 bits, one block \
            cache larger than the data, table format 5; compression off as everywhere here. \
            Durability: https://github.com/facebook/rocksdb/wiki/WAL-Performance. Loaded in \
            batches, compacted once before it is read.",
    limits: "",
    usual: true,
    is_log: |file| file.ends_with(".log"),
    open: |dir, setup| Ok(Box::new(Rocks::open(dir, setup)?)),
};

/// Rows of a batch of the sorted load.
const BATCH_ROWS: usize = 10_000;

struct Rocks {
    db: *mut rocksdb_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
    durability: Durability,
}

// SAFETY: rocksdb/c.h: "multiple threads can invoke const methods", and DB itself is thread-safe
// (rocksdb/db.h: "A DB is safe for concurrent access from multiple threads without any external
// synchronization"). The option objects are only read after `open`.
unsafe impl Sync for Rocks {}

/// Turns C's error convention (a malloc'd string or null) into a Result.
fn take(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: not null, hence a NUL-terminated string that c.h says we own and free.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; not used afterwards.
    unsafe { rocksdb_free(error.cast()) };
    bail!("rocksdb: {text}")
}

impl Rocks {
    fn open(dir: &Path, setup: Setup) -> Result<Rocks> {
        let path = CString::new(dir.as_os_str().as_encoded_bytes())?;
        let mut error = ptr::null_mut();
        // SAFETY: every object is created, used and destroyed here in the order c.h prescribes. The
        // table options take over the filter policy; the cache is reference-counted inside.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_compression(options, 0);
            rocksdb_options_set_max_background_jobs(options, 6);
            rocksdb_options_set_bytes_per_sync(options, 1 << 20);
            let by_hand = u8::from(setup.durability == Durability::Lazy);
            rocksdb_options_set_manual_wal_flush(options, by_hand);
            rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
            let table = rocksdb_block_based_options_create();
            let cache = rocksdb_cache_create_lru(setup.cache_bytes);
            rocksdb_block_based_options_set_block_cache(table, cache);
            let bloom = rocksdb_filterpolicy_create_bloom_full(10.0);
            rocksdb_block_based_options_set_filter_policy(table, bloom);
            rocksdb_block_based_options_set_format_version(table, 5);
            rocksdb_options_set_block_based_table_factory(options, table);
            let db = rocksdb_open(options, path.as_ptr(), &mut error);
            rocksdb_block_based_options_destroy(table);
            rocksdb_cache_destroy(cache);
            rocksdb_options_destroy(options);
            take(error)?;
            let write = rocksdb_writeoptions_create();
            let synced = setup.durability == Durability::Synced;
            rocksdb_writeoptions_set_sync(write, u8::from(synced));
            let read = rocksdb_readoptions_create();
            Ok(Rocks { db, write, read, durability: setup.durability })
        }
    }

    /// One batch: removes rows, then adds others.
    fn apply(&self, gone: &[Key], new: &[Row]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the batch lives until its destroy, and copies keys and values before each call
        // returns; db and options are alive.
        unsafe {
            let batch = rocksdb_writebatch_create();
            for key in gone {
                rocksdb_writebatch_delete(batch, key.as_ptr().cast(), key.len());
            }
            for (key, value) in new {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                rocksdb_writebatch_put(batch, k, key.len(), v, value.len());
            }
            rocksdb_write(self.db, self.write, batch, &mut error);
            rocksdb_writebatch_destroy(batch);
        }
        take(error)
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: each was created in `open`, is destroyed once, and no borrow of self is left.
        unsafe {
            rocksdb_close(self.db);
            rocksdb_writeoptions_destroy(self.write);
            rocksdb_readoptions_destroy(self.read);
        }
    }
}

impl Engine for Rocks {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        loop {
            batch.clear();
            batch.extend(rows.take(BATCH_ROWS));
            if batch.is_empty() {
                return self.sync();
            }
            self.apply(&[], &batch)?;
        }
    }

    /// In its favour: a load of nothing but new keys is compacted before reads are measured.
    fn after_load(&self) -> Result<()> {
        // SAFETY: null bounds mean the whole key range.
        unsafe { rocksdb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut RocksWorker(self))
    }

    fn sync(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the database is open.
        unsafe { rocksdb_flush_wal(self.db, 1, &mut error) };
        take(error)
    }

    fn sync_every_second(&self) -> bool {
        self.durability == Durability::Lazy
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "manual_wal_flush, FlushWAL(sync) once a second",
            Durability::Written => "WAL written, sync=false",
            Durability::Synced => "WAL, sync=true, group commit",
        }
        .to_string()
    }
}

struct RocksWorker<'a>(&'a Rocks);

impl Worker for RocksWorker<'_> {
    fn read(&mut self, key: &Key, check: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut error = ptr::null_mut();
        // SAFETY: key outlives the call; the slice is valid until its destroy, which is after use.
        unsafe {
            let (k, len) = (key.as_ptr().cast(), key.len());
            let slice = rocksdb_get_pinned(self.0.db, self.0.read, k, len, &mut error);
            take(error)?;
            if slice.is_null() {
                return Ok(false);
            }
            let mut value_len = 0;
            let value = rocksdb_pinnableslice_value(slice, &mut value_len);
            check(std::slice::from_raw_parts(value.cast(), value_len));
            rocksdb_pinnableslice_destroy(slice);
        }
        Ok(true)
    }

    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: RocksDB copies key and value before it returns.
        unsafe {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            let (db, options) = (self.0.db, self.0.write);
            rocksdb_put(db, options, k, key.len(), v, value.len(), &mut error);
        }
        take(error)
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        self.0.apply(gone, new)
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut rows = 0;
        let mut error = ptr::null_mut();
        // SAFETY: key and value pointers are valid until the iterator moves, which is after
        // `visit`.
        unsafe {
            let iterator = rocksdb_create_iterator(self.0.db, self.0.read);
            rocksdb_iter_seek(iterator, from.as_ptr().cast(), from.len());
            while rocksdb_iter_valid(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = rocksdb_iter_key(iterator, &mut key_len);
                let value = rocksdb_iter_value(iterator, &mut value_len);
                visit(
                    std::slice::from_raw_parts(key.cast(), key_len),
                    std::slice::from_raw_parts(value.cast(), value_len),
                );
                rows += 1;
                if rows == limit {
                    break;
                }
                rocksdb_iter_next(iterator);
            }
            rocksdb_iter_get_error(iterator, &mut error);
            rocksdb_iter_destroy(iterator);
        }
        take(error)?;
        Ok(rows)
    }
}
