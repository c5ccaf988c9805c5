//! Readers without a latch beside a writer: nothing panics, and what the version confirms is true.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use weir_base::{PageNo, TreeId, TxnId};
use weir_page::{Flags, Kind, Node, NodeMut, RawPage, Stamp};

const PAGE_BYTES: usize = 4096;
const KEYS: u64 = 60;
const CHANGES: u64 = 100_000;
const CONFIRMED: u64 = 1000;

/// A page with its version: odd while it is written.
struct Shared {
    page: *mut u8,
    version: AtomicU64,
    /// Reads that were confirmed to have found a row.
    found: AtomicU64,
    done: AtomicBool,
}

// SAFETY: the pointer is to a buffer that outlives all threads; one thread writes it, the others
// read it through `RawPage` only.
unsafe impl Sync for Shared {}

/// Long and short keys, with a prefix that comes and goes.
fn key(number: u64) -> Vec<u8> {
    match number % 7 {
        0 => format!("{number}").into_bytes(),
        _ => format!("prefix/{:04}{}", number, "x".repeat(number as usize % 9)).into_bytes(),
    }
}

/// A row says whose it is, so that a mixture of two shows.
fn value(number: u64, change: u64) -> Vec<u8> {
    let len = 2 + (change % 5) as usize;
    (number << 32 | change & 0xffff_ffff).to_le_bytes().repeat(len)
}

fn write(shared: &Shared) {
    let mut rng = fastrand::Rng::with_seed(3);
    // Until the readers have had their chance, however few processors there are.
    for change in (0..1000 * CHANGES)
        .take_while(|&change| change < CHANGES || shared.found.load(Ordering::Relaxed) < CONFIRMED)
    {
        shared.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // SAFETY: this is the only thread that writes; readers make no references.
        let page = unsafe { std::slice::from_raw_parts_mut(shared.page, PAGE_BYTES) };
        let mut node = NodeMut::new(page);
        let number = rng.u64(0..KEYS);
        let stamp = Stamp { writer: TxnId(number), seq: change as u32 };
        let (key, value) = (key(number), value(number, change));
        // A full page stays as it is; removals make room again.
        let _ = match node.node().search(&key) {
            Ok(slot) if rng.u8(0..4) == 0 => {
                node.remove(slot);
                Ok(())
            }
            Ok(slot) => node.replace(slot, stamp, Flags::NONE, &value),
            Err(slot) => node.insert(slot, &key, stamp, Flags::NONE, &value),
        };
        shared.version.fetch_add(1, Ordering::Release);
    }
    shared.done.store(true, Ordering::Release);
}

fn read(shared: &Shared, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    // SAFETY: the buffer outlives the threads.
    let node = Node::new(unsafe { RawPage::new(shared.page, PAGE_BYTES) });
    let (mut key_read, mut value_read) = (Vec::new(), Vec::new());
    while !shared.done.load(Ordering::Acquire) {
        let number = rng.u64(0..KEYS);
        let key = key(number);
        let before = shared.version.load(Ordering::Acquire);
        let slot = node.search(&key);
        let at = slot.unwrap_or_else(|slot| slot);
        node.key_into(at, &mut key_read);
        node.value_into(at, &mut value_read);
        let (stamp, count) = (node.stamp(at), node.count());
        fence(Ordering::Acquire);
        let unchanged =
            shared.version.load(Ordering::Relaxed) == before && before.is_multiple_of(2);
        if !unchanged {
            continue;
        }
        match slot {
            Ok(_) => {
                assert_eq!(key_read, key);
                assert_eq!(stamp.writer, TxnId(number));
                assert_eq!(value_read, value(number, u64::from(stamp.seq)));
                shared.found.fetch_add(1, Ordering::Relaxed);
            }
            Err(at) => assert!(at <= count && (at == count || key_read > key)),
        }
    }
}

#[test]
fn confirmed_reads_are_true() {
    let mut page = vec![0; PAGE_BYTES];
    NodeMut::format(&mut page, Kind::Leaf, 0, TreeId(1), PageNo(1));
    let shared = Shared {
        page: page.as_mut_ptr(),
        version: AtomicU64::new(0),
        found: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    let shared = &shared;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|seed| scope.spawn(move || read(shared, seed))).collect();
        scope.spawn(move || write(shared));
        for reader in readers {
            reader.join().expect("a reader saw what never was");
        }
    });
    assert!(shared.found.load(Ordering::Relaxed) >= CONFIRMED);
}
