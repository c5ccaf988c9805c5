//! `weir dump log`: the files of the log, block by block, and the groups from the checkpoint on.
use std::io::{self, Write};
use std::ops::ControlFlow;

use weir_base::{Lsn, PageNo, TxnId};
use weir_change::{Op, decode};
use weir_redo::{BlockState, FileSurvey, Span, scan_as_far_as_it_goes, survey};

use crate::files::{Files, Sound};
use crate::ops::describe;

/// What of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogQuery {
    /// Where to begin: the start of a group. `None`: at the checkpoint.
    pub from: Option<Lsn>,
    /// Only groups that change this page.
    pub page: Option<PageNo>,
    /// Only groups of this transaction.
    pub txn: Option<TxnId>,
    /// At most so many groups.
    pub limit: u64,
}

/// Prints the files and the groups. Damage ends the groups, and is named; the blocks behind it are
/// in the list of the files.
///
/// # Errors
/// Those of `out`, and what the device reports.
pub fn log(files: &Files, query: LogQuery, out: &mut dyn Write) -> io::Result<Sound> {
    files.remark(out)?;
    let mut sound = Sound::Yes;
    let surveyed = survey(&*files.volume, files.db).map_err(io::Error::other)?;
    if surveyed.is_empty() {
        writeln!(out, "there is no file of a log")?;
        return Ok(Sound::No);
    }
    for file in &surveyed {
        print_file(file, &mut sound, out)?;
    }
    let from = match (query.from, &files.control) {
        (Some(from), _) => from,
        (None, Ok(control)) => control.checkpoint,
        (None, Err(_)) => match first_of_all(&surveyed) {
            Some(from) => from,
            None => {
                writeln!(out, "no control file says where a group begins: name a position")?;
                return Ok(Sound::No);
            }
        },
    };
    let Some(db) = files.db else {
        writeln!(out, "nothing says of which database the log is")?;
        return Ok(Sound::No);
    };
    let mut printed = Printed { query, left: query.limit, groups: 0, failed: None, out };
    let (end, done) = scan_as_far_as_it_goes(&*files.volume, db, from, |span, body| {
        printed.group(span, body, &mut sound)
    });
    let Printed { groups, failed, left, out, .. } = printed;
    if let Some(error) = failed {
        return Err(error);
    }
    match done {
        Ok(()) if left == 0 => writeln!(out, "(and more: {} groups shown)", query.limit)?,
        Ok(()) => writeln!(out, "{groups} groups from {from} to the end at {end}")?,
        Err(error) => {
            sound = Sound::No;
            writeln!(out, "{groups} groups from {from} to {end}; then DAMAGED: {error}")?;
        }
    }
    Ok(sound)
}

/// The log's first position, where its first file is still there.
fn first_of_all(surveyed: &[FileSurvey]) -> Option<Lsn> {
    let header = surveyed.iter().filter_map(|file| file.header).find(|header| header.sequence == 1);
    header.map(|header| Lsn(header.start.0 + 12))
}

fn print_file(file: &FileSurvey, sound: &mut Sound, out: &mut dyn Write) -> io::Result<()> {
    let (name, bytes) = (&file.file, file.bytes);
    match file.header {
        Some(header) => writeln!(
            out,
            "{name}: {bytes} bytes, number {} in the order of use, positions {} to {}",
            header.sequence,
            header.start,
            header.start.0 + header.bytes
        )?,
        None => writeln!(out, "{name}: {bytes} bytes")?,
    }
    match &file.problem {
        Some(problem) => {
            sound.and(false);
            writeln!(out, "  {problem}")?;
        }
        None if file.header.is_none() => writeln!(out, "  never used")?,
        None => {}
    }
    for run in &file.runs {
        let what = match run.state {
            BlockState::Current => format!("of the log, up to position {}", run.end),
            BlockState::Older => "of an earlier pass".to_owned(),
            BlockState::Zeros => "of zeros".to_owned(),
            BlockState::Damaged => "DAMAGED: the checksum is wrong".to_owned(),
        };
        sound.and(run.state != BlockState::Damaged);
        writeln!(out, "  from byte {}: {} blocks {what}", run.offset, run.blocks)?;
    }
    Ok(())
}

struct Printed<'a> {
    query: LogQuery,
    left: u64,
    groups: u64,
    failed: Option<io::Error>,
    out: &'a mut dyn Write,
}

impl Printed<'_> {
    fn group(&mut self, span: Span, body: &[u8], sound: &mut Sound) -> ControlFlow<()> {
        self.groups += 1;
        if !self.is_wanted(body) {
            return ControlFlow::Continue(());
        }
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        self.left -= 1;
        match self.print(span, body) {
            Ok(is_sound) => sound.and(is_sound),
            Err(error) => {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn is_wanted(&self, body: &[u8]) -> bool {
        // One that cannot be read is always shown.
        let Ok((header, ops)) = decode(body) else { return true };
        let of_txn = self.query.txn.is_none_or(|txn| header.txn == Some(txn));
        let of_page = self.query.page.is_none_or(|page| {
            ops.clone().any(|op| op.is_ok_and(|op: Op<'_>| op.page() == Some(page)))
        });
        of_txn && of_page
    }

    /// Whether it can be read.
    fn print(&mut self, span: Span, body: &[u8]) -> io::Result<bool> {
        let out = &mut *self.out;
        write!(out, "group {} to {}, {} bytes", span.start, span.end, body.len())?;
        let (header, ops) = match decode(body) {
            Ok(decoded) => decoded,
            Err(error) => {
                writeln!(out, ": DAMAGED: {error}")?;
                return Ok(false);
            }
        };
        if let Some(txn) = header.txn {
            write!(out, ", transaction {txn}")?;
        }
        for (is_set, what) in [(header.commits, "commits"), (header.ended, "ended")] {
            if is_set {
                write!(out, ", {what}")?;
            }
        }
        writeln!(out)?;
        for op in ops {
            match op {
                Ok(op) => writeln!(out, "  {}", describe(&op))?,
                Err(error) => {
                    writeln!(out, "  DAMAGED: {error}")?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
