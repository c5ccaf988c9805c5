//! What a backup that follows a database has on disk is read again while it grows, since it may do
//! so for months before any of it is wanted.
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use weir::Error;
use weir_backup::{BackupError, Found};

use crate::keys;

/// Bytes a second, at least: no disk notices that.
const RATE_BYTES_PER_SECOND: u64 = 4 << 20;
/// While it waits it looks so often whether the backup has ended.
const NAP: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 256 << 10;

/// The file of a backup that follows, as its scrub and its writer know it.
pub(super) struct Scrub {
    path: PathBuf,
    every: Duration,
    /// All pages are there, and so many bytes of the backup are: written, and whole as they were.
    written: AtomicU64,
    /// The backup has ended.
    is_ended: AtomicBool,
    outcome: Mutex<Outcome>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Outcome {
    /// Times that all of it was read.
    pub(super) passes: u64,
    /// What is wrong with it.
    pub(super) damage: Option<String>,
}

impl Scrub {
    /// Of the file at `path`, read every so often.
    pub(super) fn new(path: &Path, every: Duration) -> Scrub {
        Scrub {
            path: path.to_owned(),
            every,
            written: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
            outcome: Mutex::new(Outcome::default()),
        }
    }

    /// Says that all pages are there, and so many bytes of the backup.
    pub(super) fn is_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Release);
    }

    /// Whether it is of no use to go on with the backup.
    pub(super) fn is_damaged(&self) -> bool {
        self.found().damage.is_some()
    }

    /// The backup has ended: `run` does, too.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
    }

    /// What was found up to now.
    pub(super) fn outcome(&self) -> Outcome {
        std::mem::take(&mut *self.found())
    }

    fn found(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Reads it again and again, until the backup has ended or something is wrong with it.
    pub(super) fn run(&self) {
        let mut due = Instant::now() + self.every;
        loop {
            while Instant::now() < due || self.written.load(Ordering::Acquire) == 0 {
                if self.is_ended() {
                    return;
                }
                std::thread::sleep(NAP);
            }
            due = Instant::now() + self.every;
            let found = self.pass();
            if self.is_ended() {
                return;
            }
            match found {
                Ok(()) => self.found().passes += 1,
                Err(words) => {
                    self.found().damage = Some(words);
                    return;
                }
            }
        }
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Reads all that was there when it began. The last of it may not be whole yet: what is behind
    /// that which is said to be written.
    fn pass(&self) -> Result<(), String> {
        let written = self.written.load(Ordering::Acquire);
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", self.path.display());
        let paced = Paced::open(self).map_err(|e| failed(&e))?;
        let input = BufReader::with_capacity(BUFFER_BYTES, paced);
        let keys = keys::given();
        let found = weir::found_backup(input, keys.as_ref(), &mut |_| !self.is_ended());
        let whole = match found {
            Ok(None) => return Ok(()),
            Ok(Some(Found::Whole(verified))) => verified.bytes,
            Ok(Some(Found::Partial(there))) => there.place.at,
            Err(e) => return Err(failed(&e)),
        };
        if whole < written {
            let what = "it was whole when it was written, and is not now".into();
            return Err(failed(&Error::from(BackupError::Damaged { at: whole, what })));
        }
        Ok(())
    }
}

/// The file, at a rate, from the disk.
struct Paced<'s> {
    scrub: &'s Scrub,
    file: File,
    bytes_per_second: f64,
    read: u64,
    left: u64,
    since: Instant,
}

impl Paced<'_> {
    fn open(scrub: &Scrub) -> io::Result<Paced<'_>> {
        let file = File::open(&scrub.path)?;
        weir::forget_cached(&file)?;
        let left = file.metadata()?.len();
        // A pass takes half of the time that there is for it at most.
        let needed = left as f64 / (scrub.every.as_secs_f64() / 2.0).max(1.0);
        let bytes_per_second = needed.max(RATE_BYTES_PER_SECOND as f64);
        Ok(Paced { scrub, file, bytes_per_second, read: 0, left, since: Instant::now() })
    }
}

impl Read for Paced<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let due = Duration::from_secs_f64(self.read as f64 / self.bytes_per_second);
        while self.since.elapsed() < due {
            if self.scrub.is_ended() {
                return Ok(0);
            }
            std::thread::sleep(NAP.min(due.saturating_sub(self.since.elapsed())));
        }
        let most = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut bytes[..most])?;
        self.read += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        // Others have more use for the memory. Where that cannot be it stays.
        let _ = weir::forget_cached(&self.file);
    }
}
