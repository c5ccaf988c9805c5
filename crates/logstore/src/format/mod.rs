//! What lies on disk, as bytes: encoding, and parsing that is total on any bytes. Every part bears
//! a checksum that begins with the store's number, so that a part of another store fits nowhere.
//!
//! A segment: a header of 4096 bytes, chunks, a footer in its last bytes. A chunk: a header that
//! names its blocks, then the blocks at multiples of [`UNIT`](crate::ids::UNIT), filled up with
//! zeros to a multiple of 4096. Everything is little-endian.
mod block;
mod chunk;
mod leaf;
mod root;
mod segment;

pub use block::{BLOCK_HEAD, BlockHead, Codec, Kind};
pub use chunk::{CHUNK_ENTRIES_MAX, ChunkHead, ChunkLen, Entry};
pub use leaf::{LEAF_BYTES, LEAF_PLACES, decode_leaf, encode_leaf};
pub use root::{FORMAT, ROOT_SLOT_BYTES, Root, RootSlot, Span};
pub use segment::{FOOTER_TAIL, Footer, FooterEntry, SegmentHead};

use weir_base::{DbId, checksum, checksum_more};

/// The checksum of a part of the store `db`.
fn seal_of(db: DbId, bytes: &[u8]) -> u32 {
    checksum_more(checksum(&db.0.to_le_bytes()), bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes fields one behind the other.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    fn new(bytes: &'a mut [u8]) -> Self {
        Writer { bytes, at: 0 }
    }

    fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }

    fn u16(&mut self, field: u16) -> &mut Self {
        self.put(&field.to_le_bytes())
    }

    fn u32(&mut self, field: u32) -> &mut Self {
        self.put(&field.to_le_bytes())
    }

    fn u64(&mut self, field: u64) -> &mut Self {
        self.put(&field.to_le_bytes())
    }
}

/// Puts the checksum of `bytes[4..]` in front.
fn seal(db: DbId, bytes: &mut [u8]) {
    let crc = seal_of(db, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Whether `bytes[..4]` is the checksum of what follows.
fn is_sealed(db: DbId, bytes: &[u8]) -> bool {
    bytes.len() > 4 && u32_at(bytes, 0) == Some(seal_of(db, &bytes[4..]))
}
