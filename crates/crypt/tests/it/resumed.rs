//! Sealed streams that were cut off and gone on with: what comes out, and that no nonce is used
//! twice under a key.
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use weir_crypt::{CryptError, SealedPlace, SealedReader, SealedWriter};

use crate::support::{Keys, encryption};

const HEAD: usize = 80;
const SEAM: usize = 84;
const PIECE: usize = 64 << 10;

/// Text of this length, of which no stretch is as another.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

fn sealed(keys: &Arc<Keys>, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let writer = SealedWriter::begin(&mut out, &encryption(keys)).expect("begun");
    write_all(writer, parts);
    out
}

fn write_all(mut writer: SealedWriter<&mut Vec<u8>>, parts: &[&[u8]]) {
    for part in parts {
        writer.write_all(part).expect("written");
        writer.flush().expect("flushed");
    }
}

/// Reads so much of the plaintext, or all: that, and the place behind it.
fn read(keys: &Arc<Keys>, stream: &[u8], len: usize) -> io::Result<(Vec<u8>, SealedPlace)> {
    let reader = SealedReader::open(stream, Some(&encryption(keys)));
    let mut reader = reader.map_err(io::Error::other)?;
    let mut out = vec![0; len.min(1 << 30)];
    let mut read = 0;
    while read < out.len() {
        match reader.read(&mut out[read..])? {
            0 => break,
            more => read += more,
        }
    }
    out.truncate(read);
    Ok((out, reader.place()))
}

const ALL: usize = 4 << 20;

/// Goes on behind the first `kept` bytes of the plaintext.
fn resumed(keys: &Arc<Keys>, stream: &[u8], kept: usize, parts: &[&[u8]]) -> Vec<u8> {
    let (_, place) = read(keys, stream, kept).expect("read");
    // Another process gets it.
    let place = SealedPlace::from_bytes(&place.to_bytes()).expect("as it was");
    let mut out = stream[..place.at() as usize].to_vec();
    let mut rest = Vec::new();
    write_all(SealedWriter::go_on(&mut rest, &place, &encryption(keys)).expect("begun"), parts);
    // Which reads what it gets from there on.
    let reader = SealedReader::go_on(&rest[..], &place, &encryption(keys));
    let mut seen = Vec::new();
    reader.expect("opened").read_to_end(&mut seen).expect("read");
    assert!(seen == parts.concat(), "what stands behind the place, and no more");
    out.extend(rest);
    out
}

/// All pairs of a key and a nonce, each with what was sealed by it. One that has sealed two things
/// is a failure: both together give away their difference.
#[derive(Default)]
struct Nonces(HashMap<([u8; 32], [u8; 12]), Vec<u8>>);

impl Nonces {
    /// Goes through a stream, or what there is of one. `fill`: of which the master key is made.
    fn note(&mut self, stream: &[u8], fill: u8) {
        let master = Aes256Gcm::new(&[fill; 32].into());
        let mut key = self.key(&master, fill, stream, &[]);
        let (mut at, mut number) = (HEAD, 0u64);
        let mut tag = stream[HEAD - 16..HEAD].to_vec();
        while let Some(length) = stream[at..].first_chunk::<4>() {
            let len = u32::from_le_bytes(*length) as usize;
            if len == u32::MAX as usize {
                let Some(seam) = stream.get(at..at + SEAM) else { return };
                key = self.key(&master, fill, seam, &tag);
                (at, tag) = (at + SEAM, seam[64..80].to_vec());
                continue;
            }
            let Some(piece) = stream.get(at + 4..at + 20 + len) else { return };
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&number.to_be_bytes());
            self.put(key, nonce, piece);
            (at, number) = (at + 20 + len, number + 1);
            tag = piece[len..].to_vec();
        }
    }

    fn put(&mut self, key: [u8; 32], nonce: [u8; 12], what: &[u8]) {
        let before = self.0.entry((key, nonce)).or_insert_with(|| what.to_vec());
        assert!(before == what, "nonce {nonce:?} has sealed two things under one key");
    }

    /// The key that a head or a seam wraps, whose own nonce is one of the master key's.
    fn key(&mut self, master: &Aes256Gcm, fill: u8, head: &[u8], tag: &[u8]) -> [u8; 32] {
        let nonce: [u8; 12] = std::array::from_fn(|i| head[20 + i]);
        self.put([fill; 32], nonce, &head[32..80]);
        let mut key: [u8; 32] = std::array::from_fn(|i| head[32 + i]);
        let own: [u8; 16] = std::array::from_fn(|i| head[64 + i]);
        let with = [&head[..20], tag].concat();
        let opened = master.decrypt_inout_detached(
            &nonce.into(),
            &with,
            key.as_mut_slice().into(),
            &own.into(),
        );
        opened.expect("the key that it says");
        key
    }
}

#[test]
fn what_is_gone_on_with_comes_out_and_no_nonce_seals_two_things() {
    let keys = Keys::with(&[(1, 5)]);
    let mut random = fastrand::Rng::with_seed(1);
    let (mut cuts, mut nonces) = (0, Nonces::default());
    for seed in 0..60 {
        let mut plain = text(seed, random.usize(1..300_000));
        let half = random.usize(..plain.len());
        let mut stream = sealed(&keys, &[&plain[..half], &plain[half..]]);
        nonces.note(&stream, 5);
        for round in 0..random.u64(1..6) {
            // Cut off in the middle of something, then at what a reader of it calls whole.
            stream.truncate(random.usize(HEAD..=stream.len()));
            nonces.note(&stream, 5);
            let (seen, _) = read(&keys, &stream, ALL).expect("an end");
            assert!(plain.starts_with(&seen));
            let kept = match random.u8(..4) {
                0 => seen.len(),
                1 => seen.len() / PIECE * PIECE,
                _ => random.usize(..=seen.len()),
            };
            let more = text(1_000 * seed + round, random.usize(1..200_000));
            let half = random.usize(..more.len());
            stream = resumed(&keys, &stream, kept, &[&more[..half], &more[half..]]);
            plain = [&seen[..kept], &more].concat();
            nonces.note(&stream, 5);
            assert!(read(&keys, &stream, ALL).expect("read").0 == plain);
            cuts += 1;
        }
    }
    println!("{cuts} cuts, {} nonces", nonces.0.len());
    assert!(cuts > 120 && nonces.0.len() > 500, "{cuts} {}", nonces.0.len());
}

#[test]
fn every_byte_of_a_seam_counts_and_a_cut_in_it_is_an_end() {
    let keys = Keys::with(&[(1, 5)]);
    let stream = sealed(&keys, &[b"first", b"second"]);
    let whole = resumed(&keys, &stream, 7, &[b"cond", b"third"]);
    let seam = HEAD + 25;
    assert_eq!(whole[seam..seam + 4], [255; 4]);
    assert_eq!(read(&keys, &whole, ALL).expect("read").0, b"firstsecondthird");
    for at in seam..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        // A length that grew looks as a cut does.
        match read(&keys, &changed, ALL) {
            Ok((seen, _)) => {
                assert!(b"firstsecondthird".starts_with(&seen[..]) && seen.len() < 16, "byte {at}");
            }
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::InvalidData, "byte {at}: {e}"),
        }
    }
    for len in seam..whole.len() {
        let (seen, place) = read(&keys, &whole[..len], ALL).expect("an end");
        assert!(b"firstsecondthird".starts_with(&seen[..]) && place.at() as usize <= len);
        let again = resumed(&keys, &whole[..len], seen.len(), &[b"!"]);
        let seen = [&seen[..], b"!"].concat();
        assert_eq!(read(&keys, &again, ALL).expect("read").0, seen);
    }
}

#[test]
fn a_seam_fits_nowhere_else() {
    let keys = Keys::with(&[(1, 5)]);
    let stream = sealed(&keys, &[b"a", b"b", b"c"]);
    let piece = 4 + 1 + 16;
    let one = resumed(&keys, &stream, 1, &[b"x"]);
    let two = resumed(&keys, &stream, 2, &[b"y"]);
    let (one_rest, two_rest) = (&one[HEAD + piece..], &two[HEAD + 2 * piece..]);
    let is_refused = |bytes: &[&[u8]]| {
        let e = read(&keys, &bytes.concat(), ALL).expect_err("refused");
        println!("{e}");
    };
    is_refused(&[&stream[..HEAD + 2 * piece], one_rest]);
    is_refused(&[&stream[..HEAD + piece], two_rest]);
    is_refused(&[&one, two_rest]);
    is_refused(&[&stream[..HEAD], one_rest]);
    // As many pieces, of another stream.
    let other = sealed(&keys, &[b"a", b"b", b"c"]);
    is_refused(&[&other[..HEAD + piece], one_rest]);
    is_refused(&[&other[..HEAD + 2 * piece], two_rest]);
    // What stands behind it, under the key before.
    is_refused(&[&stream[..HEAD + piece], &one_rest[..SEAM], &stream[HEAD + piece..]]);
    is_refused(&[&stream[..HEAD + piece], &one_rest[SEAM..]]);
    let place = read(&keys, &stream, 1).expect("read").1;
    for rest in [two_rest, &stream[HEAD + piece..], &one_rest[..SEAM - 1], b""] {
        assert!(SealedReader::go_on(rest, &place, &encryption(&keys)).is_err());
    }
}

#[test]
fn a_key_that_is_missing_or_wrong_is_no_cut() {
    let keys = Keys::with(&[(1, 5)]);
    let stream = sealed(&keys, &[b"first"]);
    keys.add(2, 6);
    let whole = resumed(&keys, &stream, 5, &[b"second"]);
    assert_eq!(read(&keys, &whole, ALL).expect("read").0, b"firstsecond");
    for (fill, words) in [(None, "key 1, version 2"), (Some(9), "it is another key")] {
        keys.remove(2);
        if let Some(fill) = fill {
            keys.add(2, fill);
        }
        let e = read(&keys, &whole, ALL).expect_err("no key");
        assert!(e.kind() != io::ErrorKind::InvalidData && e.to_string().contains(words), "{e}");
        let place = read(&keys, &stream, 5).expect("read").1;
        let e = SealedReader::go_on(&whole[HEAD + 25..], &place, &encryption(&keys)).err();
        let is_key = matches!(e, Some(CryptError::NoKey { .. } | CryptError::WrongKey { .. }));
        assert!(is_key, "{e:?}");
    }
    let none = Keys::with(&[]);
    let place = read(&keys, &stream, 5).expect("read").1;
    let mut out = Vec::new();
    assert!(SealedWriter::go_on(&mut out, &place, &encryption(&none)).is_err());
    assert!(out.is_empty());
}

/// Takes so many bytes, then none, then all.
struct Full {
    out: Vec<u8>,
    room: usize,
    refused: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 && self.refused > 0 {
            self.refused -= 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = if self.refused == 0 { bytes.len() } else { bytes.len().min(self.room) };
        self.room = self.room.saturating_sub(taken);
        self.out.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What could not be written is not sealed again in its place: sealed twice, it would be plain.
#[test]
fn behind_a_write_that_failed_nothing_is_written() {
    let keys = Keys::with(&[(1, 5)]);
    let known = b"known text ".repeat(30_000);
    for room in [0, 1, HEAD, HEAD + 2, HEAD + 4, HEAD + 100, HEAD + PIECE + 10, HEAD + 70_000] {
        let mut full = Full { out: Vec::new(), room, refused: 1 };
        let mut writer = SealedWriter::begin(&mut full, &encryption(&keys)).expect("begun");
        assert!(writer.write_all(&known).is_err());
        for _ in 0..3 {
            assert!(writer.write_all(&known).is_err() && writer.flush().is_err());
        }
        drop(writer);
        assert_eq!(full.out.len(), room);
        assert!(!full.out.windows(10).any(|bytes| bytes == b"known text"));
    }
}
