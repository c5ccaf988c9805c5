//! Telling of commits that are durable without a thread of the committer's that waits for it.
//!
//! A thread that waits for its commit is put to sleep and woken for that alone. Where each session
//! has a thread, and commits are small, these two changes of threads, and what the caches lose by
//! them, cost more than the commit itself (docs/decisions/acknowledgements.md). So whoever has
//! something that only waits to be sent leaves it here, and one thread syncs the log for all that
//! have come meanwhile, again and again, and then sends what they left.
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};
use weir_base::Lsn;
use weir_redo::{Durability, Log, RedoError};

use crate::commit::Commit;
use crate::db::Db;
use crate::error::Error;

/// What is to be done when a commit is durable, or never will be.
type Then = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A commit that somebody is to be told of.
struct Ack {
    end: Lsn,
    then: Then,
}

#[derive(Default)]
pub(crate) struct Acks {
    asked: Mutex<Asked>,
    wanted: Condvar,
    /// Commits that are waited for: those of the list, of the round under way, and of callers who
    /// wait themselves.
    open: AtomicUsize,
}

#[derive(Default)]
struct Asked {
    list: Vec<Ack>,
    /// The thread has nothing to do.
    is_asleep: bool,
    /// There is a thread that serves the list.
    is_served: bool,
}

impl Acks {
    /// Leaves one to the thread. Gives it back if there is no thread.
    fn leave(&self, ack: Ack) -> Result<(), Ack> {
        let mut asked = self.asked.lock();
        if !asked.is_served {
            return Err(ack);
        }
        asked.list.push(ack);
        let wakes = std::mem::take(&mut asked.is_asleep);
        drop(asked);
        if wakes {
            self.wanted.notify_one();
        }
        Ok(())
    }

    /// Somebody will call [`Acks::serve`].
    pub(crate) fn begin(&self) {
        self.asked.lock().is_served = true;
    }

    /// Who serves comes back when all that was left has been told; nothing is left any more.
    pub(crate) fn end(&self) {
        self.asked.lock().is_served = false;
        self.wanted.notify_one();
    }

    /// Waits until something was left, and takes all of it. `false`: it has ended.
    fn take(&self, taken: &mut Vec<Ack>) -> bool {
        let mut asked = self.asked.lock();
        while asked.list.is_empty() && asked.is_served {
            asked.is_asleep = true;
            self.wanted.wait(&mut asked);
        }
        asked.is_asleep = false;
        std::mem::swap(&mut asked.list, taken);
        !taken.is_empty()
    }

    /// Tells of what is left here, until [`Acks::end`].
    pub(crate) fn serve(&self, log: &Log, failed: &dyn Fn(&RedoError)) {
        let mut taken = Vec::new();
        while self.take(&mut taken) {
            // Commits become durable in their order.
            let end = taken.iter().map(|ack| ack.end).max().expect("there is one");
            let outcome = log.wait(end, Durability::Synced);
            if let Err(e) = &outcome {
                failed(e);
            }
            let number = taken.len();
            for ack in taken.drain(..) {
                let told = match &outcome {
                    Ok(()) => Ok(()),
                    Err(e) => Err(Error::Halted(e.to_string())),
                };
                (ack.then)(told);
            }
            self.open.fetch_sub(number, Ordering::Relaxed);
        }
    }
}

impl Db {
    /// Has `then` called, once, when a commit is on stable storage, or when the engine has halted
    /// and nobody knows whether it ever will be. The caller calls it before this returns if the
    /// commit is durable already, or if nobody else waits for one: then nothing is won by leaving
    /// it to somebody else. Otherwise a thread of the engine's calls it, the one that all others
    /// of its kind wait for: `then` must not wait for anything.
    ///
    /// Errors that `then` may be given: as [`Db::wait`].
    pub fn when_durable(
        &self,
        commit: Commit,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let engine = &self.engine;
        let end = match commit.end() {
            Some(end) if end > engine.log.durable() => end,
            _ => return then(Ok(())),
        };
        if end > engine.log.end() {
            return then(Err(Error::Position(end)));
        }
        let acks = &engine.acks;
        let is_alone = acks.open.fetch_add(1, Ordering::Relaxed) == 0;
        let then: Then = Box::new(then);
        let ack = Ack { end, then };
        let ack = if is_alone { Err(ack) } else { acks.leave(ack) };
        if let Err(Ack { end, then }) = ack {
            then(engine.wait(end, Durability::Synced));
            acks.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
