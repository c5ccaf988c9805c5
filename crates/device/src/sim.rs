//! A simulated disk in memory: it loses, tears at 512 bytes and reorders all that is not synced.
//!
//! Reads see every write, as a page cache would show them. What a power loss leaves is decided
//! later, by [`SimVolume::crash_with`], from the durable contents and the journal of changes that
//! were not synced. The same calls and the same seed give the same disk.
use std::io::{self, ErrorKind};
use std::sync::Arc;
use weir_base::lock::Mutex;
use weir_base::rank;

use crate::atomic::AtomicWrites;
use crate::device::{
    BlockFile, IoStats, ReadOp, Volume, WriteOp, check_len, check_name, check_range, check_read,
    check_write,
};
use crate::sim_disk::{Disk, FileId, FileState};

/// What a power loss does to changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// None of them reached the medium.
    LoseAll,
    /// All of them did, the write in flight included.
    KeepAll,
    /// Each 512-byte sector, length and directory entry did or did not, by the seed.
    Random,
}

/// What a disk says of writes that it does atomically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicPromise {
    /// It does those of up to so many bytes.
    Kept(u64),
    /// It says so, and tears them like all others.
    Broken(u64),
    /// It says so, and refuses each.
    Refused(u64),
}

impl AtomicPromise {
    /// The writes that are promised.
    fn writes(self) -> AtomicWrites {
        match self {
            AtomicPromise::Kept(max) | AtomicPromise::Broken(max) | AtomicPromise::Refused(max) => {
                AtomicWrites::up_to(max)
            }
        }
    }
}

/// A simulated disk. Clones are handles to the same disk; [`SimVolume::fork`] copies it.
#[derive(Clone)]
pub struct SimVolume {
    disk: Arc<Mutex<rank::SimulatedDisk, Disk>>,
    seed: u64,
}

impl SimVolume {
    /// An empty disk without a limit. `seed` is mixed into the seeds given to
    /// [`SimVolume::crash`], so that two disks do not tear alike.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of(Disk::default(), seed)
    }

    /// An empty disk on which files may reserve `capacity_bytes` together.
    #[must_use]
    pub fn with_capacity(seed: u64, capacity_bytes: u64) -> Self {
        let volume = Self::new(seed);
        volume.set_capacity(Some(capacity_bytes));
        volume
    }

    fn of(disk: Disk, seed: u64) -> Self {
        SimVolume { disk: Arc::new(Mutex::new(disk)), seed }
    }

    /// Limits, or frees, what files may reserve together, in bytes. Files that are there stay.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.disk.lock().capacity_bytes = capacity_bytes;
    }

    /// Has the disk promise atomic writes, or none: to those that are opened from now on.
    pub fn set_atomic(&self, promise: Option<AtomicPromise>) {
        self.disk.lock().atomic = promise;
    }

    /// Lets `steps` more changes happen; the next one crashes the disk: it is left in flight, its
    /// call fails, and so does every later call (DEVICE-6). `None` takes the limit away, but does
    /// not bring a crashed disk back.
    ///
    /// One step is: each operation of `write_many`, a `write_at`, a `sync`, a `sync_directory`, a
    /// creation, a removal, a growth, a hole or its end. A `write_durable_at` is two: one before
    /// the write is on the medium, one after it, when it is but the caller does not learn of it.
    pub fn set_crash_after(&self, steps: Option<u64>) {
        let mut disk = self.disk.lock();
        disk.crash_at = steps.map(|steps| disk.steps + steps);
    }

    /// How many steps, in the sense of [`SimVolume::set_crash_after`], were taken so far.
    #[must_use]
    pub fn writes_so_far(&self) -> u64 {
        self.disk.lock().steps
    }

    /// Whether the disk has crashed.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.disk.lock().crashed
    }

    /// The disk as it is found after a power loss now; see [`CrashMode::Random`]. This disk stays
    /// as it is, so that many ends of one history can be looked at.
    #[must_use]
    pub fn crash(&self, seed: u64) -> SimVolume {
        self.crash_with(CrashMode::Random, seed)
    }

    /// As [`SimVolume::crash`], with a choice of what survives.
    #[must_use]
    pub fn crash_with(&self, mode: CrashMode, seed: u64) -> SimVolume {
        let mixed = seed ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self::of(self.disk.lock().after_power_loss(mode, mixed), self.seed.wrapping_add(1))
    }

    /// A copy of what is durable now. Cheap: contents are shared until one side writes.
    #[must_use]
    pub fn snapshot(&self) -> SimVolume {
        self.crash_with(CrashMode::LoseAll, 0)
    }

    /// A copy of the whole disk with its unsynced changes and its crash limit. Files open on this
    /// disk are not open on the copy.
    #[must_use]
    pub fn fork(&self) -> SimVolume {
        let mut disk = self.disk.lock().clone();
        disk.forget_handles();
        Self::of(disk, self.seed)
    }

    /// Flips the bits of `xor` in one byte of a file, on the medium and in every copy of it.
    ///
    /// # Errors
    /// `NotFound`; `UnexpectedEof` when the file ends before `offset`.
    pub fn corrupt(&self, name: &str, offset: u64, xor: u8) -> io::Result<()> {
        self.disk.lock().corrupt(name, offset, xor)
    }

    /// A file's bytes as reads see them.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn read_raw(&self, name: &str) -> io::Result<Vec<u8>> {
        let disk = self.disk.lock();
        Ok(disk.file(disk.find(name)?)?.seen.to_vec())
    }

    /// Replaces a file, or makes one, with these durable bytes, of any length.
    ///
    /// # Errors
    /// `InvalidInput` when the name cannot be one.
    pub fn write_raw(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        self.disk.lock().put_durable(name, bytes);
        Ok(())
    }

    fn handle(&self, id: FileId) -> Arc<dyn BlockFile> {
        Arc::new(SimFile { disk: Arc::clone(&self.disk), id })
    }
}

impl Volume for SimVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        check_name(name)?;
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        let id = disk.find(name)?;
        disk.opened(id);
        Ok(self.handle(id))
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        check_name(name)?;
        check_len(len)?;
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        if disk.find(name).is_ok() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, format!("{name} exists")));
        }
        disk.check_space(len)?;
        let alive = disk.step();
        let id = disk.create(name, len);
        alive?;
        disk.opened(id);
        Ok(self.handle(id))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        disk.find(name)?;
        let alive = disk.step();
        disk.remove(name);
        alive
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        check_name(name)?;
        let disk = self.disk.lock();
        disk.check_alive()?;
        Ok(disk.find(name).is_ok())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let disk = self.disk.lock();
        disk.check_alive()?;
        Ok(disk.names())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        disk.step()?;
        disk.stats.syncs += 1;
        disk.sync_directory();
        Ok(())
    }

    fn describe(&self) -> String {
        "simulated disk in memory".to_owned()
    }

    fn io_stats(&self) -> IoStats {
        self.disk.lock().stats
    }
}

struct SimFile {
    disk: Arc<Mutex<rank::SimulatedDisk, Disk>>,
    id: FileId,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.lock().closed(self.id);
    }
}

impl SimFile {
    /// Writes each of them by `write`.
    fn write_all(
        &self,
        disk: &mut Disk,
        writes: &[WriteOp<'_>],
        write: fn(&mut FileState, u64, &[u8]),
    ) -> io::Result<()> {
        disk.check_alive()?;
        let len = disk.file(self.id)?.seen.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        let mut alive = Ok(());
        for op in writes {
            disk.file(self.id)?.check_reserved(op.offset, op.buf.len() as u64)?;
            // A crash within the batch leaves all the rest in flight too: a deep queue had issued
            // it by then.
            if alive.is_ok() {
                alive = disk.step();
            }
            write(disk.file_mut(self.id)?, op.offset, op.buf);
            disk.stats.writes += 1;
            disk.stats.bytes_written += op.buf.len() as u64;
        }
        alive
    }
}

impl BlockFile for SimFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.read_many(&mut [ReadOp { offset, buf }])
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.write_many(&[WriteOp { offset, buf }])
    }

    /// What is not synced is lost alike, wherever it was.
    fn write_cached_at(&self, offset: u64, buf: &[u8]) -> io::Result<bool> {
        self.write_at(offset, buf).map(|()| true)
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        check_write(offset, buf, disk.file(self.id)?.seen.len())?;
        disk.file(self.id)?.check_reserved(offset, buf.len() as u64)?;
        disk.stats.writes += 1;
        disk.stats.bytes_written += buf.len() as u64;
        disk.stats.syncs += 1;
        let before = disk.step();
        let file = disk.file_mut(self.id)?;
        if before.is_err() {
            file.write(offset, buf);
            return before;
        }
        file.write_durable(offset, buf);
        disk.step()
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        let len = disk.file(self.id)?.seen.len();
        reads.iter().try_for_each(|op| check_read(op.offset, op.buf, len))?;
        let mut bytes = 0;
        for op in reads.iter_mut() {
            disk.file(self.id)?.seen.read(op.offset, op.buf);
            bytes += op.buf.len() as u64;
        }
        disk.stats.reads += reads.len() as u64;
        disk.stats.bytes_read += bytes;
        Ok(())
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        self.write_all(&mut self.disk.lock(), writes, FileState::write)
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        let promise = self.disk.lock().atomic;
        promise.is_some_and(|promise| promise.writes().has(len as u64))
    }

    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        let promise = disk.atomic.filter(|promise| promise.writes().has_all(writes));
        let Some(promise) = promise else { return Ok(false) };
        match promise {
            AtomicPromise::Kept(_) => self.write_all(&mut disk, writes, FileState::write_whole)?,
            AtomicPromise::Broken(_) => self.write_all(&mut disk, writes, FileState::write)?,
            AtomicPromise::Refused(_) => {
                // Some of them were done.
                let done = &writes[..writes.len() / 2];
                self.write_all(&mut disk, done, FileState::write_whole)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        disk.step()?;
        disk.stats.syncs += 1;
        disk.file_mut(self.id)?.sync();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.disk.lock().file(self.id).map_or(0, |file| file.seen.len())
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        let old_len = disk.file(self.id)?.seen.len();
        if len < old_len {
            let text = format!("a file cannot shrink from {old_len} to {len} bytes");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        disk.check_space(len - old_len)?;
        let alive = disk.step();
        disk.file_mut(self.id)?.grow(len);
        alive
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        let old_len = disk.file(self.id)?.seen.len();
        if len > old_len {
            let text = format!("a file of {old_len} bytes cannot shrink to {len}");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let alive = disk.step();
        disk.file_mut(self.id)?.shrink(len);
        alive
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        check_range(offset, len, disk.file(self.id)?.seen.len())?;
        let alive = disk.step();
        disk.file_mut(self.id)?.punch(offset, len);
        alive.map(|()| true)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.check_alive()?;
        let file = disk.file(self.id)?;
        check_range(offset, len, file.seen.len())?;
        let more = file.seen.hole_bytes(offset, len);
        if more > 0 {
            disk.check_space(more)?;
        }
        let alive = disk.step();
        disk.file_mut(self.id)?.reserve(offset, len);
        alive
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.disk.lock().file(self.id).ok().map(|file| file.seen.allocated())
    }
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
