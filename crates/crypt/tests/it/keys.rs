//! The file `keys`: wrong, missing, torn and damaged.
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf};
use weir_crypt::{CryptError, CryptVolume, KEYS_FILE, KeyName};
use weir_device::{SimVolume, Volume};

use crate::support::{FILES, Keys, encryption};

fn made(keys: &Arc<Keys>) -> (SimVolume, CryptVolume) {
    let below = SimVolume::new(1);
    let volume = Arc::new(below.clone());
    let made = CryptVolume::create(volume, FILES, 8192, &encryption(keys)).expect("made");
    (below, made)
}

fn open(below: &SimVolume, keys: &Arc<Keys>) -> Result<CryptVolume, CryptError> {
    CryptVolume::open(Arc::new(below.clone()), FILES, Some(&encryption(keys)))
}

fn write(volume: &dyn Volume, byte: u8) {
    let file = volume.create("a", ALIGN as u64).expect("made");
    let mut buf = AlignedBuf::zeroed(ALIGN);
    buf.fill(byte);
    file.write_at(0, &buf).expect("written");
}

fn read(volume: &dyn Volume) -> u8 {
    let mut buf = AlignedBuf::zeroed(ALIGN);
    volume.open("a").expect("there").read_at(0, &mut buf).expect("read");
    assert!(buf.iter().all(|&byte| byte == buf[0]));
    buf[0]
}

#[test]
fn a_wrong_or_missing_key_is_named_and_nothing_is_touched() {
    let keys = Keys::with(&[(3, 5)]);
    let (below, volume) = made(&keys);
    write(&volume, 77);
    let before = below.writes_so_far();
    let told = CryptVolume::open(Arc::new(below.clone()), FILES, None).err().expect("no key");
    assert!(told.to_string().contains("key 1, version 3"), "{told}");
    let told = open(&below, &Keys::with(&[(2, 5)])).err().expect("no such version");
    assert!(matches!(told, CryptError::NoKey { .. }), "{told}");
    assert!(told.to_string().contains("key 1, version 3"), "{told}");
    let told = open(&below, &Keys::with(&[(3, 6)])).err().expect("another key");
    assert!(matches!(told, CryptError::WrongKey { .. }), "{told}");
    assert_eq!(below.writes_so_far(), before);
    assert_eq!(read(&open(&below, &keys).expect("the right one")), 77);
}

#[test]
fn a_rotation_leaves_one_of_both_keys_whatever_write_is_the_last() {
    for after in 0..6 {
        let keys = Keys::with(&[(1, 5)]);
        let (below, volume) = made(&keys);
        write(&volume, 77);
        volume.open("a").expect("there").sync().expect("synced");
        volume.sync_directory().expect("synced");
        keys.add(2, 9);
        below.set_crash_after(Some(below.writes_so_far() + after));
        let rotated = volume.rotate();
        let left = below.crash(after);
        let again = open(&left, &keys).expect("one of both");
        assert_eq!(read(&again), 77);
        if rotated.is_ok() {
            assert_eq!(again.key_name(), KeyName { id: 1, version: 2 });
            keys.remove(1);
            assert_eq!(read(&open(&left, &keys).expect("the old one is not needed")), 77);
        }
    }
}

#[test]
fn a_rotation_with_no_newer_version_changes_nothing() {
    let keys = Keys::with(&[(4, 5)]);
    let (below, volume) = made(&keys);
    let before = below.writes_so_far();
    assert_eq!(volume.rotate().expect("nothing to do").version, 4);
    assert_eq!(below.writes_so_far(), before);
    keys.remove(4);
    assert!(matches!(volume.rotate(), Err(CryptError::NoNewKey(_))));
}

#[test]
fn every_byte_of_the_file_is_watched_and_one_copy_is_enough() {
    let keys = Keys::with(&[(1, 5)]);
    let (below, volume) = made(&keys);
    write(&volume, 77);
    let file = below.open(KEYS_FILE).expect("there");
    let mut sound = AlignedBuf::zeroed(2 * ALIGN);
    file.read_at(0, &mut sound).expect("read");
    for at in 0..256 {
        let mut changed = AlignedBuf::zeroed(2 * ALIGN);
        changed.copy_from_slice(&sound);
        changed[at] ^= 0x10;
        file.write_at(0, &changed).expect("written");
        assert_eq!(read(&open(&below, &keys).expect("the other copy")), 77, "byte {at}");
        changed[ALIGN + at] ^= 0x10;
        file.write_at(0, &changed).expect("written");
        let told = open(&below, &keys).err().expect("both are damaged");
        let is_format = matches!(told, CryptError::OtherFormat { .. });
        assert!(if (8..12).contains(&at) {
            is_format
        } else {
            matches!(told, CryptError::Damaged)
        });
    }
    file.write_at(0, &AlignedBuf::zeroed(2 * ALIGN)).expect("written");
    assert!(matches!(open(&below, &keys), Err(CryptError::Damaged)));
}

#[test]
fn the_file_of_keys_is_not_among_those_of_the_volume() {
    let (_, volume) = made(&Keys::with(&[(1, 5)]));
    assert!(volume.list().expect("listed").is_empty());
    assert!(!volume.exists(KEYS_FILE).expect("looked"));
    assert!(volume.open(KEYS_FILE).is_err() && volume.remove(KEYS_FILE).is_err());
    assert!(volume.create(KEYS_FILE, 4096).is_err());
    assert!(volume.describe().contains("key 1, version 1"), "{}", volume.describe());
}
