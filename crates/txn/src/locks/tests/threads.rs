//! Many threads: no transaction is forgotten, no transaction is let in beside another, no
//! transaction starves.
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::*;
use crate::locks::Wait;

/// Generous: reached only if a wake-up is lost.
const LIMIT: Wait = Wait::Until(Duration::from_secs(60));

/// The transactions of a run by number, handed out without end.
fn begin(table: &LockTable, next: &AtomicU64) -> TxnId {
    let id = TxnId(next.fetch_add(1, SeqCst));
    table.register(id);
    id
}

fn assert_empty(table: &LockTable) {
    let stats = table.stats();
    assert_eq!((stats.held, stats.waiting, stats.ranges, stats.timeouts), (0, 0, 0, 0));
    assert!(table.shards.is_empty());
}

#[test]
fn one_hot_row_is_handed_on_to_every_waiter() {
    let (table, next) = (LockTable::new(), AtomicU64::new(1));
    let (inside, total) = (AtomicI64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let id = begin(&table, &next);
                    table.acquire(id, TREE, place("hot"), X, None, LIMIT).expect("no circles");
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "alone");
                    total.fetch_add(1, SeqCst);
                    // So that others come and queue.
                    thread::yield_now();
                    inside.fetch_sub(1, SeqCst);
                    table.end(id);
                }
            });
        }
    });
    assert_eq!(total.load(SeqCst), 16 * 300);
    assert!(table.stats().waits > 0);
    assert_empty(&table);
}

/// What each key says of a transaction that is in it: writers count -1000, readers 1.
fn enter(at: &AtomicI64, kind: Kind) {
    let before = at.fetch_add(if kind == X { -1000 } else { 1 }, SeqCst);
    assert!(if kind == X { before == 0 } else { before >= 0 }, "{kind} beside {before}");
}

fn leave(at: &AtomicI64, kind: Kind) {
    at.fetch_sub(if kind == X { -1000 } else { 1 }, SeqCst);
}

#[test]
fn random_transactions_with_deadlocks_all_come_to_an_end() {
    const KEYS: usize = 6;
    let (table, next) = (LockTable::new(), AtomicU64::new(1));
    let inside: Vec<AtomicI64> = (0..KEYS).map(|_| AtomicI64::new(0)).collect();
    let (committed, together) = (AtomicU64::new(0), Barrier::new(8));
    thread::scope(|scope| {
        for seed in 0..8 {
            let (table, next, inside) = (&table, &next, &inside);
            let (committed, together) = (&committed, &together);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                together.wait();
                for _ in 0..400 {
                    let id = begin(table, next);
                    let mut mine: HashMap<usize, Kind> = HashMap::new();
                    let mut refused = false;
                    for _ in 0..3 {
                        let at = random.usize(..KEYS);
                        let kind = if random.bool() { X } else { S };
                        let name = [at as u8];
                        match table.acquire(id, TREE, Place::Key(&name), kind, None, LIMIT) {
                            Ok(()) => {}
                            Err(LockError::Deadlock { .. }) => {
                                refused = true;
                                break;
                            }
                            Err(other) => panic!("{other}"),
                        }
                        table.add_work(id, 1);
                        let had = mine.get(&at).copied();
                        if had != Some(X) && had != Some(kind) {
                            had.inspect(|&had| leave(&inside[at], had));
                            enter(&inside[at], kind);
                            mine.insert(at, kind);
                        }
                        thread::yield_now();
                    }
                    mine.iter().for_each(|(&at, &kind)| leave(&inside[at], kind));
                    table.end(id);
                    committed.fetch_add(u64::from(!refused), SeqCst);
                }
            });
        }
    });
    assert!(committed.load(SeqCst) > 0 && table.stats().waits > 0);
    assert_eq!(committed.load(SeqCst) + table.stats().deadlocks, 8 * 400);
    assert_empty(&table);
}

#[test]
fn ordered_locking_never_deadlocks() {
    let (table, next, together) = (LockTable::new(), AtomicU64::new(1), Barrier::new(8));
    thread::scope(|scope| {
        for seed in 0..8 {
            let (table, next, together) = (&table, &next, &together);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                together.wait();
                for _ in 0..500 {
                    let id = begin(table, next);
                    for at in (0..5_u8).filter(|_| random.bool()).collect::<Vec<_>>() {
                        // A circle seen in parts that were never true together would show here.
                        let name = [at];
                        let got = table.acquire(id, TREE, Place::Key(&name), X, None, LIMIT);
                        got.expect("there are no circles");
                        thread::yield_now();
                    }
                    table.end(id);
                }
            });
        }
    });
    assert!(table.stats().waits > 0);
    assert_empty(&table);
}

#[test]
fn keys_and_ranges_exclude_each_other_and_all_come_to_an_end() {
    const KEYS: usize = 8;
    let (table, next) = (LockTable::new(), AtomicU64::new(1));
    let inside: Vec<AtomicI64> = (0..KEYS).map(|_| AtomicI64::new(0)).collect();
    let (committed, together) = (AtomicU64::new(0), Barrier::new(8));
    thread::scope(|scope| {
        for seed in 0..8 {
            let (table, next, inside) = (&table, &next, &inside);
            let (committed, together) = (&committed, &together);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                together.wait();
                for _ in 0..300 {
                    let id = begin(table, next);
                    let mut mine: HashMap<usize, Kind> = HashMap::new();
                    let mut refused = false;
                    for _ in 0..3 {
                        let from = random.usize(..KEYS);
                        let to = from + 1 + random.usize(..3).min(KEYS - from - 1);
                        let kind = if random.u8(..3) == 0 { X } else { S };
                        let (first, end) = ([from as u8], [to as u8]);
                        let place = match random.u8(..3) {
                            0 => Place::Key(&first),
                            _ => Place::Range { from: &first, to: Some(&end) },
                        };
                        match table.acquire(id, TREE, place, kind, None, LIMIT) {
                            Ok(()) => {}
                            Err(LockError::Deadlock { .. }) => {
                                refused = true;
                                break;
                            }
                            Err(other) => panic!("{other}"),
                        }
                        let to = if matches!(place, Place::Key(_)) { from + 1 } else { to };
                        for (at, inside) in inside.iter().enumerate().take(to).skip(from) {
                            let had = mine.get(&at).copied();
                            if had != Some(X) && had != Some(kind) {
                                had.inspect(|&had| leave(inside, had));
                                enter(inside, kind);
                                mine.insert(at, kind);
                            }
                        }
                        thread::yield_now();
                    }
                    mine.iter().for_each(|(&at, &kind)| leave(&inside[at], kind));
                    table.end(id);
                    committed.fetch_add(u64::from(!refused), SeqCst);
                }
            });
        }
    });
    assert!(committed.load(SeqCst) > 0 && table.stats().waits > 0);
    assert_eq!(committed.load(SeqCst) + table.stats().deadlocks, 8 * 300);
    assert_empty(&table);
}

#[test]
fn keys_and_ranges_with_limits_kills_and_writers() {
    let (table, next) = (LockTable::new(), AtomicU64::new(1));
    let together = Barrier::new(6);
    thread::scope(|scope| {
        for seed in 0..6 {
            let (table, next, together) = (&table, &next, &together);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                together.wait();
                for _ in 0..300 {
                    let id = begin(table, next);
                    for _ in 0..4 {
                        let (first, end) = ([random.u8(..4)], [random.u8(..5)]);
                        let is_key = random.bool();
                        let place = match end {
                            _ if is_key => Place::Key(&first),
                            [4] => Place::Range { from: &first, to: None },
                            _ => Place::Range { from: &first, to: Some(&end) },
                        };
                        let wait = match random.u8(..3) {
                            0 => Wait::No,
                            1 => Wait::Until(Duration::from_micros(random.u64(..200))),
                            _ => LIMIT,
                        };
                        // Any transaction near in number, ended or not, as a row's stamp would
                        // name.
                        let writer = is_key && random.bool();
                        let writer = writer.then(|| TxnId(id.0.saturating_sub(3)));
                        let kind = Kind::ALL[random.usize(..2)];
                        if table.acquire(id, TREE, place, kind, writer, wait).is_err() {
                            break;
                        }
                        thread::yield_now();
                        if random.u8(..4) == 0 {
                            table.kill(TxnId(random.u64(1..next.load(SeqCst))));
                        }
                    }
                    table.end(id);
                }
            });
        }
    });
    let stats = table.stats();
    assert_eq!((stats.held, stats.waiting, stats.ranges), (0, 0, 0));
    assert!(stats.waits > 0);
    assert!(table.shards.is_empty());
}

#[test]
fn a_writer_among_readers_without_end_gets_its_turn() {
    let (table, next) = (LockTable::new(), AtomicU64::new(1));
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Two readers overlap all the time: the row is never free of them.
                let mut before = begin(&table, &next);
                table.acquire(before, TREE, place("k"), S, None, LIMIT).expect("no circles");
                while done.load(SeqCst) == 0 {
                    let id = begin(&table, &next);
                    let got = table.acquire(id, TREE, place("k"), S, None, Wait::No);
                    if got.is_err() {
                        // A writer waits: no transaction overtakes it any more.
                        table.end(before);
                        table.acquire(id, TREE, place("k"), S, None, LIMIT).expect("no circles");
                    } else {
                        table.end(before);
                    }
                    before = id;
                }
                table.end(before);
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                let id = begin(&table, &next);
                table.acquire(id, TREE, place("k"), X, None, LIMIT).expect("it gets its turn");
                table.end(id);
            }
            done.store(1, SeqCst);
        });
    });
    assert_empty(&table);
}
