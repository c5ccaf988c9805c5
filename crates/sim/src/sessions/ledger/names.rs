//! Trees and their names, which are rows too.
use std::collections::BTreeMap;

use super::key::{Key, NAMES, name_key, tree_of};
use super::see::Sight;
use super::state::{Ledger, Session};
use crate::model::Digest;

/// Trees that are ever made. One that is dropped does not leave its number to another.
const TREES_MAX: u8 = 250;

impl Ledger {
    /// The committed names, and the numbers of their trees.
    pub(super) fn names(&self) -> impl Iterator<Item = (u8, u8)> {
        let names = self.latest.get(&NAMES).into_iter().flatten();
        names.filter_map(|(name, row)| Some((*name.first()?, tree_of(*row))))
    }

    /// The names after so many commits, and the numbers of their trees.
    pub(crate) fn names_at(&self, commits: u64) -> BTreeMap<u8, u8> {
        let row = |name: u8| self.committed(&name_key(name), commits);
        (0..NAMES).filter_map(|name| Some((name, tree_of(row(name)?)))).collect()
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

    /// Whether a tree is gone: every session that would write there gets that error.
    pub(crate) fn is_gone(&self, tree: u8) -> bool {
        self.gone.contains_key(&tree)
    }

    /// Whether one that reads with this sight may find that the tree is gone.
    pub(crate) fn may_be_gone(&self, tree: u8, sight: Sight) -> bool {
        match (self.gone.get(&tree), sight) {
            (None, _) => false,
            (Some(None), _) | (_, Sight::Dirty | Sight::Latest) => true,
            (Some(Some(dropped)), Sight::At(at)) => at >= *dropped,
        }
    }

    /// A change that is in force no more: a tree that only it had made is gone.
    pub(super) fn was_rolled_back(&mut self, key: &Key, value: Option<Digest>) {
        let Some(tree) = value.map(tree_of).filter(|_| key.0 == NAMES) else { return };
        let names = |of: &Session| {
            let mut named = of.changes.iter().filter(|((of, _), _)| *of == NAMES);
            named.any(|(_, row)| row.map(tree_of) == Some(tree))
        };
        if !self.names().any(|(_, other)| other == tree) && !self.sessions.values().any(names) {
            self.gone.entry(tree).or_insert(None);
        }
    }
}
