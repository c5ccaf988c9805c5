//! Transactions whose undo is more than memory holds: it is stored in pages, and everything is as
//! it would be without that.
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use weir_btree::Tree;
use weir_txn::{Batch, BatchOp, Intent, Isolation, Savepoint, Txn, Wait};

use crate::support::{Rows, Site, rows, site};

fn txn() -> Txn {
    Txn::new(Isolation::RepeatableRead, Wait::No)
}

fn filled(site: &Site, tree: &Tree, count: u32) -> Rows {
    let mut model = Rows::new();
    for n in 0..count {
        let len = if n % 50 == 7 { 9_000 } else { 200 };
        let (key, value) = (n.to_be_bytes().to_vec(), vec![1; len]);
        site.auto.put(tree, &key, &value).expect("put");
        model.insert(key, value);
    }
    model
}

/// Purges until nothing is left.
fn purge(site: &Site) {
    while site.background.purge(64) > 0 {}
}

#[test]
fn a_batch_of_more_than_memory_may_hold() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let mut model = filled(&site, &tree, 2_000);
    let mut batch = Batch::default();
    for (n, (key, value)) in model.iter_mut().enumerate() {
        *value = vec![2; 100 + n % 200];
        batch.add(&tree, key, BatchOp::Put(value.clone()));
    }
    site.auto.write(&batch).expect("written");
    purge(&site);
    site.check(&[(&tree, &model)]);
}

#[test]
fn a_snapshot_from_before_reads_what_was_stored() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let before = filled(&site, &tree, 1_500);
    let mut reader = txn();
    reader.snapshot(&site.context);
    let mut writer = txn();
    let pages_before = site.env.space.used();
    for n in 0u32..1_500 {
        let key = n.to_be_bytes();
        let intent = if n % 3 == 0 { Intent::Delete } else { Intent::Put(&[3; 150]) };
        assert!(writer.change(&site.context, &tree, &key, intent).expect("changed"));
    }
    let all_as_before = |reader: &mut Txn| {
        let mut value = Vec::new();
        for (key, old) in &before {
            assert!(reader.get(&site.context, &tree, key, &mut value).expect("read"));
            assert!(value == *old, "{key:?}");
        }
    };
    all_as_before(&mut reader);
    assert!(site.env.space.used() > pages_before + 50, "undo lies in pages");
    site.commit(&mut writer).expect("committed");
    all_as_before(&mut reader);
    purge(&site);
    all_as_before(&mut reader);
    reader.rollback(&site.context).expect("ended");
    purge(&site);
    let after = before.iter().enumerate().filter(|(n, _)| n % 3 != 0);
    let after: Rows = after.map(|(_, (key, _))| (key.clone(), vec![3; 150])).collect();
    site.check(&[(&tree, &after)]);
}

/// Each reads the segments that it comes to once, not once for each row.
#[test]
fn readers_at_different_places_leave_each_other_what_they_have_read() {
    // Of the segments that are read in turns the pool has no room for two.
    let site = site(64, 16 << 20);
    let tree = site.tree(10);
    let key = |n: u32| n.to_be_bytes();
    for n in 0..4_000 {
        site.auto.put(&tree, &key(n), &[1; 200]).expect("put");
    }
    let mut readers = [txn(), txn(), txn(), txn()];
    readers.iter_mut().for_each(|reader| drop(reader.snapshot(&site.context).cloned()));
    let mut writer = txn();
    for n in 0..4_000 {
        let put = Intent::Put(&[2; 200]);
        assert!(writer.change(&site.context, &tree, &key(n), put).expect("put"));
    }
    let reads = site.env.pool.stats().reads.get();
    let mut value = Vec::new();
    for n in 0..500 {
        for (reader, from) in readers.iter_mut().zip([0, 1_000, 2_000, 3_000]) {
            assert!(reader.get(&site.context, &tree, &key(from + n), &mut value).expect("read"));
            assert_eq!(value, [1; 200]);
        }
    }
    let reads = site.env.pool.stats().reads.get() - reads;
    assert!(reads < 1_000, "{reads} pages for 2,000 rows, all side by side");
}

#[derive(Clone, Debug)]
enum Act {
    Put {
        key: u16,
        len: u16,
    },
    /// Many rows one after the other.
    Fill {
        from: u16,
        count: u16,
    },
    Delete {
        key: u16,
    },
    Sweep {
        from: u16,
        count: u16,
    },
    Savepoint,
    /// To the savepoint of this number, modulo how many there are.
    Back(u8),
}

fn any_act() -> impl Strategy<Value = Act> {
    let key = || 0u16..600;
    prop_oneof![
        4 => (key(), prop_oneof![0u16..400, Just(5_000u16)])
            .prop_map(|(key, len)| Act::Put { key, len }),
        4 => (key(), 1u16..300).prop_map(|(from, count)| Act::Fill { from, count }),
        3 => key().prop_map(|key| Act::Delete { key }),
        2 => (key(), 1u16..300).prop_map(|(from, count)| Act::Sweep { from, count }),
        3 => Just(Act::Savepoint),
        3 => any::<u8>().prop_map(Act::Back),
    ]
}

struct Play<'s> {
    site: &'s Site,
    tree: &'s Tree,
    txn: Txn,
    model: Rows,
    savepoints: Vec<(Savepoint, Rows)>,
}

impl Play<'_> {
    fn put(&mut self, key: u16, len: u16) {
        let (key, value) = (key.to_be_bytes(), vec![len as u8; usize::from(len)]);
        let done = self.txn.change(&self.site.context, self.tree, &key, Intent::Put(&value));
        assert!(done.expect("put"));
        self.model.insert(key.to_vec(), value);
    }

    fn delete(&mut self, key: u16) {
        let key = key.to_be_bytes();
        let done = self.txn.change(&self.site.context, self.tree, &key, Intent::Delete);
        assert_eq!(done.expect("deleted"), self.model.remove(&key[..]).is_some());
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Put { key, len } => self.put(key, len),
            Act::Fill { from, count } => (from..from + count).for_each(|key| self.put(key, 100)),
            Act::Delete { key } => self.delete(key),
            Act::Sweep { from, count } => (from..from + count).for_each(|key| self.delete(key)),
            Act::Savepoint => self.savepoints.push((self.txn.savepoint(), self.model.clone())),
            Act::Back(_) if self.savepoints.is_empty() => {}
            Act::Back(which) => {
                let to = usize::from(which) % self.savepoints.len();
                let (savepoint, model) = self.savepoints[to].clone();
                self.txn.rollback_to(&self.site.context, savepoint).expect("back");
                self.savepoints.truncate(to + 1);
                self.model = model;
            }
        }
        if let Act::Back(_) = act {
            self.site.context.relog_all().expect("relogged");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Savepoints, long values and removals, committed or rolled back: the rows are the model's,
    /// and every page is accounted for.
    #[test]
    fn as_if_all_were_in_memory(
        acts in prop::collection::vec(any_act(), 1..40),
        commits in any::<bool>(),
    ) {
        // 8 KiB of undo in memory: most of it is stored.
        let site = site(1024, 512 << 10);
        let tree = site.tree(10);
        let before = filled(&site, &tree, 200);
        let mut play = Play {
            site: &site, tree: &tree, txn: txn(), model: before.clone(), savepoints: Vec::new(),
        };
        for act in &acts {
            play.act(act);
        }
        let Play { mut txn, model, .. } = play;
        if commits {
            site.commit(&mut txn).expect("committed");
        } else {
            txn.rollback(&site.context).expect("rolled back");
        }
        purge(&site);
        let expected = if commits { &model } else { &before };
        prop_assert!(rows(&tree) == *expected);
        site.check(&[(&tree, expected)]);
    }
}

/// Statements that fail at their second row, as INSERT IGNORE has them: what they have left in
/// memory is bounded, with and without changes that stay, and no reader finds anything in it.
#[test]
fn statements_rolled_back_do_not_add_up_in_memory() {
    for stays in [0, 1_000] {
        let site = site(1024, 1 << 20);
        let tree = site.tree(10);
        let mut model = filled(&site, &tree, 100);
        let mut reader = txn();
        reader.snapshot(&site.context);
        let mut writer = txn();
        for n in 0u32..50_000 {
            let savepoint = writer.savepoint();
            let key = [&[b'k'; 100][..], &n.to_be_bytes()].concat();
            assert!(writer.change(&site.context, &tree, &key, Intent::Put(b"v")).expect("put"));
            if n < stays {
                model.insert(key, b"v".to_vec());
            } else {
                writer.rollback_to(&site.context, savepoint).expect("back");
            }
        }
        assert!(writer.change(&site.context, &tree, b"last", Intent::Put(b"v")).expect("put"));
        model.insert(b"last".to_vec(), b"v".to_vec());
        let mut value = Vec::new();
        assert!(!reader.get(&site.context, &tree, b"last", &mut value).expect("read"));
        site.commit(&mut writer).expect("committed");
        assert!(!reader.get(&site.context, &tree, b"last", &mut value).expect("read"));
        let bytes = site.registry.stats().version_bytes;
        assert!(bytes < 300_000, "{bytes} bytes beside {stays} changes");
        drop(reader);
        purge(&site);
        site.check(&[(&tree, &model)]);
    }
}

/// Each holds less than one alone may hold; all together they would be more than the log.
#[test]
fn many_open_transactions_hold_a_small_part_of_the_log() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let mut model = filled(&site, &tree, 4_000);
    let limit = site.log.limit_bytes();
    let mut all: Vec<Txn> = (0..40).map(|_| txn()).collect();
    for n in 0..100u32 {
        for (number, one) in (0u32..).zip(&mut all) {
            let (key, value) = ((number * 100 + n).to_be_bytes(), vec![n as u8; 180]);
            assert!(one.change(&site.context, &tree, &key, Intent::Put(&value)).expect("put"));
            model.insert(key.to_vec(), value);
        }
        let open = site.registry.stats().open_bytes;
        assert!(open < limit / 4, "{open} of {limit} after {n} changes of each");
    }
    for mut one in all {
        site.commit(&mut one).expect("committed");
    }
    purge(&site);
    site.check(&[(&tree, &model)]);
    let stats = site.registry.stats();
    assert_eq!((stats.open_bytes, stats.left_bytes), (0, 0));
}

/// Beside a snapshot, what many small transactions have left to do is gathered before the log has
/// to say it again and again; and done when the snapshot has gone.
#[test]
fn what_is_left_to_do_beside_a_snapshot_is_a_small_part_of_the_log() {
    let site = site(1024, 1 << 20);
    let tree = site.tree(10);
    let before = filled(&site, &tree, 6_000);
    let (limit, used) = (site.log.limit_bytes(), site.env.space.used());
    let mut reader = txn();
    reader.snapshot(&site.context);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // As the log's own thread does.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                site.context.relog_all().expect("relogged");
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        for n in 0u32..6_000 {
            assert!(site.auto.delete(&tree, &n.to_be_bytes()).expect("deleted").is_some());
            while site.background.archive().expect("gathered") {}
            let left = site.registry.stats().left_bytes;
            assert!(left < limit / 16, "{left} of {limit} after {n}");
        }
        let mut value = Vec::new();
        for (key, old) in &before {
            assert!(reader.get(&site.context, &tree, key, &mut value).expect("read"));
            assert_eq!(value, *old);
        }
        drop(reader);
        while site.background.purge(64) > 0 || site.background.archive().expect("left") {}
        stop.store(true, Ordering::Relaxed);
    });
    site.check(&[(&tree, &Rows::new())]);
    let stats = site.registry.stats();
    assert_eq!((stats.open_bytes, stats.left_bytes), (0, 0));
    assert!(site.env.space.used() <= used, "{used} pages were enough for the rows");
}
