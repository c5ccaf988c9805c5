//! What a committed transaction leaves to be done: freeing the chains it replaced, removing the
//! rows it marked, freeing the pages of a tree it dropped. The commit's group names it all, so a
//! crash in between only delays it. How it is done is in `background/cleanup.rs`.
use std::collections::{BTreeMap, HashMap};

use weir_base::{PageNo, TreeId};
use weir_change::{Cleanup, Stored};

/// What the log needs to name a piece of stored notes, in bytes, at most.
pub(crate) const NOTE_BYTES: u64 = 32;

/// One thing left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Free an overflow chain that no row names.
    Chain {
        /// Its first page that is not free yet.
        first: PageNo,
        /// Its number.
        mark: u64,
        /// The tree whose row named it.
        tree: TreeId,
    },
    /// Remove a row that the transaction marked.
    Row {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
    },
    /// Free all pages of a dropped tree.
    Tree {
        /// Its number.
        tree: TreeId,
        /// Its root.
        root: PageNo,
    },
    /// Do what these notes say, and free their pages.
    Stored(Stored),
}

impl Todo {
    /// From the record that recovery finds.
    #[must_use]
    pub fn from_cleanup(cleanup: &Cleanup<'_>) -> Self {
        match *cleanup {
            Cleanup::Chain { first, mark } => Todo::Chain { first, mark, tree: TreeId(0) },
            Cleanup::Row { tree, key } => Todo::Row { tree, key: key.to_vec() },
            Cleanup::Tree { tree, root } => Todo::Tree { tree, root },
            Cleanup::Stored(stored) => Todo::Stored(stored),
        }
    }

    /// The number of the chain that is freed with it.
    fn mark(&self) -> Option<u64> {
        match self {
            Todo::Chain { mark, .. } => Some(*mark),
            Todo::Stored(piece) => Some(piece.mark),
            Todo::Row { .. } | Todo::Tree { .. } => None,
        }
    }

    /// About how many bytes of log it takes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Todo::Row { key, .. } => 16 + key.len() as u64,
            Todo::Chain { .. } | Todo::Tree { .. } => 16,
            Todo::Stored(_) => NOTE_BYTES,
        }
    }

    /// As the record.
    #[must_use]
    pub fn to_cleanup(&self) -> Cleanup<'_> {
        match self {
            Todo::Chain { first, mark, .. } => Cleanup::Chain { first: *first, mark: *mark },
            Todo::Row { tree, key } => Cleanup::Row { tree: *tree, key },
            Todo::Tree { tree, root } => Cleanup::Tree { tree: *tree, root: *root },
            Todo::Stored(stored) => Cleanup::Stored(*stored),
        }
    }
}

/// What the records of a transaction say is left to do, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Todos {
    /// In the order in which they were said.
    all: BTreeMap<u64, Todo>,
    /// Where those are that free a chain, by its number: there may be many, and each is spoken of
    /// more than once.
    places: HashMap<u64, u64>,
    next: u64,
    /// How many were looked at to find one.
    #[cfg(test)]
    looked_at: u64,
}

impl Todos {
    /// Adds what a record says. A later word on the same chain says how far its freeing has come.
    pub fn add(&mut self, cleanup: &Cleanup<'_>) {
        self.push(Todo::from_cleanup(cleanup));
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What is left, in order.
    #[must_use]
    pub fn into_vec(self) -> Vec<Todo> {
        self.all.into_values().collect()
    }

    fn push(&mut self, todo: Todo) {
        if let Some(mark) = todo.mark() {
            let known = self.places.get(&mark).copied();
            #[cfg(test)]
            {
                self.looked_at += u64::from(known.is_some());
            }
            if known.is_some() && matches!(todo, Todo::Stored(_)) {
                // Said once more; or it is being freed already, since all that it says is done.
                return;
            }
            known.and_then(|place| self.all.remove(&place));
            if matches!(todo, Todo::Chain { first: PageNo::NONE, .. }) {
                self.places.remove(&mark);
                return;
            }
            self.places.insert(mark, self.next);
        }
        self.all.insert(self.next, todo);
        self.next += 1;
    }
}

impl From<Vec<Todo>> for Todos {
    fn from(all: Vec<Todo>) -> Self {
        let mut todos = Todos::default();
        all.into_iter().for_each(|todo| todos.push(todo));
        todos
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chain(mark: u64, first: PageNo) -> Cleanup<'static> {
        Cleanup::Chain { first, mark }
    }

    /// Each chain is named, freed a part, and freed.
    #[test]
    fn a_chain_is_found_among_many_without_a_look_at_the_others() {
        let count = 20_000;
        let mut todos = Todos::default();
        for mark in 0..count {
            todos.add(&chain(mark, PageNo(1)));
        }
        for mark in 0..count {
            todos.add(&chain(mark, PageNo(2)));
            todos.add(&chain(mark, PageNo::NONE));
        }
        assert!(todos.is_empty());
        assert!(todos.looked_at <= 3 * count, "{} were looked at", todos.looked_at);
    }

    fn any_word() -> impl Strategy<Value = Cleanup<'static>> {
        let first = prop_oneof![Just(PageNo(1)), Just(PageNo(2)), Just(PageNo::NONE)];
        let stored = |mark| {
            let first = PageNo(3);
            Cleanup::Stored(Stored { first, mark, len: 9, entries: 0, todos: 1, last_seq: 0 })
        };
        prop_oneof![
            (0..4u64, first).prop_map(|(mark, first)| chain(mark, first)),
            (0..4u64).prop_map(stored),
            Just(Cleanup::Row { tree: TreeId(7), key: b"k" }),
            Just(Cleanup::Tree { tree: TreeId(7), root: PageNo(8) }),
        ]
    }

    proptest! {
        /// As a list that is looked through at each word.
        #[test]
        fn the_last_word_on_a_chain_counts(words in prop::collection::vec(any_word(), 0..30)) {
            let (mut todos, mut list) = (Todos::default(), Vec::<Todo>::new());
            for word in &words {
                todos.add(word);
                let todo = Todo::from_cleanup(word);
                let is_same = |known: &Todo| known.mark().is_some() && known.mark() == todo.mark();
                if matches!(todo, Todo::Stored(_)) && list.iter().any(is_same) {
                    continue;
                }
                list.retain(|known| !is_same(known));
                if !matches!(todo, Todo::Chain { first: PageNo::NONE, .. }) {
                    list.push(todo);
                }
                prop_assert_eq!(todos.is_empty(), list.is_empty());
            }
            prop_assert_eq!(Todos::from(list.clone()).into_vec(), list.clone());
            prop_assert_eq!(todos.into_vec(), list);
        }
    }
}
