//! Turns, the crashes in them, and the run of both.
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use weir::{Db, Error, ManualClock, SimVolume};
use weir_device::CrashMode;

use super::coverage::Coverage;
use super::draw::Draw;
use super::ledger::{Ledger, mark};
use super::play::SessionPlayer;
use super::prepared::Prepared;
use super::turn::Turn;
use crate::model::Contents;
use crate::play::{Ending, tree_name};
use crate::scenario::{Crash, Tally, repeat_arguments};
use crate::setup::{Planted, Setup};
use crate::shrink::Shorten;
use crate::verify::{audit_contents, contents, recover};

/// One history of sessions, whole: the same one gives the same end.
#[derive(Clone, Debug)]
pub struct SessionScenario {
    /// Everything else was drawn from it.
    pub seed: u64,
    /// The database's settings.
    pub setup: Setup,
    /// How many trees.
    pub trees: u8,
    /// What they do.
    pub turns: Vec<Turn>,
    /// Which of the turns drawn these are.
    pub kept: Vec<usize>,
    /// The crashes, one after the other.
    pub crashes: Vec<Crash>,
}

impl SessionScenario {
    /// Drawn from a seed, without a crash.
    #[must_use]
    pub fn calm(seed: u64, setup: Setup, count: usize) -> Self {
        let mut draw = Draw::new(seed);
        let trees = draw.trees();
        let turns = draw.take(count);
        let kept = (0..turns.len()).collect();
        SessionScenario { seed, setup, trees, turns, kept, crashes: Vec::new() }
    }

    /// Drawn from a seed.
    #[must_use]
    pub fn random(seed: u64, planted: Planted) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x7a2);
        let mut setup = Setup::random(seed, planted);
        // Torn pages are the other scenarios' business.
        if setup.may_tear() {
            setup.doublewrite.mode = weir::DoubleWriteMode::On;
        }
        // Now and then so many that versions between two snapshots are forgotten.
        let count = if seed % 16 == 15 { 8_000 } else { random.usize(40..900) };
        let mut scenario = Self::calm(seed, setup, count);
        for _ in 0..random.usize(0..4) {
            let mut in_recovery = Vec::new();
            while random.u8(0..3) == 0 && in_recovery.len() < 3 {
                let bits = random.u32(1..8);
                in_recovery.push(random.u64(0..1 << bits));
            }
            let bits = random.u32(2..12);
            scenario.crashes.push(Crash {
                after: random.u64(0..1 << bits),
                mode: match random.u8(0..6) {
                    0 => CrashMode::LoseAll,
                    1 => CrashMode::KeepAll,
                    _ => CrashMode::Random,
                },
                seed: random.u64(..),
                in_recovery,
            });
        }
        scenario
    }

    /// A new database with its trees, and the steps that its disk has taken.
    fn create(&self, clock: &Arc<ManualClock>) -> Result<(SimVolume, Db, FoundState)> {
        // The engine draws the database's number from the thread's own generator.
        fastrand::seed(self.seed);
        let volume = SimVolume::new(self.seed);
        let db = recover(&self.setup, &volume, clock).context("creating")?;
        let mut empty = Contents::new();
        for tree in 0..self.trees {
            db.create_tree(&tree_name(tree))?;
            empty.insert(tree, BTreeMap::new());
        }
        let (prepared, names) = (Vec::new(), BTreeMap::new());
        Ok((volume, db, FoundState { contents: empty, prepared, names, next_tree: self.trees }))
    }

    /// The disk's steps that all turns take together without a crash.
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn steps(&self) -> Result<u64> {
        let clock = Arc::new(ManualClock::default());
        let (volume, db, empty) = self.create(&clock)?;
        let before = volume.writes_so_far();
        let mut player = self.player(self.setup, &volume, &clock, db, empty, 0);
        player.play(&self.turns)?;
        Ok(volume.writes_so_far() - before)
    }

    /// The disk's steps of the recovery from this crash, with the checkpoint that follows it.
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn recovery_steps(&self, crash: &Crash) -> Result<u64> {
        let clock = Arc::new(ManualClock::default());
        let (volume, db, empty) = self.create(&clock)?;
        volume.set_crash_after(Some(crash.after));
        let mut player = self.player(self.setup, &volume, &clock, db, empty, 0);
        player.play(&self.turns)?;
        let found = volume.crash_with(crash.mode, crash.seed);
        let db = recover(&self.setup, &found, &clock)?;
        db.checkpoint()?;
        Ok(found.writes_so_far())
    }

    fn player(
        &self,
        setup: Setup,
        volume: &SimVolume,
        clock: &Arc<ManualClock>,
        db: Db,
        found: FoundState,
        opening: u64,
    ) -> SessionPlayer {
        let ledger = Ledger::new(found.contents, &found.names, found.next_tree);
        let (volume, clock) = (volume.clone(), clock.clone());
        let first_xid = opening * 10_000;
        let mut player =
            SessionPlayer::new(setup, volume, clock, db, ledger, found.prepared, first_xid);
        player.briefly = self.seed % 4 == 2;
        player
    }

    /// Runs it from an empty disk to its end (SIM-1).
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn run(&self) -> Result<(Tally, Coverage)> {
        let clock = Arc::new(ManualClock::default());
        let (mut tally, mut seen) = (Tally::default(), Coverage::default());
        let (mut volume, mut db, mut now) = self.create(&clock)?;
        let mut setup = self.setup;
        let mut rest = &self.turns[..];
        for (number, crash) in self.crashes.iter().enumerate() {
            let context = || format!("crash {number}, {crash:?}");
            volume.set_crash_after(Some(crash.after));
            let mut player = self.player(setup, &volume, &clock, db, now, number as u64);
            let ending = player.play(rest).with_context(context)?;
            let done = if let Ending::Crashed { at } = ending {
                (at + 1).min(rest.len())
            } else {
                rest.len()
            };
            tally.ops += done as u64;
            tally.crashes += 1;
            seen.add(&player.seen);
            // First the picture: letting go of transactions and of a database writes.
            let mut found = volume.crash_with(crash.mode, crash.seed);
            for (again, after) in crash.in_recovery.iter().enumerate() {
                found = crash_recovery(&setup, &found, &clock, crash, again as u64, *after)
                    .with_context(context)?;
                tally.recovery_crashes += 1;
            }
            let is_steady = setup.planted != Planted::Nothing;
            setup = if is_steady { setup } else { setup.varied(crash.seed) };
            setup.doublewrite.mode = self.setup.doublewrite.mode;
            setup.torn_before = false;
            let next = recover(&setup, &crash.to_look_at(&found), &clock);
            let next = next.context("recovery").with_context(context)?;
            now = check_window(&next, &player).with_context(context)?;
            drop(player);
            db = crash.to_go_on(next, || recover(&setup, &found, &clock)).with_context(context)?;
            volume = found;
            tally.count_recovery(&db);
            rest = &rest[done..];
        }
        let mut player = self.player(setup, &volume, &clock, db, now, self.crashes.len() as u64);
        let ending = player.play(rest).context("after the last crash")?;
        ensure!(ending == Ending::Done, "the disk crashed by itself");
        tally.ops += rest.len() as u64;
        settle(&mut player).context("at the end")?;
        seen.add(&player.seen);
        let latest = player.ledger().latest();
        drop(player);
        let db = recover(&setup, &volume, &clock).context("opening at the end")?;
        ensure!(db.recovery_report().is_none(), "it was closed, and recovered all the same");
        audit_contents(&db, &latest)?;
        Ok((tally, seen))
    }
}

impl Shorten for SessionScenario {
    fn count(&self) -> usize {
        self.turns.len()
    }

    fn crashes(&mut self) -> &mut Vec<Crash> {
        &mut self.crashes
    }

    fn reduced(&self, keep: &[usize], after: &[u64]) -> Self {
        let mut reduced = self.clone();
        reduced.turns = keep.iter().filter_map(|&i| self.turns.get(i).cloned()).collect();
        reduced.kept = keep.iter().filter_map(|&i| self.kept.get(i).copied()).collect();
        reduced.crash_after(after);
        reduced
    }

    fn arguments(&self) -> String {
        format!(
            "--sessions yes {}",
            repeat_arguments(self.seed, &self.crashes, self.setup.planted, &self.kept)
        )
    }

    fn check(&self) -> Result<()> {
        self.run().map(|_| ())
    }
}

/// Ends all sessions, and looks whether anything of them is left.
fn settle(player: &mut SessionPlayer) -> Result<()> {
    player.end_all()?;
    player.decide_all()?;
    let db = player.db().context("no database is open")?;
    for _ in 0..1_000 {
        let stats = db.stats();
        if stats.history_transactions == 0 && stats.losers == 0 {
            break;
        }
        db.step()?;
    }
    let stats = db.stats();
    let left = (stats.open_transactions, stats.history_transactions, stats.snapshots);
    ensure!(left == (0, 0, 0), "all have ended, and open, history and snapshots are {left:?}");
    let locks = stats.locks.held + stats.locks.ranges;
    ensure!(locks == 0, "all have ended, and {locks} locks are held");
    audit_contents(db, &player.ledger().latest())
}

/// What a database holds.
struct FoundState {
    contents: Contents,
    prepared: Vec<Prepared>,
    /// The trees' own numbers by name; none: all have those of their names.
    names: BTreeMap<u8, u8>,
    next_tree: u8,
}

/// Whether what recovery found is the state after some commits that holds all that were durable
/// (SIM-2), with what was prepared, and sound. Returns it.
fn check_window(db: &Db, player: &SessionPlayer) -> Result<FoundState> {
    let contents = contents(db).context("reading after recovery")?;
    let (commits, prepared) = player.may_be_found(mark(&contents), &db.prepared())?;
    if prepared.is_empty() {
        audit_contents(db, &contents).context("after recovery")?;
    } else {
        // What prepared transactions have replaced is named by no row, and needed all the same.
        let problems = db.check(&mut |_, _| {})?.problems;
        ensure!(problems.is_empty(), "after recovery the check found: {problems:?}");
    }
    let (names, next_tree) = (player.ledger().names_at(commits), player.ledger().next_tree());
    Ok(FoundState { contents, prepared, names, next_tree })
}

/// Lets a recovery crash; returns the disk that it leaves.
fn crash_recovery(
    setup: &Setup,
    found: &SimVolume,
    clock: &Arc<ManualClock>,
    crash: &Crash,
    again: u64,
    after: u64,
) -> Result<SimVolume> {
    found.set_crash_after(Some(after));
    let opened = recover(setup, found, clock);
    // What recovery put right goes to disk too, if it came so far.
    let ended: Result<(), Error> = match &opened {
        Ok(db) => db.checkpoint(),
        Err(_) => Ok(()),
    };
    let left = found.crash_with(crash.mode, crash.seed.wrapping_add(again + 1));
    if !found.has_crashed() {
        ended.context("a checkpoint after recovery")?;
        opened.context("recovery")?;
    }
    Ok(left)
}
