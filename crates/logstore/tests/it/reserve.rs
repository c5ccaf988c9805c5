//! A full disk: what was reserved can be written, whatever it packs to.
use std::sync::Arc;

use fastrand::Rng;
use weir_base::{Lsn, ManualClock, PageNo};
use weir_device::{Fault, FaultyVolume, OpKind, SimVolume, Volume};
use weir_logstore::{LogStore, LogStoreConfig, PageImage};

use crate::support::{DB, PAGE, config, volume};

const PAGES: u32 = 6000;

fn write(store: &LogStore, pages: &[u32], bytes: &[Vec<u8>]) {
    let image = |&page: &u32| PageImage {
        page: PageNo(page),
        lsn: Lsn(1),
        bytes: &bytes[page as usize],
        codec: None,
    };
    let images: Vec<PageImage<'_>> = pages.iter().map(image).collect();
    store.write_batch(&images, &mut |left| left).expect("what was reserved can be written");
}

fn check(store: &LogStore, bytes: &[Vec<u8>]) {
    let mut buf = vec![0; PAGE];
    for (page, bytes) in (0..).zip(bytes) {
        store.read(PageNo(page), &mut buf).expect("there");
        assert!(buf == *bytes, "page {page}");
    }
}

#[test]
fn pages_that_cannot_be_packed_any_more_are_refused_before_they_change_or_never() {
    let sim = SimVolume::new(1);
    let config = LogStoreConfig { segments: 40, pages: PAGES, ..config() };
    let store = LogStore::create(&volume(&sim), DB, &config).expect("a store");
    sim.set_capacity(Some(0));
    // Nearly all of the disk, with pages that pack to a quarter.
    let mut bytes = Vec::new();
    while store.reserve(1).is_ok() {
        let page = bytes.len() as u32;
        bytes.push(vec![page as u8; PAGE]);
        write(&store, &[page], &bytes);
        store.release(1);
        if bytes.len() == PAGES as usize {
            break;
        }
    }
    let observed = store.observe();
    assert!(bytes.len() > 2000, "{} pages, {observed:?}", bytes.len());
    // Then pages that cannot be packed, as many as may be dirty, until no more may be.
    let (mut dice, mut rounds) = (Rng::with_seed(1), 0);
    loop {
        let mut dirty = Vec::new();
        while dirty.len() < 50 && store.reserve(1).is_ok() {
            dirty.push(dice.u32(..bytes.len() as u32));
        }
        if dirty.is_empty() {
            break;
        }
        let reserved = dirty.len() as u32;
        dirty.sort_unstable();
        dirty.dedup();
        for &page in &dirty {
            bytes[page as usize].fill_with(|| dice.u8(..));
        }
        write(&store, &dirty, &bytes);
        store.release(reserved);
        rounds += 1;
        if rounds > 400 {
            break;
        }
    }
    assert!(rounds > 5, "{rounds} rounds");
    assert_eq!(store.stats().growths.get(), 0);
    check(&store, &bytes);
    drop(store);
    check(&LogStore::open(&volume(&sim), DB).expect("a store"), &bytes);
}

/// The file cannot grow, each time it tries; what is there stays, and it goes on when it can.
#[test]
fn a_disk_that_is_full_at_every_growth_is_reported_and_nothing_is_lost() {
    for times in 1..5 {
        let sim = SimVolume::new(times);
        let under = volume(&sim);
        let faulty = FaultyVolume::new(under);
        let over: Arc<dyn Volume> = Arc::new(faulty.clone());
        let config = LogStoreConfig { pages: PAGES, ..config() };
        let store = LogStore::create(&over, DB, &config).expect("a store");
        // By four segments, by two and by one.
        for tried in 0..3 {
            faulty.fail_nth("segments", OpKind::Grow, times + tried, Fault::Full);
        }
        let mut dice = Rng::with_seed(times);
        let (mut bytes, mut refused) = (Vec::<Vec<u8>>::new(), 0);
        while bytes.len() < 3000 {
            match store.reserve(20) {
                Ok(()) => {
                    let first = bytes.len() as u32;
                    bytes.resize_with(bytes.len() + 20, || {
                        let mut page = vec![0; PAGE];
                        page.fill_with(|| dice.u8(..));
                        page
                    });
                    write(&store, &(first..first + 20).collect::<Vec<_>>(), &bytes);
                    store.release(20);
                }
                Err(e) => {
                    assert!(e.is_disk_full(), "{e}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && store.stats().growths.get() > 0);
        check(&store, &bytes);
    }
}

/// Writers that wait for room ask all the time: the disk is asked again after a while only.
#[test]
fn a_disk_that_had_no_room_is_not_asked_again_at_once() {
    let sim = SimVolume::new(1);
    let config = LogStoreConfig { segments: 40, pages: PAGES, ..config() };
    let store = LogStore::create(&volume(&sim), DB, &config).expect("a store");
    let clock = Arc::new(ManualClock::default());
    store.adapt(clock.clone());
    sim.set_capacity(Some(0));
    let wanted = store.room_pages() + 1;
    assert!(store.make_room_for(wanted).is_err_and(|e| e.is_disk_full()));
    sim.set_capacity(None);
    assert!(store.make_room_for(wanted).is_err(), "as it was a moment ago");
    clock.advance(49_999);
    assert!(store.make_room_for(wanted).is_err());
    clock.advance(1);
    store.make_room_for(wanted).expect("the disk has room now");
    // What had room is asked again at once.
    let wanted = store.room_pages() + 1;
    store.make_room_for(wanted).expect("the disk has room");
    sim.set_capacity(Some(0));
    assert!(store.make_room_for(store.room_pages() + 1).is_err());
}
