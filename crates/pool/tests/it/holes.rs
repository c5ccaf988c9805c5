//! Pages that gave their blocks back, and the doublewrite area that remembers them.
use std::sync::Arc;

use weir_base::{AlignedBuf, Lsn, PageNo, TreeId};
use weir_device::{SimVolume, Volume};
use weir_page::Kind;
use weir_pool::{
    DoubleWriteConfig, DoubleWriteMode, InPlaceStore, PageStore, PageWrite, PoolError,
};

use crate::support::DB;

/// Two blocks of the file system: a crash may leave a hole in half of a page.
const SIZE: usize = 8192;

fn config(mode: DoubleWriteMode) -> DoubleWriteConfig {
    // As many files as there are callers: no batch is paced before it has begun.
    DoubleWriteConfig { mode, files: 3, pages: 16 }
}

fn created(mode: DoubleWriteMode) -> (SimVolume, InPlaceStore) {
    let sim = SimVolume::new(12);
    let volume: Arc<dyn Volume> = Arc::new(sim.clone());
    let store = InPlaceStore::create(&volume, DB, SIZE, 12, config(mode)).expect("a store");
    volume.sync_directory().expect("synced");
    (sim, store)
}

/// Writes pages, each with its number and `lsn`.
fn write(
    store: &InPlaceStore,
    shard: usize,
    numbers: &[u32],
    lsn: u64,
    pace: &mut dyn FnMut(usize) -> usize,
) -> Result<(), PoolError> {
    let made = numbers.iter().map(|&number| {
        let mut bytes = vec![0; SIZE];
        weir_page::format(&mut bytes, Kind::Meta, 0, TreeId(1), PageNo(number));
        weir_page::set_lsn(&mut bytes, Lsn(lsn));
        bytes[48..].fill(lsn as u8);
        weir_page::seal(&mut bytes, DB);
        bytes
    });
    let made: Vec<Vec<u8>> = made.collect();
    let writes = numbers.iter().zip(&made);
    let writes: Vec<PageWrite<'_>> = writes
        .map(|(&number, bytes)| PageWrite { page: PageNo(number), lsn: Lsn(lsn), bytes })
        .collect();
    store.write_batch(shard, &writes, pace)
}

/// Pages that were written, are not in use any more and gave their blocks back: a crash that left a
/// part of such a page finds no copy that is needed, in any mode.
#[test]
fn pages_that_gave_their_blocks_back_are_not_repaired() {
    for mode in [DoubleWriteMode::On, DoubleWriteMode::DetectOnly, DoubleWriteMode::Off] {
        for settles in [true, false] {
            let mut seen = 0;
            for seed in 0..40 {
                let (sim, store) = created(mode);
                write(&store, 0, &[1, 2, 3], 1, &mut |left| left).expect("written");
                write(&store, 1, &[4, 5, 6], 2, &mut |left| left).expect("written");
                let begun = store.batches_begun();
                assert!(!settles || store.settle_through(begun).expect("noted"));
                assert!(store.can_punch() && store.punch(4..7).expect("punched"));
                let volume: Arc<dyn Volume> = Arc::new(sim.crash(seed));
                let store = InPlaceStore::open(&volume, DB, SIZE, config(mode)).expect("a store");
                match store.repair() {
                    Ok(repair) => {
                        assert!(!settles || repair.repaired == 0, "{mode:?} {repair:?}");
                        seen += u64::from(repair.repaired > 0);
                    }
                    // A copy, or the list of what was written, takes the hole for damage.
                    Err(e) => {
                        assert!(!settles, "{mode:?}: {e}");
                        seen += 1;
                    }
                }
                let mut buf = AlignedBuf::zeroed(SIZE);
                for page in 1..4 {
                    store.read(PageNo(page), &mut buf).expect("it is there");
                }
            }
            let needs = mode != DoubleWriteMode::Off && !settles;
            assert_eq!(seen > 0, needs, "{mode:?}: without the note it would be seen");
        }
    }
}

#[test]
fn a_batch_that_is_under_way_is_not_settled() {
    let (_, store) = created(DoubleWriteMode::On);
    write(&store, 0, &[1], 1, &mut |left| left).expect("written");
    let mut seen = Vec::new();
    let mut is_begun = false;
    write(&store, 1, &[2], 2, &mut |left| {
        if left > 0 && is_begun {
            let begun = store.batches_begun();
            // This thread has the lock of the batch's file.
            let settle = |batch| store.settle_through(batch).expect("noted");
            let apart = |batch| std::thread::scope(|scope| scope.spawn(|| settle(batch)).join());
            seen.push((begun, apart(begun - 1).expect("a thread")));
            seen.push((begun, apart(begun).expect("a thread")));
        }
        // The doublewrite comes between the first groups and the second ones.
        is_begun |= left == 0;
        left
    })
    .expect("written");
    assert_eq!(seen, [(2, true), (2, false)]);
    assert!(store.settle_through(2).expect("noted"));
    // The copies are there still, to mend a page by.
    let mut copy = vec![0; SIZE];
    assert!(store.copy_of(PageNo(1), Lsn(1), &mut copy));
}
