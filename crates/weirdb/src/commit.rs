//! Commits that others see, and when they are durable.
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::Error;
use crate::options::Durability;
use crate::shared::Shared;

/// A commit that others see already ([`WriteTxn::commit_nowait`](crate::WriteTxn::commit_nowait)),
/// and that becomes durable by and by, after all that came before it. It may be waited for by a
/// thread, reported by a callback, or awaited.
#[must_use = "it is durable once it was waited for"]
#[derive(Clone)]
pub struct Commit {
    pub(crate) db: Arc<Shared>,
    pub(crate) raw: weir::Commit,
}

impl Commit {
    /// Waits until it is on stable storage.
    ///
    /// # Errors
    /// [`Error::Halted`]: then it may or may not survive.
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_for(Durability::Synced)
    }

    /// Waits until it is as durable as asked.
    ///
    /// # Errors
    /// As [`Commit::wait`].
    pub fn wait_for(&self, durability: Durability) -> Result<(), Error> {
        self.db.raw.wait(self.raw, durability.raw()).map_err(|e| self.db.fails(e))
    }

    /// Whether it is on stable storage already.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.db.raw.is_durable(self.raw)
    }

    /// Whether anything was changed: if not, it is durable.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.raw.is_change()
    }

    /// Has `then` called, once, when it is on stable storage, or when it is not known any more
    /// whether it ever will be: at once by this thread where nothing is won by leaving it to
    /// another one, else by the thread that does so for all, which must not be made to wait. If
    /// `then` panics there, the others are called all the same.
    pub fn when_durable(&self, then: impl FnOnce(Result<(), Error>) + Send + 'static) {
        // The database is not kept open by what waits for it.
        let dir = self.db.dir.clone();
        self.db.raw.when_durable(self.raw, move |done| {
            then(done.map_err(|e| crate::convert::error(&dir, e)));
        });
    }
}

impl IntoFuture for Commit {
    type Output = Result<(), Error>;
    type IntoFuture = Durable;

    /// Begins to wait, at the first poll.
    fn into_future(self) -> Durable {
        Durable { commit: Some(self), shared: Arc::default() }
    }
}

/// A [`Commit`] that is awaited: ready when it is on stable storage. It needs no particular
/// runtime.
#[must_use = "it waits for nothing until it is polled"]
pub struct Durable {
    /// Until it is asked for.
    commit: Option<Commit>,
    shared: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    outcome: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

impl Future for Durable {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(commit) = self.commit.take() {
            let shared = self.shared.clone();
            commit.when_durable(move |outcome| {
                // Nothing panics under this lock.
                let mut shared = shared.lock().unwrap_or_else(|e| e.into_inner());
                shared.outcome = Some(outcome);
                let waker = shared.waker.take();
                drop(shared);
                if let Some(waker) = waker {
                    waker.wake();
                }
            });
        }
        let mut shared = self.shared.lock().unwrap_or_else(|e| e.into_inner());
        match shared.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit").field("is_durable", &self.is_durable()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").finish_non_exhaustive()
    }
}
