//! The rows: keys from numbers 0, 1, 2, ...; values that say whose they are, and of which version.

use crate::engine::{Key, Row};

/// Bytes of a value that are not filler: its row's number and its version.
pub const HEAD_BYTES: usize = 16;

/// How a row's number becomes its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The number itself: rows loaded in order of their numbers are loaded in key order.
    Dense,
    /// The number scattered over all keys, as YCSB does by default (`insertorder=hashed`): rows
    /// loaded in order of their numbers are loaded in random order.
    Hashed,
}

impl Keys {
    pub fn key(self, number: u64) -> Key {
        match self {
            Keys::Dense => number.to_be_bytes(),
            Keys::Hashed => mix(number).to_be_bytes(),
        }
    }

    /// The number back; none for what cannot be a key.
    pub fn number(self, key: &[u8]) -> Option<u64> {
        let word = u64::from_be_bytes(key.try_into().ok()?);
        Some(match self {
            Keys::Dense => word,
            Keys::Hashed => unmix(word),
        })
    }
}

/// The finisher of SplitMix64 (Steele, Lea, Flood 2014): a bijection, so distinct stays distinct.
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Its inverse.
fn unmix(word: u64) -> u64 {
    let word = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let word = (word ^ (word >> 27) ^ (word >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    word ^ (word >> 30) ^ (word >> 60)
}

/// Writes the value of row `number` at `version`: both, then filler that only these two determine
/// and that does not compress.
pub fn fill(value: &mut [u8], number: u64, version: u64) {
    value[..8].copy_from_slice(&number.to_be_bytes());
    value[8..HEAD_BYTES].copy_from_slice(&version.to_be_bytes());
    let mut state = number ^ version.rotate_left(32);
    for chunk in value[HEAD_BYTES..].chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&mix(state).to_le_bytes()[..chunk.len()]);
    }
}

/// The row `number` at version 0, which is what loads write.
pub fn first(keys: Keys, number: u64, value_bytes: usize) -> Row {
    let mut value = vec![0; value_bytes];
    fill(&mut value, number, 0);
    (keys.key(number), value)
}

/// What each read checks while it is measured: the length, and the number echoed in the value.
pub fn is_for(value: &[u8], number: u64, len: usize) -> bool {
    value.len() == len && value[..8] == number.to_be_bytes()
}

/// What is checked of every row after a run: every byte. The version, if all is right.
pub fn version_of(value: &[u8], number: u64, scratch: &mut [u8]) -> Option<u64> {
    if !is_for(value, number, scratch.len()) {
        return None;
    }
    let version = u64::from_be_bytes(value[8..HEAD_BYTES].try_into().ok()?);
    fill(scratch, number, version);
    (value == scratch).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_seen_wherever_it_lies() {
        let mut scratch = vec![0; 120];
        let mut value = vec![0; 120];
        fill(&mut value, 77, 9);
        assert!(is_for(&value, 77, 120));
        assert_eq!(version_of(&value, 77, &mut scratch), Some(9));
        assert!(!is_for(&value, 78, 120) && !is_for(&value, 77, 119));
        for at in 0..value.len() {
            value[at] ^= 1;
            assert_ne!(version_of(&value, 77, &mut scratch), Some(9), "byte {at}");
            if !(8..HEAD_BYTES).contains(&at) {
                assert_eq!(version_of(&value, 77, &mut scratch), None, "byte {at}");
            }
            value[at] ^= 1;
        }
    }

    #[test]
    fn keys_hold_their_numbers() {
        for keys in [Keys::Dense, Keys::Hashed] {
            for number in (0..10_000).chain([u64::MAX, 1 << 63]) {
                assert_eq!(keys.number(&keys.key(number)), Some(number));
            }
            assert_eq!(keys.number(b"short"), None);
        }
    }
}
