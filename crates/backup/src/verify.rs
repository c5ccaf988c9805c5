//! A backup verified without restoring it.
use std::io::Read;

use crate::error::BackupError;
use crate::format::{Begin, End};
use crate::reader::{Frame, Reader};

/// A backup that is whole.
#[derive(Clone, Copy, Debug)]
pub struct Verified {
    /// How it begins.
    pub begin: Begin,
    /// How it ends.
    pub end: End,
    /// Bytes of it.
    pub bytes: u64,
}

/// Reads a backup to its end: every page's checksum, number and database, every group of the log
/// and each change in it. `progress` gets the bytes read, and whether all pages are there, and
/// may end it by `false`.
///
/// # Errors
/// [`BackupError`]. `Ok(None)`: `progress` ended it.
pub fn verify(
    input: impl Read,
    progress: &mut dyn FnMut(u64, bool) -> bool,
) -> Result<Option<Verified>, BackupError> {
    verify_rest(Reader::open(input)?, progress)
}

/// As [`verify`], of what is left to be read.
///
/// # Errors
/// As [`verify`].
pub fn verify_rest(
    mut reader: Reader<impl Read>,
    progress: &mut dyn FnMut(u64, bool) -> bool,
) -> Result<Option<Verified>, BackupError> {
    let mut is_all = false;
    loop {
        let at = reader.at();
        if !progress(at, is_all) {
            return Ok(None);
        }
        match reader.read()? {
            Frame::Pages(_) | Frame::Resumed(_) => {}
            Frame::Consistent(_) => is_all = true,
            Frame::Log { payload, groups, .. } => {
                for group in groups {
                    changes(&payload[group.body]).map_err(|what| {
                        let what = format!("the log at {}: {what}", group.span.start);
                        BackupError::Damaged { at, what }
                    })?;
                }
            }
            Frame::End(end) => {
                return Ok(Some(Verified { begin: *reader.begin(), end, bytes: reader.at() }));
            }
        }
    }
}

/// Whether a group's changes can be read.
fn changes(body: &[u8]) -> Result<(), weir_change::DecodeError> {
    let (_, ops) = weir_change::decode(body)?;
    for op in ops {
        op?;
    }
    Ok(())
}
