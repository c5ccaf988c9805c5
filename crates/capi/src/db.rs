//! Opening and closing, the knobs.
use std::ffi::c_void;
use std::path::Path;

use weir::{Config, Create, Db, Durability};
use weir_table::Tables;

use crate::borrow::{give, put, shared, show, taken, weir_bytes, weir_visit};
use crate::keys::{encryption, weir_key_provider};
use crate::outcome::{Failure, run, weir_code, wrong};

/// An open database. All threads may use it.
pub struct weir_db {
    pub(crate) db: Db,
    pub(crate) tables: Tables,
}

/// When a commit may be acknowledged.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_durability {
    /// When it is on stable storage.
    WEIR_SYNCED = 0,
    /// When the operating system has it: it survives the end of the process.
    WEIR_WRITTEN = 1,
    /// At once; it is written a moment later.
    WEIR_LAZY = 2,
}

/// Whether opening may make a database.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_create {
    /// When there is none.
    WEIR_IF_MISSING = 0,
    /// Never.
    WEIR_NEVER = 1,
    /// There must be none.
    WEIR_ALWAYS = 2,
}

/// Where a new database keeps its pages. One that is there has what it was made with, and asking
/// for another is an error.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_store {
    /// As the database has it; in place for a new one.
    WEIR_STORE_ANY = 0,
    /// Each at a place of its own, written twice so that none is torn.
    WEIR_STORE_IN_PLACE = 1,
    /// Packed, one behind the other in segments that are cleaned up: less is written.
    WEIR_STORE_LOG = 2,
}

/// The settings. All zero: the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_options {
    /// Memory for pages, in bytes.
    pub memory_bytes: u64,
    /// The log's capacity in bytes when the database is made; see weir_set_log_bytes.
    pub log_bytes: u64,
    /// Bytes a page when the database is made: 4096, 8192 or 16384.
    pub page_bytes: u64,
    /// A weir_create.
    pub create: u32,
    /// A weir_store.
    pub store: u32,
    /// Which key of `keys` encrypts a new database; 0: key 1.
    pub key_id: u32,
    /// Whether the database is encrypted, and with which keys: at creation, and for all later
    /// openings. NULL: it is not. Read before weir_open returns.
    pub keys: *const weir_key_provider,
    /// For a database that is damaged, to read what can be read of it: nothing is changed, and each
    /// step, from 1 to 4, leaves out more of what opening does otherwise. 1: what cannot be read is
    /// passed over by what walks, transactions without an end are not rolled back, and not seen.
    /// 2: one whose undo cannot be read counts as committed. 3: the log is applied up to the first
    /// damage in it. 4: it is not applied, and files may be of different moments. Changes are
    /// WEIR_READ_ONLY. 0: as ever. See weir_recovery_remarks.
    pub force_recovery: u32,
    /// Not 0: the database is only looked at. It must be there; no file of it is changed, and
    /// changes are WEIR_READ_ONLY. Several processes may do so at a time.
    pub read_only: u32,
}

pub(crate) fn durability(code: u32) -> Result<Durability, Failure> {
    match code {
        c if c == weir_durability::WEIR_SYNCED as u32 => Ok(Durability::Synced),
        c if c == weir_durability::WEIR_WRITTEN as u32 => Ok(Durability::Written),
        c if c == weir_durability::WEIR_LAZY as u32 => Ok(Durability::Lazy),
        _ => Err(wrong(format!("{code} is no weir_durability"))),
    }
}

/// `options.keys` must be NULL or point to a provider.
unsafe fn config(options: &weir_options) -> Result<Config, Failure> {
    let usual = Config::default();
    let create = match options.create {
        c if c == weir_create::WEIR_IF_MISSING as u32 => Create::IfMissing,
        c if c == weir_create::WEIR_NEVER as u32 => Create::Never,
        c if c == weir_create::WEIR_ALWAYS as u32 => Create::Always,
        other => return Err(wrong(format!("{other} is no weir_create"))),
    };
    let page_size = usize::try_from(options.page_bytes).map_err(|_| wrong("page_bytes"))?;
    let pool_bytes =
        if options.memory_bytes == 0 { usual.pool_bytes } else { options.memory_bytes };
    let store = match options.store {
        s if s == weir_store::WEIR_STORE_ANY as u32 => None,
        s if s == weir_store::WEIR_STORE_IN_PLACE as u32 => Some(weir::StoreKind::InPlace),
        s if s == weir_store::WEIR_STORE_LOG as u32 => Some(weir::StoreKind::Log),
        other => return Err(wrong(format!("{other} is no weir_store"))),
    };
    // SAFETY: what is promised above.
    let keys = unsafe { options.keys.as_ref() };
    let encryption = encryption(keys, options.key_id)?;
    let force_recovery = u8::try_from(options.force_recovery).unwrap_or(u8::MAX);
    Ok(Config {
        pool_bytes,
        log_bytes: options.log_bytes,
        page_size,
        create,
        store,
        encryption,
        force_recovery,
        read_only: options.read_only != 0,
        ..usual
    })
}

/// Opens the database in a directory, and makes it if need be; recovers after a crash. `options`
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_open(
    directory: weir_bytes,
    options: *const weir_options,
    out: *mut *mut weir_db,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (directory, options) = unsafe { (directory.text()?, options.as_ref()) };
        if out.is_null() {
            return Err(wrong("there is no place for a result"));
        }
        let config = match options {
            // SAFETY: the contract of `borrow`.
            Some(options) => unsafe { config(options)? },
            None => Config::default(),
        };
        let db = Db::open(Path::new(directory), config)?;
        let tables = Tables::open(&db)?;
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_db { db, tables })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows, each in words, what an opening with weir_options.force_recovery has found damaged or left
/// out. What is met later weir_on_notice reports, and weir_thread_counts counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_recovery_remarks(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for remark in unsafe { shared(db)? }.db.recovery_remarks() {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, remark.as_bytes()) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Closes the database in order: the next opening has nothing to redo. The handle is gone and the
/// directory free for others, whatever is returned. Other handles of the database say WEIR_CLOSED
/// from then on and are given back as ever; a transaction among them is rolled back by the next
/// opening.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_close(db: *mut weir_db) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { taken(db) }.ok_or_else(|| wrong("a handle is NULL"))?;
        let settled = db.tables.settle_numbers();
        db.db.close()?;
        settled?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Makes the log larger or smaller while the database is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_set_log_bytes(db: *const weir_db, bytes: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.set_log_bytes(bytes)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives pages more or less memory while the database is in use, up to what the process may use.
/// WEIR_INPUT when that is too little or too much, or pages in use cannot leave what is to be given
/// up; the memory is then as it was, or a part of the way there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_set_pool_bytes(db: *const weir_db, bytes: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.set_pool_bytes(bytes)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Keeps the checkpoint young enough that opening after a crash takes at most about so many
/// seconds, at the price of more page writes; 0: the log's capacity alone decides. Until the next
/// opening.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_set_recovery_seconds(db: *const weir_db, seconds: f64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.set_recovery_seconds(seconds)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Writes all pages that are dirty now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_checkpoint(db: *const weir_db) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.checkpoint()?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Bytes a page, and bytes of the pages file that nothing uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_space(
    db: *const weir_db,
    page_bytes: *mut u64,
    free_bytes: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = &unsafe { shared(db)? }.db;
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(page_bytes, db.stats().page_size as u64)?;
            put(free_bytes, db.free_bytes())?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// The key that encrypts the database: its number, and the version that opens the files now. Both
/// 0: it is not encrypted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_key(
    db: *const weir_db,
    key_id: *mut u32,
    key_version: *mut u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let name = unsafe { shared(db)? }.db.key_name();
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(key_id, name.map_or(0, |name| name.id))?;
            put(key_version, name.map_or(0, |name| name.version))?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Waits until all that was committed so far is on stable storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sync(db: *const weir_db) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.sync()?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Checks all trees of the database and whether each page belongs to exactly one. Each problem is
/// shown; WEIR_DAMAGED if there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_check(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let report = unsafe { shared(db)? }.db.check(&mut |_, _| ())?;
        for problem in &report.problems {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, problem.as_bytes()) };
        }
        if report.problems.is_empty() {
            return Ok(weir_code::WEIR_OK);
        }
        let message = format!("the check found {} problems", report.problems.len());
        Err(Failure { code: weir_code::WEIR_DAMAGED, message })
    })
}
