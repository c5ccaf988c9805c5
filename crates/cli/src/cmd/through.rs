//! What is asked of the process that has a database open: waiting for its answer.
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use indicatif::ProgressBar;
use weir::{Answered, Asked, Question};

/// The process looks for a request every second.
const BEGIN_WAIT: Duration = Duration::from_secs(10);
/// It says how far it has come more often than that.
const STUCK_WAIT: Duration = Duration::from_secs(60);
/// Ended by Ctrl-C, it says so much sooner.
const END_WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// A command that another process does what it cannot.
pub(super) struct Through<'a> {
    pub(super) dir: &'a Path,
    pub(super) question: Question,
    /// What the command does, as a noun.
    pub(super) what: &'static str,
    /// What is to be done where the process cannot be asked.
    pub(super) by_hand: &'static str,
}

impl Through<'_> {
    /// The question as `asked`, or why it could not be put. `in_use`: why the database could not be
    /// opened here.
    pub(super) fn put(&self, asked: std::io::Result<Asked>, in_use: Error) -> Result<Put<'_>> {
        match asked {
            Ok(asked) => Ok(Put { through: self, asked, in_use }),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(in_use.context(format!(
                "another {} of it is under way, or was ended: '{}' is there, which may be removed",
                self.what,
                self.dir.join(self.question.request).display()
            ))),
            Err(e) => Err(in_use.context(format!("it cannot be asked to ({e}): {}", self.by_hand))),
        }
    }
}

/// A question that was put.
pub(super) struct Put<'a> {
    through: &'a Through<'a>,
    asked: Asked,
    pub(super) in_use: Error,
}

impl Put<'_> {
    /// Waits for the answer; `stop` says when the process is to come to an end. The error for what
    /// is wrong with the answer comes with it.
    pub(super) fn answer(
        self,
        bar: &ProgressBar,
        stop: &dyn Fn() -> bool,
    ) -> Result<(String, Error)> {
        let (mut said, mut since) = (Answered::NotYet, Instant::now());
        let mut ended_at: Option<Instant> = None;
        loop {
            let answered = self.asked.answered();
            if let Answered::Whole(text) = answered {
                bar.finish_and_clear();
                return Ok((text, self.in_use));
            }
            if answered != said {
                (said, since) = (answered, Instant::now());
            }
            if let Answered::Progress(done, of) = said {
                bar.set_length(of);
                bar.set_position(done);
            }
            if ended_at.is_none() && stop() {
                ended_at = Some(Instant::now());
                self.asked.end();
            }
            let wait = if said == Answered::NotYet { BEGIN_WAIT } else { STUCK_WAIT };
            let is_stuck = since.elapsed() > wait;
            if is_stuck || ended_at.is_some_and(|at| at.elapsed() > END_WAIT) {
                bar.finish_and_clear();
                let by_hand = self.through.by_hand;
                return Err(self.in_use.context(format!("it does not answer: {by_hand}")));
            }
            sleep(LOOK);
        }
    }
}
