//! The 512-byte block: sealing before it goes to disk, judging it when it comes back.
//!
//! ```text
//! 0   crc32c of bytes 4..512, seeded with the database's number
//! 4   block number: the low 32 bits of lsn / 512
//! 8   bits 0-8: payload bytes in use; bits 9-14: epoch; bit 15: see DURABLE_PART
//! 10  how far back (in blocks) the first block lies that was not known to be durable as a whole
//!     when this one was sealed; 65535 means at least that
//! 12  payload
//! ```
use crate::position::{BLOCK, BLOCK_HEADER, BLOCK_PAYLOAD};
use weir_base::{DbId, Lsn, checksum, checksum_more};

/// The first block that was not durable as a whole had been written durably in part.
const DURABLE_PART: u16 = 1 << 15;
const USED_BITS: u16 = 9;
const EPOCHS: u16 = 64;

const _: () = assert!(BLOCK_PAYLOAD < 1 << USED_BITS, "`used` fits its bits");

/// Counts the openings of a log, modulo 64: blocks that an earlier opening left behind its end are
/// told from those of the present one (REDO-6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Epoch(u16);

impl Epoch {
    pub(crate) fn next(self) -> Epoch {
        Epoch((self.0 + 1) % EPOCHS)
    }
}

/// What a block's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockHeader {
    /// Payload bytes in use.
    pub(crate) used: u16,
    /// The opening that wrote it.
    pub(crate) epoch: Epoch,
    /// Distance in blocks to the first block that was not known to be wholly durable, saturating.
    pub(crate) synced_back: u16,
    /// Whether that first block was durable in part.
    pub(crate) durable_part: bool,
}

/// The seed of all checksums of a database, computed once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u32);

impl Seed {
    pub(crate) fn of(db: DbId) -> Seed {
        Seed(checksum(&db.0.to_le_bytes()))
    }
}

/// Fills in the header of `block`, the block numbered `number`, so that it can go to disk.
/// `durable` is what is known to be durable.
pub(crate) fn seal(
    block: &mut [u8],
    seed: Seed,
    number: u64,
    used: u64,
    epoch: Epoch,
    durable: Lsn,
) {
    debug_assert!(block.len() == BLOCK as usize && used <= BLOCK_PAYLOAD);
    let back = number.saturating_sub(durable.0 / BLOCK).min(u64::from(u16::MAX)) as u16;
    let part = if durable.0 % BLOCK > BLOCK_HEADER { DURABLE_PART } else { 0 };
    let packed = used as u16 | (epoch.0 << USED_BITS) | part;
    block[4..8].copy_from_slice(&(number as u32).to_le_bytes());
    block[8..10].copy_from_slice(&packed.to_le_bytes());
    block[10..12].copy_from_slice(&back.to_le_bytes());
    let crc = checksum_more(seed.0, &block[4..]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
}

/// What was found where block `number` should lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockVerdict {
    /// The block itself.
    Current(BlockHeader),
    /// Nothing was ever written here.
    Zeros,
    /// A whole block of an earlier pass over this file. Its number may be greater: 32 bits come
    /// round after 2 TiB of log, and a file may have lain unused for longer than half of that. A
    /// later pass cannot have left it: its header, durable before its blocks, says where it begins.
    Old,
    /// Bytes that no write of ours can have left: damage, never a torn write, because a sector is
    /// written whole or not at all.
    Damaged,
}

/// Judges the 512 bytes found where block `number` should lie.
pub(crate) fn judge(block: &[u8], seed: Seed, number: u64) -> BlockVerdict {
    let word = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let crc = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    if crc != checksum_more(seed.0, &block[4..]) {
        let zeros = block.iter().all(|&byte| byte == 0);
        return if zeros { BlockVerdict::Zeros } else { BlockVerdict::Damaged };
    }
    let found = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    let packed = word(8);
    let used = packed & ((1 << USED_BITS) - 1);
    if found != number as u32 {
        return BlockVerdict::Old;
    }
    if u64::from(used) > BLOCK_PAYLOAD {
        return BlockVerdict::Damaged;
    }
    BlockVerdict::Current(BlockHeader {
        used,
        epoch: Epoch((packed >> USED_BITS) % EPOCHS),
        synced_back: word(10),
        durable_part: packed & DURABLE_PART != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed(0x1234_5678);

    fn sealed(number: u64, used: u64, durable: u64) -> Vec<u8> {
        let mut block = vec![7; 512];
        seal(&mut block, SEED, number, used, Epoch(3), Lsn(durable));
        block
    }

    #[test]
    fn what_is_sealed_is_recognised() {
        let block = sealed((1 << 32) + 9, 123, ((1 << 32) + 7) * 512 + 100);
        let header = BlockHeader { used: 123, epoch: Epoch(3), synced_back: 2, durable_part: true };
        assert_eq!(judge(&block, SEED, (1 << 32) + 9), BlockVerdict::Current(header));
        assert_eq!(judge(&block, SEED, (1 << 32) + 10), BlockVerdict::Old);
        assert_eq!(judge(&block, SEED, (1 << 32) + 8), BlockVerdict::Old);
        assert_eq!(judge(&block, Seed(1), (1 << 32) + 9), BlockVerdict::Damaged);
        assert_eq!(judge(&[0; 512], SEED, 0), BlockVerdict::Zeros);
    }

    #[test]
    fn distance_to_the_durable_saturates() {
        let block = sealed(70_000, 500, 12);
        let BlockVerdict::Current(header) = judge(&block, SEED, 70_000) else {
            panic!("not recognised")
        };
        assert_eq!((header.synced_back, header.durable_part), (u16::MAX, false));
    }

    #[test]
    fn every_flipped_bit_is_damage() {
        let block = sealed(9, 500, 12);
        for bit in 0..512 * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(judge(&flipped, SEED, 9), BlockVerdict::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn epochs_wrap() {
        assert_eq!(Epoch(63).next(), Epoch(0));
        assert_eq!(Epoch(5).next(), Epoch(6));
    }
}
