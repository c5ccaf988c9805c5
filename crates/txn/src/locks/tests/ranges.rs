//! Ranges: what they wait for, what waits for them, and how they grow.
use super::*;

#[test]
fn which_requests_of_keys_and_ranges_conflict() {
    // What one holds and what another asks for: whether the places have a key in common.
    let places = [
        ("b..d", "a", false),
        ("b..d", "b", true),
        ("b..d", "cz", true),
        ("b..d", "d", false),
        ("b..d", "d..e", false),
        ("b..d", "a..b", false),
        ("b..d", "a..bb", true),
        ("b..d", "c..x", true),
        ("b..d", "..", true),
        ("b..", "z", true),
        ("..b", "z", false),
    ];
    for (one, other, meet) in places {
        for (held, asked) in [(one, other), (other, one)] {
            for (first, second) in [(S, S), (S, X), (X, S), (X, X)] {
                let mut stage = Stage::new(2);
                assert_eq!(stage.ask(1, held, first), Got);
                let waits = meet && second.conflicts_with(first);
                let refused = Answer::Refused(LockError::WouldWait { holder: TxnId(1) });
                let expected = if waits { refused } else { Got };
                let answer = stage.ask_at(2, place(asked), second, None, false);
                assert_eq!(answer, expected, "{second} of {asked} against {first} of {held}");
                if let Place::Key(_) = place(asked) {
                    assert_eq!(stage.blocks(2, asked, second), waits);
                }
                if waits {
                    assert!(!stage.blocks(1, "b", second), "no transaction blocks itself");
                    assert_eq!(stage.ask(2, asked, second), Waits);
                    stage.end(1);
                    assert_eq!(stage.answer(2), Got);
                }
                stage.all_end();
            }
        }
    }
}

#[test]
fn an_empty_range_and_another_tree_block_nothing() {
    let stage = Stage::new(2);
    let no = super::super::Wait::No;
    assert_eq!(stage.ask(1, "a..m", X), Got);
    assert_eq!(stage.table.acquire(TxnId(2), TREE, place("c..c"), X, None, no), Ok(()));
    assert_eq!(stage.table.acquire(TxnId(2), TreeId(4), place("a..m"), X, None, no), Ok(()));
    assert!(!stage.table.blocks(TxnId(1), TreeId(5), b"b", X));
    // The same shard as the tree of the range.
    assert!(!stage.table.blocks(TxnId(2), TreeId(TREE.0 + 64), b"b", X));
    stage.all_end();
}

#[test]
fn what_touches_becomes_one() {
    let stage = Stage::new(2);
    // Asked for, and how many ranges there are then.
    for (text, count) in
        [("b..c", 1), ("c..d", 1), ("f..g", 2), ("a..b", 2), ("g..h", 2), ("cc..f", 1), ("b..e", 1)]
    {
        assert_eq!(stage.ask(1, text, S), Got);
        assert_eq!(stage.table.stats().ranges, count, "{text}");
    }
    for (text, blocked) in [("A", false), ("a", true), ("e", true), ("gz", true), ("h", false)] {
        assert_eq!(stage.blocks(2, text, X), blocked, "{text}");
    }
    // Of another kind, it stays beside them.
    assert_eq!(stage.ask(1, "c..d", X), Got);
    assert_eq!(stage.table.stats().ranges, 2);
    assert!(stage.blocks(2, "c", S) && !stage.blocks(2, "e", S) && stage.blocks(2, "e", X));
    // Keys inside need no entry of their own.
    assert_eq!((stage.ask(1, "b", S), stage.ask(1, "c", X)), (Got, Got));
    assert_eq!(stage.table.stats().held, 0);
    assert_eq!(stage.ask(1, "b", X), Got);
    assert_eq!(stage.table.stats().held, 1);
    stage.all_end();
}

#[test]
fn keys_and_ranges_stand_in_one_queue() {
    let mut stage = Stage::new(6);
    assert_eq!(stage.ask(1, "d", X), Got);
    assert_eq!((stage.ask(2, "a..f", S), stage.ask(3, "e", X)), (Waits, Waits));
    assert!(stage.blocks(6, "b", X), "2 comes first, though no transaction holds b");
    assert_eq!((stage.ask(4, "e..k", S), stage.ask(5, "f", X)), (Waits, Waits));
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    assert_eq!((stage.answer(3), stage.answer(4), stage.answer(5)), (Waits, Waits, Waits));
    stage.end(2);
    assert_eq!((stage.answer(3), stage.answer(4), stage.answer(5)), (Got, Waits, Waits));
    stage.end(3);
    assert_eq!((stage.answer(4), stage.answer(5)), (Got, Waits));
    stage.end(4);
    assert_eq!(stage.answer(5), Got);
    stage.all_end();
}

#[test]
fn giving_up_a_range_wait_lets_keys_and_ranges_go_on() {
    let mut stage = Stage::new(5);
    assert_eq!((stage.ask(1, "d", S), stage.ask(2, "a..f", X)), (Got, Waits));
    assert_eq!((stage.ask(3, "b", S), stage.ask(4, "e..z", S)), (Waits, Waits));
    assert_eq!(stage.ask(5, "d", S), Waits);
    stage.table.kill(TxnId(2));
    assert_eq!(stage.answer(2), Answer::Refused(LockError::Killed));
    assert_eq!((stage.answer(3), stage.answer(4), stage.answer(5)), (Got, Got, Got));
    for id in 1..=5 {
        stage.end(id);
    }
    stage.all_end();
}

#[test]
fn a_scan_goes_on_past_waiters_for_it_and_not_past_others() {
    let mut stage = Stage::new(4);
    assert_eq!((stage.ask(1, "a..c", S), stage.ask(2, "m", S)), (Got, Got));
    // 3 waits for 1 at "b", and 4 for 2 at "m".
    assert_eq!((stage.ask(3, "a..h", X), stage.ask(4, "m", X)), (Waits, Waits));
    assert_eq!(stage.ask_at(1, place("c..h"), S, None, false), Got, "3 waits for it anyway");
    let refused = Answer::Refused(LockError::WouldWait { holder: TxnId(4) });
    assert_eq!(stage.ask_at(1, place("h..n"), S, None, false), refused, "or 4 would starve");
    stage.end(2);
    assert_eq!(stage.answer(4), Got);
    assert_eq!(stage.ask(1, "h..n", S), Waits);
    assert_eq!(stage.answer(3), Waits);
    stage.end(4);
    assert_eq!((stage.answer(1), stage.answer(3)), (Got, Waits));
    stage.end(1);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn a_waiter_behind_a_waiter_for_the_scan_is_passed_too() {
    let mut stage = Stage::new(3);
    assert_eq!(stage.ask(1, "a..c", S), Got);
    assert_eq!((stage.ask(2, "b..h", X), stage.ask(3, "g..k", X)), (Waits, Waits));
    assert_eq!(stage.ask_at(1, place("c..m"), S, None, false), Got);
    stage.end(1);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn a_row_of_a_writer_inside_ones_own_range_is_waited_for() {
    let mut stage = Stage::new(3);
    // 2 has written "c" before 1 locked the range; 1 comes to the row.
    assert_eq!(stage.ask(1, "a..f", S), Got);
    assert_eq!(stage.ask_at(1, place("c"), S, Some(2), true), Waits);
    assert!(stage.blocks(2, "d", X) && stage.blocks(3, "c", S));
    stage.end(2);
    assert_eq!(stage.answer(1), Got);
    assert_eq!(stage.table.stats().held, 0, "the range is enough");
    stage.all_end();
}

/// A join that locks a range of its inner table for each row of the outer one; another transaction
/// writes between. With a search through all of them for each, this would take minutes.
#[test]
fn very_many_ranges_of_one_transaction_cost_what_each_costs() {
    const COUNT: u32 = 200_000;
    let stage = Stage::new(2);
    let no = super::super::Wait::No;
    // In an order that is neither that of the keys nor the opposite.
    for n in (0..COUNT).map(|n| n.wrapping_mul(7_919) % COUNT) {
        let (from, to) = ((n * 2).to_be_bytes(), (n * 2 + 1).to_be_bytes());
        let range = Place::Range { from: &from, to: Some(&to) };
        assert_eq!(stage.table.acquire(TxnId(1), TREE, range, S, None, no), Ok(()));
        assert!(stage.table.blocks(TxnId(2), TREE, &from, X));
        assert!(!stage.table.blocks(TxnId(2), TREE, &to, X));
    }
    assert_eq!(stage.table.stats().ranges, u64::from(COUNT));
    assert_eq!(stage.ask(1, "..", S), Got);
    assert_eq!(stage.table.stats().ranges, 1);
    stage.all_end();
}
