//! What panics, in the engine's threads or in what a caller has given it, must hurt nothing else.
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir::{
    Background, BlockFile, Config, Db, Durability, Error, IoStats, SimVolume, SystemClock, Tree,
    TxnOptions, Volume, Wait,
};
use weir_device::{DelayedVolume, ReadOp, WriteOp};

use crate::support::tiny;

/// In which thread the next operation of the device panics.
type Target = Arc<Mutex<Option<&'static str>>>;

/// A disk whose driver panics.
struct PanickingVolume {
    below: SimVolume,
    target: Target,
}

struct PanickingFile {
    below: Arc<dyn BlockFile>,
    target: Target,
}

fn panic_if_meant(target: &Target) {
    let name = std::thread::current().name().map(str::to_owned);
    let mut target = target.lock();
    if target.is_some_and(|wanted| name.as_deref() == Some(wanted)) {
        *target = None;
        drop(target);
        panic!("planted in {name:?}");
    }
}

impl Volume for PanickingVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        let (below, target) = (self.below.open(name)?, self.target.clone());
        Ok(Arc::new(PanickingFile { below, target }))
    }
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        panic_if_meant(&self.target);
        let (below, target) = (self.below.create(name, len)?, self.target.clone());
        Ok(Arc::new(PanickingFile { below, target }))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.below.remove(name)
    }
    fn exists(&self, name: &str) -> io::Result<bool> {
        self.below.exists(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.below.list()
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.below.sync_directory()
    }
    fn describe(&self) -> String {
        self.below.describe()
    }
    fn io_stats(&self) -> IoStats {
        self.below.io_stats()
    }
}

impl BlockFile for PanickingFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.write_at(offset, buf)
    }
    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.write_durable_at(offset, buf)
    }
    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.read_many(reads)
    }
    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.write_many(writes)
    }
    fn sync(&self) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.sync()
    }
    fn len(&self) -> u64 {
        self.below.len()
    }
    fn grow(&self, len: u64) -> io::Result<()> {
        panic_if_meant(&self.target);
        self.below.grow(len)
    }
}

fn threaded() -> Config {
    Config { background: Background::Threads, ..tiny() }
}

fn open(seed: u64) -> (Db, Target, SimVolume) {
    let (below, target) = (SimVolume::new(seed), Target::default());
    let volume = PanickingVolume { below: below.clone(), target: target.clone() };
    let config = Config { pages_max: 4096, ..threaded() };
    (Db::open_on(Arc::new(volume), config).expect("opened"), target, below)
}

/// Gives all threads something to do, until the engine has halted.
fn work_until_halted(db: &Db, tree: &Tree) -> (u64, Error) {
    let mut random = fastrand::Rng::with_seed(7);
    let told = Arc::new(AtomicU64::new(0));
    let until = Instant::now() + Duration::from_secs(60);
    let mut acknowledged = 0;
    let mut asked = 0;
    while Instant::now() < until {
        let mut txn = db.begin(TxnOptions::default());
        let done = (0..20).try_for_each(|_| {
            txn.put(tree, &random.u16(..3000).to_be_bytes(), &[random.u8(..); 200])
        });
        let done = done.and_then(|()| txn.commit()).map(|commit| {
            for _ in 0..2 {
                asked += 1;
                let told = told.clone();
                db.when_durable(commit, move |_| {
                    told.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        let mark = tree.put(b"mark", &u64::to_be_bytes(acknowledged + 1), Durability::Synced);
        match done.and(mark) {
            Ok(()) => acknowledged += 1,
            Err(e) => {
                while told.load(Ordering::SeqCst) < asked {
                    assert!(Instant::now() < until, "a callback was never called");
                    std::thread::sleep(Duration::from_millis(1));
                }
                return (acknowledged, e);
            }
        }
    }
    panic!("nothing halted it");
}

#[test]
fn a_background_thread_that_panics_halts_the_engine_and_is_named() {
    let names = ["weir-acks", "weir-sweep", "weir-sweep-2", "weir-clean", "weir-log"];
    for (seed, name) in (50..).zip(names) {
        let (db, target, below) = open(seed);
        let tree = db.open_tree("t").expect("made");
        tree.put(b"before", b"there", Durability::Synced).expect("put");
        let (tell, told) = mpsc::channel();
        db.on_notice(Box::new(move |notice| {
            let _ = tell.send(format!("{notice:?}"));
        }));
        *target.lock() = Some(name);
        // Two commits wait at once, so that the thread that tells of them has something to do.
        let (acknowledged, error) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut n = 0u64;
                loop {
                    n += 1;
                    let mut txn = db.begin(TxnOptions::default());
                    let done = txn.put(&tree, b"other", &n.to_be_bytes());
                    match done.and_then(|()| txn.commit()) {
                        Ok(commit) => db.when_durable(commit, |_| {}),
                        Err(_) => return,
                    }
                }
            });
            let worked = work_until_halted(&db, &tree);
            other.join().expect("ended");
            worked
        });
        assert!(matches!(error, Error::Halted(_)), "{name}: {error:?}");
        let halted = db.stats().halted.expect("it has halted");
        // Another thread may come upon what it left before its end is known.
        let is_named = ["the thread {} panicked", "was not written by the thread {}"];
        let is_named = is_named.map(|words| halted.contains(&words.replace("{}", name)));
        assert!(is_named.contains(&true), "{halted}");
        let notice = told.recv_timeout(Duration::from_secs(10)).expect("told of the halt");
        assert!(notice.contains(name), "{notice}");
        assert_eq!(tree.get(b"before").expect("read").as_deref(), Some(&b"there"[..]), "{name}");
        assert!(matches!(db.close(), Err(Error::Halted(_))), "{name}");

        // Nothing that was acknowledged is lost.
        let config = Config { pages_max: 4096, ..tiny() };
        let db = Db::open_on(Arc::new(below.crash(seed)), config).expect("opened again");
        let mark = db.open_tree("t").expect("there").get(b"mark").expect("read");
        let mark = mark.map_or(0, |mark| u64::from_be_bytes(mark.try_into().expect("8 bytes")));
        assert!(mark >= acknowledged, "{name}: {mark} of {acknowledged}");
    }
}

#[test]
fn a_callback_that_panics_keeps_no_other_from_being_called() {
    // Where a write takes no time, each committer may well find its commit durable by itself.
    let clock = Arc::new(SystemClock::new());
    let slow = DelayedVolume::new(Arc::new(SimVolume::new(3)), &["redo-"], clock);
    let db = Db::open_on(Arc::new(slow.clone()), threaded()).expect("opened");
    let tree = db.open_tree("t").expect("made");
    slow.set_write_micros(500);
    let (told, asked, by_thread) = (Arc::default(), AtomicU64::new(0), Arc::default());
    std::thread::scope(|scope| {
        for of in 0..4u64 {
            let (db, tree, asked) = (&db, &tree, &asked);
            let (told, by_thread): (Arc<AtomicU64>, Arc<AtomicU64>) =
                (Arc::clone(&told), Arc::clone(&by_thread));
            scope.spawn(move || {
                for n in 0..200u64 {
                    let mut txn = db.begin(TxnOptions::default());
                    txn.put(tree, &of.to_be_bytes(), &n.to_be_bytes()).expect("put");
                    let commit = txn.commit().expect("committed");
                    asked.fetch_add(1, Ordering::SeqCst);
                    let (told, by_thread) = (told.clone(), by_thread.clone());
                    let call = std::panic::AssertUnwindSafe(move || {
                        db.when_durable(commit, move |outcome| {
                            told.fetch_add(1, Ordering::SeqCst);
                            outcome.expect("durable");
                            let here = std::thread::current();
                            if here.name() == Some("weir-acks") {
                                by_thread.fetch_add(1, Ordering::SeqCst);
                            }
                            assert!(n % 10 != 3, "a callback of the test's");
                        });
                    });
                    // Where the caller tells itself, it meets what it has planted.
                    let _ = std::panic::catch_unwind(call);
                }
            });
        }
    });
    let until = Instant::now() + Duration::from_secs(30);
    while told.load(Ordering::SeqCst) < asked.load(Ordering::SeqCst) {
        assert!(Instant::now() < until, "{told:?} of {asked:?} were told");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(by_thread.load(Ordering::SeqCst) > 0, "no callback was called by the thread");
    tree.put(b"k", b"v", Durability::Synced).expect("it goes on");
    db.close().expect("closed");
}

#[test]
fn entries_that_panic_leave_the_tree_empty_and_free() {
    let db = Db::open_on(Arc::new(SimVolume::new(4)), threaded()).expect("opened");
    let tree = db.open_tree("t").expect("made");
    for at in [0, 1, 50] {
        let entries = (0..100u8).map(|n| {
            assert!(n != at, "an entry of the test's");
            ([n], [n; 50])
        });
        let call = std::panic::AssertUnwindSafe(|| tree.bulk_load(entries));
        assert!(std::panic::catch_unwind(call).is_err());
        assert!(!tree.cursor().seek_first().expect("read"), "something was left");
        let mut txn = db.begin(TxnOptions { lock_wait: Wait::No, ..TxnOptions::default() });
        txn.put(&tree, b"k", b"v").expect("no transaction has it locked");
        txn.rollback().expect("rolled back");
    }
    assert_eq!(tree.bulk_load((0..100u8).map(|n| ([n], [n]))).expect("loaded"), 100);
    db.close().expect("closed");
}

#[test]
fn an_edit_that_panics_or_uses_the_database_blocks_no_thread() {
    let db = Db::open_on(Arc::new(SimVolume::new(5)), threaded()).expect("opened");
    let tree = db.open_tree("t").expect("made");
    for n in 0..100u8 {
        tree.put(&[n], &[n; 60], Durability::Lazy).expect("put");
    }
    let others_go_on = || {
        let mut txn = db.begin(TxnOptions { lock_wait: Wait::No, ..TxnOptions::default() });
        txn.put(&tree, &[6], b"other").expect("a neighbour is free");
        txn.rollback().expect("rolled back");
    };
    let is_called = AtomicBool::new(false);
    let mut txn = db.begin(TxnOptions::default());
    let updated = txn.update(&tree, &[5], |old, new| {
        is_called.store(true, Ordering::SeqCst);
        // Everything that may be done with a database, on the same leaf.
        assert_eq!(tree.get(&[5]).expect("read").as_deref(), Some(old));
        let mut cursor = tree.cursor();
        let mut rows = 0;
        let mut on = cursor.seek_first().expect("read");
        while on {
            rows += 1;
            on = cursor.next().expect("read");
        }
        assert_eq!(rows, 100);
        others_go_on();
        new.extend_from_slice(b"new");
        true
    });
    assert!(updated.expect("updated") && is_called.into_inner());
    let call = std::panic::AssertUnwindSafe(|| {
        txn.update(&tree, &[7], |_, _| panic!("an edit of the test's"))
    });
    assert!(std::panic::catch_unwind(call).is_err());
    others_go_on();
    txn.put(&tree, &[8], b"after").expect("the transaction goes on");
    txn.commit_durably(Durability::Synced).expect("committed");
    assert_eq!(tree.get(&[5]).expect("read").as_deref(), Some(&b"new"[..]));
    assert_eq!(tree.get(&[7]).expect("read").as_deref(), Some(&[7; 60][..]));
    db.close().expect("closed");
}
