//! Bytes that change on the disk: reported, never believed.
use fastrand::Rng;
use weir_base::{PageNo, checksum, checksum_more};
use weir_device::SimVolume;
use weir_logstore::{NeverDirty, StoreError};

use crate::support::{DB, Model, PAGE, PAGES, act, bytes_of, create, open};

/// A store that has worked, and whose map is durable.
fn worked(seed: u64) -> (SimVolume, Model) {
    let sim = SimVolume::new(seed);
    let store = create(&sim).expect("a store");
    let (mut model, mut dice) = (Model::new(), Rng::with_seed(seed));
    for _ in 0..80 {
        act(&store, &mut model, &mut dice).expect("an action");
    }
    store.checkpoint_map().expect("a map checkpoint");
    (sim, model)
}

/// With a byte changed the store does not open, or every page is what it was or damaged.
fn look(sim: &SimVolume, model: &Model) -> (bool, usize) {
    let store = match open(sim) {
        Ok(store) => store,
        Err(StoreError::Damaged { .. }) => return (false, 0),
        Err(e) => panic!("{e}"),
    };
    let mut model = model.clone();
    let told = |page: &u32| match model.check_page(&store, *page) {
        Ok(()) => false,
        Err(e) => {
            assert!(e.contains("is damaged"), "{e}");
            true
        }
    };
    (true, (0..PAGES).filter(told).count())
}

#[test]
fn a_changed_byte_anywhere_is_an_error_or_does_no_harm() {
    let (sim, model) = worked(1);
    let len = sim.read_raw("segments").expect("the file").len() as u64;
    let (mut told, mut refused, mut dice) = (0, 0, Rng::with_seed(2));
    for _ in 0..300 {
        let (at, bit) = (dice.u64(..len), 1 << dice.u8(..8));
        let copy = sim.fork();
        copy.corrupt("segments", at, bit).expect("a byte");
        let (is_open, damaged) = look(&copy, &model);
        told += damaged;
        refused += usize::from(!is_open);
    }
    assert!(told > 10, "{told} damaged pages, {refused} refused");
}

#[test]
fn a_root_with_any_byte_changed_is_the_same_root() {
    let (sim, model) = worked(3);
    for slot in 0..4u64 {
        for at in 0..160 {
            let copy = sim.fork();
            copy.corrupt("segments.root", slot * (256 << 10) + at, 0x10).expect("a byte");
            assert_eq!(look(&copy, &model), (true, 0), "slot {slot}, byte {at}");
        }
    }
    // Both copies of a slot: the older root's leaves may be gone, which is reported.
    let copy = sim.fork();
    (0..4).for_each(|slot| copy.corrupt("segments.root", slot * (256 << 10), 1).expect("a byte"));
    assert!(matches!(open(&copy).err(), Some(StoreError::Damaged { .. })));
}

/// Writes another format into every copy of the root, or into one, sealed as its version would.
fn set_format(sim: &SimVolume, copies: &[usize], format: u32) {
    let mut file = sim.read_raw("segments.root").expect("the root");
    for copy in copies {
        let slot = &mut file[copy * (256 << 10)..][..256 << 10];
        let number = |at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().expect("4 bytes"));
        // Where a root was never written there is none to change.
        if number(4) == 0 {
            continue;
        }
        let used = 104 + 8 * number(72) as usize + 16 * number(76) as usize;
        slot[4..8].copy_from_slice(&format.to_le_bytes());
        let crc = checksum_more(checksum(&DB.0.to_le_bytes()), &slot[4..used]);
        slot[..4].copy_from_slice(&crc.to_le_bytes());
    }
    sim.write_raw("segments.root", &file).expect("written");
}

#[test]
fn an_older_format_is_read_and_becomes_this_one_and_a_newer_one_is_refused() {
    let (sim, mut model) = worked(6);
    let older = sim.snapshot();
    set_format(&older, &[0, 1, 2, 3], 1);
    assert_eq!(look(&older, &model), (true, 0));
    let store = open(&older).expect("format 1");
    model.write(&store, &[3], 1_000_000).expect("written");
    store.checkpoint_map().expect("a map checkpoint");
    drop(store);
    let root = older.read_raw("segments.root").expect("the root");
    let formats: Vec<u8> = (0..4).map(|copy| root[copy * (256 << 10) + 4]).collect();
    assert!(formats.contains(&2), "{formats:?}");
    assert_eq!(look(&older, &model), (true, 0));
    for copies in [&[0, 1, 2, 3][..], &[0], &[3]] {
        let newer = sim.snapshot();
        set_format(&newer, copies, 3);
        let before = newer.read_raw("segments").expect("the file");
        assert!(matches!(open(&newer).err(), Some(StoreError::OtherFormat(3))), "{copies:?}");
        assert!(newer.read_raw("segments").expect("the file") == before, "nothing is written");
    }
}

#[test]
fn a_durable_chunk_without_its_header_is_an_error() {
    let sim = SimVolume::new(4);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    for page in 0..40 {
        model.write(&store, &[page], 1).expect("written");
    }
    // Each chunk is 4096 bytes, behind the segment's header.
    let (_, first) = store.place(PageNo(0)).expect("a place");
    let (_, tenth) = store.place(PageNo(10)).expect("a place");
    drop(store);
    for at in [first, tenth] {
        let copy = sim.fork();
        copy.corrupt("segments", at / 4096 * 4096 + 8, 1).expect("a byte");
        let told = open(&copy).err().expect("told");
        assert!(told.to_string().contains("header of a chunk"), "{told}");
    }
}

#[test]
fn a_lost_write_shows_as_an_older_block() {
    let sim = SimVolume::new(5);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    model.write(&store, &all, 8).expect("written");
    let place = store.place(PageNo(9)).expect("a place").1 as usize;
    let old = sim.read_raw("segments").expect("the file");
    // The page comes to lie in the same place again, a use of the segment later.
    let mut rounds = 0;
    while store.place(PageNo(9)).expect("a place").1 as usize != place || rounds == 0 {
        model.write(&store, &all, 8).expect("written");
        rounds += 1;
        if rounds > 60 {
            // Not with these sizes: nothing to be seen.
            return;
        }
    }
    let mut now = sim.read_raw("segments").expect("the file");
    let block = place..place + 128;
    now[block.clone()].copy_from_slice(&old[block]);
    drop(store);
    sim.write_raw("segments", &now).expect("the write is lost");
    let store = open(&sim).expect("a store");
    let told = store.read(PageNo(9), &mut vec![0; PAGE]).expect_err("told");
    assert!(matches!(told, StoreError::Damaged { .. }), "{told}");
}

#[test]
fn the_cleaner_leaves_what_it_cannot_read() {
    let sim = SimVolume::new(6);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    model.write(&store, &all, 16).expect("written");
    model.write(&store, &all[..300], 16).expect("written");
    let place = store.place(PageNo(310)).expect("a place").1;
    sim.corrupt("segments", place + 40, 1).expect("a byte");
    let mut damaged = Vec::new();
    for _ in 0..20 {
        damaged.extend(store.step_clean(1 << 20, &NeverDirty).expect("a step").damaged);
    }
    assert!(damaged.len() <= 1, "{damaged:?}");
    let mut buf = vec![0; PAGE];
    for page in 0..PAGES {
        match store.read(PageNo(page), &mut buf) {
            Ok(lsn) => assert!(buf == bytes_of(page, lsn.0)),
            Err(e) => assert!(page == 310 && matches!(e, StoreError::Damaged { .. }), "{e}"),
        }
    }
    // Written anew it is whole, and its old segment may be cleaned.
    model.write(&store, &[310], 1).expect("written");
    model.check(&store).expect("every page");
}
