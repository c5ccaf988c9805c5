//! WiredTiger, through a shim over its C interface (`wiredtiger_shim.c`).
//!
//! As its documentation says: a cache larger than the data ("Cache and eviction tuning"), its log
//! on and a checkpoint a minute or each GiB of log ("Checkpoint-level and commit-level
//! durability"), one session and cursor per thread, reset after each use. Synced is
//! `transaction_sync` with the method `fsync`, written the method `none`, lazy without
//! `transaction_sync` and with one `log_flush` a second. Sorted load with a bulk cursor, made
//! durable by a checkpoint.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use anyhow::{Result, bail};

use super::Known;
use crate::engine::{Durability, Engine, Key, Row, Setup, Worker};

#[repr(C)]
struct Connection {
    _private: [u8; 0],
}

#[repr(C)]
struct Session {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn shim_open(dir: *const c_char, config: *const c_char, out: *mut *mut Connection) -> c_int;
    fn shim_close(connection: *mut Connection) -> c_int;
    fn shim_create(connection: *mut Connection, config: *const c_char) -> c_int;
    fn shim_worker_open(connection: *mut Connection, bulk: c_int, out: *mut *mut Session) -> c_int;
    fn shim_worker_close(session: *mut Session) -> c_int;
    fn shim_begin(session: *mut Session) -> c_int;
    fn shim_commit(session: *mut Session) -> c_int;
    fn shim_rollback(session: *mut Session) -> c_int;
    fn shim_sync(session: *mut Session) -> c_int;
    fn shim_checkpoint(session: *mut Session) -> c_int;
    fn shim_put(
        session: *mut Session,
        key: *const c_void,
        len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int;
    fn shim_remove(session: *mut Session, key: *const c_void, len: usize) -> c_int;
    fn shim_get(
        session: *mut Session,
        key: *const c_void,
        len: usize,
        value: *mut *const c_void,
        value_len: *mut usize,
    ) -> c_int;
    fn shim_seek(session: *mut Session, key: *const c_void, len: usize) -> c_int;
    fn shim_next(session: *mut Session) -> c_int;
    fn shim_row(
        session: *mut Session,
        key: *mut *const c_void,
        len: *mut usize,
        value: *mut *const c_void,
        value_len: *mut usize,
    ) -> c_int;
    fn shim_reset(session: *mut Session) -> c_int;
    fn shim_is_rollback(error: c_int) -> c_int;
    fn shim_error(error: c_int) -> *const c_char;
    fn shim_version() -> *const c_char;
}

pub const KNOWN: Known = Known {
    name: "wiredtiger",
    version,
    setup: "cache larger than the data (https://source.wiredtiger.com/3.2.1/tune_cache.html), log \
            on, a checkpoint a minute or each GiB of log, transaction_sync by durability \
            (https://source.wiredtiger.com/3.2.1/tune_durability.html), a session and a cursor per \
            thread. Sorted load with a bulk cursor \
            (https://source.wiredtiger.com/3.2.1/tune_bulk_load.html).",
    limits: "two writers of one row at a time: one of them is refused and tries again",
    usual: true,
    is_log: |file| file.starts_with("WiredTigerLog") || file.starts_with("WiredTigerPreplog"),
    open: |dir, setup| Ok(Box::new(WiredTiger::open(dir, setup)?)),
};

fn version() -> String {
    // SAFETY: a static string.
    unsafe { CStr::from_ptr(shim_version()) }.to_string_lossy().into_owned()
}

/// An error code as a Result; 1 is the shim's "there is none": false.
fn check(code: c_int) -> Result<bool> {
    match code {
        0 => Ok(true),
        1 => Ok(false),
        code => {
            // SAFETY: a NUL-terminated string that lives until the thread asks again.
            let text = unsafe { CStr::from_ptr(shim_error(code)) }.to_string_lossy().into_owned();
            bail!("wiredtiger: {text}")
        }
    }
}

struct WiredTiger {
    connection: *mut Connection,
    durability: Durability,
}

// SAFETY: WiredTiger's documentation, "Multithreading": a WT_CONNECTION may be shared between
// threads; sessions may not, and each is used by the thread that opened it only.
unsafe impl Sync for WiredTiger {}

impl WiredTiger {
    fn open(dir: &Path, setup: Setup) -> Result<WiredTiger> {
        let sync = match setup.durability {
            Durability::Lazy => "transaction_sync=(enabled=false)",
            Durability::Written => "transaction_sync=(enabled=true,method=none)",
            Durability::Synced => "transaction_sync=(enabled=true,method=fsync)",
        };
        let config = CString::new(format!(
            "create,cache_size={}M,session_max={},log=(enabled=true),\
             checkpoint=(wait=60,log_size=1GB),{sync}",
            setup.cache_bytes >> 20,
            setup.threads + 32
        ))?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes())?;
        let mut connection = ptr::null_mut();
        // SAFETY: strings outlive the calls; the connection is set when the code is 0.
        unsafe {
            check(shim_open(path.as_ptr(), config.as_ptr(), &mut connection))?;
            let table = c"key_format=u,value_format=u";
            check(shim_create(connection, table.as_ptr()))?;
        }
        Ok(WiredTiger { connection, durability: setup.durability })
    }

    fn session(&self, bulk: bool) -> Result<WiredWorker> {
        let mut session = ptr::null_mut();
        // SAFETY: the connection is open; the session is set when the code is 0.
        unsafe { check(shim_worker_open(self.connection, c_int::from(bulk), &mut session))? };
        Ok(WiredWorker(session))
    }
}

impl Drop for WiredTiger {
    fn drop(&mut self) {
        // SAFETY: all sessions are gone: workers do not outlive the store.
        if let Err(error) = check(unsafe { shim_close(self.connection) }) {
            eprintln!("closing: {error}");
        }
    }
}

impl Engine for WiredTiger {
    fn bulk_load(&self, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        let bulk = self.session(true)?;
        for (key, value) in rows {
            bulk.put(&key, &value)?;
        }
        drop(bulk);
        let session = self.session(false)?;
        // SAFETY: the session is this thread's.
        check(unsafe { shim_checkpoint(session.0) })?;
        Ok(())
    }

    fn with_worker(&self, body: &mut dyn FnMut(&mut dyn Worker) -> Result<()>) -> Result<()> {
        body(&mut self.session(false)?)
    }

    fn sync(&self) -> Result<()> {
        let session = self.session(false)?;
        // SAFETY: the session is this thread's.
        check(unsafe { shim_sync(session.0) })?;
        Ok(())
    }

    fn sync_every_second(&self) -> bool {
        self.durability == Durability::Lazy
    }

    fn how(&self) -> String {
        match self.durability {
            Durability::Lazy => "no transaction_sync, log_flush(sync=on) once a second",
            Durability::Written => "transaction_sync, method=none",
            Durability::Synced => "transaction_sync, method=fsync, group commit",
        }
        .to_string()
    }
}

struct WiredWorker(*mut Session);

impl Drop for WiredWorker {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        if let Err(error) = check(unsafe { shim_worker_close(self.0) }) {
            eprintln!("closing a session: {error}");
        }
    }
}

impl WiredWorker {
    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        check(self.put_code(key, value))?;
        Ok(())
    }

    fn put_code(&self, key: &Key, value: &[u8]) -> c_int {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: key and value outlive the call, which copies them.
        unsafe { shim_put(self.0, k, key.len(), v, value.len()) }
    }

    fn reset(&self) -> Result<()> {
        // SAFETY: the session is this thread's.
        check(unsafe { shim_reset(self.0) })?;
        Ok(())
    }
}

impl Worker for WiredWorker {
    fn read(&mut self, key: &Key, visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (mut value, mut value_len) = (ptr::null(), 0);
        let k = key.as_ptr().cast();
        // SAFETY: the value lies in the cursor until it is reset, which is after its use.
        let found = unsafe {
            let found = check(shim_get(self.0, k, key.len(), &mut value, &mut value_len))?;
            if found {
                visit(std::slice::from_raw_parts(value.cast(), value_len));
            }
            found
        };
        self.reset()?;
        Ok(found)
    }

    /// Each change outside of a transaction is one by itself.
    fn update(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        loop {
            let code = self.put_code(key, value);
            // SAFETY: looks at a number.
            if code != 0 && unsafe { shim_is_rollback(code) } != 0 {
                continue;
            }
            check(code)?;
            return Ok(());
        }
    }

    fn replace(&mut self, gone: &[Key], new: &[Row]) -> Result<()> {
        // SAFETY: the session is this thread's; keys outlive the calls.
        check(unsafe { shim_begin(self.0) })?;
        let run = || -> Result<()> {
            for key in gone {
                // SAFETY: as above.
                check(unsafe { shim_remove(self.0, key.as_ptr().cast(), key.len()) })?;
            }
            for (key, value) in new {
                self.put(key, value)?;
            }
            Ok(())
        };
        let result = run();
        if result.is_err() {
            // SAFETY: as above. The error above is the one to tell.
            unsafe { shim_rollback(self.0) };
            return result;
        }
        // SAFETY: as above.
        check(unsafe { shim_commit(self.0) })?;
        self.reset()
    }

    fn scan(&mut self, from: &Key, limit: u64, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut rows = 0;
        // SAFETY: key and value lie in the cursor until it moves, which is after `visit`.
        unsafe {
            let mut on = check(shim_seek(self.0, from.as_ptr().cast(), from.len()))?;
            while on {
                let (mut key, mut value) = (ptr::null(), ptr::null());
                let (mut len, mut value_len) = (0, 0);
                check(shim_row(self.0, &mut key, &mut len, &mut value, &mut value_len))?;
                visit(
                    std::slice::from_raw_parts(key.cast(), len),
                    std::slice::from_raw_parts(value.cast(), value_len),
                );
                rows += 1;
                if rows == limit {
                    break;
                }
                on = check(shim_next(self.0))?;
            }
        }
        self.reset()?;
        Ok(rows)
    }
}
