//! Volumes in front of another one, which differ from it in a few ways.
use std::io;
use std::sync::Arc;

use crate::device::{BlockFile, IoStats, Volume};
use crate::pipe::PipeEnd;

/// A volume that does what the one below it does, but for what an implementation says: each layer
/// is a [`Volume`].
pub trait Layer: Send + Sync {
    /// What lies below.
    fn below(&self) -> &dyn Volume;

    /// A file of the volume below, as it is here.
    fn wrap(&self, name: &str, file: Arc<dyn BlockFile>) -> Arc<dyn BlockFile>;

    /// For people: in which way it differs.
    fn difference(&self) -> String;

    /// [`Volume::open`].
    ///
    /// # Errors
    /// Those of the volume below.
    fn open_wrapped(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        Ok(self.wrap(name, self.below().open(name)?))
    }

    /// [`Volume::create`].
    ///
    /// # Errors
    /// Those of the volume below.
    fn create_wrapped(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        Ok(self.wrap(name, self.below().create(name, len)?))
    }

    /// [`Volume::remove`].
    ///
    /// # Errors
    /// Those of the volume below.
    fn remove_below(&self, name: &str) -> io::Result<()> {
        self.below().remove(name)
    }

    /// [`Volume::sync_directory`].
    ///
    /// # Errors
    /// Those of the volume below.
    fn sync_names(&self) -> io::Result<()> {
        self.below().sync_directory()
    }
}

impl<L: Layer> Volume for L {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        self.open_wrapped(name)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        self.create_wrapped(name, len)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.remove_below(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.below().exists(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.below().list()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.sync_names()
    }

    fn close(&self) {
        self.below().close();
    }

    fn open_pipe(&self, name: &str) -> io::Result<PipeEnd> {
        self.below().open_pipe(name)
    }

    fn describe(&self) -> String {
        format!("{}, over {}", self.difference(), self.below().describe())
    }

    fn io_stats(&self) -> IoStats {
        self.below().io_stats()
    }
}
