//! What the rows hold. A value is a function of its key and a version number, and tells both back:
//! any row can be judged alone, without remembering what was written (BENCH-3).
//!
//! 8 bytes of key, big-endian, then 15 words that look random: the first is the version scrambled
//! with the key (a bijection, so that it can be read back), the others follow from the first.
use std::fmt;

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 8;
/// Bytes of a value: the key again and 120 bytes that change with each version.
pub(crate) const VALUE_BYTES: usize = 128;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words.
pub(crate) fn scramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The inverse of [`scramble`].
pub(crate) fn unscramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    word = (word ^ (word >> 27) ^ (word >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    word ^ (word >> 30) ^ (word >> 60)
}

fn salt(key: u64) -> u64 {
    scramble(key.wrapping_add(GOLDEN))
}

/// Writes the value that `key` has in `version`.
pub(crate) fn fill(value: &mut [u8; VALUE_BYTES], key: u64, version: u32) {
    let (echo, words) = value.split_at_mut(KEY_BYTES);
    echo.copy_from_slice(&key.to_be_bytes());
    let first = scramble(u64::from(version) ^ salt(key));
    for (i, word) in words.chunks_exact_mut(8).enumerate() {
        let step = (i as u64).wrapping_mul(GOLDEN);
        let bits = if i == 0 { first } else { scramble(first.wrapping_add(step)) };
        word.copy_from_slice(&bits.to_le_bytes());
    }
}

/// Whether the value repeats its key: the cheap check of the read workload.
pub(crate) fn echoes(key: &[u8], value: &[u8]) -> bool {
    value.len() == VALUE_BYTES && value[..KEY_BYTES] == *key
}

/// The version of which `value` is, for this key.
pub(crate) fn version_of(key: u64, value: &[u8]) -> Result<u32, Wrong> {
    if value.len() != VALUE_BYTES {
        return Err(Wrong::Length(value.len()));
    }
    if value[..KEY_BYTES] != key.to_be_bytes() {
        return Err(Wrong::Echo);
    }
    let mut word = [0; 8];
    word.copy_from_slice(&value[KEY_BYTES..KEY_BYTES + 8]);
    let version = unscramble(u64::from_le_bytes(word)) ^ salt(key);
    let version = u32::try_from(version).map_err(|_| Wrong::Bytes)?;
    let mut expected = [0; VALUE_BYTES];
    fill(&mut expected, key, version);
    if value == expected { Ok(version) } else { Err(Wrong::Bytes) }
}

/// Why a value is not one that the workloads wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Length(usize),
    Echo,
    Bytes,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Length(found) => write!(f, "value of {found} bytes instead of {VALUE_BYTES}"),
            Wrong::Echo => write!(f, "value of another key"),
            Wrong::Bytes => write!(f, "value whose bytes are of no version"),
        }
    }
}

/// A key as a number.
pub(crate) fn key_number(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_holds_its_version(key: u64, version: u32, at in 0..VALUE_BYTES, bit in 0..8) {
            prop_assert_eq!(unscramble(scramble(key)), key);
            let mut value = [0; VALUE_BYTES];
            fill(&mut value, key, version);
            prop_assert_eq!(version_of(key, &value), Ok(version));
            prop_assert!(version_of(key ^ 1, &value).is_err());
            value[at] ^= 1u8 << bit;
            prop_assert!(version_of(key, &value).is_err(), "a flipped bit goes unseen");
        }
    }

    #[test]
    fn all_120_bytes_change_with_the_version() {
        let (mut a, mut b) = ([0; VALUE_BYTES], [0; VALUE_BYTES]);
        let mut differ = [false; VALUE_BYTES];
        for version in 0..50 {
            fill(&mut a, 7, version);
            fill(&mut b, 7, version + 1);
            for (i, seen) in differ.iter_mut().enumerate() {
                *seen |= a[i] != b[i];
            }
        }
        assert!(differ[..KEY_BYTES].iter().all(|d| !d) && differ[KEY_BYTES..].iter().all(|&d| d));
    }
}
