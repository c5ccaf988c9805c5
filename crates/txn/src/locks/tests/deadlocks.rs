//! Every kind of deadlock, and its victim.
use super::*;
use crate::locks::Edge;

/// The circle that `answer` reports, as numbers of the transactions in order.
fn circle(answer: &Answer) -> Vec<u64> {
    let Answer::Refused(LockError::Deadlock { cycle }) = answer else {
        panic!("no deadlock: {answer:?}");
    };
    for (i, edge) in cycle.iter().enumerate() {
        assert_eq!(edge.holder, cycle[(i + 1) % cycle.len()].waiter, "{cycle:?}");
    }
    cycle.iter().map(|e: &Edge| e.waiter.0).collect()
}

#[test]
fn two_in_a_circle_the_one_with_less_work_pays() {
    for (work, victim) in [((5, 9), 1), ((9, 5), 2), ((7, 7), 2)] {
        let mut stage = Stage::new(0);
        stage.register(1).add_work(work.0);
        stage.register(2);
        stage.table.add_work(TxnId(2), work.1);
        assert_eq!((stage.ask(1, "a", X), stage.ask(2, "b", X)), (Got, Got));
        assert_eq!(stage.ask(1, "b", X), Waits);
        // It is 2 that closes the circle, whichever is the victim.
        let last = stage.ask(2, "a", X);
        let (victims, survivor) = if victim == 2 {
            (last, 1)
        } else {
            assert_eq!(last, Waits);
            (stage.answer(1), 2)
        };
        assert_eq!(circle(&victims), [victim, survivor], "the victim comes first");
        assert_eq!(stage.answer(survivor), Waits, "until the victim has rolled back");
        assert_eq!(stage.table.stats().waiting, 1);
        stage.end(victim);
        assert_eq!(stage.answer(survivor), Got);
        stage.all_end();
    }
}

#[test]
fn a_transaction_that_has_gone_through_many_rows_is_not_the_victim() {
    for (keys, victim) in [(60, 1), (200, 2)] {
        let mut stage = Stage::new(0);
        // The first has changed nothing, the second a row.
        let first = stage.register(1);
        (0..keys).for_each(|_| first.add_grant());
        stage.register(2).add_work(1);
        assert_eq!((stage.ask(1, "a", X), stage.ask(2, "b", X)), (Got, Got));
        assert_eq!(stage.ask(1, "b", X), Waits);
        let last = stage.ask(2, "a", X);
        let told = if victim == 2 { last } else { stage.answer(1) };
        assert_eq!(circle(&told)[0], victim, "{keys} keys");
        stage.end(victim);
        assert_eq!(stage.answer(3 - victim), Got);
        stage.all_end();
    }
}

#[test]
fn three_in_a_circle_over_three_keys() {
    let mut stage = Stage::new(3);
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(stage.ask(id, key, X), Got);
    }
    assert_eq!((stage.ask(2, "c", X), stage.ask(3, "a", X)), (Waits, Waits));
    let answer = stage.ask(1, "b", X);
    assert_eq!(circle(&answer), [1, 2, 3]);
    let Answer::Refused(refused) = answer else { unreachable!() };
    assert_eq!(
        refused.to_string(),
        "deadlock: 1 waits for exclusive at key \"b\" of tree 3, exclusive held by 2; \
         2 waits for exclusive at key \"c\" of tree 3, exclusive held by 3; \
         3 waits for exclusive at key \"a\" of tree 3, exclusive held by 1"
    );
    stage.end(1);
    assert_eq!(stage.answer(3), Got);
    stage.end(3);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn two_sharers_that_both_upgrade() {
    let mut stage = Stage::new(2);
    assert_eq!((stage.ask(1, "k", S), stage.ask(2, "k", S)), (Got, Got));
    assert_eq!(stage.ask(1, "k", X), Waits);
    assert_eq!(stage.ask(2, "k", X), Waits, "1 has less work");
    assert_eq!(circle(&stage.answer(1)), [1, 2]);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn two_scans_of_a_range_that_both_insert() {
    let mut stage = Stage::new(2);
    assert_eq!((stage.ask(1, "a..m", S), stage.ask(2, "b..z", S)), (Got, Got));
    assert_eq!(stage.ask(2, "c", X), Waits);
    let answer = stage.ask(1, "d", X);
    assert_eq!(circle(&answer), [1, 2]);
    let Answer::Refused(refused) = answer else { unreachable!() };
    assert_eq!(
        refused.to_string(),
        "deadlock: 1 waits for exclusive at key \"d\" of tree 3, share held by 2; \
         2 waits for exclusive at key \"c\" of tree 3, share held by 1"
    );
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn a_circle_of_a_row_and_a_range() {
    for (work, victim) in [((5, 9), 1), ((9, 5), 2)] {
        let mut stage = Stage::new(0);
        stage.register(1).add_work(work.0);
        stage.register(2).add_work(work.1);
        assert_eq!((stage.ask(1, "k", X), stage.ask(2, "a..f", X)), (Got, Got));
        assert_eq!(stage.ask(1, "c", X), Waits);
        // A scan that goes on and comes to the row.
        let last = stage.ask(2, "f..z", X);
        let (told, survivor) = if victim == 2 { (last, 1) } else { (stage.answer(1), 2) };
        assert_eq!(circle(&told), [victim, survivor]);
        stage.end(victim);
        assert_eq!(stage.answer(survivor), Got);
        stage.all_end();
    }
}

#[test]
fn a_circle_over_ranges_of_two_trees() {
    let mut stage = Stage::new(2);
    let other = |stage: &Stage, id: u64, text| {
        let request = Request { tree: TreeId(4), place: place(text), kind: X, writer: None };
        stage.table.request(&stage.owners[&id], &request, true)
    };
    assert_eq!(stage.ask(1, "a..c", X), Got);
    assert!(matches!(other(&stage, 2, "a..c"), Ok(None)));
    assert_eq!(stage.ask(2, "b..d", X), Waits);
    assert!(matches!(other(&stage, 1, ".."), Ok(Some(_))));
    assert_eq!(circle(&stage.answer(1)), [1, 2]);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn a_writer_made_explicit_under_a_waiting_range_may_close_a_circle() {
    let mut stage = Stage::new(4);
    // 4 waits for the range, for 3. 1 has written "m", which no transaction has asked for, and
    // waits for 4.
    assert_eq!((stage.ask(3, "c", X), stage.ask(4, "r", X)), (Got, Got));
    assert_eq!((stage.ask(4, "a..n", S), stage.ask(1, "r", X)), (Waits, Waits));
    assert_eq!(stage.ask_at(2, place("m"), X, Some(1), true), Waits);
    assert_eq!(circle(&stage.answer(1)), [1, 4]);
    stage.end(1);
    stage.end(3);
    assert_eq!((stage.answer(4), stage.answer(2)), (Got, Waits));
    stage.end(4);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn waiting_behind_a_waiter_counts() {
    let mut stage = Stage::new(3);
    assert_eq!((stage.ask(1, "k", S), stage.ask(3, "j", X)), (Got, Got));
    assert_eq!(stage.ask(2, "k", X), Waits);
    assert_eq!(stage.ask(3, "k", S), Waits, "behind 2, not for 1");
    let answer = stage.ask(1, "j", X);
    assert_eq!(circle(&answer), [1, 3, 2]);
    let Answer::Refused(LockError::Deadlock { cycle }) = answer else { unreachable!() };
    assert_eq!(cycle.iter().map(|e| e.queued).collect::<Vec<_>>(), [false, true, false]);
    assert!(cycle[1].to_string().ends_with("exclusive asked for before by 2"), "{}", cycle[1]);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn an_upgrade_that_goes_before_others_is_seen_from_behind() {
    // 3 waits for k behind 2; the upgrade of 4 jumps before both and waits for 1, a transaction
    // that wants what 3 has: 1 waits for 3, 3 for 4 (and 2), 4 for 1.
    let mut stage = Stage::new(4);
    assert_eq!((stage.ask(1, "k", S), stage.ask(4, "k", S)), (Got, Got));
    assert_eq!(stage.ask(3, "j", X), Got);
    assert_eq!((stage.ask(2, "k", X), stage.ask(4, "k", X)), (Waits, Waits));
    assert_eq!(stage.ask(3, "k", S), Waits);
    assert_eq!(circle(&stage.ask(1, "j", S)).len(), 3);
    stage.end(1);
    assert_eq!((stage.answer(4), stage.answer(2)), (Got, Waits));
    stage.end(4);
    stage.answer(2);
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn one_wait_may_close_two_circles() {
    let mut stage = Stage::new(3);
    assert_eq!((stage.ask(3, "a", X), stage.ask(1, "k", S), stage.ask(2, "k", S)), (Got, Got, Got));
    assert_eq!((stage.ask(1, "a", X), stage.ask(2, "a", X)), (Waits, Waits));
    assert_eq!(stage.ask(3, "k", X), Waits);
    assert_eq!(circle(&stage.answer(1)), [1, 3]);
    assert_eq!(circle(&stage.answer(2)), [2, 3]);
    stage.end(1);
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn rows_written_without_an_entry_are_part_of_circles() {
    let mut stage = Stage::new(2);
    assert_eq!(stage.ask_at(1, place("b"), X, Some(2), true), Waits);
    assert_eq!(stage.ask_at(2, place("a"), X, Some(1), true), Waits);
    assert_eq!(circle(&stage.answer(1)), [1, 2]);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn a_circle_that_has_dissolved_has_no_victim() {
    let mut stage = Stage::new(3);
    assert_eq!((stage.ask(2, "b", X), stage.ask(3, "c", X)), (Got, Got));
    assert_eq!((stage.ask(1, "b", X), stage.ask(2, "c", X)), (Waits, Waits));
    // As a search may have seen it: 2 waited for 1 at one moment and waits for 3 by now.
    let seen = [1, 2].map(|id| Arc::clone(&stage.owners[&id]));
    assert_eq!(stage.table.end_circle(&seen, None), None);
    // Or does not wait at all.
    let seen = [2, 3].map(|id| Arc::clone(&stage.owners[&id]));
    assert_eq!(stage.table.end_circle(&seen, None), None);
    assert_eq!((stage.answer(1), stage.answer(2)), (Waits, Waits));
    stage.end(3);
    assert_eq!(stage.answer(2), Got);
    stage.end(2);
    assert_eq!(stage.answer(1), Got);
    stage.all_end();
}

#[test]
fn a_long_chain_is_no_circle_and_a_long_circle_is_found() {
    let stage = Stage::new(200);
    for id in 1..=200 {
        assert_eq!(stage.ask(id, &id.to_string(), X), Got);
    }
    for id in 2..=200_u64 {
        assert_eq!(stage.ask(id, &(id - 1).to_string(), X), Waits);
    }
    assert_eq!(circle(&stage.ask(1, "200", X)).len(), 200);
}
