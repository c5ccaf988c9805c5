//! Giving room back: a thin node is joined with a neighbour under the same parent, and a root with
//! a single child takes its place.
use weir_change::{Group, Op};
use weir_page::{Kind, Node, merged_fits};
use weir_pool::Exclusive;

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::tree::Tree;

/// How the node above two joined ones is now.
pub(crate) enum Above {
    Well,
    Thin,
    RootWithOneChild,
}

impl Tree {
    /// Thin: less than a quarter full, so that a joined node is far from having to be cut again.
    pub(crate) fn is_thin(&self, node: Node<&[u8]>) -> bool {
        node.used_bytes() < self.env.pool.page_size() / 4
    }

    /// Joins the node at `level` on the way to `key` with a neighbour if it is still thin. Gives up
    /// at the first obstacle: the next removal tries again.
    pub(crate) fn shrink(&self, key: &[u8], level: u8) -> Result<(), TreeError> {
        let Some(arrived) = self.try_descend(DescentTarget::Key(key), level)? else {
            return Ok(());
        };
        let Some(parent) = arrived.parent else { return Ok(()) };
        let Some(parent) = parent.upgrade() else { return Ok(()) };
        let Some(node) = arrived.node.upgrade() else { return Ok(()) };
        let above = parent.node();
        let is_alone = above.count() == 0;
        if is_alone && parent.page() == self.root && node.node().level() == level {
            return self.lower_root(parent, node);
        }
        if node.node().level() != level || !self.is_thin(node.node()) {
            return Ok(());
        }
        if is_alone {
            drop((parent, node));
            return self.shrink(key, level + 1);
        }
        let index = above.child_index(key);
        let (slot, with_right) =
            if index < above.count() { (index, true) } else { (index - 1, false) };
        let other = above.child(if with_right { index + 1 } else { index - 1 });
        let other = self.env.pool.exclusive(other)?;
        if !other.node().is_node_of(self.id, level) {
            let what = format!("it is not a node of level {level} of this tree");
            return Err(self.damaged(other.page(), what));
        }
        let (left, right) = if with_right { (node, other) } else { (other, node) };
        let up = above.key(slot);
        if !merged_fits(left.node(), right.node(), &up) {
            return Ok(());
        }
        match self.join(parent, left, right, &up)? {
            // The joined node is all that is below the root: it becomes the root.
            Above::RootWithOneChild => self.shrink(key, level),
            Above::Thin => self.shrink(key, level + 1),
            Above::Well => Ok(()),
        }
    }

    /// Moves what `right` holds to `left` and frees `right`. Returns how the parent is now.
    pub(crate) fn join<'p>(
        &'p self,
        parent: Exclusive<'p>,
        left: Exclusive<'p>,
        mut right: Exclusive<'p>,
        up: &[u8],
    ) -> Result<Above, TreeError> {
        let (above, to, from) = (parent.page(), left.page(), right.page());
        let view = right.node();
        let (inner, link) = (view.is_inner(), view.link());
        let mut rows = Vec::new();
        view.dump(0..view.count(), &mut rows);
        let mut group = Group::begin(Self::structural());
        let (parent, left) = (group.hold(parent), group.hold(left));
        // A thread that found the right page on the way down must not take it for part of the tree.
        right.invalidate();
        group.hold(right);
        self.env.space.log_free(&mut group, &[from])?;
        if inner {
            group.apply(left, &Op::InsertChild { page: to, key: up, child: link });
        }
        group.apply(left, &Op::Load { page: to, rows: &rows });
        group.apply(parent, &Op::RemoveChild { page: above, key: up });
        let view = group.page(parent).node();
        let state = if above == self.root {
            if view.count() == 0 { Above::RootWithOneChild } else { Above::Well }
        } else if self.is_thin(view) {
            Above::Thin
        } else {
            Above::Well
        };
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&[from]);
        Ok(state)
    }

    /// The root takes over its only child's content; the tree is one level lower.
    fn lower_root<'p>(
        &'p self,
        root: Exclusive<'p>,
        mut child: Exclusive<'p>,
    ) -> Result<(), TreeError> {
        let (number, from) = (root.page(), child.page());
        let view = child.node();
        let (level, inner, link) = (view.level(), view.is_inner(), view.link());
        let mut rows = Vec::new();
        view.dump(0..view.count(), &mut rows);
        let mut group = Group::begin(Self::structural());
        let root = group.hold(root);
        child.invalidate();
        group.hold(child);
        self.env.space.log_free(&mut group, &[from])?;
        let kind = if inner { Kind::Inner } else { Kind::Leaf };
        group.apply(root, &Op::Init { page: number, kind, level, tree: self.id });
        if inner {
            group.apply(root, &Op::SetLink { page: number, link });
        }
        group.apply(root, &Op::Load { page: number, rows: &rows });
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&[from]);
        Ok(())
    }
}
