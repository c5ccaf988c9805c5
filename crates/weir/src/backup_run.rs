//! A backup of the database while it works: pages as they lie on disk, each verified, and the log
//! from the checkpoint at which it began to where it ends. What comes of both is what recovery
//! makes of a crash at that end (`docs/decisions/backup.md`).
use std::io::Write;
use std::sync::Arc;

use weir_backup::{
    Begin, Consistent, Content, End, Needed, PageSet, Partial, Place, Resumed, Writer,
};
use weir_base::{AlignedBuf, Clock, Lsn, PageNo};
use weir_checkpoint::{Checkpointer, Control, ControlFile};
use weir_crypt::{Encryption, SealedWriter};
use weir_pool::{ERA_PAGES, OnDisk, Pool, StoreRead};
use weir_redo::{Durability, Log, LogHold, RedoError};
use weir_space::Space;
use weir_txn::PlantedBug;

use crate::backup::{BackedUp, BackupBase, BackupOptions, BackupProgress};
use crate::backup_pace::{BackupLoad, bytes_per_second};
use crate::config::StoreKind;
use crate::details::{DamagedPlace, Details};
use crate::error::Error;
use crate::unused::{HeldUnused, Unused};

/// Pages that are read at once.
const READ_PAGES: u32 = 64;
/// The log is copied when so much more of it is there: a reader that is behind keeps its files.
const LOG_BYTES: u64 = 4 << 20;
/// The database is idle when no thread has read or changed anything for so long.
const IDLE_MICROS: u64 = 1_000_000;
/// A page that is being written is looked at again after so long, so many times.
const AGAIN_MICROS: u64 = 5_000;
const AGAIN_MAX: u32 = 6_000;
/// So often in a row may the end of the log be read while it is written.
const TORN_MAX: u32 = 100;
/// A page that is damaged as its latch shows is looked at so often.
const DAMAGED_MAX: u32 = 3;
/// While it waits for its pace it looks this often whether it is to go on.
const NAP_MICROS: u64 = 50_000;
/// With the pages of a turn, so much is copied of the log that was there when the backup began.
const LOG_STEP_BYTES: u64 = 512 << 10;
/// How often a backup that follows the database looks for more log.
const FOLLOW_MICROS: u64 = 100_000;
/// It says that there is none so often: what can be restored is known up to then.
const SAY_MICROS: u64 = 1_000_000;

/// Learns how far it is, and says whether to go on.
type Progress<'a> = dyn FnMut(BackupProgress) -> bool + 'a;

/// What a backup is made of.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: Arc<Log>,
    pub(crate) space: Arc<Space>,
    pub(crate) control: Arc<ControlFile>,
    pub(crate) unused: Arc<Unused>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: StoreKind,
    /// With which keys it is sealed; `None` of a database that is not encrypted.
    pub(crate) encryption: Option<Encryption>,
    /// A simulation has no time.
    pub(crate) is_paced: bool,
    pub(crate) planted: PlantedBug,
}

/// Where a backup goes: as it is, or sealed.
pub(crate) enum Sink<W: Write> {
    Plain(W),
    Sealed(Box<SealedWriter<W>>),
}

impl<W: Write> Sink<W> {
    /// For a new one.
    fn begin(out: W, encryption: Option<&Encryption>) -> Result<Self, Error> {
        Ok(match encryption {
            Some(encryption) => Sink::Sealed(Box::new(SealedWriter::begin(out, encryption)?)),
            None => Sink::Plain(out),
        })
    }

    /// For what belongs behind what there is of one. Nothing has been written when it fails.
    pub(crate) fn go_on(
        out: W,
        there: &Partial,
        encryption: Option<&Encryption>,
    ) -> Result<Self, Error> {
        match (&there.seal, encryption) {
            (Some(place), Some(encryption)) => {
                Ok(Sink::Sealed(Box::new(SealedWriter::go_on(out, place, encryption)?)))
            }
            (None, None) => Ok(Sink::Plain(out)),
            (Some(_), None) => Err(Error::Config(
                "that backup is of an encrypted database, and this one is not: begin another \
                 backup"
                    .into(),
            )),
            (None, Some(_)) => Err(Error::Config(
                "this database is encrypted, and that backup is not: begin another backup".into(),
            )),
        }
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Sink::Plain(out) => out.write(bytes),
            Sink::Sealed(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Sink::Plain(out) => out.flush(),
            Sink::Sealed(out) => out.flush(),
        }
    }
}

/// Pages that are in a backup that was cut off: each has all changes before `checkpoint`.
#[derive(Default)]
struct There {
    pages: PageSet,
    checkpoint: Lsn,
}

/// A backup under way.
pub(crate) struct Backup<W: Write> {
    source: Source,
    writer: Writer<Sink<W>>,
    since: Lsn,
    /// What the backup had before it was gone on with.
    there: There,
    from: Lsn,
    /// The log up to here has been copied.
    log_at: Lsn,
    /// Where the log was settled at the last look.
    settled: Lsn,
    /// Bytes of log copied beyond what came since the last look, which the pace counts.
    old_log_read: u64,
    hold: LogHold,
    log_reader: Option<weir_redo::Reader>,
    consistent: Option<Lsn>,
    needed: Needed,
    copied: PageSet,
    pages_read: u64,
    /// Pages in use that could not be read as they lay there.
    later: Vec<PageNo>,
    pace: Pace,
    _unused: HeldUnused,
}

impl<W: Write> Backup<W> {
    pub(crate) fn begin(source: &Source, out: W, options: &BackupOptions) -> Result<Self, Error> {
        let held = Held::take(source)?;
        let control = held.control;
        let content = match options.since {
            None => Content::All,
            Some(base) => {
                check_base(&base, &control, "make a full backup")?;
                Content::Since { base: base.id, lsn: base.checkpoint }
            }
        };
        let store = source.store;
        let (id, began_micros) = (fastrand::u64(1..), source.clock.unix_micros());
        let out = Sink::begin(out, source.encryption.as_ref())?;
        let writer = Writer::begin(out, &Begin { id, content, began_micros, store, control })?;
        let since = options.since.map_or(Lsn::ZERO, |base| base.checkpoint);
        Ok(Self::of(source, writer, (since, There::default()), held, options))
    }

    /// Goes on with one that was cut off: as if it were one since what there is of it, but that all
    /// pages which are not there are taken, too. Its log begins anew.
    pub(crate) fn resume(
        source: &Source,
        out: W,
        there: Partial,
        options: &BackupOptions,
    ) -> Result<Self, Error> {
        let held = Held::take(source)?;
        check_resumable(source, &there.place, options)?;
        let out = Sink::go_on(out, &there, source.encryption.as_ref())?;
        let mut writer = Writer::go_on(out, &there.place);
        let (micros, control) = (source.clock.unix_micros(), held.control);
        writer.resumed(&Resumed { micros, control })?;
        let begin = there.place.begin;
        let since = match begin.content {
            Content::All => Lsn::ZERO,
            Content::Since { lsn, .. } => lsn,
        };
        let there = There { pages: there.pages, checkpoint: begin.control.checkpoint };
        Ok(Self::of(source, writer, (since, there), held, options))
    }

    fn of(
        source: &Source,
        writer: Writer<Sink<W>>,
        (since, there): (Lsn, There),
        held: Held,
        options: &BackupOptions,
    ) -> Self {
        let from = held.control.checkpoint;
        Backup {
            source: source.clone(),
            writer,
            since,
            there,
            from,
            log_at: from,
            settled: source.log.settled().max(from),
            old_log_read: 0,
            hold: held.log,
            log_reader: None,
            consistent: None,
            needed: Needed::default(),
            copied: PageSet::default(),
            pages_read: 0,
            later: Vec::new(),
            pace: Pace::new(source, options.bytes_per_second),
            _unused: held.unused,
        }
    }

    /// Makes it. `None`: `progress` ended it before all was there.
    pub(crate) fn run(
        mut self,
        options: &BackupOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Option<BackedUp>, Error> {
        let done = self.copy_all(progress).and_then(|all| {
            if !all {
                return Ok(false);
            }
            self.complete()?;
            if options.follow {
                self.follow(progress)?;
            }
            Ok(true)
        });
        match done {
            Ok(true) => self.finish().map(Some),
            Ok(false) => {
                // A reader at the other end of a pipe wants to know.
                let _ = self.writer.fail("it was ended");
                Ok(None)
            }
            Err(e) => {
                let _ = self.writer.fail(&e.to_string());
                Err(e)
            }
        }
    }

    /// Pages as they lie there, and the log meanwhile. `false`: `progress` ended it.
    fn copy_all(&mut self, progress: &mut Progress<'_>) -> Result<bool, Error> {
        let source = self.source.clone();
        let pages_of = source.space.end().min(source.pool.store().pages());
        for at in (0..pages_of).step_by(READ_PAGES as usize) {
            if !self.wait_for_turn(at, pages_of, progress)? {
                return Ok(false);
            }
            let mut pages: Vec<PageNo> = (at..pages_of.min(at + READ_PAGES)).map(PageNo).collect();
            pages.retain(|page| !ERA_PAGES.contains(page));
            source.space.retain_used(&mut pages);
            let unread = self.copy_pages(&pages)?;
            self.pages_read += pages.len() as u64;
            self.later.extend(unread);
        }
        while source.log.settled().bytes_since(self.log_at) >= LOG_BYTES {
            if !self.wait_for_turn(pages_of, pages_of, progress)? {
                return Ok(false);
            }
        }
        Ok(progress(self.progress(pages_of, false)))
    }

    /// Waits until it is time to read more pages, and copies a stretch of the log then. The log
    /// that comes meanwhile is copied whatever the pace, since what is not copied is held. `false`:
    /// `progress` ended it.
    fn wait_for_turn(
        &mut self,
        at: u32,
        pages_of: u32,
        progress: &mut Progress<'_>,
    ) -> Result<bool, Error> {
        let source = self.source.clone();
        loop {
            source.log.check()?;
            let (pages, pages_of) = (u64::from(at), u64::from(pages_of));
            let bytes = self.writer.bytes();
            if !progress(BackupProgress { pages, pages_of, bytes, follows: false }) {
                return Ok(false);
            }
            let read_bytes = self.pages_read * source.pool.page_size() as u64 + self.old_log_read;
            let pause = self.pace.pause_micros(&source, read_bytes);
            self.keep_up(if pause == 0 { LOG_STEP_BYTES } else { 0 })?;
            if pause == 0 {
                return Ok(true);
            }
            source.clock.sleep_micros(pause.min(NAP_MICROS));
        }
    }

    /// Copies as much of the log as came since the last look, so that no more of it is held than
    /// when the backup began, and `more` of what was there before: that may be a whole log, which
    /// copied at once would take the disk from the work.
    fn keep_up(&mut self, more: u64) -> Result<(), Error> {
        let settled = self.source.log.settled();
        let fresh = settled.bytes_since(self.settled);
        let behind = settled.bytes_since(self.log_at);
        if behind < LOG_BYTES || fresh + more < LOG_STEP_BYTES {
            return Ok(());
        }
        let before = self.log_at;
        self.copy_log(before.advanced(behind.min(fresh + more)))?;
        if self.log_at == before {
            // A group is longer than that.
            self.copy_log(settled)?;
        }
        self.old_log_read += self.log_at.bytes_since(before).saturating_sub(fresh);
        self.settled = settled;
        Ok(())
    }

    fn progress(&self, pages: u32, follows: bool) -> BackupProgress {
        let pages = u64::from(pages);
        BackupProgress { pages, pages_of: pages, bytes: self.writer.bytes(), follows }
    }

    /// The pages that were not copied yet and are needed, and the log up to now.
    fn complete(&mut self) -> Result<(), Error> {
        let source = self.source.clone();
        // All that made or freed a page before the pages were gone through.
        source.log.flush(Durability::Synced)?;
        self.copy_log(source.log.durable())?;
        let mut missing = std::mem::take(&mut self.later);
        missing.retain(|page| !self.needed.is_made(*page));
        if source.planted != PlantedBug::BackupWithoutFreed {
            missing.extend(self.needed.missing(&self.copied));
        }
        missing.sort_unstable();
        missing.dedup();
        for page in missing {
            self.copy_settled(page)?;
        }
        // Behind every page that was copied, and every commit that was acknowledged before.
        source.log.flush(Durability::Synced)?;
        self.copy_log(source.log.durable())?;
        let (at, file_pages) = (self.log_at, source.pool.store().pages());
        self.consistent = Some(at);
        self.needed = Needed::default();
        self.copied = PageSet::default();
        Ok(self.writer.consistent(&Consistent {
            at,
            file_pages,
            micros: source.clock.unix_micros(),
        })?)
    }

    /// Goes on with the log, until `progress` ends it.
    fn follow(&mut self, progress: &mut Progress<'_>) -> Result<(), Error> {
        let source = self.source.clone();
        let mut said = source.clock.now_micros();
        while progress(self.progress(source.pool.store().pages(), true)) {
            source.log.check()?;
            let now = source.clock.now_micros();
            let before = self.log_at;
            let micros = source.clock.unix_micros();
            self.copy_log(source.log.settled())?;
            if self.log_at > before {
                said = now;
            } else if now >= said + SAY_MICROS {
                // What is not settled is little, and is not long in coming where there is work.
                said = now;
                source.log.flush(Durability::Synced)?;
                self.copy_log(source.log.durable())?;
                self.writer.log(self.log_at, micros, &[])?;
            }
            self.writer.flush()?;
            source.clock.sleep_micros(FOLLOW_MICROS);
        }
        source.log.flush(Durability::Synced)?;
        self.copy_log(source.log.durable())
    }

    fn finish(self) -> Result<BackedUp, Error> {
        let end = End {
            end: self.log_at,
            consistent: self.consistent.unwrap_or(self.log_at),
            file_pages: self.source.pool.store().pages(),
            pages: 0,
            log_bytes: 0,
            ended_micros: self.source.clock.unix_micros(),
        };
        let (end, bytes) = self.writer.end(&end)?;
        let (from, pages, log_bytes) = (self.from, end.pages, end.log_bytes);
        Ok(BackedUp { from, end: end.end, pages, log_bytes, bytes })
    }

    /// Copies those that lie there whole, and returns the others.
    fn copy_pages(&mut self, pages: &[PageNo]) -> Result<Vec<PageNo>, Error> {
        let store = self.source.pool.store();
        let page_bytes = store.page_size();
        let mut buf = AlignedBuf::zeroed(pages.len() * page_bytes);
        let mut reads: Vec<StoreRead<'_>> = pages
            .iter()
            .zip(buf.chunks_exact_mut(page_bytes))
            .map(|(&page, buf)| StoreRead { page, buf, outcome: Ok(()) })
            .collect();
        store.read_many(&mut reads);
        let (mut whole, mut unread) = (Vec::new(), Vec::new());
        for read in &reads {
            if read.outcome.is_err() {
                unread.push(read.page);
                continue;
            }
            self.copied.insert(read.page);
            // What is there has all changes before its checkpoint, as what lies on disk has.
            let is_there = self.there.pages.contains(read.page);
            let since = if is_there { self.there.checkpoint } else { self.since };
            if weir_page::lsn(read.buf) > since {
                whole.push((read.page, &*read.buf));
            }
        }
        self.writer.pages(&whole)?;
        Ok(unread)
    }

    /// Copies a page that was being written, or was not there, when it was read.
    fn copy_settled(&mut self, page: PageNo) -> Result<(), Error> {
        let source = self.source.clone();
        let mut damaged = 0;
        for _ in 0..AGAIN_MAX {
            source.log.check()?;
            if self.copy_pages(&[page])?.is_empty() {
                return Ok(());
            }
            match source.pool.look_again(page)? {
                OnDisk::Sound | OnDisk::Repaired => continue,
                OnDisk::Unsettled => {}
                // A page that was taken from the maps in memory, and is in use on none.
                OnDisk::Damaged(_) if !source.space.is_noted(page).unwrap_or(true) => return Ok(()),
                OnDisk::Damaged(found) => {
                    damaged += 1;
                    if damaged == DAMAGED_MAX {
                        return Err(found.into());
                    }
                }
            }
            source.clock.sleep_micros(AGAIN_MICROS);
        }
        let (file, offset) = source.pool.store().place(page);
        let place = DamagedPlace { file: Some(file), offset: Some(offset), page: Some(page.0) };
        let words = format!("page {page} cannot be read, and is not written either: no backup");
        Err(Error::Damaged(Details::from(words).at(place)))
    }

    /// Copies the log up to `to`, which is durable.
    fn copy_log(&mut self, to: Lsn) -> Result<(), Error> {
        let mut torn = 0;
        while to > self.log_at {
            match self.copy_stretch(to) {
                // The last page of the log is written again while it is read.
                Err(Error::Damaged(_)) if torn < TORN_MAX => {
                    torn += 1;
                    self.source.clock.sleep_micros(AGAIN_MICROS);
                }
                Ok(true) => {}
                // The last group ends before.
                Ok(false) => break,
                Err(e) => return Err(e),
            }
        }
        self.hold.advance(self.log_at);
        Ok(())
    }

    /// Copies as much of it as can be read. `false`: no whole group.
    fn copy_stretch(&mut self, to: Lsn) -> Result<bool, Error> {
        let reader = self.source.log.reader(self.log_reader.take());
        let (from, mut at) = (self.log_at, self.log_at);
        let (writer, needed) = (&mut self.writer, &mut self.needed);
        // Once all pages are there, what the log says of them does not matter here.
        let (micros, is_complete) = (self.source.clock.unix_micros(), self.consistent.is_some());
        let mut failed: Option<Error> = None;
        let read = reader.chunks(from, to, |chunk| {
            let looked = match is_complete {
                true => Ok(()),
                false => chunk.bodies().try_for_each(|(span, body)| {
                    needed.take(body).map_err(|e| Error::Io {
                        what: format!("the redo log at {}", span.start),
                        cause: std::io::Error::other(e),
                    })
                }),
            };
            let payload = chunk.payload();
            let written = looked.and_then(|()| Ok(writer.log(chunk.lsn_at(0), micros, payload)?));
            written.map_err(|e| {
                failed = Some(e);
                RedoError::Missing { lsn: to, what: "the backup has stopped" }
            })?;
            at = chunk.lsn_at(payload.len());
            Ok(())
        });
        (self.log_at, self.log_reader) = (at, Some(reader));
        match failed {
            Some(failed) => Err(failed),
            None if read.is_err() && self.hold.is_lost() => Err(Error::Io {
                what: "the database wanted the files of the log before they had been copied".into(),
                cause: std::io::Error::other(
                    "what the backup is written to is too slow for the work, or the database's \
                     disk is full; a larger log leaves it more time",
                ),
            }),
            None => read.map(|_| at > from).map_err(Error::from),
        }
    }
}

/// What is kept for a backup from its beginning on.
struct Held {
    unused: HeldUnused,
    log: LogHold,
    control: Control,
}

impl Held {
    fn take(source: &Source) -> Result<Held, Error> {
        // In this order: what the checkpoint of the control file needs is kept when it is read.
        let unused = Unused::hold(&source.unused);
        let log = source.log.hold().ok_or_else(|| {
            Error::Config("too many backups of this database are under way: wait for one".into())
        })?;
        Ok(Held { unused, log, control: source.control.get() })
    }
}

/// What is said where another base is given.
pub(crate) const NO_SINCE: &str =
    "a backup that is gone on with is since the one that it was begun since: none is given";

/// Whether a backup that was cut off is one of this database that can be gone on with.
pub(crate) fn check_resumable(
    source: &Source,
    place: &Place,
    options: &BackupOptions,
) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::Config(format!("{what}: begin another backup")));
    if options.since.is_some() {
        return Err(Error::Config(NO_SINCE.into()));
    }
    if place.consistent.is_some() {
        return wrong("that backup has all its pages");
    }
    check_base(&BackupBase::of(&place.begin), &source.control.get(), "begin another backup")
}

/// `instead`: what is to be done.
fn check_base(base: &BackupBase, control: &Control, instead: &str) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::Config(format!("{what}: {instead}")));
    if base.db != control.db {
        return wrong(&format!(
            "the backup to go on from is of the database {}, this is {}",
            base.db, control.db
        ));
    }
    if base.checkpoint > control.checkpoint || base.era > control.era.number {
        return wrong("the database is older than the backup to go on from");
    }
    Ok(())
}

/// Keeps a backup from taking the disk from the work.
struct Pace {
    asked: Option<u64>,
    /// So many bytes had been read then, when it did not pause.
    due: Option<(u64, u64)>,
    /// What had been read and logged at the last look, and since when it is that.
    others: (u64, Lsn),
    quiet_since_micros: u64,
}

impl Pace {
    fn new(source: &Source, asked: Option<u64>) -> Pace {
        // It is idle until something is seen: what is at work changes this within a millisecond.
        let others = (source.pool.stats().frames_taken.get(), source.log.end());
        Pace { asked, due: None, others, quiet_since_micros: 0 }
    }

    /// How long to wait before more is read, now that so much has been; 0: not at all.
    fn pause_micros(&mut self, source: &Source, bytes: u64) -> u64 {
        if !source.is_paced {
            return 0;
        }
        let now = source.clock.now_micros();
        let rate = bytes_per_second(self.look(source, now));
        let (before, at) = *self.due.get_or_insert((bytes, now));
        let due = at.saturating_add(((bytes - before) as f64 / rate * 1e6) as u64);
        if due <= now {
            // What was not used of the time is not made up for later.
            self.due = Some((bytes, due.max(now.saturating_sub(NAP_MICROS))));
        }
        due.saturating_sub(now)
    }

    fn look(&mut self, source: &Source, now: u64) -> BackupLoad {
        let others = (source.pool.stats().frames_taken.get(), source.log.end());
        if others != self.others {
            (self.others, self.quiet_since_micros) = (others, now);
        }
        let pages = source.checkpointer.verdict().capacity_pages_per_second;
        BackupLoad {
            capacity_bytes_per_second: pages * source.pool.page_size() as f64,
            is_idle: self.quiet_since_micros == 0
                || now.saturating_sub(self.quiet_since_micros) >= IDLE_MICROS,
            is_waited_for: source.log.durable() < source.log.end()
                || source.checkpointer.admission().waiters() > 0,
            asked_bytes_per_second: self.asked,
        }
    }
}
