//! What is written is read, and what lies below shows nothing of it.
use std::sync::Arc;

use proptest::prelude::*;
use weir_base::{ALIGN, AlignedBuf};
use weir_crypt::CryptVolume;
use weir_device::{BlockFile, ReadOp, SimVolume, Volume, WriteOp};

use crate::support::{FILES, Keys, encryption};

fn made(page_bytes: u32) -> (SimVolume, CryptVolume) {
    let below = SimVolume::new(1);
    let keys = encryption(&Keys::with(&[(1, 5)]));
    let made = CryptVolume::create(Arc::new(below.clone()), FILES, page_bytes, &keys);
    (below, made.expect("made"))
}

fn buf_of(bytes: &[u8]) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(bytes.len());
    buf.copy_from_slice(bytes);
    buf
}

fn read(file: &dyn BlockFile, offset: u64, len: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(len);
    file.read_at(offset, &mut buf).expect("read");
    buf
}

#[test]
fn files_are_noise_below_and_the_same_above() {
    let (below, volume) = made(8192);
    let text = buf_of(&b"this text is known".repeat(1000)[..16384]);
    for name in ["pages", "redo-00", "open"] {
        let file = volume.create(name, 32768).expect("made");
        assert!(read(&*file, 0, 32768).iter().all(|&byte| byte == 0), "never written");
        file.write_at(8192, &text).expect("written");
        assert_eq!(read(&*file, 8192, 16384)[..], text[..]);
        let raw = read(&*below.open(name).expect("there"), 0, 32768);
        let is_seen = raw.windows(9).any(|bytes| bytes == b"text is k");
        assert_eq!(is_seen, name == "open", "{name}");
        assert!(raw[..8192].iter().all(|&byte| byte == 0));
    }
    let raw = |name: &str, at| read(&*below.open(name).expect("there"), at, 8192);
    assert!(raw("pages", 8192)[..] != raw("redo-00", 8192)[..], "the same text, the same place");
    let file = volume.open("pages").expect("there");
    for at in [0, 16384] {
        file.write_at(at, &buf_of(&text[..8192])).expect("written");
    }
    assert!(raw("pages", 0)[..] != raw("pages", 16384)[..], "the same text in two places");
}

#[test]
fn reads_that_are_no_whole_units_and_writes_that_are_refused() {
    let (_, volume) = made(16384);
    let file = volume.create("pages", 5 * ALIGN as u64).expect("made");
    let page: Vec<u8> = (0..16384u32).map(|i| (i / 7) as u8).collect();
    file.write_at(0, &buf_of(&page)).expect("written");
    for from in 0..4 {
        for to in from + 1..=4 {
            let (from, to) = (from * ALIGN, to * ALIGN);
            assert_eq!(read(&*file, from as u64, to - from)[..], page[from..to]);
        }
    }
    assert!(read(&*file, 4 * ALIGN as u64, ALIGN).iter().all(|&byte| byte == 0), "no unit");
    assert_eq!(read(&*file, 0, 5 * ALIGN)[..16384], page[..]);
    let mut buf = AlignedBuf::zeroed(ALIGN);
    assert!(file.read_at(5 * ALIGN as u64, &mut buf).is_err(), "behind the end");
    assert!(file.write_at(0, &buf).is_err(), "a part of a unit");
    let one = [WriteOp { offset: 4096, buf: &page_buf(16384) }];
    assert!(file.write_many(&one).is_err(), "not at a multiple");
    assert!(file.write_durable_at(4096, &buf).is_err());
    assert_eq!(read(&*file, 0, 16384)[..], page[..], "nothing was written");
}

fn page_buf(len: usize) -> AlignedBuf {
    AlignedBuf::zeroed(len)
}

#[test]
fn a_tear_leaves_sectors_old_or_new() {
    let (below, volume) = made(8192);
    let file = volume.create("redo-00", 4096).expect("made");
    let (old, new) = (buf_of(&[1; 4096]), buf_of(&[2; 4096]));
    file.write_at(0, &old).expect("written");
    let raw = below.open("redo-00").expect("there");
    let before = read(&*raw, 0, 4096);
    file.write_at(0, &new).expect("written");
    let mut torn = read(&*raw, 0, 4096);
    torn[1024..2560].copy_from_slice(&before[1024..2560]);
    raw.write_at(0, &torn).expect("written");
    let seen = read(&*file, 0, 4096);
    assert!(seen[..1024].iter().chain(&seen[2560..]).all(|&byte| byte == 2));
    assert!(seen[1024..2560].iter().all(|&byte| byte == 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn batches_are_as_single_operations(
        page_bytes in prop::sample::select(vec![4096u32, 8192, 16384]),
        writes in prop::collection::vec((0u64..8, 1usize..3, any::<u8>()), 1..12),
    ) {
        let (_, volume) = made(page_bytes);
        let unit = page_bytes as usize;
        let file = volume.create("pages", 10 * u64::from(page_bytes)).expect("made");
        let mut model = vec![0; 10 * unit];
        let bufs: Vec<AlignedBuf> =
            writes.iter().map(|(_, units, fill)| buf_of(&vec![*fill; units * unit])).collect();
        for ((at, _, _), buf) in writes.iter().zip(&bufs) {
            let offset = at * u64::from(page_bytes);
            file.write_many(&[WriteOp { offset, buf }]).expect("written");
            model[offset as usize..][..buf.len()].copy_from_slice(buf);
        }
        let mut parts: Vec<AlignedBuf> = (0..10).map(|_| page_buf(unit)).collect();
        let mut reads: Vec<ReadOp<'_>> = parts
            .iter_mut()
            .zip((0..).step_by(unit))
            .map(|(buf, offset)| ReadOp { offset, buf })
            .collect();
        file.read_many(&mut reads).expect("read");
        let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        prop_assert_eq!(all, model);
    }
}
