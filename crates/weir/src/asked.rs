//! What another process asks of the one that has a database open: a check, a compaction, codecs
//! (`docs/decisions/check-through.md`): it makes a file in the directory, and finds in another how
//! far that has come, and what came of it. The owner of a directory may do both.
use std::fs::{OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf, Clock};
use weir_device::{BlockFile, Volume, give_to_owner_of};

/// It is said this often how far it has come.
const PROGRESS_MICROS: u64 = 200_000;
/// Bytes of a request at most: names of trees.
const REQUEST_BYTES_MAX: u64 = 16 << 20;
/// The last line of a request: without it, it is still being written.
const END: &str = "end\n";

/// The first word of an answer while there is none: it says how much is done, of how much.
pub(crate) const PROGRESS: &str = "progress";

/// What may be asked: the files of request and answer.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The file that asks. It is removed when the answer is whole.
    pub request: &'static str,
    /// The file that answers: text up to the first zero byte, first how far it has come.
    pub answer: &'static str,
}

/// That all pages in use are verified.
pub const CHECK: Question = Question { request: "check.request", answer: "check.answer" };
/// That trees are compacted.
pub const COMPACT: Question = Question { request: "compact.request", answer: "compact.answer" };

/// That codecs of trees are shown or changed.
pub const CODEC: Question = Question { request: "codec.request", answer: "codec.answer" };

/// Whether a file of a database's directory is one of those.
pub(crate) fn is_ours(name: &str) -> bool {
    [CHECK, COMPACT, CODEC]
        .iter()
        .any(|question| [question.request, question.answer].contains(&name))
}

/// A question that was put to the process that has a database open; withdrawn when dropped.
#[derive(Debug)]
pub struct Asked {
    request: PathBuf,
    answer: PathBuf,
}

/// What has come of a question so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answered {
    /// The process has not begun.
    NotYet,
    /// So much is done, of so much.
    Progress(u64, u64),
    /// It is over.
    Whole(String),
}

impl Asked {
    /// Puts a question with what belongs to it, in lines.
    ///
    /// # Errors
    /// `AlreadyExists` when another process asks the same; what the system reports.
    pub fn ask(dir: &Path, question: Question, text: &str) -> io::Result<Asked> {
        let asked =
            Asked { request: dir.join(question.request), answer: dir.join(question.answer) };
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&asked.request);
        // That of another is not withdrawn.
        let mut file = match file {
            Ok(file) => file,
            Err(e) => {
                std::mem::forget(asked);
                return Err(e);
            }
        };
        give_to_owner_of(dir, &file)?;
        let mut bytes = format!("{text}{END}").into_bytes();
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        file.write_all(&bytes)?;
        Ok(asked)
    }

    /// Has the process end what it does: what came of it is in the answer soon.
    pub fn end(&self) {
        let _ = remove_file(&self.request);
    }

    /// What the process has said up to now.
    #[must_use]
    pub fn answered(&self) -> Answered {
        // In this order: the answer is whole before the request goes.
        let is_over = !self.request.exists();
        let bytes = std::fs::read(&self.answer).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut words = text.split_whitespace();
        let is_progress = words.next() == Some(PROGRESS);
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match (is_over, is_progress) {
            (_, true) => Answered::Progress(number(), number()),
            (true, false) => Answered::Whole(text),
            (false, false) => Answered::NotYet,
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = remove_file(&self.request);
        let _ = remove_file(&self.answer);
    }
}

/// Withdraws what was asked of a process before this one.
pub(crate) fn forget(volume: &dyn Volume, question: Question) {
    for name in [question.request, question.answer] {
        if volume.exists(name).is_ok_and(|is_there| is_there) {
            let _ = volume.remove(name);
        }
    }
}

/// A name in a line of text.
pub(crate) fn to_hex(name: &str) -> String {
    name.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What [`to_hex`] was made of.
pub(crate) fn from_hex(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    String::from_utf8(pairs.map(byte).collect::<Option<Vec<u8>>>()?).ok()
}

/// The text of a request; `None`: there is none that is whole.
pub(crate) fn requested(volume: &dyn Volume, question: Question) -> Option<String> {
    if !is_requested(volume, question) {
        return None;
    }
    let file = volume.open(question.request).ok()?;
    let bytes = file.len();
    if !(1..=REQUEST_BYTES_MAX).contains(&bytes) || bytes % ALIGN as u64 != 0 {
        return None;
    }
    let mut buf = AlignedBuf::zeroed(bytes as usize);
    file.read_at(0, &mut buf).ok()?;
    let end = buf.iter().position(|&byte| byte == 0).unwrap_or(buf.len());
    let text = std::str::from_utf8(&buf[..end]).ok()?;
    text.strip_suffix(END).map(str::to_owned)
}

/// Whether something is asked, or has not been withdrawn.
pub(crate) fn is_requested(volume: &dyn Volume, question: Question) -> bool {
    volume.exists(question.request).is_ok_and(|is_asked| is_asked)
}

/// The answer to a question, as it is being made.
pub(crate) struct Answer<'a> {
    file: Arc<dyn BlockFile>,
    clock: &'a dyn Clock,
    said_at: Option<u64>,
}

impl<'a> Answer<'a> {
    /// With room for so many bytes.
    pub(crate) fn begin(
        volume: &dyn Volume,
        question: Question,
        bytes: usize,
        clock: &'a dyn Clock,
    ) -> io::Result<Answer<'a>> {
        if volume.exists(question.answer)? {
            volume.remove(question.answer)?;
        }
        // The last byte stays zero.
        let bytes = (bytes + 1).next_multiple_of(ALIGN);
        let file = volume.create(question.answer, bytes as u64)?;
        Ok(Answer { file, clock, said_at: None })
    }

    /// Says how much is done, of how much, unless it has just been said.
    pub(crate) fn progress(&mut self, done: u64, of: u64) {
        let now = self.clock.now_micros();
        if self.said_at.is_none_or(|at| now >= at + PROGRESS_MICROS) {
            self.said_at = Some(now);
            // What fails here costs the process that waits its bar.
            let _ = self.say(&format!("{PROGRESS} {done} {of}\n"), ALIGN);
        }
    }

    /// All that there is to say.
    pub(crate) fn end(self, text: &str) -> io::Result<()> {
        self.say(text, self.file.len() as usize)?;
        self.file.sync()
    }

    fn say(&self, text: &str, written: usize) -> io::Result<()> {
        let mut buf = AlignedBuf::zeroed(written);
        let len = text.len().min(written - 1);
        buf[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.file.write_at(0, &buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::SystemClock;
    use weir_device::FileVolume;

    #[test]
    fn a_question_is_put_once_and_answered() {
        let dir = tempfile::tempdir().expect("a directory");
        let volume = FileVolume::open(dir.path()).expect("a volume");
        assert_eq!(requested(&volume, COMPACT), None);
        let asked = Asked::ask(dir.path(), COMPACT, "one\ntwo\n").expect("asked");
        let again = Asked::ask(dir.path(), COMPACT, "").expect_err("it is asked already");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(requested(&volume, COMPACT).as_deref(), Some("one\ntwo\n"));
        assert_eq!(requested(&volume, CHECK), None);
        assert_eq!(asked.answered(), Answered::NotYet);

        let clock = SystemClock::new();
        let mut answer = Answer::begin(&volume, COMPACT, 5_000, &clock).expect("an answer");
        answer.progress(3, 40);
        answer.progress(4, 40);
        assert_eq!(asked.answered(), Answered::Progress(3, 40));
        answer.end(&"x".repeat(5_000)).expect("said");
        volume.remove(COMPACT.request).expect("removed");
        assert_eq!(asked.answered(), Answered::Whole("x".repeat(5_000)));
        drop(asked);
        assert!(volume.list().expect("listed").is_empty());
    }

    #[test]
    fn a_request_that_is_being_written_is_none_yet() {
        let dir = tempfile::tempdir().expect("a directory");
        let volume = FileVolume::open(dir.path()).expect("a volume");
        let file = dir.path().join(COMPACT.request);
        for text in ["", "one\n", "one\nend\n"] {
            std::fs::write(&file, text).expect("written");
            assert_eq!(requested(&volume, COMPACT), None, "{text}: not of whole blocks");
        }
        let mut bytes = b"one\nen".to_vec();
        bytes.resize(ALIGN, 0);
        std::fs::write(&file, &bytes).expect("written");
        assert_eq!(requested(&volume, COMPACT), None);
        bytes[..8].copy_from_slice(b"one\nend\n");
        std::fs::write(&file, &bytes).expect("written");
        assert_eq!(requested(&volume, COMPACT).as_deref(), Some("one\n"));
    }
}
