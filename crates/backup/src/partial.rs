//! What there is of a backup that was cut off: by a crash of either side, a full disk, a broken
//! pipe.
use std::io::Read;

use weir_crypt::SealedPlace;
use zeroize::Zeroizing;

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
    /// Where it ends in the sealed stream that it lies in, of an encrypted database.
    pub seal: Option<SealedPlace>,
}

/// What a file holds.
#[derive(Debug)]
pub enum Found {
    /// A backup with its end.
    Whole(Verified),
    /// One without.
    Partial(Box<Partial>),
}

/// Reads what there is of a backup, each part verified, as far as they are whole. `seal` says where
/// a sealed stream is, which `input` opens. `progress` gets the bytes read, and may end it by
/// `false`: `Ok(None)`.
///
/// # Errors
/// [`BackupError`] where not even its beginning is whole, and those of the input.
pub fn found<R: Read>(
    input: R,
    seal: impl Fn(&R) -> Option<SealedPlace>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Found>, BackupError> {
    let mut reader = Reader::open(input)?;
    let (micros, pages) = (reader.begin().began_micros, PageSet::default());
    let mut partial = Partial { place: *reader.place(), pages, micros, seal: None };
    loop {
        partial.place = *reader.place();
        partial.seal = seal(reader.input());
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
    /// Bytes of the file that stay: what belongs behind the backup goes there.
    #[must_use]
    pub fn file_at(&self) -> u64 {
        self.seal.as_ref().map_or(self.place.at, SealedPlace::at)
    }

    /// All that another process needs to know of it to go on. Of a sealed one it holds plaintext.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let Place { begin, number, at, pages, log_bytes, .. } = &self.place;
        let seal = self.seal.as_ref().map(SealedPlace::to_bytes);
        let seal = seal.as_deref().map_or(&[][..], |seal| &seal[..]);
        let seal_bytes = seal.len() as u64;
        let words = [u64::from(*number), *at, *pages, *log_bytes, self.micros, seal_bytes];
        let (begin, pages) = (begin.encode(), self.pages.to_bytes());
        // Where it grew, what was there would not be overwritten.
        let bytes = begin.len() + size_of_val(&words) + seal.len() + pages.len();
        let mut out = Zeroizing::new(Vec::with_capacity(bytes));
        out.extend_from_slice(&begin);
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend_from_slice(seal);
        out.extend_from_slice(&pages);
        out
    }

    /// As [`Partial::to_bytes`] made them; zeros may follow. `None`: those are no such bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Partial> {
        let (begin, rest) = bytes.split_at_checked(BEGIN_BYTES)?;
        let (words, rest) = rest.split_at_checked(48)?;
        let (seal, pages) = rest.split_at_checked(usize::try_from(word(words, 40)).ok()?)?;
        let seal = match seal {
            [] => None,
            seal => Some(SealedPlace::from_bytes(seal)?),
        };
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
        let pages = PageSet::from_bytes(pages);
        Some(Partial { place, pages, micros: word(words, 32), seal })
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
