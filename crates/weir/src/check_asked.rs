//! A check that another process asks for: `weir check` of a database that is open here. All pages
//! that are in use are verified (`docs/decisions/check-through.md`).
use std::fmt::Write;

use weir_device::Volume;

use crate::asked::{Answer, CHECK, is_requested};
use crate::error::Error;
use crate::scrub::{Scrub, ScrubReport};

/// Bytes of an answer.
const ANSWER_BYTES: usize = 64 << 10;

/// Answers a request if there is one; `go_on` is asked between reads. What fails here is of no
/// matter to the database: there is no answer then.
pub(crate) fn answer(scrub: &Scrub, volume: &dyn Volume, go_on: &dyn Fn() -> bool) {
    if is_requested(volume, CHECK) {
        let _ = answer_with(scrub, volume, go_on);
        let _ = volume.remove(CHECK.request);
    }
}

fn answer_with(
    scrub: &Scrub,
    volume: &dyn Volume,
    go_on: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let mut answer = Answer::begin(volume, CHECK, ANSWER_BYTES - 1, scrub.clock())?;
    let mut progress = |done: u64, of: u64| {
        answer.progress(done, of);
        go_on()
    };
    let text = match scrub.report(&mut progress) {
        Ok(Some(report)) => words(&report),
        Ok(None) => "failed the database is being closed\n".to_owned(),
        Err(e) => format!("failed {}\n", Error::from(e)),
    };
    answer.end(&text)
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
