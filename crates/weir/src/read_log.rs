//! Reading the log when a database is opened.
use std::sync::Arc;

use weir_base::Lsn;
use weir_checkpoint::{CONTROL_FILE, Control};
use weir_device::Volume;
use weir_recovery::{
    Collected, LogFound, Outcome, Progress, Read, Refusal, Stretch, Windows, collect, judge,
};
use weir_redo::{RedoError, ScanEnd};

use crate::details::Details;
use crate::error::Error;

/// The log, read to its end.
pub(crate) enum Scanned {
    InMemory(Box<Collected>),
    /// More than may be held.
    TooLarge(Box<Windows>),
}

impl Scanned {
    /// Where it ends.
    pub(crate) fn end(&self) -> &ScanEnd {
        match self {
            Scanned::InMemory(collected) => &collected.end,
            Scanned::TooLarge(windows) => windows.end(),
        }
    }
}

/// Reads the log, as much of it as `held_bytes`, and judges what was found.
///
/// # Errors
/// [`Error::Damaged`]: control file and log do not belong together; what the device reports.
pub(crate) fn read_log(
    volume: &Arc<dyn Volume>,
    was: &Control,
    contents: Vec<Stretch>,
    held_bytes: u64,
    tell: &dyn Fn(Progress),
) -> Result<Scanned, Error> {
    let tell = &mut |p| tell(p);
    let from = was.checkpoint;
    let read = match collect(&**volume, was.db, from, contents, held_bytes, tell) {
        Ok(Read::InMemory(collected)) => Ok(Scanned::InMemory(collected)),
        Ok(Read::TooLarge) => Windows::open(&**volume, was.db, from, held_bytes, tell)
            .map(|windows| Scanned::TooLarge(Box::new(windows))),
        Err(e) => Err(e),
    };
    let found = match &read {
        Ok(scanned) => LogFound::EndsAt(scanned.end().end.max(was.checkpoint)),
        Err(RedoError::Damaged { .. }) => LogFound::Damaged,
        Err(RedoError::Missing { .. } | RedoError::Foreign { .. } | RedoError::Format { .. }) => {
            LogFound::Missing
        }
        Err(_) => return Err(read.err().map_or(Error::Halted(String::new()), Into::into)),
    };
    match (judge(was, found), read) {
        (Outcome::Open | Outcome::Recover { .. }, Ok(scanned)) => Ok(scanned),
        (Outcome::Refuse(why), read) => {
            let what = match why {
                Refusal::LogDamaged => "the redo log is damaged".into(),
                Refusal::LogMissing => "the redo log is incomplete".into(),
                Refusal::LogTooShort => {
                    let end = read.as_ref().map_or(Lsn::ZERO, |found| found.end().end);
                    let knows = was.checkpoint.max(was.synced);
                    format!(
                        "the redo log ends at position {end}, but '{CONTROL_FILE}' knows that it \
                         was durable up to {knows}: it was cut short, or is older"
                    )
                }
            };
            Err(Error::Damaged(match read.err().map(Error::from) {
                Some(Error::Damaged(details)) => {
                    let words = format!("{what}: {details}");
                    details.reworded(words)
                }
                Some(e) => Details::of(format!("{what}: {e}")),
                None => what.into(),
            }))
        }
        (_, Err(e)) => Err(e.into()),
    }
}
