//! Gaps that are cut and joined.
use super::*;

#[test]
fn a_gap_keeps_inserters_out_and_lets_other_lockers_in() {
    let mut stage = Stage::new(3);
    assert_eq!((stage.ask(1, "m", GAP), stage.ask(2, "m", GAP)), (Got, Got));
    assert!(!stage.blocks(3, "m", X), "the row is free");
    assert_eq!(stage.ask(3, "m", INSERT), Waits);
    stage.end(1);
    assert_eq!(stage.answer(3), Waits);
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    assert!(!stage.blocks(3, "m", INSERT), "the inserter may go on");
    stage.all_end();
}

#[test]
fn behind_the_last_key() {
    let stage = Stage::new(2);
    assert_eq!(stage.ask_at(1, Place::End, GAP, None, true), Got);
    let blocks = |place| stage.table.blocks(TxnId(2), TREE, place, INSERT);
    assert!(blocks(Place::End) && !blocks(Place::Key(b"")));
    stage.table.gap_split(TREE, b"z", Place::End);
    assert!(blocks(Place::End) && blocks(Place::Key(b"z")));
    stage.all_end();
}

#[test]
fn a_new_key_cuts_the_gap_for_all_its_owners() {
    let mut stage = Stage::new(4);
    assert_eq!((stage.ask(1, "m", GAP), stage.ask(2, "m", GAP)), (Got, Got));
    assert_eq!(stage.ask(3, "m", X), Got);
    stage.table.gap_split(TREE, b"g", key("m"));
    assert_eq!(stage.table.stats().gaps, 4);
    assert!(stage.blocks(4, "g", INSERT) && stage.blocks(4, "m", INSERT));
    assert!(!stage.blocks(4, "g", X), "a gap is inherited, not a row");
    stage.table.gap_split(TREE, b"g", key("m"));
    assert_eq!(stage.table.stats().gaps, 4, "what one has is not counted twice");
    stage.end(1);
    assert!(stage.blocks(4, "g", INSERT));
    stage.end(2);
    assert!(!stage.blocks(4, "g", INSERT) && !stage.blocks(4, "m", INSERT));
    stage.all_end();
}

#[test]
fn a_cut_elsewhere_changes_nothing() {
    let stage = Stage::new(2);
    assert_eq!((stage.ask(1, "m", GAP), stage.ask(1, "p", X)), (Got, Got));
    stage.table.gap_split(TreeId(9), b"g", key("m"));
    stage.table.gap_split(TREE, b"o", key("p"));
    stage.table.gap_split(TREE, b"y", Place::End);
    assert_eq!((stage.table.stats().gaps, stage.table.stats().held), (1, 2));
    stage.all_end();
}

#[test]
fn a_removed_key_hands_its_gap_and_row_locks_to_the_next_gap() {
    for (kind, inherits) in [(S, true), (X, true), (GAP, true), (INSERT, false)] {
        let mut stage = Stage::new(2);
        assert_eq!(stage.ask(1, "m", kind), Got);
        stage.table.gap_join(TREE, b"m", key("t"));
        assert_eq!(stage.blocks(2, "t", INSERT), inherits, "{kind}");
        assert_eq!(stage.table.stats().held, 1 + u64::from(inherits), "the old lock stays");
        stage.end(1);
        assert!(!stage.blocks(2, "t", INSERT));
        stage.all_end();
    }
}

#[test]
fn a_removed_key_that_nobody_locked_changes_nothing() {
    let stage = Stage::new(2);
    assert_eq!(stage.ask(1, "t", GAP), Got);
    stage.table.gap_join(TREE, b"m", key("t"));
    assert_eq!((stage.table.stats().gaps, stage.table.stats().held), (1, 1));
    stage.all_end();
}

#[test]
fn an_inserter_that_was_granted_waits_again_for_an_inherited_gap() {
    let mut stage = Stage::new(2);
    assert_eq!(stage.ask(2, "t", INSERT), Got);
    assert_eq!(stage.ask(1, "m", GAP), Got);
    stage.table.gap_join(TREE, b"m", key("t"));
    assert!(stage.blocks(2, "t", INSERT), "what it has does not hide the newcomer");
    assert_eq!(stage.ask(2, "t", INSERT), Waits);
    stage.end(1);
    assert_eq!(stage.answer(2), Got);
    assert!(!stage.blocks(2, "t", INSERT));
    stage.all_end();
}

#[test]
fn a_granted_wish_to_insert_is_not_overtaken_by_lockers_of_the_gap() {
    let mut stage = Stage::new(3);
    assert_eq!((stage.ask(1, "m", GAP), stage.ask(2, "m", INSERT)), (Got, Waits));
    assert_eq!(stage.ask(3, "m", GAP), Waits);
    stage.end(1);
    assert_eq!((stage.answer(2), stage.answer(3)), (Got, Waits));
    stage.end(2);
    assert_eq!(stage.answer(3), Got);
    stage.all_end();
}
