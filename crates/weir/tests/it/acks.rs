//! Acknowledgements of commits that are durable, by the thread that syncs for all.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;

use parking_lot::Mutex;
use weir::{Background, Config, Db, Error, FaultyVolume, SimVolume, Tree, TxnOptions};
use weir_base::SystemClock;
use weir_device::{CrashMode, DelayedVolume, Fault, OpKind};

use crate::support::{open, tiny};

const COMMITTERS: u64 = 4;
/// Rows that are written again and again, each by the same committer.
const KEYS: u64 = 1_000;

fn threaded() -> Config {
    Config { background: Background::Threads, ..tiny() }
}

/// As [`threaded`], where no thread waits for pages to be written.
fn roomy() -> Config {
    Config { pool_bytes: 16 << 20, log_bytes: 16 << 20, ..threaded() }
}

/// What was acknowledged: by which thread, of which change, and how it went.
#[derive(Clone, Default)]
struct Acknowledged(Arc<Mutex<Vec<(ThreadId, u64, bool)>>>);

impl Acknowledged {
    /// Commits a change of one row, and is notified of it later.
    fn commit(&self, db: &Db, tree: &Tree, change: u64) -> Result<(), Error> {
        let mut txn = db.begin(TxnOptions::default());
        txn.put(tree, &(change % KEYS).to_be_bytes(), &change.to_be_bytes())?;
        let commit = txn.commit()?;
        let told = self.0.clone();
        db.when_durable(commit, move |outcome| {
            told.lock().push((std::thread::current().id(), change, outcome.is_ok()));
        });
        Ok(())
    }

    fn changes(&self, ok: bool) -> Vec<u64> {
        self.0.lock().iter().filter(|told| told.2 == ok).map(|told| told.1).collect()
    }
}

/// Also when a look finds something wrong.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Commits with several threads until told to stop, or until the engine has halted; returns how
/// many commits there were, and the threads' names.
fn commit_while(
    db: &Db,
    tree: &Tree,
    told: &Acknowledged,
    look: impl FnOnce(),
) -> (u64, Vec<ThreadId>) {
    let (stop, number) = (AtomicBool::new(false), AtomicU64::new(0));
    let ids = std::thread::scope(|scope| {
        let run = |of: u64| {
            let (stop, number) = (&stop, &number);
            move || {
                let mut change = of;
                while !stop.load(Ordering::Relaxed) && told.commit(db, tree, change).is_ok() {
                    number.fetch_add(1, Ordering::Relaxed);
                    change += COMMITTERS;
                }
            }
        };
        let threads: Vec<_> = (0..COMMITTERS).map(|of| scope.spawn(run(of))).collect();
        let stops = Stops(&stop);
        look();
        drop(stops);
        threads.into_iter().map(|thread| thread.thread().id()).collect()
    });
    (number.into_inner(), ids)
}

#[test]
fn acknowledged_commits_survive_a_crash_and_each_is_acknowledged_once() {
    let volume = SimVolume::new(11);
    let db = Db::open_on(Arc::new(volume.clone()), threaded()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let told = Acknowledged::default();
    let (number, committers) = commit_while(&db, &tree, &told, || {
        for seed in 0..8 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let before = told.changes(true);
            let crashed = volume.crash_with(CrashMode::LoseAll, seed);
            let db = open(&crashed).expect("it opens");
            let tree = db.tree("t").expect("read").expect("the tree");
            for change in before {
                let found = tree.get(&(change % KEYS).to_be_bytes()).expect("a get");
                let found =
                    found.map(|value| u64::from_be_bytes(value.try_into().expect("8 bytes")));
                assert!(found >= Some(change), "{change} was told of before, not {found:?}");
            }
        }
    });
    // Closing waits for what is still to be acknowledged.
    db.close().expect("closed");
    let mut changes = told.changes(true);
    changes.sort_unstable();
    changes.dedup();
    assert_eq!((changes.len() as u64, told.0.lock().len() as u64), (number, number));
    let by_others = told.0.lock().iter().filter(|told| !committers.contains(&told.0)).count();
    assert!(by_others > 0, "of {number} none was told of by the thread for it");
}

#[test]
fn committers_learn_that_the_log_cannot_be_synced() {
    // Whether any thread is under way when a sync fails is chance: mostly many are.
    assert!((0..5).any(|_| failures_reported() > 0), "no commit was ever under way");
}

fn failures_reported() -> usize {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(12)));
    let db = Db::open_on(Arc::new(volume.clone()), roomy()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let told = Acknowledged::default();
    let (number, _) = commit_while(&db, &tree, &told, || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        volume.fail_all("redo", OpKind::DurableWrite, Fault::Broken);
        volume.fail_all("redo", OpKind::Sync, Fault::Broken);
        while db.stats().halted.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(matches!(db.close(), Err(Error::Halted(_))));
    assert_eq!(told.0.lock().len() as u64, number, "each is told once");
    told.changes(false).len()
}

#[test]
fn without_threads_the_caller_waits() {
    let volume = SimVolume::new(13);
    let db = open(&volume).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let told = Acknowledged::default();
    for change in 0..10 {
        told.commit(&db, &tree, change).expect("a commit");
        assert_eq!(told.changes(true).len() as u64, change + 1);
    }
    let mut txn = db.begin(TxnOptions::default());
    txn.put(&tree, b"a", b"b").expect("a put");
    let end = txn.commit().expect("a commit").end().expect("a change");
    let beyond = weir::Commit::at(Some(weir::Lsn(end.0 + 1_000_000)));
    db.when_durable(beyond, |told| assert!(matches!(told, Err(Error::Position(_)))));
    db.when_durable(weir::Commit::at(None), |told| assert!(told.is_ok()));
}

/// Where each write of the log takes long, it waits for those that are about to commit. Those that
/// leave their waiting to the thread count like those that wait themselves: otherwise the first
/// that comes back has a write of its own, and all others share the next.
#[test]
fn one_write_serves_all_acknowledged_where_writes_take_long() {
    const WRITE_MICROS: u64 = 3_000;
    const EACH: u64 = 400;
    const CLIENTS: u64 = 8;
    let clock = Arc::new(SystemClock::new());
    let volume = DelayedVolume::new(Arc::new(SimVolume::new(15)), &["redo-"], clock);
    let db = Db::open_on(Arc::new(volume.clone()), roomy()).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    volume.set_write_micros(WRITE_MICROS);
    let before = db.stats();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (db, tree) = (&db, &tree);
            scope.spawn(move || {
                let (tell, told) = std::sync::mpsc::channel();
                for n in 0..EACH {
                    let mut txn = db.begin(TxnOptions::default());
                    let key = [client.to_be_bytes(), n.to_be_bytes()].concat();
                    txn.put(tree, &key, b"v").expect("a put");
                    let tell = tell.clone();
                    db.when_durable(txn.commit().expect("a commit"), move |outcome| {
                        tell.send(outcome.is_ok()).expect("a receiver");
                    });
                    assert!(told.recv().expect("told"));
                }
            });
        }
    });
    let after = db.stats();
    let commits = CLIENTS * EACH;
    // Each of them, but for those that came so late, on a busy machine, that they were durable.
    let waits = after.log_commit_waits - before.log_commit_waits;
    assert!(waits > commits / 2, "leaders count on {waits} of {commits}");
    // About 7.4 where the processors have nothing else to do; 4.8 if they are not counted on.
    let commits_a_write = commits as f64 / (after.log_writes - before.log_writes) as f64;
    assert!(commits_a_write > 2.0, "{commits_a_write} of {CLIENTS}");
    volume.set_write_micros(0);
    db.close().expect("closed");
}

#[test]
fn what_was_begun_to_be_prepared_is_prepared_when_it_has_been_waited_for() {
    let volume = SimVolume::new(14);
    let db = open(&volume).expect("made");
    let tree = db.create_tree("t").expect("a tree");
    let prepare = |name: &[u8]| {
        let mut txn = db.begin(TxnOptions::default());
        txn.put(&tree, name, b"there").expect("a put");
        txn.begin_prepare_owned(name).expect("prepared")
    };
    let found = || {
        let db = open(&volume.crash_with(CrashMode::LoseAll, 1)).expect("it opens");
        let tree = db.tree("t").expect("read").expect("the tree");
        (db.prepared(), tree.get(b"a").expect("a get"))
    };
    let (mut held, durable) = prepare(b"a");
    assert_eq!(found(), (vec![], None), "a crash takes it");
    db.wait(durable, weir::Durability::Synced).expect("synced");
    assert_eq!(found(), (vec![b"a".to_vec()], None), "it survives undecided");
    held.commit(weir::Durability::Synced).expect("committed");
    drop(held);
    assert_eq!(found(), (vec![], Some(b"there".to_vec())));
    // One that was not waited for may be decided all the same.
    let (mut held, _) = prepare(b"b");
    held.rollback().expect("rolled back");
    drop(held);
    let (mut held, _) = prepare(b"b");
    held.commit(weir::Durability::Synced).expect("committed");
    assert_eq!(tree.get(b"b").expect("a get").as_deref(), Some(&b"there"[..]));
}
