//! Sealed streams: what comes out was sealed, in this order.
use std::io::{Read, Write};
use std::sync::Arc;

use weir_crypt::{CryptError, SEALED_MAGIC, SealedReader, SealedWriter};

use crate::support::{Keys, encryption};

/// Bytes of the head, behind which pieces begin.
const HEAD: usize = 80;

fn sealed(keys: &Arc<Keys>, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = SealedWriter::begin(&mut out, &encryption(keys)).expect("begun");
    for part in parts {
        writer.write_all(part).expect("written");
        writer.flush().expect("flushed");
    }
    out
}

fn opened(keys: &Arc<Keys>, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let reader = SealedReader::open(bytes, Some(&encryption(keys)));
    reader.map_err(std::io::Error::other)?.read_to_end(&mut out).map(|_| out)
}

#[test]
fn what_was_sealed_comes_out_and_shows_nothing() {
    let keys = Keys::with(&[(1, 5)]);
    for len in [0, 1, 100, 65_535, 65_536, 65_537, 300_000] {
        let text: Vec<u8> = b"known text ".iter().copied().cycle().take(len).collect();
        let stream = sealed(&keys, &[&text]);
        assert_eq!(opened(&keys, &stream).ok(), (len > 0).then(|| text.clone()));
        assert!(len == 0 || stream[..8] == SEALED_MAGIC);
        assert!(!stream.windows(10).any(|bytes| bytes == b"known text"));
    }
    let twice = (sealed(&keys, &[b"a"]), sealed(&keys, &[b"a"]));
    assert_ne!(twice.0, twice.1, "each has a key of its own");
}

#[test]
fn a_flipped_byte_is_found_and_a_cut_is_an_end() {
    let keys = Keys::with(&[(1, 5)]);
    let parts: [&[u8]; 3] = [b"first", b"second", b"third"];
    let whole: Vec<u8> = parts.concat();
    let stream = sealed(&keys, &parts);
    for at in 0..stream.len() {
        let mut changed = stream.clone();
        changed[at] ^= 1;
        // What lies in front of it may come; a length that grew looks as a cut does.
        if let Ok(seen) = opened(&keys, &changed) {
            assert!(whole.starts_with(&seen) && seen.len() < whole.len(), "byte {at}: {seen:?}");
        }
    }
    for len in HEAD..stream.len() {
        let seen = opened(&keys, &stream[..len]).expect("an end");
        assert!(whole.starts_with(&seen) && seen.len() < whole.len());
    }
    assert!(opened(&keys, &stream[..HEAD - 1]).is_err());
}

#[test]
fn pieces_cannot_be_exchanged_or_left_out() {
    let keys = Keys::with(&[(1, 5)]);
    let stream = sealed(&keys, &[b"one", b"two"]);
    let piece = 4 + 3 + 16;
    let (head, pieces) = stream.split_at(HEAD);
    let (one, two) = pieces.split_at(piece);
    assert_eq!(two.len(), piece);
    assert!(opened(&keys, &[head, two, one].concat()).is_err());
    assert!(opened(&keys, &[head, two].concat()).is_err());
    assert!(opened(&keys, &[head, one, one].concat()).is_err());
    let other = sealed(&keys, &[b"one", b"two"]);
    assert!(opened(&keys, &[head, &other[HEAD..]].concat()).is_err());
}

#[test]
fn the_key_is_named_that_is_missing() {
    let keys = Keys::with(&[(7, 5)]);
    let stream = sealed(&keys, &[b"a"]);
    let told = SealedReader::open(&stream[..], None).err().expect("none").to_string();
    assert!(told.contains("the backup is encrypted") && told.contains("version 7"), "{told}");
    let other = encryption(&Keys::with(&[(7, 6)]));
    let told = SealedReader::open(&stream[..], Some(&other)).err().expect("another");
    assert!(matches!(told, CryptError::WrongKey { .. }));
    keys.add(8, 9);
    assert_eq!(opened(&keys, &stream).expect("older versions open"), b"a");
    keys.remove(7);
    assert!(opened(&keys, &stream).is_err());
}
