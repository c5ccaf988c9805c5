//! Writers, readers, the cleaner and map checkpoints at the same time.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fastrand::Rng;
use weir_base::{Lsn, PageNo};
use weir_device::{CrashMode, SimVolume};
use weir_logstore::{LogStore, NeverDirty, PageImage, StoreError};

use crate::odd_disk::{Ways, odd_of};
use crate::support::{DB, EverySeventh, Model, PAGE, PAGES, bytes_of, create, open};

const WRITERS: u32 = 3;

/// Says that it is over when it is, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn all_operations_at_once() {
    let sim = SimVolume::new(9);
    let store = create(&sim).expect("a store");
    let lsns: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, lsns, is_over) = (&store, &lsns, &is_over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut dice = Rng::with_seed(u64::from(writer));
                    for round in 1..200u64 {
                        // Each writer has its own pages.
                        let first = dice.u32(..PAGES / WRITERS - 16) * WRITERS + writer;
                        let pages: Vec<u32> = (0..12).map(|i| first + i * WRITERS).collect();
                        let bytes: Vec<_> = pages.iter().map(|&p| bytes_of(p, round)).collect();
                        let image = |(&page, bytes)| {
                            let page = PageNo(page);
                            PageImage { page, lsn: Lsn(round), bytes, codec: None }
                        };
                        let images: Vec<PageImage<'_>> =
                            pages.iter().zip(bytes.iter().map(Vec::as_slice)).map(image).collect();
                        store.write_batch(&images, &mut |_| 5).expect("written");
                        for page in pages {
                            lsns[page as usize].store(round, Ordering::Release);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let (mut dice, _over) = (Rng::with_seed(99), Over(is_over));
            while !is_over.load(Ordering::Relaxed) {
                let dirty = EverySeventh(dice.u32(..7));
                store.step_clean(dice.usize(1..8192), &dirty).expect("a step");
                if dice.u8(..16) == 0 {
                    store.checkpoint_map().expect("a map checkpoint");
                }
            }
        });
        scope.spawn(move || {
            let (mut dice, mut buf) = (Rng::with_seed(98), vec![0; PAGE]);
            while !is_over.load(Ordering::Relaxed) {
                let page = dice.u32(..PAGES);
                let least = lsns[page as usize].load(Ordering::Acquire);
                match store.read(PageNo(page), &mut buf) {
                    Ok(lsn) => assert!(lsn.0 >= least && buf == bytes_of(page, lsn.0)),
                    Err(StoreError::Absent(_)) => assert_eq!(least, 0),
                    Err(e) => panic!("page {page}: {e}"),
                }
            }
        });
        let _over = Over(is_over);
        for writer in writers {
            writer.join().expect("a writer");
        }
    });
    drop(store);
    let sim = sim.crash_with(CrashMode::LoseAll, 1);
    let store = open(&sim).expect("a store");
    let mut buf = vec![0; PAGE];
    for (page, lsn) in (0..).zip(&lsns) {
        match lsn.load(Ordering::Relaxed) {
            0 => assert!(store.read(PageNo(page), &mut buf).is_err()),
            lsn => assert_eq!(store.read(PageNo(page), &mut buf).expect("there"), Lsn(lsn)),
        }
    }
}

/// R2, at the one moment at which it counts: the cleaner has chosen a page and reads it, and the
/// page is flushed. The copy must not come out on top of it.
#[test]
fn a_page_that_is_being_copied_is_flushed_after_its_copy() {
    let sim = SimVolume::new(10);
    drop(create(&sim).expect("a store"));
    let ways = Arc::new(Ways::default());
    let store = Arc::new(LogStore::open(&odd_of(&sim, &ways), DB).expect("a store"));
    let mut model = Model::new();
    let all: Vec<u32> = (0..PAGES).collect();
    model.write(&store, &all, 16).expect("written");
    model.write(&store, &all[..PAGES as usize / 2], 16).expect("written");
    // Pages of the emptiest segments first: the victim's are among them.
    let segment = |page: u32| store.place(PageNo(page)).map(|(_, at)| at / (64 << 10));
    let mut live = BTreeMap::<_, Vec<u32>>::new();
    all.iter().for_each(|&page| live.entry(segment(page)).or_default().push(page));
    let mut live: Vec<Vec<u32>> = live.into_values().collect();
    live.sort_by_key(Vec::len);
    let (told, is_done) = mpsc::channel();
    let writer = Arc::clone(&store);
    *ways.before_reads.lock().expect("no panic") = Some(Box::new(move || {
        let (begun, has_begun) = mpsc::channel();
        std::thread::spawn(move || {
            for pages in live {
                for page in pages {
                    let bytes = bytes_of(page, 77);
                    let image =
                        PageImage { page: PageNo(page), lsn: Lsn(77), bytes: &bytes, codec: None };
                    writer.write_batch(&[image], &mut |_| 1).expect("written");
                }
                let _ = begun.send(());
            }
            told.send(()).expect("the test waits");
        });
        // The writer comes past these segments, unless it comes to a page that is marked.
        for _ in 0..3 {
            let _ = has_begun.recv_timeout(Duration::from_millis(300));
        }
    }));
    let cleaned = store.step_clean(1 << 20, &NeverDirty).expect("a step");
    assert!(cleaned.copied > 0, "{cleaned:?}");
    is_done.recv_timeout(Duration::from_secs(60)).expect("the writer waits no longer");
    let check = |store: &LogStore| {
        let mut buf = vec![0; PAGE];
        for page in 0..PAGES {
            assert_eq!(store.read(PageNo(page), &mut buf).expect("there"), Lsn(77), "{page}");
        }
    };
    check(&store);
    drop(store);
    check(&open(&sim.crash_with(CrashMode::LoseAll, 1)).expect("a store"));
}
