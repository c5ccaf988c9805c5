//! A backup that a caller in this process makes.
use std::io::{self, Read, Write};

use weir_backup::{Found, Partial, Verified, Writer, found};

use crate::backup::{BackedUp, BackupOptions, BackupProgress};
use crate::backup_run::{Backup, NO_SEALED, NO_SINCE, Source, check_resumable};
use crate::config::Background;
use crate::db::Db;
use crate::encryption::unseal;
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

    /// As [`Db::resume_backup`], from what there is of it: `there` is read to its end and verified,
    /// which `progress` sees as bytes of no pages; then `out` is called with the offset at which
    /// the rest belongs, and what is behind it does not. Where nothing is missing it is not called.
    /// `None`: `progress` ended it; it can be gone on with.
    ///
    /// # Errors
    /// As [`Db::resume_backup`]; [`Error::Damaged`] and others where `there` does not even begin as
    /// a backup does; [`Error::Io`] of `out`.
    pub fn resume_backup_from<W: Write>(
        &self,
        there: impl Read,
        out: impl FnOnce(u64) -> io::Result<W>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(BackupProgress) -> bool,
    ) -> Result<Option<BackedUp>, Error> {
        self.engine.check_open()?;
        if options.since.is_some() {
            return Err(Error::Config(NO_SINCE.into()));
        }
        let encryption = self.engine.crypt.as_ref().map(|crypt| crypt.encryption());
        let there = unseal(there, encryption)?;
        if there.key_name().is_some() {
            return Err(Error::Config(NO_SEALED.into()));
        }
        let mut verifying =
            |bytes| progress(BackupProgress { pages: 0, pages_of: 0, bytes, follows: false });
        let there = match found(there, &mut verifying)? {
            None => return Ok(None),
            Some(Found::Whole(Verified { begin, end, bytes })) => {
                let (from, pages) = (begin.control.checkpoint, end.pages);
                let log_bytes = end.log_bytes;
                return Ok(Some(BackedUp { from, end: end.end, pages, log_bytes, bytes }));
            }
            Some(Found::Partial(there)) => *there,
        };
        let from = there.place.begin.control.checkpoint;
        let end = there.end();
        if end.is_none() {
            // Before anything that is there is given up.
            check_resumable(&self.engine.backup_source(), &there.place, options)?;
        }
        let out = out(there.place.at).map_err(|e| Error::io("going on with the backup", e))?;
        let Some(end) = end else {
            return self.resume_backup(out, there, options, progress);
        };
        let (end, bytes) = Writer::go_on(out, &there.place).end(&end)?;
        let (pages, log_bytes) = (end.pages, end.log_bytes);
        Ok(Some(BackedUp { from, end: end.end, pages, log_bytes, bytes }))
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
