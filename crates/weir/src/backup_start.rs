//! A backup that a caller in this process makes.
use std::io::Write;

use weir_backup::Partial;

use crate::backup::{BackedUp, BackupOptions, BackupProgress};
use crate::backup_run::{Backup, Source};
use crate::config::Background;
use crate::db::Db;
use crate::engine::Engine;
use crate::error::Error;

impl Db {
    /// Writes a backup to `out` while all transactions go on: it holds what was committed when this
    /// returns, and prepared transactions as they are. `progress` gets how far it is, and ends
    /// it by `false`: `Ok(None)` then, and what was written is no backup, unless it was following.
    ///
    /// The log is kept from the beginning on until it has been copied: where `out` is slower than
    /// the work, it takes more files meanwhile than its capacity.
    ///
    /// # Errors
    /// [`Error::Config`] when `since` is no backup of this database, or four backups are under way;
    /// [`Error::Damaged`] for a page that is damaged and cannot be repaired; [`Error::Io`] of `out`
    /// and of the disk. What was written is no backup then.
    pub fn backup(
        &self,
        out: impl Write,
        options: &BackupOptions,
        progress: &mut dyn FnMut(BackupProgress) -> bool,
    ) -> Result<Option<BackedUp>, Error> {
        self.back_up(options, progress, |source| Backup::begin(source, out, options))
    }

    /// Goes on with a backup that was cut off, of which there is `there` ([`weir_backup::found`]):
    /// `out` gets what belongs behind that. All pages in use are read again, and written where they
    /// are not there, or were changed since it was begun. `options.since` is as it was, and not
    /// given.
    ///
    /// # Errors
    /// As [`Db::backup`]; [`Error::Config`] when it is of another database, or has all its pages,
    /// or this database is encrypted. Nothing has been written then.
    pub fn resume_backup(
        &self,
        out: impl Write,
        there: Partial,
        options: &BackupOptions,
        progress: &mut dyn FnMut(BackupProgress) -> bool,
    ) -> Result<Option<BackedUp>, Error> {
        self.back_up(options, progress, |source| Backup::resume(source, out, there, options))
    }

    fn back_up<W: Write>(
        &self,
        options: &BackupOptions,
        progress: &mut dyn FnMut(BackupProgress) -> bool,
        begin: impl FnOnce(&Source) -> Result<Backup<W>, Error>,
    ) -> Result<Option<BackedUp>, Error> {
        let engine = &self.engine;
        engine.check_not_forced()?;
        engine.check_open()?;
        let mut is_closed = false;
        let mut go_on = |at| {
            is_closed = engine.check_here().is_err();
            !is_closed && progress(at)
        };
        let done = begin(&engine.backup_source())?.run(options, &mut go_on)?;
        if is_closed { Err(Error::Closed) } else { Ok(done) }
    }
}

impl Engine {
    /// What a backup of this database is made of.
    pub(crate) fn backup_source(&self) -> Source {
        Source {
            pool: self.pool.clone(),
            log: self.log.clone(),
            space: self.space.clone(),
            control: self.control.clone(),
            unused: self.unused.clone(),
            checkpointer: self.checkpointer.clone(),
            clock: self.clock.clone(),
            store: self.store_kind,
            encryption: self.crypt.as_ref().map(|crypt| crypt.encryption().clone()),
            is_paced: self.config.background == Background::Threads,
            planted: self.config.planted,
        }
    }
}
