//! Moving the chains of long values to lower pages, in a compaction (`docs/decisions/compact.md`).
//!
//! A chain that moves gets another number: a reader that has its old head finds pages that are not
//! its chain's, whatever lies there by then, and reads the row again (BTREE-5).
use weir_base::PageNo;
use weir_change::{Group, Header, Op};
use weir_page::Stamp;

use crate::compact::CompactStep;
use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::overflow::{ChainHead, Chains};
use crate::tree::Tree;
use crate::write::{LatchedRow, Row};

/// What a compaction that moves pages asks of the transactions.
pub trait Moves {
    /// Whether all transactions see what this writer wrote, and none remembers what its rows were:
    /// a chain that such a row names is named by nothing else.
    fn is_settled(&self, stamp: Stamp) -> bool;

    /// The header of a group that is a transaction by itself, whose number no other one has.
    ///
    /// # Errors
    /// [`TreeError`]: there is none.
    fn header(&self) -> Result<Header, TreeError>;
}

/// A row with a chain, as it was found.
struct LongRow {
    key: Vec<u8>,
    stamp: Stamp,
    value: Vec<u8>,
}

/// What a chain holds, and where.
struct Found {
    pages: Vec<PageNo>,
    data: Vec<u8>,
}

impl Tree {
    /// Moves the chain of the next row from `key` on in the leaf that has `key`, if that brings its
    /// pages further to the front; `key` is behind that row then. `None`: no row of this leaf has
    /// one that may be moved.
    pub(crate) fn move_next_chain(
        &self,
        key: &mut Vec<u8>,
        by: &dyn Moves,
    ) -> Result<Option<CompactStep>, TreeError> {
        let chains = self.chains();
        while let Some(row) = self.next_long_row(key)? {
            key.clear();
            key.extend_from_slice(&row.key);
            key.push(0);
            let Some((head, front)) = ChainHead::split(&row.value) else { continue };
            let count = chains.pages(head.len);
            if count > chains.group_pages() as u64 || !by.is_settled(row.stamp) {
                continue;
            }
            // Where all is dense nothing is read.
            let limit = if count == 1 { head.first } else { PageNo(self.env.space.end()) };
            if self.env.space.lowest_free() >= limit {
                continue;
            }
            // What cannot be read is an error for those that need it.
            let found = match chains.read_short(&head, count) {
                Err(e) if e.is_unreadable() => None,
                found => found?,
            };
            let Some(found) = found else { continue };
            let Some(to) = self.claim_lower(&found.pages)? else {
                return Ok(Some(CompactStep::ChainPassed(count as u32)));
            };
            let head_bytes = row.value.len() - front.len();
            let moved = self.move_chain(&row, (&head, head_bytes), &found, &to, by);
            if !matches!(moved, Ok(true)) {
                self.env.space.unclaim(&to);
            }
            let pages = count as u32;
            return Ok(Some(match moved? {
                true => CompactStep::ChainMoved(pages),
                false => CompactStep::ChainPassed(pages),
            }));
        }
        Ok(None)
    }

    fn next_long_row(&self, key: &[u8]) -> Result<Option<LongRow>, TreeError> {
        loop {
            let Some(leaf) = self.try_descend(DescentTarget::Key(key), 0)? else { continue };
            let node = leaf.node.node();
            let from = node.search(key).unwrap_or_else(|slot| slot);
            let mut slots = from..node.count();
            let long = slots.find(|&slot| node.is_overflow(slot) && !node.is_deleted(slot));
            let row = long.map(|slot| {
                let mut row =
                    LongRow { key: Vec::new(), stamp: node.stamp(slot), value: Vec::new() };
                node.key_into(slot, &mut row.key);
                node.value_into(slot, &mut row.value);
                row
            });
            if leaf.node.still() {
                return Ok(row);
            }
        }
    }

    /// Claims as many pages as these, the lowest free ones, if they lie further in front.
    fn claim_lower(&self, pages: &[PageNo]) -> Result<Option<Vec<PageNo>>, TreeError> {
        let space = &self.env.space;
        let highest = pages.iter().copied().max().unwrap_or(PageNo(0));
        let mut to = Vec::with_capacity(pages.len());
        while to.len() < pages.len() {
            match space.claim_below(highest) {
                Ok(Some(page)) => to.push(page),
                Ok(None) => break,
                Err(e) => {
                    space.unclaim(&to);
                    return Err(e.into());
                }
            }
        }
        let sum = |pages: &[PageNo]| pages.iter().map(|page| u64::from(page.0)).sum::<u64>();
        if to.len() == pages.len() && sum(&to) < sum(pages) {
            return Ok(Some(to));
        }
        space.unclaim(&to);
        Ok(None)
    }

    /// Writes the chain to the claimed pages `to`, has the row name it there, and frees its own, in
    /// one group. `false`: the row is another by now.
    fn move_chain(
        &self,
        row: &LongRow,
        (head, head_bytes): (&ChainHead, usize),
        found: &Found,
        to: &[PageNo],
        by: &dyn Moves,
    ) -> Result<bool, TreeError> {
        let header = by.header()?;
        let txn = header.writer();
        let latched = self.latch_row(&row.key)?;
        let now = latched.row();
        let is_same = now.is_some_and(|Row { stamp, flags, value }| {
            stamp == row.stamp && flags.overflow && !flags.deleted && value == row.value
        });
        // It names the chain for as long as its leaf is latched, so the chain is what was read.
        if !is_same {
            return Ok(false);
        }
        let LatchedRow { leaf, .. } = latched;
        let fresh: Vec<_> =
            to.iter().map(|page| self.env.pool.fresh(*page)).collect::<Result<_, _>>()?;
        let page = leaf.page();
        let mut group = Group::begin(header);
        let leaf = group.hold(leaf);
        let held: Vec<_> = fresh.into_iter().map(|page| group.hold(page)).collect();
        let mut from = found.pages.clone();
        from.sort_unstable();
        self.env.space.log_moved(&mut group, to, &from)?;
        let moved = ChainHead { first: to[0], mark: ChainHead::mark(txn, 0), ..*head };
        self.chains().fill(&mut group, (to, &held), PageNo::NONE, &found.data, moved.mark);
        let (key, seq, bytes) = (&row.key[..], row.stamp.seq, moved.encode());
        let op = Op::Update { page, key, seq, offset: 0, removed: head_bytes, bytes: &bytes };
        group.apply(leaf, &op);
        // It stays its writer's: only where the value lies has changed.
        group.apply(leaf, &Op::Restamp { page, key, stamp: row.stamp });
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&from);
        Ok(true)
    }
}

impl Chains<'_> {
    /// All of a chain of so many pages. `None`: it is no longer there, or another.
    fn read_short(&self, head: &ChainHead, count: u64) -> Result<Option<Found>, TreeError> {
        let mut found = Found { pages: Vec::new(), data: Vec::new() };
        let mut page = head.first;
        while page != PageNo::NONE && (found.pages.len() as u64) < count {
            found.pages.push(page);
            let Some(next) = self.read_page(page, head.mark, &mut found.data)? else {
                return Ok(None);
            };
            page = next;
        }
        let is_whole = page == PageNo::NONE && found.data.len() as u64 == head.len;
        Ok(is_whole.then_some(found))
    }
}
