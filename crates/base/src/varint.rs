//! Numbers in as few bytes as they need: seven bits a byte, lowest first (LEB128).

/// The most bytes that one number takes.
pub const LEN_MAX: usize = 10;

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front of `bytes`; `None` when they end too early or overflow 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    take_long(bytes)
}

/// As [`take`], of numbers of more than one byte. Those of up to eight, where so many bytes follow,
/// are put together as a whole word, without a branch for each byte.
#[inline]
fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let Some((&word, _)) = bytes.split_first_chunk() else { return take_slowly(bytes) };
    let word = u64::from_le_bytes(word);
    let last = !word & 0x8080_8080_8080_8080;
    if last == 0 {
        return take_slowly(bytes);
    }
    // The bits up to the last byte's highest one, which is not set.
    let own = word & (last ^ (last - 1));
    *bytes = &bytes[last.trailing_zeros() as usize / 8 + 1..];
    // Seven bits of each byte, side by side: by twos, by fours, all.
    let own = own & 0x007f_007f_007f_007f | (own & 0x7f00_7f00_7f00_7f00) >> 1;
    let own = own & 0x0000_3fff_0000_3fff | (own & 0x3fff_0000_3fff_0000) >> 2;
    Some(own & 0x0fff_ffff | (own & 0x0fff_ffff_0000_0000) >> 4)
}

#[cold]
fn take_slowly(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(LEN_MAX) {
        if i == LEN_MAX - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// How many bytes `value` takes.
#[must_use]
pub fn len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_damage() {
        let ends =
            (0..64).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, 0x0102_0408_1020_4081 >> bits]);
        for value in ends.chain([u64::MAX]) {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out.len(), len(value));
            // Alone, and with whatever behind it.
            for behind in [&[][..], &[0; 9], &[0xff; 9]] {
                let all = [&out, behind].concat();
                let mut rest = all.as_slice();
                assert_eq!(take(&mut rest), Some(value));
                assert_eq!(rest, behind);
            }
            let mut cut = &out[..out.len() - 1];
            assert_eq!(take(&mut cut), None);
        }
        assert_eq!(take(&mut [0xff; 11].as_slice()), None);
    }
}
