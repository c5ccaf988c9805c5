//! Reading the leaves that a cursor comes to next, when it meets one after the other that is not in
//! memory: from the node above them, many at once. How many is a decision without reading
//! ([`ReadAhead::come_to`]); nothing is held over the reads, and what cannot be read is found by
//! the cursor that comes to it.
//!
//! Where batches are large the ones behind are handed over to other threads as soon as the cursor
//! comes to the first leaf of this one, so that they are read while the cursor looks at these:
//! three, so that the disk reads one while another is unpacked.
use std::collections::VecDeque;
use std::sync::Arc;

use weir_base::PageNo;
use weir_page::{Node, RawPage};
use weir_pool::AheadBatch;

use crate::cursor::Cursor;
use crate::descend::{Arrived, DescentTarget, Fences};
use crate::error::TreeError;
use crate::tree::Tree;

/// Leaves of the first batch.
const LEAVES_FIRST: usize = 4;
/// Leaves of a batch at most.
pub(crate) const LEAVES_MAX: usize = 64;
/// Leaves of a batch, at least, that another thread reads: a wake-up costs what a few rows do.
const LEAVES_HANDED_OVER: usize = 16;
/// Batches that other threads read for a cursor at a time, at most.
const HANDED_OVER_MAX: usize = 3;
/// Absent leaves met one after another that begin it.
const ABSENT_FIRST: u32 = 2;
/// And that begin it again where leaves did not stay until they were used.
const ABSENT_AGAIN: u32 = 32;
/// Nodes whose leaves a batch has, at most.
const NODES_MAX: usize = 2;
/// Looks at a node that is being changed, before the cursor does without.
const LOOKS_MAX: u32 = 4;

/// Which way a cursor goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Up,
    Down,
}

/// How far the leaves that a cursor comes to next have been read.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    way: Way,
    /// Absent leaves met one after another.
    absent: u32,
    /// Leaves of the last batch; 0: none is read ahead.
    batch: usize,
    /// Leaves of it that the cursor has not come to.
    left: usize,
    /// Leaves that stay in memory until the cursor comes to them, as far as it knows.
    stay: usize,
    /// Leaves behind the present one that hold the rows which are still asked for, if their number
    /// is known.
    expected: Option<usize>,
    /// The batches behind this one, which other threads read, in the order of the walk.
    coming: VecDeque<Arc<AheadBatch>>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        ReadAhead {
            way: Way::Up,
            absent: 0,
            batch: 0,
            left: 0,
            stay: LEAVES_MAX,
            expected: None,
            coming: VecDeque::new(),
        }
    }
}

impl ReadAhead {
    /// The cursor goes to another place.
    pub(crate) fn begin_anew(&mut self) {
        let (stay, expected) = (self.stay, self.expected);
        *self = ReadAhead { stay, expected, ..ReadAhead::default() };
    }

    /// Decides how many leaves are to be read when the cursor comes to the next one: that and those
    /// behind it, at most `most`. 0: the cursor goes on without.
    pub(crate) fn come_to(&mut self, way: Way, is_absent: bool, most: usize) -> usize {
        if self.way != way {
            self.begin_anew();
            self.way = way;
        }
        let is_of_batch = self.left > 0;
        self.left = self.left.saturating_sub(1);
        match (is_of_batch, is_absent) {
            (true, false) => {
                if self.left == 0 {
                    self.stay = (self.stay + 1).min(LEAVES_MAX);
                }
                return 0;
            }
            (true, true) => {
                // It left memory before it was used: there is no room for so many.
                (self.left, self.absent) = (0, 0);
                self.stay = (self.batch / 2).max(1);
                self.batch = 0;
                return 0;
            }
            (false, false) => {
                self.absent = 0;
                self.shrink();
                return 0;
            }
            (false, true) => {}
        }
        self.absent = self.absent.saturating_add(1);
        if self.absent >= ABSENT_AGAIN {
            self.stay = self.stay.max(2);
        }
        if self.absent < ABSENT_FIRST && self.expected.is_none() {
            return 0;
        }
        let wanted = self.wanted(most);
        if wanted < 2 {
            return 0;
        }
        self.batch = wanted;
        wanted
    }

    /// Leaves of the next batch: of a walk whose rows are counted all that is left of it, else
    /// twice the last batch.
    fn wanted(&self, most: usize) -> usize {
        let wanted = match self.expected {
            Some(leaves) => leaves.min(LEAVES_MAX),
            None => (self.batch * 2).clamp(LEAVES_FIRST, LEAVES_MAX),
        };
        wanted.min(self.stay).min(most)
    }

    /// The batch that another thread reads, if this one is at its end and `next` is its first leaf;
    /// `None`: the cursor goes over the end of the node above, and does not know what comes next.
    fn take_coming(&mut self, way: Way, next: Option<PageNo>) -> Option<Arc<AheadBatch>> {
        if self.left > 0 || self.way != way {
            return None;
        }
        let batch = self.coming.pop_front()?;
        if next.is_none_or(|next| batch.pages().first() == Some(&next)) {
            return Some(batch);
        }
        // The cursor is not where they begin.
        self.coming.clear();
        None
    }

    /// Of a batch of `leaves` so many have come: the others were in memory already.
    fn have_come(&mut self, leaves: usize, come: usize) {
        self.left = leaves.saturating_sub(1);
        if come * 2 < leaves {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        self.batch /= 2;
        if self.batch < LEAVES_FIRST {
            self.batch = 0;
        }
    }
}

impl Cursor {
    /// Says that only rows from `from` on and below `to` (`None`: to the end) will be asked for.
    /// The cursor shows others nevertheless; leaves that have none of these are not read before it
    /// comes to them.
    pub fn expect_range(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.expected_from.clear();
        self.expected_from.extend_from_slice(from);
        match to {
            Some(to) => {
                let expected = self.expected_to.get_or_insert_default();
                expected.clear();
                expected.extend_from_slice(to);
            }
            None => self.expected_to = None,
        }
    }

    /// Says that about so many rows will be asked for after each seek, in the direction of the
    /// moves that follow it; 0: that is not known, as at first. The cursor shows more nevertheless;
    /// but what is not in memory of the leaves that hold so many is read at once when the cursor
    /// leaves its first leaf, and nothing behind them.
    pub fn expect_rows(&mut self, rows: u64) {
        self.rows_expected = rows;
        self.rows_left = rows;
    }

    /// Leaves behind this one, which the cursor leaves, that hold the rows still expected: as many
    /// rows a leaf as this one has. `None`: nothing is known, or more was asked for.
    fn leaves_expected(&mut self, way: Way) -> Option<usize> {
        let passed = match way {
            Way::Up => self.rows.end.saturating_sub(self.entered),
            Way::Down => self.entered.saturating_sub(self.rows.start),
        };
        self.rows_left = self.rows_left.saturating_sub(passed as u64);
        let leaves = self.rows_left.div_ceil(self.rows.len().max(1) as u64);
        (leaves > 0).then(|| usize::try_from(leaves).unwrap_or(usize::MAX))
    }

    /// Before the cursor goes over the end of its leaf's range, at `edge`, to the leaf behind it.
    pub(crate) fn read_ahead(&mut self, way: Way, edge: &[u8]) {
        self.ahead.expected = self.leaves_expected(way);
        let next = match way {
            Way::Up => self.fences.behind,
            Way::Down => self.fences.before,
        };
        let pool = &self.tree.env.pool;
        let max = pool.ahead_max();
        // This batch, and those behind it that other threads read.
        let behind = (max / LEAVES_HANDED_OVER).saturating_sub(1).min(HANDED_OVER_MAX);
        let most = max / (1 + behind);
        if let Some(batch) = self.ahead.take_coming(way, next) {
            let read = pool.await_ahead(&batch);
            self.ahead.batch = batch.pages().len();
            self.ahead.have_come(read.looked_at, read.arrived as usize);
            // This leaf is one of them, too.
            self.ahead.left = read.looked_at;
            self.hand_over(way, edge, read.looked_at, most, behind);
        }
        let is_absent = match next {
            Some(next) => !self.tree.env.pool.is_resident(next),
            // Beyond the last child of a node there is no telling: what comes next is of the batch,
            // or in memory or not as what came last.
            None => self.ahead.left == 0 && self.ahead.absent > 0,
        };
        let leaves = self.ahead.come_to(way, is_absent, most);
        if leaves < 2 {
            return;
        }
        let pages = self.next_leaves(way, edge, leaves);
        if pages.len() < 2 {
            return;
        }
        self.ahead.coming.clear();
        let read = self.tree.env.pool.read_ahead(&pages);
        self.ahead.have_come(read.looked_at, read.arrived as usize);
        self.hand_over(way, edge, read.looked_at, most, behind);
    }

    /// Has other threads read what comes behind the next `leaves`, which are in memory, and behind
    /// what they read already: up to `batches` of them.
    fn hand_over(&mut self, way: Way, edge: &[u8], leaves: usize, most: usize, batches: usize) {
        let mut passed = leaves;
        passed += self.ahead.coming.iter().map(|batch| batch.pages().len()).sum::<usize>();
        while leaves > 0 && self.ahead.coming.len() < batches {
            let mut wanted = self.ahead.wanted(most);
            if let Some(expected) = self.ahead.expected {
                wanted = wanted.min(expected.saturating_sub(passed));
            }
            if wanted < LEAVES_HANDED_OVER {
                return;
            }
            let mut pages = self.next_leaves(way, edge, passed + wanted);
            pages.drain(..passed.min(pages.len()));
            if pages.len() < 2 {
                return;
            }
            passed += pages.len();
            let Some(batch) = self.tree.env.pool.hand_over_ahead(pages) else { return };
            self.ahead.coming.push_back(batch);
        }
    }

    fn next_leaves(&self, way: Way, edge: &[u8], most: usize) -> Vec<PageNo> {
        let expected = Expected { from: &self.expected_from, to: self.expected_to.as_deref() };
        self.tree.next_leaves(way, edge, most, &expected)
    }
}

/// The rows that will be asked for.
struct Expected<'e> {
    from: &'e [u8],
    to: Option<&'e [u8]>,
}

impl Expected<'_> {
    /// Whether it is known where they end.
    fn ends(&self, way: Way) -> bool {
        match way {
            Way::Up => self.to.is_some(),
            Way::Down => !self.from.is_empty(),
        }
    }

    /// Whether rows may be asked for that lie over `edge`.
    fn reaches_over(&self, way: Way, edge: &[u8]) -> bool {
        match way {
            Way::Up => self.to.is_none_or(|to| edge < to),
            Way::Down => self.from.is_empty() || edge > self.from,
        }
    }
}

impl Tree {
    /// Up to `most` leaves in the order in which a cursor comes to them that goes over `edge`, of
    /// the node there and the one behind it: those that may have rows that are expected. Whatever
    /// they are by the time they are read, they were leaves of this tree.
    fn next_leaves(
        &self,
        way: Way,
        edge: &[u8],
        most: usize,
        expected: &Expected<'_>,
    ) -> Vec<PageNo> {
        let mut pages = Vec::with_capacity(most);
        let mut from = edge.to_vec();
        for _ in 0..NODES_MAX {
            let Some(end) = self.leaves_below(way, &from, most, expected, &mut pages) else {
                break;
            };
            match end {
                // The node's end is an edge as its leaves' are.
                Some(end) if pages.len() < most && expected.reaches_over(way, &end) => from = end,
                _ => break,
            }
        }
        pages
    }

    /// Adds leaves of the node at `edge`, up to `most` in all, and returns where its range ends
    /// (`None`: at the tree's end). `None`: they cannot be had.
    fn leaves_below(
        &self,
        way: Way,
        edge: &[u8],
        most: usize,
        expected: &Expected<'_>,
        pages: &mut Vec<PageNo>,
    ) -> Option<Option<Vec<u8>>> {
        let target = match way {
            Way::Up => DescentTarget::Key(edge),
            Way::Down => DescentTarget::Before(edge),
        };
        let had = pages.len();
        let left = most - had;
        let mut range = Fences::default();
        let descend = || self.try_descend_to(target, 1, &mut range);
        let looked = self.above_leaves(descend, |node| {
            pages.truncate(had);
            let mut bound = Vec::new();
            // A child holds the keys from the one before it, of its parent, up to the one behind.
            match way {
                Way::Up => {
                    let first = node.child_index(edge);
                    for index in first..=node.count().min(first + left - 1) {
                        if index > first && expected.ends(way) {
                            bound.clear();
                            node.key_into(index - 1, &mut bound);
                            if !expected.reaches_over(way, &bound) {
                                break;
                            }
                        }
                        pages.push(node.child(index));
                    }
                }
                Way::Down => {
                    let (Ok(first) | Err(first)) = node.search(edge);
                    for index in (first.saturating_sub(left - 1)..=first).rev() {
                        if index < first && expected.ends(way) {
                            bound.clear();
                            node.key_into(index, &mut bound);
                            if !expected.reaches_over(way, &bound) {
                                break;
                            }
                        }
                        pages.push(node.child(index));
                    }
                }
            }
        });
        looked.map(|()| match way {
            Way::Up => range.high,
            Way::Down => range.low,
        })
    }

    /// What `look` sees in the node above a leaf, to which `descend` walks. `None`: the root is a
    /// leaf, or the nodes there are being changed, or cannot be read.
    pub(crate) fn above_leaves<'t, T>(
        &'t self,
        mut descend: impl FnMut() -> Result<Option<Arrived<'t>>, TreeError>,
        mut look: impl FnMut(Node<RawPage>) -> T,
    ) -> Option<T> {
        for _ in 0..LOOKS_MAX {
            let Some(arrived) = descend().ok()? else { continue };
            let node = arrived.node.node();
            if node.level() != 1 {
                return None;
            }
            let seen = look(node);
            if arrived.node.still() {
                return Some(seen);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meets `leaves` absent leaves as they come, which all stay once they are read; the batches.
    fn meet(ahead: &mut ReadAhead, leaves: usize, most: usize) -> Vec<usize> {
        let mut batches = Vec::new();
        for _ in 0..leaves {
            let batch = ahead.come_to(Way::Up, ahead.left == 0, most);
            if batch > 0 {
                ahead.have_come(batch, batch);
                batches.push(batch);
            }
        }
        batches
    }

    #[test]
    fn batches_grow_and_shrink_where_leaves_are_in_memory() {
        let mut ahead = ReadAhead::default();
        assert_eq!(meet(&mut ahead, 1 + 4 + 8 + 16 + 32 + 64 + 64, 100), [4, 8, 16, 32, 64, 64]);
        // In memory: half of it for each, and nothing below the first size.
        for batch in [32, 16, 8, 4, 0, 0] {
            assert_eq!(ahead.come_to(Way::Up, false, 100), 0);
            assert_eq!(ahead.batch, batch);
        }
        assert_eq!(meet(&mut ahead, 1, 100), [0; 0], "as if it began");
        assert_eq!(meet(&mut ahead, 4 + 8, 100), [4, 8]);
        // A batch most of which is there already is half a batch.
        assert_eq!(ahead.come_to(Way::Up, true, 100), 16);
        ahead.have_come(16, 3);
        assert_eq!((ahead.batch, ahead.left), (8, 15));
        ahead.left = 0;
        assert_eq!(meet(&mut ahead, 1, 100), [16]);
    }

    #[test]
    fn a_tiny_pool_and_another_way_bound_it() {
        for (most, batches) in [(0, vec![]), (1, vec![]), (2, vec![2; 4]), (6, vec![4, 6])] {
            assert_eq!(meet(&mut ReadAhead::default(), 8, most), batches);
        }
        let mut ahead = ReadAhead::default();
        meet(&mut ahead, 40, 64);
        assert_eq!(ahead.come_to(Way::Down, true, 64), 0, "the other way it begins anew");
        assert_eq!(ahead.come_to(Way::Down, true, 64), 4);
    }

    #[test]
    fn leaves_that_do_not_stay_are_not_read_until_many_have_been_absent() {
        let mut ahead = ReadAhead::default();
        assert_eq!(meet(&mut ahead, 1 + 4 + 1, 64), [4, 8]);
        // The second of eight has left memory.
        assert_eq!((ahead.come_to(Way::Up, true, 64), ahead.stay), (0, 4));
        assert_eq!(meet(&mut ahead, 1 + 4 + 1, 64), [4, 5]);
        assert_eq!((ahead.come_to(Way::Up, true, 64), ahead.stay), (0, 2));
        assert_eq!(meet(&mut ahead, 2, 64), [2]);
        assert_eq!((ahead.come_to(Way::Up, true, 64), ahead.stay), (0, 1));
        assert_eq!(meet(&mut ahead, 31, 64), [0; 0]);
        assert_eq!(meet(&mut ahead, 2 + 3 + 4, 64), [2, 3, 4]);
    }
}
