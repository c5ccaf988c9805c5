//! A whole simulated disk in one small file: runs of equal bytes are counted, others stand as they
//! are. No compressor of others: the fixtures must be readable in ten years.
use std::collections::BTreeMap;

use weir::{SimVolume, Volume};

/// What an archive begins with.
const MAGIC: &[u8; 8] = b"WEIRARC1";
/// A run shorter than this is cheaper as it is.
const RUN_MIN: usize = 6;

/// All files of a disk as one archive: for each its name, its length, and its bytes in pieces. A
/// piece is a count of literal bytes with these bytes, then a count of equal bytes with that byte.
pub(crate) fn pack(volume: &SimVolume) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for name in volume.list().expect("a list") {
        let bytes = volume.read_raw(&name).expect("a file");
        put(&mut out, name.len());
        out.extend_from_slice(name.as_bytes());
        put(&mut out, bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let (literals, run) = piece(&bytes[at..]);
            put(&mut out, literals);
            out.extend_from_slice(&bytes[at..at + literals]);
            put(&mut out, run);
            at += literals;
            if run > 0 {
                out.push(bytes[at]);
            }
            at += run;
        }
    }
    out
}

/// How many bytes stand as they are, and how many equal ones follow.
fn piece(bytes: &[u8]) -> (usize, usize) {
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|&&byte| byte == bytes[at]).count();
        if run >= RUN_MIN {
            return (at, run);
        }
        at += run;
    }
    (bytes.len(), 0)
}

/// The disk that was packed.
pub(crate) fn unpack(archive: &[u8]) -> SimVolume {
    let mut rest = archive.strip_prefix(MAGIC).expect("an archive");
    let mut files = BTreeMap::new();
    while !rest.is_empty() {
        let name_len = take(&mut rest);
        let name = String::from_utf8(cut(&mut rest, name_len).to_vec()).expect("a name");
        let len = take(&mut rest);
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let literals = take(&mut rest);
            bytes.extend_from_slice(cut(&mut rest, literals));
            let run = take(&mut rest);
            if run > 0 {
                let byte = cut(&mut rest, 1)[0];
                bytes.resize(bytes.len() + run, byte);
            }
        }
        files.insert(name, bytes);
    }
    let volume = SimVolume::new(1);
    for (name, bytes) in files {
        let file = volume.create(&name, bytes.len() as u64).expect("room");
        volume.write_raw(&name, &bytes).expect("a file");
        file.sync().expect("a sync");
    }
    volume.sync_directory().expect("a sync");
    volume
}

fn put(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = cut(bytes, 1)[0];
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

fn cut<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len);
    *bytes = rest;
    taken
}

#[test]
fn a_disk_comes_back() {
    let volume = SimVolume::new(3);
    for (name, len) in [("empty", 0), ("one", 4096), ("two", 12288)] {
        volume.create(name, len).expect("room");
        let mut bytes: Vec<u8> = (0..len).map(|i| (i / 9 % 251) as u8).collect();
        bytes.iter_mut().skip(100).take(3000).for_each(|byte| *byte = 0);
        volume.write_raw(name, &bytes).expect("a file");
    }
    let back = unpack(&pack(&volume));
    assert_eq!(back.list().expect("a list"), volume.list().expect("a list"));
    for name in volume.list().expect("a list") {
        let bytes = |volume: &SimVolume| volume.read_raw(&name).expect("a file");
        assert!(bytes(&back) == bytes(&volume), "{name}");
    }
}
