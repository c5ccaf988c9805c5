//! From the root to the page that a key belongs to, holding nothing. Each step reads a node, checks
//! that it did not change meanwhile, looks at the child, and checks the node once more: then the
//! child was the right one when the look at it began (optimistic lock coupling: Leis et al., "The
//! ART of practical synchronization", DaMoN 2016).
use std::cell::Cell;

use weir_base::PageNo;
use weir_pool::Optimistic;

use crate::error::TreeError;
use crate::tree::Tree;

/// Where to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DescentTarget<'k> {
    /// The page whose range holds the key.
    Key(&'k [u8]),
    /// The page whose range holds the greatest key below this one.
    Before(&'k [u8]),
    First,
    Last,
    /// The leftmost leaf of what is left of a tree that is being freed: there a node whose children
    /// are gone has become a leaf, above the level of leaves.
    Remnant,
    /// What lies so far on in the tree: a part of 2^32, of which each node takes its share.
    Part(&'k Cell<u64>),
}

/// The place in `count` equal ones at which `part` of 2^32 lies; leaves the part of that place.
pub(crate) fn take_place(part: &Cell<u64>, count: usize) -> usize {
    let at = part.get() * count as u64;
    part.set(at & u64::from(u32::MAX));
    usize::try_from(at >> 32).unwrap_or(usize::MAX).min(count.saturating_sub(1))
}

/// The page arrived at, and the one above it.
pub(crate) struct Arrived<'p> {
    pub(crate) parent: Option<Optimistic<'p>>,
    pub(crate) node: Optimistic<'p>,
}

/// The range of keys of the page arrived at: `low <= key < high`; `None` is unbounded.
#[derive(Default, Clone, Debug)]
pub(crate) struct Fences {
    pub(crate) low: Option<Vec<u8>>,
    pub(crate) high: Option<Vec<u8>>,
    /// The pages beside it below the same parent.
    pub(crate) before: Option<PageNo>,
    pub(crate) behind: Option<PageNo>,
}

/// What is not the child that its parent promises, and yet no damage.
enum Stranger {
    /// What is left of a tree that is being freed.
    Remnant,
    /// Another thread is changing it.
    Changing,
}

/// No tree is this high: a longer walk follows garbage.
const DEPTH_MAX: usize = 40;

impl Tree {
    /// Walks down to `level` (0 is the leaves). `None`: something changed under way, begin again.
    #[inline]
    pub(crate) fn try_descend(
        &self,
        target: DescentTarget<'_>,
        level: u8,
    ) -> Result<Option<Arrived<'_>>, TreeError> {
        self.walk(target, level, &mut |_, _| {})
    }

    /// As [`Tree::try_descend`] to the leaves, noting the leaf's range.
    pub(crate) fn try_descend_fenced(
        &self,
        target: DescentTarget<'_>,
        fences: &mut Fences,
    ) -> Result<Option<Arrived<'_>>, TreeError> {
        self.try_descend_to(target, 0, fences)
    }

    /// As [`Tree::try_descend`], to `level`, noting the page's range.
    pub(crate) fn try_descend_to(
        &self,
        target: DescentTarget<'_>,
        level: u8,
        fences: &mut Fences,
    ) -> Result<Option<Arrived<'_>>, TreeError> {
        fences.low = None;
        fences.high = None;
        (fences.before, fences.behind) = (None, None);
        self.walk(target, level, &mut |node, index| {
            let node = node.node();
            fences.before = index.checked_sub(1).map(|before| node.child(before));
            fences.behind = (index < node.count()).then(|| node.child(index + 1));
            if index > 0 {
                let low = fences.low.get_or_insert_default();
                low.clear();
                node.key_into(index - 1, low);
            }
            if index < node.count() {
                let high = fences.high.get_or_insert_default();
                high.clear();
                node.key_into(index, high);
            }
        })
    }

    #[inline]
    pub(crate) fn walk<'p>(
        &'p self,
        target: DescentTarget<'_>,
        level: u8,
        visit: &mut impl FnMut(&Optimistic<'p>, usize),
    ) -> Result<Option<Arrived<'p>>, TreeError> {
        let pool = &self.env.pool;
        let mut parent: Option<Optimistic<'p>> = None;
        let mut node = pool.optimistic(self.root)?;
        if !self.is_own(node.node()) {
            return if node.still() { Err(TreeError::Gone(self.id)) } else { Ok(None) };
        }
        for _ in 0..DEPTH_MAX {
            let view = node.node();
            let at = view.level();
            if at <= level {
                return Ok(node.still().then_some(Arrived { parent, node }));
            }
            let index = match target {
                DescentTarget::Key(key) => view.child_index(key),
                DescentTarget::Before(key) => match view.search(key) {
                    Ok(slot) | Err(slot) => slot,
                },
                DescentTarget::First | DescentTarget::Remnant => 0,
                DescentTarget::Last => view.count(),
                DescentTarget::Part(part) => take_place(part, view.count() + 1),
            };
            let child = view.child(index);
            visit(&node, index);
            if !node.still() {
                return Ok(None);
            }
            node.touch();
            let below = at - 1;
            let Some(next) = self.step(&node, child)? else { return Ok(None) };
            if !next.node().is_node_of(self.id, below) {
                match self.stranger(&next, target, below)? {
                    Stranger::Remnant => {}
                    Stranger::Changing => return Ok(None),
                }
            }
            parent = Some(node);
            node = next;
        }
        // Either garbage was followed, or the tree has a loop.
        if node.still() {
            return Err(self.damaged(node.page(), "the tree is deeper than any tree can be"));
        }
        Ok(None)
    }

    /// BTREE-9: what is not the child that its parent promises is damage, if it is still there, and
    /// the tree is not being freed.
    #[cold]
    fn stranger(
        &self,
        child: &Optimistic<'_>,
        target: DescentTarget<'_>,
        level: u8,
    ) -> Result<Stranger, TreeError> {
        let (found, tree) = (child.node().level(), child.node().tree());
        if matches!(target, DescentTarget::Remnant) && child.node().is_node_of(self.id, found) {
            return Ok(Stranger::Remnant);
        }
        if !child.still() {
            return Ok(Stranger::Changing);
        }
        if !matches!(target, DescentTarget::Remnant) {
            if self.env.being_freed.lock().contains(&self.id) {
                return Err(TreeError::Gone(self.id));
            }
            // Freed since the walk began: the next one finds that at its root.
            let root = self.env.pool.optimistic(self.root)?;
            if !(self.is_own(root.node()) && root.still()) {
                return Ok(Stranger::Changing);
            }
        }
        let what = if tree == self.id {
            format!("it is not a node of level {level}, as its parent says")
        } else {
            format!("its parent is of this tree, it is of tree {tree}")
        };
        Err(self.damaged(child.page(), what))
    }

    /// Whether the page at the root is this tree's still (BTREE-8).
    #[inline]
    pub(crate) fn is_own<B: weir_page::Bytes>(&self, root: weir_page::Node<B>) -> bool {
        root.tree() == self.id && (root.is_leaf() || root.is_inner())
    }

    #[inline]
    fn step<'p>(
        &'p self,
        node: &Optimistic<'p>,
        child: PageNo,
    ) -> Result<Option<Optimistic<'p>>, TreeError> {
        let next = self.env.pool.optimistic(child);
        if !node.still() {
            // Whatever was found there, it need not have been the child any more.
            return Ok(None);
        }
        Ok(Some(next?))
    }
}
