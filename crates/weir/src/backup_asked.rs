//! A backup that another process asks for: `weir backup` of a database that is open here. The other
//! process makes a named pipe and a request in the directory, and reads the backup from the pipe;
//! it ends one that follows by removing the request. The owner of a directory may do both.
//!
//! What there is of one that is to be gone on with comes in a file beside the request. Of an
//! encrypted database that file is sealed, as a backup is: it holds some plaintext.
use std::fs::{OpenOptions, remove_file};
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_backup::{Partial, Writer};
use weir_base::{ALIGN, AlignedBuf, Clock, DbId, Lsn, SystemClock};
use weir_crypt::{Encryption, SealedReader, SealedWriter};
use weir_device::{PipeEnd, PipeStart, Volume, give_to_owner_of};

use crate::backup::{BackupBase, BackupOptions};
use crate::backup_run::{Backup, Source};
use crate::error::Error;

/// The file that asks.
pub(crate) const REQUEST_FILE: &str = "backup.request";
/// What there is of the backup that is to be gone on with.
const THERE_FILE: &str = "backup.request.there";
/// Where the backup comes.
pub(crate) const PIPE_FILE: &str = "backup.pipe";

/// The process looks for a request every second.
const BEGIN_WAIT_MICROS: u64 = 10_000_000;
/// Something comes more often than that, also from one that has nothing to say.
const STUCK_WAIT_MICROS: u64 = 120_000_000;
const NAP_MICROS: u64 = 1_000;
/// It is looked so often whether the request is still there.
const LOOK_MICROS: u64 = 500_000;

/// What is asked for.
struct Request {
    options: BackupOptions,
    /// Of one that is gone on with, the bytes of [`THERE_FILE`].
    there_bytes: Option<u64>,
}

impl Request {
    fn to_text(&self) -> String {
        let mut text = self.options.to_text();
        if let Some(bytes) = self.there_bytes {
            text.push_str(&format!("go-on {bytes}\n"));
        }
        text
    }
}

impl BackupOptions {
    fn to_text(self) -> String {
        let mut text = String::from("backup\n");
        if let Some(BackupBase { db, id, era, checkpoint }) = self.since {
            text.push_str(&format!("since {} {id} {era} {}\n", db.0, checkpoint.0));
        }
        if let Some(rate) = self.bytes_per_second {
            text.push_str(&format!("rate {rate}\n"));
        }
        if self.follow {
            text.push_str("follow\n");
        }
        text
    }

    /// `None`: that is no request.
    fn from_text(text: &str) -> Option<Request> {
        let mut lines = text.lines();
        let mut options = BackupOptions::default();
        let mut there_bytes = None;
        if lines.next() != Some("backup") {
            return None;
        }
        for line in lines {
            let mut words = line.split(' ');
            let word = words.next();
            let mut number = || words.next()?.parse::<u64>().ok();
            match word {
                Some("since") => {
                    let (db, id) = (DbId(number()?), number()?);
                    let (era, checkpoint) = (number()?, Lsn(number()?));
                    options.since = Some(BackupBase { db, id, era, checkpoint });
                }
                Some("rate") => options.bytes_per_second = Some(number()?),
                Some("follow") => options.follow = true,
                Some("go-on") => there_bytes = Some(number()?),
                _ => return None,
            }
        }
        Some(Request { options, there_bytes })
    }
}

/// Answers a request if there is one; `go_on` is asked between reads. What fails here is of no
/// matter to the database: the process that asked gets it, or has gone.
pub(crate) fn answer(source: &Source, volume: &dyn Volume, go_on: &dyn Fn() -> bool) {
    if !volume.exists(REQUEST_FILE).is_ok_and(|is_asked| is_asked) {
        return;
    }
    if let Some((options, there)) = request(volume, source).unwrap_or_default()
        && let Ok(pipe) = volume.open_pipe(PIPE_FILE)
    {
        let clock = source.clock.clone();
        let mut looked = clock.now_micros();
        let mut progress = |_| {
            let now = clock.now_micros();
            let is_due = now >= looked + LOOK_MICROS;
            looked = if is_due { now } else { looked };
            go_on() && !(is_due && volume.exists(REQUEST_FILE).is_ok_and(|is_asked| !is_asked))
        };
        let mut out = Out { pipe, clock: clock.clone(), go_on };
        // What is said in the place of a plain one goes on there; a sealed one cannot: it is said
        // as of one that cannot be begun, which no sealed one begins as.
        let place = there.as_ref().ok().and_then(|there| there.as_ref());
        let place = place.filter(|there| there.seal.is_none()).map(|there| there.place);
        let begun = there.and_then(|there| match there {
            None => Backup::begin(source, &mut out, &options),
            Some(there) => Backup::resume(source, &mut out, there, &options),
        });
        match (begun, place) {
            (Ok(backup), _) => drop(backup.run(&options, &mut progress)),
            (Err(e), Some(place)) => drop(Writer::go_on(&mut out, &place).fail(&e.to_string())),
            // It has no beginning that could say so.
            (Err(e), None) => drop(Writer::refuse(&mut out, &e.to_string())),
        }
    }
    // Else the same would be tried again and again. The other process removes them, too.
    let _ = volume.remove(REQUEST_FILE);
}

/// What is asked for, and what there is of it already.
type Wanted = (BackupOptions, Result<Option<Partial>, Error>);

fn request(volume: &dyn Volume, source: &Source) -> io::Result<Option<Wanted>> {
    let mut buf = AlignedBuf::zeroed(ALIGN);
    volume.open(REQUEST_FILE)?.read_at(0, &mut buf)?;
    let end = buf.iter().position(|&byte| byte == 0).unwrap_or(buf.len());
    let asked = BackupOptions::from_text(&String::from_utf8_lossy(&buf[..end]));
    let Some(Request { options, there_bytes }) = asked else { return Ok(None) };
    let Some(bytes) = there_bytes else { return Ok(Some((options, Ok(None)))) };
    let file = volume.open(THERE_FILE)?;
    if bytes != file.len() {
        return Ok(None);
    }
    let mut buf = AlignedBuf::zeroed(bytes as usize);
    file.read_at(0, &mut buf)?;
    let there = match &source.encryption {
        None => Ok(Partial::from_bytes(&buf)),
        Some(encryption) => open_there(&buf, encryption),
    };
    match there {
        Ok(None) => Ok(None),
        there => Ok(Some((options, there))),
    }
}

/// The bytes of the file that says what there is, sealed: their length, and they. Zeros may follow.
fn seal_there(there: &Partial, encryption: &Encryption) -> io::Result<Vec<u8>> {
    let mut out = vec![0; 8];
    let mut sealed = SealedWriter::begin(&mut out, encryption).map_err(io::Error::other)?;
    sealed.write_all(&there.to_bytes())?;
    sealed.flush()?;
    drop(sealed);
    let bytes = out.len() as u64 - 8;
    out[..8].copy_from_slice(&bytes.to_le_bytes());
    Ok(out)
}

/// What [`seal_there`] was given; `None`: those are no such bytes.
fn open_there(bytes: &[u8], encryption: &Encryption) -> Result<Option<Partial>, Error> {
    let Some((len, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let rest = usize::try_from(u64::from_le_bytes(*len)).ok().and_then(|len| rest.get(..len));
    let Some(sealed) = rest else { return Ok(None) };
    let mut out = weir_crypt::KeyBytes::default();
    let read = SealedReader::open(Cursor::new(sealed), Some(encryption))?.read_to_end(&mut out);
    read.map_err(|e| Error::io("reading what there is of the backup", e))?;
    Ok(Partial::from_bytes(&out))
}

/// Writes into a pipe, and waits where it is full.
struct Out<'a> {
    pipe: PipeEnd,
    clock: Arc<dyn Clock>,
    go_on: &'a dyn Fn() -> bool,
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            if !(self.go_on)() {
                return Err(io::Error::other("the database is being closed"));
            }
            self.clock.sleep_micros(1_000);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A backup that another process makes of the database that it has open.
pub struct AskedBackup {
    request: PathBuf,
    pipe_file: PathBuf,
    there_file: Option<PathBuf>,
    pipe: PipeStart,
    has_begun: bool,
    clock: SystemClock,
    since_micros: u64,
}

impl AskedBackup {
    /// Asks the process that has the database in `dir` open. The backup is read from what is
    /// returned.
    ///
    /// # Errors
    /// `AlreadyExists` when another one is asked for; what the system reports.
    pub fn ask(dir: &Path, options: &BackupOptions) -> io::Result<AskedBackup> {
        Self::ask_for(dir, options, None)
    }

    /// Asks it to go on with one that was cut off: as [`crate::Db::resume_backup`]. One that is
    /// sealed needs the keys.
    ///
    /// # Errors
    /// As [`AskedBackup::ask`].
    pub fn ask_to_resume(
        dir: &Path,
        there: &Partial,
        options: &BackupOptions,
        encryption: Option<&Encryption>,
    ) -> io::Result<AskedBackup> {
        let there = match (&there.seal, encryption) {
            (Some(_), Some(encryption)) => seal_there(there, encryption)?,
            (None, _) => there.to_bytes().to_vec(),
            (Some(_), None) => return Err(io::Error::other("it is sealed, and no key is given")),
        };
        Self::ask_for(dir, options, Some(there))
    }

    fn ask_for(
        dir: &Path,
        options: &BackupOptions,
        there: Option<Vec<u8>>,
    ) -> io::Result<AskedBackup> {
        let (request, pipe_file) = (dir.join(REQUEST_FILE), dir.join(PIPE_FILE));
        if request.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        // What one left that was killed before it asked.
        let _ = remove_file(&pipe_file);
        let _ = remove_file(dir.join(THERE_FILE));
        let pipe = PipeStart::make(&pipe_file)?;
        let asked = AskedBackup {
            request,
            pipe_file,
            there_file: there.as_ref().map(|_| dir.join(THERE_FILE)),
            pipe,
            has_begun: false,
            clock: SystemClock::new(),
            since_micros: 0,
        };
        // Under another name first: what is found is whole.
        let part = dir.join(format!("{REQUEST_FILE}.part"));
        let mut there_bytes = None;
        if let (Some(there), Some(file)) = (there, &asked.there_file) {
            there_bytes = Some(write_padded(dir, file, there)?);
        }
        let text = Request { options: *options, there_bytes }.to_text();
        let _ = remove_file(&part);
        write_padded(dir, &part, text.into_bytes())?;
        std::fs::rename(&part, &asked.request)?;
        Ok(asked)
    }

    /// Has one that follows the database end in order: what comes then is the rest.
    pub fn end(&self) {
        let _ = remove_file(&self.request);
    }
}

/// Writes a new file that only the owner of the directory may read, with zeros to whole blocks.
/// Returns its length.
fn write_padded(dir: &Path, path: &Path, mut bytes: Vec<u8>) -> io::Result<u64> {
    bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    give_to_owner_of(dir, &file)?;
    file.write_all(&bytes)?;
    Ok(bytes.len() as u64)
}

impl Read for AskedBackup {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(bytes) {
                // Its writer has not come yet.
                Ok(0) if !self.has_begun && !bytes.is_empty() => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Ok(read) => {
                    (self.has_begun, self.since_micros) = (true, self.clock.now_micros());
                    return Ok(read);
                }
                Err(e) => return Err(e),
            }
            let wait = if self.has_begun { STUCK_WAIT_MICROS } else { BEGIN_WAIT_MICROS };
            if self.clock.now_micros() > self.since_micros + wait {
                let text = "the process that has the database open does not answer";
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            self.clock.sleep_micros(NAP_MICROS);
        }
    }
}

impl Drop for AskedBackup {
    fn drop(&mut self) {
        let _ = remove_file(&self.request);
        let _ = remove_file(&self.pipe_file);
        if let Some(file) = &self.there_file {
            let _ = remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_made() {
        let base = BackupBase { db: DbId(7), id: 8, era: 9, checkpoint: Lsn(10) };
        for options in [
            BackupOptions::default(),
            BackupOptions { since: Some(base), bytes_per_second: Some(3), follow: true },
        ] {
            for there_bytes in [None, Some(8192)] {
                let request = Request { options, there_bytes };
                let again = BackupOptions::from_text(&request.to_text()).expect("a request");
                assert_eq!(format!("{:?}", again.options), format!("{options:?}"));
                assert_eq!(again.there_bytes, there_bytes);
            }
        }
        for text in ["", "check\n", "backup\nrate\n", "backup\nsince 1 2 3\n", "backup\nrate x\n"] {
            assert!(BackupOptions::from_text(text).is_none(), "{text}");
        }
    }
}
