//! A device that says it has synced and has not: a planted bug that the simulation must find.
use std::io;
use std::sync::Arc;

use weir::{BlockFile, Volume};
use weir_device::{Layer, ReadOp, WriteOp};

/// Which files the device lies about: those whose names begin so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie(pub &'static str);

/// A volume that forgets to sync some of its files.
pub struct LyingVolume {
    inner: Arc<dyn Volume>,
    lie: Lie,
}

impl LyingVolume {
    /// Lies about the files of `inner` that `lie` names.
    #[must_use]
    pub fn new(inner: Arc<dyn Volume>, lie: Lie) -> Self {
        LyingVolume { inner, lie }
    }
}

impl Layer for LyingVolume {
    fn below(&self) -> &dyn Volume {
        &*self.inner
    }
    fn wrap(&self, name: &str, file: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        if name.starts_with(self.lie.0) { Arc::new(LyingFile(file)) } else { file }
    }
    fn difference(&self) -> String {
        format!("lying about '{}'", self.lie.0)
    }
}

struct LyingFile(Arc<dyn BlockFile>);

impl BlockFile for LyingFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, buf)
    }
    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, buf)
    }
    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.0.read_many(reads)
    }
    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        self.0.write_many(writes)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn grow(&self, len: u64) -> io::Result<()> {
        self.0.grow(len)
    }
    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.0.punch(offset, len)
    }
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.reserve(offset, len)
    }
}
