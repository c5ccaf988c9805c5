//! Commits, and when they are durable.
use weir_base::Lsn;
use weir_redo::Durability;

use crate::db::Db;
use crate::error::Error;
use crate::txn::Txn;

/// A commit that others see already. [`Db::wait`] says when it is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "it is durable once Db::wait has returned"]
pub struct Commit {
    end: Option<Lsn>,
}

impl Commit {
    /// Up to where the log has to be durable; `None`: nothing was changed.
    #[must_use]
    pub fn end(&self) -> Option<Lsn> {
        self.end
    }

    /// What [`Commit::end`] was read of, to wait for it later.
    pub fn at(end: Option<Lsn>) -> Self {
        Commit { end }
    }

    /// Whether anything was changed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.end.is_some()
    }
}

impl Db {
    /// Waits until all that was committed so far is on stable storage.
    ///
    /// # Errors
    /// [`Error::Halted`].
    pub fn sync(&self) -> Result<(), Error> {
        self.engine.check_here()?;
        self.engine.wait(self.engine.log.end(), Durability::Synced)
    }

    /// Waits until a commit is as durable as asked. Commits become durable in their order.
    ///
    /// # Errors
    /// [`Error::Halted`]: then it may or may not survive. [`Error::Position`]: no commit of this
    /// database ends there.
    pub fn wait(&self, commit: Commit, durability: Durability) -> Result<(), Error> {
        self.place_of(commit)?.map_or(Ok(()), |end| self.engine.wait(end, durability))
    }

    /// Waits until the device has a commit, so that a flush of it, for whichever file, makes the
    /// commit durable ([`Db::is_synced_with`]). [`Durability::Written`] promises less: the system's
    /// cache may keep the commit.
    ///
    /// # Errors
    /// As [`Db::wait`].
    pub fn wait_for_device(&self, commit: Commit) -> Result<(), Error> {
        self.place_of(commit)?.map_or(Ok(()), |end| self.engine.wait_for_device(end))
    }

    /// Where in the log of this database a commit ends that may be waited for here.
    fn place_of(&self, commit: Commit) -> Result<Option<Lsn>, Error> {
        self.engine.check_home()?;
        match commit.end {
            Some(end) if end > self.engine.log.end() => Err(Error::Position(end)),
            end => Ok(end),
        }
    }

    /// Whether the sync of a file elsewhere, which only grows, also makes durable whatever of the
    /// log was [on the device](Db::wait_for_device) before it grew, so that nothing else need sync
    /// that; and after a power failure the file is not found longer without it. `device` is the
    /// `st_dev` of that file. Where that is unknown it is `false`.
    #[must_use]
    pub fn is_synced_with(&self, device: u64) -> bool {
        self.engine.volume.is_synced_with(device)
    }

    /// Says that such a sync, begun after [`Db::wait_for_device`] had returned for this commit, has
    /// gone well.
    ///
    /// # Errors
    /// [`Error::Position`]: the device does not have all up to there. [`Error::Halted`].
    pub fn synced_by_another(&self, commit: Commit) -> Result<(), Error> {
        self.engine.check_home()?;
        self.engine.log.check()?;
        let Some(end) = commit.end else { return Ok(()) };
        if end > self.engine.log.on_device() {
            return Err(Error::Position(end));
        }
        self.engine.log.synced_by_another(end);
        Ok(())
    }

    /// Whether a commit is on stable storage already.
    #[must_use]
    pub fn is_durable(&self, commit: Commit) -> bool {
        commit.end.is_none_or(|end| end <= self.engine.log.durable())
    }
}

impl Db {
    /// Has `then` called, once, when a commit is on stable storage, or when the engine has halted
    /// and it is unknown whether it ever will be. The caller calls it before this returns if the
    /// commit is durable already, or if no other thread waits for one: then nothing is won by
    /// leaving it to another thread. Otherwise a thread of the engine's calls it, the one that all
    /// others of its kind wait for: `then` must not wait for anything. If it panics there, the
    /// others are called all the same.
    ///
    /// Errors that `then` may be given: as [`Db::wait`].
    pub fn when_durable(
        &self,
        commit: Commit,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let engine = &self.engine;
        if let Err(e) = engine.check_home() {
            return then(Err(e));
        }
        let end = match commit.end() {
            Some(end) if end > engine.log.durable() => end,
            _ => return then(Ok(())),
        };
        if end > engine.log.end() {
            return then(Err(Error::Position(end)));
        }
        let wait = |end| engine.wait(end, Durability::Synced);
        engine.acks.when_durable(&engine.log, end, Box::new(then), wait);
    }
}

impl Txn {
    /// Commits: others see the changes when it returns. They are durable once [`Db::wait`] has
    /// returned for what it gives; a commit that builds on them becomes durable later than they do.
    ///
    /// # Errors
    /// [`Error`]: the transaction is rolled back, unless the engine has halted.
    pub fn commit(mut self) -> Result<Commit, Error> {
        self.engine.check_here()?;
        let end = self.commit_raw()?;
        if end.is_some() {
            self.engine.count_commit();
        }
        Ok(Commit { end })
    }

    /// Commits, and has the store know the codecs that this changes. Gives where the log has to be
    /// durable for it.
    pub(crate) fn commit_raw(&mut self) -> Result<Option<Lsn>, Error> {
        let (engine, names) = (&self.engine, &self.codecs);
        if !names.is_empty() {
            engine.tell_codecs_of(names, self.raw.id());
        }
        let ended = engine.ended(self.raw.commit(&engine.context));
        if ended.is_err() && !names.is_empty() {
            engine.tell_codecs_of(names, None);
        }
        ended
    }

    /// Commits and waits until that is as durable as asked.
    ///
    /// # Errors
    /// As [`Txn::commit`] and [`Db::wait`].
    pub fn commit_durably(self, durability: Durability) -> Result<(), Error> {
        let engine = self.engine.clone();
        let commit = self.commit()?;
        commit.end.map_or(Ok(()), |end| engine.wait(end, durability))
    }
}
