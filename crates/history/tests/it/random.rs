//! Random histories on the toy: whole ones are clean at every level and mixture of levels; each
//! broken promise is found within a few seeds.

use crate::toy::{BREAKABLE, Broken, crash, toys};
use weir_history::{
    Demand, History, Journal, Level, Mix, Recorded, Tally, check, drive, interleave, look_around,
};

const SESSIONS: usize = 4;

fn run(broken: Broken, mix: &Mix, seed: u64, transactions: u64) -> (History, Tally) {
    let journal = Journal::over(mix.setup());
    let rows: Vec<_> = journal.rows().collect();
    let toys = toys(broken, &rows, SESSIONS).into_iter();
    let mut sessions: Vec<_> = toys.map(|toy| Recorded::new(toy, &journal)).collect();
    let mut tally = Tally::default();
    for life in 0..4 {
        let halves = [seed, seed + 1_000].map(|seed| seed * 7 + life);
        tally = tally.and(interleave(&mut sessions, mix, halves[0], transactions / 8));
        let durable = journal.now();
        let later = interleave(&mut sessions, mix, halves[1], transactions / 8);
        tally = tally.and(later);
        if seed.is_multiple_of(2) {
            crash(sessions[0].session(), seed % 5 * later.committed / 5);
            journal.doubt(durable);
        }
    }
    assert!(look_around(&mut sessions[0], Level::ReadCommitted));
    (journal.history(), tally)
}

/// One level for all, each; and all of them mixed.
fn mixes() -> Vec<Mix> {
    let alone = Level::ALL.iter().map(|&level| Mix::new(&[level]));
    alone.chain([Mix::new(&Level::ALL)]).collect()
}

#[test]
fn whole_stores_are_clean_and_busy() {
    for mix in mixes() {
        let mut all = Tally::default();
        for seed in 0..20 {
            let (history, tally) = run(Broken::Nothing, &mix, seed, 200);
            let report = check(&history, &Demand::OWN);
            assert!(
                report.is_clean(),
                "{:?} seed {seed}\n{}",
                mix.levels,
                report.explain(&history)
            );
            all = all.and(tally);
        }
        assert!(all.committed > 1_000 && all.waits > 500 && all.rolled_back > 100, "{all:?}");
        assert!(all.refused > 5 && all.failed == 0, "{all:?}");
    }
}

#[test]
fn each_broken_promise_is_found() {
    for broken in BREAKABLE {
        let found = mixes().iter().any(|mix| {
            (0..20).any(|seed| {
                let (history, _) = run(broken, mix, seed, 200);
                !check(&history, &Demand::OWN).is_clean()
            })
        });
        assert!(found, "{broken:?}");
    }
}

#[test]
fn weaker_levels_do_what_stronger_ones_forbid() {
    // Were the workload tame, that nothing is found would say nothing.
    for pair in Level::ALL.windows(2) {
        let mix = Mix::new(&[pair[0]]);
        let stronger = Demand { real_time: true, ..Demand::all_at(pair[1]) };
        let found = (0..20).any(|seed| {
            let (history, _) = run(Broken::Nothing, &mix, seed, 200);
            !check(&history, &stronger).is_clean()
        });
        assert!(found, "{} is as good as {}", pair[0], pair[1]);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let mix = Mix::new(&Level::ALL);
    assert_eq!(run(Broken::Nothing, &mix, 7, 300), run(Broken::Nothing, &mix, 7, 300));
    assert_ne!(run(Broken::Nothing, &mix, 7, 300), run(Broken::Nothing, &mix, 8, 300));
}

#[test]
fn threads_write_down_what_they_did() {
    for mix in mixes() {
        let journal = Journal::over(mix.setup());
        let rows: Vec<_> = journal.rows().collect();
        let toys = toys(Broken::Nothing, &rows, SESSIONS);
        let tally = std::thread::scope(|scope| {
            let (journal, mix) = (&journal, &mix);
            let threads: Vec<_> = toys
                .into_iter()
                .zip(0..)
                .map(|(toy, seed)| {
                    let mut session = Recorded::new(toy, journal);
                    scope.spawn(move || drive(&mut session, mix, seed, 300))
                })
                .collect();
            let tallies = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            tallies.fold(Tally::default(), Tally::and)
        });
        let history = journal.history();
        let ended = tally.committed + tally.rolled_back + tally.refused;
        assert_eq!(ended, SESSIONS as u64 * 300);
        assert_eq!(history.transactions.len() as u64, ended);
        let report = check(&history, &Demand::OWN);
        assert!(report.is_clean(), "{}", report.explain(&history));
    }
}
