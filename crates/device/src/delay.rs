//! A volume on which the writes of some files take long, in front of another one.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::Clock;

use crate::device::{BlockFile, ReadOp, Volume, WriteOp};
use crate::layer::Layer;

/// A volume that does what `inner` does, but where each call that writes to certain files takes
/// longer by a fixed time, however much it writes and however many others write: a disk that is far
/// away, or that others have. Clones are handles to the same volume.
#[derive(Clone)]
pub struct DelayedVolume {
    inner: Arc<dyn Volume>,
    delay: Arc<Delay>,
}

struct Delay {
    name_prefixes: Vec<String>,
    clock: Arc<dyn Clock>,
    write_micros: AtomicU64,
}

impl DelayedVolume {
    /// Delays what is written to files whose names begin with one of `name_prefixes`: by nothing at
    /// first.
    #[must_use]
    pub fn new(inner: Arc<dyn Volume>, name_prefixes: &[&str], clock: Arc<dyn Clock>) -> Self {
        let name_prefixes = name_prefixes.iter().map(|&name| name.to_owned()).collect();
        let delay = Delay { name_prefixes, clock, write_micros: AtomicU64::new(0) };
        DelayedVolume { inner, delay: Arc::new(delay) }
    }

    /// How much longer each such call takes from now on, in microseconds.
    pub fn set_write_micros(&self, micros: u64) {
        self.delay.write_micros.store(micros, Relaxed);
    }
}

impl Layer for DelayedVolume {
    fn below(&self) -> &dyn Volume {
        &*self.inner
    }

    fn wrap(&self, name: &str, file: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        if !self.delay.name_prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            return file;
        }
        Arc::new(DelayedFile { inner: file, delay: Arc::clone(&self.delay) })
    }

    fn difference(&self) -> String {
        "with slow writes".to_owned()
    }
}

struct DelayedFile {
    inner: Arc<dyn BlockFile>,
    delay: Arc<Delay>,
}

impl DelayedFile {
    fn wait(&self) {
        let micros = self.delay.write_micros.load(Relaxed);
        if micros > 0 {
            self.delay.clock.sleep_micros(micros);
        }
    }
}

impl BlockFile for DelayedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.wait();
        self.inner.write_at(offset, buf)
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.wait();
        self.inner.write_durable_at(offset, buf)
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.inner.read_many(reads)
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        self.wait();
        self.inner.write_many(writes)
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        self.inner.has_atomic_writes(len)
    }

    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        self.wait();
        self.inner.write_many_atomically(writes)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.inner.grow(len)
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        self.inner.shrink(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.inner.punch(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.reserve(offset, len)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn lock_alone(&self) -> io::Result<bool> {
        self.inner.lock_alone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimVolume;
    use weir_base::{ALIGN, AlignedBuf, ManualClock};

    #[test]
    fn writes_of_those_files_take_longer_and_nothing_else_does() {
        let clock = Arc::new(ManualClock::default());
        let sim = Arc::new(SimVolume::new(0));
        let volume = DelayedVolume::new(sim.clone(), &["pages"], clock.clone());
        let pages = volume.create("pages", 4 * ALIGN as u64).unwrap();
        let log = volume.create("redo-00", ALIGN as u64).unwrap();
        let mut page = AlignedBuf::zeroed(ALIGN);
        pages.write_at(0, &page).unwrap();
        assert_eq!(clock.now_micros(), 0, "not at first");
        volume.set_write_micros(1000);
        let ops = [0, 1, 2].map(|at| WriteOp { offset: at * ALIGN as u64, buf: &page });
        pages.write_many(&ops).unwrap();
        pages.write_durable_at(0, &page).unwrap();
        assert_eq!(clock.now_micros(), 2000, "by call, not by page");
        log.write_durable_at(0, &page).unwrap();
        pages.sync().unwrap();
        pages.read_at(0, &mut page).unwrap();
        assert_eq!(clock.now_micros(), 2000);
        assert_eq!(sim.list().unwrap(), ["pages", "redo-00"]);
    }
}
