//! Freeing a tree that no name leads to any more, leaf by leaf from the left. What is left is a
//! tree at any moment, so a crash in between goes on from the root. A damaged page is passed over:
//! what only it leads to stays in use, and the check tells of it.
use weir_base::{PageNo, TreeId};
use weir_change::{Group, Header, Op};
use weir_page::Kind;
use weir_pool::{Exclusive, Optimistic, PoolError};

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::overflow::{Admit, Ahead, ChainHead};
use crate::tree::Tree;

impl Tree {
    /// Frees all pages of this tree, which no name leads to any more; a thread that walks over it
    /// gets [`TreeError::Gone`]. A root that is free already means that it was done before.
    ///
    /// # Errors
    /// [`TreeError`]; what is left can be freed by another call.
    pub fn free_all(&self, header: Header, admit: &mut Admit<'_>) -> Result<(), TreeError> {
        while self.free_next(header, admit)? {}
        Ok(())
    }

    /// A step of [`Tree::free_all`], of one page, for a caller that has something else to see to
    /// between two: whatever comes then, another call goes on. `false`: nothing is left.
    ///
    /// # Errors
    /// As [`Tree::free_all`].
    pub fn free_next(&self, header: Header, admit: &mut Admit<'_>) -> Result<bool, TreeError> {
        let space = &self.env.space;
        if !space.is_used(self.root) {
            return Ok(false);
        }
        admit(Ahead::of(2048))?;
        // Before the first page is: a walk that meets what is left finds it here.
        self.env.being_freed.lock().insert(self.id);
        let arrived = match self.try_descend(DescentTarget::Remnant, 0) {
            Ok(Some(arrived)) => arrived,
            Ok(None) => return Ok(true),
            Err(TreeError::Gone(_)) => return Ok(false),
            Err(e) if e.is_damage() => return self.pass_damaged(&e, header),
            Err(e) => return Err(e),
        };
        self.free_leaf_chains(&arrived.node, header, admit)?;
        let Some(parent) = arrived.parent else { return self.free_root(arrived.node, header) };
        let page = arrived.node.page();
        let (Some(parent), Some(mut leaf)) = (parent.upgrade(), arrived.node.upgrade()) else {
            return Ok(true);
        };
        leaf.invalidate();
        let mut group = Group::begin(header);
        group.hold(leaf);
        self.take_first_child(group, parent, Some(page))?;
        Ok(true)
    }

    /// The way to the first leaf leads over a damaged page: it is taken out of the tree, so that
    /// what is behind it is freed. A leaf whose bytes are not those that were written is freed by
    /// its number; what hangs below an inner page, and pages that seem to be another tree's, are
    /// given up: they stay in use, and the check tells of them.
    fn pass_damaged(&self, why: &TreeError, header: Header) -> Result<bool, TreeError> {
        for level in 1..=u8::MAX {
            let parent = match self.try_descend(DescentTarget::Remnant, level) {
                Ok(Some(arrived)) => arrived.node,
                Ok(None) => return Ok(true),
                Err(TreeError::Gone(_)) => return Ok(false),
                Err(e) if e.is_damage() => continue,
                Err(e) => return Err(e),
            };
            let Some(parent) = parent.upgrade() else { return Ok(true) };
            if parent.node().level() != level {
                break;
            }
            let is_own_leaf =
                level == 1 && matches!(why, TreeError::Pool(PoolError::Damaged { .. }));
            let page = parent.node().child(0);
            self.take_first_child(Group::begin(header), parent, is_own_leaf.then_some(page))?;
            return Ok(true);
        }
        // The root itself: nothing leads to the rest any more, and no name to the root.
        Ok(false)
    }

    /// Takes the first child out of `parent`, and frees `page`, which it is, if that is given.
    fn take_first_child<'p>(
        &'p self,
        mut group: Group<'p>,
        parent: Exclusive<'p>,
        page: Option<PageNo>,
    ) -> Result<(), TreeError> {
        let space = &self.env.space;
        let above = parent.page();
        let first =
            (parent.node().count() > 0).then(|| (parent.node().key(0), parent.node().child(1)));
        let parent = group.hold(parent);
        space.log_free(&mut group, page.as_slice())?;
        match first {
            Some((key, next)) => {
                group.apply(parent, &Op::RemoveChild { page: above, key: &key });
                group.apply(parent, &Op::SetLink { page: above, link: next });
            }
            // Its last child is gone: an empty leaf takes its place, to be freed next.
            None => group.apply(
                parent,
                &Op::Init { page: above, kind: Kind::Leaf, level: 0, tree: self.id },
            ),
        }
        group.commit(self.env.pool.log())?;
        space.unclaim(page.as_slice());
        Ok(())
    }

    /// Frees the root, which is a leaf and all that is left. `true`: it has changed since the
    /// chains of its rows were freed.
    fn free_root(&self, root: Optimistic<'_>, header: Header) -> Result<bool, TreeError> {
        let page = root.page();
        let Some(mut root) = root.upgrade() else { return Ok(true) };
        root.invalidate();
        let mut group = Group::begin(header);
        let root = group.hold(root);
        // BTREE-8: handles that outlive the tree see that it is gone, at once and for ever.
        let no_tree = TreeId(0);
        group.apply(root, &Op::Init { page, kind: Kind::Leaf, level: 0, tree: no_tree });
        self.env.space.log_free(&mut group, &[page])?;
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&[page]);
        // Not before the root says so.
        self.env.being_freed.lock().remove(&self.id);
        // Dropped or never made: no other tree will have its number.
        self.env.pool.store().set_codec(self.id, None);
        Ok(false)
    }

    fn free_leaf_chains(
        &self,
        leaf: &Optimistic<'_>,
        header: Header,
        admit: &mut Admit<'_>,
    ) -> Result<(), TreeError> {
        let mut bytes = vec![0; self.env.pool.page_size()];
        leaf.copy_to(&mut bytes);
        if !leaf.still() {
            return Ok(());
        }
        let node = weir_page::Node::new(&bytes[..]);
        for slot in (0..node.count()).filter(|&slot| node.is_overflow(slot)) {
            if let Some(head) = ChainHead::decode(node.value(slot)) {
                match self.chains().free(head.first, head.mark, header, admit) {
                    // What is behind a damaged page of it is given up.
                    Err(e) if e.is_damage() => {}
                    freed => freed?,
                }
            }
        }
        Ok(())
    }
}
