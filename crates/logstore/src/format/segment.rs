//! The two ends of a segment: a header that says which use of it this is, and a footer that lists
//! its blocks, so that the cleaner finds them in one read.
use weir_base::{ALIGN, DbId};

use super::{Kind, Writer, is_sealed, seal, seal_of, u32_at, u64_at};
use crate::ids::{Epoch, SegmentNo};

const HEAD_MAGIC: u64 = u64::from_le_bytes(*b"WEIRSEG1");
const HEAD: usize = 48;
const FOOT_MAGIC: u64 = u64::from_le_bytes(*b"WEIRFOT1");
/// Bytes of a footer behind its entries: the segment's last.
pub const FOOTER_TAIL: usize = 40;
const ENTRY: usize = 8;

/// A segment's first block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHead {
    /// Which segment.
    pub segment: SegmentNo,
    /// Which use of it.
    pub epoch: Epoch,
    /// The life in which it was opened; all its chunks are of it (R7).
    pub life: u64,
}

impl SegmentHead {
    /// Fills `out`, 4096 bytes.
    pub fn encode(&self, db: DbId, out: &mut [u8]) {
        out.fill(0);
        let mut to = Writer::new(out);
        to.u32(0).u32(self.segment.0).u64(HEAD_MAGIC).u64(db.0);
        to.u64(self.epoch.0).u64(self.life);
        seal(db, &mut out[..HEAD]);
    }

    /// The header at the front of `bytes`; `None` when none of the store `db` is there.
    #[must_use]
    pub fn parse(db: DbId, bytes: &[u8]) -> Option<SegmentHead> {
        let bytes = bytes.get(..HEAD)?;
        if !is_sealed(db, bytes) || u64_at(bytes, 8)? != HEAD_MAGIC || u64_at(bytes, 16)? != db.0 {
            return None;
        }
        Some(SegmentHead {
            segment: SegmentNo(u32_at(bytes, 4)?),
            epoch: Epoch(u64_at(bytes, 24)?),
            life: u64_at(bytes, 32)?,
        })
    }
}

/// A block in a footer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FooterEntry {
    /// What it holds.
    pub kind: Kind,
    /// Of that kind, the number.
    pub number: u32,
    /// Where it begins: units from the segment's first byte, below 2^24.
    pub at: u32,
}

/// A closed segment's blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footer {
    /// Which segment.
    pub segment: SegmentNo,
    /// Which use of it.
    pub epoch: Epoch,
    /// Its blocks, in the order in which they lie.
    pub entries: Vec<FooterEntry>,
}

impl Footer {
    /// Bytes that a footer of so many entries takes: a multiple of 4096.
    #[must_use]
    pub fn bytes(entries: usize) -> usize {
        (entries * ENTRY + FOOTER_TAIL).next_multiple_of(ALIGN)
    }

    /// Fills `out` (of [`Footer::bytes`]): the entries end where the tail begins, the tail ends
    /// with the segment.
    pub fn encode(&self, db: DbId, out: &mut [u8]) {
        out.fill(0);
        let begin = out.len() - FOOTER_TAIL - self.entries.len() * ENTRY;
        let mut to = Writer::new(&mut out[begin..]);
        for entry in &self.entries {
            to.u32(entry.number).u32(entry.at << 8 | entry.kind as u32);
        }
        to.u64(FOOT_MAGIC).u64(self.epoch.0).u64(db.0);
        to.u32(self.segment.0).u32(self.entries.len() as u32).u32(0);
        let end = out.len() - 4;
        let crc = seal_of(db, &out[begin..end]);
        out[end..].copy_from_slice(&crc.to_le_bytes());
    }

    /// How many bytes the footer takes whose tail is the end of `last`; `None` when no tail is
    /// there.
    #[must_use]
    pub fn len_of(last: &[u8]) -> Option<usize> {
        let tail = last.get(last.len().checked_sub(FOOTER_TAIL)?..)?;
        let count = u32_at(tail, 28)? as usize;
        // A block has a unit at least, and a segment 2^24.
        (u64_at(tail, 0)? == FOOT_MAGIC && count < 1 << 24).then(|| Self::bytes(count))
    }

    /// The footer at the end of `bytes`; `None` when none of the store `db` is there.
    #[must_use]
    pub fn parse(db: DbId, bytes: &[u8]) -> Option<Footer> {
        Self::len_of(bytes)?;
        let (entries, tail) = bytes.split_at_checked(bytes.len() - FOOTER_TAIL)?;
        let count = u32_at(tail, 28)? as usize;
        let begin = entries.len().checked_sub(count * ENTRY)?;
        let end = bytes.len() - 4;
        let is_sound = u64_at(tail, 16)? == db.0
            && u32_at(tail, 32)? == 0
            && u32_at(bytes, end)? == seal_of(db, &bytes[begin..end]);
        let entry = |line: &[u8]| {
            let (number, rest) = (u32_at(line, 0)?, u32_at(line, 4)?);
            Some(FooterEntry { kind: Kind::from_u8(rest as u8)?, number, at: rest >> 8 })
        };
        if !is_sound {
            return None;
        }
        Some(Footer {
            segment: SegmentNo(u32_at(tail, 24)?),
            epoch: Epoch(u64_at(tail, 8)?),
            entries: entries[begin..].chunks_exact(ENTRY).map(entry).collect::<Option<_>>()?,
        })
    }
}
