//! Loom: locks handed from one thread to another, with every interleaving of a few steps.
use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use weir_base::TxnId;

use super::super::{Place, Wait};
use super::*;

const S: Kind = Kind::Share;
const ONE: TxnId = TxnId(1);
const TWO: TxnId = TxnId(2);
const FOREVER: Wait = Wait::Until(Duration::MAX);

fn check(bound: usize, run: impl Fn(Arc<LockTable>) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(move || {
        let table = Arc::new(LockTable::new());
        run(Arc::clone(&table));
        let stats = table.stats();
        assert_eq!((stats.held, stats.waiting, stats.ranges), (0, 0, 0));
        assert!(table.shards.is_empty());
    });
}

fn lock(table: &LockTable, id: TxnId, key: &[u8], writer: Option<TxnId>) -> Result<(), LockError> {
    table.acquire(id, TREE, Place::Key(key), X, writer, FOREVER)
}

/// A transaction that waits while the holder ends gets the lock. A lost wake-up is a deadlock,
/// which loom reports.
#[test]
fn loom_end_hands_over() {
    check(3, |table| {
        table.register(ONE);
        table.register(TWO);
        assert_eq!(lock(&table, ONE, b"k", None), Ok(()));
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || table.end(ONE)
        });
        assert_eq!(lock(&table, TWO, b"k", None), Ok(()));
        other.join().expect("it ends");
        table.end(TWO);
    });
}

/// A transaction that comes while a key is released unfairly passes by a transaction that has been
/// notified, or waits for it: a row has one writer at a time, and no transaction is forgotten.
#[test]
fn loom_a_newcomer_passes_and_locks_stay_exclusive() {
    check(2, |table| {
        let three = TxnId(3);
        [ONE, TWO, three].iter().for_each(|&id| drop(table.register(id)));
        assert_eq!(lock(&table, ONE, b"k", None), Ok(()));
        // A transaction that is writing the row; the mutex is its leaf's latch.
        let row = Arc::new(loom::sync::Mutex::new(None));
        let other = thread::spawn({
            let (table, row) = (Arc::clone(&table), Arc::clone(&row));
            move || {
                table.end(ONE);
                let mut writer = row.lock().expect("no panic");
                let passes = !table.blocks(three, TREE, b"k", X);
                if passes {
                    assert_eq!(writer.replace(three), None, "beside another");
                }
                drop(writer);
                if passes {
                    *row.lock().expect("no panic") = None;
                }
                table.end(three);
            }
        });
        let mut met = None;
        loop {
            assert_eq!(lock(&table, TWO, b"k", met), Ok(()));
            let mut writer = row.lock().expect("no panic");
            met = *writer;
            if met.is_none() {
                *writer = Some(TWO);
                break;
            }
        }
        *row.lock().expect("no panic") = None;
        table.end(TWO);
        other.join().expect("it ends");
    });
}

/// A row's writer ends while its lock is made explicit: no entry of it stays, and no transaction
/// waits for a transaction that is gone.
#[test]
fn loom_writers_end_while_their_locks_are_made_explicit() {
    check(3, |table| {
        table.register(ONE);
        table.register(TWO);
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || table.end(ONE)
        });
        assert_eq!(lock(&table, TWO, b"k", Some(ONE)), Ok(()));
        other.join().expect("it ends");
        table.end(TWO);
    });
}

/// Two threads close a circle from both sides: exactly one pays, the other goes on.
#[test]
fn loom_a_circle_closed_from_both_sides_has_one_victim() {
    check(2, |table| {
        table.register(ONE);
        table.register(TWO);
        let run = |table: &LockTable, id, own: &[u8], other: &[u8]| {
            let got = lock(table, id, own, None).and_then(|()| lock(table, id, other, None));
            table.end(id);
            matches!(got, Err(LockError::Deadlock { .. }))
        };
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || run(&table, ONE, b"a", b"b")
        });
        let two_paid = run(&table, TWO, b"b", b"a");
        let one_paid = other.join().expect("it ends");
        assert!(!(one_paid && two_paid));
        assert_eq!(table.stats().deadlocks, u64::from(one_paid || two_paid));
    });
}

/// A kill meets a grant: the wait ends once, one way or the other, and the lock is not lost.
#[test]
fn loom_a_kill_meets_a_grant() {
    check(2, |table| {
        table.register(ONE);
        table.register(TWO);
        assert_eq!(lock(&table, ONE, b"k", None), Ok(()));
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || {
                table.kill(TWO);
                table.end(ONE);
            }
        });
        let got = lock(&table, TWO, b"k", None);
        assert!(matches!(got, Ok(()) | Err(LockError::Killed)));
        other.join().expect("it ends");
        table.end(TWO);
    });
}

/// A range is handed from one to the other, and a key in it is waited for.
#[test]
fn loom_a_range_is_handed_over() {
    check(2, |table| {
        table.register(ONE);
        table.register(TWO);
        let range = Place::Range { from: b"a", to: Some(b"m") };
        assert_eq!(table.acquire(ONE, TREE, range, X, None, Wait::No), Ok(()));
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || table.end(ONE)
        });
        assert_eq!(lock(&table, TWO, b"k", None), Ok(()));
        assert_eq!(table.acquire(TWO, TREE, range, X, None, FOREVER), Ok(()));
        other.join().expect("it ends");
        table.end(TWO);
    });
}

/// A transaction that reads a page without its latch, and locks, meets a writer that holds the
/// latch: the writer sees the lock, or what was read is not believed. `before`: it was read before
/// the lock was got.
fn meet(place: Place<'static>, before: bool) {
    check(3, move |table| {
        use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
        table.register(ONE);
        let page = Arc::new((weir_pool::model::PageLatch::new(), AtomicU64::new(0)));
        let writer = thread::spawn({
            let (table, page) = (Arc::clone(&table), Arc::clone(&page));
            move || {
                let seen = page.0.read().expect("no other thread takes it");
                assert!(page.0.take(seen));
                let passes = !table.blocks(TWO, TREE, b"k", X);
                if passes {
                    page.1.store(1, Relaxed);
                }
                page.0.release(seen, passes);
            }
        });
        let read = || page.0.read().map(|seen| (seen, page.1.load(Relaxed)));
        let lock = || assert_eq!(table.acquire(ONE, TREE, place, S, None, Wait::No), Ok(()));
        let seen = if before {
            let seen = read();
            lock();
            seen
        } else {
            lock();
            read()
        };
        let believed = seen.filter(|(seen, _)| page.0.is_still(*seen)).map(|(_, value)| value);
        writer.join().expect("it ends");
        assert!(believed.is_none_or(|v| v == page.1.load(Relaxed)), "written beside the lock");
        table.end(ONE);
    });
}

#[test]
fn loom_a_locker_of_a_row_and_a_latcher_of_its_page_never_miss_each_other() {
    meet(Place::Key(b"k"), true);
    meet(Place::Key(b"k"), false);
}

#[test]
fn loom_a_locker_of_a_range_and_a_latcher_of_its_page_never_miss_each_other() {
    let range = Place::Range { from: b"a", to: Some(b"m") };
    meet(range, true);
    meet(range, false);
}

/// A scanner and a writer meet: the writer sees the range, or the scanner sees the row.
#[test]
fn loom_a_writer_and_a_scanner_never_miss_each_other() {
    check(3, |table| {
        use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
        table.register(ONE);
        // A row that is written under its leaf's latch.
        let row = Arc::new(loom::sync::Mutex::new(false));
        let was_notified = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let (table, row, was_notified) =
                (Arc::clone(&table), Arc::clone(&row), was_notified.clone());
            move || {
                let mut row = row.lock().expect("no panic");
                if table.blocks(TWO, TREE, b"k", X) {
                    was_notified.store(true, SeqCst);
                } else {
                    *row = true;
                }
            }
        });
        let range = Place::Range { from: b"a", to: None };
        assert_eq!(table.acquire(ONE, TREE, range, S, None, Wait::No), Ok(()));
        let seen = *row.lock().expect("no panic");
        writer.join().expect("it ends");
        assert_ne!(seen, was_notified.load(SeqCst));
        table.end(ONE);
    });
}
