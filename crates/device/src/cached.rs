//! Writes that the system's cache keeps for now: a file's second handle, without O_DIRECT. They
//! cost a copy, not the device's answer, and survive this process as any other write does.
//!
//! Both handles see one file: before a direct read or write the kernel writes out what its cache
//! has of that range, and drops it after a direct write (`Documentation/filesystems`, iomap
//! operations: direct I/O).
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use weir_base::{ALIGN, align_down};

use crate::sys;

/// So much is written before the kernel is asked to begin with it: a sync has no more to wait for
/// than that, and what begins is a few large writes.
const BEHIND_BYTES: u64 = 1 << 20;

/// The cached side of a file.
#[derive(Default)]
pub(crate) struct Cached {
    /// `None` inside: such a handle cannot be had.
    handle: OnceLock<Option<File>>,
    /// Something was written so, ever; and since the cache was last asked to give up what it has.
    is_used: AtomicBool,
    is_filled: AtomicBool,
    /// From where on the kernel has not been asked to begin, and up to where it could be.
    behind: AtomicU64,
    end: AtomicU64,
}

impl Cached {
    /// Writes into the cache; `false`: not possible here, and nothing was done. `direct` is the
    /// file's other handle, `path` where it was opened.
    pub(crate) fn write(
        &self,
        direct: &File,
        path: impl FnOnce() -> PathBuf,
        offset: u64,
        buf: &[u8],
    ) -> io::Result<bool> {
        let Some(file) = self.handle.get_or_init(|| same_file(direct, &path())) else {
            return Ok(false);
        };
        self.is_used.store(true, Release);
        file.write_all_at(buf, offset)?;
        self.is_filled.store(true, Release);
        self.begin_behind(file, offset, offset + buf.len() as u64);
        Ok(true)
    }

    /// Whether anything was ever written so: then what the device does not take may show in a sync
    /// alone, and to one caller.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Acquire)
    }

    /// Has the cache give up what a sync has written: nothing reads it again, and memory is short
    /// elsewhere. A hint, whose failure does not matter.
    pub(crate) fn forget(&self) {
        if self.is_filled.swap(false, AcqRel)
            && let Some(Some(file)) = self.handle.get()
        {
            let _ = sys::forget_cached(file);
        }
    }

    /// Has the kernel begin with what lies behind, if it is enough. Not with the last page, which
    /// the next write may change again. A hint, whose failure does not matter.
    fn begin_behind(&self, file: &File, from: u64, to: u64) {
        // Written elsewhere: it begins anew there.
        let behind = match self.behind.load(Relaxed) {
            behind if behind <= from && from <= self.end.load(Relaxed) => behind,
            _ => from,
        };
        let full = align_down(to.saturating_sub(ALIGN as u64));
        let begins = full.saturating_sub(behind) >= BEHIND_BYTES;
        if begins {
            let _ = sys::begin_write_back(file, behind, full - behind);
        }
        self.behind.store(if begins { full } else { behind }, Relaxed);
        self.end.store(to, Relaxed);
    }
}

/// The file's second handle; `None` where the path leads to another one by now, or to none.
fn same_file(direct: &File, path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let id = |file: &File| file.metadata().ok().map(|of| (of.dev(), of.ino()));
    (id(&file)? == id(direct)?).then_some(file)
}
