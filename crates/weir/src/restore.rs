//! A database made of backups: pages as they were, and the log that the first opening applies. It
//! gets a number of its own: what is done in it from now on is not what was done in the other one
//! since.
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use weir_backup::{BackupError, Consistent, End, Frame, Reader};
use weir_base::{AlignedBuf, DbId, Era, Lsn, PageNo};
use weir_checkpoint::{Control, ControlFile};
use weir_crypt::Encryption;
use weir_device::{FileVolume, Volume};
use weir_pool::{PageStore, PageWrite};
use weir_redo::{GroupAt, Log, LogImage};

use crate::backup_chain::check_chain;
use crate::config::{Config, Create, StoreKind};
use crate::create::{abandon_copy, begin_copy, check_directory, finish_copy};
use crate::encryption::{Unsealed, make, unseal};
use crate::error::Error;
use crate::page_store::create_store;

/// Pages that the new data file has room for at first, and at most at a time more than it has.
const FIRST_PAGES: u32 = 64;
const GROW_PAGES: u32 = 1 << 16;

/// Up to where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestorePoint {
    /// All that was committed before this position in the log.
    Lsn(Lsn),
    /// All that had been committed at this time (Unix time in microseconds), as far as the backup
    /// knows: it notes the time for each stretch of log.
    Micros(u64),
}

/// How to restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// `None`: all that the last backup has.
    pub to: Option<RestorePoint>,
    /// `None`: the page store of the database that was backed up.
    pub store: Option<StoreKind>,
    /// The last backup need not have ended, if only all pages are in it: one that followed the
    /// database until that, or itself, crashed. What was cut off of it is log.
    pub incomplete: bool,
    /// Keys that open backups of an encrypted database, and with which the new one is encrypted: by
    /// the key of the backups, if they are sealed.
    pub encryption: Option<Encryption>,
}

/// What was restored.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    /// Pages read from the backups.
    pub pages: u64,
    /// The state that the new database is of, once it has been opened.
    pub end: Lsn,
    /// When the last backup ended: Unix time in microseconds.
    pub ended_micros: u64,
}

/// Makes a database in `dir`, which must hold nothing, of a full backup and those that were made
/// since it, each of the one before. `progress` gets the bytes read of all, and ends it by
/// `false`: `Ok(None)` then. What fails, or is ended, leaves nothing in `dir`; what a crash leaves
/// cannot be opened.
///
/// # Errors
/// [`Error::Directory`], when there is something in `dir`; [`Error::Config`] for backups that do
/// not belong together, or a point that is not in them; [`Error::Damaged`]; those of the disk.
pub fn restore(
    dir: &Path,
    backups: Vec<Box<dyn Read>>,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Restored>, Error> {
    check_directory(dir, Create::Copy)?;
    let failed = |e| Error::io("opening the new database's directory", e);
    let volume = FileVolume::open(dir).map_err(failed)?;
    restore_onto(Arc::new(volume), backups, options, progress)
}

/// As [`restore`], in a volume. Not part of the interface.
///
/// # Errors
/// As [`restore`].
#[doc(hidden)]
pub fn restore_onto(
    volume: Arc<dyn Volume>,
    backups: Vec<Box<dyn Read>>,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Restored>, Error> {
    // Before anything is made: a file that is no backup is refused at once.
    let mut readers = Vec::new();
    let mut encryption = options.encryption.clone();
    for backup in backups {
        let backup = unseal(backup, encryption.as_ref())?;
        if let (Some(name), Some(encryption)) = (backup.key_name(), &mut encryption) {
            encryption.key_id = name.id;
        }
        readers.push(Reader::open(backup)?);
    }
    let options = &RestoreOptions { encryption, ..options.clone() };
    check_chain(readers.iter().map(Reader::begin))?;
    begin_copy(&volume)?;
    let restored = Restore::run(&volume, readers, options, progress);
    match &restored {
        Ok(Some(_)) => finish_copy(&volume)?,
        // If that fails, too, it stays marked as what it is.
        Ok(None) | Err(_) => drop(abandon_copy(&volume)),
    }
    restored
}

/// A backup that is read.
type Input = Unsealed<Box<dyn Read>>;

/// A database being made.
struct Restore {
    volume: Arc<dyn Volume>,
    db: DbId,
    /// What the control file was when the last backup was begun, or gone on with.
    was: Control,
    store: Arc<dyn PageStore>,
    buf: AlignedBuf,
    pages: u64,
    /// The log names no page from this on.
    named_pages: u32,
    done_bytes: u64,
}

impl Restore {
    fn run(
        volume: &Arc<dyn Volume>,
        readers: Vec<Reader<Input>>,
        options: &RestoreOptions,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Restored>, Error> {
        let Some(last) = readers.last().map(|reader| *reader.begin()) else { return Ok(None) };
        let was = last.control;
        let db = DbId(fastrand::u64(1..));
        let kind = options.store.unwrap_or(last.store);
        let config = Config { store: Some(kind), ..Config::default() };
        let page_bytes = was.page_size as usize;
        let sealed = options.encryption.as_ref().map(|e| make(volume.clone(), page_bytes, e));
        let volume = &sealed.transpose()?.map_or_else(|| volume.clone(), |site| site.volume);
        let store = create_store(volume, db, page_bytes, FIRST_PAGES, &config)?;
        let buf = AlignedBuf::zeroed(store.batch_max() * page_bytes);
        let volume = volume.clone();
        let (pages, named_pages, done_bytes) = (0, 0, 0);
        let mut restore = Restore { volume, db, was, store, buf, pages, named_pages, done_bytes };
        let mut image = LogImage::begin(&*restore.volume, db, was.checkpoint)?;
        let mut cut = Cut { to: options.to, reached: false };
        let mut end = None;
        let count = readers.len();
        for (number, mut reader) in (1..).zip(readers) {
            let is_last = number == count;
            let log = is_last.then_some((&mut image, &mut cut));
            let incomplete = is_last && options.incomplete;
            let ended = restore.take(&mut reader, log, incomplete, progress)?;
            let Some(ended) = ended else { return Ok(None) };
            restore.done_bytes += reader.at();
            end = Some(ended);
        }
        let Some(end) = end else { return Ok(None) };
        let log_end = image.finish()?;
        cut.check(&end, log_end)?;
        restore.finish(log_end, end.file_pages)?;
        Ok(Some(Restored { pages: restore.pages, end: log_end, ended_micros: end.ended_micros }))
    }

    /// Takes all of a backup, its log only with `log`; `incomplete`: it may be cut short behind its
    /// pages. `None`: `progress` ended it.
    fn take(
        &mut self,
        reader: &mut Reader<Input>,
        mut log: Option<(&mut LogImage, &mut Cut)>,
        incomplete: bool,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<End>, Error> {
        // What there would be of it if it ended here.
        let mut so_far: Option<End> = None;
        loop {
            if !progress(self.done_bytes + reader.at()) {
                return Ok(None);
            }
            let frame = match reader.read() {
                Err(BackupError::CutShort { .. } | BackupError::Failed { .. })
                    if incomplete && so_far.is_some() =>
                {
                    return Ok(so_far);
                }
                frame => frame?,
            };
            match frame {
                Frame::Pages(pages) => self.write(&pages)?,
                Frame::Log { micros, payload, groups, to, .. } => {
                    if let Some((image, cut)) = &mut log {
                        let kept = &groups[..cut.keeps(micros, &groups)];
                        self.note_pages(payload, kept)?;
                        image.append(&payload[..kept.last().map_or(0, |last| last.frame.end)])?;
                    }
                    if let Some(end) = &mut so_far {
                        (end.end, end.ended_micros) = (to, micros);
                    }
                }
                Frame::Resumed(resumed) => {
                    if let Some((image, cut)) = &mut log {
                        self.was = resumed.control;
                        Log::remove_all(&*self.volume)?;
                        **image = LogImage::begin(&*self.volume, self.db, self.was.checkpoint)?;
                        cut.reached = false;
                    }
                }
                Frame::Consistent(Consistent { at, file_pages, micros }) => {
                    let (pages, log_bytes, ended_micros) = (0, 0, micros);
                    let (end, consistent) = (at, at);
                    so_far =
                        Some(End { end, consistent, file_pages, pages, log_bytes, ended_micros });
                }
                Frame::End(end) => return Ok(Some(end)),
            }
        }
    }

    /// The data file must have room for each page that the log names, as it had.
    fn note_pages(&mut self, payload: &[u8], groups: &[GroupAt]) -> Result<(), Error> {
        for group in groups {
            let bad = |e| Error::Damaged(format!("the log at {}: {e}", group.span.start).into());
            let (_, ops) = weir_change::decode(&payload[group.body.clone()]).map_err(bad)?;
            for op in ops {
                let page = op.map_err(bad)?.page().map_or(0, |page| page.0);
                self.named_pages = self.named_pages.max(page.saturating_add(1));
            }
        }
        Ok(())
    }

    fn write(&mut self, pages: &[(PageNo, &[u8])]) -> Result<(), Error> {
        let page_bytes = self.store.page_size();
        for pages in pages.chunks(self.store.batch_max()) {
            let room = pages.iter().map(|(page, _)| page.0 + 1).max().unwrap_or(0);
            self.grow(room)?;
            self.store.make_room(pages.len() as u64)?;
            let copies = self.buf.chunks_exact_mut(page_bytes);
            let mut writes = Vec::with_capacity(pages.len());
            for ((page, bytes), copy) in pages.iter().zip(copies) {
                copy.copy_from_slice(bytes);
                weir_page::seal(copy, self.db);
                writes.push(PageWrite { page: *page, lsn: weir_page::lsn(bytes), bytes: copy });
            }
            self.store.write_new(&writes)?;
            self.pages += pages.len() as u64;
        }
        Ok(())
    }

    fn grow(&self, pages: u32) -> Result<(), Error> {
        let has = self.store.pages();
        if pages <= has {
            return Ok(());
        }
        Ok(self.store.grow(pages.max(has.saturating_add(has.min(GROW_PAGES))))?)
    }

    fn finish(&self, end: Lsn, file_pages: u32) -> Result<(), Error> {
        let was = &self.was;
        let room = file_pages.max(self.named_pages);
        if room > self.store.pages() {
            self.store.grow(room)?;
        }
        self.store.sync_new()?;
        let era = Era { number: was.era.number + 1, mark: fastrand::u64(1..) };
        self.store.set_era(era)?;
        let control = Control {
            db: self.db,
            sequence: 0,
            clean: false,
            pages: self.store.pages(),
            era,
            synced: end,
            ..*was
        };
        ControlFile::create(&self.volume, control)
            .map(|_| ())
            .map_err(|e| Error::io("creating the control file", e))
    }
}

/// Where the log is cut off.
struct Cut {
    to: Option<RestorePoint>,
    reached: bool,
}

impl Cut {
    /// How many of the groups, which were read at `micros`, are before it.
    fn keeps(&mut self, micros: u64, groups: &[GroupAt]) -> usize {
        let keeps = match self.to {
            _ if self.reached => 0,
            None => groups.len(),
            Some(RestorePoint::Micros(to)) if micros <= to => groups.len(),
            Some(RestorePoint::Micros(_)) => 0,
            Some(RestorePoint::Lsn(to)) => groups.partition_point(|group| group.span.end <= to),
        };
        self.reached |= keeps < groups.len();
        keeps
    }

    /// # Errors
    /// [`Error::Config`]: not in what was restored.
    fn check(&self, end: &End, log_end: Lsn) -> Result<(), Error> {
        let ends_before = match self.to {
            Some(RestorePoint::Lsn(to)) => to > end.end,
            Some(RestorePoint::Micros(to)) => to > end.ended_micros,
            None => false,
        };
        if log_end >= end.consistent && !ends_before {
            return Ok(());
        }
        Err(Error::Config(format!(
            "that point is not in the backup, which can be restored to positions {} to {} of the \
             log; the last of them is of {}.{:06} s of Unix time",
            end.consistent,
            end.end,
            end.ended_micros / 1_000_000,
            end.ended_micros % 1_000_000,
        )))
    }
}
