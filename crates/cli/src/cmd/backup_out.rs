//! Where a backup goes: standard output, or a file that gets its name when all is in it.
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir::BackupBase;

use super::backup_stream::Stream;

/// What is written is made durable so often.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Where the backup goes.
pub(super) enum Out {
    Stream(Stream),
    File(Part),
}

/// A file that is not finished.
pub(super) struct Part {
    file: File,
    part: PathBuf,
    to: PathBuf,
    synced: Instant,
    /// It is one that was cut off before: whatever is wrong with it, it stays.
    was_there: bool,
    finished: bool,
    /// What is written goes there, and what was behind it goes, with the first byte.
    go_on_at: Option<u64>,
}

impl Out {
    /// A new one.
    pub(super) fn make(to: &Path) -> Result<Out> {
        if to == Path::new("-") {
            return Ok(Out::Stream(Stream::stdout().context("writing to standard output")?));
        }
        ensure!(!to.exists(), "{} is there already; it is not overwritten", to.display());
        let part = part_of(to);
        // What is in it is no one's but the owner's.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
        let file = made.with_context(|| {
            format!(
                "making {} (left of a backup that was cut off? --resume goes on with it, or it may \
                 be removed)",
                part.display()
            )
        })?;
        Self::of(file, part, to, false)
    }

    /// One that was cut off.
    pub(super) fn again(to: &Path) -> Result<Out> {
        ensure!(to != Path::new("-"), "standard output cannot be gone on with: name a file");
        let part = part_of(to);
        let opened = OpenOptions::new().read(true).write(true).open(&part);
        let file = opened.with_context(|| {
            format!("opening {}, which there is of a backup that was cut off", part.display())
        })?;
        Self::of(file, part, to, true)
    }

    fn of(file: File, part: PathBuf, to: &Path, was_there: bool) -> Result<Out> {
        let locked = weir::try_lock_file(&file);
        ensure!(
            locked.with_context(|| format!("locking {}", part.display()))?,
            "another backup writes {}",
            part.display()
        );
        let (to, synced) = (to.to_owned(), Instant::now());
        let (finished, go_on_at) = (false, None);
        Ok(Out::File(Part { file, part, to, synced, was_there, finished, go_on_at }))
    }

    /// To read what there is.
    pub(super) fn reader(&self) -> Result<File> {
        match self {
            Out::File(part) => Ok(part.file.try_clone()?),
            Out::Stream(_) => anyhow::bail!("standard output cannot be read"),
        }
    }

    /// The file that is being written.
    pub(super) fn part(&self) -> Option<&Path> {
        match self {
            Out::File(part) => Some(&part.part),
            Out::Stream(_) => None,
        }
    }

    /// What is written from now on goes there, and in the place of all that is behind.
    pub(super) fn go_on_at(&mut self, at: u64) {
        if let Out::File(part) = self {
            part.go_on_at = Some(at);
        }
    }

    /// All is in it: it gets its name.
    pub(super) fn finish(&mut self) -> Result<()> {
        match self {
            Out::Stream(stream) => Ok(stream.flush()?),
            Out::File(part) => part.finish(),
        }
    }
}

fn part_of(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    PathBuf::from(part)
}

impl Part {
    fn finish(&mut self) -> Result<()> {
        let (part, to) = (&self.part, &self.to);
        self.file.sync_all().with_context(|| format!("syncing {}", part.display()))?;
        ensure!(!to.exists(), "{} has come to be meanwhile", to.display());
        rename(part, to).with_context(|| format!("naming {}", to.display()))?;
        self.finished = true;
        let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        File::open(dir)?.sync_all().with_context(|| format!("syncing {}", dir.display()))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(at) = self.go_on_at {
            self.file.set_len(at)?;
            self.file.seek(SeekFrom::Start(at))?;
            self.go_on_at = None;
        }
        let written = self.file.write(bytes)?;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(written)
    }

    /// What it is good for, if it begins as a backup does.
    fn use_of(&self) -> Option<&'static str> {
        let file = File::open(&self.part).ok()?;
        let backup = weir::unseal(io::BufReader::new(file), crate::keys::given().as_ref()).ok()?;
        BackupBase::read(backup).ok()?;
        Some(
            "the same with --resume goes on with it; 'weir restore --incomplete' takes it if all \
             pages are there",
        )
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::Stream(stream) => stream.write(bytes),
            Out::File(part) => part.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Stream(stream) => stream.flush(),
            Out::File(part) => part.file.sync_data(),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        match self.use_of() {
            Some(words) => {
                eprintln!("what there is of the backup is {}: {words}", self.part.display());
            }
            None if self.was_there => {}
            None => drop(remove_file(&self.part)),
        }
    }
}
