//! `weir backup`: the pages and the log of a database, in a file or a stream, while it is at work.
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use weir::{AskedBackup, BackupBase, BackupOptions, SealedReader, format_size};
use weir_backup::{Found, MAGIC, Partial, Reader, Verified, verify, verify_rest};

use super::backup_out::Out;
use super::backup_scrub::{Outcome, Scrub};
use crate::args_backup::Backup;
use crate::exit::{EXIT_INTERRUPTED, EXIT_OK};
use crate::keys;
use crate::opening::{interrupted, is_in_use, open_to_read};

/// Makes a backup, and says what is in it.
pub(crate) fn backup(args: &Backup) -> Result<u8> {
    let since = match &args.since {
        None => None,
        Some(path) => Some(base_of(path)?),
    };
    let options = BackupOptions { since, bytes_per_second: args.rate, follow: args.follow };
    let stop = interrupted()?;
    let (mut out, there) = match args.resume {
        false => (Out::make(&args.to)?, None),
        true => match what_is_there(&args.to, &stop)? {
            There::Nothing => return Ok(EXIT_INTERRUPTED),
            There::Whole(words) => {
                eprintln!("it was finished already: {words}");
                return Ok(EXIT_OK);
            }
            There::Part(out, there) => (out, Some(*there)),
        },
    };
    let made = match open_to_read(&args.dir) {
        Ok(_) if args.follow => Err(anyhow!(
            "no process has the database open, so there is nothing to follow: leave out --follow"
        )),
        Ok(db) => from_here(&db, &options, there, &mut out, &stop),
        Err(e) if is_in_use(&e) => through(args, &options, there, &mut out, &stop),
        Err(e) => Err(e),
    };
    let Some(words) = made.with_context(|| format!("backing up {}", args.dir.path.display()))?
    else {
        eprintln!("interrupted: there is no backup");
        return Ok(EXIT_INTERRUPTED);
    };
    out.finish()?;
    eprintln!("{words}");
    Ok(EXIT_OK)
}

/// What there is of a backup that is to be gone on with.
enum There {
    /// Ctrl-C came before that was known.
    Nothing,
    /// All of it; in words.
    Whole(String),
    /// A part that lacks pages, and where the rest goes.
    Part(Out, Box<Partial>),
}

fn what_is_there(to: &Path, stop: &AtomicBool) -> Result<There> {
    if to.exists() {
        let file = File::open(to).with_context(|| format!("opening {}", to.display()))?;
        return match look(to, file, stop)? {
            None => Ok(There::Nothing),
            Some(Found::Whole(verified)) => Ok(There::Whole(describe(&verified))),
            Some(Found::Partial(_)) => bail!(
                "{} has the name of a backup that was finished, and is damaged: remove it, and \
                 begin another",
                to.display()
            ),
        };
    }
    let mut out = Out::again(to)?;
    match look(to, out.reader()?, stop)? {
        None => Ok(There::Nothing),
        // Only its name was missing.
        Some(Found::Whole(verified)) => {
            out.finish()?;
            Ok(There::Whole(describe(&verified)))
        }
        Some(Found::Partial(there)) => {
            out.go_on_at(there.file_at());
            let Some(end) = there.end() else {
                let (bytes, pages) = (format_size(there.place.at), there.place.pages);
                eprintln!("going on behind {bytes} with {pages} pages");
                return Ok(There::Part(out, there));
            };
            let ended = weir::end_backup(&mut out, &there, &end, keys::given().as_ref());
            let (end, bytes) = ended.context("ending the backup")?;
            out.finish()?;
            Ok(There::Whole(words(bytes, end.pages, end.log_bytes, end.end)))
        }
    }
}

/// Verifies what is there.
fn look(path: &Path, file: File, stop: &AtomicBool) -> Result<Option<Found>> {
    let failed = || format!("the backup to go on with, {}", path.display());
    let backup = io::BufReader::with_capacity(1 << 20, file);
    let bar = byte_bar("verifying what is there");
    let there = weir::found_backup(backup, keys::given().as_ref(), &mut |bytes| {
        bar.set_position(bytes);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    there.with_context(failed)
}

fn base_of(path: &Path) -> Result<BackupBase> {
    let failed = || format!("the backup to go on from, {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let backup = weir::unseal(io::BufReader::new(file), keys::given().as_ref());
    BackupBase::read(backup.with_context(failed)?).with_context(failed)
}

/// Of a database that no process has open.
fn from_here(
    db: &weir::Db,
    options: &BackupOptions,
    there: Option<Partial>,
    out: &mut Out,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    let bar = byte_bar("backing up");
    let mut progress = |at: weir::BackupProgress| {
        bar.set_message(format!("backing up: page {} of {}", at.pages, at.pages_of));
        bar.set_position(at.bytes);
        !stop.load(Ordering::Relaxed)
    };
    let out = io::BufWriter::with_capacity(1 << 20, out);
    let done = match there {
        None => db.backup(out, options, &mut progress),
        Some(there) => db.resume_backup(out, there, options, &mut progress),
    };
    bar.finish_and_clear();
    Ok(done?.map(|done| words(done.bytes, done.pages, done.log_bytes, done.end)))
}

/// Of a database that another process has open. While it follows, what is there is read again.
fn through(
    args: &Backup,
    options: &BackupOptions,
    there: Option<Partial>,
    out: &mut Out,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    let every = Duration::from_secs(args.verify_every);
    let part = out.part().filter(|_| options.follow).map(Path::to_owned);
    let scrub = part.map(|part| Scrub::new(&part, every));
    let made = std::thread::scope(|scope| {
        if let Some(scrub) = &scrub {
            let thread = std::thread::Builder::new().name("weir-archive".into());
            thread.spawn_scoped(scope, || scrub.run())?;
        }
        let to = Watch { stop, scrub: scrub.as_ref() };
        let made = receive(&args.dir.path, options, there, out, to);
        scrub.iter().for_each(Scrub::end);
        made.map_err(|why| why.context("the process that has the database open was asked"))
    });
    let Outcome { passes, damage } = scrub.map(|scrub| scrub.outcome()).unwrap_or_default();
    if let Some(damage) = damage {
        return Err(anyhow!(damage).context(
            "what there is of the backup was read again, and is damaged: begin another; what was \
             written before the damage can be restored with --incomplete if all pages are there",
        ));
    }
    let made = made?;
    if passes > 0 {
        eprintln!("read again while it followed: {passes} times");
    }
    Ok(made)
}

/// What ends a backup early.
#[derive(Clone, Copy)]
struct Watch<'a> {
    stop: &'a AtomicBool,
    scrub: Option<&'a Scrub>,
}

impl Watch<'_> {
    fn is_over(self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.scrub.is_some_and(Scrub::is_damaged)
    }
}

/// The process that has the database open makes it, and it is verified here.
fn receive(
    dir: &Path,
    options: &BackupOptions,
    there: Option<Partial>,
    out: &mut Out,
    watch: Watch<'_>,
) -> Result<Option<String>> {
    let keys = keys::given();
    let asked = match &there {
        None => AskedBackup::ask(dir, options),
        Some(there) => AskedBackup::ask_to_resume(dir, there, options, keys.as_ref()),
    };
    let asked = match asked {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => bail!(
            "another backup of it is under way, or was ended: '{}' is there, which may be removed",
            dir.join("backup.request").display()
        ),
        asked => asked.context("asking for it")?,
    };
    let bar = byte_bar("backing up");
    let mut asked = Watched { asked, watch, follows: options.follow, ended: false };
    let begin = match &there {
        Some(there) if there.seal.is_some() => asked.begin_of_sealed()?,
        _ => Vec::new(),
    };
    let from = io::Cursor::new(begin).chain(&mut asked);
    let mut tee = Tee { from, to: out, failed: None };
    let mut is_said = !options.follow;
    let mut progress = |bytes, is_all| {
        bar.set_position(bytes);
        if is_all && !is_said {
            is_said = true;
            bar.suspend(|| eprintln!("following: any moment from now on can be restored"));
        }
        if is_all && let Some(scrub) = watch.scrub {
            scrub.is_written(bytes);
        }
        true
    };
    let verified = match &there {
        None => verify(weir::unseal(&mut tee, keys.as_ref())?, &mut progress),
        Some(there) => match (&there.seal, &keys) {
            (Some(seal), Some(keys)) => {
                let rest = SealedReader::go_on(&mut tee, seal, keys)?;
                verify_rest(Reader::go_on(rest, &there.place), &mut progress)
            }
            _ => verify_rest(Reader::go_on(&mut tee, &there.place), &mut progress),
        },
    };
    bar.finish_and_clear();
    if let Some(e) = tee.failed {
        return Err(e).context("writing the backup");
    }
    if watch.is_over() && !options.follow {
        return Ok(None);
    }
    Ok(verified?.map(|verified| describe(&verified)))
}

pub(super) fn describe(verified: &Verified) -> String {
    let Verified { end, bytes, .. } = verified;
    words(*bytes, end.pages, end.log_bytes, end.end)
}

fn words(bytes: u64, pages: u64, log_bytes: u64, end: weir::Lsn) -> String {
    let (bytes, log) = (format_size(bytes), format_size(log_bytes));
    format!("{bytes}: {pages} pages, {log} of log, up to position {end}")
}

pub(super) fn byte_bar(what: &'static str) -> ProgressBar {
    let template = "{msg}, {bytes}, {bytes_per_sec}, {elapsed}";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_message(what)
}

/// What comes from the process, until Ctrl-C: one that follows ends in order then.
struct Watched<'a> {
    asked: AskedBackup,
    watch: Watch<'a>,
    follows: bool,
    ended: bool,
}

impl Watched<'_> {
    /// The first bytes of what belongs behind a sealed one.
    ///
    /// # Errors
    /// Why there is nothing, if the process says that instead.
    fn begin_of_sealed(&mut self) -> Result<Vec<u8>> {
        let mut begin = Vec::new();
        self.by_ref().take(MAGIC.len() as u64).read_to_end(&mut begin)?;
        if begin == MAGIC {
            verify(io::Cursor::new(begin).chain(self), &mut |_, _| true)?;
            bail!("it does not go on with the backup");
        }
        Ok(begin)
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_over() && !self.ended {
            self.ended = true;
            if !self.follows {
                return Ok(0);
            }
            self.asked.end();
        }
        self.asked.read(bytes)
    }
}

/// Hands on what is read.
struct Tee<'a, R> {
    from: R,
    to: &'a mut Out,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(bytes)?;
        if let Err(e) = self.to.write_all(&bytes[..read]) {
            let told = io::Error::from(e.kind());
            self.failed = Some(e);
            return Err(told);
        }
        Ok(read)
    }
}
