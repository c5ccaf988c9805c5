//! Filling an empty tree from sorted entries: nodes are written one after another, full, each level
//! as the one below it grows: what is in memory is one node a level, and one that is full and to be
//! written before the next entry comes. The tree is empty until the last group makes it whole.
use weir_base::PageNo;
use weir_change::{Group, Header, Op};
use weir_page::{Flags, Kind, NodeMut, Stamp};

use crate::error::TreeError;
use crate::overflow::{Run, Steps};
use crate::tree::Tree;
use crate::write::Value;

/// Pages are filled to 15/16, as InnoDB does, so that the first insertions do not cut them all.
pub(crate) const FILL_NUMERATOR: usize = 15;
pub(crate) const FILL_DENOMINATOR: usize = 16;

/// A node in the making, and the first key that belongs to it.
#[derive(Default)]
struct Building {
    bytes: Vec<u8>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

/// A tree in the making, filled with entries that are given to it one after another. Its [`Steps`]
/// are to be taken after each entry, and when it is closed.
pub struct Loader {
    tree: Tree,
    /// The node of each level that the next entry or child goes to. Leaves are level 0.
    levels: Vec<Building>,
    /// A node that is full, of this level.
    full: Option<(u8, Building)>,
    /// When no more entries come: the level whose last node is written next.
    closing: Option<u8>,
    header: Header,
    count: u64,
}

impl Loader {
    /// Checks a key for [`Loader::push`].
    ///
    /// # Errors
    /// [`TreeError::NotAscending`], [`TreeError::KeyTooLong`].
    pub fn check(&self, key: &[u8]) -> Result<(), TreeError> {
        self.tree.check_key(key)?;
        if self.levels.first().is_some_and(|b| key <= b.last_key.as_slice()) {
            return Err(TreeError::NotAscending(self.count));
        }
        Ok(())
    }

    /// Takes an entry, whose key is above all that it was given before. The chain of a long value
    /// is written already.
    ///
    /// # Errors
    /// As [`Loader::check`].
    pub fn push(&mut self, key: &[u8], value: Value<'_>) -> Result<(), TreeError> {
        debug_assert!(self.full.is_none(), "a node is full that is to be written first");
        self.check(key)?;
        let Value { bytes, flags } = value;
        let stamp = Stamp { writer: self.header.txn.unwrap_or_default(), seq: 0 };
        let Loader { tree, levels, .. } = self;
        let is_full = levels.first_mut().is_none_or(|b| !tree.add(b, key, stamp, flags, bytes));
        if is_full {
            let mut fresh = tree.begin_node(Kind::Leaf, 0, key);
            tree.add(&mut fresh, key, stamp, flags, bytes);
            self.put_in_place(0, fresh);
        }
        self.count += 1;
        Ok(())
    }

    /// The tree that is filled.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How many entries it was given.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// No more entries come: the steps from now on write what each level has left, from the leaves
    /// up.
    pub fn close(&mut self) {
        self.closing = Some(0);
    }

    /// About how many bytes of log [`Loader::finish`] takes.
    #[must_use]
    pub fn root_log_bytes(&self) -> u64 {
        self.node_log_bytes()
    }

    /// Writes the root, once it is closed and all steps are taken: the tree is whole. This group
    /// carries `last`, which may be the transaction's commit. Returns the number of entries.
    ///
    /// # Errors
    /// [`TreeError::NotEmpty`] and others.
    pub fn finish(mut self, last: Header) -> Result<u64, TreeError> {
        let level = self.closing.unwrap_or_default();
        let root = if level == 0 { None } else { self.levels.pop() };
        self.tree.commit_root(root.as_ref(), level, last)?;
        Ok(self.count)
    }

    fn node_log_bytes(&self) -> u64 {
        (self.tree.env.pool.page_size() + 256) as u64
    }

    /// Begins the next node of a level: the one before it is full.
    fn put_in_place(&mut self, level: u8, fresh: Building) {
        match self.levels.get_mut(usize::from(level)) {
            None => self.levels.push(fresh),
            Some(place) => self.full = Some((level, std::mem::replace(place, fresh))),
        }
    }

    /// Puts a node that is written below one of `level`.
    fn add_child(&mut self, level: u8, separator: &[u8], page: PageNo) {
        let added = self
            .levels
            .get_mut(usize::from(level))
            .is_some_and(|b| NodeMut::new(&mut b.bytes).insert_child(separator, page).is_ok());
        if added {
            return;
        }
        let mut fresh = self.tree.begin_node(Kind::Inner, level, separator);
        NodeMut::new(&mut fresh.bytes).set_leftmost(page);
        self.put_in_place(level, fresh);
    }

    /// Takes what the next level has left, if there is to be a node above it.
    fn close_level(&mut self) {
        let Some(level) = self.closing else { return };
        // A leaf has a node above it always: the root stays where it is, and is written last.
        if level > 0 && usize::from(level) + 1 >= self.levels.len() {
            return;
        }
        if let Some(place) = self.levels.get_mut(usize::from(level)) {
            self.full = Some((level, std::mem::take(place)));
            self.closing = Some(level + 1);
        }
    }
}

impl Steps for Loader {
    fn next_log_bytes(&mut self) -> Option<u64> {
        if self.full.is_none() {
            self.close_level();
        }
        self.full.as_ref().map(|_| self.node_log_bytes())
    }

    fn write_next(&mut self) -> Result<Vec<Run>, TreeError> {
        let Some((level, node)) = self.full.take() else { return Ok(Vec::new()) };
        let page = self.tree.write_new_node(&node, level, self.header)?;
        self.add_child(level + 1, &node.first_key, page);
        Ok(vec![(page, 1)])
    }
}

impl Tree {
    /// Begins to fill this empty tree with entries in ascending key order, under the transaction of
    /// `header`.
    ///
    /// # Errors
    /// [`TreeError::NotEmpty`], [`TreeError::Gone`].
    pub fn loader(&self, header: Header) -> Result<Loader, TreeError> {
        if !self.is_empty()? {
            return Err(TreeError::NotEmpty);
        }
        let (levels, full, closing) = (Vec::new(), None, None);
        Ok(Loader { tree: self.clone(), levels, full, closing, header, count: 0 })
    }

    fn is_empty(&self) -> Result<bool, TreeError> {
        let root = self.env.pool.exclusive(self.root)?;
        if !self.is_own(root.node()) {
            return Err(TreeError::Gone(self.id));
        }
        Ok(root.node().is_leaf() && root.node().count() == 0)
    }

    fn begin_node(&self, kind: Kind, level: u8, key: &[u8]) -> Building {
        let mut bytes = vec![0; self.env.pool.page_size()];
        NodeMut::format(&mut bytes, kind, level, self.id, PageNo(0));
        Building { bytes, first_key: key.to_vec(), last_key: Vec::new() }
    }

    /// Adds a row unless the leaf is as full as a loaded leaf shall be.
    fn add(&self, b: &mut Building, key: &[u8], stamp: Stamp, flags: Flags, value: &[u8]) -> bool {
        let mut node = NodeMut::new(&mut b.bytes);
        let count = node.node().count();
        let most = self.env.pool.page_size() * FILL_NUMERATOR / FILL_DENOMINATOR;
        // Asked before the row that reaches the mark: with large rows half of the page would stay
        // empty otherwise.
        if node.node().used_bytes() > most {
            return false;
        }
        if node.insert(count, key, stamp, flags, value).is_err() {
            return false;
        }
        b.last_key.clear();
        b.last_key.extend_from_slice(key);
        true
    }

    /// Writes a node to a page of its own.
    fn write_new_node(
        &self,
        done: &Building,
        level: u8,
        header: Header,
    ) -> Result<PageNo, TreeError> {
        let claimed = self.env.space.claim(1)?;
        let page = claimed[0];
        if let Err(e) = self.write_node(done, level, page, header) {
            self.env.space.unclaim(&claimed);
            return Err(e);
        }
        Ok(page)
    }

    fn write_node(
        &self,
        done: &Building,
        level: u8,
        page: PageNo,
        header: Header,
    ) -> Result<(), TreeError> {
        let node = weir_page::Node::new(&done.bytes[..]);
        let mut rows = Vec::new();
        node.dump(0..node.count(), &mut rows);
        let fresh = self.env.pool.fresh(page)?;
        let mut group = Group::begin(Header { undo: true, ..header });
        let held = group.hold(fresh);
        self.env.space.log_used(&mut group, &[page])?;
        let kind = if level > 0 { Kind::Inner } else { Kind::Leaf };
        group.apply(held, &Op::Init { page, kind, level, tree: self.id });
        if level > 0 {
            group.apply(held, &Op::SetLink { page, link: node.link() });
        }
        group.apply(held, &Op::Load { page, rows: &rows });
        group.note(&Op::UndoPages { first: page, count: 1 });
        group.commit(self.env.pool.log())?;
        Ok(())
    }

    /// Makes the uppermost node the root: the tree is whole.
    fn commit_root(
        &self,
        root: Option<&Building>,
        level: u8,
        last: Header,
    ) -> Result<(), TreeError> {
        let page = self.root;
        let mut group = Group::begin(last);
        let held = group.hold(self.env.pool.exclusive(page)?);
        let now = group.page(held).node();
        if !now.is_leaf() || now.count() > 0 {
            // Another thread has written to the tree meanwhile.
            return Err(TreeError::NotEmpty);
        }
        if let Some(root) = root {
            let node = weir_page::Node::new(&root.bytes[..]);
            let mut rows = Vec::new();
            node.dump(0..node.count(), &mut rows);
            group.apply(held, &Op::Init { page, kind: Kind::Inner, level, tree: self.id });
            group.apply(held, &Op::SetLink { page, link: node.link() });
            group.apply(held, &Op::Load { page, rows: &rows });
        }
        group.commit(self.env.pool.log())?;
        Ok(())
    }
}
