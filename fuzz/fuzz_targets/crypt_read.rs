//! Any bytes as a sealed stream, as a file `keys` and as a key file: an error, or what was written.
#![no_main]

use std::io::Read;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use weir_base::{AlignedBuf, checksum};
use weir_crypt::{CryptVolume, Encryption, Files, KEYS_FILE, SEALED_MAGIC, SealedReader, TestKey};
use weir_device::{SimVolume, Volume};

const FILES: Files = Files { pages: "pages", is_plain: |_| false };

fuzz_target!(|input: &[u8]| {
    let encryption = Encryption::new(Arc::new(TestKey([7; 32])));
    let mut bytes = input.to_vec();
    if bytes.len() >= 12 {
        bytes[..8].copy_from_slice(&SEALED_MAGIC);
        bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    }
    if let Ok(mut reader) = SealedReader::open(&bytes[..], Some(&encryption)) {
        let _ = reader.read_to_end(&mut Vec::new());
    }

    // A copy with its checksum put right, and one as it is.
    let mut block = AlignedBuf::zeroed(8192);
    let len = input.len().min(240);
    block[16..16 + len].copy_from_slice(&input[..len]);
    block[..8].copy_from_slice(b"WEIRKEYS");
    block[8..12].copy_from_slice(&1u32.to_le_bytes());
    let crc = checksum(&block[16..256]);
    block[12..16].copy_from_slice(&crc.to_le_bytes());
    let rest = input.len().min(256);
    block[4096..4096 + rest].copy_from_slice(&input[..rest]);
    let volume = SimVolume::new(1);
    let file = volume.create(KEYS_FILE, 8192).expect("made");
    file.write_at(0, &block).expect("written");
    let _ = CryptVolume::open(Arc::new(volume), FILES, Some(&encryption));

    let _ = weir_crypt::parse_key_line(&String::from_utf8_lossy(input));
});
