//! Snapshots are taken while writers of single rows wait for something slow.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use weir_base::PageNo;
use weir_btree::Tree;

use crate::support::{Rows, Site, rows, site};

/// Long enough for a thread that has something to do, on a busy machine.
const LONG: Duration = Duration::from_secs(5);

/// Waits until `count` stands still: the threads that count there wait for something.
fn stands_still(count: &AtomicU32) {
    let mut last = (u32::MAX, 0);
    while last.1 < 20 {
        std::thread::sleep(Duration::from_millis(10));
        let now = count.load(SeqCst);
        last = (now, if now == last.0 { last.1 + 1 } else { 0 });
    }
}

/// Takes a page that the writes of `write` need beyond the row's leaf, as a device would that does
/// not answer, and takes a snapshot when they are stuck.
fn snapshot_beside(site: &Site, page: PageNo, write: impl Fn(u32) + Sync) {
    let held = site.env.pool.exclusive(page).expect("the page");
    let (count, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                write(count.fetch_add(1, SeqCst));
            }
        });
        stands_still(&count);
        let (tell, told) = mpsc::channel();
        let registry = site.registry.clone();
        scope.spawn(move || {
            drop(registry.snapshot());
            tell.send(())
        });
        let taken = told.recv_timeout(LONG);
        stop.store(true, SeqCst);
        drop(held);
        assert!(taken.is_ok(), "the snapshot waits for a writer that waits for a page");
    });
}

fn check(site: &Site, tree: &Tree) {
    while site.background.purge(64) > 0 {}
    let now: Rows = rows(tree);
    site.check(&[(tree, &now)]);
}

#[test]
fn beside_a_writer_that_makes_room() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    // A leaf that is cut needs a page, which the map says.
    snapshot_beside(&site, PageNo(0), |n| {
        site.auto.put(&tree, &n.to_be_bytes(), &[1; 300]).expect("put");
    });
    check(&site, &tree);
}

#[test]
fn beside_a_writer_that_joins_leaves() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    for n in 0..100u32 {
        site.auto.put(&tree, &n.to_be_bytes(), &[1; 300]).expect("put");
    }
    // A leaf that is joined with another one is free then, which the map says.
    snapshot_beside(&site, PageNo(0), |n| {
        site.auto.delete(&tree, &n.to_be_bytes()).expect("removed");
    });
    check(&site, &tree);
}
