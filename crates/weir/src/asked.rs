//! A scrub that another process asks for: `weir check` of a database that is open here
//! (`docs/decisions/check-through.md`). The other process makes a file in the directory, and finds
//! in another how far it has come, and what was found. The owner of a directory may do both.
use std::fmt::Write;
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf};
use weir_device::{BlockFile, Volume};

use crate::error::Error;
use crate::scrub::{Scrub, ScrubReport};

/// The file that asks. It is removed when the answer is whole.
pub const REQUEST_FILE: &str = "check.request";
/// The file that answers: text up to the first zero byte, first how far it has come.
pub const ANSWER_FILE: &str = "check.answer";
/// Bytes of an answer.
const ANSWER_BYTES: usize = 64 << 10;
/// It is said this often how far it has come.
const PROGRESS_MICROS: u64 = 200_000;

/// A line that says so many of so many pages were gone through.
pub const PROGRESS: &str = "verifying";

/// Answers a request if there is one; `go_on` is asked between reads. What fails here is of no
/// matter to the database: there is no answer then.
pub(crate) fn answer(scrub: &Scrub, volume: &dyn Volume, go_on: &dyn Fn() -> bool) {
    if volume.exists(REQUEST_FILE).is_ok_and(|is_asked| is_asked) {
        let _ = answer_with(scrub, volume, go_on);
        let _ = volume.remove(REQUEST_FILE);
    }
}

fn answer_with(
    scrub: &Scrub,
    volume: &dyn Volume,
    go_on: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    if volume.exists(ANSWER_FILE)? {
        volume.remove(ANSWER_FILE)?;
    }
    let file = volume.create(ANSWER_FILE, ANSWER_BYTES as u64)?;
    let mut reported_at = None;
    let clock = scrub.clock();
    let mut progress = |done: u64, of: u64| {
        let now = clock.now_micros();
        if reported_at.is_none_or(|at| now >= at + PROGRESS_MICROS) {
            reported_at = Some(now);
            // What fails here costs the process that waits its bar.
            let _ = say(&file, &format!("{PROGRESS} {done} {of}\n"));
        }
        go_on()
    };
    let text = match scrub.report(&mut progress) {
        Ok(Some(report)) => words(&report),
        Ok(None) => "failed the database is being closed\n".to_owned(),
        Err(e) => format!("failed {}\n", Error::from(e)),
    };
    say(&file, &text)?;
    file.sync()
}

/// What a report is in lines: a word and what it says.
fn words(report: &ScrubReport) -> String {
    let ScrubReport { pages, repaired, lost, .. } = report;
    let mut text = format!("pages {pages}\nrepaired {repaired}\nlost {lost}\n");
    for finding in &report.findings {
        let _ = writeln!(text, "finding {}: {}", finding.text, finding.mended);
    }
    text
}

fn say(file: &Arc<dyn BlockFile>, text: &str) -> std::io::Result<()> {
    let mut buf = AlignedBuf::zeroed(ANSWER_BYTES);
    // The last byte stays zero.
    let len = text.len().min(ANSWER_BYTES - 1);
    buf[..len].copy_from_slice(&text.as_bytes()[..len]);
    let written = if text.starts_with(PROGRESS) { ALIGN } else { ANSWER_BYTES };
    file.write_at(0, &buf[..written])
}
