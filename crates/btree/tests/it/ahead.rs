//! Leaves that a cursor has read before it comes to them.
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_base::TreeId;
use weir_btree::{Cursor, Tree, TreeError};
use weir_change::Header;

use crate::support::{Shape, Site, TREE};

const PAGE: usize = 4096;
/// Rows of a leaf.
const ROWS: u32 = 5;
const OTHER: TreeId = TreeId(8);

fn row(n: u32) -> (Vec<u8>, Vec<u8>) {
    (n.to_be_bytes().to_vec(), vec![n as u8; 700])
}

/// A tree of so many leaves, none of which is in memory.
fn absent(site: &Site, leaves: u32) -> Tree {
    let tree = site.tree(TREE);
    fill(site, &tree, leaves);
    crowd_out(site);
    tree
}

fn fill(site: &Site, tree: &Tree, leaves: u32) {
    let rows: Vec<_> = (0..leaves * ROWS).map(row).collect();
    let entries = rows.iter().map(|(key, value)| (key, value));
    site.load(tree, entries, site.txn(), site.txn(), &mut |_| {}).expect("loaded");
}

/// Has everything else leave memory.
fn crowd_out(site: &Site) {
    let frames = site.env.pool.residence().frames as u32;
    let other = site.tree(OTHER);
    fill(site, &other, frames * 2);
    // Twice: what was used often leaves too.
    for _ in 0..4 {
        for n in (0..frames * 2 * ROWS).step_by(ROWS as usize) {
            other.get(&n.to_be_bytes(), &mut Vec::new()).expect("a read");
        }
    }
    other.free_all(Header::default(), &mut |_| Ok(())).expect("freed");
}

/// What the pool has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    reads: u64,
    ahead: u64,
    batches: u64,
}

fn counts(site: &Site) -> Counts {
    let stats = site.env.pool.stats();
    let (ahead, batches) = (stats.read_ahead.get(), stats.read_ahead_batches.get());
    Counts { reads: stats.reads.get(), ahead, batches }
}

/// What `work` has counted.
fn counted(site: &Site, work: impl FnOnce()) -> Counts {
    let before = counts(site);
    work();
    let now = counts(site);
    Counts {
        reads: now.reads - before.reads,
        ahead: now.ahead - before.ahead,
        batches: now.batches - before.batches,
    }
}

/// Walks over `rows`, up or down, from a seek on; `each` is called at each.
fn walk(cursor: &mut Cursor, rows: Range<u32>, up: bool, mut each: impl FnMut(u32)) {
    let mut on = match up {
        true => cursor.seek(&rows.start.to_be_bytes()),
        false => cursor.seek_before(&rows.end.to_be_bytes()),
    };
    for at in 0..rows.len() as u32 {
        let n = if up { rows.start + at } else { rows.end - 1 - at };
        assert!(on.expect("a step"), "row {n} is there");
        let (key, value) = row(n);
        assert_eq!(cursor.key(), key);
        assert_eq!(cursor.value().expect("a value"), Some(&value[..]));
        each(n);
        on = if up { cursor.next() } else { cursor.prev() };
    }
}

/// Does `work` while two threads read what scans hand over; how many batches these were.
fn helped(site: &Site, work: impl FnOnce()) -> u64 {
    let pool = &site.env.pool;
    let (done, before) = (AtomicBool::new(false), pool.stats().read_ahead_handed_over.get());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    pool.step_ahead(Duration::from_millis(1));
                }
            });
        }
        // Ends the threads also where the work fails.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&done);
        work();
    });
    pool.stats().read_ahead_handed_over.get() - before
}

#[test]
fn another_thread_reads_what_comes_behind_and_each_leaf_once() {
    for up in [true, false] {
        let site = Site::new(&Shape::of(PAGE, 2048));
        let leaves = 800;
        let tree = absent(&site, leaves);
        let mut handed_over = 0;
        let walked = counted(&site, || {
            handed_over = helped(&site, || {
                // So slow that the other threads have their turn.
                walk(&mut Cursor::new(tree), 0..leaves * ROWS, up, |n| {
                    if n.is_multiple_of(8 * ROWS) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
            });
        });
        let leaves = u64::from(leaves);
        assert!(walked.ahead >= leaves - 8, "{walked:?}");
        assert!((leaves..=leaves + 8).contains(&walked.reads), "none is read twice: {walked:?}");
        assert!(handed_over >= 6 && handed_over < walked.batches, "{handed_over} of {walked:?}");
    }
}

/// Rows that come and go split and join leaves while the batch behind is on its way.
#[test]
fn leaves_that_are_split_under_a_helped_walk_hide_no_row() {
    let site = Site::new(&Shape::of(PAGE, 1024));
    let tree = absent(&site, 1500);
    let (stop, all) = (AtomicBool::new(false), 0..1500 * ROWS);
    let handed_over = helped(&site, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(7);
                while !stop.load(Ordering::Relaxed) {
                    // Between the rows that the walk asks for, behind them, in its way.
                    let mut key = random.u32(all.clone()).to_be_bytes().to_vec();
                    key.push(random.u8(..));
                    site.put(&tree, &key, &[0xee; 700]).expect("a put");
                }
            });
            for up in [true, false, true] {
                let mut cursor = Cursor::new(tree.clone());
                let mut on = if up { cursor.seek_first() } else { cursor.seek_last() };
                let mut rows = 0;
                while on.expect("a step") {
                    if cursor.key().len() == 4 {
                        let n = if up { rows } else { all.end - 1 - rows };
                        assert_eq!(cursor.key(), n.to_be_bytes());
                        rows += 1;
                    }
                    on = if up { cursor.next() } else { cursor.prev() };
                }
                assert_eq!(rows, all.end);
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    assert!(handed_over > 0);
}

#[test]
fn a_long_walk_reads_ahead_in_batches_that_grow_and_each_leaf_once() {
    for up in [true, false] {
        let site = Site::new(&Shape::of(PAGE, 2048));
        let leaves = 800;
        let tree = absent(&site, leaves);
        let walked = counted(&site, || {
            walk(&mut Cursor::new(tree), 0..leaves * ROWS, up, |_| {});
        });
        let leaves = u64::from(leaves);
        // The first two come alone; nodes besides.
        assert!(walked.ahead >= leaves - 4, "{walked:?}");
        assert!((leaves..=leaves + 8).contains(&walked.reads), "none is read twice: {walked:?}");
        // 4, 8, 16, and a quarter of a scan's share of the pool from then on, over ends of nodes.
        assert!((4 + 24..=4 + 24 + 1).contains(&walked.batches), "{walked:?}");
    }
}

#[test]
fn nothing_is_read_ahead_of_a_walk_that_meets_leaves_in_memory() {
    let site = Site::new(&Shape::of(PAGE, 2048));
    // Fewer than the short queue has.
    let tree = absent(&site, 400);
    let all = 0..150 * ROWS;
    walk(&mut Cursor::new(tree.clone()), all.clone(), true, |_| {});
    for up in [true, false] {
        let walked = counted(&site, || {
            walk(&mut Cursor::new(tree.clone()), all.clone(), up, |_| {});
        });
        assert_eq!(walked, Counts { reads: 0, ahead: 0, batches: 0 });
    }
}

#[test]
fn short_walks_read_little_that_they_do_not_come_to() {
    let site = Site::new(&Shape::of(PAGE, 2048));
    let leaves = 800;
    let tree = absent(&site, leaves);
    let mut cursor = Cursor::new(tree);
    // One leaf each, and the one behind it: as many walks as there are.
    let walked = counted(&site, || {
        for n in 0..100 {
            walk(&mut cursor, n * 7 * ROWS..n * 7 * ROWS + ROWS + 1, true, |_| {});
        }
    });
    assert_eq!((walked.ahead, walked.batches), (0, 0));
    assert!(walked.reads <= 210, "{walked:?}");
}

#[test]
fn what_lies_beyond_the_expected_range_is_not_read() {
    for up in [true, false] {
        let site = Site::new(&Shape::of(PAGE, 2048));
        let tree = absent(&site, 800);
        let range = 100 * ROWS..150 * ROWS;
        let mut cursor = Cursor::new(tree);
        let (from, to) = (range.start.to_be_bytes(), range.end.to_be_bytes());
        cursor.expect_range(&from, Some(&to));
        let walked = counted(&site, || walk(&mut cursor, range, up, |_| {}));
        // The last step goes to the leaf behind the range, as any does; nodes besides.
        assert!(walked.ahead >= 46, "{walked:?}");
        assert!((50..=54).contains(&walked.reads), "{walked:?}");
    }
}

/// Walks whose number of rows is known beforehand: what they need is read in one batch when they
/// leave their first leaf, and nothing behind it.
#[test]
fn a_counted_walk_reads_what_it_needs_at_once_and_no_more() {
    for (up, length) in [(true, 1), (false, 1), (true, 20), (false, 20), (true, 40)] {
        let site = Site::new(&Shape::of(PAGE, 2048));
        let tree = absent(&site, 800);
        let mut cursor = Cursor::new(tree);
        cursor.expect_rows(u64::from(length * ROWS));
        let mut walked = Vec::new();
        for first in (50..750).step_by(100) {
            let rows = first * ROWS..(first + length) * ROWS;
            // Not the step behind the last row, which goes to the next leaf.
            let rows = if up { rows.start..rows.end - 1 } else { rows.start + 1..rows.end };
            let mut at = 0;
            walked.push(counted(&site, || {
                let mut on = match up {
                    true => cursor.seek(&rows.start.to_be_bytes()),
                    false => cursor.seek_before(&rows.end.to_be_bytes()),
                };
                while on.expect("a step") && at < rows.len() {
                    at += 1;
                    on = match at < rows.len() {
                        true if up => cursor.next(),
                        true => cursor.prev(),
                        false => Ok(true),
                    };
                }
            }));
            assert_eq!(at, rows.len());
        }
        let (reads, batches) =
            walked.iter().fold((0, 0), |(r, b), walk| (r + walk.reads, b + walk.batches));
        // A node above the leaves now and then, at whose end a batch ends; the first leaf's own.
        let (walks, length) = (walked.len() as u64, u64::from(length));
        assert!((walks * length..=walks * (length + 1) + 4).contains(&reads), "{walked:?}");
        let most = if length > 1 { walks * 2 } else { 0 };
        assert!((most / 2..=most).contains(&batches), "{length}: {walked:?}");
    }
}

/// More than was expected is shown, too, and read as of a walk that nothing is known of.
#[test]
fn a_walk_beyond_what_was_expected_goes_on() {
    let site = Site::new(&Shape::of(PAGE, 2048));
    let tree = absent(&site, 800);
    let mut cursor = Cursor::new(tree);
    cursor.expect_rows(u64::from(10 * ROWS));
    let walked = counted(&site, || walk(&mut cursor, 100 * ROWS..300 * ROWS, true, |_| {}));
    // It ends within a batch.
    assert!((200..=264).contains(&walked.reads), "{walked:?}");
    assert!(walked.ahead >= 190 && walked.batches <= 12, "{walked:?}");
}

/// Pages that are used again and again stay, and the walk takes no more than its part.
#[test]
fn a_walk_that_reads_ahead_leaves_the_pages_alone_that_others_use() {
    let site = Site::new(&Shape::of(PAGE, 512));
    let tree = absent(&site, 3000);
    let hot = site.tree(TreeId(9));
    fill(&site, &hot, 300);
    let use_all = || {
        for n in (0..300 * ROWS).step_by(ROWS as usize) {
            hot.get(&n.to_be_bytes(), &mut Vec::new()).expect("a read");
        }
    };
    use_all();
    use_all();
    let all = counted(&site, || {
        let mut reads = 0;
        walk(&mut Cursor::new(tree), 0..3000 * ROWS, true, |n| {
            // Once for each tenth of the pool that comes by.
            if n.is_multiple_of(50 * ROWS) {
                reads += counted(&site, use_all).reads;
            }
        });
        assert!(reads <= 30, "of the 300 that are used {reads} were read again");
    });
    assert!(all.ahead >= 2_900 && all.reads <= 3_060, "{all:?}");
}

#[test]
fn a_tiny_pool_is_not_filled_by_what_is_read_ahead() {
    for (frames, most) in [(16, 0), (31, 0), (32, 2), (64, 4), (160, 10)] {
        let site = Site::new(&Shape::of(PAGE, frames));
        let tree = absent(&site, 400);
        let walked = counted(&site, || walk(&mut Cursor::new(tree), 0..400 * ROWS, true, |_| {}));
        assert!(walked.ahead <= walked.batches * most, "{frames} frames: {walked:?}");
        assert_eq!(walked.batches > 0, most > 0, "{frames} frames: {walked:?}");
        assert!(walked.reads <= 410, "{frames} frames, none is read twice: {walked:?}");
    }
}

/// Several walks at once, each of which is so slow that what is read for one leaves memory before
/// it comes there: they do with smaller batches.
#[test]
fn pages_that_leave_before_they_are_used_make_batches_smaller() {
    let site = Site::new(&Shape::of(PAGE, 256));
    let tree = absent(&site, 2000);
    let walked = counted(&site, || {
        let mut cursors: Vec<Cursor> = (0..12).map(|_| Cursor::new(tree.clone())).collect();
        for (n, cursor) in cursors.iter_mut().enumerate() {
            assert!(cursor.seek(&(n as u32 * 150 * ROWS).to_be_bytes()).expect("a seek"));
        }
        for _ in 0..149 {
            for cursor in &mut cursors {
                // A leaf of each in turns.
                for _ in 0..ROWS {
                    assert!(cursor.next().expect("a step"));
                }
            }
        }
    });
    let leaves = 12 * 150;
    assert!(walked.batches > 0 && walked.reads <= leaves * 13 / 10, "{walked:?}");
}

#[test]
fn a_damaged_leaf_that_the_walk_does_not_come_to_is_no_error() {
    let site = Site::new(&Shape::of(PAGE, 1024));
    let tree = absent(&site, 200);
    let [bad, good] = [40, 41].map(|leaf| {
        let mut cursor = Cursor::new(tree.clone());
        assert!(cursor.seek(&(leaf * ROWS).to_be_bytes()).expect("a seek"));
        cursor.page()
    });
    crowd_out(&site);
    site.volume.corrupt("pages", u64::from(bad.0) * PAGE as u64 + 99, 8).expect("corrupted");
    let pool = &site.env.pool;
    let lost = || pool.stats().lost.get();
    let mut cursor = Cursor::new(tree.clone());
    let walked = counted(&site, || walk(&mut cursor, 0..39 * ROWS, true, |_| {}));
    assert!(walked.ahead > 39, "it was read over: {walked:?}");
    assert!(!pool.is_resident(bad) && pool.is_resident(good));
    assert_eq!((lost(), pool.findings().len()), (0, 0), "no thread has asked for it");
    // The walk comes to it, and to the rows behind it once it is told to.
    let mut found = Ok(true);
    while matches!(found, Ok(true)) {
        found = cursor.next();
    }
    assert!(matches!(&found, Err(e) if e.is_damage()), "{found:?}");
    assert_eq!((lost(), pool.findings().len()), (1, 1));
    walk(&mut cursor, 41 * ROWS..200 * ROWS, true, |_| {});
    assert!(matches!(cursor.seek(&(40 * ROWS).to_be_bytes()), Err(TreeError::Pool(_))));
}

/// A tree is freed, and its pages go to another one, while cursors walk over it.
#[test]
fn a_tree_is_dropped_under_walks_that_read_ahead() {
    for round in 0..4 {
        let site = Site::new(&Shape::of(PAGE, 512));
        let tree = absent(&site, 1500);
        let (stop, came) = (AtomicBool::new(false), AtomicBool::new(false));
        let walked = counted(&site, || {
            let walks = || {
                std::thread::scope(|scope| {
                    for up in [true, false] {
                        let (tree, stop, came) = (&tree, &stop, &came);
                        scope.spawn(move || {
                            while !stop.load(Ordering::Relaxed) {
                                let mut cursor = Cursor::new(tree.clone());
                                let mut on =
                                    if up { cursor.seek_first() } else { cursor.seek_last() };
                                let mut last = None;
                                while let Ok(true) = on {
                                    let n =
                                        u32::from_be_bytes(cursor.key().try_into().expect("a key"));
                                    assert!(last.is_none_or(|last| (n > last) == up), "in order");
                                    assert_eq!(
                                        cursor.value().expect("a value"),
                                        Some(&row(n).1[..])
                                    );
                                    last = Some(n);
                                    came.store(true, Ordering::Relaxed);
                                    on = if up { cursor.next() } else { cursor.prev() };
                                }
                                match on {
                                    Ok(_) => {}
                                    Err(TreeError::Gone(_)) => return,
                                    Err(e) => panic!("{e}"),
                                }
                            }
                        });
                    }
                    while !came.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10 * round));
                    tree.free_all(Header::default(), &mut |_| {
                        site.pump();
                        Ok(())
                    })
                    .expect("freed");
                    let other = site.tree(TreeId(20));
                    for n in 0..1500 * ROWS {
                        let (key, _) = row(n);
                        site.put(&other, &key, &[0xee; 700]).expect("a put");
                    }
                    stop.store(true, Ordering::Relaxed);
                })
            };
            helped(&site, walks);
        });
        assert!(walked.batches > 0, "{walked:?}");
        assert_eq!(site.env.pool.stats().lost.get(), 0);
        assert_eq!(site.env.pool.findings(), Vec::new());
        assert!(site.env.pool.ahead_max() > 0);
    }
}

/// Keys of one row of each `step`th leaf.
fn keys_of(leaves: u32, step: u32) -> Vec<[u8; 4]> {
    (0..leaves).step_by(step as usize).map(|leaf| (leaf * ROWS + 2).to_be_bytes()).collect()
}

#[test]
fn the_leaves_of_many_keys_are_read_at_once() {
    let site = Site::new(&Shape::of(PAGE, 1024));
    let tree = absent(&site, 300);
    let keys = keys_of(300, 3);
    let most = site.env.pool.ahead_max().min(64);
    assert!((2..keys.len()).contains(&most), "{most}");
    let rest = |from: usize| keys[from..].iter().map(|key| &key[..]);
    let mut read = weir_btree::LeavesRead::default();
    let first = counted(&site, || read = tree.read_leaves(rest(0)));
    assert_eq!((read.keys, read.pages), (most, most as u64));
    assert_eq!((first.ahead, first.batches), (most as u64, 1));
    let get = |key: &[u8; 4]| {
        assert!(tree.get(key, &mut Vec::new()).expect("a read").is_some());
    };
    let none = counted(&site, || keys[..most].iter().for_each(get));
    assert_eq!(none.reads, 0, "they are there");
    // Keys of leaves that are there are passed over; one absent leaf is left to its reader.
    let mut again = weir_btree::LeavesRead::default();
    let one = counted(&site, || again = tree.read_leaves(rest(0).take(most + 1)));
    assert_eq!((again.keys, again.pages, one.reads), (most + 1, 0, 0));
    let second = counted(&site, || read = tree.read_leaves(rest(0)));
    assert_eq!((read.keys, second.ahead), (keys.len(), (keys.len() - most) as u64));
    // A tree that is one leaf has nothing above it that knows.
    let small = site.tree(TreeId(9));
    assert_eq!(small.read_leaves([&b"k"[..]].into_iter()), weir_btree::LeavesRead::default());
}
