//! Which waiter gets a lock, and in which order.
use super::*;

#[test]
fn a_second_request_waits_exactly_if_the_kinds_conflict() {
    for held in Kind::ALL {
        for asked in Kind::ALL {
            let stage = Stage::new(2);
            assert_eq!(stage.ask(1, "k", held), Got);
            let expected = asked.conflicts_with(held);
            assert_eq!(stage.blocks(2, "k", asked), expected, "{asked} against {held}");
            assert!(!stage.blocks(1, "k", asked), "no transaction blocks itself");
            assert!(!stage.blocks(2, "j", asked), "another key");
            let elsewhere = stage.table.blocks(TxnId(2), TreeId(4), b"k", asked);
            assert!(!elsewhere, "another tree");
            let answer = stage.ask_at(2, place("k"), asked, None, false);
            match answer {
                Got => assert!(!expected),
                _ => assert_eq!(
                    (answer, expected),
                    (Answer::Refused(LockError::WouldWait { holder: TxnId(1) }), true)
                ),
            }
            stage.all_end();
        }
    }
}

#[test]
fn what_one_has_is_got_again_and_counted_once() {
    let stage = Stage::new(2);
    for kind in [S, S, X, S, X] {
        assert_eq!(stage.ask(1, "k", kind), Got);
    }
    let stats = stage.table.stats();
    assert_eq!((stats.held, stats.ranges, stats.waits), (1, 0, 0));
    // Exclusive is not weakened by asking for less.
    assert!(stage.blocks(2, "k", S));
    stage.all_end();
}

#[test]
fn the_queue_is_served_in_order_and_sharers_together() {
    let mut stage = Stage::new(6);
    assert_eq!(stage.ask(1, "k", X), Got);
    for (id, kind) in [(2, S), (3, S), (4, X), (5, S), (6, X)] {
        assert_eq!(stage.ask(id, "k", kind), Waits);
    }
    assert_eq!(stage.table.stats().waiting, 5);
    stage.end(1);
    let now = |stage: &Stage| [2, 3, 4, 5, 6].map(|id| stage.owners[&id].waits_on().is_none());
    assert_eq!(now(&stage), [true, true, false, false, false], "5 does not overtake 4");
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Got));
    stage.end(2);
    assert_eq!(stage.answer(4), Waits);
    stage.end(3);
    assert_eq!((stage.answer(4), stage.answer(5)), (Got, Waits));
    stage.end(4);
    assert_eq!((stage.answer(5), stage.answer(6)), (Got, Waits));
    stage.end(5);
    assert_eq!(stage.answer(6), Got);
    stage.all_end();
}

#[test]
fn newcomers_wait_behind_waiters() {
    let mut stage = Stage::new(4);
    assert_eq!(stage.ask(1, "k", S), Got);
    assert_eq!(stage.ask(2, "k", X), Waits);
    assert!(stage.blocks(3, "k", S), "it would overtake 2");
    let refused = Answer::Refused(LockError::WouldWait { holder: TxnId(2) });
    assert_eq!(stage.ask_at(3, place("k"), S, None, false), refused);
    assert_eq!(stage.ask(3, "k", S), Waits);
    stage.end(1);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn an_upgrade_goes_first() {
    let mut stage = Stage::new(4);
    for id in [1, 2] {
        assert_eq!(stage.ask(id, "k", S), Got);
    }
    assert_eq!(stage.ask(3, "k", X), Waits);
    assert_eq!(stage.ask(4, "k", S), Waits);
    assert_eq!(stage.ask(1, "k", S), Got, "what it has it need not queue for");
    assert_eq!(stage.ask(1, "k", X), Waits, "for 2 only");
    stage.end(2);
    assert_eq!((stage.answer(1), stage.answer(3), stage.answer(4)), (Got, Waits, Waits));
    stage.end(1);
    assert_eq!((stage.answer(3), stage.answer(4)), (Got, Waits));
    stage.end(3);
    assert_eq!(stage.answer(4), Got);
    stage.all_end();
}

#[test]
fn the_only_sharer_upgrades_at_once() {
    let mut stage = Stage::new(2);
    assert_eq!(stage.ask(1, "k", S), Got);
    assert_eq!(stage.ask(2, "k", X), Waits);
    assert!(!stage.blocks(1, "k", X));
    assert_eq!(stage.ask(1, "k", X), Got);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}

#[test]
fn a_writers_lock_is_made_explicit() {
    let mut stage = Stage::new(4);
    assert_eq!(stage.ask_at(2, place("k"), S, Some(1), true), Waits);
    assert_eq!(stage.table.stats().held, 1, "the writer's");
    assert_eq!(stage.ask_at(3, place("k"), X, Some(1), true), Waits);
    assert!(!stage.blocks(1, "k", X) && stage.blocks(4, "k", S));
    stage.end(1);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn a_writer_that_has_ended_blocks_nothing() {
    let mut stage = Stage::new(3);
    let ended = Arc::clone(&stage.owners[&1]);
    stage.end(1);
    // Found in the registry just before it ended: its list is closed.
    let request = Request { tree: TREE, place: place("k"), kind: X, writer: Some(&ended) };
    let granted = stage.table.request(&stage.owners[&2], &request, false);
    assert!(matches!(granted, Ok(None)));
    assert_eq!(stage.table.stats().held, 1);
    // And by number, as the engine asks.
    let acquire =
        |id, wait| stage.table.acquire(TxnId(id), TREE, place("j"), X, Some(TxnId(1)), wait);
    assert_eq!(acquire(2, super::super::Wait::No), Ok(()));
    let refused = LockError::WouldWait { holder: TxnId(2) };
    assert_eq!(acquire(3, super::super::Wait::No), Err(refused));
    stage.all_end();
}

#[test]
fn ones_own_row_needs_no_entry() {
    let stage = Stage::new(1);
    let own = Some(TxnId(1));
    let no = super::super::Wait::No;
    assert_eq!(stage.table.acquire(TxnId(1), TREE, place("k"), X, own, no), Ok(()));
    assert_eq!(stage.table.stats().held, 0);
    stage.all_end();
}

#[test]
fn keys_of_one_bucket_are_not_taken_for_each_other() {
    let bucket = |key: &[u8]| (super::super::place::hash(TREE, key) >> 32) as usize & 4095;
    let mut seen = HashMap::new();
    let pair = (0..1_000_000_u64).find_map(|i| {
        let bytes = i.to_be_bytes();
        seen.insert(bucket(&bytes), bytes).map(|other| (other, bytes))
    });
    let (one, two) = pair.expect("4096 buckets and more keys");
    let mut stage = Stage::new(2);
    assert_eq!(stage.ask_at(1, Place::Key(&one), X, None, false), Got);
    assert!(!stage.table.blocks(TxnId(2), TREE, &two, X));
    assert_eq!(stage.ask_at(2, Place::Key(&two), X, None, false), Got);
    assert!(stage.table.blocks(TxnId(2), TREE, &one, X));
    assert!(!stage.table.blocks(TxnId(1), TREE, &one, X));
    stage.end(1);
    assert!(!stage.table.blocks(TxnId(2), TREE, &one, X));
    stage.register(3);
    assert!(stage.table.blocks(TxnId(3), TREE, &two, X));
    stage.all_end();
}

#[test]
fn what_was_locked_between_two_marks_is_released_and_nothing_else() {
    let mut stage = Stage::new(3);
    assert_eq!(stage.ask(1, "a", X), Got);
    let mark = stage.owners[&1].mark();
    assert_eq!((stage.ask(1, "b", X), stage.ask(1, "a", X)), (Got, Got));
    assert_eq!((stage.ask(2, "b", X), stage.ask(3, "a", S)), (Waits, Waits));
    let behind = stage.owners[&1].mark();
    assert_eq!(stage.ask(1, "c", X), Got);
    let release = |stage: &Stage, from, to, tree| {
        stage.table.release_between(&stage.owners[&1], from..to, |id| id == tree);
    };
    release(&stage, mark, behind, TreeId(4));
    assert_eq!(stage.answer(2), Waits, "another tree's are meant");
    release(&stage, mark, behind, TREE);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    release(&stage, mark, behind, TREE);
    // The mark behind is where it was, though what lay before it is gone.
    assert_eq!((stage.owners[&1].mark(), stage.table.stats().held), (behind + 1, 3));
    release(&stage, behind, behind + 1, TREE);
    assert_eq!((stage.owners[&1].mark(), stage.table.stats().held), (mark, 2));
    stage.end(1);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}
