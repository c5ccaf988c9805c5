//! Writing a backup.
use std::io::Write;

use weir_base::{Lsn, PageNo};

use crate::error::BackupError;
use crate::format::{
    BEGIN, BODY_MAX, Begin, CONSISTENT, Consistent, END, End, FAILED, FORMAT, FrameHeader,
    HEAD_BYTES, LOG, MAGIC, PAGES, RESUMED, Resumed, seed_of,
};
use crate::reader::Place;

/// Writes a backup, front to back. What is not [ended](Writer::end) is none.
pub struct Writer<W> {
    out: W,
    seed: u32,
    number: u32,
    at: u64,
    pages: u64,
    log_bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins one.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn begin(out: W, begin: &Begin) -> Result<Writer<W>, BackupError> {
        let mut writer = Writer::head(out)?;
        writer.frame(BEGIN, &[&begin.encode()])?;
        writer.seed = seed_of(begin.id);
        Ok(writer)
    }

    /// Goes on behind what there is of one, with the bytes from there on. The first part says so
    /// ([`Writer::resumed`]), but where only the end was missing.
    #[must_use]
    pub fn go_on(out: W, there: &Place) -> Writer<W> {
        let Place { number, at, pages, log_bytes, .. } = *there;
        Writer { out, seed: seed_of(there.begin.id), number, at, pages, log_bytes }
    }

    /// Says that it goes on: the log begins anew.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn resumed(&mut self, resumed: &Resumed) -> Result<(), BackupError> {
        self.frame(RESUMED, &[&resumed.encode()])
    }

    /// Says, in the place of one, that it cannot even be begun.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn refuse(out: W, why: &str) -> Result<(), BackupError> {
        Writer::head(out)?.fail(why)
    }

    fn head(out: W) -> Result<Writer<W>, BackupError> {
        let mut writer = Writer { out, seed: 0, number: 0, at: 0, pages: 0, log_bytes: 0 };
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        writer.put(&head)?;
        Ok(writer)
    }

    /// Bytes written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Adds pages, sealed as they lie on disk.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn pages(&mut self, pages: &[(PageNo, &[u8])]) -> Result<(), BackupError> {
        if pages.is_empty() {
            return Ok(());
        }
        let mut numbers = (pages.len() as u32).to_le_bytes().to_vec();
        numbers.extend(pages.iter().flat_map(|(page, _)| page.0.to_le_bytes()));
        let mut parts: Vec<&[u8]> = vec![&numbers];
        parts.extend(pages.iter().map(|(_, bytes)| *bytes));
        self.pages += pages.len() as u64;
        self.frame(PAGES, &parts)
    }

    /// Adds whole groups of the log, of which the first begins at `from`: directly behind those
    /// that were added before.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn log(&mut self, from: Lsn, micros: u64, payload: &[u8]) -> Result<(), BackupError> {
        let head = [from.0.to_le_bytes(), micros.to_le_bytes()].concat();
        self.log_bytes += payload.len() as u64;
        self.frame(LOG, &[&head, payload])
    }

    /// Says that all pages are there. Only log follows.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn consistent(&mut self, consistent: &Consistent) -> Result<(), BackupError> {
        self.frame(CONSISTENT, &[&consistent.encode()])
    }

    /// Hands on all that was written.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn flush(&mut self) -> Result<(), BackupError> {
        self.out.flush().map_err(|cause| BackupError::Io { at: self.at, cause })
    }

    /// Says that it cannot be finished.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn fail(&mut self, why: &str) -> Result<(), BackupError> {
        self.frame(FAILED, &[why.as_bytes()])?;
        self.flush()
    }

    /// Ends it; what was counted here is filled in. Returns that, and all bytes written.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn end(mut self, end: &End) -> Result<(End, u64), BackupError> {
        let end = End { pages: self.pages, log_bytes: self.log_bytes, ..*end };
        self.frame(END, &[&end.encode()])?;
        self.flush()?;
        Ok((end, self.at))
    }

    fn frame(&mut self, kind: u8, body: &[&[u8]]) -> Result<(), BackupError> {
        let len: usize = body.iter().map(|part| part.len()).sum();
        assert!(len <= BODY_MAX as usize, "a frame of {len} bytes");
        let header = FrameHeader { kind, len: len as u32, number: self.number };
        let header = header.encode(self.seed, body);
        self.put(&header)?;
        for part in body {
            self.put(part)?;
        }
        self.number = self.number.wrapping_add(1);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.out.write_all(bytes).map_err(|cause| BackupError::Io { at: self.at, cause })?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
