//! How payload bytes map to places on disk: 512-byte blocks of a 12-byte header and 500 bytes of
//! payload. A byte of payload has a number in the stream (`sn`) and a place on disk ([`Lsn`]).
use weir_base::Lsn;

/// The unit that a disk is assumed to write whole or not at all.
pub(crate) const BLOCK: u64 = 512;
/// Bytes of a block that are not payload.
pub(crate) const BLOCK_HEADER: u64 = 12;
/// Payload bytes of a full block.
pub(crate) const BLOCK_PAYLOAD: u64 = BLOCK - BLOCK_HEADER;
/// The unit in which the log is written: what O_DIRECT demands.
pub(crate) const PAGE: u64 = weir_base::ALIGN as u64;

const _: () = assert!(PAGE.is_multiple_of(BLOCK), "a write covers whole blocks");

/// Where a group of redo lies: from its first byte to just behind its last one. The end of one
/// group is the start of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Span {
    /// The group's first byte.
    pub start: Lsn,
    /// Just behind the group's last byte: what must be durable for the group to be durable.
    pub end: Lsn,
}

/// The place of payload byte `sn`. Strictly increasing; never inside a block header.
#[inline]
pub(crate) fn lsn_of(sn: u64) -> Lsn {
    Lsn(sn / BLOCK_PAYLOAD * BLOCK + BLOCK_HEADER + sn % BLOCK_PAYLOAD)
}

/// The inverse of [`lsn_of`]; a place inside a header counts as the block's first payload byte.
#[inline]
pub(crate) fn sn_of(lsn: Lsn) -> u64 {
    lsn.0 / BLOCK * BLOCK_PAYLOAD + (lsn.0 % BLOCK).saturating_sub(BLOCK_HEADER)
}

/// Whether `lsn` is a place where payload can lie.
pub(crate) fn is_place(lsn: Lsn) -> bool {
    lsn.0 % BLOCK >= BLOCK_HEADER
}

/// The payload place at or behind the disk position `at` (a multiple of [`BLOCK`]).
#[inline]
pub(crate) fn first_in_block(at: u64) -> Lsn {
    debug_assert!(at.is_multiple_of(BLOCK));
    Lsn(at + BLOCK_HEADER)
}

/// The disk position where the block that holds `lsn` begins.
#[inline]
pub(crate) fn block_start(lsn: Lsn) -> u64 {
    lsn.0 / BLOCK * BLOCK
}

/// Whether any payload of `lsn`'s block lies before `lsn`.
#[inline]
pub(crate) fn is_inside_block(lsn: Lsn) -> bool {
    lsn.0 % BLOCK > BLOCK_HEADER
}

/// Just behind the last block that holds payload before `end`.
#[inline]
pub(crate) fn blocks_end(end: Lsn) -> u64 {
    if is_inside_block(end) { block_start(end) + BLOCK } else { block_start(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_is_a_monotone_bijection() {
        let mut before = None;
        for sn in 0..5000 {
            let lsn = lsn_of(sn);
            assert!(is_place(lsn));
            assert_eq!(sn_of(lsn), sn);
            assert!(before < Some(lsn));
            before = Some(lsn);
        }
        assert_eq!(lsn_of(0), Lsn(12));
        assert_eq!(lsn_of(499), Lsn(511));
        assert_eq!(lsn_of(500), Lsn(524), "the end of a full block is the start of the next");
    }

    #[test]
    fn block_edges() {
        assert_eq!(blocks_end(Lsn(12)), 0);
        assert_eq!(blocks_end(Lsn(13)), 512);
        assert_eq!(blocks_end(Lsn(524)), 512);
        assert_eq!(block_start(Lsn(524)), 512);
        assert!(!is_inside_block(Lsn(524)) && is_inside_block(Lsn(525)));
    }
}
