//! Histories that go on over crashes: what was synced is there, what was under way is not, and of
//! what was committed but not yet durable whole transactions are there or not, never one without
//! another that it saw.

use weir::{Background, Durability, SimVolume};
use weir_history::{Demand, Journal, Level, Mix, Recorded, Tally, check, interleave, look_around};

use crate::effort;
use crate::engine::{LEVELS, connect, database};

const SESSIONS: usize = 4;
/// From one opening to the crash.
const TRANSACTIONS: u64 = 60;
const LIVES: u64 = 4;

/// One history; how many crashes came in the middle of an operation.
fn one(seed: u64, mix: &Mix) -> (Tally, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let journal = Journal::over(mix.setup());
    let mut rows: Vec<_> = journal.rows().collect();
    let mut volume = SimVolume::new(seed);
    let (mut all, mut in_the_middle) = (Tally::default(), 0);
    for life in 0..LIVES {
        let db = database(&volume, Background::Manual);
        let sessions = connect((&volume, &db), &rows, SESSIONS, None).into_iter();
        let mut sessions: Vec<_> = sessions.map(|s| Recorded::new(s, &journal)).collect();
        rows.clear();
        // What the crash cut off is not seen, and then it is gone.
        assert!(look_around(&mut sessions[0], Level::ReadCommitted));
        while db.stats().losers > 0 {
            db.step().expect("a step");
        }
        let mut run = |sessions: &mut Vec<_>| {
            all = all.and(interleave(sessions, mix, random.u64(..), TRANSACTIONS / 2));
        };
        run(&mut sessions);
        if life % 2 == 0 {
            db.checkpoint().expect("a checkpoint");
        }
        let marker = db.open_tree("marker").expect("a tree");
        marker.put(b"life", &life.to_be_bytes(), Durability::Synced).expect("a synced put");
        let durable = journal.now();
        run(&mut sessions);
        // Some thread is always in the middle of a transaction, its changes on their way to the
        // disk.
        for (session, key) in sessions.iter_mut().zip(0..) {
            session.begin(Level::ReadCommitted).expect("a begin");
            session.put(key).expect("nothing in the way");
            session.put(key + 4 * SESSIONS as u32).expect("nothing in the way");
        }
        if !seed.is_multiple_of(3) {
            volume.set_crash_after(Some(seed % 5));
            let synced = marker.put(b"last", b"words", Durability::Synced);
            let checkpointed = db.checkpoint();
            in_the_middle += u64::from(synced.is_err() || checkpointed.is_err());
        }
        volume = volume.crash(seed + life);
        journal.doubt(durable);
        sessions.iter_mut().for_each(|session| session.crashed(false));
    }
    let db = database(&volume, Background::Manual);
    let last =
        connect((&volume, &db), &[], 1, None).into_iter().map(|s| Recorded::new(s, &journal));
    assert!(last.into_iter().all(|mut session| look_around(&mut session, Level::Snapshot)));
    let history = journal.history();
    let report = check(&history, &Demand::OWN);
    assert!(report.is_clean(), "{:?}, seed {seed}\n{}", mix.levels, report.explain(&history));
    (all, in_the_middle)
}

#[test]
fn what_was_synced_is_there_and_nothing_is_there_in_part() {
    let mix = Mix::new(LEVELS);
    let (seeds, mut all, mut in_the_middle) = (effort(40, 400), Tally::default(), 0);
    for seed in 0..seeds {
        let (tally, crashes) = one(seed, &mix);
        (all, in_the_middle) = (all.and(tally), in_the_middle + crashes);
    }
    assert_eq!(all.failed, 0, "{all:?}");
    assert!(all.committed > seeds * LIVES * TRANSACTIONS / 2, "{all:?}");
    assert!(in_the_middle > seeds, "{in_the_middle}");
}
