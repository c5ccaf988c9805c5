//! The lock of a directory: alone for those that write, shared for those that only read.
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::device::{LOCK_NAME, context};
use crate::file::FILE_MODE;
use crate::sys;

/// DEVICE-3, of one that only reads. `None`: there is no lock file, and none is made.
pub(crate) fn take_shared_lock(dir: &Path) -> io::Result<Option<File>> {
    let failed = |e| context(e, || format!("lock directory {}", dir.display()));
    let path = dir.join(LOCK_NAME);
    let lock = match File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    if !sys::try_lock_shared(&lock).map_err(failed)? {
        return Err(in_use(dir, &path));
    }
    Ok(Some(lock))
}

/// Locks a file for this handle of it and those cloned of it, until the last is closed. `false`:
/// another one has it.
///
/// # Errors
/// What the system reports.
pub fn try_lock_file(file: &File) -> io::Result<bool> {
    sys::try_lock(file)
}

/// Has the kernel drop what it caches of a file, so that what is read next comes from the disk;
/// what is not written yet stays.
///
/// # Errors
/// What the system reports.
pub fn forget_cached(file: &File) -> io::Result<()> {
    sys::forget_cached(file)
}

/// Another volume has the directory open: what lies in the `WouldBlock` error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InUse {
    /// The directory.
    pub dir: PathBuf,
    /// The process that has it open, if that is known.
    pub pid: Option<u32>,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is in use", self.dir.display())?;
        match self.pid {
            Some(pid) if pid == std::process::id() => write!(f, " by this process")?,
            Some(pid) => write!(f, " by process {pid}")?,
            None => {}
        }
        write!(f, "; a database can be open only once")
    }
}

impl std::error::Error for InUse {}

fn in_use(dir: &Path, lock: &Path) -> io::Error {
    let holder = std::fs::read_to_string(lock).unwrap_or_default();
    // Those that only read say nothing there: what stands there then may have ended long ago.
    let is_alive = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
    let pid = holder.trim().parse::<u32>().ok().filter(is_alive);
    io::Error::new(ErrorKind::WouldBlock, InUse { dir: dir.to_path_buf(), pid })
}

/// DEVICE-3.
pub(crate) fn take_lock(dir: &Path) -> io::Result<File> {
    let failed = |e| context(e, || format!("lock directory {}", dir.display()));
    let path = dir.join(LOCK_NAME);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    let mut lock = options.open(&path).map_err(failed)?;
    if !sys::try_lock(&lock).map_err(failed)? {
        return Err(in_use(dir, &path));
    }
    if is_number(&lock).map_err(failed)? {
        // Only helps the message above, so a full disk must not keep a database from opening.
        let _ = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
    }
    Ok(lock)
}

/// Whether the lock file says what one of ours says. A foreign file of the same name stays as it
/// is.
fn is_number(lock: &File) -> io::Result<bool> {
    let mut text = [0; 20];
    let Some(text) = text.get_mut(..lock.metadata()?.len() as usize) else { return Ok(false) };
    lock.read_exact_at(text, 0)?;
    Ok(text.iter().all(u8::is_ascii_digit))
}
