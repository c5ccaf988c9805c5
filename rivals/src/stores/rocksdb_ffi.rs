//! The few functions of `rocksdb/c.h` that are used here, declared by hand so that no user has to
//! compile RocksDB: Debian's `librocksdb-dev` is linked as it is.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_double, c_int, c_uchar};

macro_rules! opaque {
    ($($name:ident),*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque!(
    rocksdb_t,
    rocksdb_options_t,
    rocksdb_writeoptions_t,
    rocksdb_readoptions_t,
    rocksdb_cache_t,
    rocksdb_filterpolicy_t,
    rocksdb_block_based_table_options_t,
    rocksdb_pinnableslice_t,
    rocksdb_writebatch_t,
    rocksdb_iterator_t
);

#[link(name = "rocksdb")]
unsafe extern "C" {
    pub fn rocksdb_open(
        options: *const rocksdb_options_t,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut rocksdb_t;
    pub fn rocksdb_close(db: *mut rocksdb_t);
    pub fn rocksdb_free(pointer: *mut std::ffi::c_void);

    pub fn rocksdb_options_create() -> *mut rocksdb_options_t;
    pub fn rocksdb_options_destroy(options: *mut rocksdb_options_t);
    pub fn rocksdb_options_set_create_if_missing(options: *mut rocksdb_options_t, yes: c_uchar);
    pub fn rocksdb_options_set_compression(options: *mut rocksdb_options_t, kind: c_int);
    pub fn rocksdb_options_set_max_background_jobs(options: *mut rocksdb_options_t, jobs: c_int);
    pub fn rocksdb_options_set_manual_wal_flush(options: *mut rocksdb_options_t, yes: c_uchar);
    pub fn rocksdb_options_set_bytes_per_sync(options: *mut rocksdb_options_t, bytes: u64);
    pub fn rocksdb_options_set_level_compaction_dynamic_level_bytes(
        options: *mut rocksdb_options_t,
        yes: c_uchar,
    );
    pub fn rocksdb_options_set_block_based_table_factory(
        options: *mut rocksdb_options_t,
        table: *mut rocksdb_block_based_table_options_t,
    );

    pub fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t;
    pub fn rocksdb_block_based_options_destroy(table: *mut rocksdb_block_based_table_options_t);
    pub fn rocksdb_block_based_options_set_block_cache(
        table: *mut rocksdb_block_based_table_options_t,
        cache: *mut rocksdb_cache_t,
    );
    pub fn rocksdb_block_based_options_set_filter_policy(
        table: *mut rocksdb_block_based_table_options_t,
        policy: *mut rocksdb_filterpolicy_t,
    );
    pub fn rocksdb_block_based_options_set_format_version(
        table: *mut rocksdb_block_based_table_options_t,
        version: c_int,
    );
    pub fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t;
    pub fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t);
    pub fn rocksdb_filterpolicy_create_bloom_full(bits: c_double) -> *mut rocksdb_filterpolicy_t;

    pub fn rocksdb_writeoptions_create() -> *mut rocksdb_writeoptions_t;
    pub fn rocksdb_writeoptions_destroy(options: *mut rocksdb_writeoptions_t);
    pub fn rocksdb_writeoptions_set_sync(options: *mut rocksdb_writeoptions_t, yes: c_uchar);
    pub fn rocksdb_readoptions_create() -> *mut rocksdb_readoptions_t;
    pub fn rocksdb_readoptions_destroy(options: *mut rocksdb_readoptions_t);

    pub fn rocksdb_put(
        db: *mut rocksdb_t,
        options: *const rocksdb_writeoptions_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    pub fn rocksdb_get_pinned(
        db: *mut rocksdb_t,
        options: *const rocksdb_readoptions_t,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    ) -> *mut rocksdb_pinnableslice_t;
    pub fn rocksdb_pinnableslice_value(
        slice: *const rocksdb_pinnableslice_t,
        len: *mut usize,
    ) -> *const c_char;
    pub fn rocksdb_pinnableslice_destroy(slice: *mut rocksdb_pinnableslice_t);

    pub fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t;
    pub fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t);
    pub fn rocksdb_writebatch_delete(
        batch: *mut rocksdb_writebatch_t,
        key: *const c_char,
        key_len: usize,
    );
    pub fn rocksdb_writebatch_put(
        batch: *mut rocksdb_writebatch_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    );
    pub fn rocksdb_write(
        db: *mut rocksdb_t,
        options: *const rocksdb_writeoptions_t,
        batch: *mut rocksdb_writebatch_t,
        error: *mut *mut c_char,
    );
    pub fn rocksdb_flush_wal(db: *mut rocksdb_t, sync: c_uchar, error: *mut *mut c_char);
    pub fn rocksdb_compact_range(
        db: *mut rocksdb_t,
        start: *const c_char,
        start_len: usize,
        limit: *const c_char,
        limit_len: usize,
    );

    pub fn rocksdb_create_iterator(
        db: *mut rocksdb_t,
        options: *const rocksdb_readoptions_t,
    ) -> *mut rocksdb_iterator_t;
    pub fn rocksdb_iter_destroy(iterator: *mut rocksdb_iterator_t);
    pub fn rocksdb_iter_seek(iterator: *mut rocksdb_iterator_t, key: *const c_char, key_len: usize);
    pub fn rocksdb_iter_valid(iterator: *const rocksdb_iterator_t) -> c_uchar;
    pub fn rocksdb_iter_next(iterator: *mut rocksdb_iterator_t);
    pub fn rocksdb_iter_key(iterator: *const rocksdb_iterator_t, len: *mut usize) -> *const c_char;
    pub fn rocksdb_iter_value(
        iterator: *const rocksdb_iterator_t,
        len: *mut usize,
    ) -> *const c_char;
    pub fn rocksdb_iter_get_error(iterator: *const rocksdb_iterator_t, error: *mut *mut c_char);
}
