//! A tree: its root never moves, so a tree is named by one page number for as long as it lives.
use std::collections::HashSet;
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::{PageNo, TreeId, rank};
use weir_change::{Group, Header, Op};
use weir_page::{Flags, Kind, Stamp, max_inline_value, max_key_len};
use weir_pool::{PageToken, Pool};
use weir_space::Space;

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::overflow::ChainHead;

/// What all trees of a database share.
pub struct Env {
    /// Pages in memory.
    pub pool: Arc<Pool>,
    /// Pages in use.
    pub space: Arc<Space>,
    /// Trees whose pages are being freed: what is left of one does not look like a tree.
    pub(crate) being_freed: Mutex<rank::TreesBeingFreed, HashSet<TreeId>>,
    pub(crate) freeing: Freeing,
}

/// Held by a thread that frees pages of a chain: some locks, of which each is for all chains whose
/// marks have the same remainder.
#[derive(Default)]
pub(crate) struct Freeing([Mutex<rank::ChainBeingFreed, ()>; 16]);

impl Freeing {
    pub(crate) fn of(&self, mark: u64) -> &Mutex<rank::ChainBeingFreed, ()> {
        // A mark is a transaction's number above, and a count below.
        &self.0[(mark ^ (mark >> 32)) as usize % self.0.len()]
    }
}

impl Env {
    /// What trees share that have these pages.
    #[must_use]
    pub fn new(pool: Arc<Pool>, space: Arc<Space>) -> Self {
        Env { pool, space, being_freed: Mutex::default(), freeing: Freeing::default() }
    }
}

/// A B+tree.
pub struct Tree {
    pub(crate) env: Arc<Env>,
    pub(crate) id: TreeId,
    pub(crate) root: PageNo,
}

/// What is known of a row besides its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// Its writer.
    pub stamp: Stamp,
    /// Whether it is delete-marked, and whether its value lies on overflow pages.
    pub flags: Flags,
}

/// A leaf as it was when a row was read there.
#[derive(Clone, Copy)]
pub struct LeafState<'t> {
    pub(crate) tree: &'t Tree,
    /// `None`: no row was read.
    pub(crate) token: Option<PageToken>,
}

impl LeafState<'_> {
    /// Whether the leaf is still as it was.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.token.is_some_and(|token| self.tree.env.pool.is_still(token))
    }
}

impl Clone for Tree {
    fn clone(&self) -> Self {
        weir_base::lines::wrote("the reference count of all trees' environment");
        Tree { env: self.env.clone(), id: self.id, root: self.root }
    }
}

impl Tree {
    /// The tree with this root.
    #[must_use]
    pub fn at(env: Arc<Env>, id: TreeId, root: PageNo) -> Self {
        Tree { env, id, root }
    }

    /// Notes in `group` the making of an empty tree whose root is the claimed page `root`.
    ///
    /// # Errors
    /// [`TreeError`] when a page cannot be had; the group must not be committed then.
    pub fn create<'p>(
        env: &'p Env,
        group: &mut Group<'p>,
        id: TreeId,
        root: PageNo,
    ) -> Result<(), TreeError> {
        let held = group.hold(env.pool.fresh(root)?);
        env.space.log_used(group, &[root])?;
        group.apply(held, &Op::Init { page: root, kind: Kind::Leaf, level: 0, tree: id });
        Ok(())
    }

    /// The tree's number.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// The root's page number.
    #[must_use]
    pub fn root(&self) -> PageNo {
        self.root
    }

    /// What the tree shares with others.
    #[must_use]
    pub fn env(&self) -> &Arc<Env> {
        &self.env
    }

    /// The longest value that stays in its leaf, in bytes, under a key of this length.
    #[must_use]
    pub fn max_inline_value(&self, key_len: usize) -> usize {
        max_inline_value(self.env.pool.page_size(), key_len)
    }

    /// The longest key.
    #[must_use]
    pub fn max_key_len(&self) -> usize {
        max_key_len(self.env.pool.page_size())
    }

    /// # Errors
    /// [`TreeError::KeyTooLong`].
    pub fn check_key(&self, key: &[u8]) -> Result<(), TreeError> {
        let page_size = self.env.pool.page_size();
        let max = self.max_key_len();
        if key.len() > max {
            return Err(TreeError::KeyTooLong { len: key.len(), max, page_size });
        }
        Ok(())
    }

    /// Reads the row at `key` into `out` (emptied first); `None` when there is none. A value on
    /// overflow pages is fetched too. Delete-marked rows are returned: `flags` says so.
    ///
    /// # Errors
    /// [`TreeError::Pool`] for pages that are damaged or cannot be read.
    #[inline]
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<Option<RowHead>, TreeError> {
        let mut gone: Option<ChainHead> = None;
        loop {
            let Some(head) = self.get_inline(key, out)? else { return Ok(None) };
            if !head.flags.overflow || head.flags.deleted {
                return Ok(Some(head));
            }
            let chain = ChainHead::decode(out).ok_or_else(|| {
                self.damaged(self.root, "a row's pointer to its overflow pages is malformed")
            })?;
            // The chain may be replaced while it is read: then its pages say so, and the row is
            // looked at again.
            if self.fetch(out)? {
                return Ok(Some(head));
            }
            // A chain is freed when no row names it any more, and none ever will again (BTREE-5).
            if gone.replace(chain) == Some(chain) {
                return Err(
                    self.damaged(chain.first, "it is not the overflow page that a row names")
                );
            }
        }
    }

    /// As [`Tree::get`], but a value on overflow pages is returned as the bytes of its
    /// [`ChainHead`].
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_inline(&self, key: &[u8], out: &mut Vec<u8>) -> Result<Option<RowHead>, TreeError> {
        Ok(self.look(key, out)?.map(|(head, _)| head))
    }

    /// As [`Tree::get_inline`], with a token that tells later whether the page is still as it was.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn look(
        &self,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(RowHead, PageToken)>, TreeError> {
        loop {
            let Some(leaf) = self.try_descend(DescentTarget::Key(key), 0)? else { continue };
            let node = leaf.node.node();
            let found = node.search(key);
            let head = found.ok().map(|slot| {
                out.clear();
                node.value_into(slot, out);
                (RowHead { stamp: node.stamp(slot), flags: node.flags(slot) }, leaf.node.token())
            });
            if leaf.node.still() {
                leaf.node.touch();
                return Ok(head);
            }
        }
    }

    /// The leaf that a token of [`Tree::look`] names, as it was then.
    #[must_use]
    pub fn leaf_state(&self, token: PageToken) -> LeafState<'_> {
        LeafState { tree: self, token: Some(token) }
    }

    /// An error that names this tree, and where the page lies.
    pub fn damaged(&self, page: PageNo, what: impl Into<String>) -> TreeError {
        self.chains().damaged(page, what)
    }

    /// Whether a reader is to pass over what cannot be read for this reason: where pages are only
    /// looked at. It is counted then.
    #[must_use]
    pub fn passes_over(&self, found: &TreeError) -> bool {
        let passes = self.env.pool.is_looked_at() && found.is_unreadable();
        if passes {
            self.env.pool.count_passed_over();
        }
        passes
    }

    /// The header of groups that change structure only: they stand whatever becomes of the
    /// transaction that caused them.
    pub(crate) fn structural() -> Header {
        Header::default()
    }
}
