//! Reading a backup: each part is verified before it is handed out.
use std::io::{ErrorKind, Read};

use weir_base::{Lsn, PageNo};
use weir_redo::{GroupAt, whole_groups};

use crate::error::BackupError;
use crate::format::{
    BEGIN, Begin, CONSISTENT, Consistent, END, End, FAILED, FORMAT, FRAME_BYTES, FrameHeader,
    HEAD_BYTES, LOG, MAGIC, PAGES, RESUMED, Resumed, seed_of, word,
};

/// Memory is asked for by pieces, so that a length that is not true costs none.
const PIECE_BYTES: usize = 4 << 20;

/// A part of a backup.
pub enum Frame<'a> {
    /// Pages, each verified: of this database, with its number.
    Pages(Vec<(PageNo, &'a [u8])>),
    /// Whole groups of the log.
    Log {
        /// Where the first begins: where those before end.
        from: Lsn,
        /// When they were read: Unix time in microseconds. What was committed before is in them, or
        /// before them.
        micros: u64,
        /// The groups, each with its length.
        payload: &'a [u8],
        /// Where each lies in it.
        groups: Vec<GroupAt>,
        /// Where the last ends.
        to: Lsn,
    },
    /// It was cut off here, and gone on with: the log before is of no use.
    Resumed(Resumed),
    /// All pages were handed out.
    Consistent(Consistent),
    /// The end: nothing follows.
    End(End),
}

/// Where reading is, between two parts: all that is needed to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// How the backup begins.
    pub begin: Begin,
    /// Parts before it.
    pub number: u32,
    /// Bytes before it.
    pub at: u64,
    /// Pages before it.
    pub pages: u64,
    /// Bytes of log before it.
    pub log_bytes: u64,
    /// Where the log goes on.
    pub log_end: Lsn,
    /// What was said when all pages were there, if they are.
    pub consistent: Option<Consistent>,
}

/// Reads a backup, front to back.
pub struct Reader<R> {
    input: R,
    place: Place,
    body: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn open(mut input: R) -> Result<Reader<R>, BackupError> {
        let mut head = [0; HEAD_BYTES];
        match input.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Err(BackupError::NotABackup),
            read => read.map_err(|cause| BackupError::Io { at: 0, cause })?,
        }
        if head[..8] != MAGIC {
            return Err(BackupError::NotABackup);
        }
        let found = u32::from_le_bytes(std::array::from_fn(|i| head[8 + i]));
        if found != FORMAT {
            return Err(BackupError::OtherFormat { found });
        }
        if head[12..] != [0; 4] {
            return Err(BackupError::Damaged { at: 12, what: "its head is not as written".into() });
        }
        let (at, mut body) = (HEAD_BYTES as u64, Vec::new());
        let (kind, next) = take(&mut input, &mut body, (at, 0, 0))?;
        if kind == FAILED {
            return Err(failed(&body));
        }
        if kind != BEGIN {
            return Err(BackupError::Damaged { at, what: "it does not say whose it is".into() });
        }
        let begin = Begin::decode(&body).map_err(|what| BackupError::Damaged { at, what })?;
        let log_end = begin.control.checkpoint;
        let (pages, log_bytes, number) = (0, 0, 1);
        let (at, consistent) = (next, None);
        let place = Place { begin, number, at, pages, log_bytes, log_end, consistent };
        Ok(Reader { input, place, body })
    }

    /// Goes on there, with the bytes from there on.
    #[must_use]
    pub fn go_on(input: R, place: &Place) -> Reader<R> {
        Reader { input, place: *place, body: Vec::new() }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What it is read from.
    #[must_use]
    pub fn input(&self) -> &R {
        &self.input
    }

    /// How it begins.
    #[must_use]
    pub fn begin(&self) -> &Begin {
        &self.place.begin
    }

    /// Bytes read.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.place.at
    }

    /// The next part. Behind [`Frame::End`] there is none.
    ///
    /// # Errors
    /// [`BackupError`]; nothing can be read any more then.
    pub fn read(&mut self) -> Result<Frame<'_>, BackupError> {
        let Place { at, number, consistent, .. } = self.place;
        let seed = seed_of(self.place.begin.id);
        let (kind, next) = take(&mut self.input, &mut self.body, (at, number, seed))?;
        self.place.number = number.wrapping_add(1);
        self.place.at = next;
        let frame = match kind {
            PAGES if consistent.is_none() => self.pages_frame(),
            LOG => self.log_frame(),
            RESUMED if consistent.is_none() => self.resumed_frame(),
            CONSISTENT if consistent.is_none() => self.consistent_frame(),
            FAILED => return Err(failed(&self.body)),
            END => return self.end_frame(at),
            _ => Err("a part of it is of no kind that can stand there".to_owned()),
        };
        frame.map_err(|what| BackupError::Damaged { at, what })
    }

    fn pages_frame(&mut self) -> Result<Frame<'_>, String> {
        let wrong = "a part with pages has another length than it says";
        let body = &self.body;
        let control = &self.place.begin.control;
        let (db, page_bytes) = (control.db, control.page_size as usize);
        let long = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let count = long(0).ok_or(wrong)? as usize;
        if body.len() as u64 != 4 + count as u64 * (4 + page_bytes as u64) {
            return Err(wrong.to_owned());
        }
        let numbers = body[4..].chunks_exact(4).take(count);
        let pages = body[4 + 4 * count..].chunks_exact(page_bytes);
        let mut found = Vec::with_capacity(count);
        for (number, bytes) in numbers.zip(pages) {
            let page = PageNo(u32::from_le_bytes(std::array::from_fn(|i| number[i])));
            weir_page::verify(bytes, db, page).map_err(|found| format!("page {page}: {found}"))?;
            found.push((page, bytes));
        }
        self.place.pages += count as u64;
        Ok(Frame::Pages(found))
    }

    fn log_frame(&mut self) -> Result<Frame<'_>, String> {
        if self.body.len() < 16 {
            return Err("a part with log is too short".to_owned());
        }
        let (from, micros) = (Lsn(word(&self.body, 0)), word(&self.body, 8));
        let expected = self.place.log_end;
        if from != expected {
            return Err(format!("the log goes on at {from}, expected was {expected}"));
        }
        let payload = &self.body[16..];
        let groups = whole_groups(from, payload).ok_or("a part with log has no whole groups")?;
        let to = groups.last().map_or(from, |group| group.span.end);
        self.place.log_end = to;
        self.place.log_bytes += payload.len() as u64;
        Ok(Frame::Log { from, micros, payload, groups, to })
    }

    fn resumed_frame(&mut self) -> Result<Frame<'_>, String> {
        let said = Resumed::decode(&self.body, &self.place.begin.control);
        let said = said.ok_or("it goes on as another backup than it began")?;
        self.place.log_end = said.control.checkpoint;
        Ok(Frame::Resumed(said))
    }

    fn consistent_frame(&mut self) -> Result<Frame<'_>, String> {
        let wrong = "it does not say from where on it is consistent";
        let said = Consistent::decode(&self.body).filter(|said| said.at == self.place.log_end);
        let said = said.ok_or(wrong)?;
        self.place.consistent = Some(said);
        Ok(Frame::Consistent(said))
    }

    fn end_frame(&mut self, at: u64) -> Result<Frame<'_>, BackupError> {
        let damaged = |at, what: &str| Err(BackupError::Damaged { at, what: what.to_owned() });
        let end = match End::decode(&self.body) {
            Ok(end) => end,
            Err(what) => return damaged(at, &what),
        };
        let Place { at: behind, pages, log_bytes, log_end, consistent, .. } = self.place;
        let is_whole = end.end == log_end
            && consistent.is_some_and(|consistent| consistent.at == end.consistent)
            && (end.pages, end.log_bytes) == (pages, log_bytes);
        if !is_whole {
            return damaged(at, "it does not hold what its end says");
        }
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(Frame::End(end)),
            Ok(_) => damaged(behind, "it goes on behind its end"),
            Err(cause) => Err(BackupError::Io { at: behind, cause }),
        }
    }
}

fn failed(body: &[u8]) -> BackupError {
    BackupError::Failed { why: String::from_utf8_lossy(body).into_owned() }
}

/// Reads the frame at byte `at`, which must have this number. Returns its kind, and where the next
/// one lies.
fn take(
    input: &mut impl Read,
    body: &mut Vec<u8>,
    (at, number, seed): (u64, u32, u32),
) -> Result<(u8, u64), BackupError> {
    let mut bytes = [0; FRAME_BYTES];
    fill(input, &mut bytes, at)?;
    let header = FrameHeader::decode(&bytes, at)?;
    let damaged = |what: &str| Err(BackupError::Damaged { at, what: what.to_owned() });
    body.clear();
    let len = header.len as usize;
    while body.len() < len {
        let from = body.len();
        body.resize(len.min(from + PIECE_BYTES), 0);
        fill(input, &mut body[from..], at + (FRAME_BYTES + from) as u64)?;
    }
    if header.encode(seed, &[body]) != bytes {
        return damaged("a checksum is wrong");
    }
    if header.number != number {
        return damaged("a part of it is missing, or stands in another's place");
    }
    Ok((header.kind, at + (FRAME_BYTES + len) as u64))
}

fn fill(input: &mut impl Read, mut bytes: &mut [u8], at: u64) -> Result<(), BackupError> {
    let mut at = at;
    while !bytes.is_empty() {
        match input.read(bytes) {
            Ok(0) => return Err(BackupError::CutShort { at }),
            Ok(read) => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // A seal that is broken, say.
            Err(e) if e.kind() == ErrorKind::InvalidData => {
                return Err(BackupError::Damaged { at, what: e.to_string() });
            }
            Err(cause) => return Err(BackupError::Io { at, cause }),
        }
    }
    Ok(())
}
