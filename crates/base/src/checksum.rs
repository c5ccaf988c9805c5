//! CRC-32C, in hardware where the machine has it.

/// The checksum of `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues a checksum: `checksum_more(checksum(a), b)` equals the checksum of `a` then `b`.
#[must_use]
pub fn checksum_more(so_far: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(so_far, bytes)
}
