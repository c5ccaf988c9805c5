//! Scripted interleavings: which session does what, in which order, and what each level is expected
//! to make of it. Run on one thread, deterministically: a session that would wait is asked again
//! whenever another has ended its transaction. (The idea of such tables is M. Kleppmann's
//! "Hermitage".)

use crate::anomaly::Anomaly;
use crate::check::survey;
use crate::journal::{Journal, Recorded};
use crate::record::{History, Key, Level, Lock};
use crate::session::{Refused, Session};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

/// One thing that a session does. Its first one begins a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Only begins.
    Begin,
    /// Reads a key.
    Get(Key, Lock),
    /// Reads the keys from the first to before the second.
    Scan(Key, Key, Lock),
    /// Writes a key.
    Put(Key),
    /// Writes a key that has no row.
    Insert(Key),
    /// Removes a key.
    Delete(Key),
    /// Sets the savepoint.
    Savepoint,
    /// Goes back to it.
    Back,
    /// Commits.
    Commit,
    /// Rolls back.
    Rollback,
}

/// What came of a script at one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An anomaly was seen, whether the level allows it or not; the one that the weakest level
    /// forbids.
    Shows(Anomaly),
    /// None, for a transaction was refused: a deadlock or a conflict.
    Refuses,
    /// None, for a session had to wait.
    Waits,
    /// None, and no session had to wait.
    Passes,
}

/// A script.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// A short name.
    pub name: &'static str,
    /// Keys with rows at the start.
    pub setup: &'static [Key],
    /// Session (from 1) and what it does.
    pub steps: &'static [(usize, Step)],
    /// What is expected at each of [`Level::ALL`], where plain reads at SERIALIZABLE lock.
    pub expect: [Outcome; 5],
}

/// A script that was run.
#[derive(Clone, Debug)]
pub struct Played {
    /// What came of it.
    pub outcome: Outcome,
    /// What was recorded, the last transaction being a look at everything at the end.
    pub history: History,
    /// Line by line which session did what and got what.
    pub transcript: String,
}

impl Script {
    /// How many sessions it needs.
    pub fn sessions(&self) -> usize {
        self.steps.iter().map(|&(session, _)| session).max().unwrap_or(0)
    }

    /// What is expected at this level.
    pub fn expected(&self, level: Level) -> Outcome {
        let at = Level::ALL.iter().position(|&other| other == level).unwrap_or(0);
        self.expect[at]
    }

    /// Runs it at one level on a fresh store: `connect` is given the rows that the store must hold,
    /// and how many sessions are wanted.
    pub fn play<S: Session>(
        &self,
        level: Level,
        connect: impl FnOnce(&[(Key, u64)], usize) -> Vec<S>,
    ) -> Played {
        let journal = Journal::over(self.setup.iter().copied());
        let rows: Vec<(Key, u64)> = journal.rows().collect();
        let sessions = connect(&rows, self.sessions());
        assert_eq!(sessions.len(), self.sessions(), "as many sessions as wanted");
        let mut stage = Stage::new(sessions, &journal, level);
        for &(session, step) in self.steps {
            stage.actors[session - 1].ahead.push_back(step);
            stage.advance();
        }
        stage.finish();
        let history = journal.history();
        let outcome = match survey(&history).first() {
            Some(found) => Outcome::Shows(found.anomaly),
            None if stage.refused => Outcome::Refuses,
            None if stage.waited => Outcome::Waits,
            None => Outcome::Passes,
        };
        Played { outcome, history, transcript: stage.transcript }
    }
}

struct Actor<S> {
    session: Recorded<S>,
    /// Steps that are due, the first perhaps waiting.
    ahead: VecDeque<Step>,
    /// When it began to wait, as a count of waits.
    waits_since: Option<u64>,
    /// Its transaction was refused: steps up to the end of it are left out.
    skipping: bool,
}

struct Stage<S> {
    actors: Vec<Actor<S>>,
    level: Level,
    waits: u64,
    waited: bool,
    refused: bool,
    transcript: String,
}

impl<S: Session> Stage<S> {
    fn new(sessions: Vec<S>, journal: &Arc<Journal>, level: Level) -> Stage<S> {
        let actor = |session| Actor {
            session: Recorded::new(session, journal),
            ahead: VecDeque::new(),
            waits_since: None,
            skipping: false,
        };
        Stage {
            actors: sessions.into_iter().map(actor).collect(),
            level,
            waits: 0,
            waited: false,
            refused: false,
            transcript: String::new(),
        }
    }

    /// Every session goes as far as it can, the one that waits longest first.
    fn advance(&mut self) {
        loop {
            let mut order: Vec<usize> = (0..self.actors.len()).collect();
            order.sort_by_key(|&at| self.actors[at].waits_since.unwrap_or(u64::MAX));
            if !order.into_iter().any(|at| self.try_one(at)) {
                return;
            }
        }
    }

    /// One step of one session; false: there is none, or it waits.
    fn try_one(&mut self, at: usize) -> bool {
        let actor = &mut self.actors[at];
        let Some(&step) = actor.ahead.front() else { return false };
        if actor.skipping {
            actor.ahead.pop_front();
            actor.skipping = !matches!(step, Step::Commit | Step::Rollback);
            return true;
        }
        let answer = perform(&mut actor.session, self.level, step);
        if answer == Err(Refused::WouldWait) {
            if actor.waits_since.is_none() {
                actor.waits_since = Some(self.waits);
                (self.waits, self.waited) = (self.waits + 1, true);
                self.note(at, step, "waits");
            }
            return false;
        }
        actor.ahead.pop_front();
        actor.waits_since = None;
        let is_end = matches!(step, Step::Commit | Step::Rollback);
        if !actor.session.is_open() && !is_end {
            actor.skipping = true;
        }
        match answer {
            Ok(seen) => self.note(at, step, &seen),
            Err(Refused::Duplicate) => self.note(at, step, "duplicate key"),
            Err(why) => {
                self.refused = true;
                self.note(at, step, &why.to_string());
            }
        }
        true
    }

    /// All steps are known: if all wait, the last to begin waiting gives way. Then a session looks
    /// at everything, so that what was lost at the end is missed.
    fn finish(&mut self) {
        loop {
            self.advance();
            let waiting = (0..self.actors.len()).max_by_key(|&at| self.actors[at].waits_since);
            let Some(last) = waiting.filter(|&at| self.actors[at].waits_since.is_some()) else {
                break;
            };
            self.actors[last].session.rollback();
            self.actors[last].waits_since = None;
            self.actors[last].skipping = true;
            self.refused = true;
            let _ = writeln!(self.transcript, "session {} gives way: deadlock", last + 1);
        }
        for actor in &mut self.actors {
            if actor.session.is_open() {
                actor.session.rollback();
            }
        }
        for step in [Step::Scan(0, Key::MAX, Lock::None), Step::Commit] {
            self.actors[0].ahead.push_back(step);
        }
        self.actors[0].skipping = false;
        self.advance();
    }

    fn note(&mut self, at: usize, step: Step, answer: &str) {
        let _ = writeln!(self.transcript, "session {}: {step:?}: {answer}", at + 1);
    }
}

/// Does one step, beginning a transaction if none is open. What was seen comes back as text.
pub(crate) fn perform<S: Session>(
    session: &mut Recorded<S>,
    level: Level,
    step: Step,
) -> Result<String, Refused> {
    if !session.is_open() {
        session.begin(level)?;
    }
    match step {
        Step::Begin => {}
        Step::Get(key, lock) => {
            let seen = session.get(key, lock)?;
            return Ok(seen.map_or("no row".to_owned(), |seen| seen.to_string()));
        }
        Step::Scan(from, to, lock) => {
            let seen = session.scan(from..to, lock)?;
            let rows = seen.iter().map(|(key, version)| format!("[{key}: {version}]"));
            return Ok(rows.collect());
        }
        Step::Put(key) => session.put(key)?,
        Step::Insert(key) => session.insert(key)?,
        Step::Delete(key) if !session.delete(key)? => return Ok("no row".to_owned()),
        Step::Delete(_) => {}
        Step::Savepoint => session.savepoint()?,
        Step::Back => session.back_to_savepoint()?,
        Step::Commit => session.commit()?,
        Step::Rollback => session.rollback(),
    }
    Ok("done".to_owned())
}
