//! One small history for each anomaly: it is found, named, and forbidden at the right levels; and
//! what looks like it without being it is left alone.

use weir_history::{
    Anomaly, Demand, End, Evidence, History, Key, Level, Lock, Op, Version, check, survey,
};

const ALL: &[Level] = &Level::ALL;

fn v(txn: u32, nth: u32) -> Version {
    Version { txn, nth }
}

fn get(key: Key, seen: Version) -> Op {
    Op::Read { key, seen: Some(seen), lock: Lock::None }
}

fn locked(key: Key, seen: Version) -> Op {
    Op::Read { key, seen: Some(seen), lock: Lock::Update }
}

fn nothing(key: Key) -> Op {
    Op::Read { key, seen: None, lock: Lock::None }
}

fn scan(seen: &[(Key, Version)]) -> Op {
    Op::Scan { keys: 0..100, seen: seen.to_vec(), lock: Lock::None }
}

fn put(key: Key, nth: u32, over: Version) -> Op {
    Op::Write { key, nth, over, dead: false }
}

fn delete(key: Key, nth: u32, over: Version) -> Op {
    Op::Write { key, nth, over, dead: true }
}

/// Rows 1 to 3 are there at first; transactions 1, 2, ... do these things.
fn history(transactions: &[&[Op]]) -> History {
    let mut history = History::over(1..=3);
    for ops in transactions {
        history.add(Level::Serializable, ops.to_vec());
    }
    history
}

const S: Version = Version::SETUP;

/// Exactly this is found, and exactly these levels forbid it; and the account of it can be read.
#[track_caller]
fn found(history: &History, anomaly: Anomaly, levels: &[Level]) {
    let all = survey(history);
    let names: Vec<_> = all.iter().map(|found| found.anomaly).collect();
    assert_eq!(names, [anomaly], "{}", all.iter().map(|f| f.explain(history)).collect::<String>());
    assert_eq!(all[0].forbidden_at, levels, "{}", all[0].explain(history));
    let text = all[0].explain(history);
    assert!(text.starts_with(anomaly.name()) && text.contains("T1"), "{text}");
    for level in Level::ALL {
        let report = check(history, &Demand::all_at(level));
        assert_eq!(!report.is_clean(), levels.contains(&level), "at {level}");
    }
}

#[track_caller]
fn clean(history: &History) {
    let report = check(history, &Demand::all_at(Level::Serializable));
    assert!(report.is_clean(), "{}", report.explain(history));
    assert!(survey(history).is_empty());
}

#[test]
fn g0_dirty_write() {
    let history =
        history(&[&[put(1, 1, S), put(2, 2, v(2, 2))], &[put(1, 1, v(1, 1)), put(2, 2, S)]]);
    found(&history, Anomaly::G0, ALL);
}

#[test]
fn g0_on_one_key() {
    let history = history(&[&[put(1, 1, S), put(1, 2, v(2, 1))], &[put(1, 1, v(1, 1))]]);
    found(&history, Anomaly::G0, ALL);
}

#[test]
fn g1a_aborted_read() {
    let mut history = history(&[&[get(1, v(2, 1))], &[put(1, 1, S)]]);
    history.transactions[1].end = End::Aborted;
    found(&history, Anomaly::G1a, &ALL[1..]);
}

#[test]
fn g1a_of_a_write_rolled_back_to_a_savepoint() {
    let writer = [put(2, 1, S), put(1, 2, S), Op::Undo { from: 1 }, get(1, S), get(2, v(2, 1))];
    found(&history(&[&[get(1, v(2, 2))], &writer]), Anomaly::G1a, &ALL[1..]);
    clean(&history(&[&[get(1, S)], &writer]));
}

#[test]
fn g1a_of_an_aborted_removal() {
    let mut history = history(&[&[nothing(1)], &[delete(1, 1, S)]]);
    history.transactions[1].end = End::Aborted;
    found(&history, Anomaly::G1a, &ALL[1..]);
}

#[test]
fn g1b_intermediate_read() {
    let history = history(&[&[get(1, v(2, 1))], &[put(1, 1, S), put(1, 2, v(2, 1))]]);
    found(&history, Anomaly::G1b, &ALL[1..]);
}

#[test]
fn g1c_circular_information_flow() {
    let history = history(&[&[put(1, 1, S), get(2, v(2, 1))], &[put(2, 1, S), get(1, v(1, 1))]]);
    found(&history, Anomaly::G1c, &ALL[1..]);
}

#[test]
fn otv_observed_transaction_vanishes() {
    let reader = [get(1, v(2, 1)), get(2, S)];
    let history = history(&[&reader, &[put(1, 1, S), put(2, 2, S)]]);
    found(&history, Anomaly::Otv, &ALL[1..]);
}

#[test]
fn otv_with_a_locking_read_first_is_repeatable_read() {
    // What MariaDB does: the locking read sees the latest row, the plain one the snapshot.
    let reader = [locked(1, v(2, 1)), get(2, S)];
    let history = history(&[&reader, &[put(1, 1, S), put(2, 2, S)]]);
    found(&history, Anomaly::Otv, &[ALL[1], ALL[3], ALL[4]]);
}

#[test]
fn g_single_read_skew() {
    let history = history(&[&[get(2, S), get(1, v(2, 1))], &[put(1, 1, S), put(2, 2, S)]]);
    found(&history, Anomaly::GSingle, &ALL[2..]);
}

#[test]
fn g_single_through_a_third() {
    let second: &[Op] = &[put(2, 1, S)];
    let history =
        history(&[&[get(2, S), get(1, v(3, 1))], second, &[get(2, v(2, 1)), put(1, 1, S)]]);
    found(&history, Anomaly::GSingle, &ALL[2..]);
}

#[test]
fn pmp_a_range_and_then_its_writer() {
    let reader = [Op::Scan { keys: 40..60, seen: vec![], lock: Lock::None }, get(1, v(2, 2))];
    let history = history(&[&reader, &[put(50, 1, Version::UNBORN), put(1, 2, S)]]);
    found(&history, Anomaly::Pmp, &ALL[2..]);
}

#[test]
fn a_row_behind_a_locking_scan_that_waits_is_repeatable_read() {
    // It passed where row 0 will be, waited for row 1, and then saw the writer of both.
    let seen = vec![(1, v(2, 2)), (2, S), (3, S)];
    let reader = [Op::Scan { keys: 0..60, seen, lock: Lock::Share }];
    let history = history(&[&reader, &[put(0, 1, Version::UNBORN), put(1, 2, S)]]);
    found(&history, Anomaly::Otv, &ALL[2..]);
}

#[test]
fn p4_lost_update() {
    let history = history(&[&[get(1, S), put(1, 1, v(2, 1))], &[put(1, 1, S)]]);
    // MariaDB's REPEATABLE READ writes onto the latest row.
    found(&history, Anomaly::LostUpdate, &ALL[3..]);
}

#[test]
fn p4_is_forbidden_everywhere_after_a_locking_read() {
    let history = history(&[&[locked(1, S), put(1, 1, v(2, 1))], &[put(1, 1, S)]]);
    found(&history, Anomaly::LostUpdate, ALL);
}

#[test]
fn p4_two_overwrite_the_same() {
    let history = history(&[&[put(1, 1, S)], &[put(1, 1, S)]]);
    let all = survey(&history);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].anomaly, Anomaly::LostUpdate);
}

#[test]
fn g2_item_write_skew() {
    let all: [&[Op]; 2] =
        [&[get(1, S), get(2, S), put(1, 1, S)], &[get(1, S), get(2, S), put(2, 1, S)]];
    found(&history(&all), Anomaly::G2Item, &ALL[4..]);
}

#[test]
fn g2_phantoms() {
    let empty = Op::Scan { keys: 10..20, seen: vec![], lock: Lock::None };
    let first = [empty.clone(), put(11, 1, Version::UNBORN)];
    let second = [empty, put(12, 1, Version::UNBORN)];
    found(&history(&[&first, &second]), Anomaly::G2, &ALL[4..]);
}

#[test]
fn g2_with_locked_ranges_is_forbidden_from_repeatable_read() {
    let empty = Op::Scan { keys: 10..20, seen: vec![], lock: Lock::Update };
    let first = [empty.clone(), put(11, 1, Version::UNBORN)];
    let second = [empty, put(12, 1, Version::UNBORN)];
    found(&history(&[&first, &second]), Anomaly::G2, &ALL[2..]);
}

#[test]
fn read_only_anomaly_of_three() {
    // A. Fekete, E. O'Neil, P. O'Neil, 2004: serialisable but for the reader.
    let withdraw: &[Op] = &[get(1, S), get(2, S), put(1, 1, S)];
    let deposit: &[Op] = &[get(2, S), put(2, 1, S)];
    let report: &[Op] = &[get(1, S), get(2, v(2, 1))];
    found(&history(&[withdraw, deposit, report]), Anomaly::G2Item, &ALL[4..]);
    clean(&history(&[withdraw, deposit]));
}

#[test]
fn own_writes_must_be_seen() {
    found(&history(&[&[put(1, 1, S), get(1, S)]]), Anomaly::Internal, ALL);
    found(&history(&[&[delete(1, 1, S), get(1, v(1, 1))]]), Anomaly::Internal, ALL);
    clean(&history(&[&[put(1, 1, S), get(1, v(1, 1)), delete(1, 2, v(1, 1)), nothing(1)]]));
}

#[test]
fn a_version_that_was_never_written() {
    found(&history(&[&[get(1, v(7, 7))]]), Anomaly::Garbage, ALL);
    found(&history(&[&[get(9, S)]]), Anomaly::Garbage, ALL);
    found(&history(&[&[nothing(1)]]), Anomaly::Garbage, ALL);
    found(&history(&[&[scan(&[(1, S), (2, S)])]]), Anomaly::Garbage, ALL);
}

#[test]
fn stale_reads_are_against_time_only() {
    let mut history = history(&[&[put(1, 1, S)], &[get(1, S)]]);
    for (at, txn) in history.transactions.iter_mut().enumerate() {
        (txn.began, txn.ended) = (at as u64 * 10, at as u64 * 10 + 5);
    }
    clean(&history);
    let report = check(&history, &Demand::OWN);
    assert_eq!(report.found.len(), 1);
    assert_eq!(report.found[0].anomaly, Anomaly::Stale);
    let Evidence::Circle(circle) = &report.found[0].evidence else { panic!("a circle") };
    assert_eq!(circle.len(), 2);
    assert!(report.explain(&history).contains("T1 had committed when T2 began"));
    // Overlapping, there is nothing wrong.
    history.transactions[1].began = 4;
    assert!(check(&history, &Demand::OWN).is_clean());
}

#[test]
fn removals_and_returns_keep_their_order() {
    let all: [&[Op]; 3] = [
        &[delete(1, 1, S)],
        &[nothing(1), put(1, 1, v(1, 1))],
        &[get(1, v(2, 1)), delete(2, 1, S), nothing(2)],
    ];
    clean(&history(&all));
    // The second saw no row, and yet the row before the removal.
    let skew: [&[Op]; 2] = [&[delete(1, 1, S), put(2, 2, S)], &[nothing(1), get(2, S)]];
    found(&history(&skew), Anomaly::Otv, &ALL[1..]);
}

#[test]
fn rolled_back_writes_are_as_if_they_had_not_been() {
    let all: [&[Op]; 3] =
        [&[put(1, 1, S)], &[put(1, 1, v(1, 1))], &[get(1, S), put(1, 1, v(2, 1))]];
    let mut history = history(&all);
    history.transactions[0].end = End::Aborted;
    history.transactions[1].end = End::Aborted;
    clean(&history);
    // But had the second committed, the third would have lost its update.
    history.transactions[1].end = End::Committed;
    found_name(&history, Anomaly::LostUpdate);
}

#[track_caller]
fn found_name(history: &History, anomaly: Anomaly) {
    let names: Vec<_> = survey(history).iter().map(|found| found.anomaly).collect();
    assert_eq!(names, [anomaly]);
}

#[test]
fn a_commit_of_unknown_outcome_counts_once_it_was_seen() {
    let mut seen = history(&[&[put(1, 1, S), put(2, 2, S)], &[get(1, v(1, 1)), get(2, S)]]);
    seen.transactions[0].end = End::Unknown;
    found_name(&seen, Anomaly::Otv);
    let mut unseen = history(&[&[put(1, 1, S)], &[get(1, S)]]);
    unseen.transactions[0].end = End::Unknown;
    clean(&unseen);
}

#[test]
fn levels_may_be_mixed() {
    let skew: [&[Op]; 2] =
        [&[get(1, S), get(2, S), put(1, 1, S)], &[get(1, S), get(2, S), put(2, 1, S)]];
    let mut history = history(&skew);
    let own = Demand { real_time: false, ..Demand::OWN };
    assert!(!check(&history, &own).is_clean());
    // One of them asked for less, so the other gets nothing false: first it, then the other.
    history.transactions[1].level = Level::ReadCommitted;
    assert!(check(&history, &own).is_clean());
}

#[test]
fn of_many_circles_the_smallest_is_reported() {
    // A big knot: 40 transactions in a circle of read dependencies, and within it two that skew.
    let mut history = History::over(0..200);
    for n in 0..40u32 {
        let before = (n + 39) % 40;
        let mut ops = vec![put(n, 1, S), get(before, v(before + 1, 1))];
        if n == 20 || n == 21 {
            ops.push(get(if n == 20 { 121 } else { 120 }, S));
            ops.push(put(100 + n, 2, S));
        }
        history.add(Level::Serializable, ops);
    }
    let report = check(&history, &Demand::all_at(Level::Serializable));
    assert_eq!(report.found.len(), 1);
    let Evidence::Circle(circle) = &report.found[0].evidence else { panic!("a circle") };
    assert_eq!(circle.len(), 2, "{}", report.explain(&history));
    // The 21st saw the 20th's write, and then a row from before it.
    assert_eq!(survey(&history)[0].anomaly, Anomaly::Otv);
}

#[test]
fn what_a_crash_took_is_no_fault_of_those_it_took_with_it() {
    let lost: [&[Op]; 4] = [
        &[delete(1, 1, S), put(2, 2, S)],
        &[nothing(1), get(2, v(1, 2)), put(3, 1, S)],
        &[get(3, v(2, 1)), get(2, v(1, 2))],
        &[get(1, S), get(2, S), get(3, S), put(1, 1, v(1, 1))],
    ];
    let mut history = history(&lost);
    history.transactions[0].end = End::Unknown;
    history.transactions[1].end = End::Unknown;
    history.transactions[2].end = End::Aborted;
    clean(&history);
    // But if one thing is found again, so must the other be.
    history.transactions[3].ops[1] = get(2, v(1, 2));
    assert!(!check(&history, &Demand::all_at(Level::Snapshot)).is_clean());
}
