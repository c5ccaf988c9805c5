//! The interface that every device gives, and what all of them check alike.
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use weir_base::{ALIGN, Counter, align_down};

use crate::pipe::PipeEnd;

/// A directory of files. Everything above does I/O only through this.
///
/// Names are plain file names: not empty, without `/`, not `.` or `..`, and not `LOCK`
/// (DEVICE-2); anything else is an `InvalidInput` error.
pub trait Volume: Send + Sync {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// `NotFound` when there is none; otherwise what the device reports.
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>>;

    /// Creates a zero-filled file of `len` bytes (a multiple of [`ALIGN`]) with its space reserved.
    /// The name is durable after [`Volume::sync_directory`].
    ///
    /// # Errors
    /// `AlreadyExists`; `StorageFull` (then nothing is left behind); what the device reports.
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>>;

    /// Removes a file; durable after [`Volume::sync_directory`]. Handles that are open stay valid.
    ///
    /// # Errors
    /// `NotFound`; what the device reports.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Whether a file of this name is there.
    ///
    /// # Errors
    /// What the device reports.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// The names of all files, sorted, without the lock file.
    ///
    /// # Errors
    /// What the device reports.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes creations and removals durable.
    ///
    /// # Errors
    /// What the device reports.
    fn sync_directory(&self) -> io::Result<()>;

    /// Whether, of a file elsewhere that only grows, the sync also makes durable what was written
    /// here before it grew (to files whose names and lengths were durable), and after a power
    /// failure it is not found longer without that (DEVICE-9). `device` is the `st_dev` of that
    /// file. `false` where that is unknown.
    fn is_synced_with(&self, device: u64) -> bool {
        let _ = device;
        false
    }

    /// Gives the volume up for good: what is under way ends, every later call on it and its files
    /// fails, and whatever kept others away is free when this returns (DEVICE-10). Does nothing
    /// where no other process can come to what lies below.
    fn close(&self) {}

    /// Opens a named pipe to write into, which a reader has open.
    ///
    /// # Errors
    /// `Unsupported` where there are none; `NotFound`; what the system reports where no process
    /// reads from it.
    fn open_pipe(&self, name: &str) -> io::Result<PipeEnd> {
        Err(io::Error::new(ErrorKind::Unsupported, format!("{name}: there are no pipes here")))
    }

    /// One line for people: what this is, and what it could not use.
    fn describe(&self) -> String;

    /// What was done since the volume was opened.
    fn io_stats(&self) -> IoStats;
}

/// A file of blocks. All offsets, lengths and buffer addresses are multiples of [`ALIGN`]
/// (DEVICE-1); anything else is an `InvalidInput` error and does nothing. Many threads may use one
/// handle; ranges that overlap in concurrent calls, or within one batch, land in any order.
pub trait BlockFile: Send + Sync {
    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the range passes the end; `InvalidInput`; what the device reports.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes inside the present length. Durable only after [`BlockFile::sync`].
    ///
    /// # Errors
    /// `InvalidInput` also when the range passes the end; what the device reports.
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()>;

    /// As [`BlockFile::write_at`], for a write that need only survive this process: `true` when
    /// the system's cache keeps it for now, so that the device has it after the next
    /// [`BlockFile::sync`] only. `false`: it is where [`BlockFile::write_at`] leaves it.
    ///
    /// # Errors
    /// As [`BlockFile::write_at`].
    fn write_cached_at(&self, offset: u64, buf: &[u8]) -> io::Result<bool> {
        self.write_at(offset, buf).map(|()| false)
    }

    /// Writes, and returns when this write (alone) is on stable storage.
    ///
    /// # Errors
    /// As [`BlockFile::write_at`].
    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()>;

    /// Does all reads with a deep queue and returns when all are done.
    ///
    /// # Errors
    /// The first failure; the contents of every buffer are then unspecified.
    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()>;

    /// Does all writes with a deep queue and returns when all are done. Durable only after
    /// [`BlockFile::sync`].
    ///
    /// # Errors
    /// The first failure; any part of the batch may then be written. Nothing is written when an
    /// operation is invalid.
    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()>;

    /// Whether [`BlockFile::write_many_atomically`] does writes of `len` bytes, as far as is known.
    fn has_atomic_writes(&self, _len: usize) -> bool {
        false
    }

    /// As [`BlockFile::write_many`], and each write is found whole or not at all, whatever happens,
    /// though not as one with the others: no page of them is torn. Each begins at a multiple of its
    /// length, which is a power of two. `false`: that is not promised here (any more), and any of
    /// them may have been written, whole.
    ///
    /// # Errors
    /// As [`BlockFile::write_many`].
    fn write_many_atomically(&self, _writes: &[WriteOp<'_>]) -> io::Result<bool> {
        Ok(false)
    }

    /// Makes all writes that returned before, and the length, durable.
    ///
    /// # Errors
    /// What the device reports. After a failure nothing may be assumed of unsynced writes.
    fn sync(&self) -> io::Result<()>;

    /// The present length in bytes.
    fn len(&self) -> u64;

    /// Whether the length is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the file `len` bytes long, zero-filled, with its space reserved: a full disk shows
    /// here, not in later writes. Durable after [`BlockFile::sync`]. The present length is no
    /// change.
    ///
    /// # Errors
    /// `StorageFull`; `InvalidInput` when `len` is below the present length; what the device
    /// reports.
    fn grow(&self, len: u64) -> io::Result<()>;

    /// Gives back the space from `len` on, whose bytes nothing needs any more. Afterwards the file
    /// is `len` bytes long, or as long as before where its space cannot be given back. Durable
    /// after [`BlockFile::sync`]; a crash before may leave it as long as it was, with those bytes
    /// or without.
    ///
    /// # Errors
    /// `InvalidInput` when `len` is above the present length; what the device reports.
    fn shrink(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// Gives back the space of a range, which reads as zeros then: a hole. The length stays. A
    /// write there may meet a full disk until [`BlockFile::reserve`] has been called. `false`:
    /// that cannot be done here, and nothing has changed. A crash before [`BlockFile::sync`] may
    /// leave the hole, or the bytes that were there, by blocks of [`ALIGN`].
    ///
    /// # Errors
    /// `InvalidInput` also when the range passes the end; `StorageFull` where giving space back
    /// takes some; what the device reports.
    fn punch(&self, _offset: u64, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Reserves the space of a range again, what lies there stays: writing there never meets a full
    /// disk. Durable after [`BlockFile::sync`].
    ///
    /// # Errors
    /// `StorageFull`: a part may be reserved; `InvalidInput` also when the range passes the end;
    /// what the device reports.
    fn reserve(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// The bytes that the file takes on the device; `None` where that is unknown.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }

    /// Keeps all others from locking this file, in this process and in others, for as long as
    /// this handle is open (DEVICE-11). `false`: another handle has it locked. Where nothing but
    /// one process can come near the file, nothing is done.
    ///
    /// # Errors
    /// What the device reports.
    fn lock_alone(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// One read of a batch.
pub struct ReadOp<'a> {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What to fill.
    pub buf: &'a mut [u8],
}

/// One write of a batch.
pub struct WriteOp<'a> {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What to write.
    pub buf: &'a [u8],
}

/// What a volume has done, cumulative over all its files. Contiguous neighbours in one batch may be
/// merged and then count as one read or write, as they do at the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Read operations.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Write operations, durable ones included.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Syncs: of files, of the directory, and durable writes.
    pub syncs: u64,
}

impl IoStats {
    /// What was done after `earlier` was taken.
    #[must_use]
    pub fn since(&self, earlier: &IoStats) -> IoStats {
        IoStats {
            reads: self.reads - earlier.reads,
            bytes_read: self.bytes_read - earlier.bytes_read,
            writes: self.writes - earlier.writes,
            bytes_written: self.bytes_written - earlier.bytes_written,
            syncs: self.syncs - earlier.syncs,
        }
    }
}

/// The counters behind [`IoStats`].
#[derive(Default)]
pub(crate) struct IoCounters {
    reads: Counter,
    bytes_read: Counter,
    writes: Counter,
    bytes_written: Counter,
    syncs: Counter,
}

impl IoCounters {
    pub(crate) fn count_reads(&self, reads: usize, bytes: usize) {
        self.reads.add(reads as u64);
        self.bytes_read.add(bytes as u64);
    }
    pub(crate) fn count_writes(&self, writes: usize, bytes: usize) {
        self.writes.add(writes as u64);
        self.bytes_written.add(bytes as u64);
    }
    pub(crate) fn count_sync(&self) {
        self.syncs.add(1);
    }
    pub(crate) fn snapshot(&self) -> IoStats {
        IoStats {
            reads: self.reads.get(),
            bytes_read: self.bytes_read.get(),
            writes: self.writes.get(),
            bytes_written: self.bytes_written.get(),
            syncs: self.syncs.get(),
        }
    }
}

/// The lock file's name, which no other file may have.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// DEVICE-1 for one operation, and that it does not overflow.
pub(crate) fn check_aligned(offset: u64, buf: &[u8]) -> io::Result<()> {
    let odd = |n: u64| align_down(n) != n;
    let what = if odd(offset) {
        "offset"
    } else if odd(buf.len() as u64) {
        "length"
    } else if odd(buf.as_ptr() as u64) && !buf.is_empty() {
        "buffer address"
    } else {
        return Ok(());
    };
    let len = buf.len();
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("{what} is not a multiple of {ALIGN}: {len} bytes at offset {offset}"),
    ))
}

/// A read of `buf` at `offset` in a file of `file_len` bytes.
pub(crate) fn check_read(offset: u64, buf: &[u8], file_len: u64) -> io::Result<()> {
    check_aligned(offset, buf)?;
    match offset.checked_add(buf.len() as u64) {
        Some(end) if end <= file_len => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::UnexpectedEof,
            format!("read of {} bytes at {offset} passes the end at {file_len}", buf.len()),
        )),
    }
}

/// A write of `buf` at `offset` in a file of `file_len` bytes.
pub(crate) fn check_write(offset: u64, buf: &[u8], file_len: u64) -> io::Result<()> {
    check_aligned(offset, buf)?;
    match offset.checked_add(buf.len() as u64) {
        Some(end) if end <= file_len => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("write of {} bytes at {offset} passes the end at {file_len}", buf.len()),
        )),
    }
}

/// A range to punch or to reserve in a file of `file_len` bytes.
pub(crate) fn check_range(offset: u64, len: u64, file_len: u64) -> io::Result<()> {
    let is_aligned = align_down(offset) == offset && align_down(len) == len;
    match offset.checked_add(len) {
        Some(end) if is_aligned && end <= file_len => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{len} bytes at {offset} are no blocks of a file of {file_len} bytes"),
        )),
    }
}

/// A length to create a file with or to grow it to.
pub(crate) fn check_len(len: u64) -> io::Result<()> {
    if align_down(len) == len && i64::try_from(len).is_ok() {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("a file's length is a multiple of {ALIGN} below 2^63, not {len}"),
    ))
}

/// DEVICE-2.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    let plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    if plain && name != LOCK_NAME {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidInput, format!("'{name}' cannot name a file here")))
}

/// The same kind of error, with what was being done in front.
pub(crate) fn context(error: io::Error, doing: impl FnOnce() -> String) -> io::Error {
    io::Error::new(error.kind(), Failed { doing: doing(), source: error })
}

/// An error and what was being done.
#[derive(Debug)]
struct Failed {
    doing: String,
    source: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.doing, self.source)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::AlignedBuf;

    #[test]
    fn ranges_are_checked() {
        let buf = AlignedBuf::zeroed(3 * ALIGN);
        let kind = |result: io::Result<()>| result.err().map(|e| e.kind());
        let (page, invalid) = (ALIGN as u64, Some(ErrorKind::InvalidInput));
        assert_eq!(kind(check_aligned(page, &buf)), None);
        assert_eq!(kind(check_aligned(page + 512, &buf)), invalid);
        assert_eq!(kind(check_aligned(0, &buf[..100])), invalid);
        assert_eq!(kind(check_aligned(0, &buf[512..512 + ALIGN])), invalid);
        assert_eq!(kind(check_aligned(0, &[])), None);
        assert_eq!(kind(check_read(0, &buf, 3 * page)), None);
        assert_eq!(kind(check_read(page, &buf, 3 * page)), Some(ErrorKind::UnexpectedEof));
        assert_eq!(kind(check_read(!(page - 1), &buf, 3 * page)), Some(ErrorKind::UnexpectedEof));
        assert_eq!(kind(check_write(page, &buf, 3 * page)), invalid);
        assert_eq!(kind(check_range(page, 2 * page, 3 * page)), None);
        for (offset, len) in [(page, 3 * page), (512, page), (0, 100), (!(page - 1), page)] {
            assert_eq!(kind(check_range(offset, len, 3 * page)), invalid, "{offset} {len}");
        }
        assert_eq!(kind(check_len(1)), invalid);
        assert_eq!(kind(check_len(1 << 63)), invalid);
    }

    #[test]
    fn names_are_checked() {
        for name in ["", ".", "..", "a/b", "/a", "LOCK", "a\0b"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "log.0001", ".hidden", "LOCKED"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn messages_say_what_is_wrong() {
        let buf = AlignedBuf::zeroed(ALIGN);
        let text = check_aligned(7, &buf).unwrap_err().to_string();
        assert_eq!(text, "offset is not a multiple of 4096: 4096 bytes at offset 7");
    }
}
