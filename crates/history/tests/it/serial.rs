//! Histories that are serial by construction never report anything, and big ones are checked fast.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_history::{Demand, End, History, Key, Level, Lock, Op, Version, check};

/// Runs random transactions one after the other on a map and writes down what they do.
fn serial(seed: u64, transactions: usize, keys: Key) -> History {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut history = History::over((0..keys).filter(|key| key % 3 != 0));
    let mut rows: BTreeMap<Key, Version> =
        history.setup.iter().map(|&key| (key, Version::SETUP)).collect();
    // What was written last, rows or not.
    let mut latest: BTreeMap<Key, Version> = rows.clone();
    for at in 0..transactions {
        let id = at as u32 + 1;
        let aborts = random.u32(..10) == 0;
        let (rows_before, mut nth, mut ops) = (rows.clone(), 0, Vec::new());
        for _ in 0..random.usize(1..8) {
            let key = random.u32(..keys);
            let lock = [Lock::None, Lock::Share, Lock::Update][random.usize(..3)];
            match random.u32(..8) {
                0..3 => ops.push(Op::Read { key, seen: rows.get(&key).copied(), lock }),
                3 => {
                    let to = (key + random.u32(1..10)).min(keys);
                    let seen = rows.range(key..to).map(|(&key, &version)| (key, version)).collect();
                    ops.push(Op::Scan { keys: key..to, seen, lock });
                }
                kind => {
                    let dead = kind == 4;
                    if dead && !rows.contains_key(&key) {
                        continue;
                    }
                    nth += 1;
                    let version = Version { txn: id, nth };
                    let over = latest.insert(key, version).unwrap_or(Version::UNBORN);
                    ops.push(Op::Write { key, nth, over, dead });
                    match dead {
                        true => rows.remove(&key),
                        false => rows.insert(key, version),
                    };
                }
            }
        }
        let txn = history.add(Level::ALL[random.usize(..5)], ops);
        (txn.began, txn.ended) = (at as u64 * 2, at as u64 * 2 + 1);
        if aborts {
            // What it overwrote stands again; a transaction that writes next still finds its name
            // there.
            txn.end = End::Aborted;
            rows = rows_before;
        }
    }
    history
}

/// The time that a processor has given to this thread: what else the machine does is not in it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[test]
fn ten_thousand_transactions_pass_fast() {
    let history = serial(1, 10_000, 300);
    let took = processor_time();
    let report = check(&history, &Demand::OWN);
    assert!(report.is_clean(), "{}", report.explain(&history));
    assert!(report.dependencies > 20_000);
    // Where the kernel does not tell, there is nothing to judge.
    let took = took.zip(processor_time()).map(|(before, after)| after - before);
    assert!(took.is_none_or(|took| took < Duration::from_secs(3)), "{took:?}");
    let strict = Demand { level: Some(Level::Serializable), ..Demand::OWN };
    assert!(check(&history, &strict).is_clean());
}

#[test]
fn a_needle_in_ten_thousand_is_found() {
    let mut history = serial(2, 10_000, 300);
    // Transaction 5001 forgets what it saw of one key: it now sees the first row.
    let mut planted = false;
    for txn in &mut history.transactions[5_000..] {
        for op in &mut txn.ops {
            if let Op::Read { seen: Some(seen), .. } = op
                && seen.txn != txn.id
                && seen.txn != 0
                && !planted
            {
                *seen = Version::SETUP;
                planted = true;
            }
        }
    }
    assert!(planted);
    assert!(!check(&history, &Demand::OWN).is_clean());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn serial_histories_never_report(seed: u64, transactions in 1usize..60, keys in 2u32..20) {
        let history = serial(seed, transactions, keys);
        let report = check(&history, &Demand::OWN);
        prop_assert!(report.is_clean(), "{}", report.explain(&history));
        for level in Level::ALL {
            let strict = Demand { level: Some(level), ..Demand::OWN };
            let report = check(&history, &strict);
            prop_assert!(report.is_clean(), "{}", report.explain(&history));
        }
    }
}
