//! A backup that a caller in this process makes.
use std::io::{self, Read, Write};

use weir_backup::{End, Found, Partial, Verified, Writer, found};
use weir_crypt::{Encryption, SealedReader};

use crate::backup::{BackedUp, BackupOptions, BackupProgress};
use crate::backup_run::{Backup, NO_SINCE, Sink, Source, check_resumable};
use crate::config::Background;
use crate::db::Db;
use crate::encryption::{Unsealed, unseal};
use crate::engine::Engine;
use crate::error::Error;

/// Reads what there is of a backup, each part verified, as far as they are whole; one of an
/// encrypted database with its keys. `progress` gets the bytes read, and may end it by `false`:
/// `Ok(None)`.
///
/// # Errors
/// [`Error::Key`] when a key is missing or wrong; [`Error::Damaged`], [`Error::Config`] and
/// [`Error::Io`] where not even its beginning is whole, and those of `backup`.
pub fn found_backup(
    backup: impl Read,
    encryption: Option<&Encryption>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Found>, Error> {
    let seal = |input: &Unsealed<_>| input.sealed().map(SealedReader::place);
    Ok(found(unseal(backup, encryption)?, seal, progress)?)
}

/// Gives a backup that was cut off, and has all its pages, the end that it lacks. Returns that, and
/// all its bytes.
///
/// # Errors
/// [`Error::Key`] when no key can be had to seal it; [`Error::Io`] of `out`.
#[doc(hidden)]
pub fn end_backup(
    out: impl Write,
    there: &Partial,
    end: &End,
    encryption: Option<&Encryption>,
) -> Result<(End, u64), Error> {
    let out = Sink::go_on(out, there, encryption)?;
    Ok(Writer::go_on(out, &there.place).end(end)?)
}

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

    /// Goes on with a backup that was cut off, of which there is `there` ([`found_backup`]): `out`
    /// gets what belongs behind the [bytes of the file](Partial::file_at) that stay. All pages in
    /// use are read again, and written where they are not there, or were changed since it was
    /// begun. `options.since` is as it was, and not given.
    ///
    /// # Errors
    /// As [`Db::backup`]; [`Error::Config`] when it is of another database, or has all its pages.
    /// Nothing has been written then.
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
        let mut verifying =
            |bytes| progress(BackupProgress { pages: 0, pages_of: 0, bytes, follows: false });
        let there = match found_backup(there, encryption, &mut verifying)? {
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
        // Before anything that is there is given up: whether it can be, and be sealed.
        if end.is_none() {
            check_resumable(&self.engine.backup_source(), &there.place, options)?;
        }
        drop(Sink::go_on(io::sink(), &there, encryption)?);
        let out = out(there.file_at()).map_err(|e| Error::io("going on with the backup", e))?;
        let Some(end) = end else {
            return self.resume_backup(out, there, options, progress);
        };
        let (end, bytes) = end_backup(out, &there, &end, encryption)?;
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
