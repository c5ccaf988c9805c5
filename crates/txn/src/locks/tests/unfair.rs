//! A key that no transaction holds any more and that a transaction waits for: which transaction
//! gets it.
use super::*;

/// 3 has "j"; 1 has held "k", 2 and 3 wait for it, 2 is notified and has not looked yet; 4 and 5
/// come.
fn release_unfair() -> Stage {
    let mut stage = Stage::new(5);
    assert_eq!((stage.ask(1, "k", X), stage.ask(3, "j", X)), (Got, Got));
    assert_eq!((stage.ask(2, "k", X), stage.ask(3, "k", X)), (Waits, Waits));
    assert!(stage.blocks(4, "k", X));
    stage.end_unseen(1);
    stage
}

/// Writers come to "k" one after the other, more than one that is notified lets pass without a nap.
fn many_pass(stage: &Stage, id: u64) {
    for _ in 0..7 {
        assert!(!stage.blocks(id, "k", X), "it writes the row, and is not in the table");
    }
}

fn acquire(
    stage: &Stage,
    id: u64,
    kind: Kind,
) -> Result<Option<super::super::place::LockTarget>, LockError> {
    let request = Request { tree: TREE, place: place("k"), kind, writer: None };
    stage.table.request(&stage.owners[&id], &request, true)
}

#[test]
fn the_first_to_look_gets_it() {
    let mut stage = release_unfair();
    assert_eq!(stage.look(3), None, "only the first is notified");
    assert_eq!(stage.look(2), Some(Next::Ended));
    assert_eq!(stage.answer(2), Got);
    assert!(stage.blocks(4, "k", X) && stage.blocks(3, "k", X) && !stage.blocks(2, "k", X));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn a_newcomer_passes_twice_and_no_more() {
    let mut stage = release_unfair();
    many_pass(&stage, 4);
    // No transaction holds it, but a transaction has been here: 2 leaves it to them for a moment.
    assert_eq!(stage.look(2), Some(Next::Nap));
    assert_eq!(stage.look(2), None);
    assert!(matches!(acquire(&stage, 4, X), Ok(None)), "it may again");
    let nap_is_over = |stage: &Stage| {
        let owner = &stage.owners[&2];
        stage.table.look(owner, &owner.waits_on().expect("it waits"), false)
    };
    assert_eq!(nap_is_over(&stage), Next::Sleep);
    assert_eq!(stage.table.stats().waiting, 2);
    stage.end_unseen(4);
    // From here on no transaction goes before 2: it has been given the key.
    assert!(stage.blocks(5, "k", X));
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

/// A transaction that waits behind one that is passed may have to report, and the one may be gone
/// before it looks.
#[test]
fn a_reporting_waiter_looks_which_has_passed() {
    let mut stage = release_unfair();
    stage.owners[&3].set_reports(true);
    assert!(matches!(acquire(&stage, 4, X), Ok(None)), "it passes 2, which has not looked yet");
    assert_eq!(stage.look(3), Some(Next::Sleep), "notified, and 4 is in its way");
    stage.table.kill(TxnId(2));
    assert_eq!(stage.look(3), None);
    assert_eq!(stage.answer(2), Answer::Refused(LockError::Killed));
    stage.end(4);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn after_its_nap_it_takes_what_is_free_however_busy() {
    let stage = release_unfair();
    many_pass(&stage, 4);
    assert_eq!(stage.look(2), Some(Next::Nap));
    assert!(!stage.blocks(5, "k", X));
    let owner = &stage.owners[&2];
    let target = owner.waits_on().expect("it waits");
    assert_eq!(stage.table.look(owner, &target, false), Next::Ended);
    assert_eq!(stage.answer(2), Got);
    let mut stage = stage;
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn it_takes_the_key_at_once_where_few_have_passed() {
    let mut stage = release_unfair();
    (0..6).for_each(|_| assert!(!stage.blocks(4, "k", X)));
    assert_eq!(stage.look(2), Some(Next::Ended));
    assert_eq!(stage.answer(2), Got);
    // It meets the last of them, a transaction that is still writing.
    assert_eq!(stage.ask_at(2, place("k"), X, Some(4), true), Waits);
    assert!(stage.blocks(5, "k", X));
    stage.end(4);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}

#[test]
fn sharers_and_scanners_do_not_pass() {
    let mut stage = release_unfair();
    let refused = Answer::Refused(LockError::WouldWait { holder: TxnId(2) });
    assert!(stage.blocks(4, "k", S));
    for what in ["k", "jj..z"] {
        let owner = &stage.owners[&4];
        let request = Request { tree: TREE, place: place(what), kind: S, writer: None };
        let asked = stage.table.request(owner, &request, false);
        assert_eq!(asked.err().map(Answer::Refused), Some(refused.clone()));
    }
    // And one that waits for a range bars the keys in it from the start.
    let range = Request { tree: TREE, place: place("jj..z"), kind: S, writer: None };
    assert!(matches!(stage.table.request(&stage.owners[&4], &range, true), Ok(Some(_))));
    assert!(stage.blocks(5, "k", X));
    assert_eq!(stage.answer(2), Got);
    stage.end(2);
    assert_eq!((stage.answer(3), stage.answer(4)), (Got, Waits));
    stage.end(3);
    assert_eq!(stage.answer(4), Got);
    stage.all_end();
}

#[test]
fn giving_up_a_turn_notifies_the_next() {
    let stage = release_unfair();
    stage.table.kill(TxnId(2));
    assert_eq!(stage.owners[&2].waits_on(), None);
    assert_eq!(stage.look(3), Some(Next::Ended));
    assert_eq!(stage.answer(2), Answer::Refused(LockError::Killed));
    assert_eq!(stage.answer(3), Got);
    let mut stage = stage;
    stage.end(3);
    stage.all_end();
}

#[test]
fn at_its_limit_it_takes_what_is_free() {
    let stage = release_unfair();
    assert!(!stage.blocks(4, "k", X));
    let owner = &stage.owners[&2];
    let target = owner.waits_on().expect("it waits");
    assert_eq!(stage.table.look(owner, &target, true), Next::Ended);
    assert_eq!(stage.answer(2), Got);
    let mut stage = stage;
    stage.end(2);
    stage.answer(3);
    stage.all_end();
}

#[test]
fn a_passer_is_part_of_circles_once_it_is_met() {
    let mut stage = release_unfair();
    stage.table.add_work(TxnId(2), 100);
    // 4 writes the row, and then waits for 3, a transaction that waits for the row.
    many_pass(&stage, 4);
    let request = Request { tree: TREE, place: place("j"), kind: X, writer: None };
    let asked = stage.table.request(&stage.owners[&4], &request, true);
    assert!(matches!(asked, Ok(Some(_))));
    // 2 looks, has the key, finds the row written by 4, and says so.
    assert_eq!(stage.look(2), Some(Next::Nap));
    let owner = Arc::clone(&stage.owners[&2]);
    let target = owner.waits_on().expect("it waits");
    assert_eq!(stage.table.look(&owner, &target, false), Next::Ended);
    assert_eq!(stage.answer(2), Got);
    assert_eq!(stage.ask_at(2, place("k"), X, Some(4), true), Waits);
    let told = stage.answer(3);
    let Answer::Refused(LockError::Deadlock { cycle }) = told else { panic!("{told:?}") };
    assert_eq!(cycle.iter().map(|e| e.waiter.0).collect::<Vec<_>>(), [3, 2, 4]);
    stage.end(3);
    assert_eq!(stage.answer(4), Got);
    stage.end(4);
    assert_eq!(stage.answer(2), Got);
    stage.all_end();
}
