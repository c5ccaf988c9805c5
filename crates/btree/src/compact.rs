//! Making a tree dense while others read and write it: from the left to the right, a leaf takes
//! over entries of the leaf behind it until it is full, and one that is left without any is freed;
//! so do the nodes above, when the leaves below them are done. A leaf that is done moves to the
//! lowest free page, and so do the chains of its long values (`move_chain.rs`), so that the free
//! ones come to lie together at the end of the file. Each step is a group of its own and leaves a
//! sound tree (`docs/decisions/compact.md`).
use weir_base::PageNo;
use weir_change::{Group, Op};
use weir_page::{Kind, Node, NodeMut, entries, fill_from, separator};
use weir_pool::Exclusive;

use crate::bulk::{FILL_DENOMINATOR, FILL_NUMERATOR};
use crate::descend::{Arrived, DescentTarget};
use crate::error::TreeError;
use crate::merge::Above;
use crate::move_chain::Moves;
use crate::tree::Tree;

/// A node that lacks less than this part of a page to be filled stays as it is.
const NEARLY_FULL_DIVISOR: usize = 16;

/// What a step of [`Tree::compact_next`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactStep {
    /// A leaf is as full as can be; the key is the first that the next one may have.
    Passed,
    /// A node took over all entries of the one behind it, which is free.
    Joined,
    /// A node took over some entries of the one behind it.
    Filled,
    /// A node's content has moved to a lower page; its own is free.
    Moved,
    /// So did the chain of a long value, of so many pages.
    ChainMoved(u32),
    /// Such a chain was read, and stays where it is.
    ChainPassed(u32),
    /// Another thread has changed what was looked at: the same again.
    Again,
    /// The last leaf was passed.
    Done,
}

/// A node on the way to a key, and what its parent says of it.
#[derive(Default)]
struct Place {
    /// Which child of its parent it is.
    index: usize,
    /// The separator behind it, of its parent or of a node above that: its keys are below.
    high: Option<Vec<u8>>,
    /// The page behind it below the same parent.
    behind: Option<PageNo>,
}

/// What becomes of a node.
enum Next {
    /// This was done, or another thread was in the way.
    Did(CompactStep),
    /// Nothing can be done for it; its keys are below this one.
    Full(Option<Vec<u8>>),
}

impl Tree {
    /// A step of a compaction, at the leaf that has `key`, which goes on to the next one's first
    /// key when that leaf is done. Whatever comes between two steps, another one goes on. The
    /// caller has admitted about three pages of redo, and of a chain that has moved admits the rest
    /// before the next step. `moves`: nodes and chains move to lower pages.
    ///
    /// # Errors
    /// [`TreeError`]; the tree is sound then, too.
    pub fn compact_next(
        &self,
        key: &mut Vec<u8>,
        moves: Option<&dyn Moves>,
    ) -> Result<CompactStep, TreeError> {
        self.env.pool.log().check()?;
        let high = match self.compact_at(key, 0, moves.is_some())? {
            Next::Did(step) => return Ok(step),
            Next::Full(high) => high,
        };
        if let Some(moves) = moves
            && let Some(step) = self.move_next_chain(key, moves)?
        {
            return Ok(step);
        }
        let Some(high) = high else { return Ok(CompactStep::Done) };
        *key = high;
        Ok(CompactStep::Passed)
    }

    fn compact_at(&self, key: &[u8], level: u8, moves: bool) -> Result<Next, TreeError> {
        let Some((place, arrived)) = self.walk_to(key, level)? else { return Ok(Next::again()) };
        let Some(parent) = arrived.parent else { return Ok(Next::Full(None)) };
        let Some(high) = place.high else { return self.move_lower(key, level, moves, None) };
        let Some(behind) = place.behind else {
            // The last of its parent: that one takes over children of the node behind it first.
            return match self.compact_at(key, level + 1, moves)? {
                Next::Full(_) => self.move_lower(key, level, moves, Some(high)),
                did @ Next::Did(_) => Ok(did),
            };
        };
        // Read before anything is latched: no reader waits for the device then.
        let is_there = self.env.pool.optimistic(behind).map(|_| ());
        if !parent.still() {
            return Ok(Next::again());
        }
        is_there?;
        let (Some(parent), Some(left)) = (parent.upgrade(), arrived.node.upgrade()) else {
            return Ok(Next::again());
        };
        let right = self.env.pool.exclusive(behind)?;
        if !right.node().is_node_of(self.id, level) {
            let what = format!("it is not a node of level {level} of this tree");
            return Err(self.damaged(right.page(), what));
        }
        let take = self.to_take(left.node(), right.node(), &high);
        if take == entries(right.node()) {
            // The joined node is all that is below the root: it becomes the root.
            if let Above::RootWithOneChild = self.join(parent, left, right, &high)? {
                self.shrink(key, level)?;
            }
            return Ok(Next::Did(CompactStep::Joined));
        }
        let up = (take > 0).then(|| cut_at(left.node(), right.node(), take));
        match up {
            Some(up) if may_be_parted_by(parent.bytes(), &high, &up) => {
                self.fill(parent, left, right, (&high, &up), take)?;
                Ok(Next::Did(CompactStep::Filled))
            }
            _ => {
                drop((parent, left, right));
                self.move_lower(key, level, moves, Some(high))
            }
        }
    }

    fn walk_to(&self, key: &[u8], level: u8) -> Result<Option<(Place, Arrived<'_>)>, TreeError> {
        let mut place = Place::default();
        let arrived = self.walk(DescentTarget::Key(key), level, &mut |node, index| {
            let node = node.node();
            (place.index, place.behind) = (index, None);
            if index < node.count() {
                place.behind = Some(node.child(index + 1));
                let high = place.high.get_or_insert_default();
                high.clear();
                node.key_into(index, high);
            }
        })?;
        Ok(arrived.map(|arrived| (place, arrived)))
    }

    /// How many entries of `right` go to `left`: none if that is nearly full.
    fn to_take(&self, left: Node<&[u8]>, right: Node<&[u8]>, up: &[u8]) -> usize {
        let page_size = self.env.pool.page_size();
        let most = page_size * FILL_NUMERATOR / FILL_DENOMINATOR;
        let is_nearly_full = left.used_bytes() >= most - page_size / NEARLY_FULL_DIVISOR;
        if is_nearly_full { 0 } else { fill_from(left, right, up, most) }
    }

    /// Moves the first `take` entries of `right` to `left`, and puts the separator `new` in the
    /// place of `old`, which parts the two.
    fn fill<'p>(
        &'p self,
        parent: Exclusive<'p>,
        mut left: Exclusive<'p>,
        mut right: Exclusive<'p>,
        (old, new): (&[u8], &[u8]),
        take: usize,
    ) -> Result<(), TreeError> {
        let (above, to, from) = (parent.page(), left.page(), right.page());
        let view = right.node();
        let (level, inner, count) = (view.level(), view.is_inner(), view.count());
        let (first, rest_first) = (view.link(), view.child(take));
        let (mut moved, mut rest) = (Vec::new(), Vec::new());
        // Of an inner node's separators the one before the first child comes from above, and the
        // one before the first child that stays goes there.
        view.dump(0..take - usize::from(inner), &mut moved);
        view.dump(take..count, &mut rest);
        // The ranges of both are others from now on (BTREE-2).
        left.invalidate();
        right.invalidate();
        let mut group = Group::begin(Self::structural());
        let (parent, left, right) = (group.hold(parent), group.hold(left), group.hold(right));
        if inner {
            group.apply(left, &Op::InsertChild { page: to, key: old, child: first });
        }
        group.apply(left, &Op::Load { page: to, rows: &moved });
        let kind = if inner { Kind::Inner } else { Kind::Leaf };
        group.apply(right, &Op::Init { page: from, kind, level, tree: self.id });
        if inner {
            group.apply(right, &Op::SetLink { page: from, link: rest_first });
        }
        group.apply(right, &Op::Load { page: from, rows: &rest });
        group.apply(parent, &Op::RemoveChild { page: above, key: old });
        group.apply(parent, &Op::InsertChild { page: above, key: new, child: from });
        group.commit(self.env.pool.log())?;
        Ok(())
    }

    /// Moves the node at `level` on the way to `key`, whose keys are below `high`, to the lowest
    /// free page if that is a lower one.
    fn move_lower(
        &self,
        key: &[u8],
        level: u8,
        moves: bool,
        high: Option<Vec<u8>>,
    ) -> Result<Next, TreeError> {
        if !moves {
            return Ok(Next::Full(high));
        }
        let Some((place, arrived)) = self.walk_to(key, level)? else { return Ok(Next::again()) };
        let Some(parent) = arrived.parent else { return Ok(Next::Full(None)) };
        // Claimed without latches.
        let Some(to) = self.env.space.claim_below(arrived.node.page())? else {
            return Ok(Next::Full(high));
        };
        let moved = match (parent.upgrade(), arrived.node.upgrade()) {
            (Some(parent), Some(node)) => self.move_to(parent, place.index, node, to),
            _ => Ok(false),
        };
        if !matches!(moved, Ok(true)) {
            self.env.space.unclaim(&[to]);
        }
        Ok(if moved? { Next::Did(CompactStep::Moved) } else { Next::again() })
    }

    /// Moves `node`, which is child `index` of `parent`, to the claimed page `to`.
    fn move_to<'p>(
        &'p self,
        parent: Exclusive<'p>,
        index: usize,
        mut node: Exclusive<'p>,
        to: PageNo,
    ) -> Result<bool, TreeError> {
        let (above, from) = (parent.page(), node.page());
        let view = node.node();
        let (level, inner, link) = (view.level(), view.is_inner(), view.link());
        let mut rows = Vec::new();
        view.dump(0..view.count(), &mut rows);
        let up = index.checked_sub(1).map(|slot| parent.node().key(slot));
        let fresh = self.env.pool.fresh(to)?;
        let mut group = Group::begin(Self::structural());
        let (parent, fresh) = (group.hold(parent), group.hold(fresh));
        node.invalidate();
        group.hold(node);
        self.env.space.log_moved(&mut group, &[to], &[from])?;
        let kind = if inner { Kind::Inner } else { Kind::Leaf };
        group.apply(fresh, &Op::Init { page: to, kind, level, tree: self.id });
        if inner {
            group.apply(fresh, &Op::SetLink { page: to, link });
        }
        group.apply(fresh, &Op::Load { page: to, rows: &rows });
        match up {
            None => group.apply(parent, &Op::SetLink { page: above, link: to }),
            Some(up) => {
                group.apply(parent, &Op::RemoveChild { page: above, key: &up });
                group.apply(parent, &Op::InsertChild { page: above, key: &up, child: to });
            }
        }
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&[from]);
        Ok(true)
    }
}

impl Next {
    fn again() -> Next {
        Next::Did(CompactStep::Again)
    }
}

/// The separator between two nodes when the first `take` entries of `right`, and not all, have gone
/// to `left`.
fn cut_at(left: Node<&[u8]>, right: Node<&[u8]>, take: usize) -> Vec<u8> {
    debug_assert!(take > 0 && take < entries(right) && left.level() == right.level());
    if right.is_inner() {
        return right.key(take - 1);
    }
    separator(&right.key(take - 1), &right.key(take)).to_vec()
}

/// Whether the separator `new` has room in a node in the place of `old`: tried on a copy.
fn may_be_parted_by(parent: &[u8], old: &[u8], new: &[u8]) -> bool {
    let mut copy = parent.to_vec();
    let mut node = NodeMut::new(&mut copy);
    let Ok(slot) = node.node().search(old) else { return false };
    node.remove_child(slot);
    node.insert_child(new, PageNo::NONE).is_ok()
}
