//! Any bytes as an exported table: an error, or a table that is whole; with checksums put right, so
//! that what lies behind them is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::checksum_more;

const HEAD: usize = 20;
const FRAME: usize = 24;

/// A stream with the input's frames, each with the number and the checksums that it must have.
fn mended(input: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    if out.len() < HEAD {
        return out;
    }
    out[..8].copy_from_slice(b"WEIRTABL");
    out[8..12].copy_from_slice(&1u32.to_le_bytes());
    let seed = checksum_more(0, &out[12..HEAD]);
    let (mut at, mut number) = (HEAD, 0u32);
    while at + FRAME <= out.len() {
        let left = (out.len() - at - FRAME) as u64;
        // A length of the input's, if there is so much.
        let len = u64::from(u16::from_le_bytes([out[at + 8], out[at + 9]])).min(left);
        let end = at + FRAME + len as usize;
        out[at] = 1 + out[at] % 3;
        out[at + 1..at + 4].fill(0);
        out[at + 4..at + 8].copy_from_slice(&number.to_le_bytes());
        out[at + 8..at + 16].copy_from_slice(&len.to_le_bytes());
        let body = checksum_more(seed, &out[at + FRAME..end]);
        out[at + 16..at + 20].copy_from_slice(&body.to_le_bytes());
        let header = checksum_more(seed, &out[at..at + 20]);
        out[at + 20..at + FRAME].copy_from_slice(&header.to_le_bytes());
        (at, number) = (end, number + 1);
    }
    out
}

fuzz_target!(|input: &[u8]| {
    for bytes in [input.to_vec(), mended(input)] {
        let _ = weir_table::verify_export(&mut &bytes[..], &mut || true);
    }
});
