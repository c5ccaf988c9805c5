//! `weir check` of a database that another process has open: that process verifies its pages.
use std::io::Write;
use std::path::Path;

use anyhow::{Error, Result};
use weir::{Asked, CHECK};

use super::through::Through;
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::bar;

const BY_HAND: &str = "the process that has the database open must check it: CHECK TABLE on a \
                       MariaDB server, Db::check in a program; or check a backup that it makes, \
                       or end it first";
const PAGES_ONLY: &str = "The process that has the database open verified each page. That the \
                          pages fit together is checked by CHECK TABLE on a MariaDB server, \
                          Db::check in a program, or here once it has ended.";

/// Has the process verify all pages, and prints what it found. `in_use`: why the database could
/// not be opened here.
pub(crate) fn check_through(dir: &Path, in_use: Error) -> Result<u8> {
    let through = Through { dir, question: CHECK, what: "check", by_hand: BY_HAND };
    let put = through.put(Asked::ask(dir, CHECK, ""), in_use)?;
    let (text, in_use) = put.answer(&bar("checking"), &|| false)?;
    print_answer(&text, in_use)
}

fn print_answer(text: &str, in_use: Error) -> Result<u8> {
    let line =
        |word: &str| text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    let number = |word: &str| line(word).and_then(|number| number.parse::<u64>().ok());
    let (Some(pages), Some(repaired), Some(lost)) =
        (number("pages"), number("repaired"), number("lost"))
    else {
        let why = line("failed").unwrap_or("its answer cannot be read");
        return Err(in_use.context(format!("it could not check itself ({why}): {BY_HAND}")));
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{pages} pages verified by the process that has the database open")?;
    let findings = text.lines().filter_map(|line| line.strip_prefix("finding "));
    for finding in findings {
        writeln!(out, "problem: {finding}")?;
    }
    writeln!(out, "{PAGES_ONLY}")?;
    match (repaired, lost) {
        (0, 0) => writeln!(out, "sound")?,
        (repaired, lost) => writeln!(out, "{lost} pages lost, {repaired} repaired")?,
    }
    Ok(if lost > 0 { EXIT_FINDINGS } else { EXIT_OK })
}
