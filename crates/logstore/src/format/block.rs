//! A block: 32 bytes that say whose bytes these are, and the bytes, compressed or not.
use weir_base::{DbId, Lsn};

use super::{Writer, is_sealed, seal, u32_at, u64_at};
use crate::ids::{Place, Seq, UNIT};

/// Bytes before a block's payload.
pub const BLOCK_HEAD: usize = 32;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A page; its number is a page number.
    Page = 1,
    /// A leaf of the map: places of 512 pages.
    Leaf = 2,
    /// Places of 512 leaves.
    Index = 3,
}

impl Kind {
    /// The kind of this number, if there is one.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Page,
            2 => Kind::Leaf,
            3 => Kind::Index,
            _ => return None,
        })
    }
}

/// How a payload is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Codec {
    /// Not at all.
    Raw = 0,
    /// As one zstd frame.
    Zstd = 1,
    /// As one block of LZ4: half the time, and less saved.
    Lz4 = 2,
}

impl Codec {
    /// The codec of this number, if there is one.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Codec> {
        Some(match number {
            0 => Codec::Raw,
            1 => Codec::Zstd,
            2 => Codec::Lz4,
            _ => return None,
        })
    }
}

/// What a block says of itself. The checksum covers this and the packed payload, so a block is
/// verified, copied and kept without being unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHead {
    /// What it holds.
    pub kind: Kind,
    /// How that is packed.
    pub codec: Codec,
    /// Of its kind, the number.
    pub number: u32,
    /// A page's LSN; of others, zero.
    pub lsn: Lsn,
    /// The chunk it was written in.
    pub seq: Seq,
    /// Bytes of payload, packed.
    pub len: u32,
}

impl BlockHead {
    /// Puts the head in front of the payload that `block` holds already from byte 32 on.
    ///
    /// # Panics
    /// When `block` is shorter than head and payload.
    pub fn seal(&self, db: DbId, block: &mut [u8]) {
        let block = &mut block[..BLOCK_HEAD + self.len as usize];
        let mut out = Writer::new(block);
        out.u32(0).u32(self.number).u64(self.lsn.0).u64(self.seq.0).u32(self.len);
        out.put(&[self.kind as u8, self.codec as u8, 0, 0]);
        seal(db, block);
    }

    /// The block at the front of `bytes`, and its payload; `None` when no whole block of the store
    /// `db` is there.
    #[must_use]
    pub fn parse(db: DbId, bytes: &[u8]) -> Option<(BlockHead, &[u8])> {
        let len = u32_at(bytes, 24)?;
        if len as usize > Place::UNITS_MAX * UNIT - BLOCK_HEAD {
            return None;
        }
        let block = bytes.get(..BLOCK_HEAD + len as usize)?;
        if !is_sealed(db, block) || block[30..32] != [0, 0] {
            return None;
        }
        let head = BlockHead {
            kind: Kind::from_u8(block[28])?,
            codec: Codec::from_u8(block[29])?,
            number: u32_at(block, 4)?,
            lsn: Lsn(u64_at(block, 8)?),
            seq: Seq(u64_at(block, 16)?),
            len,
        };
        Some((head, &block[BLOCK_HEAD..]))
    }
}
