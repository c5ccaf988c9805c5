//! Backups of pages and log, and databases made of them. Bytes go out and come in through functions
//! of the embedder's: a file, a pipe, a socket or an object store is as good as another.
use std::ffi::c_void;
use std::io::{self, Read, Write};
use std::path::Path;

use weir::{BackedUp, BackupBase, BackupOptions, BackupProgress, Encryption, Lsn, RestoreOptions};
use weir::{RestorePoint, unseal};

use crate::borrow::{list, place, put, shared, weir_bytes};
use crate::db::weir_db;
use crate::keys::{encryption, weir_key_provider};
use crate::outcome::{Failure, run, weir_code, wrong};

/// Where the bytes of a backup go.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_sink {
    /// What the function is given.
    pub context: *mut c_void,
    /// Takes all of the bytes. 0: done; anything else ends the backup, and is taken for an errno.
    pub write: Option<unsafe extern "C" fn(context: *mut c_void, bytes: weir_bytes) -> i32>,
}

/// Where the bytes of a backup come from, from its beginning on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_source {
    /// What the function is given.
    pub context: *mut c_void,
    /// Puts at most `room` bytes at `buffer`, and says how many; 0: there are no more. What is
    /// negative ends the call, and is taken for an errno with its sign changed.
    pub read:
        Option<unsafe extern "C" fn(context: *mut c_void, buffer: *mut u8, room: usize) -> i64>,
}

/// How far a backup is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_backup_progress {
    /// Pages gone through.
    pub pages: u64,
    /// Pages that there are to go through.
    pub pages_of: u64,
    /// Bytes written.
    pub bytes: u64,
    /// All is there, and the log is followed.
    pub follows: bool,
}

/// Is shown how far a backup is, again and again; `false` ends it. NULL: it goes on. It must not
/// unwind.
pub type weir_backup_goes_on =
    Option<unsafe extern "C" fn(context: *mut c_void, at: *const weir_backup_progress) -> bool>;

/// How to back up. All zero: all pages, at a pace that leaves the work nine tenths of the disk.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_backup_options {
    /// Another backup of the same database, of which the beginning is read: only what was changed
    /// since is backed up, and that one is needed to restore. May be NULL.
    pub since: *const weir_source,
    /// The keys that open that one, if it is of an encrypted database. May be NULL.
    pub keys: *const weir_key_provider,
    /// Which key of those; 0: 1.
    pub key_id: u32,
    /// When all is there, it goes on with the log that is written from then on, until it is ended:
    /// any moment since can be restored.
    pub follow: bool,
    /// Bytes to read per second at most; 0: by itself.
    pub bytes_per_second: u64,
}

/// What a backup holds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_backed_up {
    /// Pages.
    pub pages: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// All bytes.
    pub bytes: u64,
    /// The state that it holds: all that was committed before this position of the log.
    pub position: u64,
}

/// How to restore. All zero: all that the last backup has, in the page store of the database that
/// was backed up.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_restore_options {
    /// Only what was committed before this position of the log; 0: no such bound.
    pub to_position: u64,
    /// Only what was committed at this time, in microseconds since 1970, to about a second; 0: no
    /// such bound. One of the two may be given.
    pub to_micros: u64,
    /// The last backup need not have ended, if only all pages are in it.
    pub incomplete: bool,
    /// The keys that open the backups, and encrypt the new database. May be NULL.
    pub keys: *const weir_key_provider,
    /// Which key of those; 0: 1.
    pub key_id: u32,
}

/// A sink whose function is there.
pub(crate) struct Sink {
    context: *mut c_void,
    write: unsafe extern "C" fn(*mut c_void, weir_bytes) -> i32,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the embedder's function, as `weir_sink` describes it; the bytes live.
        match unsafe { (self.write)(self.context, weir_bytes::of(bytes)) } {
            0 => Ok(bytes.len()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A source whose function is there.
pub(crate) struct Source {
    context: *mut c_void,
    read: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> i64,
}

impl Read for Source {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the embedder's function, as `weir_source` describes it; there is as much room as
        // is said.
        let got = unsafe { (self.read)(self.context, room.as_mut_ptr(), room.len()) };
        match usize::try_from(got) {
            Ok(got) if got <= room.len() => Ok(got),
            Ok(got) => {
                let what = format!("a weir_source put {got} bytes where {} have room", room.len());
                Err(io::Error::other(what))
            }
            Err(_) => {
                let errno = got.checked_neg().and_then(|errno| i32::try_from(errno).ok());
                Err(io::Error::from_raw_os_error(errno.unwrap_or(EIO)))
            }
        }
    }
}

/// For what is no errno.
const EIO: i32 = 5;

impl weir_sink {
    pub(crate) fn given(self) -> Result<Sink, Failure> {
        let write = self.write.ok_or_else(|| wrong("a weir_sink has no function"))?;
        Ok(Sink { context: self.context, write })
    }
}

impl weir_source {
    pub(crate) fn given(self) -> Result<Source, Failure> {
        let read = self.read.ok_or_else(|| wrong("a weir_source has no function"))?;
        Ok(Source { context: self.context, read })
    }
}

/// # Safety
/// The contract of `borrow`.
unsafe fn keys_of(keys: *const weir_key_provider, id: u32) -> Result<Option<Encryption>, Failure> {
    // SAFETY: the caller's.
    encryption(unsafe { keys.as_ref() }, id)
}

/// # Safety
/// The contract of `borrow`.
unsafe fn options_of(options: Option<&weir_backup_options>) -> Result<BackupOptions, Failure> {
    let Some(options) = options else { return Ok(BackupOptions::default()) };
    // SAFETY: the caller's.
    let (since, keys) = unsafe { (options.since.as_ref(), keys_of(options.keys, options.key_id)?) };
    let since = match since {
        Some(source) => {
            let opened = unseal(source.given()?, keys.as_ref());
            let base = opened.and_then(BackupBase::read);
            Some(base.map_err(|e| {
                let Failure { code, message } = e.into();
                Failure { code, message: format!("the backup since which: {message}") }
            })?)
        }
        None => None,
    };
    let bytes_per_second = Some(options.bytes_per_second).filter(|&bytes| bytes > 0);
    Ok(BackupOptions { since, bytes_per_second, follow: options.follow })
}

/// Writes pages as they lie on disk, each verified, and the log that belongs to them, to `sink`,
/// while all transactions go on: what was committed when this returns. `options` may be NULL.
/// WEIR_INTERRUPTED when `goes_on` ended it: what was written is no backup then (unless it
/// follows). weir_restore makes a database of it. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_backup(
    db: *const weir_db,
    sink: weir_sink,
    options: *const weir_backup_options,
    goes_on: weir_backup_goes_on,
    context: *mut c_void,
    out: *mut weir_backed_up,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, options) = unsafe { (shared(db)?, options_of(options.as_ref())?) };
        let sink = sink.given()?;
        let mut progress = |at| shown(goes_on, context, at);
        let done = db.db.backup(sink, &options, &mut progress)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put_done(done, out) }
    })
}

/// Gets the offset at which the rest of a backup belongs: cuts off what is behind it, and has
/// the sink write from there on. 0: done; anything else ends the call, and is taken for an errno.
/// It must not unwind.
pub type weir_backup_go_on_at =
    Option<unsafe extern "C" fn(context: *mut c_void, offset: u64) -> i32>;

/// Goes on with a backup that was cut off: by a crash of either side, a full disk, or `goes_on`.
/// `there` is what there is of it, and is read to its end and verified first, while `goes_on` sees
/// no pages. Then `go_on_at` is called, with the context of `sink`, and `sink` gets the rest; where
/// nothing is missing neither is. All pages in use are read again, and those that are missing or
/// were changed are written; the database need not have been open in between. `options` may be
/// NULL; a backup that was begun since another one stays so, and `since` is NULL. One of an
/// encrypted database is sealed from there on with the newest version of its key. WEIR_INPUT for a
/// backup of another database; WEIR_DAMAGED where not even its beginning is whole. Otherwise as
/// weir_backup; WEIR_INTERRUPTED: it can be gone on with again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_backup_resume(
    db: *const weir_db,
    there: weir_source,
    go_on_at: weir_backup_go_on_at,
    sink: weir_sink,
    options: *const weir_backup_options,
    goes_on: weir_backup_goes_on,
    context: *mut c_void,
    out: *mut weir_backed_up,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, options) = unsafe { (shared(db)?, options_of(options.as_ref())?) };
        let (there, given) = (there.given()?, sink.given()?);
        let go_on_at = go_on_at.ok_or_else(|| wrong("there is no weir_backup_go_on_at"))?;
        let begin = |offset| {
            // SAFETY: the embedder's function, as `weir_backup_go_on_at` describes it.
            match unsafe { go_on_at(sink.context, offset) } {
                0 => Ok(given),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        };
        let mut progress = |at| shown(goes_on, context, at);
        let done = db.db.resume_backup_from(there, begin, &options, &mut progress)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put_done(done, out) }
    })
}

fn shown(goes_on: weir_backup_goes_on, context: *mut c_void, at: BackupProgress) -> bool {
    let BackupProgress { pages, pages_of, bytes, follows } = at;
    let at = weir_backup_progress { pages, pages_of, bytes, follows };
    // SAFETY: the embedder's function, as `weir_backup_goes_on` describes it.
    goes_on.is_none_or(|ask| unsafe { ask(context, &raw const at) })
}

/// # Safety
/// The contract of `borrow`.
unsafe fn put_done(done: Option<BackedUp>, out: *mut weir_backed_up) -> Result<weir_code, Failure> {
    let Some(done) = done else { return Ok(weir_code::WEIR_INTERRUPTED) };
    let (pages, position) = (done.pages, done.end.0);
    let (log_bytes, bytes) = (done.log_bytes, done.bytes);
    if place(out).is_ok() {
        // SAFETY: the contract of `borrow`.
        unsafe { put(out, weir_backed_up { pages, log_bytes, bytes, position })? };
    }
    Ok(weir_code::WEIR_OK)
}

/// Is shown the bytes read so far; `false` ends the call with WEIR_INTERRUPTED. NULL: it goes on.
/// It must not unwind.
pub type weir_restore_goes_on =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: u64) -> bool>;

/// Makes a database in a directory, which must hold nothing, of a full backup and those that were
/// made since it, each of the one before: `count` sources. `options` may be NULL. What fails or is
/// ended leaves nothing in the directory. The log is applied when the database is opened first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_restore(
    directory: weir_bytes,
    sources: *const weir_source,
    count: usize,
    options: *const weir_restore_options,
    goes_on: weir_restore_goes_on,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (directory, options) = unsafe { (directory.text()?, options.as_ref()) };
        // SAFETY: the contract of `borrow`.
        let sources = unsafe { list(sources, count)? };
        if sources.is_empty() {
            return Err(wrong("there is no backup to restore"));
        }
        let given = |source: &weir_source| Ok(Box::new(source.given()?) as Box<dyn Read>);
        let backups = sources.iter().map(given).collect::<Result<Vec<_>, Failure>>()?;
        let options = match options {
            // SAFETY: the contract of `borrow`.
            Some(options) => unsafe { restore_options(options)? },
            None => RestoreOptions::default(),
        };
        // SAFETY: the embedder's function, as `weir_restore_goes_on` describes it.
        let mut progress = |bytes| goes_on.is_none_or(|ask| unsafe { ask(context, bytes) });
        match weir::restore(Path::new(directory), backups, &options, &mut progress)? {
            Some(_) => Ok(weir_code::WEIR_OK),
            None => Ok(weir_code::WEIR_INTERRUPTED),
        }
    })
}

/// # Safety
/// The contract of `borrow`.
unsafe fn restore_options(options: &weir_restore_options) -> Result<RestoreOptions, Failure> {
    let to = match (options.to_position, options.to_micros) {
        (0, 0) => None,
        (lsn, 0) => Some(RestorePoint::Lsn(Lsn(lsn))),
        (0, micros) => Some(RestorePoint::Micros(micros)),
        _ => return Err(wrong("a restore goes to a position or to a time, not to both")),
    };
    // SAFETY: the caller's.
    let encryption = unsafe { keys_of(options.keys, options.key_id)? };
    Ok(RestoreOptions { to, incomplete: options.incomplete, encryption, store: None })
}

/// Reads a backup to its end: every page's checksum, number and database, every group of the log
/// and each change in it. `keys` may be NULL; they open a backup of an encrypted database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_backup_verify(
    source: weir_source,
    keys: *const weir_key_provider,
    key_id: u32,
    goes_on: weir_restore_goes_on,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let keys = unsafe { keys_of(keys, key_id)? };
        let input = unseal(source.given()?, keys.as_ref())?;
        // SAFETY: the embedder's function, as `weir_restore_goes_on` describes it.
        let mut progress = |bytes, _| goes_on.is_none_or(|ask| unsafe { ask(context, bytes) });
        match weir_backup::verify(input, &mut progress).map_err(weir::Error::from)? {
            Some(_) => Ok(weir_code::WEIR_OK),
            None => Ok(weir_code::WEIR_INTERRUPTED),
        }
    })
}
