//! What there is of a backup that was cut off: by a crash of either side, a full disk, a broken
//! pipe.
use std::io::Read;

use crate::error::BackupError;
use crate::format::{BEGIN_BYTES, Begin, End, word};
use crate::needed::PageSet;
use crate::reader::{Frame, Place, Reader};
use crate::verify::Verified;

/// The part of a backup up to its last whole part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partial {
    /// Where it ends. What the file has behind it is not to be believed.
    pub place: Place,
    /// Which pages are in it.
    pub pages: PageSet,
    /// When the last of its log was read: Unix time in microseconds.
    pub micros: u64,
}

/// What a file holds.
#[derive(Debug)]
pub enum Found {
    /// A backup with its end.
    Whole(Verified),
    /// One without.
    Partial(Box<Partial>),
}

/// Reads what there is of a backup, each part verified, as far as they are whole. `progress` gets
/// the bytes read, and may end it by `false`: `Ok(None)`.
///
/// # Errors
/// [`BackupError`] where not even its beginning is whole, and those of the input.
pub fn found(
    input: impl Read,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Found>, BackupError> {
    let mut reader = Reader::open(input)?;
    let micros = reader.begin().began_micros;
    let mut partial = Partial { place: *reader.place(), pages: PageSet::default(), micros };
    loop {
        partial.place = *reader.place();
        if !progress(reader.at()) {
            return Ok(None);
        }
        match reader.read() {
            Ok(Frame::Pages(pages)) => {
                for (page, _) in pages {
                    partial.pages.insert(page);
                }
            }
            Ok(Frame::Log { micros, .. }) => partial.micros = micros,
            Ok(Frame::Resumed(_) | Frame::Consistent(_)) => {}
            Ok(Frame::End(end)) => {
                let (begin, bytes) = (*reader.begin(), reader.at());
                return Ok(Some(Found::Whole(Verified { begin, end, bytes })));
            }
            Err(
                BackupError::CutShort { .. }
                | BackupError::Failed { .. }
                | BackupError::Damaged { .. },
            ) => return Ok(Some(Found::Partial(Box::new(partial)))),
            Err(e) => return Err(e),
        }
    }
}

impl Partial {
    /// All that another process needs to know of it to go on.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Place { begin, number, at, pages, log_bytes, .. } = &self.place;
        let words = [u64::from(*number), *at, *pages, *log_bytes, self.micros];
        let mut out = begin.encode();
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend(self.pages.to_bytes());
        out
    }

    /// As [`Partial::to_bytes`] made them; zeros may follow. `None`: those are no such bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Partial> {
        let (begin, rest) = bytes.split_at_checked(BEGIN_BYTES)?;
        let (words, pages) = rest.split_at_checked(40)?;
        let begin = Begin::decode(begin).ok()?;
        let place = Place {
            begin,
            number: u32::try_from(word(words, 0)).ok()?,
            at: word(words, 8),
            pages: word(words, 16),
            log_bytes: word(words, 24),
            log_end: begin.control.checkpoint,
            consistent: None,
        };
        Some(Partial { place, pages: PageSet::from_bytes(pages), micros: word(words, 32) })
    }

    /// The end that it would have if nothing more came: all pages are there. `None`: they are not.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let consistent = self.place.consistent?;
        Some(End {
            end: self.place.log_end,
            consistent: consistent.at,
            file_pages: consistent.file_pages,
            pages: self.place.pages,
            log_bytes: self.place.log_bytes,
            ended_micros: self.micros.max(consistent.micros),
        })
    }
}
