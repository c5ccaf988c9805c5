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
//! group of writers; `false` hands the WAL to the operating system at each write.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr;

use anyhow::{Result, bail};

use crate::engine::{Durability, Engine, Key, Setup, Worker};
use crate::rocksdb_ffi::*;

/// Debian 12's package; `c.h` has no call that tells it.
pub const VERSION: &str = "librocksdb of this system (Debian 12: 7.8.3)";

pub struct Rocks {
    db: *mut rocksdb_t,
    write: *mut rocksdb_writeoptions_t,
    write_unsynced: *mut rocksdb_writeoptions_t,
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
    pub fn open(dir: &Path, setup: Setup) -> Result<Rocks> {
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
            let write_unsynced = rocksdb_writeoptions_create();
            let read = rocksdb_readoptions_create();
            Ok(Rocks { db, write, write_unsynced, read, durability: setup.durability })
        }
    }

    fn write_batch(&self, batch: *mut rocksdb_writebatch_t) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: db, options and batch are alive; the batch is cleared only after the write.
        unsafe {
            rocksdb_write(self.db, self.write_unsynced, batch, &mut error);
            rocksdb_writebatch_clear(batch);
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
            rocksdb_writeoptions_destroy(self.write_unsynced);
            rocksdb_readoptions_destroy(self.read);
        }
    }
}

impl Engine for Rocks {
    fn load(&self, rows: &mut dyn Iterator<Item = (Key, Vec<u8>)>) -> Result<()> {
        // SAFETY: created here, destroyed below.
        let batch = unsafe { rocksdb_writebatch_create() };
        let mut pending = 0;
        let mut result = Ok(());
        for (key, value) in rows {
            // SAFETY: the batch copies both byte ranges before it returns.
            unsafe {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                rocksdb_writebatch_put(batch, k, key.len(), v, value.len());
            }
            pending += 1;
            if pending == 10_000 {
                pending = 0;
                result = result.and_then(|()| self.write_batch(batch));
            }
        }
        result = result.and_then(|()| self.write_batch(batch));
        // SAFETY: created above; nothing uses it later.
        unsafe { rocksdb_writebatch_destroy(batch) };
        result?;
        self.sync()?;
        // In its favour: a load of nothing but new keys is compacted before reads are measured.
        // SAFETY: null bounds mean the whole key range.
        unsafe { rocksdb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut RocksWorker(self))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut rows = 0;
        let mut error = ptr::null_mut();
        // SAFETY: key and value pointers are valid until the iterator moves, which is after
        // `visit`.
        unsafe {
            let iterator = rocksdb_create_iterator(self.db, self.read);
            rocksdb_iter_seek_to_first(iterator);
            while rocksdb_iter_valid(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = rocksdb_iter_key(iterator, &mut key_len);
                let value = rocksdb_iter_value(iterator, &mut value_len);
                visit(
                    std::slice::from_raw_parts(key.cast(), key_len),
                    std::slice::from_raw_parts(value.cast(), value_len),
                );
                rows += 1;
                rocksdb_iter_next(iterator);
            }
            rocksdb_iter_get_error(iterator, &mut error);
            rocksdb_iter_destroy(iterator);
        }
        take(error)?;
        Ok(rows)
    }

    fn sync(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the database is open.
        unsafe { rocksdb_flush_wal(self.db, 1, &mut error) };
        take(error)
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "WAL written, sync=false",
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
}
