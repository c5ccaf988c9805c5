//! What is left to do beside others that end, archive, log again and roll back: all of it is done,
//! and nothing of it holds the log afterwards.
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use weir_btree::Tree;
use weir_txn::{Intent, Isolation, Txn, Wait};

use crate::support::{Rows, Site, relogging, rows, site};

/// Long enough, as a rule, for a thread that has begun to come to where it waits.
const LONG: Duration = Duration::from_millis(2);

fn filled(site: &Site, tree: &Tree, count: u32, len: usize) {
    for n in 0..count {
        site.auto.put(tree, &n.to_be_bytes(), &vec![1; len]).expect("put");
    }
}

/// Removes rows beside a snapshot until what that leaves to do is gathered once, and purges then:
/// at once, so that what was gathered is done beside those that have left it.
fn gathered(len: usize) {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    filled(&site, &tree, 2_000, len);
    let snapshot = site.registry.snapshot();
    let (mut n, mut left) = (0u32, 0);
    while left <= site.registry.stats().left_bytes {
        left = site.registry.stats().left_bytes;
        assert!(site.auto.delete(&tree, &n.to_be_bytes()).expect("deleted").is_some());
        while site.background.archive().expect("gathered") {}
        n += 1;
    }
    drop(snapshot);
    relogging(&site, || while site.background.purge(usize::MAX) > 0 {});
    while site.background.archive().expect("given up") || site.background.purge(usize::MAX) > 0 {}
    let model: Rows = (n..2_000).map(|n| (n.to_be_bytes().to_vec(), vec![1; len])).collect();
    site.check(&[(&tree, &model)]);
}

#[test]
fn gathered_removals_are_done_beside_their_transactions() {
    gathered(20);
}

#[test]
fn gathered_removals_of_long_values_come_before_their_chains() {
    gathered(5_000);
}

/// A thread that logs again meets others just as they are completed, archived and forgotten. No
/// place in the log is kept for one that is known no more: it would be kept for ever.
#[test]
fn a_forgotten_transaction_does_not_pin_the_log() {
    let site = site(1024, 1 << 20);
    let site = site.with_versions_max(2_000);
    let tree = site.tree(10);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                site.context.relog_all().expect("relogged");
            }
        });
        let mut kept = None;
        for _ in 0..60 {
            let snapshot = site.registry.snapshot();
            for n in 0..3_000u32 {
                let key = (n % 400).to_be_bytes();
                if n % 3 == 0 {
                    site.auto.delete(&tree, &key).expect("deleted");
                } else {
                    site.auto.put(&tree, &key, &[n as u8; 300]).expect("put");
                }
                if n % 64 == 63 {
                    while site.background.archive().expect("archived") {}
                }
            }
            drop(snapshot);
            while site.background.purge(24) > 0 || site.background.archive().expect("left") {}
            kept = site.registry.oldest();
            if kept.is_some() {
                break;
            }
        }
        stop.store(true, SeqCst);
        assert_eq!(kept, None);
    });
    let now = rows(&tree);
    site.check(&[(&tree, &now)]);
}

/// A row that was removed and put again is put back as removed just when the removal is purged,
/// which has been at the row already and is busy with others of its turn.
#[test]
fn a_mark_is_not_restored_behind_the_purge_of_its_row() {
    let site = site(256, 4 << 20);
    let (tree, other) = (site.tree(10), site.tree(11));
    for tree in [&tree, &other] {
        site.auto.put(tree, b"k", b"first").expect("put");
    }
    let snapshot = site.registry.snapshot();
    assert!(site.auto.delete(&tree, b"k").expect("deleted").is_some());
    let mut second = Txn::new(Isolation::ReadCommitted, Wait::No);
    assert!(second.change(&site.context, &tree, b"k", Intent::Put(b"second")).expect("put"));
    assert!(site.auto.delete(&other, b"k").expect("deleted").is_some());
    drop(snapshot);
    let held = site.env.pool.exclusive(other.root()).expect("the other tree's leaf");
    let began = site.log.end();
    std::thread::scope(|scope| {
        scope.spawn(|| site.background.purge(64));
        // Until the log says that the first removal is done.
        while site.log.end() == began {
            std::thread::yield_now();
        }
        // In a thread of its own: this one holds a latch.
        let rolled_back = scope.spawn(|| second.rollback(&site.context));
        rolled_back.join().expect("joined").expect("rolled back");
        drop(held);
    });
    while site.background.purge(64) > 0 {}
    site.check(&[(&tree, &Rows::new()), (&other, &Rows::new())]);
}

/// The same while the last snapshot that needs the mark is dropped: rollback and purge both wait
/// for the leaf then.
#[test]
fn nor_when_the_last_snapshot_goes_before_the_leaf_is_free() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    for _ in 0..50 {
        site.auto.put(&tree, b"k", b"first").expect("put");
        let snapshot = site.registry.snapshot();
        assert!(site.auto.delete(&tree, b"k").expect("deleted").is_some());
        let mut second = Txn::new(Isolation::ReadCommitted, Wait::No);
        assert!(second.change(&site.context, &tree, b"k", Intent::Put(b"second")).expect("put"));
        let held = site.env.pool.exclusive(tree.root()).expect("the leaf");
        std::thread::scope(|scope| {
            scope.spawn(|| second.rollback(&site.context).expect("rolled back"));
            std::thread::sleep(LONG);
            drop(snapshot);
            scope.spawn(|| site.background.purge(64));
            std::thread::sleep(LONG);
            drop(held);
        });
        while site.background.purge(64) > 0 {}
        site.check(&[(&tree, &Rows::new())]);
    }
}

/// A transaction that commits one row, or looks after the log, does a part of what small ones have
/// left, and nothing of what a large one has: that may take long.
#[test]
fn short_steps_leave_large_purges_alone() {
    let site = site(1024, 16 << 20);
    let tree = site.tree(10);
    filled(&site, &tree, 5_000, 20);
    let txn = || Txn::new(Isolation::ReadCommitted, Wait::No);
    let deletes = |keys: std::ops::Range<u32>| {
        let mut txn = txn();
        for n in keys {
            let done = txn.change(&site.context, &tree, &n.to_be_bytes(), Intent::Delete);
            assert!(done.expect("deleted"));
        }
        site.commit(&mut txn).expect("committed");
    };
    let marked = || tree.check(&mut |_| {}).expect("a sound tree").marked_rows;
    let snapshot = site.registry.snapshot();
    deletes(0..2_000);
    (2_000..5_000).step_by(500).for_each(|from| deletes(from..from + 500));
    drop(snapshot);
    assert_eq!(marked(), 5_000);
    for left in [4_000, 3_000, 2_000, 2_000] {
        site.background.short_step().expect("a step");
        assert_eq!(marked(), left);
    }
    site.auto.put(&tree, b"k", b"v").expect("put");
    let mut small = txn();
    assert!(small.change(&site.context, &tree, b"k", Intent::Delete).expect("deleted"));
    site.commit(&mut small).expect("committed");
    assert_eq!(marked(), 2_000);
    while site.background.long_step(64).expect("a step") {}
    site.check(&[(&tree, &Rows::new())]);
}
