//! Several threads on one tree.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_btree::Cursor;

use crate::support::{Shape, Site, TREE, scan};

const STABLE: u32 = 64;

/// Keys that are multiples of `STABLE` stay; threads put and remove the others, each its own.
fn churn(site: &Site, tree: &weir_btree::Tree, thread: u32, stop: &AtomicBool, span: u32) -> u64 {
    let mut random = fastrand::Rng::with_seed(u64::from(thread));
    let mut steps = 0;
    let mut have = std::collections::BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        // Stretches, so that leaves fill, are cut, empty and are joined.
        let base = random.u32(0..span);
        let insert = random.bool();
        for key in base..base + 200 {
            if key.is_multiple_of(STABLE) || key % 4 != thread {
                continue;
            }
            let bytes = key.to_be_bytes();
            if insert {
                let long = random.u32(0..200) == 0;
                let len = if long { random.usize(3000..20_000) } else { random.usize(0..150) };
                let value = vec![(key ^ thread) as u8; len];
                site.put(tree, &bytes, &value).expect("put");
                have.insert(key, len);
            } else {
                let was = site.remove(tree, &bytes).expect("remove");
                assert_eq!(was, have.remove(&key).is_some(), "only this thread has key {key}");
            }
            steps += 1;
        }
        let key = random.u32(0..span);
        if key % 4 == thread && !key.is_multiple_of(STABLE) {
            let mut out = Vec::new();
            let found = tree.get(&key.to_be_bytes(), &mut out).expect("get");
            assert_eq!(found.map(|_| out.len()), have.get(&key).copied(), "key {key}");
        }
    }
    steps
}

fn walk(tree: &weir_btree::Tree, forward: bool, stable: u32) {
    let mut cursor = Cursor::new(tree.clone());
    let mut seen = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    let mut on = if forward { cursor.seek_first() } else { cursor.seek_last() }.expect("seek");
    while on {
        let key = cursor.key().to_vec();
        if let Some(last) = &last {
            assert!(if forward { key > *last } else { key < *last }, "strictly in order");
        }
        let number = u32::from_be_bytes(key[..4].try_into().expect("four bytes"));
        if number.is_multiple_of(STABLE) {
            seen.push(number);
            assert_eq!(cursor.value().expect("value"), Some(&b"stays"[..]));
        } else if let Some(value) = cursor.value().expect("value") {
            assert!(value.windows(2).all(|w| w[0] == w[1]), "one value, not parts of two");
        }
        last = Some(key);
        on = if forward { cursor.next() } else { cursor.prev() }.expect("step");
    }
    if !forward {
        seen.reverse();
    }
    let expected: Vec<u32> = (0..stable).map(|n| n * STABLE).collect();
    assert_eq!(seen, expected, "every key that stayed is seen once");
}

fn storm(page_size: usize, frames: u64, seconds: f64) {
    let site = Site::new(&Shape { page_size, frames, log_bytes: 64 << 20 });
    let tree = site.tree(TREE);
    let span = 12_000;
    let stable = span / STABLE;
    for n in 0..stable {
        site.put(&tree, &(n * STABLE).to_be_bytes(), b"stays").expect("put");
    }
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let (site, tree, stop) = (&site, &tree, &stop);
                scope.spawn(move || churn(site, tree, thread, stop, span - 200))
            })
            .collect();
        let walkers: Vec<_> = [true, false]
            .map(|forward| {
                let (tree, stop) = (&tree, &stop);
                scope.spawn(move || {
                    let mut walks = 0;
                    while !stop.load(Ordering::Relaxed) || walks == 0 {
                        walk(tree, forward, stable);
                        walks += 1;
                    }
                })
            })
            .into_iter()
            .collect();
        let compacting = {
            let (site, tree, stop) = (&site, &tree, &stop);
            scope.spawn(move || {
                let mut did = [0; 3];
                while !stop.load(Ordering::Relaxed) || did[0] == 0 {
                    let more = site.compact(tree).expect("a compaction");
                    (0..3).for_each(|kind| did[kind] += more[kind]);
                }
                did
            })
        };
        while began.elapsed() < Duration::from_secs_f64(seconds)
            && !writers.iter().any(|w| w.is_finished())
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        let steps: u64 = writers.into_iter().map(|w| w.join().expect("a writer")).sum();
        assert!(steps > 100, "{steps} steps");
        walkers.into_iter().for_each(|w| w.join().expect("a walker"));
        let did = compacting.join().expect("compacting");
        assert!(did.iter().all(|&steps| steps > 0), "joined, filled, moved: {did:?}");
    });
    let report = &site.check(&[&tree])[0];
    assert_eq!(report.rows, scan(&tree).len() as u64);
    walk(&tree, true, stable);
}

#[test]
fn writers_and_cursors_in_memory() {
    storm(4096, 8192, 2.0);
    storm(16384, 8192, 1.0);
}

#[test]
fn writers_and_cursors_in_a_small_pool() {
    storm(4096, 64, 2.0);
    storm(8192, 64, 1.0);
}

/// All threads append behind the last key: the same leaf is cut again and again, at its end.
#[test]
fn ascending_keys_from_many_threads() {
    for round in 0..5 {
        let site = Site::new(&Shape::of(4096, 256));
        let tree = site.tree(TREE);
        let next = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let key = next.fetch_add(1, Ordering::Relaxed);
                        if key >= 6_000 {
                            break;
                        }
                        // Large enough to go right alone when the last leaf is cut.
                        site.put(&tree, &key.to_be_bytes(), &[round; 700]).expect("put");
                    }
                });
            }
        });
        let report = &site.check(&[&tree])[0];
        assert_eq!(report.rows, 6_000);
        for key in 0u32..6_000 {
            let found = tree.get(&key.to_be_bytes(), &mut Vec::new()).expect("get");
            assert!(found.is_some(), "key {key} is found from the root");
        }
    }
}
