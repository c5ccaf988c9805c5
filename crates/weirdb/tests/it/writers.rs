//! Transactions beside each other.
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use weirdb::{Conflict, Durability, Error, Isolation, LockWait, Swap, TxnOptions};

use crate::{config, new};

const THREADS: u64 = 4;
const EACH: u64 = 200;

/// Counts with many threads, by one read and one write in a transaction.
fn count(isolation: Isolation, locks: bool) -> i64 {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let runs = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let options = TxnOptions::new().isolation(isolation).attempts(10_000);
                    db.transact(options, |txn| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let old = match locks {
                            true => txn.get_for_update(&tree, "n")?,
                            false => txn.get(&tree, "n")?,
                        };
                        let old = old.map_or(0, |old| {
                            i64::from_le_bytes(old.as_ref().try_into().expect("8 bytes"))
                        });
                        txn.put(&tree, "n", (old + 1).to_le_bytes())
                    })
                    .expect("committed");
                }
            });
        }
    });
    assert!(runs.into_inner() >= (THREADS * EACH) as u32);
    tree.add("n", 0).expect("read")
}

#[test]
fn no_update_is_lost_where_none_may_be() {
    let all = (THREADS * EACH) as i64;
    assert_eq!(count(Isolation::Snapshot, false), all);
    assert_eq!(count(Isolation::Snapshot, true), all);
    assert_eq!(count(Isolation::Serializable, false), all);
    assert_eq!(count(Isolation::RepeatableRead, true), all);
    assert_eq!(count(Isolation::ReadCommitted, true), all);
    // And the usual one is the first of these.
    assert_eq!(Isolation::default(), Isolation::Snapshot);
}

#[test]
fn counters_swaps_and_inserts_of_a_tree_wait_for_each_other() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let inserted = AtomicU32::new(0);
    thread::scope(|scope| {
        for of in 0..THREADS {
            let (tree, inserted) = (&tree, &inserted);
            scope.spawn(move || {
                for n in 0..EACH {
                    tree.add("counter", 3).expect("added");
                    loop {
                        let old = tree.get("swapped").expect("read");
                        let number: u64 = old.as_deref().map_or(0, |old| {
                            std::str::from_utf8(old).expect("text").parse().expect("a number")
                        });
                        let new = (number + 1).to_string();
                        let swap =
                            tree.compare_and_swap("swapped", old.as_deref(), Some(new.as_bytes()));
                        if swap.expect("compared").is_swapped() {
                            break;
                        }
                    }
                    match tree.insert(format!("row {n}"), of.to_string()) {
                        Ok(()) => drop(inserted.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::Exists(_)) => {}
                        Err(e) => panic!("{e:?}"),
                    }
                    tree.update("long", |old| Some([old.unwrap_or_default(), b"x"].concat()))
                        .expect("updated");
                }
            });
        }
    });
    let all = THREADS * EACH;
    assert_eq!(tree.add("counter", 0).expect("read"), 3 * all as i64);
    assert_eq!(tree.get("swapped").expect("read").as_deref(), Some(all.to_string().as_bytes()));
    assert_eq!(tree.get("long").expect("read").map(|long| long.len() as u64), Some(all));
    assert_eq!(u64::from(inserted.into_inner()), EACH);
    assert_eq!(tree.prefix("row ").count() as u64, EACH);
}

#[test]
fn transact_gives_up_after_the_attempts_of_its_options() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    let mut held = db.write();
    held.put(&tree, "k", "held").expect("put");
    let mut runs = 0;
    let options = TxnOptions::new().lock_wait(LockWait::Never).attempts(7);
    let done: Result<(), Error> = db.transact(options, |txn| {
        runs += 1;
        txn.put(&tree, "k", "mine")
    });
    assert!(matches!(done, Err(Error::Conflict(Conflict::Locked))), "{done:?}");
    assert_eq!(runs, 7);
    // What is no conflict is reported at once, also in an error of the caller's own.
    #[derive(Debug)]
    enum Own {
        Mine,
        Db(#[allow(dead_code)] Error),
    }
    impl From<Error> for Own {
        fn from(e: Error) -> Self {
            Own::Db(e)
        }
    }
    let mut runs = 0;
    let done: Result<(), Own> = db.transact(options, |txn| {
        runs += 1;
        txn.put(&tree, "other", "is rolled back")?;
        Err(Own::Mine)
    });
    assert!(matches!(done, Err(Own::Mine)) && runs == 1, "{done:?}");
    assert!(!tree.contains_key("other").expect("read"));
    // And a conflict wrapped in one is tried again.
    let mut runs = 0;
    let done: Result<(), Own> = db.transact(options, |txn| {
        runs += 1;
        if runs == 3 {
            return Ok(());
        }
        Ok(txn.put(&tree, "k", "mine")?)
    });
    assert!(done.is_ok() && runs == 3, "{done:?}");
}

#[test]
fn of_two_in_a_deadlock_one_is_the_victim_and_both_get_through() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    thread::scope(|scope| {
        for of in 0..2 {
            let (db, tree) = (&db, &tree);
            scope.spawn(move || {
                let keys = if of == 0 { ["a", "b"] } else { ["b", "a"] };
                for _ in 0..100 {
                    let options = TxnOptions::new().isolation(Isolation::ReadCommitted);
                    db.transact(options, |txn| {
                        txn.add(tree, keys[0], 1)?;
                        txn.add(tree, keys[1], 1)
                    })
                    .expect("committed");
                }
            });
        }
    });
    assert_eq!(tree.add("a", 0).expect("read") + tree.add("b", 0).expect("read"), 400);
}

#[test]
fn jobs_are_taken_once_by_workers_that_skip_locked_ones() {
    let (_dir, db) = new();
    let jobs = db.open_tree("jobs").expect("made");
    jobs.bulk_load((0..100u8).map(|n| ([n], "job"))).expect("loaded");
    let mut first = db.write();
    let taken = first.range_for_update(&jobs, ..=[200u8]).next().expect("a job").expect("locked");
    assert_eq!(taken.0, [0]);
    let never = TxnOptions::new().lock_wait(LockWait::Never);
    let mut second = db.write_with(never);
    let refused = second.range_for_update::<&[u8]>(&jobs, ..).next().expect("an answer");
    assert!(matches!(refused, Err(Error::Conflict(Conflict::Locked))), "{refused:?}");
    let skipped = second.range_for_update::<&[u8]>(&jobs, ..).skip_locked().next();
    assert_eq!(skipped.expect("a job").expect("locked").0, [1]);
    // What was not read is not locked.
    let mut third = db.write_with(never);
    third.put(&jobs, [2], "free").expect("no transaction has it");
}

#[test]
fn commits_are_acknowledged_in_every_way() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = config().durability(Durability::Synced).open(dir.path().join("db")).expect("opened");
    let tree = db.open_tree("t").expect("made");
    let commit = |n: u8| {
        let mut txn = db.write();
        txn.put(&tree, [n], "v").expect("put");
        txn.commit_nowait().expect("committed")
    };
    let waited = commit(0);
    assert_eq!(tree.get([0]).expect("read").as_deref(), Some(&b"v"[..]));
    waited.wait().expect("durable");
    assert!(waited.is_durable() && waited.is_change());
    let (tell, told) = mpsc::channel();
    for n in 1..20 {
        let tell = tell.clone();
        commit(n).when_durable(move |done| tell.send(done.map(|()| n)).expect("heard"));
    }
    let mut all: Vec<u8> = (1..20)
        .map(|_| told.recv_timeout(Duration::from_secs(20)).expect("told").expect("durable"))
        .collect();
    all.sort_unstable();
    assert_eq!(all, (1..20).collect::<Vec<u8>>());
    block_on(commit(20)).expect("durable");
    let nothing = db.write().commit_nowait().expect("committed");
    assert!(!nothing.is_change() && nothing.is_durable());
    block_on(nothing).expect("durable");
    // Also to those that wait for it in vain.
    let commit = commit(21);
    db.close().expect("closed");
    commit.wait().expect("closing has made it durable");
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(task: impl IntoFuture<Output = T>) -> T {
    let mut task = std::pin::pin!(task.into_future());
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park_timeout(Duration::from_secs(20)),
        }
    }
}

#[test]
fn trees_are_made_and_dropped_with_their_transaction() {
    let (_dir, db) = new();
    let mut txn = db.write();
    let tree = txn.create_tree("new").expect("made");
    txn.put(&tree, "k", "v").expect("put");
    assert!(matches!(txn.create_tree("new"), Err(Error::Exists(_))));
    assert!(db.get_tree("new").expect("read").is_none());
    txn.rollback().expect("rolled back");
    assert_eq!(db.tree_names().expect("read"), Vec::<String>::new());
    let mut txn = db.write();
    let tree = txn.create_tree("new").expect("made");
    txn.put(&tree, "k", "v").expect("put");
    txn.commit().expect("committed");
    assert!(matches!(db.create_tree("new"), Err(Error::Exists(_))));
    assert!(db.rename_tree("new", "old").expect("renamed"));
    assert!(!db.rename_tree("new", "old").expect("there is none"));
    assert_eq!(
        db.open_tree("old").expect("there").get("k").expect("read"),
        Some(b"v".to_vec().into())
    );
    assert!(db.drop_tree("old").expect("dropped") && !db.drop_tree("old").expect("there is none"));
    let gone = tree.put("k", "v");
    assert!(matches!(gone, Err(Error::NoTree(_))), "{gone:?}");
}

#[test]
fn a_prepared_transaction_survives_and_is_decided_by_its_name() {
    let (dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    for (name, key) in [("one", "a"), ("two", "b")] {
        let mut txn = db.write();
        txn.put(&tree, key, "prepared").expect("put");
        txn.prepare(name).expect("prepared");
    }
    let refused = db.write().prepare("one");
    assert!(matches!(refused, Err(Error::InvalidInput(_))), "{refused:?}");
    db.close().expect("closed");
    let db = config().open(dir.path().join("db")).expect("opened");
    assert_eq!(db.prepared(), [b"one", b"two"]);
    let tree = db.open_tree("t").expect("there");
    let never = TxnOptions::new().lock_wait(LockWait::Never);
    let locked = db.write_with(never).put(&tree, "a", "other");
    assert!(matches!(locked, Err(Error::Conflict(Conflict::Locked))), "{locked:?}");
    assert!(db.commit_prepared("one").expect("committed"));
    assert!(db.rollback_prepared("two").expect("rolled back"));
    assert!(!db.commit_prepared("two").expect("there is none"));
    assert_eq!(tree.get("a").expect("read").as_deref(), Some(&b"prepared"[..]));
    assert_eq!(tree.get("b").expect("read"), None);
}

#[test]
fn a_swap_says_what_was_there() {
    let (_dir, db) = new();
    let tree = db.open_tree("t").expect("made");
    assert_eq!(tree.compare_and_swap("k", None, Some(b"1")).expect("swapped"), Swap::Swapped);
    let differs = tree.compare_and_swap("k", None, Some(b"2")).expect("compared");
    assert_eq!(differs, Swap::Differs(Some(b"1".to_vec().into())));
    assert_eq!(tree.compare_and_swap("k", Some(b"1"), None).expect("swapped"), Swap::Swapped);
    assert_eq!(tree.compare_and_swap("k", Some(b"1"), None).expect("swapped"), Swap::Differs(None));
}
