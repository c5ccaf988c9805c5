//! Freeing a tree that no name leads to any more, leaf by leaf from the left. What is left is a
//! tree at any moment, so a crash in between goes on from the root.
use weir_base::TreeId;
use weir_change::{Group, Header, Op};
use weir_page::Kind;
use weir_pool::Optimistic;

use crate::descend::Target;
use crate::error::TreeError;
use crate::overflow::{Admit, Ahead, ChainHead};
use crate::tree::Tree;

impl Tree {
    /// Frees all pages of this tree, which nobody else uses any more. A root that is free already
    /// means that it was done before.
    ///
    /// # Errors
    /// [`TreeError`]; what is left can be freed by another call.
    pub fn free_all(&self, header: Header, admit: &mut Admit<'_>) -> Result<(), TreeError> {
        while self.free_next(header, admit)? {}
        Ok(())
    }

    /// A step of [`Tree::free_all`], of one page, for who has something else to see to between two:
    /// whatever comes then, another call goes on. `false`: nothing is left.
    ///
    /// # Errors
    /// As [`Tree::free_all`].
    pub fn free_next(&self, header: Header, admit: &mut Admit<'_>) -> Result<bool, TreeError> {
        let space = &self.env.space;
        if !space.is_used(self.root) {
            return Ok(false);
        }
        admit(Ahead::of(2048))?;
        let arrived = match self.try_descend(Target::Remnant, 0) {
            Ok(Some(arrived)) => arrived,
            Ok(None) => return Ok(true),
            Err(TreeError::Gone(_)) => return Ok(false),
            Err(e) => return Err(e),
        };
        self.free_leaf_chains(&arrived.node, header, admit)?;
        let Some(parent) = arrived.parent else { return self.free_root(arrived.node, header) };
        let page = arrived.node.page();
        let (Some(parent), Some(mut leaf)) = (parent.upgrade(), arrived.node.upgrade()) else {
            return Ok(true);
        };
        leaf.invalidate();
        let above = parent.page();
        let first =
            (parent.node().count() > 0).then(|| (parent.node().key(0), parent.node().child(1)));
        let mut group = Group::begin(header);
        let parent = group.hold(parent);
        group.hold(leaf);
        space.log_free(&mut group, &[page])?;
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
        space.unclaim(&[page]);
        Ok(true)
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
        let nobody = TreeId(0);
        group.apply(root, &Op::Init { page, kind: Kind::Leaf, level: 0, tree: nobody });
        self.env.space.log_free(&mut group, &[page])?;
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&[page]);
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
                self.free_chain(head.first, head.mark, header, admit)?;
            }
        }
        Ok(())
    }
}
