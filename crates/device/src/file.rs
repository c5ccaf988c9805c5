//! Real files in a directory: O_DIRECT where the file system has it, deep queues by io_uring.
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Weak};

use weir_base::lock::{Mutex, RwLock, RwLockReadGuard};
use weir_base::rank;
use weir_base::{AlignedBuf, Home};

use crate::atomic::AtomicWrites;
use crate::batch::Batch;
use crate::cached::Cached;
use crate::device::{
    BlockFile, IoCounters, IoStats, LOCK_NAME, ReadOp, Volume, WriteOp, check_len, check_name,
    check_range, check_read, check_write, context,
};
use crate::lock::{take_lock, take_shared_lock};
use crate::order::ordered_device;
use crate::pipe::PipeEnd;
use crate::probe::{Direct, PROBE_NAME, is_full, probe};
use crate::sys;
use crate::uring::RingPool;

/// Modes of what is made, less what the umask takes.
const DIRECTORY_MODE: u32 = 0o700;
pub(crate) const FILE_MODE: u32 = 0o640;
/// So much is reserved without a look whether the disk has it.
const UNASKED_BYTES: u64 = 64 << 10;
/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 1 << 20;

/// A directory of the file system, locked against every other user (DEVICE-3). The lock is held
/// until the volume is closed, or dropped with all files opened through it.
pub struct FileVolume {
    shared: Arc<Shared>,
}

struct Shared {
    /// Where files are opened, made and removed.
    dir_path: PathBuf,
    dir: File,
    /// A process that was forked from this one has the same files, and must not use them.
    home: Home,
    /// The lock; `None`: closed. Held for reading by every call that does something: `close` waits
    /// for it.
    lock: RwLock<rank::DirectoryOpen, Option<File>>,
    /// The files that were locked besides.
    locked: Mutex<rank::LockedFiles, Vec<Weak<File>>>,
    direct: bool,
    /// Nothing is changed: files are opened for reading, and locked shared.
    read_only: bool,
    /// Writes that are never torn.
    atomic: AtomicWrites,
    /// The kernel has refused such a write all the same.
    atomic_refused: AtomicBool,
    /// The device, where the sync of a file that has grown serves ours as well (DEVICE-9).
    ordered: Option<u64>,
    /// `pwritev2(RWF_DSYNC)` works here; cleared when the kernel says that it does not.
    dsync: AtomicBool,
    rings: RingPool,
    counters: IoCounters,
}

/// A process that may make no longer files than this (`ulimit -f`) gets an error. The first write
/// beyond would end it, by a signal: what makes files longer asks before, small ones do not.
const FILE_BYTES_LEAST: u64 = 64 << 10;

fn room_for_files(most: u64) -> io::Result<()> {
    if most < FILE_BYTES_LEAST {
        let text = format!("a file may have {most} bytes here (ulimit -f), too few for a database");
        return Err(io::Error::new(ErrorKind::StorageFull, text));
    }
    Ok(())
}

impl FileVolume {
    /// Opens `dir`, creating it when missing, and locks it.
    ///
    /// # Errors
    /// `WouldBlock` when another process, or another volume of this process, has it open;
    /// otherwise what the file system reports.
    pub fn open(dir: &Path) -> io::Result<Self> {
        Self::open_with(dir, true, false, RingPool::new())
    }

    /// As [`FileVolume::open`], and writes count as atomic that the file system makes so by copies,
    /// which take longer and scatter the file: XFS does so on any device (Linux 6.16). To try what
    /// is done with atomic writes where no device has them.
    ///
    /// # Errors
    /// As [`FileVolume::open`].
    pub fn open_with_atomic_copies(dir: &Path) -> io::Result<Self> {
        Self::open_with(dir, true, true, RingPool::new())
    }

    fn open_with(
        dir: &Path,
        want_direct: bool,
        with_copies: bool,
        rings: RingPool,
    ) -> io::Result<Self> {
        let failed = |e| context(e, || format!("open directory {}", dir.display()));
        sys::file_size_max().and_then(room_for_files).map_err(failed)?;
        // What is in a database is for its owner; files a group may read, where the umask lets it.
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(dir).map_err(failed)?;
        let dir_file = File::open(dir).map_err(failed)?;
        let lock = take_lock(dir)?;
        let (found, atomic) = match want_direct {
            true => probe(dir, with_copies).map_err(failed)?,
            false => (Direct::Refused, AtomicWrites::default()),
        };
        // What lies in the system's cache is not on the device by the time that we think so.
        let ordered = if found == Direct::Bypasses { ordered_device(&dir_file) } else { None };
        let shared = Shared {
            dir_path: path_of(&dir_file, dir),
            dir: dir_file,
            home: Home::here(),
            lock: RwLock::new(Some(lock)),
            locked: Mutex::default(),
            direct: found != Direct::Refused,
            read_only: false,
            atomic,
            atomic_refused: AtomicBool::new(false),
            ordered,
            dsync: AtomicBool::new(true),
            rings,
            counters: IoCounters::default(),
        };
        Ok(FileVolume { shared: Arc::new(shared) })
    }

    /// Opens `dir` to be read alone, and changes nothing in it: on media that cannot be written, or
    /// by a user that may only read. Others may do so at the same time, and none may write.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it open for writing; `NotFound`; otherwise what the
    /// file system reports.
    pub fn open_read_only(dir: &Path) -> io::Result<Self> {
        let failed = |e| context(e, || format!("open directory {}", dir.display()));
        let dir_file = File::open(dir).map_err(failed)?;
        let lock = take_shared_lock(dir)?.map_or_else(|| dir_file.try_clone(), Ok)?;
        let direct = read_directly(dir);
        let shared = Shared {
            dir_path: path_of(&dir_file, dir),
            dir: dir_file,
            home: Home::here(),
            lock: RwLock::new(Some(lock)),
            locked: Mutex::default(),
            direct: direct.is_some(),
            read_only: true,
            // Not to write so, but to say what there is.
            atomic: direct.map(|file| AtomicWrites::of(&file, false)).unwrap_or_default(),
            atomic_refused: AtomicBool::new(false),
            ordered: None,
            dsync: AtomicBool::new(false),
            rings: RingPool::new(),
            counters: IoCounters::default(),
        };
        Ok(FileVolume { shared: Arc::new(shared) })
    }

    fn open_file(&self, name: &str, create: bool) -> io::Result<DiskFile> {
        check_name(name)?;
        let _open = self.shared.stay_open()?;
        let failed = |e| context(e, || format!("open {name}"));
        let mut options = OpenOptions::new();
        options.read(true);
        if !self.shared.read_only {
            options.write(true).create_new(create).mode(FILE_MODE);
        } else if create {
            let text = format!("{name} cannot be made: the directory is only read");
            return Err(io::Error::new(ErrorKind::ReadOnlyFilesystem, text));
        }
        if self.shared.direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let file = options.open(self.shared.dir_path.join(name)).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{name} is not a file")));
        }
        Ok(DiskFile {
            name: name.to_owned(),
            file: Arc::new(file),
            len: AtomicU64::new(metadata.len()),
            growing: Mutex::new(()),
            syncing: Mutex::new(()),
            sync_failed: AtomicBool::new(false),
            is_locked: AtomicBool::new(false),
            cached: Cached::default(),
            shared: Arc::clone(&self.shared),
        })
    }
}

impl Shared {
    /// Keeps the volume open until what this gives is dropped.
    fn stay_open(&self) -> io::Result<RwLockReadGuard<'_, Option<File>>> {
        if !self.home.is_here() {
            let text = "the volume was opened before this process was forked";
            return Err(io::Error::new(ErrorKind::NotConnected, text));
        }
        // Calls are made within calls: a close must not come between the two.
        let lock = self.lock.read_recursive();
        if lock.is_none() {
            return Err(io::Error::new(ErrorKind::NotConnected, "the volume has been closed"));
        }
        Ok(lock)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A process that was forked from this one may have the same open file for long.
        if self.home.is_here()
            && let Some(lock) = self.lock.get_mut().take()
        {
            sys::unlock(&lock);
        }
    }
}

/// An error with what was being done; each way of having no room is `StorageFull`.
fn as_full(error: io::Error, doing: impl FnOnce() -> String) -> io::Error {
    let kind = if is_full(&error) { ErrorKind::StorageFull } else { error.kind() };
    io::Error::new(kind, context(error, doing))
}

/// The path of a directory that leads through its handle: also when it has been moved, and never to
/// another one that has taken its place. Its own where the system does not show handles.
fn path_of(handle: &File, dir: &Path) -> PathBuf {
    let through = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    let id = |metadata: io::Result<Metadata>| metadata.ok().map(|of| (of.dev(), of.ino()));
    let found = id(std::fs::metadata(&through));
    if found.is_some() && found == id(handle.metadata()) { through } else { dir.to_owned() }
}

/// A file of a directory, if its files can be read past the system's cache.
fn read_directly(dir: &Path) -> Option<File> {
    let files = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let mut files = files.filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()));
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECT);
    options.open(files.next()?.path()).ok()
}

impl Volume for FileVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        Ok(Arc::new(self.open_file(name, false)?))
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        check_len(len)?;
        let _open = self.shared.stay_open()?;
        let file = self.open_file(name, true)?;
        // Zeros on the disk, not only a reservation: later writes are then pure overwrites that
        // change no metadata, and their sync costs one device write instead of a journal commit.
        match file.extend(0, len).and_then(|()| file.write_zeros(0, len)) {
            Ok(()) => Ok(Arc::new(file)),
            Err(e) => {
                let _ = std::fs::remove_file(self.shared.dir_path.join(name));
                Err(context(e, || format!("create {name} with {len} bytes")))
            }
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let _open = self.shared.stay_open()?;
        std::fs::remove_file(self.shared.dir_path.join(name))
            .map_err(|e| context(e, || format!("remove {name}")))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        check_name(name)?;
        let _open = self.shared.stay_open()?;
        self.shared.dir_path.join(name).try_exists()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let _open = self.shared.stay_open()?;
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.shared.dir_path)? {
            let entry = entry?;
            // A name that is not UTF-8 cannot be one of ours.
            if let Ok(name) = entry.file_name().into_string()
                && name != LOCK_NAME
                && name != PROBE_NAME
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        let _open = self.shared.stay_open()?;
        self.shared.counters.count_sync();
        self.shared.dir.sync_all().map_err(|e| context(e, || "sync directory".to_owned()))
    }

    fn is_synced_with(&self, device: u64) -> bool {
        self.shared.ordered == Some(device)
    }

    fn close(&self) {
        if !self.shared.home.is_here() {
            return;
        }
        let mut lock = self.shared.lock.write();
        for file in self.shared.locked.lock().drain(..).filter_map(|file| file.upgrade()) {
            sys::unlock(&file);
        }
        if let Some(lock) = lock.take() {
            sys::unlock(&lock);
        }
    }

    fn open_pipe(&self, name: &str) -> io::Result<PipeEnd> {
        check_name(name)?;
        let _open = self.shared.stay_open()?;
        PipeEnd::open(&self.shared.dir_path.join(name))
            .map_err(|e| context(e, || format!("open {name}")))
    }

    fn describe(&self) -> String {
        let cache = if self.shared.direct { "O_DIRECT" } else { "buffered (no O_DIRECT here)" };
        let queue =
            if self.shared.rings.in_use() { "io_uring" } else { "pread/pwrite (no io_uring here)" };
        let atomic = match self.shared.atomic_refused.load(Relaxed) {
            true => "atomic writes promised and refused".to_owned(),
            false => self.shared.atomic.to_string(),
        };
        format!("files, {cache}, {queue}, {atomic}")
    }

    fn io_stats(&self) -> IoStats {
        self.shared.counters.snapshot()
    }
}

struct DiskFile {
    name: String,
    file: Arc<File>,
    len: AtomicU64,
    /// Held while the length changes, so that two growing threads do not undo each other.
    growing: Mutex<rank::FileGrowth, ()>,
    /// Held during a sync when writes are buffered.
    syncing: Mutex<rank::FileSync, ()>,
    /// A sync failed: no later one succeeds.
    sync_failed: AtomicBool,
    /// It was locked besides.
    is_locked: AtomicBool,
    /// What is written into the system's cache, past O_DIRECT.
    cached: Cached,
    shared: Arc<Shared>,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        // As for the directory's lock.
        if self.is_locked.load(Relaxed) && self.shared.home.is_here() {
            sys::unlock(&self.file);
        }
    }
}

impl DiskFile {
    /// DEVICE-5: reserves from `old_len` to `len`, which then reads as zeros. On an error the file
    /// is as long as before and holds no more space.
    fn extend(&self, old_len: u64, len: u64) -> io::Result<()> {
        let more = len - old_len;
        // Asked first, because the kernel would take all there is before it finds it too little,
        // and others would meet a full disk meanwhile.
        if sys::free_bytes(&self.file).is_ok_and(|free| free < more) {
            let text = format!("{more} bytes more than the disk has");
            return Err(io::Error::new(ErrorKind::StorageFull, text));
        }
        // Beyond it the kernel would send a signal that ends the process.
        if sys::file_size_max().is_ok_and(|most| most < len) {
            let text = format!("{len} bytes are more than a file may have here (ulimit -f)");
            return Err(io::Error::new(ErrorKind::StorageFull, text));
        }
        let reserved = sys::reserve(&self.file, old_len, more).and_then(|reserved| {
            if !reserved {
                // Writing is then the only way to be sure of the space.
                self.file.set_len(len)?;
                self.write_zeros(old_len, len)?;
            }
            Ok(())
        });
        if let Err(e) = reserved {
            let _ = self.file.set_len(old_len);
            let kind = if is_full(&e) { ErrorKind::StorageFull } else { e.kind() };
            return Err(io::Error::new(kind, e));
        }
        self.len.store(len, Release);
        Ok(())
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = AlignedBuf::zeroed(ZEROS_BYTES.min((to - from) as usize));
        let mut next = from;
        while next < to {
            let mut writes = Vec::new();
            while next < to && writes.len() < 8 {
                let len = (to - next).min(zeros.len() as u64);
                writes.push(WriteOp { offset: next, buf: &zeros[..len as usize] });
                next += len;
            }
            self.run_writes(&writes)?;
        }
        Ok(())
    }

    fn run_writes(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let mut batch = Batch::of_writes(writes);
        let bytes = writes.iter().map(|op| op.buf.len()).sum();
        self.shared.counters.count_writes(batch.len(), bytes);
        self.shared.rings.run(self.file.as_raw_fd(), &mut batch)
    }

    fn failed(&self, error: io::Error, what: &str, offset: u64, len: usize) -> io::Error {
        context(error, || format!("{what} {} ({len} bytes at {offset})", self.name))
    }

    /// DEVICE-8. Linux reports a failed write-back once for each open file, to the thread that
    /// syncs next: two that sync at the same time share the one report. Buffered, they therefore go
    /// one after the other, and a thread that comes later finds what was noted. With O_DIRECT a
    /// write that fails says so itself, and the flag is there for those that end later.
    fn synced(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let _alone = self.may_fail_later().then(|| self.syncing.lock());
        let check = || match self.sync_failed.load(Acquire) {
            true => Err(io::Error::other("an earlier sync of this file failed")),
            false => Ok(()),
        };
        check()?;
        let done = sync();
        if done.is_err() {
            self.sync_failed.store(true, Release);
            return done;
        }
        check()
    }

    /// Whether there may be writes whose failure shows in a sync.
    fn may_fail_later(&self) -> bool {
        !self.shared.direct || self.cached.is_used()
    }

    fn try_write_durable(&self, mut offset: u64, mut buf: &[u8]) -> io::Result<()> {
        while !buf.is_empty() && self.shared.dsync.load(Relaxed) {
            match sys::write_dsync(&self.file, offset, buf) {
                Ok(Some(0)) => return Err(ErrorKind::WriteZero.into()),
                Ok(Some(done)) => {
                    offset += done as u64;
                    buf = &buf[done..];
                }
                Ok(None) => self.shared.dsync.store(false, Relaxed),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        if buf.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(buf, offset)?;
        self.file.sync_data()
    }
}

impl BlockFile for DiskFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        check_read(offset, buf, self.len())?;
        let _open = self.shared.stay_open()?;
        self.shared.counters.count_reads(1, buf.len());
        let len = buf.len();
        self.file.read_exact_at(buf, offset).map_err(|e| self.failed(e, "read", offset, len))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        check_write(offset, buf, self.len())?;
        let _open = self.shared.stay_open()?;
        self.shared.counters.count_writes(1, buf.len());
        self.file.write_all_at(buf, offset).map_err(|e| self.failed(e, "write", offset, buf.len()))
    }

    fn write_cached_at(&self, offset: u64, buf: &[u8]) -> io::Result<bool> {
        check_write(offset, buf, self.len())?;
        let _open = self.shared.stay_open()?;
        let path = || self.shared.dir_path.join(&self.name);
        if self.shared.direct
            && (self.cached.write(&self.file, path, offset, buf))
                .map_err(|e| self.failed(e, "write", offset, buf.len()))?
        {
            self.shared.counters.count_writes(1, buf.len());
            return Ok(true);
        }
        self.write_at(offset, buf).map(|()| false)
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        check_write(offset, buf, self.len())?;
        let _open = self.shared.stay_open()?;
        self.shared.counters.count_writes(1, buf.len());
        self.shared.counters.count_sync();
        let write = || self.try_write_durable(offset, buf);
        // With O_DIRECT the write itself fails.
        let done = if self.may_fail_later() { self.synced(write) } else { write() };
        done.map_err(|e| self.failed(e, "durable write", offset, buf.len()))
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let (len, mut bytes) = (self.len(), 0);
        for op in reads.iter() {
            check_read(op.offset, op.buf, len)?;
            bytes += op.buf.len();
        }
        let _open = self.shared.stay_open()?;
        let count = reads.len();
        let mut batch = Batch::of_reads(reads);
        self.shared.counters.count_reads(batch.len(), bytes);
        self.shared
            .rings
            .run(self.file.as_raw_fd(), &mut batch)
            .map_err(|e| context(e, || format!("read {} ({count} ranges)", self.name)))
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let len = self.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        let _open = self.shared.stay_open()?;
        self.run_writes(writes)
            .map_err(|e| context(e, || format!("write {} ({} ranges)", self.name, writes.len())))
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        !self.shared.atomic_refused.load(Relaxed) && self.shared.atomic.has(len as u64)
    }

    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        let len = self.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        if self.shared.atomic_refused.load(Relaxed) || !self.shared.atomic.has_all(writes) {
            return Ok(false);
        }
        let _open = self.shared.stay_open()?;
        let mut batch = Batch::of_atomic_writes(writes);
        let bytes = writes.iter().map(|op| op.buf.len()).sum();
        self.shared.counters.count_writes(batch.len(), bytes);
        match self.shared.rings.run(self.file.as_raw_fd(), &mut batch) {
            Ok(()) => Ok(true),
            // What was asked for is right, so it is this file, or a kernel that does not hold what
            // it said: a file whose blocks do not lie together, say.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
                self.shared.atomic_refused.store(true, Relaxed);
                Ok(false)
            }
            Err(e) => Err(context(e, || {
                format!("write {} ({} ranges, atomically)", self.name, writes.len())
            })),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let _open = self.shared.stay_open()?;
        self.shared.counters.count_sync();
        self.synced(|| self.file.sync_data())
            .map_err(|e| context(e, || format!("sync {}", self.name)))?;
        self.cached.forget();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len.load(Acquire)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let _open = self.shared.stay_open()?;
        let _alone = self.growing.lock();
        let old_len = self.len();
        if len < old_len {
            let text = format!("{} cannot shrink from {old_len} to {len} bytes", self.name);
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        self.extend(old_len, len)
            .map_err(|e| context(e, || format!("grow {} to {len} bytes", self.name)))
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let _open = self.shared.stay_open()?;
        let _alone = self.growing.lock();
        let old_len = self.len();
        if len > old_len {
            let text = format!("{} has {old_len} bytes, not {len}", self.name);
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        // First: a write beyond the end would make the file longer again.
        self.len.store(len, Release);
        self.file.set_len(len).map_err(|e| {
            self.len.store(old_len, Release);
            context(e, || format!("shrink {} to {len} bytes", self.name))
        })
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        check_range(offset, len, self.len())?;
        let _open = self.shared.stay_open()?;
        let _alone = self.growing.lock();
        sys::punch(&self.file, offset, len)
            .map_err(|e| as_full(e, || format!("give back {len} bytes of {}", self.name)))
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        check_range(offset, len, self.len())?;
        let _open = self.shared.stay_open()?;
        let _alone = self.growing.lock();
        let doing = || format!("reserve {len} bytes of {} at {offset}", self.name);
        // Asked first, as for growth. Of a small range most may be there already.
        if len > UNASKED_BYTES && sys::free_bytes(&self.file).is_ok_and(|free| free < len) {
            let text = format!("{}: more bytes than the disk has", doing());
            return Err(io::Error::new(ErrorKind::StorageFull, text));
        }
        match sys::reserve(&self.file, offset, len) {
            // Where space cannot be reserved, none can be given back either.
            Ok(_) => Ok(()),
            Err(e) => Err(as_full(e, doing)),
        }
    }

    fn allocated_bytes(&self) -> Option<u64> {
        // The system counts by 512 bytes, whatever the file system's blocks are.
        self.file.metadata().ok().map(|metadata| metadata.blocks() * 512)
    }

    fn lock_alone(&self) -> io::Result<bool> {
        let _open = self.shared.stay_open()?;
        let lock = if self.shared.read_only { sys::try_lock_shared } else { sys::try_lock };
        let locked = lock(&self.file).map_err(|e| context(e, || format!("lock {}", self.name)))?;
        if locked {
            self.is_locked.store(true, Relaxed);
            self.shared.locked.lock().push(Arc::downgrade(&self.file));
        }
        Ok(locked)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
