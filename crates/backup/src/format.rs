//! What a backup is made of. All numbers are little-endian.
//!
//! ```text
//! 0   "WEIRBAK\n"   8 format version u32   12 zeros u32, then frames:
//!
//! frame   0 kind u8, three zeros   4 bytes of the body u32   8 number of the frame u32
//!         12 crc32c u32, of bytes 0..12 and the body, begun with the backup's own number   16 body
//!
//! 1 Begin 0 the backup's number   8 that of the one before it, or 0   16 what pages were changed
//!         since (LSN), or 0   24 when it began (Unix time, microseconds)   32 the page store u64
//!         40 control block, 512 bytes: the checkpoint from which the log is there
//! 2 Pages 0 how many u32   4 their numbers, u32 each   pages, as they lie on disk
//! 3 Log   0 where its first group begins (LSN)   8 when it was read   16 groups, each with its
//!         length
//! 5 Consistent  0 position (LSN): all pages are there, and none was changed behind it
//!         8 pages that the data file has room for u64   16 when (Unix time, microseconds)
//! 6 Failed  why, in words: nothing follows
//! 7 Resumed  0 when (Unix time, microseconds)   8 control block, 512 bytes: what wrote the backup
//!         had ended, and went on later. The log so far is of no use: it begins anew, at that
//!         checkpoint. The pages so far stand, where none of the same number follows
//! 4 End   0 where the log ends (LSN)   8 the least end that is consistent (LSN)
//!         16 pages that the data file has room for u64   24 pages in it   32 bytes of log
//!         40 when it ended
//! ```
//! A crash, a full disk or a broken pipe leaves a stream without `End`. Behind `Consistent` there
//! is log alone, which goes on for as long as the backup follows the database.
use weir_base::{Lsn, checksum_more};
use weir_checkpoint::{COPY_BYTES, Control, Copy};

use crate::error::BackupError;
use crate::store_kind::StoreKind;

/// The first bytes.
pub const MAGIC: [u8; 8] = *b"WEIRBAK\n";
/// The format that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

pub(crate) const HEAD_BYTES: usize = 16;
pub(crate) const FRAME_BYTES: usize = 16;
/// A group of the log may take 256 MiB, and goes into one frame.
pub(crate) const BODY_MAX: u32 = 300 << 20;

pub(crate) const BEGIN: u8 = 1;
pub(crate) const PAGES: u8 = 2;
pub(crate) const LOG: u8 = 3;
pub(crate) const END: u8 = 4;
pub(crate) const CONSISTENT: u8 = 5;
pub(crate) const FAILED: u8 = 6;
pub(crate) const RESUMED: u8 = 7;

/// What a backup has pages of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// All that are needed.
    All,
    /// Those that were changed since another backup.
    Since {
        /// That backup's number.
        base: u64,
        /// A page with a greater LSN is in this one.
        lsn: Lsn,
    },
}

/// What a backup begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// The backup's own number, drawn at random.
    pub id: u64,
    /// Which pages are in it.
    pub content: Content,
    /// When it was begun: Unix time in microseconds.
    pub began_micros: u64,
    /// Where the database has its pages.
    pub store: StoreKind,
    /// The control file: the log in the backup begins at its checkpoint.
    pub control: Control,
}

/// What a whole backup ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Where its log ends: the state that it holds.
    pub end: Lsn,
    /// No page in it was changed behind this: the log may be cut off there, and not before.
    pub consistent: Lsn,
    /// Pages that the data file has room for.
    pub file_pages: u32,
    /// Pages in it.
    pub pages: u64,
    /// Bytes of log in it.
    pub log_bytes: u64,
    /// When it ended: Unix time in microseconds.
    pub ended_micros: u64,
}

/// From where on a backup can be restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Consistent {
    /// All pages are there, and none was changed behind this.
    pub at: Lsn,
    /// Pages that the data file had room for.
    pub file_pages: u32,
    /// When: Unix time in microseconds.
    pub micros: u64,
}

impl Consistent {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words: [u64; 3] = [self.at.0, u64::from(self.file_pages), self.micros];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn decode(body: &[u8]) -> Option<Consistent> {
        let file_pages = u32::try_from((body.len() == 24).then(|| word(body, 8))?).ok()?;
        Some(Consistent { at: Lsn(word(body, 0)), file_pages, micros: word(body, 16) })
    }
}

/// That a backup which had been cut off is gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resumed {
    /// When: Unix time in microseconds.
    pub micros: u64,
    /// The control file: the log in the backup begins at its checkpoint, anew.
    pub control: Control,
}

impl Resumed {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.micros.to_le_bytes().to_vec();
        out.extend(self.control.encode());
        out
    }

    /// `None`: not of the database that `begin` is of, or not later.
    pub(crate) fn decode(body: &[u8], begin: &Control) -> Option<Resumed> {
        let body = (body.len() == RESUMED_BYTES).then_some(body)?;
        let Copy::Good(control) = Control::decode(&body[8..]) else { return None };
        let is_it = (control.db, control.page_size) == (begin.db, begin.page_size)
            && control.checkpoint >= begin.checkpoint;
        is_it.then_some(Resumed { micros: word(body, 0), control })
    }
}

const RESUMED_BYTES: usize = 8 + COPY_BYTES;
pub(crate) const BEGIN_BYTES: usize = 40 + COPY_BYTES;
const END_BYTES: usize = 48;

impl Begin {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (base, since) = match self.content {
            Content::All => (0, Lsn::ZERO),
            Content::Since { base, lsn } => (base, lsn),
        };
        let store = match self.store {
            StoreKind::InPlace => 1,
            StoreKind::Log => 2,
        };
        let words: [u64; 5] = [self.id, base, since.0, self.began_micros, store];
        let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        out.extend(self.control.encode());
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Begin, String> {
        let wrong = || "its beginning says what none says".to_owned();
        if body.len() != BEGIN_BYTES {
            return Err(wrong());
        }
        let content = match (word(body, 8), word(body, 16)) {
            (0, 0) => Content::All,
            (0, _) => return Err(wrong()),
            (base, lsn) => Content::Since { base, lsn: Lsn(lsn) },
        };
        let store = match word(body, 32) {
            1 => StoreKind::InPlace,
            2 => StoreKind::Log,
            _ => return Err(wrong()),
        };
        let control = match Control::decode(&body[40..]) {
            Copy::Good(control) => control,
            Copy::OtherFormat(found) => {
                let reads = weir_checkpoint::FORMAT;
                return Err(format!(
                    "it is of a database of format {found}, this version reads format {reads}"
                ));
            }
            Copy::Foreign | Copy::Damaged => return Err(wrong()),
        };
        if ![4096, 8192, 16384].contains(&control.page_size) || word(body, 0) == 0 {
            return Err(wrong());
        }
        Ok(Begin { id: word(body, 0), content, began_micros: word(body, 24), store, control })
    }
}

impl End {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words: [u64; 6] = [
            self.end.0,
            self.consistent.0,
            u64::from(self.file_pages),
            self.pages,
            self.log_bytes,
            self.ended_micros,
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn decode(body: &[u8]) -> Result<End, String> {
        let file_pages =
            if body.len() == END_BYTES { u32::try_from(word(body, 16)).ok() } else { None };
        let file_pages = file_pages.ok_or("its end says what none says")?;
        Ok(End {
            end: Lsn(word(body, 0)),
            consistent: Lsn(word(body, 8)),
            file_pages,
            pages: word(body, 24),
            log_bytes: word(body, 32),
            ended_micros: word(body, 40),
        })
    }
}

/// The eight bytes at `at`, which are there.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// A frame's header, in words.
#[derive(Clone, Copy)]
pub(crate) struct FrameHeader {
    pub(crate) kind: u8,
    pub(crate) len: u32,
    pub(crate) number: u32,
}

impl FrameHeader {
    /// With the checksum, which `seed` begins: another backup's frames do not fit in.
    pub(crate) fn encode(self, seed: u32, body: &[&[u8]]) -> [u8; FRAME_BYTES] {
        let mut out = [0; FRAME_BYTES];
        out[0] = self.kind;
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..12].copy_from_slice(&self.number.to_le_bytes());
        let head = checksum_more(seed, &out[..12]);
        let crc = body.iter().fold(head, |crc, part| checksum_more(crc, part));
        out[12..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; FRAME_BYTES], at: u64) -> Result<FrameHeader, BackupError> {
        let long = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = FrameHeader { kind: bytes[0], len: long(4), number: long(8) };
        if header.len > BODY_MAX || bytes[1..4] != [0; 3] {
            return Err(BackupError::Damaged { at, what: "this is not a frame's header".into() });
        }
        Ok(header)
    }
}

/// What begins the checksums of a backup's frames.
pub(crate) fn seed_of(id: u64) -> u32 {
    checksum_more(0, &id.to_le_bytes())
}
