//! The rows: 8-byte big-endian keys 0, 1, 2, ...; values that say whose they are.

use crate::engine::Key;

/// Bytes of a value that are not filler: its key and its version.
pub const HEAD_BYTES: usize = 16;

pub fn key(number: u64) -> Key {
    number.to_be_bytes()
}

/// The finisher of SplitMix64 (Steele, Lea, Flood 2014): a bijection, so distinct stays distinct.
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Writes the value of `key` at `version`: key, version, then filler that only these two determine
/// and that does not compress.
pub fn fill(value: &mut [u8], key: &Key, version: u64) {
    value[..8].copy_from_slice(key);
    value[8..HEAD_BYTES].copy_from_slice(&version.to_be_bytes());
    let mut state = u64::from_be_bytes(*key) ^ version.rotate_left(32);
    for chunk in value[HEAD_BYTES..].chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&mix(state).to_le_bytes()[..chunk.len()]);
    }
}

/// What every point read checks: the length, and the key echoed in the value.
pub fn is_for(value: &[u8], key: &Key, len: usize) -> bool {
    value.len() == len && value[..8] == *key
}

/// What the scan at the end checks of a sample: every byte.
pub fn is_whole(value: &[u8], key: &[u8], scratch: &mut [u8]) -> bool {
    if value.len() != scratch.len() || key.len() != 8 || value[..8] != *key {
        return false;
    }
    let mut number = [0; 8];
    number.copy_from_slice(key);
    let mut version = [0; 8];
    version.copy_from_slice(&value[8..HEAD_BYTES]);
    fill(scratch, &number, u64::from_be_bytes(version));
    value == scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_seen_wherever_it_lies() {
        let (number, mut scratch) = (key(77), vec![0; 120]);
        let mut value = vec![0; 120];
        fill(&mut value, &number, 9);
        assert!(is_for(&value, &number, 120) && is_whole(&value, &number, &mut scratch));
        assert!(!is_for(&value, &key(78), 120) && !is_for(&value, &number, 119));
        for at in 0..value.len() {
            value[at] ^= 1;
            assert!(!is_whole(&value, &number, &mut scratch), "byte {at}");
            value[at] ^= 1;
        }
    }
}
