//! What every session must see, and which changes must be refused: all versions of all rows, in the
//! order of the commits, and what each session has done so far.
use std::collections::{BTreeMap, BTreeSet};

use weir::Isolation;

use crate::model::{Contents, Digest, mix};

mod expected;
mod key;
mod locks;
mod names;
mod see;
mod state;

pub use expected::Refusal;
pub(crate) use expected::{Answer, ExpectedLock, Locks};
use key::tree_of;
pub(crate) use key::{Key, NAMES, name_key, name_row};
pub(crate) use see::Sight;
pub use state::Ledger;
use state::Session;

impl Ledger {
    /// No session is under way, and this is there, by name. `ids` are the trees' own numbers, if
    /// they have any yet, and `next_tree` is that of the next one made.
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

    /// A number that tells contents apart, of what is committed.
    #[must_use]
    pub fn mark(&self) -> u64 {
        let sum = |tree| self.sums.get(&tree).copied().unwrap_or(0);
        self.names().fold(0, |all, (name, tree)| all.wrapping_add(mark_of(name, sum(tree))))
    }

    /// How many commits there were.
    pub(crate) fn commits(&self) -> u64 {
        self.commits
    }

    pub(crate) fn begin(&mut self, session: u8, isolation: Isolation, snapshot: Option<u64>) {
        let begun = Session { isolation, snapshot, changes: Vec::new(), savepoints: Vec::new() };
        self.sessions.insert(session, begun);
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
            self.lock(session, &key, ExpectedLock::Maybe);
            self.was_rolled_back(&key, value);
        }
    }

    /// Its transaction goes on under another number.
    pub(crate) fn renumber(&mut self, session: u8, number: u8) {
        if let Some(of) = self.sessions.remove(&session) {
            self.sessions.insert(number, of);
        }
        self.renumber_locks(session, number);
    }

    /// What it has changed, in order.
    pub(crate) fn changes(&self, session: u8) -> Vec<(Key, Option<Digest>)> {
        self.session(session).map(|s| s.changes.clone()).unwrap_or_default()
    }

    /// The database was opened again: what is under way now was found prepared.
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
        of.changes.iter().for_each(|(key, value)| self.was_rolled_back(key, *value));
    }

    fn end(&mut self, session: u8) -> Option<Session> {
        self.unlock(session);
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
