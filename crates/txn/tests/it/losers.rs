//! Losers that free a whole tree: in parts, so that neither the log nor a transaction that closes
//! waits for all.
use std::time::{Duration, Instant};

use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Change, Tree, Value};
use weir_change::Header;
use weir_page::Flags;
use weir_txn::{
    Background, Context, Isolation, RecoveredState, RecoveredTxn, Txn, UndoEntry, Wait,
};

use crate::support::{Rows, Site, rows, site};

const LOG_BYTES: u64 = 640 << 10;
const TREE: TreeId = TreeId(50);
/// So many changes of a loser are rolled back in a step.
const STEP: usize = 256;

/// A tree of some two thousand pages, like an archive of versions: made by a transaction that is
/// open, with rows that are not rolled back one by one.
fn archive(site: &Site) -> (TxnId, PageNo) {
    let mut maker = Txn::new(Isolation::ReadCommitted, Wait::No);
    let tree = maker.make_tree(&site.context, TREE).expect("a tree");
    let id = maker.id().expect("a number");
    let header = Header { txn: Some(id), ..Header::default() };
    let value = Value { bytes: &[7; 1_000], flags: Flags::NONE };
    for n in 0..6_000u32 {
        site.context.relog_all().expect("relogged");
        site.context.admit(2_000).expect("admitted");
        tree.put(&n.to_be_bytes(), &Change::restoring(header), value).expect("a version");
    }
    // A transaction that opens the database again knows of no locks.
    site.context.locks().end(id);
    (id, tree.root())
}

/// As recovery finds it, whatever was freed before the crash.
fn resume(background: &Background, (id, root): (TxnId, PageNo)) {
    let undo = vec![UndoEntry::Tree { tree: TREE, root }];
    let found = RecoveredTxn { id, state: RecoveredState::Loser, undo, tasks: Vec::new() };
    assert!(background.resume(found).expect("resumed").is_none());
    assert_eq!(background.losers(), 1);
}

fn check(site: &Site, tree: &Tree) {
    let now: Rows = rows(tree);
    site.check(&[(tree, &now)]);
}

#[test]
fn a_tree_is_freed_in_steps_between_which_others_write() {
    let site = site(1024, LOG_BYTES);
    let tree = site.tree(10);
    resume(&site.background, archive(&site));
    let (mut steps, mut used) = (0, site.env.space.used());
    assert!(used > 2_000, "{used} pages are not much");
    assert!(!site.background.roll_back_first(STEP).expect("no step"), "its rows are not met");
    while site.background.losers() > 0 {
        assert!(site.background.long_step(STEP).expect("a step"));
        let now = site.env.space.used();
        assert!(used - now <= 2 * STEP as u64, "{} pages in one step", used - now);
        (steps, used) = (steps + 1, now);
        // More than the log holds, all in all: it is logged again meanwhile.
        for n in 0..100u32 {
            site.auto.put(&tree, &n.to_be_bytes(), &[steps as u8; 900]).expect("put");
        }
        site.background.short_step().expect("a step");
        let age = site.log.end().bytes_since(site.log.checkpoint());
        assert!(age <= site.log.limit_bytes(), "{age} bytes of log are held");
    }
    assert!(steps >= 5, "{steps} steps");
    while site.background.purge(64) > 0 {}
    check(&site, &tree);
}

#[test]
fn freeing_a_tree_waits_for_admission_and_quits_when_asked() {
    let site = site(1024, LOG_BYTES);
    let tree = site.tree(10);
    let loser = archive(&site);
    let used = site.env.space.used();
    let admits = Box::new(|_| Ok(()));
    let never = Box::new(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(false)
    });
    let full = Context::new(site.env.clone(), site.registry.clone(), admits);
    let context = std::sync::Arc::new(full.with_try_admission(never));
    let full = Background::new(context.clone());
    resume(&full, loser);
    std::thread::scope(|scope| {
        let stepping = scope.spawn(|| full.long_step(STEP));
        // It has begun, and stands where it may not go on.
        let begun = Instant::now();
        while used == site.env.space.used() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(200));
        assert!(!full.roll_back_first(STEP).expect("no step"), "opening waits for no tree");
        let (waits, freed) = (!stepping.is_finished(), used - site.env.space.used());
        context.quit();
        let quit = Instant::now();
        let _ = stepping.join().expect("no panic");
        assert!(waits && (1..STEP as u64).contains(&freed), "{freed} pages, not admitted");
        assert!(quit.elapsed() < Duration::from_secs(60));
    });
    assert!(!full.long_step(STEP).expect("nothing is begun any more"));
    assert!(used - site.env.space.used() < STEP as u64);
    // The next opening goes on.
    resume(&site.background, loser);
    while site.background.long_step(STEP).expect("a step") {}
    check(&site, &tree);
}
