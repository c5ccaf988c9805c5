//! Any bytes as a part of a log-structured store: a verdict, and what is believed is written back
//! as it was read. The first byte chooses the part, the second whether its checksum is made to fit,
//! which a fuzzer would not guess.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::{DbId, checksum, checksum_more};
use weir_logstore::format::{
    BlockHead, ChunkHead, ChunkLen, FOOTER_TAIL, Footer, Root, RootSlot, SegmentHead, decode_leaf,
    encode_leaf,
};

const DB: DbId = DbId(7);

fn seal_of(bytes: &[u8]) -> [u8; 4] {
    checksum_more(checksum(&DB.0.to_le_bytes()), bytes).to_le_bytes()
}

/// Puts the checksum of the first `len` bytes in front of them.
fn seal(bytes: &mut [u8], len: usize) {
    if let Some(part) = bytes.get_mut(..len).filter(|part| part.len() > 4) {
        let crc = seal_of(&part[4..]);
        part[..4].copy_from_slice(&crc);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    four.map_or(0, |four| u32::from_le_bytes(*four) as usize)
}

fuzz_target!(|input: &[u8]| {
    let [part, sealed, bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    let is_sealed = sealed % 2 == 1;
    match part % 6 {
        0 => {
            if let (true, ChunkLen::Bytes(len)) = (is_sealed, ChunkHead::len_of(&bytes)) {
                seal(&mut bytes, len);
            }
            let Some(chunk) = ChunkHead::parse(DB, &bytes) else { return };
            let mut again = vec![0; chunk.chunk_bytes()];
            chunk.encode(DB, &mut again);
            let ChunkLen::Bytes(len) = ChunkHead::len_of(&again) else { panic!("a chunk") };
            assert!(again[..len] == bytes[..len]);
            assert!(chunk.placed().all(|(at, _)| at <= again.len()));
        }
        1 => {
            if is_sealed {
                let len = u32_at(&bytes, 24).saturating_add(32);
                seal(&mut bytes, len);
            }
            let Some((head, payload)) = BlockHead::parse(DB, &bytes) else { return };
            let mut again = vec![0; 32 + payload.len()];
            again[32..].copy_from_slice(payload);
            head.seal(DB, &mut again);
            assert!(again == bytes[..again.len()]);
        }
        2 => {
            if is_sealed {
                seal(&mut bytes, 48);
            }
            let Some(head) = SegmentHead::parse(DB, &bytes) else { return };
            let mut again = [0; 4096];
            head.encode(DB, &mut again);
            assert!(SegmentHead::parse(DB, &again) == Some(head));
        }
        3 => {
            let end = bytes.len().saturating_sub(4);
            let entries = u32_at(&bytes, bytes.len().saturating_sub(FOOTER_TAIL) + 28);
            let begin = entries.checked_mul(8).and_then(|n| end.checked_sub(n + FOOTER_TAIL - 4));
            if let (true, Some(begin)) = (is_sealed, begin) {
                let crc = seal_of(&bytes[begin..end]);
                bytes[end..].copy_from_slice(&crc);
            }
            let Some(footer) = Footer::parse(DB, &bytes) else { return };
            let mut again = vec![0; Footer::bytes(footer.entries.len())];
            footer.encode(DB, &mut again);
            assert!(Footer::parse(DB, &again) == Some(footer));
        }
        4 => {
            if is_sealed {
                if let Some(id) = bytes.get_mut(16..24) {
                    id.copy_from_slice(&DB.0.to_le_bytes());
                }
                let len = u32_at(&bytes, 72) * 8 + u32_at(&bytes, 76) * 16 + 104;
                seal(&mut bytes, len);
            }
            let RootSlot::Good(root) = Root::parse(DB, &bytes) else { return };
            let mut again = vec![0; Root::bytes(root.index.len(), root.scan.len())];
            root.encode(DB, &mut again);
            assert!(Root::parse(DB, &again) == RootSlot::Good(root));
        }
        _ => {
            let Some(places) = decode_leaf(&bytes) else { return };
            let mut again = vec![0; bytes.len()];
            encode_leaf(places, &mut again);
            assert!(again == bytes);
        }
    }
});
