//! The root: where the map's checkpoint lies, which segments may hold what is newer, and which may
//! be opened. Two slots, written in turn: a torn write leaves the other.
use weir_base::{DbId, Lsn, align_up};

use super::{Writer, is_sealed, seal, u32_at, u64_at};
use crate::ids::{Epoch, Place, SegmentNo, Seq};

const MAGIC: u64 = u64::from_le_bytes(*b"WEIRROOT");
/// The store's format, which is the root's, too.
pub const FORMAT: u32 = 2;
/// The oldest that is read: 1 knew no LZ4.
const FORMAT_OLDEST: u32 = 1;
/// Bytes from one slot to the next.
pub const ROOT_SLOT_BYTES: usize = 256 << 10;
const HEAD: usize = 104;
const SPAN: usize = 16;

/// A use of a segment that recovery looks into: it may be opened, or was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Which segment.
    pub segment: SegmentNo,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Where what is believed ends, in blocks of 4096 bytes.
    pub end: u32,
}

/// A root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Grows by one with each; its slot is this modulo 2.
    pub generation: u64,
    /// How often the store was opened.
    pub life: u64,
    /// Bytes a page.
    pub page_bytes: u32,
    /// Bytes a segment.
    pub segment_bytes: u32,
    /// Segments that the store has.
    pub segments: u32,
    /// Pages that there is room for: page numbers end here.
    pub pages: u32,
    /// Epochs below this one may have been given out.
    pub next_epoch: Epoch,
    /// Chunks up to this one are in the map that the root names.
    pub ckpt_seq: Seq,
    /// The newest LSN of any page that had been written: the log was durable up to there.
    pub newest: Lsn,
    /// Where the blocks lie that say where the map's leaves are.
    pub index: Vec<Place>,
    /// Where chunks may be that are newer, planned segments included.
    pub scan: Vec<Span>,
}

/// What a slot holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RootSlot {
    /// A root of this store.
    Good(Root),
    /// A root of another store.
    OtherStore(DbId),
    /// A root in another format.
    OtherFormat(u32),
    /// No root: never written, torn or damaged.
    None,
}

impl Root {
    /// Bytes of a slot that such a root takes: a multiple of 4096. More than [`ROOT_SLOT_BYTES`]:
    /// it cannot be written.
    #[must_use]
    pub fn bytes(index: usize, spans: usize) -> usize {
        align_up((HEAD + index * 8 + spans * SPAN) as u64) as usize
    }

    /// Fills `out`, [`Root::bytes`] of it, and returns how many those are.
    ///
    /// # Panics
    /// When `out` is too short.
    pub fn encode(&self, db: DbId, out: &mut [u8]) -> usize {
        let len = Self::bytes(self.index.len(), self.scan.len());
        let out = &mut out[..len];
        out.fill(0);
        let mut to = Writer::new(out);
        to.u32(0).u32(FORMAT).u64(MAGIC).u64(db.0).u64(self.generation).u64(self.life);
        to.u32(self.page_bytes).u32(self.segment_bytes).u32(self.segments).u32(self.pages);
        to.u64(self.next_epoch.0).u64(self.ckpt_seq.0);
        to.u32(self.index.len() as u32).u32(self.scan.len() as u32);
        to.u64(self.newest.0).put(&[0; HEAD - 88]);
        for place in &self.index {
            to.u64(place.bits());
        }
        for span in &self.scan {
            to.u32(span.segment.0).u32(span.end).u64(span.epoch.0);
        }
        let used = HEAD + self.index.len() * 8 + self.scan.len() * SPAN;
        seal(db, &mut out[..used]);
        len
    }

    /// What the slot `bytes` holds, looked at for the store `db`.
    #[must_use]
    pub fn parse(db: DbId, bytes: &[u8]) -> RootSlot {
        Self::parse_any(db, bytes).unwrap_or(RootSlot::None)
    }

    fn parse_any(db: DbId, bytes: &[u8]) -> Option<RootSlot> {
        if u64_at(bytes, 8)? != MAGIC {
            return None;
        }
        let found = DbId(u64_at(bytes, 16)?);
        let (index, spans) = (u32_at(bytes, 72)? as usize, u32_at(bytes, 76)? as usize);
        let used =
            index.checked_mul(8)?.checked_add(spans.checked_mul(SPAN)?)?.checked_add(HEAD)?;
        let bytes = bytes.get(..used)?;
        // The number that a root bears begins its own checksum: it is one, of whatever store.
        if !is_sealed(found, bytes) {
            return None;
        }
        let format = u32_at(bytes, 4)?;
        if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
            return Some(RootSlot::OtherFormat(format));
        }
        if found != db {
            return Some(RootSlot::OtherStore(found));
        }
        let (places, lines) = bytes[HEAD..].split_at_checked(index * 8)?;
        let span = |line: &[u8]| {
            let segment = SegmentNo(u32_at(line, 0)?);
            Some(Span { segment, end: u32_at(line, 4)?, epoch: Epoch(u64_at(line, 8)?) })
        };
        Some(RootSlot::Good(Root {
            generation: u64_at(bytes, 24)?,
            life: u64_at(bytes, 32)?,
            page_bytes: u32_at(bytes, 40)?,
            segment_bytes: u32_at(bytes, 44)?,
            segments: u32_at(bytes, 48)?,
            pages: u32_at(bytes, 52)?,
            next_epoch: Epoch(u64_at(bytes, 56)?),
            ckpt_seq: Seq(u64_at(bytes, 64)?),
            newest: Lsn(u64_at(bytes, 80)?),
            index: places
                .chunks_exact(8)
                .map(|bits| u64_at(bits, 0).map(Place::from_bits))
                .collect::<Option<_>>()?,
            scan: lines.chunks_exact(SPAN).map(span).collect::<Option<_>>()?,
        }))
    }
}
