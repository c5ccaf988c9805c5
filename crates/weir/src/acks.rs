//! Telling of commits that are durable without a thread of the committer's that waits for it.
//!
//! A thread that waits for its commit is put to sleep and woken for that alone. Where each session
//! has a thread, and commits are small, these two changes of threads, and what the caches lose by
//! them, cost more than the commit itself (docs/decisions/acknowledgements.md). So a thread with
//! something that only waits to be sent leaves it here, and one thread syncs the log for all that
//! have come meanwhile, again and again, and then sends what they left.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_base::Lsn;
use weir_base::lock::{Condvar, Mutex};
use weir_base::rank;
use weir_redo::{Log, RedoError};

use crate::error::Error;

/// What is to be done when a commit is durable, or never will be.
pub(crate) type Then = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A commit that a caller is to be notified of, also if the thread ends that should do so.
struct Ack {
    end: Lsn,
    then: Option<Then>,
}

impl Ack {
    /// Tells. What panics there has been said by the panic hook, and keeps no other commit from
    /// being called.
    fn acknowledge(&mut self, what: Result<(), Error>) {
        if let Some(then) = self.then.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| then(what)));
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        self.acknowledge(Err(Error::Halted("it is unknown whether it is durable".into())));
    }
}

#[derive(Default)]
pub(crate) struct Acks {
    asked: Mutex<rank::WaitingCommits, Asked>,
    wanted: Condvar,
    /// Commits that are waited for: those of the list, of the round under way, and of callers that
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
    fn leave(&self, log: &Log, ack: Ack) -> Result<(), Ack> {
        let mut asked = self.asked.lock();
        if !asked.is_served {
            return Err(ack);
        }
        asked.list.push(ack);
        log.announce();
        let wakes = std::mem::take(&mut asked.is_asleep);
        drop(asked);
        if wakes {
            self.wanted.notify_one();
        }
        Ok(())
    }

    /// Has `then` called when the log is durable up to `end`: by the thread that serves, or, where
    /// no other commit waits, by the caller, which waits itself.
    pub(crate) fn when_durable(
        &self,
        log: &Log,
        end: Lsn,
        then: Then,
        wait: impl FnOnce(Lsn) -> Result<(), Error>,
    ) {
        let is_alone = self.open.fetch_add(1, Ordering::Relaxed) == 0;
        let ack = Ack { end, then: Some(then) };
        let ack = if is_alone { Err(ack) } else { self.leave(log, ack) };
        if let Err(mut ack) = ack {
            // What panics here unwinds into its own caller.
            let _open = Open(&self.open);
            let waited = wait(ack.end);
            if let Some(then) = ack.then.take() {
                then(waited);
            }
        }
    }

    /// A thread will call [`Acks::serve`].
    pub(crate) fn begin(&self) {
        self.asked.lock().is_served = true;
    }

    /// A thread that serves comes back when all that was left is acknowledged; nothing is left any
    /// more.
    pub(crate) fn end(&self) {
        self.asked.lock().is_served = false;
        self.wanted.notify_one();
    }

    /// A thread that serves has ended without being told to: all that was left gets its error.
    pub(crate) fn give_up(&self) {
        let mut asked = self.asked.lock();
        asked.is_served = false;
        let left = std::mem::take(&mut asked.list);
        drop(asked);
        self.acknowledge(left.into_iter(), Some("the thread that acknowledges commits has ended"));
    }

    /// Takes all that was left, and waits for it if there is nothing in hand. `false`: there is
    /// nothing, and nothing comes any more.
    fn take(&self, in_hand: &mut Vec<Ack>) -> bool {
        let mut asked = self.asked.lock();
        while in_hand.is_empty() && asked.list.is_empty() && asked.is_served {
            asked.is_asleep = true;
            self.wanted.wait(&mut asked);
        }
        asked.is_asleep = false;
        in_hand.append(&mut asked.list);
        !in_hand.is_empty()
    }

    /// Tells of what is left here, until [`Acks::end`].
    pub(crate) fn serve(&self, log: &Log, failed: &dyn Fn(&RedoError)) {
        let mut in_hand: Vec<Ack> = Vec::new();
        while self.take(&mut in_hand) {
            // Those that came while others were waited for may have become durable with them: they
            // are not to wait for those that came behind.
            let durable = log.durable();
            self.acknowledge(in_hand.extract_if(.., |ack| ack.end <= durable), None);
            let Some(end) = in_hand.iter().map(|ack| ack.end).max() else { continue };
            if let Err(e) = log.wait_for_announced(end) {
                failed(&e);
                self.acknowledge(in_hand.drain(..), Some(&e.to_string()));
            }
        }
    }

    fn acknowledge(&self, acks: impl Iterator<Item = Ack>, failure: Option<&str>) {
        let mut number = 0;
        for mut ack in acks {
            ack.acknowledge(failure.map_or(Ok(()), |e| Err(Error::Halted(e.into()))));
            number += 1;
        }
        self.open.fetch_sub(number, Ordering::Relaxed);
    }
}

/// One of those that are waited for.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
