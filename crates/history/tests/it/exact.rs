//! Against brute force: small histories of any kind are clean as SERIALIZABLE exactly if some order
//! of their transactions, one after the other, gives what they saw.

use proptest::prelude::*;
use std::collections::HashMap;
use weir_history::{Demand, End, History, Key, Level, Lock, Op, Version, check};

const KEYS: Key = 3;

/// A random interleaving in which a read may see any version that has been written so far.
fn wild(seed: u64, transactions: usize, steps: usize) -> History {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut history = History::over([0, 1]);
    for _ in 0..transactions {
        let txn = history.add(Level::Serializable, Vec::new());
        if random.u32(..6) == 0 {
            txn.end = End::Aborted;
        }
    }
    // By key all versions, in the order of their writing.
    let mut written: Vec<Vec<Version>> =
        (0..KEYS).map(|key| vec![history.first_version(key)]).collect();
    for _ in 0..steps {
        let at = random.usize(..transactions);
        let key = random.u32(..KEYS);
        // Mostly the newest; else nothing would ever be serialisable.
        let mut pick = |versions: &[Version]| {
            let back = if random.u32(..5) == 0 { random.usize(..versions.len()) } else { 0 };
            Some(versions[versions.len() - 1 - back]).filter(|&version| version != Version::UNBORN)
        };
        let seen: Vec<Option<Version>> = written.iter().map(|versions| pick(versions)).collect();
        let txn = &mut history.transactions[at];
        let op = match random.u32(..5) {
            0 | 1 => Op::Read { key, seen: seen[key as usize], lock: Lock::None },
            2 => {
                let rows = (0..KEYS).filter_map(|key| Some((key, seen[key as usize]?)));
                Op::Scan { keys: 0..KEYS, seen: rows.collect(), lock: Lock::None }
            }
            _ => {
                let versions = &mut written[key as usize];
                let over = versions[versions.len() - 1];
                let writes = txn.ops.iter().filter(|op| matches!(op, Op::Write { .. })).count();
                let version = Version { txn: txn.id, nth: writes as u32 + 1 };
                versions.push(version);
                Op::Write { key, nth: version.nth, over, dead: false }
            }
        };
        txn.ops.push(op);
    }
    history
}

/// What a write overwrote, were rolled-back writes never made.
fn really_over(history: &History, key: Key, own: u32, mut over: Version) -> Version {
    loop {
        let Some(writer) = history.transactions.iter().find(|txn| txn.id == over.txn) else {
            return over;
        };
        if writer.end == End::Committed || writer.id == own {
            return over;
        }
        let write = writer.ops.iter().find_map(|op| match *op {
            Op::Write { key: k, nth, over: before, .. } if k == key && nth == over.nth => {
                Some(before)
            }
            _ => None,
        });
        over = write.expect("it is there");
    }
}

/// Whether the transactions, in this order, see what they saw.
fn replays(history: &History, order: &[usize]) -> bool {
    let mut state: HashMap<Key, Version> =
        (0..KEYS).map(|key| (key, history.first_version(key))).collect();
    for &at in order {
        let txn = &history.transactions[at];
        let before = state.clone();
        for op in &txn.ops {
            let row = |key: Key| Some(state[&key]).filter(|&version| version != Version::UNBORN);
            let right = match op {
                Op::Read { key, seen, .. } => row(*key) == *seen,
                Op::Scan { seen, .. } => {
                    let rows = (0..KEYS).filter_map(|key| Some((key, row(key)?)));
                    rows.collect::<Vec<_>>() == *seen
                }
                &Op::Write { key, nth, over, .. } => {
                    let over = really_over(history, key, txn.id, over);
                    let right = txn.end == End::Aborted || state[&key] == over;
                    state.insert(key, Version { txn: txn.id, nth });
                    right
                }
                Op::Undo { .. } => unreachable!("none was drawn"),
            };
            if !right {
                return false;
            }
        }
        if txn.end == End::Aborted {
            state = before;
        }
    }
    true
}

fn some_order_replays(history: &History, order: &mut Vec<usize>, left: &mut Vec<usize>) -> bool {
    if left.is_empty() {
        return replays(history, order);
    }
    for at in 0..left.len() {
        let next = left.swap_remove(at);
        order.push(next);
        let found = some_order_replays(history, order, left);
        order.pop();
        left.push(next);
        let last = left.len() - 1;
        left.swap(at, last);
        if found {
            return true;
        }
    }
    false
}

fn is_serialisable(history: &History) -> bool {
    some_order_replays(history, &mut Vec::new(), &mut (0..history.transactions.len()).collect())
}

#[test]
fn both_kinds_are_drawn() {
    let all = 400;
    let good = (0..all).filter(|&seed| is_serialisable(&wild(seed, 4, 9))).count();
    assert!((all as usize / 10..all as usize * 9 / 10).contains(&good), "{good}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]
    #[test]
    fn clean_is_serialisable(seed: u64, transactions in 2usize..6, steps in 2usize..16) {
        let history = wild(seed, transactions, steps);
        let report = check(&history, &Demand::all_at(Level::Serializable));
        prop_assert_eq!(
            report.is_clean(), is_serialisable(&history),
            "{}\n{:#?}", report.explain(&history), history
        );
    }

    #[test]
    fn stronger_levels_forbid_more(seed: u64, transactions in 2usize..6, steps in 2usize..24) {
        // REPEATABLE READ is not stronger than READ COMMITTED: a plain read after a write may be of
        // a snapshot older than what was overwritten.
        let history = wild(seed, transactions, steps);
        let clean = Level::ALL.map(|level| check(&history, &Demand::all_at(level)).is_clean());
        for (weak, strong) in [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)] {
            prop_assert!(clean[weak] || !clean[strong], "{weak} {strong} {clean:?}");
        }
    }
}
