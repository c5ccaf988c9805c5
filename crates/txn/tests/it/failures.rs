//! Batches that fail in the middle leave every row as it was and every page free that they took.
use weir_base::{PageNo, TreeId};
use weir_btree::Tree;
use weir_device::{Fault, OpKind};
use weir_txn::{Batch, BatchOp, Intent, Isolation, Kind, Txn, TxnError, Wait};

use crate::support::{Rows, Site, rows, site};

fn filled(site: &Site, tree: &Tree, long: bool) -> Rows {
    let mut model = Rows::new();
    for n in 0u32..200 {
        let len = if long && n % 20 == 0 { 9_000 } else { 60 };
        let (key, value) = (n.to_be_bytes().to_vec(), vec![1; len]);
        site.auto.put(tree, &key, &value).expect("put");
        model.insert(key, value);
    }
    model
}

/// Deletes, replaces long by short and short by long, and inserts: all kinds of undo.
fn mixed(tree: &Tree, model: &Rows, long_bytes: usize) -> Batch {
    let mut batch = Batch::default();
    for (n, key) in model.keys().enumerate() {
        match n % 5 {
            0 => batch.add(tree, key, BatchOp::Delete),
            1 => batch.add(tree, key, BatchOp::Put(vec![2; 60])),
            2 => batch.add(tree, key, BatchOp::Put(vec![2; 200])),
            3 => batch.add(tree, key, BatchOp::Put(vec![2; long_bytes])),
            _ => batch.add(tree, &[key, &b"new"[..]].concat(), BatchOp::Put(vec![2; 30])),
        }
    }
    batch
}

#[test]
fn a_full_disk_in_the_middle_of_a_batch() {
    for long_bytes in [2_500, 5_000, 60_000] {
        let site = site(256, 4 << 20);
        let tree = site.tree(10);
        let model = filled(&site, &tree, true);
        site.faulty.full_disk(true);
        let batch = mixed(&tree, &model, long_bytes);
        let failed = site.auto.write(&batch);
        let Err(TxnError::Tree(e)) = failed else { panic!("the disk is full: {failed:?}") };
        assert!(e.to_string().contains("the disk is full"), "{e}");
        site.check(&[(&tree, &model)]);
        // Reads and small changes go on, and with room again so does the batch.
        site.auto.put(&tree, &0u32.to_be_bytes(), &[3; 10]).expect("put");
        site.faulty.full_disk(false);
        site.auto.write(&batch).expect("written");
        assert_eq!(rows(&tree).len(), 200);
        let now = rows(&tree);
        site.check(&[(&tree, &now)]);
    }
}

/// A batch whose last key is too long, after all kinds of changes.
#[test]
fn a_bad_key_takes_everything_back() {
    let site = site(64, 4 << 20);
    let tree = site.tree(10);
    let model = filled(&site, &tree, true);
    for long_bytes in [100, 5_000, 40_000] {
        let mut batch = mixed(&tree, &model, long_bytes);
        batch.add(&tree, &[0xff; 3_000], BatchOp::Put(vec![1; 5_000]));
        let failed = site.auto.write(&batch);
        assert!(matches!(failed, Err(TxnError::Tree(_))), "{failed:?}");
        site.check(&[(&tree, &model)]);
    }
}

/// When the device fails under a batch, the engine halts and the rows stay locked.
#[test]
fn a_broken_device_halts() {
    let site = site(16, 4 << 20);
    let tree = site.tree(10);
    let model = filled(&site, &tree, true);
    site.faulty.fail_all("pages", OpKind::Sync, Fault::Broken);
    let failed = site.auto.write(&mixed(&tree, &model, 60_000));
    let locked = match failed {
        Err(TxnError::RollbackFailed { .. }) => 1,
        // All that it needed was in memory, and the log is well.
        Err(TxnError::Tree(_)) => 0,
        other => panic!("{other:?}"),
    };
    assert!(site.env.pool.halted().is_some());
    assert_eq!(site.registry.len(), locked, "rows stay locked that could not be rolled back");
}

fn txn() -> Txn {
    Txn::new(Isolation::RepeatableRead, Wait::No)
}

/// Puts `key` in a transaction that does not wait.
fn put_by_other(site: &Site, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), TxnError> {
    let mut other = txn();
    let put = other.change(&site.context, tree, key, Intent::Put(value));
    match put.and_then(|_| site.commit(&mut other)) {
        Ok(_) => Ok(()),
        Err(e) => {
            let due = other.rollback(&site.context).expect("nothing was changed");
            site.background.after(due);
            Err(e)
        }
    }
}

/// Makes the disk full, and takes all pages that are still free.
fn fill_the_disk(site: &Site) -> Vec<PageNo> {
    site.faulty.full_disk(true);
    std::iter::from_fn(|| site.env.space.claim(1).ok()).flatten().collect()
}

/// A rollback that finds no room, since others have taken what it had left, is gone on with when
/// there is room again; until then all that it had locked stays so, and no other transaction is
/// held up.
#[test]
fn a_rollback_without_room_is_completed_later() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    let mut model = Rows::new();
    for key in [b"a", b"k"] {
        site.auto.put(&tree, key, &[1; 800]).expect("put");
        model.insert(key.to_vec(), vec![1; 800]);
    }
    let mut shrinks = txn();
    for key in [b"a", b"k"] {
        assert!(shrinks.change(&site.context, &tree, key, Intent::Put(&[2; 10])).expect("put"));
    }
    let mut none = Vec::new();
    let there = shrinks.get_locked(&site.context, &tree, b"z", Kind::Exclusive, &mut none);
    assert!(!there.expect("locked"));
    let taken = fill_the_disk(&site);
    // What it has left in the leaf is for others, whose next row has no room there.
    for n in 0u32.. {
        let key = [&b"l"[..], &n.to_be_bytes()].concat();
        match put_by_other(&site, &tree, &key, &[3; 40]) {
            Ok(()) => drop(model.insert(key, vec![3; 40])),
            Err(_) => break,
        }
    }
    let failed = shrinks.rollback(&site.context);
    assert!(failed.as_ref().is_err_and(|e| e.to_string().contains("the disk is full")));
    assert!(shrinks.has_ended() && shrinks.rollback(&site.context).is_ok());
    for _ in 0..3 {
        site.background.long_step(64).expect_err("there is no room yet");
        assert_eq!(site.background.losers(), 1);
        for key in [b"a", b"k", b"z"] {
            let refused = put_by_other(&site, &tree, key, &[4; 10]);
            assert!(matches!(refused, Err(TxnError::Lock(_))), "{refused:?}");
        }
    }
    site.faulty.full_disk(false);
    site.env.space.unclaim(&taken);
    while site.background.long_step(64).expect("there is room") {}
    assert_eq!(site.background.losers(), 0);
    site.check(&[(&tree, &model)]);
    for key in [b"a", b"k", b"z"] {
        put_by_other(&site, &tree, key, &[4; 10]).expect("not locked");
    }
}

/// A tree whose root cannot be noted down as in use is not made, and its page is free again. (It
/// was given back while its latch was held, which a thread that makes a map may wait for.)
#[test]
fn a_tree_whose_map_cannot_be_read_is_not_made() {
    let site = site(16, 4 << 20);
    let tree = site.tree(10);
    let mut model = filled(&site, &tree, true);
    // So much is changed in place that the map's page is not in memory any more.
    for n in (0..20).flat_map(|_| (0u32..200).filter(|n| n % 20 != 0)) {
        site.auto.put(&tree, &n.to_be_bytes(), &[3; 60]).expect("put");
        model.insert(n.to_be_bytes().to_vec(), vec![3; 60]);
    }
    (0..3).for_each(|_| assert_eq!(rows(&tree), model));
    let fault = site.faulty.fail_all("pages", OpKind::Read, Fault::Broken);
    let mut maker = txn();
    let failed = maker.make_tree(&site.context, TreeId(11)).err().expect("it cannot be read");
    assert!(failed.to_string().contains("reading page"), "{failed}");
    site.faulty.remove_rule(fault);
    maker.rollback(&site.context).expect("nothing was made");
    site.check(&[(&tree, &model)]);
    let mut maker = txn();
    let made = maker.make_tree(&site.context, TreeId(11)).expect("made");
    site.commit(&mut maker).expect("committed");
    site.check(&[(&tree, &model), (&made, &Rows::new())]);
}

/// What a commit left to do, and cannot be done now, keeps its place and is done later.
#[test]
fn what_cannot_be_completed_is_completed_later() {
    let site = site(16, 4 << 20);
    let (tree, other) = (site.tree(10), site.tree(11));
    let snapshot = site.registry.snapshot();
    for n in 0u32..6 {
        site.auto.put(&tree, &n.to_be_bytes(), &[1; 60_000]).expect("put");
    }
    for n in 0u32..6 {
        site.auto.put(&tree, &n.to_be_bytes(), &[2; 20]).expect("put");
    }
    let model = rows(&tree);
    // So many that none of the long values' pages is in memory any more.
    let others = filled(&site, &other, true);
    let fault = site.faulty.fail_all("pages", OpKind::Read, Fault::Broken);
    drop(snapshot);
    while site.background.purge(64) > 0 {}
    assert!(site.registry.oldest().is_some(), "the log that says what is left is kept");
    site.faulty.remove_rule(fault);
    while site.background.purge(64) > 0 {}
    site.check(&[(&tree, &model), (&other, &others)]);
}

/// Many rows that were deleted while an old snapshot was held are removed in bounded steps.
#[test]
fn a_step_of_purging_is_bounded_by_what_is_left_to_do() {
    let site = site(256, 4 << 20);
    let tree = site.tree(10);
    let keys = |from: u32| (from..from + 500).map(u32::to_be_bytes);
    for from in (0..4_000).step_by(500) {
        let mut batch = Batch::default();
        keys(from).for_each(|key| batch.add(&tree, &key, BatchOp::Put(vec![1; 10])));
        site.auto.write(&batch).expect("written");
    }
    let snapshot = site.registry.snapshot();
    for from in (0..4_000).step_by(500) {
        let mut batch = Batch::default();
        keys(from).for_each(|key| batch.add(&tree, &key, BatchOp::Delete));
        site.auto.write(&batch).expect("written");
    }
    drop(snapshot);
    let left = || tree.check(&mut |_| {}).expect("a sound tree").marked_rows;
    let (mut steps, mut before) = (0, left());
    assert_eq!(before, 4_000);
    while before > 0 {
        assert!(site.background.purge_some(256, false) > 0);
        let now = left();
        assert!(before - now <= 1_500, "{before} {now}");
        (steps, before) = (steps + 1, now);
    }
    assert!(steps > 1);
    site.check(&[(&tree, &Rows::new())]);
}
