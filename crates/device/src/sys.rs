//! The system calls that the standard library does not offer. One of the few files with `unsafe`.
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weir_base::{ALIGN, Clock};

/// A write is found whole or not at all (pwritev2(2)); older versions of `libc` have no name for
/// it.
pub(crate) const RWF_ATOMIC: libc::c_int = 0x40;

/// Takes the exclusive lock of an open file; false when another process has it. The lock belongs to
/// the open file, so a second open in the same process is refused too.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    try_flock(file, libc::LOCK_EX)
}

/// As [`try_lock`], shared with others that take it so.
pub(crate) fn try_lock_shared(file: &File) -> io::Result<bool> {
    try_flock(file, libc::LOCK_SH)
}

fn try_flock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed.
    let result = unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) };
    if result == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        e => Err(e),
    }
}

/// A new file without a name, which goes with its last handle: in `dir`, or in memory where that
/// has none.
pub(crate) fn nameless(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    if let Ok(file) = options.open(dir) {
        return Ok(file);
    }
    // SAFETY: the name is a string that ends with a zero byte; what is returned is an open
    // descriptor that is in no use yet, or -1.
    let made = unsafe { libc::memfd_create(c"weir-scratch".as_ptr(), libc::MFD_CLOEXEC) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { File::from_raw_fd(made) })
}

/// Gives up the lock of an open file. What cannot be unlocked is free when its last handle goes.
pub(crate) fn unlock(file: &File) {
    // SAFETY: the descriptor is open for as long as `file` is borrowed.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// Makes a named pipe that only its owner may open.
pub(crate) fn make_pipe(path: &Path) -> io::Result<()> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a string that ends with a zero byte.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Has a pipe hold so many bytes, if it may.
pub(crate) fn enlarge_pipe(file: &File, bytes: libc::c_int) {
    // SAFETY: the descriptor is open for as long as `file` is borrowed. A refusal changes nothing.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

/// Has the kernel drop what it caches of a file, but for what is not written yet.
pub(crate) fn forget_cached(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// Has the kernel begin to write what it caches of a range, without waiting for it.
pub(crate) fn begin_write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    let result = unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset as libc::off64_t, // DEVICE-1's length check keeps both below 2^63.
            len as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has this thread get no `SIGPIPE`: programs that embed the engine may not expect one, which ends
/// them.
pub(crate) fn block_sigpipe() -> io::Result<()> {
    // SAFETY: a signal set is plain data, filled by the calls before it is read.
    let failed = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// Reserves space for a range and makes the file at least that long; false when the file system
/// cannot. Not `posix_fallocate`, which then writes single bytes: O_DIRECT refuses those.
pub(crate) fn reserve(file: &File, offset: u64, len: u64) -> io::Result<bool> {
    allocate(file, 0, offset, len)
}

/// Gives back the space of a range, which reads as zeros then; false when the file system cannot.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<bool> {
    allocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len)
}

/// `fallocate`, until no signal interrupts it; false when the file system cannot.
fn allocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> io::Result<bool> {
    if len == 0 {
        return Ok(true);
    }
    loop {
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        let result = unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                mode,
                offset as libc::off_t, // DEVICE-1's length check keeps both below 2^63.
                len as libc::off_t,
            )
        };
        if result == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(false),
            _ => return Err(error),
        }
    }
}

/// The bytes that a user without privileges may still allocate in the file's file system; of one
/// that does not say how large it is (ramfs, some network file systems), no bound.
pub(crate) fn free_bytes(file: &File) -> io::Result<u64> {
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the descriptor is open, and `answer` has room for the structure.
    let result = unsafe { libc::fstatvfs(file.as_raw_fd(), answer.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed integers are valid, and the call has filled them in.
    let answer = unsafe { answer.assume_init() };
    if answer.f_blocks == 0 {
        return Ok(u64::MAX);
    }
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// The longest that this process may make a file (setrlimit(2), `RLIMIT_FSIZE`), in bytes.
pub(crate) fn file_size_max() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the structure.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => Ok(limit.rlim_cur),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes and makes durable in one call. `Ok(None)`: this kernel or file system cannot.
pub(crate) fn write_dsync(file: &File, offset: u64, buf: &[u8]) -> io::Result<Option<usize>> {
    let part = libc::iovec { iov_base: buf.as_ptr() as *mut libc::c_void, iov_len: buf.len() };
    // SAFETY: `part` describes `buf`, which is borrowed for the whole call; a write only reads it.
    let written = unsafe {
        libc::pwritev2(file.as_raw_fd(), &part, 1, offset as libc::off_t, libc::RWF_DSYNC)
    };
    if let Ok(written) = usize::try_from(written) {
        return Ok(Some(written));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(None),
        _ => Err(error),
    }
}

/// What statx(2) says of a file, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AtomicUnits {
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// Up to here the device does it; 0: the kernel makes no difference.
    pub(crate) max_fast: u64,
}

/// Where statx(2) answers about such writes, in the kernel's own structure: not all C libraries,
/// and not all versions of `libc`, have names for it.
const STATX_WRITE_ATOMIC: libc::c_uint = 0x0001_0000;
const ATOMIC_MIN_AT: usize = 168;
const ATOMIC_MAX_AT: usize = 172;
const ATOMIC_MAX_FAST_AT: usize = 184;
const _: () = assert!(size_of::<libc::statx>() == 256);

/// What the kernel says of writes to a file that are never torn; `None`: it knows of none.
pub(crate) fn atomic_units(file: &File) -> Option<AtomicUnits> {
    let mut answer = std::mem::MaybeUninit::<libc::statx>::zeroed();
    let (path, flags) = (c"".as_ptr(), libc::AT_EMPTY_PATH);
    // SAFETY: the descriptor is open, the path is a string that ends with a zero byte, and `answer`
    // has room for the structure.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), path, flags, STATX_WRITE_ATOMIC, answer.as_mut_ptr())
    };
    // SAFETY: inside the structure, at a multiple of four; zeroed integers are valid, whatever of
    // them the call has filled in.
    let at = |byte: usize| unsafe { answer.as_ptr().byte_add(byte).cast::<u32>().read() };
    let is_known = result == 0 && at(0) & STATX_WRITE_ATOMIC != 0;
    is_known.then(|| AtomicUnits {
        min: at(ATOMIC_MIN_AT).into(),
        max: at(ATOMIC_MAX_AT).into(),
        max_fast: at(ATOMIC_MAX_FAST_AT).into(),
    })
}

/// Whether the first page of a file that is not empty lies in the system's cache.
pub(crate) fn is_cached(file: &File) -> io::Result<bool> {
    let mut is_there = 0_u8;
    // SAFETY: a new mapping of one page, which nothing reads and which is taken away again below;
    // the descriptor is open.
    let page = unsafe {
        let (fd, none) = (file.as_raw_fd(), std::ptr::null_mut());
        libc::mmap(none, ALIGN, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page is mapped, and the answer for one page is one byte.
    let result = unsafe { libc::mincore(page, ALIGN, &mut is_there) };
    let answer = if result == 0 { Ok(is_there & 1 != 0) } else { Err(io::Error::last_os_error()) };
    // SAFETY: what was mapped above; nothing else knows of it.
    unsafe { libc::munmap(page, ALIGN) };
    answer
}

/// Sleeps without the 50 microseconds by which the kernel otherwise rounds timers up.
pub(crate) fn sleep_precisely(clock: &dyn Clock, micros: u64) {
    thread_local! {
        static FINE: () = {
            // SAFETY: sets this thread's timer slack to 1 ns; no memory of ours is involved.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
        };
    }
    FINE.with(|()| {});
    clock.sleep_micros(micros);
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn numbers_of_the_kernel_are_those_that_libc_has() {
        let named = [
            offset_of!(libc::statx, stx_atomic_write_unit_min),
            offset_of!(libc::statx, stx_atomic_write_unit_max),
            offset_of!(libc::statx, stx_atomic_write_unit_max_opt),
        ];
        assert_eq!(named, [ATOMIC_MIN_AT, ATOMIC_MAX_AT, ATOMIC_MAX_FAST_AT]);
        assert_eq!((STATX_WRITE_ATOMIC, RWF_ATOMIC), (libc::STATX_WRITE_ATOMIC, libc::RWF_ATOMIC));
    }
}
