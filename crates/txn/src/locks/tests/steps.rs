//! How many rows are looked at while a transaction waits for a range: a transaction that comes by
//! does not look at all that others hold there.
use super::*;

/// Rows that one transaction shares.
const MANY: u32 = 5_000;

/// What one request or one release may look at.
const SOME: usize = 64;

fn get(stage: &Stage, id: u64, n: u32, kind: Kind) -> Answer {
    stage.ask_at(id, Place::Key(&n.to_be_bytes()), kind, None, true)
}

/// 1 shares every second row of very many, 5 the last of them, and 2 has `alone` others to itself;
/// 3 waits for all of it.
fn stage(alone: u32, kind: Kind) -> Stage {
    let stage = Stage::new(9);
    (0..MANY).for_each(|n| assert_eq!(get(&stage, 1, n * 2, S), Got));
    assert_eq!(get(&stage, 5, MANY * 2 - 2, S), Got);
    (0..alone).for_each(|n| assert_eq!(get(&stage, 2, n * 8 + 1, X), Got));
    assert_eq!(stage.ask(3, "..", kind), Waits);
    stage
}

/// What comes of it, which looks at few rows.
fn in_few<T>(stage: &mut Stage, times: usize, act: impl FnOnce(&mut Stage) -> T) -> T {
    let now = |stage: &Stage| {
        stage.table.shards.lock(TREE).find(TREE).map_or(0, |locks| locks.looked.get())
    };
    let before = now(stage);
    let done = act(stage);
    let looked = now(stage) - before;
    assert!(looked <= SOME * times, "{looked} rows");
    done
}

#[test]
fn a_writer_asks_beside_a_range_wait() {
    for (kind, passes) in [(S, [false, true, false, false]), (X, [true, true, false, true])] {
        let mut stage = stage(1, kind);
        // A transaction that holds what 3 waits for goes first: 4 holds nothing at all.
        for (id, passes) in [1, 2, 4, 5].into_iter().zip(passes) {
            let free = 3_u32.to_be_bytes();
            let blocks =
                |stage: &mut Stage| stage.table.blocks(TxnId(id), TREE, &free, Kind::Exclusive);
            assert_eq!(in_few(&mut stage, 1, blocks), !passes, "{id} beside {kind}");
        }
        let place = Place::Key(&[0, 0, 0, 3]);
        let refused = in_few(&mut stage, 1, |stage| stage.ask_at(4, place, X, None, false));
        assert_eq!(refused, Answer::Refused(LockError::WouldWait { holder: TxnId(3) }));
    }
}

#[test]
fn many_locks_end_beside_a_range_wait() {
    let mut stage = stage(500, S);
    in_few(&mut stage, 500, |stage| stage.end(2));
    assert_eq!(stage.answer(3), Got);
    (4..=5).for_each(|id| stage.end(id));
    stage.all_end();
}

#[test]
fn a_circle_is_searched_through_range_waits() {
    let mut stage = stage(1, S);
    // 5 waits behind 3, and 2 for 5.
    assert_eq!(in_few(&mut stage, 2, |stage| get(stage, 5, 3, X)), Waits);
    let asked = in_few(&mut stage, 8, |stage| get(stage, 2, MANY * 2 - 2, X));
    assert!(matches!(asked, Waits | Answer::Refused(LockError::Deadlock { .. })), "{asked:?}");
}

#[test]
fn a_range_wait_behind_another_waiter() {
    let mut stage = Stage::new(7);
    (0..MANY).for_each(|n| assert_eq!(get(&stage, 1, n * 2, S), Got));
    assert_eq!((get(&stage, 2, 1, S), get(&stage, 7, 0, S)), (Got, Got));
    assert_eq!((get(&stage, 6, 1, X), stage.ask(3, "..", S)), (Waits, Waits));
    // No transaction holds what 3 asks for, but 6 comes first.
    in_few(&mut stage, 2, |stage| stage.end(7));
    assert_eq!(stage.answer(3), Waits);
    stage.end(2);
    assert_eq!((stage.answer(6), stage.answer(3)), (Got, Waits));
    stage.end(6);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}
