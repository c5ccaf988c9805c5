//! `weir backup`: the pages and the log of a database, in a file or a stream, while it is at work.
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use weir::{AskedBackup, BackupBase, BackupOptions, format_size};
use weir_backup::{Verified, verify};

use crate::args_backup::Backup;
use crate::exit::{EXIT_INTERRUPTED, EXIT_OK};
use crate::keys;
use crate::opening::{interrupted, is_in_use, open_to_read};

/// What is written is made durable so often.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Makes a backup, and says what is in it.
pub(crate) fn backup(args: &Backup) -> Result<u8> {
    let since = match &args.since {
        None => None,
        Some(path) => Some(base_of(path)?),
    };
    let options = BackupOptions { since, bytes_per_second: args.rate, follow: args.follow };
    let stop = interrupted()?;
    let mut out = Out::make(&args.to, args.follow)?;
    let made = match open_to_read(&args.dir) {
        Ok(_) if args.follow => Err(anyhow!(
            "no process has the database open, so there is nothing to follow: leave out --follow"
        )),
        Ok(db) => from_here(&db, &options, &mut out, &stop),
        Err(e) if is_in_use(&e) => through(&args.dir.path, &options, &mut out, &stop)
            .map_err(|why| why.context("the process that has the database open was asked")),
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
    out: &mut Out,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    let bar = byte_bar("backing up");
    let mut progress = |at: weir::BackupProgress| {
        bar.set_message(format!("backing up: page {} of {}", at.pages, at.pages_of));
        bar.set_position(at.bytes);
        !stop.load(Ordering::Relaxed)
    };
    let done = db.backup(io::BufWriter::with_capacity(1 << 20, out), options, &mut progress);
    bar.finish_and_clear();
    Ok(done?.map(|done| words(done.bytes, done.pages, done.log_bytes, done.end)))
}

/// Of a database that another process has open: that process makes it, and it is verified here.
fn through(
    dir: &Path,
    options: &BackupOptions,
    out: &mut Out,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    let asked = match AskedBackup::ask(dir, options) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => bail!(
            "another backup of it is under way, or was ended: '{}' is there, which may be removed",
            dir.join("backup.request").display()
        ),
        asked => asked.context("asking for it")?,
    };
    let bar = byte_bar("backing up");
    let mut asked = Watched { asked, stop, follows: options.follow, ended: false };
    let mut tee = Tee { from: &mut asked, to: out, failed: None };
    let mut is_said = !options.follow;
    let unsealed = weir::unseal(&mut tee, keys::given().as_ref())?;
    let verified = verify(unsealed, &mut |bytes, is_all| {
        bar.set_position(bytes);
        if is_all && !is_said {
            is_said = true;
            bar.suspend(|| eprintln!("following: any moment from now on can be restored"));
        }
        true
    });
    bar.finish_and_clear();
    if let Some(e) = tee.failed {
        return Err(e).context("writing the backup");
    }
    if stop.load(Ordering::Relaxed) && !options.follow {
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
    stop: &'a AtomicBool,
    follows: bool,
    ended: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) && !self.ended {
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

/// Where the backup goes. A file gets its name when all is in it.
enum Out {
    Stream(io::Stdout),
    File { file: File, part: PathBuf, to: PathBuf, synced: Instant, keep: bool },
}

impl Out {
    /// `keep`: what is not finished stays under its other name.
    fn make(to: &Path, keep: bool) -> Result<Out> {
        if to == Path::new("-") {
            return Ok(Out::Stream(io::stdout()));
        }
        ensure!(!to.exists(), "{} is there already; it is not overwritten", to.display());
        let mut part = to.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // What is in it is no one's but the owner's.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
        let file = file.with_context(|| {
            format!(
                "making {} (left of a backup that was killed? it may be removed)",
                part.display()
            )
        })?;
        let (to, synced) = (to.to_owned(), Instant::now());
        Ok(Out::File { file, part, to, synced, keep })
    }

    fn finish(self) -> Result<()> {
        let mut out = self;
        match &mut out {
            Out::Stream(stream) => Ok(stream.flush()?),
            Out::File { file, part, to, keep, .. } => {
                file.sync_all().with_context(|| format!("syncing {}", part.display()))?;
                ensure!(!to.exists(), "{} has come to be meanwhile", to.display());
                rename(&*part, &*to).with_context(|| format!("naming {}", to.display()))?;
                *keep = true;
                let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty());
                let dir = dir.unwrap_or(Path::new("."));
                File::open(dir)?.sync_all().with_context(|| format!("syncing {}", dir.display()))
            }
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stream(stream) => stream.write(bytes),
            Out::File { file, synced, .. } => {
                let written = file.write(bytes)?;
                if synced.elapsed() >= SYNC_EVERY {
                    file.sync_data()?;
                    *synced = Instant::now();
                }
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stream(stream) => stream.flush(),
            Out::File { file, .. } => file.sync_data(),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        match self {
            Out::File { file, part, keep, .. }
                if !*keep || file.metadata().is_ok_and(|m| m.len() == 0) =>
            {
                drop(remove_file(part));
            }
            Out::File { part, .. } if part.exists() => eprintln!(
                "what there is of the backup is {}: 'weir restore --incomplete' takes it",
                part.display()
            ),
            Out::File { .. } | Out::Stream(_) => {}
        }
    }
}
