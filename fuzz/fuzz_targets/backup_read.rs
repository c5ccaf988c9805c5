//! Any bytes as a backup: an error, or a backup that is whole; with checksums put right, so that
//! what lies behind them is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::checksum_more;

const FRAME: usize = 16;

/// Frames as the input has them, each with the checksum that it must have.
fn mended(input: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    let (mut at, mut number, mut seed) = (16, 0u32, 0u32);
    while at + FRAME <= out.len() {
        let len = u32::from_le_bytes(std::array::from_fn(|i| out[at + 4 + i])) as usize;
        let end = at + FRAME + len;
        if end > out.len() {
            break;
        }
        out[at + 8..at + 12].copy_from_slice(&number.to_le_bytes());
        let crc = checksum_more(checksum_more(seed, &out[at..at + 12]), &out[at + FRAME..end]);
        out[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
        if number == 0 && len >= 8 {
            seed = checksum_more(0, &out[at + FRAME..at + FRAME + 8]);
        }
        (at, number) = (end, number + 1);
    }
    out
}

fuzz_target!(|input: &[u8]| {
    let _ = weir_backup::verify(input, &mut |_, _| true);
    let mut bytes = mended(input);
    if bytes.len() >= 16 {
        bytes[..8].copy_from_slice(&weir_backup::MAGIC);
        bytes[8..12].copy_from_slice(&weir_backup::FORMAT.to_le_bytes());
        bytes[12..16].fill(0);
    }
    let _ = weir_backup::verify(&bytes[..], &mut |_, _| true);
    let _ = weir_backup::found(&bytes[..], |_| None, &mut |_| true);
    let _ = weir_backup::Partial::from_bytes(input);
});
