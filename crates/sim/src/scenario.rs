//! A workload, the crashes in it, and the run of both.
use std::fmt::Write;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use weir::{Db, Error, ManualClock, SimVolume};
use weir_device::CrashMode;

use crate::model::Model;
use crate::op::{Generator, Op};
use crate::play::{Ending, Player};
use crate::setup::{Planted, Setup};
use crate::shrink::Shorten;
use crate::verify::{audit, recover, window};

/// A power loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// After so many steps of the disk, counted from the last opening.
    pub after: u64,
    /// What of the unsynced changes survives.
    pub mode: CrashMode,
    /// Decides what is torn.
    pub seed: u64,
    /// Crashes during the recovery from this one, each after so many of its steps.
    pub in_recovery: Vec<u64>,
}

impl Crash {
    /// Looking at all that was recovered brings every page forward. So that work, and the next
    /// crash, also come while that is still owed, half of the recoveries are looked at on a copy.
    fn is_looked_at_aside(&self) -> bool {
        self.seed % 2 == 1
    }

    /// The disk to open for a look at what was recovered.
    pub(crate) fn to_look_at(&self, found: &SimVolume) -> SimVolume {
        if self.is_looked_at_aside() { found.fork() } else { found.clone() }
    }

    /// The database to go on with when `looked_at` was as it must be.
    ///
    /// # Errors
    /// Those of opening.
    pub(crate) fn to_go_on(
        &self,
        looked_at: Db,
        open: impl FnOnce() -> Result<Db, Error>,
    ) -> Result<Db> {
        if !self.is_looked_at_aside() {
            return Ok(looked_at);
        }
        drop(looked_at);
        let db = open().context("the same recovery once more")?;
        // A session that comes now would wait for their rows, and nothing else would give them
        // back.
        while db.stats().losers > 0 {
            db.step()?;
        }
        Ok(db)
    }
}

/// One history, whole: the same one gives the same end.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything else was drawn from it.
    pub seed: u64,
    /// The database's settings.
    pub setup: Setup,
    /// The operations.
    pub ops: Vec<Op>,
    /// Which of the operations drawn these are.
    pub kept: Vec<usize>,
    /// The crashes, one after the other.
    pub crashes: Vec<Crash>,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crashes of a workload.
    pub crashes: u64,
    /// Crashes of a recovery.
    pub recovery_crashes: u64,
    /// Recoveries that were run to their end and compared.
    pub recoveries: u64,
    /// Recoveries that did not read all of the log first.
    pub with_contents: u64,
    /// Torn pages reported, where nothing was to keep pages from tearing.
    pub torn: u64,
    /// Operations done.
    pub ops: u64,
}

impl Tally {
    pub(crate) fn count_recovery(&mut self, db: &Db) {
        self.recoveries += 1;
        let report = db.recovery_report();
        self.with_contents += u64::from(report.is_some_and(|r| r.read_bytes < r.redo_bytes()));
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Tally) {
        self.crashes += other.crashes;
        self.recovery_crashes += other.recovery_crashes;
        self.recoveries += other.recoveries;
        self.with_contents += other.with_contents;
        self.torn += other.torn;
        self.ops += other.ops;
    }
}

/// How one recovery went.
pub enum Tried {
    /// It gave this database and the state after so many operations.
    Recovered(Db, usize, Model),
    /// A page was torn, and said to be.
    Torn,
}

impl Scenario {
    /// A scenario drawn from a seed.
    #[must_use]
    pub fn random(seed: u64, planted: Planted) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(40..700);
        let ops = Generator::new(random.u64(..)).take(count);
        let mut crashes = Vec::new();
        for _ in 0..random.usize(1..5) {
            let mut in_recovery = Vec::new();
            while random.u8(0..3) == 0 && in_recovery.len() < 3 {
                in_recovery.push(up_to_power(&mut random, 1..8));
            }
            crashes.push(Crash {
                after: up_to_power(&mut random, 3..12),
                mode: match random.u8(0..6) {
                    0 => CrashMode::LoseAll,
                    1 => CrashMode::KeepAll,
                    _ => CrashMode::Random,
                },
                seed: random.u64(..),
                in_recovery,
            });
        }
        let setup = Setup::random(seed, planted);
        Scenario { seed, setup, kept: (0..ops.len()).collect(), ops, crashes }
    }

    /// Runs it from an empty disk to its end (SIM-1).
    ///
    /// # Errors
    /// What the engine did wrong.
    pub fn run(&self) -> Result<Tally> {
        // The engine draws the database's number from the thread's own generator.
        fastrand::seed(self.seed);
        let mut now = self.clone();
        let clock = Arc::new(ManualClock::default());
        let mut volume = SimVolume::new(self.seed);
        let mut tally = Tally::default();
        let mut db = recover(&self.setup, &volume, &clock).context("creating")?;
        let mut model = Model::new(self.setup.page_size);
        let mut rest = &self.ops[..];
        for (number, crash) in self.crashes.iter().enumerate() {
            let context = || format!("crash {number}, {crash:?}");
            volume.set_crash_after(Some(crash.after));
            let mut player =
                Player::new(now.setup, volume.clone(), clock.clone(), db, model.clone());
            let ending = player.play(rest).with_context(context)?;
            let done = if let Ending::Crashed { at } = ending { at + 1 } else { rest.len() };
            tally.ops += done as u64;
            tally.crashes += 1;
            // First the picture: letting go of a database closes it.
            let mut found = volume.crash_with(crash.mode, crash.seed);
            let (played, player_left) = (&rest[..done], player);
            now.setup = now.setup.varied(crash.seed);
            for (again, after) in crash.in_recovery.iter().enumerate() {
                found = now
                    .crash_recovery(&found, &clock, crash, again as u64, *after, &mut tally)
                    .with_context(context)?;
            }
            match now.settle(&found, &clock, crash, &player_left, &model, played) {
                Err(e) => return Err(e.context(context())),
                Ok(Tried::Torn) => {
                    tally.torn += 1;
                    return Ok(tally);
                }
                Ok(Tried::Recovered(next, _, after)) => {
                    tally.count_recovery(&next);
                    drop(player_left.stop());
                    (db, model, volume) = (next, after, found);
                }
            }
            rest = &rest[done..];
        }
        now.finish(volume, clock, db, model, rest).context("after the last crash")?;
        tally.ops += rest.len() as u64;
        Ok(tally)
    }

    /// Lets a recovery crash; returns the disk that it leaves.
    fn crash_recovery(
        &self,
        found: &SimVolume,
        clock: &Arc<ManualClock>,
        crash: &Crash,
        again: u64,
        after: u64,
        tally: &mut Tally,
    ) -> Result<SimVolume> {
        found.set_crash_after(Some(after));
        let opened = recover(&self.setup, found, clock);
        if !found.has_crashed() && opened.is_err() && !self.may_be_torn(crash) {
            return Err(opened.err().map_or_else(|| anyhow!("no error"), Into::into));
        }
        // What recovery put right goes to disk too, if it came so far.
        let checkpointed = opened.as_ref().ok().map(Db::checkpoint);
        if let Some(Err(e)) = checkpointed
            && !found.has_crashed()
            && !self.may_be_torn(crash)
        {
            return Err(anyhow::Error::new(e).context("a checkpoint after recovery"));
        }
        tally.recovery_crashes += u64::from(found.has_crashed());
        let left = found.crash_with(crash.mode, crash.seed.wrapping_add(again + 1));
        drop(opened);
        Ok(left)
    }

    fn may_be_torn(&self, crash: &Crash) -> bool {
        self.setup.may_tear() && crash.mode == CrashMode::Random
    }

    /// Recovers for good, and compares.
    ///
    /// # Errors
    /// What is not as it must be.
    pub fn settle(
        &self,
        found: &SimVolume,
        clock: &Arc<ManualClock>,
        crash: &Crash,
        player: &Player,
        before: &Model,
        played: &[Op],
    ) -> Result<Tried> {
        let db = match recover(&self.setup, &crash.to_look_at(found), clock) {
            Err(Error::Damaged(_)) if self.may_be_torn(crash) => return Ok(Tried::Torn),
            opened => opened.context("recovery")?,
        };
        let compared = window(&db, before, played, player.refused(), player.may_be_found());
        match compared {
            Ok((count, model)) => {
                let db = crash.to_go_on(db, || recover(&self.setup, found, clock))?;
                Ok(Tried::Recovered(db, count, model))
            }
            Err(e) if self.may_be_torn(crash) && says_damaged(&e) => Ok(Tried::Torn),
            Err(e) => Err(e),
        }
    }

    fn finish(
        &self,
        volume: SimVolume,
        clock: Arc<ManualClock>,
        db: Db,
        model: Model,
        rest: &[Op],
    ) -> Result<()> {
        let mut player = Player::new(self.setup, volume.clone(), clock.clone(), db, model);
        let ending = player.play(rest)?;
        ensure!(ending == Ending::Done, "the disk crashed by itself");
        let model = player.model().clone();
        audit(player.db().context("no database is open")?, &model)?;
        drop(player.stop());
        let db = recover(&self.setup, &volume, &clock).context("opening at the end")?;
        ensure!(db.recovery_report().is_none(), "it was closed, and recovered all the same");
        audit(&db, &model)
    }
}

impl Shorten for Scenario {
    fn count(&self) -> usize {
        self.ops.len()
    }

    fn crashes(&mut self) -> &mut Vec<Crash> {
        &mut self.crashes
    }

    fn reduced(&self, keep: &[usize], after: &[u64]) -> Self {
        let mut reduced = self.clone();
        reduced.ops = keep.iter().filter_map(|&i| self.ops.get(i).cloned()).collect();
        reduced.kept = keep.iter().filter_map(|&i| self.kept.get(i).copied()).collect();
        reduced.crash_after(after);
        reduced
    }

    fn arguments(&self) -> String {
        repeat_arguments(self.seed, &self.crashes, self.setup.planted, &self.kept)
    }

    fn check(&self) -> Result<()> {
        self.run().map(|_| ())
    }
}

/// The arguments that repeat a scenario.
pub(crate) fn repeat_arguments(
    seed: u64,
    crashes: &[Crash],
    planted: Planted,
    kept: &[usize],
) -> String {
    let after: Vec<String> = crashes.iter().map(|c| c.after.to_string()).collect();
    let mut text = format!("--repeat {seed} --crash-after '{}'", after.join(","));
    let name = Planted::ALL.iter().find(|(_, p)| *p == planted);
    if let Some((name, _)) = name.filter(|(name, _)| *name != "nothing") {
        let _ = write!(text, " --planted {name}");
    }
    let _ = write!(text, " --only {}", ranges(kept));
    text
}

/// Whether an error, or a check's report, is of a page that is not what was written.
fn says_damaged(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| {
        matches!(cause.downcast_ref::<Error>(), Some(Error::Damaged(_)))
            || cause.to_string().contains("the check found: ")
                && cause.to_string().contains(" in 'pages' at byte ")
    })
}

/// Small numbers as likely as large ones.
fn up_to_power(random: &mut fastrand::Rng, bits: std::ops::Range<u32>) -> u64 {
    let bits = random.u32(bits);
    random.u64(0..1 << bits)
}

fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &n in numbers {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == n => *to = n,
            _ => parts.push((n, n)),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        let once = Scenario::random(11, Planted::Nothing).run().expect("sound");
        assert_eq!(once, Scenario::random(11, Planted::Nothing).run().expect("sound"));
    }
}
