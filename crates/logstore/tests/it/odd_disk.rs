//! A disk over a simulated one that does not sync, kills the process, or lets something happen at a
//! chosen moment.
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use weir_device::{BlockFile, IoStats, ReadOp, SimVolume, Volume, WriteOp};

/// How a disk misbehaves beneath a store.
pub(crate) struct Ways {
    /// Syncs of the file of segments do nothing.
    pub(crate) lies: bool,
    /// Changes that are made before the process is killed: its calls fail, and the disk keeps what
    /// was written.
    pub(crate) changes_left: AtomicI64,
    /// Done before the next batch of reads, once.
    pub(crate) before_reads: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Default for Ways {
    fn default() -> Self {
        Ways { lies: false, changes_left: AtomicI64::new(i64::MAX), before_reads: Mutex::default() }
    }
}

impl Ways {
    pub(crate) fn killed_after(changes: u64) -> Ways {
        Ways { changes_left: AtomicI64::new(changes as i64), ..Ways::default() }
    }

    fn change<T>(&self, then: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.changes_left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(io::Error::other("the process was killed"));
        }
        then()
    }
}

#[derive(Clone)]
struct OddVolume(SimVolume, Arc<Ways>);
struct OddFile(Arc<dyn BlockFile>, Arc<Ways>);

pub(crate) fn odd(sim: &SimVolume, ways: Ways) -> Arc<dyn Volume> {
    odd_of(sim, &Arc::new(ways))
}

/// As [`odd`], with ways that may be changed later.
pub(crate) fn odd_of(sim: &SimVolume, ways: &Arc<Ways>) -> Arc<dyn Volume> {
    Arc::new(OddVolume(sim.clone(), Arc::clone(ways)))
}

impl Volume for OddVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        Ok(Arc::new(OddFile(self.0.open(name)?, Arc::clone(&self.1))))
    }
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        self.0.create(name, len)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn exists(&self, name: &str) -> io::Result<bool> {
        self.0.exists(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn io_stats(&self) -> IoStats {
        self.0.io_stats()
    }
}

impl BlockFile for OddFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.1.change(|| self.0.write_at(offset, buf))
    }
    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.1.change(|| self.0.write_durable_at(offset, buf))
    }
    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let before = self.1.before_reads.lock().expect("no panic").take();
        if let Some(before) = before {
            before();
        }
        self.0.read_many(reads)
    }
    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        // Killed in the midst of a batch, a process leaves some of it.
        writes.iter().try_for_each(|op| self.write_at(op.offset, op.buf))
    }
    fn sync(&self) -> io::Result<()> {
        self.1.change(|| if self.1.lies { Ok(()) } else { self.0.sync() })
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn grow(&self, len: u64) -> io::Result<()> {
        self.1.change(|| self.0.grow(len))
    }
}
