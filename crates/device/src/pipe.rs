//! A named pipe in a database's directory: what another process asked for goes through it.
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::owner::give_to_owner_of;
use crate::sys;

/// So much may be in a pipe, where the system allows it.
const PIPE_BYTES: i32 = 1 << 20;

/// The end that is written into. Nothing waits: where the pipe is full, that is a `WouldBlock`
/// error.
pub struct PipeEnd(File);

impl PipeEnd {
    /// Opens the pipe at `path`. The calling thread gets no `SIGPIPE` from then on: that the reader
    /// has gone is an error of the next write.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput` for what is no pipe; what the system reports where no process
    /// reads from it.
    pub(crate) fn open(path: &Path) -> io::Result<PipeEnd> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
        let file = options.open(path)?;
        if !file.metadata()?.file_type().is_fifo() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no pipe"));
        }
        sys::block_sigpipe()?;
        sys::enlarge_pipe(&file, PIPE_BYTES);
        Ok(PipeEnd(file))
    }
}

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end that is read from. Nothing waits: where nothing is in the pipe, that is a `WouldBlock`
/// error; before a writer has come, and after the last has gone, it is the end.
pub struct PipeStart(File);

impl PipeStart {
    /// Makes a pipe that only its owner may open, which is the owner of its directory if this
    /// process may give it away.
    ///
    /// # Errors
    /// `AlreadyExists`; what the system reports.
    pub fn make(path: &Path) -> io::Result<PipeStart> {
        sys::make_pipe(path)?;
        let mut options = OpenOptions::new();
        let file =
            options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
        let made = file.metadata()?;
        // What the owner of the directory may have put in its place is not given away.
        if !made.file_type().is_fifo() || made.nlink() != 1 {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no pipe of this process"));
        }
        if let Some(dir) = path.parent() {
            give_to_owner_of(dir, &file)?;
        }
        Ok(PipeStart(file))
    }
}

impl Read for PipeStart {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_a_reader_that_has_gone_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("p");
        assert_eq!(PipeEnd::open(&path).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
        let mut from = PipeStart::make(&path).expect("made");
        assert_eq!(PipeStart::make(&path).err().map(|e| e.kind()), Some(ErrorKind::AlreadyExists));
        let mut buf = [0; 8];
        assert_eq!(from.read(&mut buf).expect("no writer yet"), 0);
        let mut to = PipeEnd::open(&path).expect("opened");
        assert_eq!(from.read(&mut buf).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
        assert_eq!(to.write(b"heron").expect("written"), 5);
        assert_eq!(from.read(&mut buf).expect("read"), 5);
        let mut filled = 0;
        let full = loop {
            match to.write(&[7; 4096]) {
                Ok(written) => filled += written,
                Err(e) => break e.kind(),
            }
        };
        assert!(full == ErrorKind::WouldBlock && filled >= 4096, "{full} {filled}");
        drop(from);
        assert_eq!(to.write(b"x").map_err(|e| e.kind()), Err(ErrorKind::BrokenPipe));
        assert!(PipeEnd::open(&path).is_err(), "no reader");
        let file = dir.path().join("f");
        std::fs::write(&file, b"").expect("a file");
        assert_eq!(PipeEnd::open(&file).err().map(|e| e.kind()), Some(ErrorKind::InvalidInput));
    }
}
