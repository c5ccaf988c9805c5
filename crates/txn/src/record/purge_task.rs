//! What a committed transaction leaves to be done: freeing the chains it replaced, removing the
//! rows it marked, freeing the pages of a tree it dropped. The commit's group names it all, so a
//! crash in between only delays it. How it is done is in `background/purge_tasks.rs`.
use std::collections::{BTreeMap, HashMap};

use weir_base::{PageNo, TreeId};
use weir_change::{Purge, Stored};

/// What the log needs to name a segment of stored notes, in bytes, at most.
pub(crate) const NOTE_BYTES: u64 = 32;

/// One thing left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTask {
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

impl PurgeTask {
    /// From the record that recovery finds.
    #[must_use]
    pub fn from_purge(purge: &Purge<'_>) -> Self {
        match *purge {
            Purge::Chain { first, mark } => PurgeTask::Chain { first, mark, tree: TreeId(0) },
            Purge::Row { tree, key } => PurgeTask::Row { tree, key: key.to_vec() },
            Purge::Tree { tree, root } => PurgeTask::Tree { tree, root },
            Purge::Stored(stored) => PurgeTask::Stored(stored),
        }
    }

    /// The number of the chain that is freed with it.
    fn mark(&self) -> Option<u64> {
        match self {
            PurgeTask::Chain { mark, .. } => Some(*mark),
            PurgeTask::Stored(segment) => Some(segment.mark),
            PurgeTask::Row { .. } | PurgeTask::Tree { .. } => None,
        }
    }

    /// About how many bytes of log it takes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            PurgeTask::Row { key, .. } => 16 + key.len() as u64,
            PurgeTask::Chain { .. } | PurgeTask::Tree { .. } => 16,
            PurgeTask::Stored(_) => NOTE_BYTES,
        }
    }

    /// As the record.
    #[must_use]
    pub fn to_purge(&self) -> Purge<'_> {
        match self {
            PurgeTask::Chain { first, mark, .. } => Purge::Chain { first: *first, mark: *mark },
            PurgeTask::Row { tree, key } => Purge::Row { tree: *tree, key },
            PurgeTask::Tree { tree, root } => Purge::Tree { tree: *tree, root: *root },
            PurgeTask::Stored(stored) => Purge::Stored(*stored),
        }
    }
}

/// What the records of a transaction say is left to do, one after the other.
#[derive(Clone, Debug, Default)]
pub struct PurgeTasks {
    /// In the order in which they were said.
    all: BTreeMap<u64, PurgeTask>,
    /// Where those are that free a chain, by its number: there may be many, and each is spoken of
    /// more than once.
    places: HashMap<u64, u64>,
    next: u64,
    /// How many were looked at to find one.
    #[cfg(test)]
    looked_at: u64,
}

impl PurgeTasks {
    /// Adds what a record says. A later word on the same chain says how far its freeing has come.
    pub fn add(&mut self, purge: &Purge<'_>) {
        self.push(PurgeTask::from_purge(purge));
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What is left, in order.
    #[must_use]
    pub fn into_vec(self) -> Vec<PurgeTask> {
        self.all.into_values().collect()
    }

    fn push(&mut self, task: PurgeTask) {
        if let Some(mark) = task.mark() {
            let known = self.places.get(&mark).copied();
            #[cfg(test)]
            {
                self.looked_at += u64::from(known.is_some());
            }
            if known.is_some() && matches!(task, PurgeTask::Stored(_)) {
                // Said once more; or it is being freed already, since all that it says is done.
                return;
            }
            known.and_then(|place| self.all.remove(&place));
            if matches!(task, PurgeTask::Chain { first: PageNo::NONE, .. }) {
                self.places.remove(&mark);
                return;
            }
            self.places.insert(mark, self.next);
        }
        self.all.insert(self.next, task);
        self.next += 1;
    }
}

impl From<Vec<PurgeTask>> for PurgeTasks {
    fn from(all: Vec<PurgeTask>) -> Self {
        let mut tasks = PurgeTasks::default();
        all.into_iter().for_each(|task| tasks.push(task));
        tasks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chain(mark: u64, first: PageNo) -> Purge<'static> {
        Purge::Chain { first, mark }
    }

    /// Each chain is named, freed a part, and freed.
    #[test]
    fn a_chain_is_found_among_many_without_a_look_at_the_others() {
        let count = 20_000;
        let mut tasks = PurgeTasks::default();
        for mark in 0..count {
            tasks.add(&chain(mark, PageNo(1)));
        }
        for mark in 0..count {
            tasks.add(&chain(mark, PageNo(2)));
            tasks.add(&chain(mark, PageNo::NONE));
        }
        assert!(tasks.is_empty());
        assert!(tasks.looked_at <= 3 * count, "{} were looked at", tasks.looked_at);
    }

    fn any_word() -> impl Strategy<Value = Purge<'static>> {
        let first = prop_oneof![Just(PageNo(1)), Just(PageNo(2)), Just(PageNo::NONE)];
        let stored = |mark| {
            let first = PageNo(3);
            Purge::Stored(Stored { first, mark, len: 9, entries: 0, tasks: 1, last_seq: 0 })
        };
        prop_oneof![
            (0..4u64, first).prop_map(|(mark, first)| chain(mark, first)),
            (0..4u64).prop_map(stored),
            Just(Purge::Row { tree: TreeId(7), key: b"k" }),
            Just(Purge::Tree { tree: TreeId(7), root: PageNo(8) }),
        ]
    }

    proptest! {
        /// As a list that is looked through at each word.
        #[test]
        fn the_last_word_on_a_chain_counts(words in prop::collection::vec(any_word(), 0..30)) {
            let (mut tasks, mut list) = (PurgeTasks::default(), Vec::<PurgeTask>::new());
            for word in &words {
                tasks.add(word);
                let task = PurgeTask::from_purge(word);
                let mark = task.mark();
                let is_same = |known: &PurgeTask| mark.is_some() && known.mark() == mark;
                if matches!(task, PurgeTask::Stored(_)) && list.iter().any(is_same) {
                    continue;
                }
                list.retain(|known| !is_same(known));
                if !matches!(task, PurgeTask::Chain { first: PageNo::NONE, .. }) {
                    list.push(task);
                }
                prop_assert_eq!(tasks.is_empty(), list.is_empty());
            }
            prop_assert_eq!(PurgeTasks::from(list.clone()).into_vec(), list.clone());
            prop_assert_eq!(tasks.into_vec(), list);
        }
    }
}
