//! What a store does while nothing goes wrong.
use fastrand::Rng;
use weir_base::{DbId, Lsn, PageNo};
use weir_device::{SimVolume, Volume};
use weir_logstore::{LogStore, LogStoreConfig, NeverDirty, PageImage, PageRead, StoreError};

use crate::support::{DB, Model, PAGE, PAGES, act, bytes_of, config, create, open, volume};

#[test]
fn pages_are_there_again_after_much_work_and_every_opening() {
    for seed in 0..4 {
        let sim = SimVolume::new(seed);
        let mut store = create(&sim).expect("a store");
        let (mut model, mut dice) = (Model::new(), Rng::with_seed(seed));
        for round in 0..8 {
            for _ in 0..120 {
                act(&store, &mut model, &mut dice).expect("an action");
            }
            model.check(&store).expect("every page");
            let before = store.observe();
            drop(store);
            store = open(&sim).expect("a store");
            model.check(&store).unwrap_or_else(|e| panic!("seed {seed}, round {round}: {e}"));
            assert_eq!(store.observe().live_bytes, before.live_bytes);
        }
    }
}

#[test]
fn a_page_is_absent_until_it_is_written_and_when_it_is_freed() {
    let sim = SimVolume::new(1);
    let store = create(&sim).expect("a store");
    let mut buf = vec![0; PAGE];
    let mut read = |page: u32| store.read(PageNo(page), &mut buf);
    assert!(matches!(read(5), Err(StoreError::Absent(PageNo(5)))));
    assert!(matches!(read(PAGES), Err(StoreError::NoSuchPage(_))));
    let mut model = Model::new();
    model.write(&store, &[4, 5, 6], 2).expect("written");
    assert_eq!(read(5).expect("there"), Lsn(1));
    model.forget(&store, 5, 1).expect("freed");
    assert!(matches!(read(5), Err(StoreError::Absent(_))));
    assert_eq!(store.place(PageNo(5)), None);
    assert_eq!(read(6).expect("there"), Lsn(1));
    let bytes = bytes_of(0, 0);
    let beyond = PageImage { page: PageNo(PAGES), lsn: Lsn(9), bytes: &bytes, codec: None };
    let refused = store.write_batch(&[beyond], &mut |_| 1);
    assert!(matches!(refused, Err(StoreError::NoSuchPage(_))));
    store.grow(PAGES + 1).expect("larger");
    store.write_batch(&[beyond], &mut |_| 1).expect("written");
    drop(store);
    let store = open(&sim).expect("a store");
    assert_eq!(
        (store.pages(), store.read(PageNo(PAGES), &mut buf).ok()),
        (PAGES + 1, Some(Lsn(9)))
    );
}

#[test]
fn many_pages_are_read_at_once_each_with_its_own_outcome() {
    let sim = SimVolume::new(2);
    let store = create(&sim).expect("a store");
    Model::new().write(&store, &(0..200).collect::<Vec<_>>(), 7).expect("written");
    let mut bufs = vec![vec![0; PAGE]; 300];
    let mut reads: Vec<PageRead<'_>> = (0..300u32)
        .zip(&mut bufs)
        .map(|(page, buf)| {
            let page = PageNo((page * 7) % 300);
            PageRead { page, buf, outcome: Err(StoreError::Absent(page)) }
        })
        .collect();
    store.read_many(&mut reads);
    for read in &reads {
        match &read.outcome {
            Ok(lsn) => assert!(read.page.0 < 200 && bytes_of(read.page.0, lsn.0) == read.buf),
            Err(e) => assert!(read.page.0 >= 200 && matches!(e, StoreError::Absent(_)), "{e}"),
        }
    }
}

/// The disk has room for nothing but what is there at first: the cleaner alone makes room, also
/// where three quarters of it are live, and then writing is refused, not stuck, and what is there
/// stays.
#[test]
fn a_full_disk_is_cleaned_and_then_refuses() {
    let sim = SimVolume::new(3);
    let store = create(&sim).expect("a store");
    sim.set_capacity(Some(0));
    let mut dice = Rng::with_seed(3);
    let mut lsn = 0;
    let mut write = |store: &LogStore, page: u32, dice: &mut Rng| {
        lsn += 1;
        let mut bytes = vec![0; PAGE];
        bytes.fill_with(|| dice.u8(..));
        let image = PageImage { page: PageNo(page), lsn: Lsn(lsn), bytes: &bytes, codec: None };
        store.write_batch(&[image; 1], &mut |_| 8).map(|()| bytes)
    };
    let mut latest = vec![None; PAGES as usize];
    for round in 0..6 {
        for _ in 0..PAGES {
            let page = dice.u32(..PAGES);
            latest[page as usize] = Some(write(&store, page, &mut dice).expect("room is made"));
        }
        assert!(store.observe().live_bytes > 0, "round {round}");
    }
    assert_eq!(store.stats().growths.get(), 0);
    assert!(store.stats().pages_copied.get() > 0);
    // More pages than there is room for.
    store.grow(4 * PAGES).expect("a larger map");
    let full = (PAGES..4 * PAGES).find_map(|page| write(&store, page, &mut dice).err());
    let full = full.expect("no room for so many");
    assert!(full.is_disk_full(), "{full}");
    let observed = store.observe();
    assert!(observed.live_bytes * 10 > observed.bytes * 5, "{observed:?}");
    let check = |store: &LogStore| {
        let mut buf = vec![0; PAGE];
        for (page, bytes) in (0..).zip(&latest) {
            let Some(bytes) = bytes else { continue };
            store.read(PageNo(page), &mut buf).expect("there");
            assert!(buf == *bytes, "page {page}");
        }
    };
    check(&store);
    // What is freed can be written again, and with a larger disk all.
    store.forget(PageNo(PAGES), PAGES, Lsn(1 << 40)).expect("freed");
    (PAGES..PAGES + 200).for_each(|page| drop(write(&store, page, &mut dice).expect("room")));
    sim.set_capacity(None);
    (PAGES..4 * PAGES).for_each(|page| drop(write(&store, page, &mut dice).expect("it grows")));
    check(&store);
    drop(store);
    check(&open(&sim).expect("a store"));
}

#[test]
fn a_map_checkpoint_shortens_what_recovery_reads_and_frees_what_was_freed() {
    let sim = SimVolume::new(4);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    for _ in 0..2 {
        model.write(&store, &all, 16).expect("written");
    }
    let reads_of = |sim: &SimVolume| {
        let before = sim.io_stats().reads;
        drop(open(sim).expect("a store"));
        sim.io_stats().reads - before
    };
    let long = reads_of(&sim.fork());
    store.checkpoint_map().expect("a map checkpoint");
    let short = reads_of(&sim.fork());
    assert!(short * 3 < long, "{short} reads instead of {long}");
    assert_eq!(store.observe().pages_since_checkpoint, 0);
    model.forget(&store, 0, PAGES).expect("freed");
    store.checkpoint_map().expect("a map checkpoint");
    // Two streams have a segment open; the leaves are in one of them.
    assert!(store.used_segments() <= 3, "{} segments", store.used_segments());
    model.check(&store).expect("all absent");
}

/// A tree that shrinks gives its pages up one by one: chunks of one free record each, and segments
/// that hold no block at all.
#[test]
fn segments_are_filled_by_free_records_alone() {
    let sim = SimVolume::new(9);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    model.write(&store, &all, 16).expect("written");
    let opened = store.stats().segments_opened.get();
    (0..100).for_each(|page| model.forget(&store, page, 1).expect("freed"));
    assert!(store.stats().segments_opened.get() >= opened + 6, "a segment has room for 15 chunks");
    drop(store);
    let store = open(&sim).expect("a store");
    model.check(&store).expect("freed ones are absent, others there");
    store.checkpoint_map().expect("a map checkpoint");
    let used = store.used_segments();
    (100..PAGES).for_each(|page| model.forget(&store, page, 1).expect("freed"));
    store.checkpoint_map().expect("a map checkpoint");
    assert!(store.used_segments() < used, "{} of {used}", store.used_segments());
    model.check(&store).expect("all absent");
}

#[test]
fn a_store_is_taken_only_for_what_it_is() {
    let sim = SimVolume::new(5);
    drop(create(&sim).expect("a store"));
    let other = LogStore::open(&volume(&sim), DbId(1)).err().expect("refused");
    assert!(matches!(other, StoreError::OtherStore { found, .. } if found == DB), "{other}");
    let again = create(&sim).err().expect("refused");
    assert!(matches!(again, StoreError::Device { .. }));
    assert!(open(&SimVolume::new(6)).is_err());
    let bytes = sim.read_raw("segments").expect("a file");
    sim.write_raw("segments", &bytes[..bytes.len() - 4096]).expect("shorter");
    assert!(matches!(open(&sim).err(), Some(StoreError::Damaged { .. })));
    let bad = [
        LogStoreConfig { page_bytes: 100, ..config() },
        LogStoreConfig { page_bytes: 32 << 10, ..config() },
        LogStoreConfig { segment_bytes: 8192, ..config() },
        LogStoreConfig { segment_bytes: 100_000, ..config() },
        LogStoreConfig { segments: 15, ..config() },
    ];
    for config in bad {
        let sim = SimVolume::new(7);
        let refused = LogStore::create(&volume(&sim), DB, &config).err();
        assert!(matches!(refused, Some(StoreError::Config(_))), "{config:?}");
        assert_eq!(sim.list().expect("names").len(), 0);
    }
}

#[test]
fn dirty_pages_are_not_copied_but_named() {
    let sim = SimVolume::new(8);
    let store = create(&sim).expect("a store");
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    model.write(&store, &all, 16).expect("written");
    let odd: Vec<u32> = (0..PAGES).filter(|page| page % 2 == 1).collect();
    model.write(&store, &odd, 16).expect("written");
    struct Even;
    impl weir_logstore::Dirty for Even {
        fn is_dirty(&self, page: PageNo) -> bool {
            page.0.is_multiple_of(2)
        }
    }
    let cleaned = store.step_clean(1 << 20, &Even).expect("cleaned");
    assert!(cleaned.victim.is_some() && cleaned.copied == 0, "{cleaned:?}");
    assert!(!cleaned.flush_wanted.is_empty());
    assert!(cleaned.flush_wanted.iter().all(|page| page.0.is_multiple_of(2)));
    // Flushed, they free the segment.
    let used = store.used_segments();
    let wanted: Vec<u32> = cleaned.flush_wanted.iter().map(|page| page.0).collect();
    model.write(&store, &wanted, 64).expect("written");
    assert!(store.used_segments() <= used);
    let next = store.step_clean(1 << 20, &NeverDirty).expect("cleaned");
    assert_ne!(next.victim, cleaned.victim);
    model.check(&store).expect("every page");
}
