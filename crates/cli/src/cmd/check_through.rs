//! `weir check` of a database that another process has open: that process verifies its pages.
use std::fs::{OpenOptions, remove_file};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::bar;

/// The process looks for a request every second.
const BEGIN_WAIT: Duration = Duration::from_secs(10);
/// It says how far it has come more often than that.
const STUCK_WAIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

const BY_HAND: &str = "the process that has the database open must check it: CHECK TABLE on a \
                       MariaDB server, Db::check in a program; or check a backup that it makes, \
                       or end it first";
const PAGES_ONLY: &str = "The process that has the database open verified each page. That the \
                          pages fit together is checked by CHECK TABLE on a MariaDB server, \
                          Db::check in a program, or here once it has ended.";

/// A request, withdrawn when dropped.
struct Request {
    file: PathBuf,
    answer: PathBuf,
}

impl Request {
    fn make(dir: &Path) -> std::io::Result<Request> {
        let (file, answer) = (dir.join(weir::REQUEST_FILE), dir.join(weir::ANSWER_FILE));
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        Ok(Request { file, answer })
    }

    fn is_answered(&self) -> bool {
        !self.file.exists()
    }

    fn text(&self) -> String {
        let bytes = std::fs::read(&self.answer).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let _ = remove_file(&self.file);
        let _ = remove_file(&self.answer);
    }
}

/// Has the process verify all pages, and prints what it found. `in_use`: why the database could
/// not be opened here.
pub(crate) fn check_through(dir: &Path, in_use: Error) -> Result<u8> {
    let request = match Request::make(dir) {
        Ok(request) => request,
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(in_use.context(format!(
                "another check of it is under way, or was ended: '{}' is there, which may be \
                 removed",
                dir.join(weir::REQUEST_FILE).display()
            )));
        }
        Err(e) => return Err(in_use.context(format!("it cannot be asked to ({e}): {BY_HAND}"))),
    };
    let bar = bar("checking");
    let (mut said, mut since) = (String::new(), Instant::now());
    let mut has_begun = false;
    while !request.is_answered() {
        sleep(LOOK);
        let text = request.text();
        if text != said {
            (said, since, has_begun) = (text, Instant::now(), true);
            let mut words = said.split_whitespace();
            if words.next() == Some(weir::PROGRESS) {
                let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                let (done, of) = (number(), number());
                bar.set_length(of);
                bar.set_position(done);
            }
        }
        if since.elapsed() > if has_begun { STUCK_WAIT } else { BEGIN_WAIT } {
            bar.finish_and_clear();
            return Err(in_use.context(format!("it does not answer: {BY_HAND}")));
        }
    }
    bar.finish_and_clear();
    print_answer(&request.text(), in_use)
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
