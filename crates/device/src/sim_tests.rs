//! Tests of the simulated disk.
use super::*;
use std::collections::BTreeSet;
use weir_base::{ALIGN, AlignedBuf};

const PAGE: u64 = ALIGN as u64;
const MODES: [CrashMode; 3] = [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random];

fn filled(byte: u8) -> AlignedBuf {
    let mut page = AlignedBuf::zeroed(ALIGN);
    page.fill(byte);
    page
}

/// A disk with a durable file `data` of two pages of ones.
fn settled() -> (SimVolume, Arc<dyn BlockFile>) {
    let volume = SimVolume::new(1);
    let file = volume.create("data", 2 * PAGE).unwrap();
    file.write_at(0, &filled(1)).unwrap();
    file.write_at(PAGE, &filled(1)).unwrap();
    file.sync().unwrap();
    volume.sync_directory().unwrap();
    (volume, file)
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

#[test]
fn synced_is_kept_and_unsynced_may_be_lost() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    let mut page = AlignedBuf::zeroed(ALIGN);
    file.read_at(0, &mut page).unwrap();
    assert_eq!(page[..], filled(2)[..], "reads see what is not synced");
    let first = |mode| volume.crash_with(mode, 0).read_raw("data").unwrap()[0];
    assert_eq!((first(CrashMode::LoseAll), first(CrashMode::KeepAll)), (1, 2));
    file.sync().unwrap();
    for mode in MODES {
        let bytes = volume.crash_with(mode, 3).read_raw("data").unwrap();
        assert_eq!(bytes, [[2; ALIGN], [1; ALIGN]].concat(), "{mode:?}");
    }
}

#[test]
fn tears_at_sectors_only_and_in_any_order() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    file.write_at(PAGE, &filled(3)).unwrap();
    let (mut torn, mut whole, mut lost, mut second_first) = (false, false, false, false);
    for seed in 0..200 {
        let bytes = volume.crash(seed).read_raw("data").unwrap();
        for sector in bytes.chunks(512) {
            assert!(sector.iter().all(|&byte| byte == sector[0]), "torn within a sector");
        }
        let values = |page: usize| -> BTreeSet<u8> {
            bytes[page * ALIGN..(page + 1) * ALIGN].iter().copied().collect()
        };
        assert!(values(0).is_subset(&[1, 2].into()) && values(1).is_subset(&[1, 3].into()));
        torn |= values(0).len() == 2;
        whole |= values(0) == [2].into();
        lost |= values(0) == [1].into();
        second_first |= values(0) == [1].into() && values(1) == [3].into();
    }
    assert_eq!((torn, whole, lost, second_first), (true, true, true, true));
}

#[test]
fn any_version_of_a_sector_may_survive() {
    let (volume, file) = settled();
    for byte in 2..5 {
        file.write_at(0, &filled(byte)).unwrap();
    }
    let found: BTreeSet<u8> =
        (0..200).map(|seed| volume.crash(seed).read_raw("data").unwrap()[0]).collect();
    assert_eq!(found, [1, 2, 3, 4].into());
}

#[test]
fn a_durable_write_is_durable_alone() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    file.write_at(PAGE, &filled(2)).unwrap();
    file.write_durable_at(0, &filled(3)).unwrap();
    let mut second_page = BTreeSet::new();
    for seed in 0..100 {
        let bytes = volume.crash(seed).read_raw("data").unwrap();
        assert!(bytes[..ALIGN].iter().all(|&byte| byte == 3), "an older write came out on top");
        second_page.insert(bytes[ALIGN]);
    }
    assert_eq!(second_page, [1, 2].into(), "the other page stays unsynced");
    file.sync().unwrap();
    assert_eq!(volume.snapshot().read_raw("data").unwrap()[..ALIGN], filled(3)[..]);
}

#[test]
fn a_length_is_durable_after_sync() {
    let (volume, file) = settled();
    file.grow(4 * PAGE).unwrap();
    file.write_at(3 * PAGE, &filled(9)).unwrap();
    let lens: BTreeSet<usize> =
        (0..50).map(|seed| volume.crash(seed).read_raw("data").unwrap().len()).collect();
    assert_eq!(lens, [2 * ALIGN, 4 * ALIGN].into());
    // A durable write beyond the durable end takes the length with it.
    file.write_durable_at(2 * PAGE, &filled(8)).unwrap();
    let bytes = volume.snapshot().read_raw("data").unwrap();
    assert_eq!(bytes, [[1; ALIGN], [1; ALIGN], [8; ALIGN], [0; ALIGN]].concat());
    file.sync().unwrap();
    assert_eq!(volume.snapshot().read_raw("data").unwrap()[3 * ALIGN], 9);
}

#[test]
fn names_are_durable_after_sync_directory() {
    let (volume, _file) = settled();
    let new = volume.create("new", PAGE).unwrap();
    new.sync().unwrap();
    volume.remove("data").unwrap();
    assert_eq!(volume.list().unwrap(), ["new"]);
    let found: BTreeSet<Vec<String>> =
        (0..100).map(|seed| volume.crash(seed).list().unwrap()).collect();
    let lists = [vec![], vec!["data"], vec!["new"], vec!["data", "new"]];
    assert_eq!(found, lists.map(|l| l.into_iter().map(str::to_owned).collect()).into());
    volume.sync_directory().unwrap();
    for mode in MODES {
        assert_eq!(volume.crash_with(mode, 7).list().unwrap(), ["new"]);
    }
}

#[test]
fn a_removed_file_stays_readable_while_open() {
    let (volume, file) = settled();
    volume.remove("data").unwrap();
    volume.sync_directory().unwrap();
    let mut page = AlignedBuf::zeroed(ALIGN);
    file.read_at(0, &mut page).unwrap();
    assert_eq!(page[0], 1);
    assert_eq!(kind(volume.open("data")), ErrorKind::NotFound);
    drop(file);
    volume.sync_directory().unwrap();
    assert_eq!(volume.disk.lock().file_count(), 0, "its contents are gone with the last handle");
}

/// A workload that touches everything; stops at the first error.
fn workload(volume: &SimVolume) -> io::Result<()> {
    let file = volume.create("a", 4 * PAGE)?;
    let (page_a, page_b) = (filled(5), filled(6));
    file.write_many(&[
        WriteOp { offset: 0, buf: &page_a },
        WriteOp { offset: 2 * PAGE, buf: &page_b },
    ])?;
    file.sync()?;
    volume.sync_directory()?;
    file.write_durable_at(PAGE, &filled(7))?;
    file.grow(5 * PAGE)?;
    file.write_at(4 * PAGE, &filled(8))?;
    volume.create("b", PAGE)?;
    volume.remove("a")?;
    volume.sync_directory()
}

#[test]
fn crashes_at_every_step() {
    let whole = SimVolume::new(0);
    workload(&whole).unwrap();
    assert_eq!(whole.writes_so_far(), 12);
    for steps in 0..12 {
        let volume = SimVolume::new(0);
        volume.set_crash_after(Some(steps));
        let error = workload(&volume).unwrap_err();
        assert_eq!(error.to_string(), "simulated crash", "{steps}");
        assert!(volume.has_crashed());
        assert_eq!(volume.writes_so_far(), steps);
        assert!(volume.list().is_err() && volume.open("a").is_err(), "every later call fails");
        volume.set_crash_after(None);
        assert!(volume.create("c", 0).is_err(), "a crashed disk stays so");
        let after = volume.crash(steps);
        assert!(!after.has_crashed());
        workload_can_read(&after);
    }
}

fn workload_can_read(volume: &SimVolume) {
    for name in volume.list().unwrap() {
        let file = volume.open(&name).unwrap();
        let mut all = AlignedBuf::zeroed(file.len() as usize);
        file.read_at(0, &mut all).unwrap();
    }
}

#[test]
fn a_durable_write_crashes_before_and_after_its_effect() {
    for (steps, lost, kept) in [(0, 1, 2), (1, 2, 2)] {
        let (volume, file) = settled();
        volume.set_crash_after(Some(steps));
        assert!(file.write_durable_at(0, &filled(2)).is_err());
        let first = |mode| volume.crash_with(mode, 0).read_raw("data").unwrap()[0];
        assert_eq!((first(CrashMode::LoseAll), first(CrashMode::KeepAll)), (lost, kept));
    }
}

#[test]
fn the_write_in_flight_is_torn_too() {
    let (volume, file) = settled();
    volume.set_crash_after(Some(0));
    assert!(file.write_at(0, &filled(2)).is_err());
    let torn = (0..50).any(|seed| {
        let bytes = volume.crash(seed).read_raw("data").unwrap();
        bytes[..ALIGN].contains(&1) && bytes[..ALIGN].contains(&2)
    });
    assert!(torn);
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    volume.create("new", PAGE).unwrap();
    let look = |seed| {
        let after = volume.crash(seed);
        let names = after.list().unwrap();
        names.into_iter().map(|name| (after.read_raw(&name).unwrap(), name)).collect::<Vec<_>>()
    };
    for seed in 0..20 {
        assert_eq!(look(seed), look(seed), "seed {seed}");
    }
    assert!((0..20).any(|seed| look(seed) != look(seed + 1)));
}

#[test]
fn a_full_disk() {
    let volume = SimVolume::with_capacity(0, 4 * PAGE);
    let file = volume.create("a", 3 * PAGE).unwrap();
    assert_eq!(kind(volume.create("b", 2 * PAGE)), ErrorKind::StorageFull);
    assert!(!volume.exists("b").unwrap());
    assert_eq!(kind(file.grow(5 * PAGE)), ErrorKind::StorageFull);
    file.write_at(2 * PAGE, &filled(1)).unwrap();
    volume.set_capacity(Some(5 * PAGE));
    file.grow(5 * PAGE).unwrap();
    volume.remove("a").unwrap();
    volume.create("b", 5 * PAGE).unwrap();
}

#[test]
fn bits_flip_in_every_copy() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    volume.corrupt("data", 5, 0x80).unwrap();
    assert_eq!(volume.read_raw("data").unwrap()[4..7], [2, 0x82, 2]);
    assert_eq!(volume.snapshot().read_raw("data").unwrap()[4..7], [1, 0x81, 1]);
    file.sync().unwrap();
    assert_eq!(volume.snapshot().read_raw("data").unwrap()[4..7], [2, 0x82, 2]);
    assert_eq!(kind(volume.corrupt("data", 2 * PAGE, 1)), ErrorKind::UnexpectedEof);
    assert_eq!(kind(volume.corrupt("none", 0, 1)), ErrorKind::NotFound);
}

#[test]
fn files_can_be_planted() {
    let volume = SimVolume::new(0);
    volume.write_raw("odd", &[1, 2, 3]).unwrap();
    assert_eq!(volume.crash(0).read_raw("odd").unwrap(), [1, 2, 3]);
    let file = volume.open("odd").unwrap();
    assert_eq!(file.len(), 3);
    volume.write_raw("odd", &vec![4; 2 * ALIGN]).unwrap();
    let mut page = AlignedBuf::zeroed(ALIGN);
    file.read_at(PAGE, &mut page).unwrap();
    assert_eq!(page[..], filled(4)[..]);
    assert_eq!(kind(volume.write_raw("a/b", &[])), ErrorKind::InvalidInput);
}

#[test]
fn copies_go_their_own_way() {
    let (volume, file) = settled();
    file.write_at(0, &filled(2)).unwrap();
    let (fork, snapshot) = (volume.fork(), volume.snapshot());
    file.write_durable_at(0, &filled(3)).unwrap();
    assert_eq!(fork.read_raw("data").unwrap()[0], 2);
    assert_eq!(fork.snapshot().read_raw("data").unwrap()[0], 1);
    assert_eq!(snapshot.read_raw("data").unwrap()[0], 1);
    snapshot.open("data").unwrap().write_durable_at(0, &filled(9)).unwrap();
    assert_eq!(volume.read_raw("data").unwrap()[0], 3);
}

#[test]
fn bad_ranges_change_nothing() {
    let (volume, file) = settled();
    let steps = volume.writes_so_far();
    let mut two = AlignedBuf::zeroed(2 * ALIGN);
    assert_eq!(kind(file.read_at(PAGE, &mut two)), ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.write_at(PAGE, &two)), ErrorKind::InvalidInput);
    assert_eq!(kind(file.write_durable_at(512, &two)), ErrorKind::InvalidInput);
    assert_eq!(kind(file.write_at(0, &two[1..])), ErrorKind::InvalidInput);
    assert_eq!(kind(file.grow(PAGE)), ErrorKind::InvalidInput);
    assert_eq!(kind(volume.create("data", 0)), ErrorKind::AlreadyExists);
    assert_eq!(kind(volume.create("x", 5)), ErrorKind::InvalidInput);
    assert_eq!(volume.writes_so_far(), steps);
}

#[test]
fn a_cut_may_be_lost_until_it_is_synced_and_what_was_cut_off_never_shows_again() {
    let mut lens = BTreeSet::new();
    for seed in 0..32 {
        let (volume, file) = settled();
        file.shrink(PAGE).unwrap();
        lens.insert(volume.crash_with(CrashMode::Random, seed).open("data").unwrap().len());
        file.sync().unwrap();
        for mode in MODES {
            assert_eq!(volume.crash_with(mode, seed).open("data").unwrap().len(), PAGE);
        }
        file.grow(3 * PAGE).unwrap();
        file.write_at(2 * PAGE, &filled(3)).unwrap();
        file.shrink(2 * PAGE).unwrap();
        file.grow(3 * PAGE).unwrap();
        file.sync().unwrap();
        let found = volume.crash_with(CrashMode::Random, seed);
        let mut one = AlignedBuf::zeroed(ALIGN);
        for at in [1, 2] {
            found.open("data").unwrap().read_at(at * PAGE, &mut one).unwrap();
            assert!(one.iter().all(|&byte| byte == 0), "{at}");
        }
    }
    assert_eq!(lens, BTreeSet::from([PAGE, 2 * PAGE]));
    let (volume, file) = settled();
    assert_eq!(kind(file.shrink(3 * PAGE)), ErrorKind::InvalidInput);
    let at = volume.writes_so_far();
    file.shrink(0).unwrap();
    assert_eq!(volume.writes_so_far(), at + 1, "a crash can come at it");
}

#[test]
fn a_hole_is_lost_or_kept_by_blocks_until_it_is_synced() {
    let found = |volume: &SimVolume, seed| {
        let found = volume.crash_with(CrashMode::Random, seed);
        let bytes = found.read_raw("data").unwrap();
        let file = found.open("data").unwrap();
        ((bytes[0], bytes[ALIGN]), file.allocated_bytes().unwrap() / PAGE)
    };
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let (volume, file) = settled();
        assert!(file.punch(0, 2 * PAGE).unwrap());
        assert_eq!(file.allocated_bytes(), Some(0));
        let mut one = AlignedBuf::zeroed(ALIGN);
        file.read_at(0, &mut one).unwrap();
        assert!(one.iter().all(|&byte| byte == 0));
        seen.insert(found(&volume, seed));
        file.sync().unwrap();
        for mode in MODES {
            let bytes = volume.crash_with(mode, seed).read_raw("data").unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0), "{mode:?}");
        }
        // Space for it may be lost as well, and what is written then is not in the hole.
        file.reserve(0, PAGE).unwrap();
        let (_, blocks) = found(&volume, seed);
        assert!(blocks <= 1);
        file.sync().unwrap();
        file.write_at(0, &filled(3)).unwrap();
        file.sync().unwrap();
        assert_eq!(found(&volume, seed), ((3, 0), 1));
    }
    let all = [((1, 1), 2), ((0, 1), 1), ((1, 0), 1), ((0, 0), 0)];
    assert_eq!(seen, BTreeSet::from(all));
}

#[test]
fn a_write_to_a_hole_meets_a_full_disk() {
    let (volume, file) = settled();
    volume.set_capacity(Some(2 * PAGE));
    file.punch(PAGE, PAGE).unwrap();
    assert_eq!(kind(file.write_at(PAGE, &filled(2))), ErrorKind::StorageFull);
    assert_eq!(kind(file.write_durable_at(PAGE, &filled(2))), ErrorKind::StorageFull);
    assert_eq!(kind(file.punch(PAGE, 2 * PAGE)), ErrorKind::InvalidInput);
    let other = volume.create("other", PAGE).unwrap();
    assert_eq!(kind(file.reserve(0, 2 * PAGE)), ErrorKind::StorageFull);
    file.reserve(0, PAGE).unwrap();
    drop(other);
    volume.remove("other").unwrap();
    file.reserve(0, 2 * PAGE).unwrap();
    file.write_at(PAGE, &filled(2)).unwrap();
    let at = volume.writes_so_far();
    file.punch(0, PAGE).unwrap();
    file.reserve(0, PAGE).unwrap();
    assert_eq!(volume.writes_so_far(), at + 2, "a crash can come at each");
}
