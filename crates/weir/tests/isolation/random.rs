//! Random histories: many short transactions on few keys, interleaved by a seed on one thread, and
//! raced by many; each is recorded and held to the levels that its transactions ran at.

use std::time::Duration;

use weir::{Background, SimVolume};
use weir_history::{
    Demand, History, Journal, Level, Mix, Recorded, Tally, check, drive, interleave, look_around,
};

use crate::effort;
use crate::engine::{LEVELS, connect, database};

const SESSIONS: usize = 4;

fn seeds() -> u64 {
    effort(6, 60)
}

fn transactions() -> u64 {
    effort(500, 3_000)
}

/// One level for all, each; and all of them mixed.
fn mixes() -> Vec<Mix> {
    let alone = LEVELS.iter().map(|&level| Mix::new(&[level]));
    alone.chain([Mix::new(LEVELS)]).collect()
}

fn assert_clean(mix: &Mix, what: &str, history: &History) {
    let report = check(history, &Demand::OWN);
    assert!(report.is_clean(), "{:?}, {what}\n{}", mix.levels, report.explain(history));
    assert!(report.dependencies as u64 > transactions(), "{:?}, {what}: too tame", mix.levels);
}

#[test]
fn interleaved_histories_keep_their_promises() {
    for mix in mixes() {
        let mut all = Tally::default();
        for seed in 0..seeds() {
            let journal = Journal::over(mix.setup());
            let rows: Vec<_> = journal.rows().collect();
            let volume = SimVolume::new(seed);
            let db = database(&volume, Background::Manual);
            let sessions = connect((&volume, &db), &rows, SESSIONS, None).into_iter();
            let mut sessions: Vec<_> = sessions.map(|s| Recorded::new(s, &journal)).collect();
            all = all.and(interleave(&mut sessions, &mix, seed, transactions()));
            assert!(look_around(&mut sessions[0], Level::ReadCommitted));
            assert_clean(&mix, &format!("seed {seed}"), &journal.history());
        }
        assert_eq!(all.failed, 0, "{:?}: {all:?}", mix.levels);
        assert!(all.committed > seeds() * transactions() / 2, "{:?}: {all:?}", mix.levels);
        assert!(all.waits > seeds() && all.rolled_back > seeds(), "{:?}: {all:?}", mix.levels);
    }
}

#[test]
fn raced_histories_keep_their_promises() {
    for mix in mixes() {
        let journal = Journal::over(mix.setup());
        let rows: Vec<_> = journal.rows().collect();
        let volume = SimVolume::new(0);
        let db = database(&volume, Background::Threads);
        let sessions = connect((&volume, &db), &rows, SESSIONS, Some(Duration::from_millis(200)));
        let start = std::sync::Barrier::new(SESSIONS);
        let tally = std::thread::scope(|scope| {
            let (journal, mix, start) = (&journal, &mix, &start);
            let race = |(session, seed)| {
                let mut session = Recorded::new(session, journal);
                scope.spawn(move || {
                    start.wait();
                    drive(&mut session, mix, seed, 4 * transactions())
                })
            };
            let threads: Vec<_> = sessions.into_iter().zip(0..).map(race).collect();
            let tallies = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            tallies.fold(Tally::default(), Tally::and)
        });
        let mut last =
            connect((&volume, &db), &[], 1, None).into_iter().map(|s| Recorded::new(s, &journal));
        assert!(last.all(|mut session| look_around(&mut session, Level::ReadCommitted)));
        assert_clean(&mix, "raced", &journal.history());
        assert_eq!(tally.failed, 0, "{:?}: {tally:?}", mix.levels);
        assert!(tally.committed > transactions(), "{:?}: {tally:?}", mix.levels);
    }
}
