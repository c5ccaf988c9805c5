//! What O_DIRECT does in a directory, found out by trying.
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use weir_base::{ALIGN, AlignedBuf};

use crate::atomic::AtomicWrites;
use crate::sys;

/// Exists only while a volume is being opened; a crash may leave it behind.
pub(crate) const PROBE_NAME: &str = ".direct-io-probe";

/// What O_DIRECT does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direct {
    /// It is refused.
    Refused,
    /// It is taken, and what was written may be in the system's cache all the same: some file
    /// systems do so for files that they encrypt, or whose contents they journal.
    Works,
    /// What was written is on the device, in its cache at least.
    Bypasses,
}

/// Some file systems refuse O_DIRECT on opening, some only when reading or writing, so this tries
/// with a file that it removes again.
///
/// The second of the two: writes that are never torn here, `with_copies` or not (see
/// [`AtomicWrites::of`]).
pub(crate) fn probe(dir: &Path, with_copies: bool) -> io::Result<(Direct, AtomicWrites)> {
    let path = dir.join(PROBE_NAME);
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .mode(0o600);
    let result = options.open(&path).and_then(|file| {
        file.write_all_at(&AlignedBuf::zeroed(ALIGN), 0)?;
        let is_cached = sys::is_cached(&file);
        file.read_exact_at(&mut AlignedBuf::zeroed(ALIGN), 0)?;
        let direct = if is_cached.unwrap_or(true) { Direct::Works } else { Direct::Bypasses };
        Ok((direct, AtomicWrites::of(&file, with_copies)))
    });
    let _ = std::fs::remove_file(&path);
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            Ok((Direct::Refused, AtomicWrites::default()))
        }
        // A full disk says nothing about O_DIRECT, and reading must still be possible.
        Err(e) if is_full(&e) => Ok((Direct::Works, AtomicWrites::default())),
        found => found,
    }
}

/// Whether the file system of a directory makes holes, found out by trying with a file without a
/// name. `None`: no file can be made there.
#[must_use]
pub fn punches_holes(dir: &Path) -> Option<bool> {
    let file = sys::nameless(dir).ok()?;
    // One in memory says nothing.
    if file.metadata().ok()?.dev() != dir.metadata().ok()?.dev() {
        return None;
    }
    file.write_all_at(&[1; 2 * ALIGN], 0).ok()?;
    sys::punch(&file, 0, ALIGN as u64).ok()
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
