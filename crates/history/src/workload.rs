//! Random transactions, to be judged afterwards: interleaved on one thread by a seed, or one
//! thread's share of many.

use crate::journal::Recorded;
use crate::record::{Key, Level, Lock};
use crate::script::{Step, perform};
use crate::session::{Refused, Session};
use fastrand::Rng;
use std::collections::VecDeque;

/// What random transactions are like.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Each transaction takes one of these.
    pub levels: Vec<Level>,
    /// Keys are 0 to before this; low ones are used more.
    pub keys: Key,
    /// Reads and writes in a transaction, at most.
    pub steps_max: usize,
    /// Of a hundred transactions, so many roll back of their own will.
    pub rollbacks: u32,
    /// Of a hundred steps, so many are writes.
    pub writes: u32,
    /// Savepoints are set and gone back to.
    pub savepoints: bool,
    /// Ranges are read for share and for update, too.
    pub locking_scans: bool,
}

impl Mix {
    /// Few keys, and so many conflicts.
    pub fn new(levels: &[Level]) -> Mix {
        let levels = levels.to_vec();
        Mix {
            levels,
            keys: 12,
            steps_max: 6,
            rollbacks: 10,
            writes: 50,
            savepoints: true,
            locking_scans: true,
        }
    }

    /// The keys that must have rows at the start. Of every four keys one has none, and is never
    /// removed later; one has a row, and is removed and put again; two always have one. So that
    /// reads of no row mostly tell which state they saw.
    pub fn setup(&self) -> impl Iterator<Item = Key> + use<> {
        (0..self.keys).filter(|key| !key.is_multiple_of(4))
    }

    /// The `nth` transaction's level and steps, the last being its end. Some look at the few keys,
    /// new with `nth`, that follow the others and that a transaction is about to insert: that is
    /// where phantoms come from.
    pub fn draw(&self, random: &mut Rng, nth: u64) -> (Level, VecDeque<Step>) {
        let level = random.choice(&self.levels).copied().unwrap_or(Level::Serializable);
        // Far from the end of all keys: histories are not that long.
        let fresh = self.keys + (nth / 2) as Key;
        let mut steps = VecDeque::new();
        for _ in 0..random.usize(1..=self.steps_max.max(1)) {
            let lock = [Lock::None, Lock::None, Lock::Share, Lock::Update][random.usize(..4)];
            let range_lock = if self.locking_scans { lock } else { Lock::None };
            let writes = random.u32(..100) < self.writes;
            steps.push_back(match (random.u32(..5), writes) {
                (0, true) => Step::Insert(fresh + random.u32(..4)),
                (0, false) => {
                    Step::Scan(fresh.saturating_sub(random.u32(..4)), fresh + 4, range_lock)
                }
                (_, true) => self.draw_write(random, &steps),
                (1, false) => {
                    let key = random.u32(..self.keys);
                    Step::Scan(key, key + random.u32(1..6), range_lock)
                }
                (_, false) => Step::Get(self.draw_key(random), lock),
            });
        }
        let gives_up = random.u32(..100) < self.rollbacks;
        steps.push_back(if gives_up { Step::Rollback } else { Step::Commit });
        (level, steps)
    }

    fn draw_key(&self, random: &mut Rng) -> Key {
        random.u32(..self.keys).min(random.u32(..self.keys))
    }

    fn draw_write(&self, random: &mut Rng, before: &VecDeque<Step>) -> Step {
        let key = self.draw_key(random);
        match (random.u32(..8), key % 4) {
            (0, 0) => Step::Insert(key),
            (0 | 1, 1) => Step::Delete(key),
            (2, _) if self.savepoints => Step::Savepoint,
            (3, _) if self.savepoints && before.contains(&Step::Savepoint) => Step::Back,
            _ => Step::Put(key),
        }
    }
}

/// What became of random transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Committed.
    pub committed: u64,
    /// Rolled back of their own will.
    pub rolled_back: u64,
    /// Refused for a deadlock, a conflict or for having waited too long.
    pub refused: u64,
    /// Operations that would have waited.
    pub waits: u64,
    /// Failed for another reason, which no store should have.
    pub failed: u64,
}

impl Tally {
    /// Both together.
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            committed: self.committed + other.committed,
            rolled_back: self.rolled_back + other.rolled_back,
            refused: self.refused + other.refused,
            waits: self.waits + other.waits,
            failed: self.failed + other.failed,
        }
    }

    fn count(&mut self, answer: &Result<String, Refused>, step: Step) {
        match answer {
            Ok(_) if step == Step::Commit => self.committed += 1,
            Ok(_) if step == Step::Rollback => self.rolled_back += 1,
            Ok(_) | Err(Refused::Duplicate) => {}
            Err(Refused::WouldWait) => self.waits += 1,
            Err(Refused::Deadlock | Refused::Conflict) => self.refused += 1,
            Err(Refused::Failed(_)) => self.failed += 1,
        }
    }
}

/// One session of those that are interleaved.
struct Player {
    level: Level,
    ahead: VecDeque<Step>,
    waits: bool,
}

/// Runs random transactions in all sessions, a step here and a step there as the seed says, until
/// so many have been begun; then all are brought to their end. The sessions must answer
/// [`Refused::WouldWait`] at once. Where all wait, one of them is rolled back.
pub fn interleave<S: Session>(
    sessions: &mut [Recorded<S>],
    mix: &Mix,
    seed: u64,
    transactions: u64,
) -> Tally {
    let mut random = Rng::with_seed(seed);
    let mut tally = Tally::default();
    let mut left = transactions;
    let idle = || Player { level: Level::Serializable, ahead: VecDeque::new(), waits: false };
    let mut players: Vec<Player> = sessions.iter().map(|_| idle()).collect();
    loop {
        let busy: Vec<usize> =
            (0..players.len()).filter(|&at| left > 0 || !players[at].ahead.is_empty()).collect();
        let ready: Vec<usize> = busy.iter().copied().filter(|&at| !players[at].waits).collect();
        let Some(at) = random.choice(&ready).copied() else {
            let Some(victim) = random.choice(&busy).copied() else { return tally };
            sessions[victim].rollback();
            tally.refused += 1;
            players[victim].ahead.clear();
            players.iter_mut().for_each(|player| player.waits = false);
            continue;
        };
        let player = &mut players[at];
        if player.ahead.is_empty() {
            (player.level, player.ahead) = mix.draw(&mut random, transactions - left);
            left -= 1;
        }
        let Some(&step) = player.ahead.front() else { continue };
        let answer = perform(&mut sessions[at], player.level, step);
        tally.count(&answer, step);
        match answer {
            Err(Refused::WouldWait) => player.waits = true,
            _ if sessions[at].is_open() => drop(player.ahead.pop_front()),
            _ => {
                player.ahead.clear();
                players.iter_mut().for_each(|player| player.waits = false);
            }
        }
    }
}

/// Runs random transactions in one session, one after the other, while others run theirs on other
/// threads. What would wait, or has waited too long, is rolled back and not tried again.
pub fn drive<S: Session>(
    session: &mut Recorded<S>,
    mix: &Mix,
    seed: u64,
    transactions: u64,
) -> Tally {
    let mut random = Rng::with_seed(seed);
    let mut tally = Tally::default();
    for nth in 0..transactions {
        let (level, steps) = mix.draw(&mut random, nth);
        for step in steps {
            if random.u32(..4) == 0 {
                // Where there are fewer cores than threads, they would hardly meet.
                std::thread::yield_now();
            }
            let answer = perform(session, level, step);
            tally.count(&answer, step);
            if answer == Err(Refused::WouldWait) {
                session.rollback();
                tally.refused += 1;
            }
            if !session.is_open() {
                break;
            }
        }
    }
    tally
}

/// Reads everything in one transaction, so that the last writes of the others are missed if they
/// are missing. False: it could not.
pub fn look_around<S: Session>(session: &mut Recorded<S>, level: Level) -> bool {
    let scan = Step::Scan(0, Key::MAX, Lock::None);
    let done = [scan, Step::Commit].into_iter().all(|step| perform(session, level, step).is_ok());
    if session.is_open() {
        session.rollback();
    }
    done
}
