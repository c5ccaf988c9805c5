//! What every session must see, and which changes must be refused: all versions of all rows, in the
//! order of the commits, and what each session has done so far.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use weir::Isolation;

use crate::model::{Contents, Digest, mark, mix};

/// A row's tree and key.
pub(crate) type Key = (u8, Vec<u8>);

/// Why a change or a lock is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another session has the row.
    Locked,
    /// Somebody has changed the row since the snapshot.
    Conflict,
    /// The row is there already.
    Duplicate,
}

/// What the engine must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Must it be refused, and why?
    pub(crate) must: Result<(), Refusal>,
    /// It may also be refused because of a lock that another session may still have.
    pub(crate) may_be_locked: bool,
}

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

/// How sure a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Shared,
    Exclusive,
    /// Exclusive, or not at all: the row was changed and that was taken back, or it was looked at
    /// for a change.
    Maybe,
}

struct Session {
    isolation: Isolation,
    snapshot: Option<u64>,
    changes: Vec<(Key, Option<Digest>)>,
    savepoints: Vec<usize>,
}

/// The keys that a cursor passes in one step.
#[derive(Clone)]
pub(crate) struct Span {
    tree: u8,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl Span {
    fn has(&self, key: &Key) -> bool {
        let bounds = (self.from.as_ref(), self.to.as_ref());
        self.tree == key.0 && bounds.contains(&key.1)
    }
}

/// Keys that are locked for sharing, whether or not rows are there.
struct Range {
    session: u8,
    span: Span,
    /// Not only a part of it, or nothing.
    is_sure: bool,
}

/// All that is known.
pub struct Ledger {
    latest: Contents,
    mark: u64,
    commits: u64,
    /// By commit number; a row that was not there at first has no version of number 0.
    versions: BTreeMap<Key, Vec<(u64, Option<Digest>)>>,
    /// All keys that ever were or may yet be.
    keys: BTreeSet<Key>,
    sessions: BTreeMap<u8, Session>,
    locks: BTreeMap<Key, BTreeMap<u8, Held>>,
    ranges: Vec<Range>,
}

impl Ledger {
    /// Nobody is under way, and this is there.
    #[must_use]
    pub fn new(contents: Contents) -> Self {
        let mut versions = BTreeMap::new();
        for (tree, rows) in &contents {
            for (key, value) in rows {
                versions.insert((*tree, key.clone()), vec![(0, Some(*value))]);
            }
        }
        Ledger {
            mark: mark(&contents),
            keys: versions.keys().cloned().collect(),
            versions,
            latest: contents,
            commits: 0,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            ranges: Vec::new(),
        }
    }

    /// What is committed.
    #[must_use]
    pub fn latest(&self) -> &Contents {
        &self.latest
    }

    /// A number that tells contents apart, of what is committed.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// How many commits there were.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    pub(crate) fn begin(&mut self, session: u8, isolation: Isolation, snapshot: Option<u64>) {
        let begun = Session { isolation, snapshot, changes: Vec::new(), savepoints: Vec::new() };
        self.sessions.insert(session, begun);
    }

    fn session(&self, session: u8) -> Option<&Session> {
        self.sessions.get(&session)
    }

    fn session_mut(&mut self, session: u8) -> Option<&mut Session> {
        self.sessions.get_mut(&session)
    }

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
            // A snapshot that it shares is nothing to who locks what it reads.
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
    fn own(&self, session: u8, key: &Key) -> Option<Option<Digest>> {
        let changes = &self.session(session)?.changes;
        changes.iter().rev().find(|(changed, _)| changed == key).map(|(_, value)| *value)
    }

    /// Another session that has changed the row and not yet ended.
    fn writer_beside(&self, session: Option<u8>, key: &Key) -> Option<u8> {
        let mut others = self.sessions.keys().copied().filter(|s| Some(*s) != session);
        others.find(|s| self.own(*s, key).is_some())
    }

    fn committed(&self, key: &Key, at: u64) -> Option<Digest> {
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

    /// Whether any session has or may have a lock on the row.
    pub(crate) fn is_touched(&self, key: &Key) -> bool {
        self.writer_beside(None, key).is_some()
            || self.locks.contains_key(key)
            || self.ranges.iter().any(|range| range.span.has(key))
    }

    /// The keys that a cursor passes on its way to the next row, with that row's.
    pub(crate) fn span(&self, session: u8, tree: u8, from: Bound<&[u8]>, up: bool) -> Span {
        let next = self.next_row(Some(session), Sight::Latest, tree, from, up);
        let reach = next.map_or(Bound::Unbounded, |(key, _)| Bound::Included(key));
        let from = from.map(<[u8]>::to_vec);
        let (from, to) = if up { (from, reach) } else { (reach, from) };
        Span { tree, from, to }
    }

    /// What must become of a request for these keys, for sharing.
    pub(crate) fn ask_span(&mut self, session: u8, span: &Span) -> Answer {
        let mut answer = Answer { must: Ok(()), may_be_locked: false };
        let known = self.keys.iter().chain(self.locks.keys()).filter(|key| span.has(key));
        for key in known.cloned().collect::<BTreeSet<Key>>() {
            let one = self.ask(session, &key, true, false);
            answer.may_be_locked |= one.may_be_locked;
            if one.must.is_err() {
                answer.must = one.must;
            }
        }
        answer
    }

    /// These keys were locked for sharing; or, refused, some of them perhaps.
    pub(crate) fn lock_span(&mut self, session: u8, span: Span, is_sure: bool) {
        self.ranges.push(Range { session, span, is_sure });
    }

    /// Whether it has changed the row, and that is in force.
    pub(crate) fn has_changed(&self, session: u8, key: &Key) -> bool {
        self.own(session, key).is_some()
    }

    /// What must become of a request for a row, and of a change there.
    pub(crate) fn ask(&mut self, session: u8, key: &Key, shared: bool, inserts: bool) -> Answer {
        if self.session(session).is_some_and(|s| s.isolation == Isolation::Snapshot) {
            self.take_snapshot(session);
        }
        let refused = |why| Answer { must: Err(why), may_be_locked: why != Refusal::Locked };
        if self.writer_beside(Some(session), key).is_some() {
            return Answer { must: Err(Refusal::Locked), may_be_locked: false };
        }
        let others = self.locks.get(key).into_iter().flatten().filter(|(s, _)| **s != session);
        let mut may_be_locked = false;
        for (_, held) in others {
            match held {
                Held::Exclusive => return refused(Refusal::Locked),
                Held::Shared if !shared => return refused(Refusal::Locked),
                Held::Shared => {}
                Held::Maybe => may_be_locked = true,
            }
        }
        if !shared {
            for range in self.ranges.iter().filter(|r| r.session != session && r.span.has(key)) {
                // What it has written it may change again, even if somebody has come to the row.
                if range.is_sure && self.own(session, key).is_none() {
                    return refused(Refusal::Locked);
                }
                may_be_locked = true;
            }
        }
        let must = match self.session(session) {
            Some(of) if of.isolation == Isolation::Snapshot && self.is_newer(of, key) => {
                Err(Refusal::Conflict)
            }
            _ if inserts && self.see(Some(session), Sight::Latest, key).is_some() => {
                Err(Refusal::Duplicate)
            }
            _ => Ok(()),
        };
        Answer { must, may_be_locked }
    }

    /// Whether somebody else has changed the row since the session's snapshot.
    fn is_newer(&self, session: &Session, key: &Key) -> bool {
        let changed = self.versions.get(key).and_then(|versions| versions.last());
        // What it has changed itself was not newer then, and nobody could change it since.
        let own = session.changes.iter().any(|(changed, _)| changed == key);
        !own && changed.zip(session.snapshot).is_some_and(|((number, _), at)| *number > at)
    }

    /// A lock was got.
    pub(crate) fn lock(&mut self, session: u8, key: &Key, held: Held) {
        let of = self.locks.entry(key.clone()).or_default().entry(session).or_insert(held);
        *of = match (*of, held) {
            (Held::Exclusive, _) | (_, Held::Exclusive) => Held::Exclusive,
            // Shared it has for certain; what more it has stays open.
            (Held::Maybe, _) | (_, Held::Maybe) => Held::Maybe,
            _ => Held::Shared,
        };
    }

    /// A change was made.
    pub(crate) fn change(&mut self, session: u8, key: Key, value: Option<Digest>) {
        self.keys.insert(key.clone());
        if let Some(session) = self.session_mut(session) {
            session.changes.push((key, value));
        }
    }

    /// Whether it has changed anything that is in force.
    pub(crate) fn has_changes(&self, session: u8) -> bool {
        self.session(session).is_some_and(|s| !s.changes.is_empty())
    }

    pub(crate) fn savepoint(&mut self, session: u8) {
        if let Some(session) = self.session_mut(session) {
            session.savepoints.push(session.changes.len());
        }
    }

    /// Goes back to savepoint `which`, and forgets those after it.
    pub(crate) fn back(&mut self, session: u8, which: usize) {
        let Some(of) = self.session_mut(session) else { return };
        let Some(keep) = of.savepoints.get(which).copied() else { return };
        of.savepoints.truncate(which + 1);
        let gone: Vec<Key> = of.changes.drain(keep..).map(|(key, _)| key).collect();
        for key in gone {
            self.lock(session, &key, Held::Maybe);
        }
    }

    /// Its transaction goes on under another number.
    pub(crate) fn renumber(&mut self, session: u8, number: u8) {
        if let Some(of) = self.sessions.remove(&session) {
            self.sessions.insert(number, of);
        }
        for held in self.locks.values_mut() {
            if let Some(lock) = held.remove(&session) {
                held.insert(number, lock);
            }
        }
        for range in self.ranges.iter_mut().filter(|range| range.session == session) {
            range.session = number;
        }
    }

    /// What it has changed, in order.
    pub(crate) fn changes(&self, session: u8) -> Vec<(Key, Option<Digest>)> {
        self.session(session).map(|s| s.changes.clone()).unwrap_or_default()
    }

    /// Locks that are not in rows are gone.
    pub(crate) fn forget_locks(&mut self) {
        self.locks.clear();
        self.ranges.clear();
    }

    /// It has committed.
    pub(crate) fn commit(&mut self, session: u8) {
        if let Some(of) = self.end(session)
            && !of.changes.is_empty()
        {
            self.write(of.changes);
        }
    }

    /// It has ended; what it has changed is gone.
    pub(crate) fn rollback(&mut self, session: u8) {
        drop(self.end(session));
    }

    fn end(&mut self, session: u8) -> Option<Session> {
        self.locks.retain(|_, held| {
            held.remove(&session);
            !held.is_empty()
        });
        self.ranges.retain(|range| range.session != session);
        self.sessions.remove(&session)
    }

    /// A commit of these changes.
    pub(crate) fn write(&mut self, changes: Vec<(Key, Option<Digest>)>) {
        self.commits += 1;
        for (key, value) in changes {
            self.keys.insert(key.clone());
            let versions = self.versions.entry(key.clone()).or_default();
            match versions.last_mut() {
                Some((number, last)) if *number == self.commits => *last = value,
                _ => versions.push((self.commits, value)),
            }
            let rows = self.latest.entry(key.0).or_default();
            let was = match value {
                Some(value) => rows.insert(key.1.clone(), value),
                None => rows.remove(&key.1),
            };
            if let Some(value) = value {
                self.mark = self.mark.wrapping_add(mix(key.0, &key.1, Some(value)));
            }
            if let Some(was) = was {
                self.mark = self.mark.wrapping_sub(mix(key.0, &key.1, Some(was)));
            }
        }
    }
}
