//! Backups of pages and log, and databases made of them.
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::Store;
use crate::convert::open_error;
use crate::db::Db;
use crate::error::{Error, OpenError};
use crate::keys::{KeyFile, KeyProvider, Keys};

/// How to make a [backup](Db::write_backup).
#[derive(Clone, Copy, Default, Debug)]
#[must_use]
pub struct BackupOptions {
    raw: weir::BackupOptions,
}

impl BackupOptions {
    /// A full backup, at a pace that leaves the work nine tenths of the disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only what was changed since this backup, of which the beginning is read: it is needed to
    /// restore. Of an encrypted database: [`BackupOptions::since_sealed`].
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: it is none.
    pub fn since(self, backup: impl Read) -> Result<Self, Error> {
        self.since_with(backup, None)
    }

    /// As [`BackupOptions::since`], with the keys that open that backup.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: it is none, or another key opens it.
    pub fn since_sealed(self, backup: impl Read, keys: &KeyFile) -> Result<Self, Error> {
        self.since_with(backup, Some(&Keys::of_file(keys).raw()))
    }

    fn since_with(
        mut self,
        backup: impl Read,
        encryption: Option<&weir::Encryption>,
    ) -> Result<Self, Error> {
        let base = weir::unseal(backup, encryption).and_then(weir::BackupBase::read);
        self.raw.since = Some(base.map_err(|e| Error::InvalidInput(e.to_string()))?);
        Ok(self)
    }

    /// Reads so many bytes per second at most, whatever else is going on.
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.raw.bytes_per_second = Some(bytes);
        self
    }

    /// When all is there, goes on with the log that is written from then on, until its progress
    /// says `false`: any moment since can be restored.
    pub fn follow(mut self) -> Self {
        self.raw.follow = true;
        self
    }
}

/// How far a backup is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Pages gone through.
    pub pages: u64,
    /// Pages that there are to go through.
    pub pages_of: u64,
    /// Bytes written.
    pub bytes: u64,
    /// All is there, and the log is followed.
    pub follows: bool,
}

/// What a backup of pages and log holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PageBackup {
    /// Pages.
    pub pages: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// All bytes.
    pub bytes: u64,
    /// The state that it holds: all that was committed before this position of the log.
    pub position: u64,
}

impl BackupProgress {
    fn of(at: weir::BackupProgress) -> Self {
        let weir::BackupProgress { pages, pages_of, bytes, follows } = at;
        BackupProgress { pages, pages_of, bytes, follows }
    }
}

impl PageBackup {
    fn of(done: weir::BackedUp) -> Self {
        let (pages, log_bytes, bytes) = (done.pages, done.log_bytes, done.bytes);
        PageBackup { pages, log_bytes, bytes, position: done.end.0 }
    }
}

/// How to [restore].
#[derive(Clone, Default, Debug)]
#[must_use]
pub struct RestoreOptions {
    raw: weir::RestoreOptions,
}

impl RestoreOptions {
    /// All that the last backup has, in the page store of the database that was backed up.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was committed before a position of the log.
    pub fn to_position(mut self, position: u64) -> Self {
        self.raw.to = Some(weir::RestorePoint::Lsn(weir::Lsn(position)));
        self
    }

    /// What was committed at a time, to about a second.
    pub fn to_time(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.raw.to = Some(weir::RestorePoint::Micros(since.as_micros() as u64));
        self
    }

    /// Where the new database keeps its pages.
    pub fn store(mut self, store: Store) -> Self {
        self.raw.store = Some(store.raw());
        self
    }

    /// The keys in this file open the backups, and encrypt the new database.
    pub fn key_file(mut self, file: &KeyFile) -> Self {
        self.raw.encryption = Some(Keys::of_file(file).raw());
        self
    }

    /// As [`RestoreOptions::key_file`], with keys from elsewhere.
    pub fn key_provider(mut self, provider: impl KeyProvider + 'static) -> Self {
        self.raw.encryption = Some(Keys::of_provider(provider).raw());
        self
    }

    /// The last backup need not have ended, if only all pages are in it: of one that followed a
    /// database until one of them crashed.
    pub fn incomplete(mut self) -> Self {
        self.raw.incomplete = true;
        self
    }
}

impl Db {
    /// Writes pages as they lie on disk, each verified, and the log that belongs to them, to `out`,
    /// while all transactions go on: what was committed when this returns, prepared transactions as
    /// they are. `progress` ends it by `false`: `Ok(None)` then, and what was written is no backup
    /// (unless it [follows](BackupOptions::follow)). [`restore`] makes a database of it.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a backup since one of another database; [`Error::Damaged`] for a
    /// page that is damaged; [`Error::Io`] of `out` and of the disk.
    pub fn write_backup(
        &self,
        out: impl Write,
        options: &BackupOptions,
        mut progress: impl FnMut(BackupProgress) -> bool,
    ) -> Result<Option<PageBackup>, Error> {
        let mut shown = |at: weir::BackupProgress| progress(BackupProgress::of(at));
        let done = self.inner.raw.backup(out, &options.raw, &mut shown);
        let done = done.map_err(|e| self.inner.fails(e))?;
        Ok(done.map(PageBackup::of))
    }

    /// Goes on with a backup that was cut off: by a crash of either side, a full disk, or its
    /// progress. `there` is what there is of it, and is read to its end and verified (no pages are
    /// gone through meanwhile). Then `out` is called with the offset at which the rest belongs: it
    /// cuts off what is behind that, and gives back where to write on. Where nothing is missing it
    /// is not called. All pages in use are read again, and those that are missing or were changed
    /// are written; the database need not have been open in between. `progress` ends it by
    /// `false`: `Ok(None)` then, and it can be gone on with again.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a backup of another database, with [`BackupOptions::since`] (one
    /// that was begun so stays so), or without its keys; [`Error::Damaged`] where not even
    /// its beginning is whole; as [`Db::write_backup`].
    pub fn resume_backup<W: Write>(
        &self,
        there: impl Read,
        out: impl FnOnce(u64) -> io::Result<W>,
        options: &BackupOptions,
        mut progress: impl FnMut(BackupProgress) -> bool,
    ) -> Result<Option<PageBackup>, Error> {
        let mut shown = |at: weir::BackupProgress| progress(BackupProgress::of(at));
        let done = self.inner.raw.resume_backup_from(there, out, &options.raw, &mut shown);
        let done = done.map_err(|e| self.inner.fails(e))?;
        Ok(done.map(PageBackup::of))
    }
}

/// Makes a database in `dir`, which must hold nothing, of a full backup and those that were made
/// since it, each of the one before. `progress` gets the bytes read, and ends it by `false`:
/// `Ok(false)` then. What fails or is ended leaves nothing in `dir`; what a crash leaves cannot be
/// opened. The log is applied when the database is opened first.
///
/// # Errors
/// [`OpenError::Directory`] where there is something; [`OpenError::Config`] for backups that do not
/// belong together, or a point that is not in them; [`OpenError::Damaged`]; those of the disk.
pub fn restore(
    dir: impl AsRef<Path>,
    backups: Vec<Box<dyn Read>>,
    options: &RestoreOptions,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<bool, OpenError> {
    let dir = dir.as_ref();
    let done = weir::restore(dir, backups, &options.raw, &mut progress);
    done.map(|done| done.is_some()).map_err(|e| open_error(dir.to_path_buf(), e))
}
