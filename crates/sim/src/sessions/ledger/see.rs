//! What each session sees.
use std::ops::Bound;

use weir::Isolation;

use super::key::Key;
use super::state::{Ledger, Session};
use crate::model::Digest;

/// What of others is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything.
    Dirty,
    /// What is committed now.
    Latest,
    /// What was committed after so many commits.
    At(u64),
}

impl Ledger {
    /// Takes its snapshot, if its level has one and it has none yet.
    pub(crate) fn take_snapshot(&mut self, session: u8) {
        let now = self.commits;
        if let Some(session) = self.session_mut(session)
            && matches!(session.isolation, Isolation::RepeatableRead | Isolation::Snapshot)
        {
            session.snapshot.get_or_insert(now);
        }
    }

    /// What it sees of others, taking its snapshot if need be.
    pub(crate) fn sight(&mut self, session: u8) -> Sight {
        self.take_snapshot(session);
        match self.session(session) {
            Some(s) if s.isolation == Isolation::ReadUncommitted => Sight::Dirty,
            // A snapshot that it shares is nothing to a session that locks what it reads.
            Some(Session {
                isolation: Isolation::ReadCommitted | Isolation::Serializable, ..
            }) => Sight::Latest,
            Some(Session { snapshot: Some(at), .. }) => Sight::At(*at),
            _ => Sight::Latest,
        }
    }

    /// What a cursor opened now sees of others; `None`: what its session sees when it moves.
    pub(crate) fn cursor_sight(&self, session: u8) -> Option<Sight> {
        let of = self.session(session)?;
        (of.isolation == Isolation::ReadCommitted).then_some(Sight::At(self.commits))
    }

    /// Its own change of the row that is in force; `Some(None)`: it has removed it.
    pub(super) fn own(&self, session: u8, key: &Key) -> Option<Option<Digest>> {
        let changes = &self.session(session)?.changes;
        changes.iter().rev().find(|(changed, _)| changed == key).map(|(_, value)| *value)
    }

    /// Whether it has changed the row, and that is in force.
    pub(crate) fn has_changed(&self, session: u8, key: &Key) -> bool {
        self.own(session, key).is_some()
    }

    /// Another session that has changed the row and not yet ended.
    pub(super) fn writer_beside(&self, session: Option<u8>, key: &Key) -> Option<u8> {
        let mut others = self.sessions.keys().copied().filter(|s| Some(*s) != session);
        others.find(|s| self.own(*s, key).is_some())
    }

    pub(super) fn committed(&self, key: &Key, at: u64) -> Option<Digest> {
        let versions = self.versions.get(key)?;
        versions.iter().rev().find(|(number, _)| *number <= at).and_then(|(_, value)| *value)
    }

    /// What `session` sees of a row.
    pub(crate) fn see(&self, session: Option<u8>, sight: Sight, key: &Key) -> Option<Digest> {
        if let Some(own) = session.and_then(|s| self.own(s, key)) {
            return own;
        }
        match sight {
            Sight::Dirty => match self.writer_beside(session, key) {
                Some(writer) => self.own(writer, key).flatten(),
                None => self.committed(key, self.commits),
            },
            Sight::Latest => self.committed(key, self.commits),
            Sight::At(at) => self.committed(key, at),
        }
    }

    /// The first row seen behind (or, downwards, before) a bound.
    pub(crate) fn next_row(
        &self,
        session: Option<u8>,
        sight: Sight,
        tree: u8,
        from: Bound<&[u8]>,
        up: bool,
    ) -> Option<(Vec<u8>, Digest)> {
        let from = from.map(|key| (tree, key.to_vec()));
        let seen = |key: &Key| self.see(session, sight, key).map(|value| (key.1.clone(), value));
        if up {
            let from =
                if from == Bound::Unbounded { Bound::Included((tree, vec![])) } else { from };
            let to = Bound::Excluded((tree + 1, vec![]));
            self.keys.range((from, to)).find_map(seen)
        } else {
            let to =
                if from == Bound::Unbounded { Bound::Excluded((tree + 1, vec![])) } else { from };
            let from = Bound::Included((tree, vec![]));
            self.keys.range((from, to)).rev().find_map(seen)
        }
    }
}
