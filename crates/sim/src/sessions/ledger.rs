//! What every session must see, and which changes must be refused: all versions of all rows, in the
//! order of the commits, and what each session has done so far.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use weir::Isolation;

use crate::model::{Contents, Digest, mix};

/// A row's tree, by its own number, and its key.
pub(crate) type Key = (u8, Vec<u8>);

/// The tree of names: a row for each tree that there is, with the tree's own number.
pub(crate) const NAMES: u8 = u8::MAX;

/// Trees that are ever made. One that is dropped leaves its number to nobody.
const TREES_MAX: u8 = 250;

/// The row of a name.
pub(crate) fn name_key(name: u8) -> Key {
    (NAMES, vec![name])
}

/// What the row of a name says.
pub(crate) fn name_row(tree: u8) -> Digest {
    (u32::from(tree), 0)
}

fn tree_of(row: Digest) -> u8 {
    row.0 as u8
}

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

/// What one has locked besides the rows that it has changed.
#[derive(Clone, Default)]
pub(crate) struct Locks {
    keys: Vec<(Key, Held)>,
    ranges: Vec<Range>,
}

/// Keys that are locked, whether or not rows are there.
#[derive(Clone)]
struct Range {
    session: u8,
    span: Span,
    /// Not only a part of it, or nothing.
    is_sure: bool,
    /// Nobody else may share it.
    alone: bool,
}

/// All that is known.
pub struct Ledger {
    /// By the trees' own numbers, names included.
    latest: Contents,
    /// Of each tree, what its rows add up to.
    sums: BTreeMap<u8, u64>,
    commits: u64,
    next_tree: u8,
    /// Trees that are there no more, and the commit that dropped them; `None`: nobody else ever saw
    /// them.
    gone: BTreeMap<u8, Option<u64>>,
    /// Who was found prepared: what they use is not known to the letter.
    recovered: BTreeSet<u8>,
    /// By commit number; a row that was not there at first has no version of number 0.
    versions: BTreeMap<Key, Vec<(u64, Option<Digest>)>>,
    /// All keys that ever were or may yet be.
    keys: BTreeSet<Key>,
    sessions: BTreeMap<u8, Session>,
    locks: BTreeMap<Key, BTreeMap<u8, Held>>,
    ranges: Vec<Range>,
}

impl Ledger {
    /// Nobody is under way, and this is there, by name. `ids` are the trees' own numbers, if they
    /// have any yet, and `next_tree` is that of the next one made.
    #[must_use]
    pub fn new(contents: Contents, ids: &BTreeMap<u8, u8>, next_tree: u8) -> Self {
        let (mut versions, mut sums, mut latest) =
            (BTreeMap::new(), BTreeMap::new(), Contents::new());
        for (name, rows) in contents {
            let tree = ids.get(&name).copied().unwrap_or(name);
            for (key, value) in &rows {
                versions.insert((tree, key.clone()), vec![(0, Some(*value))]);
                add(&mut sums, tree, mix(0, key, Some(*value)));
            }
            versions.insert(name_key(name), vec![(0, Some(name_row(tree)))]);
            latest.entry(NAMES).or_default().insert(vec![name], name_row(tree));
            latest.insert(tree, rows);
        }
        Ledger {
            sums,
            next_tree,
            gone: BTreeMap::new(),
            recovered: BTreeSet::new(),
            keys: versions.keys().cloned().collect(),
            versions,
            latest,
            commits: 0,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            ranges: Vec::new(),
        }
    }

    /// What is committed, by name.
    #[must_use]
    pub fn latest(&self) -> Contents {
        let rows = |tree| self.latest.get(&tree).cloned().unwrap_or_default();
        self.names().map(|(name, tree)| (name, rows(tree))).collect()
    }

    /// The committed names, and the numbers of their trees.
    fn names(&self) -> impl Iterator<Item = (u8, u8)> {
        let names = self.latest.get(&NAMES).into_iter().flatten();
        names.filter_map(|(name, row)| Some((*name.first()?, tree_of(*row))))
    }

    /// The names after so many commits, and the numbers of their trees.
    pub(crate) fn names_at(&self, commits: u64) -> BTreeMap<u8, u8> {
        let row = |name: u8| self.committed(&name_key(name), commits);
        (0..NAMES).filter_map(|name| Some((name, tree_of(row(name)?)))).collect()
    }

    /// A number that tells contents apart, of what is committed.
    #[must_use]
    pub fn mark(&self) -> u64 {
        let sum = |tree| self.sums.get(&tree).copied().unwrap_or(0);
        self.names().fold(0, |all, (name, tree)| all.wrapping_add(mark_of(name, sum(tree))))
    }

    /// The tree of this name, by its own number, as `session` would find it.
    pub(crate) fn tree(&self, session: Option<u8>, name: u8) -> Option<u8> {
        self.see(session, Sight::Latest, &name_key(name)).map(tree_of)
    }

    /// Whether another tree can be told from all before it.
    pub(crate) fn has_room(&self) -> bool {
        self.next_tree < TREES_MAX
    }

    /// A number for a tree that was made.
    pub(crate) fn new_tree(&mut self) -> u8 {
        self.next_tree += 1;
        self.next_tree - 1
    }

    /// The number of the next tree that is made.
    pub(crate) fn next_tree(&self) -> u8 {
        self.next_tree
    }

    /// Whether a tree is gone: everybody who would write there is told so.
    pub(crate) fn is_gone(&self, tree: u8) -> bool {
        self.gone.contains_key(&tree)
    }

    /// Whether one who reads with this sight may be told that the tree is gone.
    pub(crate) fn may_be_gone(&self, tree: u8, sight: Sight) -> bool {
        match (self.gone.get(&tree), sight) {
            (None, _) => false,
            (Some(None), _) | (_, Sight::Dirty | Sight::Latest) => true,
            (Some(Some(dropped)), Sight::At(at)) => at >= *dropped,
        }
    }

    /// What must become of a request to drop a tree.
    pub(crate) fn ask_tree(&self, session: u8, tree: u8) -> Answer {
        let others = || self.sessions.iter().filter(|(s, _)| **s != session);
        let changes = |of: &Session| of.changes.iter().any(|((other, _), _)| *other == tree);
        let locks = self.locks.iter().filter(|((other, _), _)| *other == tree);
        let locks = || locks.clone().flat_map(|(_, held)| held).filter(|(s, _)| **s != session);
        let ranges = || self.ranges.iter().filter(|r| r.session != session && r.span.tree == tree);
        let is_used = others().any(|(_, of)| changes(of))
            || locks().any(|(_, held)| *held != Held::Maybe)
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
        let held = |(key, held): (&Key, &BTreeMap<u8, Held>)| {
            held.get(&session).map(|held| (key.clone(), *held))
        };
        let ranges = self.ranges.iter().filter(|range| range.session == session);
        Locks {
            keys: self.locks.iter().filter_map(held).collect(),
            ranges: ranges.cloned().collect(),
        }
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
        for range in self.ranges.iter().filter(|r| r.session != session && r.span.has(key)) {
            if shared && !range.alone {
                continue;
            }
            // What it has written it may change again, even if somebody has come to the row.
            if range.is_sure && self.own(session, key).is_none() {
                return refused(Refusal::Locked);
            }
            may_be_locked = true;
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

    /// A lock was got, where `answer` was asked for before. Who has changed the row needs none
    /// while that is in force; one for later it has only if nobody else's stood in the way.
    pub(crate) fn lock_beside(&mut self, session: u8, key: &Key, held: Held, answer: Answer) {
        let is_sure = !answer.may_be_locked || !self.has_changed(session, key);
        self.lock(session, key, if is_sure { held } else { Held::Maybe });
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
        let gone: Vec<_> = of.changes.drain(keep..).collect();
        for (key, value) in gone {
            self.lock(session, &key, Held::Maybe);
            self.was_taken_back(&key, value);
        }
    }

    /// A change that is in force no more: a tree that only it had made is gone.
    fn was_taken_back(&mut self, key: &Key, value: Option<Digest>) {
        let Some(tree) = value.map(tree_of).filter(|_| key.0 == NAMES) else { return };
        let names = |of: &Session| {
            let mut named = of.changes.iter().filter(|((of, _), _)| *of == NAMES);
            named.any(|(_, row)| row.map(tree_of) == Some(tree))
        };
        if !self.names().any(|(_, other)| other == tree) && !self.sessions.values().any(names) {
            self.gone.entry(tree).or_insert(None);
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

    /// The database was opened again: who is under way now was found prepared.
    pub(crate) fn reopened(&mut self) {
        self.recovered.extend(self.sessions.keys());
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
        let Some(of) = self.end(session) else { return };
        of.changes.iter().for_each(|(key, value)| self.was_taken_back(key, *value));
    }

    fn end(&mut self, session: u8) -> Option<Session> {
        self.locks.retain(|_, held| {
            held.remove(&session);
            !held.is_empty()
        });
        self.ranges.retain(|range| range.session != session);
        self.recovered.remove(&session);
        self.sessions.remove(&session)
    }

    /// A commit of these changes.
    pub(crate) fn write(&mut self, changes: Vec<(Key, Option<Digest>)>) {
        self.commits += 1;
        let before: Vec<u8> = self.names().map(|(_, tree)| tree).collect();
        let made =
            |(key, value): &(Key, Option<Digest>)| value.map(tree_of).filter(|_| key.0 == NAMES);
        let made: Vec<u8> = changes.iter().filter_map(made).collect();
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
                add(&mut self.sums, key.0, mix(0, &key.1, Some(value)));
            }
            if let Some(was) = was {
                add(&mut self.sums, key.0, mix(0, &key.1, Some(was)).wrapping_neg());
            }
        }
        let there: BTreeSet<u8> = self.names().map(|(_, tree)| tree).collect();
        for tree in before.into_iter().chain(made).filter(|tree| !there.contains(tree)) {
            self.gone.entry(tree).or_insert(Some(self.commits));
        }
    }
}

fn add(sums: &mut BTreeMap<u8, u64>, tree: u8, more: u64) {
    let sum = sums.entry(tree).or_insert(0);
    *sum = sum.wrapping_add(more);
}

/// What a tree adds to the mark of all: its name, and the sum of its rows.
fn mark_of(name: u8, sum: u64) -> u64 {
    mix(name, &sum.to_le_bytes(), None)
}

/// A number that tells contents by name apart.
pub(crate) fn mark(contents: &Contents) -> u64 {
    contents.iter().fold(0, |all, (name, rows)| {
        let rows = rows.iter().map(|(key, value)| mix(0, key, Some(*value)));
        all.wrapping_add(mark_of(*name, rows.fold(0, u64::wrapping_add)))
    })
}
