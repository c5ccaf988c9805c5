//! What each session has locked, and what must become of a request.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use weir::Isolation;

use super::expected::{Answer, ExpectedLock, Locks, Range, Refusal, Span};
use super::key::Key;
use super::see::Sight;
use super::state::{Ledger, Session};
use crate::model::Digest;

impl Ledger {
    /// What must become of a request to drop a tree.
    pub(crate) fn ask_tree(&self, session: u8, tree: u8) -> Answer {
        let others = || self.sessions.iter().filter(|(s, _)| **s != session);
        let changes = |of: &Session| of.changes.iter().any(|((other, _), _)| *other == tree);
        let locks = self.locks.iter().filter(|((other, _), _)| *other == tree);
        let locks = || locks.clone().flat_map(|(_, held)| held).filter(|(s, _)| **s != session);
        let ranges = || self.ranges.iter().filter(|r| r.session != session && r.span.tree == tree);
        let is_used = others().any(|(_, of)| changes(of))
            || locks().any(|(_, held)| *held != ExpectedLock::Maybe)
            || ranges().any(|range| range.is_sure);
        let may_be_locked =
            locks().next().is_some() || ranges().next().is_some() || !self.recovered.is_empty();
        Answer { must: if is_used { Err(Refusal::Locked) } else { Ok(()) }, may_be_locked }
    }

    /// All of a tree is locked; or, refused, perhaps.
    pub(crate) fn lock_tree(&mut self, session: u8, tree: u8, is_sure: bool) {
        let span = Span { tree, from: Bound::Unbounded, to: Bound::Unbounded };
        self.ranges.push(Range { session, span, is_sure, alone: true });
    }

    /// One that was found prepared has these changes and locks.
    pub(crate) fn recovered(
        &mut self,
        session: u8,
        changes: &[(Key, Option<Digest>)],
        locks: &Locks,
    ) {
        self.begin(session, Isolation::ReadCommitted, None);
        for (key, value) in changes {
            self.change(session, key.clone(), *value);
        }
        for (key, held) in &locks.keys {
            self.lock(session, key, *held);
        }
        self.ranges.extend(locks.ranges.iter().cloned());
        self.recovered.insert(session);
    }

    /// What it has locked.
    pub(crate) fn locks_of(&self, session: u8) -> Locks {
        let held = |(key, held): (&Key, &BTreeMap<u8, ExpectedLock>)| {
            held.get(&session).map(|held| (key.clone(), *held))
        };
        let ranges = self.ranges.iter().filter(|range| range.session == session);
        Locks {
            keys: self.locks.iter().filter_map(held).collect(),
            ranges: ranges.cloned().collect(),
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
        // A whole tree may be locked that has no row and never had one.
        let whole = |r: &&Range| r.alone && r.session != session && r.span.tree == span.tree;
        for range in self.ranges.iter().filter(whole) {
            answer.may_be_locked = true;
            if range.is_sure {
                answer.must = Err(Refusal::Locked);
            }
        }
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
        self.ranges.push(Range { session, span, is_sure, alone: false });
    }

    /// What must become of a request for a row, and of a change there.
    pub(crate) fn ask(&mut self, session: u8, key: &Key, shared: bool, inserts: bool) -> Answer {
        if self.session(session).is_some_and(|s| s.isolation == Isolation::Snapshot) {
            self.take_snapshot(session);
        }
        // A session that gets a duplicate has only looked at it.
        let duplicate = inserts && self.see(Some(session), Sight::Latest, key).is_some();
        let shared = shared || duplicate;
        let refused = |why| Answer { must: Err(why), may_be_locked: why != Refusal::Locked };
        if self.writer_beside(Some(session), key).is_some() {
            return Answer { must: Err(Refusal::Locked), may_be_locked: false };
        }
        let others = self.locks.get(key).into_iter().flatten().filter(|(s, _)| **s != session);
        let mut may_be_locked = false;
        for (_, held) in others {
            match held {
                ExpectedLock::Exclusive => return refused(Refusal::Locked),
                ExpectedLock::Shared if !shared => return refused(Refusal::Locked),
                ExpectedLock::Shared => {}
                ExpectedLock::Maybe => may_be_locked = true,
            }
        }
        for range in self.ranges.iter().filter(|r| r.session != session && r.span.has(key)) {
            if shared && !range.alone {
                continue;
            }
            // What it has written it may change again, even if another has come to the row.
            if range.is_sure && self.own(session, key).is_none() {
                return refused(Refusal::Locked);
            }
            may_be_locked = true;
        }
        let must = match self.session(session) {
            Some(of) if of.isolation == Isolation::Snapshot && self.is_newer(of, key) => {
                Err(Refusal::Conflict)
            }
            _ if duplicate => Err(Refusal::Duplicate),
            _ => Ok(()),
        };
        Answer { must, may_be_locked }
    }

    /// Whether another session has changed the row since the session's snapshot.
    fn is_newer(&self, session: &Session, key: &Key) -> bool {
        let changed = self.versions.get(key).and_then(|versions| versions.last());
        // What it has changed itself was not newer then, and no other could change it since.
        let own = session.changes.iter().any(|(changed, _)| changed == key);
        !own && changed.zip(session.snapshot).is_some_and(|((number, _), at)| *number > at)
    }

    /// A lock was got.
    pub(crate) fn lock(&mut self, session: u8, key: &Key, held: ExpectedLock) {
        let of = self.locks.entry(key.clone()).or_default().entry(session).or_insert(held);
        *of = match (*of, held) {
            (ExpectedLock::Exclusive, _) | (_, ExpectedLock::Exclusive) => ExpectedLock::Exclusive,
            // Shared it has for certain; what more it has stays open.
            (ExpectedLock::Maybe, _) | (_, ExpectedLock::Maybe) => ExpectedLock::Maybe,
            _ => ExpectedLock::Shared,
        };
    }

    /// A lock was got, where `answer` was asked for before. A session that has changed the row
    /// needs none while that is in force; one for later it has only if no other's stood in the way.
    pub(crate) fn lock_beside(
        &mut self,
        session: u8,
        key: &Key,
        held: ExpectedLock,
        answer: Answer,
    ) {
        let is_sure = !answer.may_be_locked || !self.has_changed(session, key);
        self.lock(session, key, if is_sure { held } else { ExpectedLock::Maybe });
    }

    /// The locks of one that goes on under another number.
    pub(super) fn renumber_locks(&mut self, session: u8, number: u8) {
        for held in self.locks.values_mut() {
            if let Some(lock) = held.remove(&session) {
                held.insert(number, lock);
            }
        }
        for range in self.ranges.iter_mut().filter(|range| range.session == session) {
            range.session = number;
        }
    }

    /// It has ended: it has locked nothing any more.
    pub(super) fn unlock(&mut self, session: u8) {
        self.locks.retain(|_, held| {
            held.remove(&session);
            !held.is_empty()
        });
        self.ranges.retain(|range| range.session != session);
    }
}
