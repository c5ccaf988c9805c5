//! How waits end that are not granted, with threads that really sleep.
use std::thread;
use std::time::Duration;

use super::*;
use crate::locks::Wait;

const LONG: Wait = Wait::Until(Duration::from_secs(60));

fn lock(stage: &Stage, id: u64, kind: Kind, wait: Wait) -> Result<(), LockError> {
    stage.table.acquire(TxnId(id), TREE, place("k"), kind, None, wait)
}

/// Runs `act` as soon as `count` transactions wait.
fn when_waiting(stage: &Stage, count: u64, act: impl FnOnce()) {
    while stage.table.stats().waiting < count {
        thread::yield_now();
    }
    act();
}

#[test]
fn a_limit_ends_the_wait_and_names_the_holder() {
    let stage = Stage::new(2);
    assert_eq!(lock(&stage, 1, X, Wait::No), Ok(()));
    let refused = lock(&stage, 2, X, Wait::Until(Duration::from_millis(20))).unwrap_err();
    let LockError::TimedOut { holder, waited } = refused else { panic!("{refused}") };
    assert_eq!(holder, TxnId(1));
    assert!(waited >= Duration::from_millis(20), "{waited:?}");
    assert_eq!(
        LockError::TimedOut { holder, waited: Duration::from_millis(1500) }.to_string(),
        "transaction 1 still held the lock after 1.500 s"
    );
    let stats = stage.table.stats();
    assert_eq!((stats.waits, stats.timeouts, stats.waiting, stats.held), (1, 1, 0, 1));
    assert!(stats.wait_micros >= 20_000);
    stage.all_end();
}

#[test]
fn a_limit_of_nothing_still_finds_the_holder() {
    let stage = Stage::new(2);
    assert_eq!(lock(&stage, 1, X, Wait::No), Ok(()));
    let refused = lock(&stage, 2, S, Wait::Until(Duration::ZERO));
    assert!(matches!(refused, Err(LockError::TimedOut { holder: TxnId(1), .. })), "{refused:?}");
    stage.all_end();
}

#[test]
fn giving_up_lets_waiters_behind_go_on() {
    let stage = Stage::new(3);
    assert_eq!(lock(&stage, 1, S, Wait::No), Ok(()));
    thread::scope(|scope| {
        let writer = scope.spawn(|| lock(&stage, 2, X, Wait::Until(Duration::from_millis(50))));
        when_waiting(&stage, 1, || ());
        let reader = scope.spawn(|| lock(&stage, 3, S, LONG));
        assert!(matches!(writer.join().unwrap(), Err(LockError::TimedOut { .. })));
        assert_eq!(reader.join().unwrap(), Ok(()), "only the writer was in its way");
    });
    stage.all_end();
}

#[test]
fn a_kill_ends_the_wait() {
    let stage = Stage::new(3);
    assert_eq!(lock(&stage, 1, S, Wait::No), Ok(()));
    thread::scope(|scope| {
        let writer = scope.spawn(|| lock(&stage, 2, X, LONG));
        when_waiting(&stage, 1, || ());
        let reader = scope.spawn(|| lock(&stage, 3, S, LONG));
        when_waiting(&stage, 2, || stage.table.kill(TxnId(2)));
        assert_eq!(writer.join().unwrap(), Err(LockError::Killed));
        assert_eq!(reader.join().unwrap(), Ok(()));
    });
    assert_eq!(stage.table.stats().kills, 1);
    // It was meant for that wait only.
    assert!(matches!(
        lock(&stage, 2, X, Wait::Until(Duration::ZERO)),
        Err(LockError::TimedOut { .. })
    ));
    stage.all_end();
}

#[test]
fn a_kill_that_comes_early_is_kept_until_the_next_statement() {
    let stage = Stage::new(2);
    assert_eq!(lock(&stage, 1, X, Wait::No), Ok(()));
    stage.table.kill(TxnId(2));
    assert!(!stage.blocks(2, "j", X));
    assert_eq!(lock(&stage, 2, X, LONG), Err(LockError::Killed));
    stage.table.kill(TxnId(2));
    stage.table.clear_kill(TxnId(2));
    let refused = lock(&stage, 2, X, Wait::Until(Duration::ZERO));
    assert!(matches!(refused, Err(LockError::TimedOut { .. })), "{refused:?}");
    stage.table.kill(TxnId(99));
    stage.all_end();
}

#[test]
fn a_victim_that_sleeps_is_woken() {
    let stage = Stage::new(2);
    let at = |id, key: &str| {
        stage.table.acquire(TxnId(id), TREE, Place::Key(key.as_bytes()), X, None, LONG)
    };
    assert_eq!((at(1, "a"), at(2, "b")), (Ok(()), Ok(())));
    thread::scope(|scope| {
        let victim = scope.spawn(|| {
            let refused = at(1, "b");
            stage.table.end(TxnId(1));
            refused
        });
        when_waiting(&stage, 1, || ());
        assert_eq!(at(2, "a"), Ok(()), "it has more work, and goes on when 1 has ended");
        assert!(matches!(victim.join().unwrap(), Err(LockError::Deadlock { .. })));
    });
    assert_eq!(stage.table.stats().deadlocks, 1);
    stage.all_end();
}
