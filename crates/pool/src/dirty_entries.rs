//! The entries of a bucket of the dirty list, in blocks of one size.
//!
//! A bucket grows to thousands of entries and shrinks to a few, one bucket after another, around
//! the whole ring. An array that is made smaller in place leaves a hole behind its rest which the
//! next bucket's array, as large as the first one was, does not fit into: 13 MiB of such holes in
//! a minute of loading with a pool of 72 MiB, and more with each wrap of the log. Blocks of one
//! size fit wherever one was.
use std::collections::VecDeque;

use weir_base::{Lsn, PageNo};

/// A page, and what it was first modified by.
pub(crate) type Entry = (PageNo, Lsn);

/// Entries in a block: a kibibyte of them.
const BLOCK_ENTRIES: usize = 64;

/// A queue of entries. With none in it, it has no memory of its own.
#[derive(Default)]
pub(crate) struct Entries {
    /// None of them is empty, and all but the last were full once.
    blocks: VecDeque<Vec<Entry>>,
    /// So many of the first block's are taken.
    taken: usize,
    len: usize,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push_back(&mut self, entry: Entry) {
        self.len += 1;
        if let Some(last) = self.blocks.back_mut().filter(|last| last.len() < BLOCK_ENTRIES) {
            return last.push(entry);
        }
        let mut block = Vec::with_capacity(BLOCK_ENTRIES);
        block.push(entry);
        self.blocks.push_back(block);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let first = self.blocks.front()?;
        let entry = first[self.taken];
        (self.taken, self.len) = (self.taken + 1, self.len - 1);
        if self.taken == first.len() {
            self.taken = 0;
            self.blocks.pop_front();
            if self.len == 0 {
                self.clear();
            }
        }
        Some(entry)
    }

    /// Throws away those that `keeps` says no of; the others stay in their order.
    pub(crate) fn retain(&mut self, keeps: impl Fn(Entry) -> bool) {
        let mut kept = Entries::default();
        while let Some(entry) = self.pop_front() {
            if keeps(entry) {
                kept.push_back(entry);
            }
        }
        *self = kept;
    }

    pub(crate) fn clear(&mut self) {
        *self = Entries::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        /// Keeps each page whose number this does not divide.
        Retain(u32),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3 * BLOCK_ENTRIES).prop_map(Step::Push),
            3 => (0..3 * BLOCK_ENTRIES).prop_map(Step::Pop),
            2 => (1u32..20).prop_map(Step::Retain),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn a_queue_as_any_other_of_no_more_blocks_than_it_needs(
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let (mut entries, mut model, mut next) = (Entries::default(), VecDeque::new(), 0);
            for step in steps {
                match step {
                    Step::Push(count) => for _ in 0..count {
                        let entry = (PageNo(next), Lsn(u64::from(next) * 7));
                        entries.push_back(entry);
                        model.push_back(entry);
                        next += 1;
                    },
                    Step::Pop(count) => for _ in 0..count {
                        prop_assert_eq!(entries.pop_front(), model.pop_front());
                    },
                    Step::Retain(by) => {
                        entries.retain(|(page, _)| page.0 % by != 0);
                        model.retain(|(page, _)| page.0 % by != 0);
                    }
                    Step::Clear => {
                        entries.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(entries.len(), model.len());
                prop_assert!(entries.blocks.len() <= model.len() / BLOCK_ENTRIES + 2);
                prop_assert!(!model.is_empty() || entries.blocks.capacity() == 0);
                let is_of_one_size = |block: &Vec<Entry>| block.capacity() == BLOCK_ENTRIES;
                prop_assert!(entries.blocks.iter().all(is_of_one_size));
            }
        }
    }
}
