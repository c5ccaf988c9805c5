//! Walks over tables of which a step meets a lock: the transaction that goes on misses nothing.
use weir::Isolation;
use weir_table::{Direction, Error, KeyRange, Lock, Range, Value};

use crate::support::{at, begin, birds, fill, ids, new};

const INDEXES: [Option<&str>; 3] = [None, Some("by_ring"), Some("by_name")];

/// Of an index, the lock is met at the row of an entry, which is locked by itself already.
#[test]
fn a_walk_comes_to_the_row_that_it_could_not_lock() {
    let (db, tables) = new(1);
    let table = birds(&tables);
    fill(&db, &table, 1..12);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for (index, direction) in INDEXES
            .into_iter()
            .flat_map(|index| [Direction::Up, Direction::Down].map(|direction| (index, direction)))
        {
            for lock in [Lock::Share, Lock::Update] {
                let mut holder = begin(&db);
                let five = [Value::from(5u64)];
                assert!(table.get_for_update(&mut holder, &five).expect("locked").is_some());
                let mut holder = Some(holder);
                let mut txn = at(&db, isolation);
                let all = Range::all();
                let mut scan = table.scan_with(&mut txn, index, &all, direction, lock);
                let scan = scan.as_mut().expect("a scan");
                let mut met = Vec::new();
                loop {
                    match scan.next(&mut txn) {
                        Ok(Some(row)) => met.push(row),
                        Ok(None) => break,
                        Err(e) => {
                            assert!(e.is_retryable(), "{e}");
                            assert!(scan.next(&mut txn).is_err(), "it is locked");
                            drop(holder.take().expect("met once"));
                        }
                    }
                }
                assert!(holder.is_none(), "{index:?}: the lock was not met");
                drop(txn);
                let mut plain = begin(&db);
                let mut scan = table.scan(&mut plain, index, &all, direction).expect("a scan");
                let mut expected = Vec::new();
                while let Some(row) = scan.next(&mut plain).expect("a step") {
                    expected.push(row);
                }
                assert_eq!(ids(&met), ids(&expected), "{isolation:?} {index:?} {direction:?}");
            }
        }
    }
}

#[test]
fn so_does_one_over_bytes() {
    let (db, tables) = new(2);
    fill(&db, &birds(&tables), 1..12);
    let table = tables.open_raw("birds").expect("the table");
    let mut keys = Vec::new();
    let mut plain = begin(&db);
    let mut scan = table.scan(&mut plain, None, KeyRange::all(), Direction::Up).expect("a scan");
    while scan.next(&mut plain).expect("a step") {
        keys.push(scan.tree_key().to_vec());
    }
    let mut row = Vec::new();
    // The first row that it comes to, one in the middle, the last one.
    for (down, at_row) in [(false, 0), (false, 4), (true, 10), (true, 4), (true, 0)] {
        let direction = if down { Direction::Down } else { Direction::Up };
        let mut holder = begin(&db);
        assert!(table.get_for_update(&mut holder, &keys[at_row], &mut row).expect("locked"));
        let mut holder = Some(holder);
        let mut txn = begin(&db);
        let all = KeyRange::all();
        let scan = table.scan_with(&mut txn, None, all, direction, Lock::Update);
        let mut scan = scan.expect("a scan");
        let mut met = Vec::new();
        loop {
            match scan.next(&mut txn) {
                Ok(true) => met.push(scan.tree_key().to_vec()),
                Ok(false) => break,
                Err(Error::Store(e)) => {
                    assert!(e.is_retryable() && scan.tree_key().is_empty(), "{e}");
                    assert!(scan.next(&mut txn).is_err(), "it is locked");
                    drop(holder.take().expect("met once"));
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(holder.is_none(), "the lock was not met");
        if down {
            met.reverse();
        }
        assert!(met == keys, "down {down}, row {at_row}: {} rows", met.len());
    }
}
