//! A chunk's header: the journal of the map. It names the blocks that follow, in order, and pages
//! that are no more.
use weir_base::{ALIGN, DbId, Lsn, PageNo, align_up};

use super::{Kind, Writer, is_sealed, seal, u16_at, u32_at, u64_at};
use crate::ids::{Epoch, SegmentNo, Seq, UNIT, units_of};

const MAGIC: u32 = u32::from_le_bytes(*b"chk1");
const HEAD: usize = 48;
const ENTRY: usize = 16;
/// The most entries of a chunk: so many that header and entries stay below 64 KiB.
pub const CHUNK_ENTRIES_MAX: usize = 4000;
/// An entry's tag for pages that are no more; blocks have their kind's.
const FORGET: u8 = 255;

/// One line of a chunk's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A block that follows.
    Block {
        /// What it holds.
        kind: Kind,
        /// Of that kind, the number.
        number: u32,
        /// A page's LSN; of others, zero.
        lsn: Lsn,
        /// Its length in units, head included.
        units: u16,
    },
    /// Pages that are no more: their places are free, and what older chunks say of them is void.
    Forget {
        /// The first.
        first: PageNo,
        /// How many.
        count: u16,
        /// The change that freed them.
        lsn: Lsn,
    },
}

impl Entry {
    fn units(&self) -> usize {
        match self {
            Entry::Block { units, .. } => usize::from(*units),
            Entry::Forget { .. } => 0,
        }
    }
}

/// How much must be read before a header can be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkLen {
    /// No chunk begins here.
    NotAChunk,
    /// So many bytes, if it is one.
    Bytes(usize),
}

/// A chunk's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChunkHead {
    /// The segment it lies in.
    pub segment: SegmentNo,
    /// The segment's use that it belongs to.
    pub epoch: Epoch,
    /// Its number.
    pub seq: Seq,
    /// All chunks of the same life up to this number were durable when it was written (R9).
    pub durable: Seq,
    /// What is in it.
    pub entries: Vec<Entry>,
}

impl ChunkHead {
    /// Bytes of a header with so many entries, to where the first block begins.
    #[must_use]
    pub fn bytes(entries: usize) -> usize {
        units_of(HEAD + entries * ENTRY) * UNIT
    }

    /// Bytes of the whole chunk: header, blocks, and zeros to a multiple of 4096.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        let units: usize = self.entries.iter().map(Entry::units).sum();
        align_up((Self::bytes(self.entries.len()) + units * UNIT) as u64) as usize
    }

    /// The entries, each with the byte of the chunk at which its block begins (of pages that are no
    /// more, at which the next block does).
    pub fn placed(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let mut at = Self::bytes(self.entries.len());
        self.entries.iter().map(move |entry| {
            let here = at;
            at += entry.units() * UNIT;
            (here, entry)
        })
    }

    /// Writes the header to the front of `out`.
    ///
    /// # Panics
    /// When there are more than [`CHUNK_ENTRIES_MAX`] entries, or `out` is too short.
    pub fn encode(&self, db: DbId, out: &mut [u8]) {
        assert!(self.entries.len() <= CHUNK_ENTRIES_MAX, "a chunk's entries are bounded");
        let out = &mut out[..HEAD + self.entries.len() * ENTRY];
        let mut to = Writer::new(out);
        to.u32(0).u32(MAGIC).u64(self.epoch.0).u64(self.seq.0).u64(self.durable.0);
        to.u32(self.segment.0).u32(self.entries.len() as u32);
        to.u32((self.chunk_bytes() / ALIGN) as u32).u32(0);
        for entry in &self.entries {
            match *entry {
                Entry::Block { kind, number, lsn, units } => {
                    to.u32(number).u64(lsn.0).u16(units).put(&[kind as u8, 0]);
                }
                Entry::Forget { first, count, lsn } => {
                    to.u32(first.0).u64(lsn.0).u16(count).put(&[FORGET, 0]);
                }
            }
        }
        seal(db, out);
    }

    /// How many bytes the header that begins with `first` (48 bytes at least) has.
    #[must_use]
    pub fn len_of(first: &[u8]) -> ChunkLen {
        let count = u32_at(first, 36).unwrap_or(0) as usize;
        if u32_at(first, 4) != Some(MAGIC) || !(1..=CHUNK_ENTRIES_MAX).contains(&count) {
            return ChunkLen::NotAChunk;
        }
        ChunkLen::Bytes(HEAD + count * ENTRY)
    }

    /// The header at the front of `bytes`; `None` when none of the store `db` is there.
    #[must_use]
    pub fn parse(db: DbId, bytes: &[u8]) -> Option<ChunkHead> {
        let ChunkLen::Bytes(len) = Self::len_of(bytes) else { return None };
        let bytes = bytes.get(..len)?;
        if !is_sealed(db, bytes) {
            return None;
        }
        let entries = bytes[HEAD..].chunks_exact(ENTRY).map(|line| {
            let (number, lsn, n) = (u32_at(line, 0)?, Lsn(u64_at(line, 4)?), u16_at(line, 12)?);
            let is_sound = n > 0 && line[15] == 0;
            match line[14] {
                FORGET => Some(Entry::Forget { first: PageNo(number), count: n, lsn }),
                tag => Some(Entry::Block { kind: Kind::from_u8(tag)?, number, lsn, units: n }),
            }
            .filter(|_| is_sound)
        });
        let head = ChunkHead {
            segment: SegmentNo(u32_at(bytes, 32)?),
            epoch: Epoch(u64_at(bytes, 8)?),
            seq: Seq(u64_at(bytes, 16)?),
            durable: Seq(u64_at(bytes, 24)?),
            entries: entries.collect::<Option<_>>()?,
        };
        let is_sound =
            u32_at(bytes, 40)? as usize == head.chunk_bytes() / ALIGN && u32_at(bytes, 44)? == 0;
        Some(head).filter(|_| is_sound)
    }
}
