//! Filling an empty tree from sorted entries: nodes are written one after another, full, each level
//! as the one below it grows: what is in memory is one node a level. The tree is empty until the
//! last group makes it whole.
use weir_base::PageNo;
use weir_change::{Group, Header, Op};
use weir_page::{Flags, Kind, NodeMut, Stamp};

use crate::error::TreeError;
use crate::overflow::{AllocationEvent, AllocationObserver, ChainHead};
use crate::tree::Tree;

/// Pages are filled to 15/16, as InnoDB does, so that the first insertions do not cut them all.
const FILL_NUMERATOR: usize = 15;
const FILL_DENOMINATOR: usize = 16;

/// A node in the making, and the first key that belongs to it.
#[derive(Default)]
struct Building {
    bytes: Vec<u8>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

/// A tree in the making: the node of each level that the next entry or child goes to. Leaves are
/// level 0.
struct Rising {
    levels: Vec<Building>,
    header: Header,
}

/// Fills an empty tree with entries that are given to it one after another.
pub struct Loader {
    tree: Tree,
    rising: Rising,
    count: u64,
}

impl Loader {
    /// Takes an entry, whose key is above all that it was given before.
    ///
    /// # Errors
    /// [`TreeError::NotAscending`] and others; pages written so far are the transaction's to free.
    pub fn push(
        &mut self,
        key: &[u8],
        value: &[u8],
        observe: &mut AllocationObserver<'_>,
    ) -> Result<(), TreeError> {
        let Loader { tree, rising, count } = self;
        tree.check_key(key)?;
        if rising.levels.first().is_some_and(|b| key <= b.last_key.as_slice()) {
            return Err(TreeError::NotAscending(*count));
        }
        let writer = rising.header.txn.unwrap_or_default();
        let mut flags = Flags::NONE;
        let long = if value.len() > tree.max_inline_value(key.len()) {
            let mark = ChainHead::mark(writer, *count);
            flags = Flags::OVERFLOW;
            Some(tree.write_long(key, value, mark, rising.header, observe)?)
        } else {
            None
        };
        let value = long.as_ref().map_or(value, |bytes| &bytes[..]);
        let stamp = Stamp { writer, seq: 0 };
        let is_full =
            rising.levels.first_mut().is_none_or(|b| !tree.add(b, key, stamp, flags, value));
        if is_full {
            let mut fresh = tree.begin_node(Kind::Leaf, 0, key);
            tree.add(&mut fresh, key, stamp, flags, value);
            tree.put_in_place(0, fresh, rising, observe)?;
        }
        *count += 1;
        Ok(())
    }

    /// How many entries it was given.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Makes the tree whole: the last group of redo carries `last`, which may be the transaction's
    /// commit. Returns the number of entries.
    ///
    /// # Errors
    /// [`TreeError::NotEmpty`] and others; as [`Loader::push`].
    pub fn finish(
        self,
        last: Header,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<u64, TreeError> {
        self.tree.finish_all(self.rising, last, observe)?;
        Ok(self.count)
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
        let rising = Rising { levels: Vec::new(), header };
        Ok(Loader { tree: self.clone(), rising, count: 0 })
    }

    /// Fills this empty tree with entries in ascending key order, under the transaction of
    /// `header`, whose commit must follow: the last group carries `last`, which may be it.
    /// Returns the number of entries.
    ///
    /// # Errors
    /// As [`Tree::loader`], [`Loader::push`] and [`Loader::finish`].
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl Iterator<Item = (K, V)>,
        header: Header,
        last: Header,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<u64, TreeError> {
        let mut loader = self.loader(header)?;
        for (key, value) in entries {
            loader.push(key.as_ref(), value.as_ref(), observe)?;
        }
        loader.finish(last, observe)
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

    /// Begins the next node of a level: the one before it is full, and written.
    fn put_in_place(
        &self,
        level: u8,
        fresh: Building,
        rising: &mut Rising,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<(), TreeError> {
        match rising.levels.get_mut(usize::from(level)) {
            None => rising.levels.push(fresh),
            Some(place) => {
                let full = std::mem::replace(place, fresh);
                let page = self.finish(&full, level, rising, observe)?;
                self.add_child(level + 1, full.first_key, page, rising, observe)?;
            }
        }
        Ok(())
    }

    /// Puts a node that is written below one of `level`.
    fn add_child(
        &self,
        level: u8,
        separator: Vec<u8>,
        page: PageNo,
        rising: &mut Rising,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<(), TreeError> {
        let added = rising
            .levels
            .get_mut(usize::from(level))
            .is_some_and(|b| NodeMut::new(&mut b.bytes).insert_child(&separator, page).is_ok());
        if added {
            return Ok(());
        }
        let mut fresh = self.begin_node(Kind::Inner, level, &separator);
        NodeMut::new(&mut fresh.bytes).set_leftmost(page);
        self.put_in_place(level, fresh, rising, observe)
    }

    /// Writes a node to a page of its own.
    fn finish(
        &self,
        done: &Building,
        level: u8,
        rising: &mut Rising,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<PageNo, TreeError> {
        observe(AllocationEvent::Before((self.env.pool.page_size() + 256) as u64))?;
        let claimed = self.env.space.claim(1)?;
        let page = claimed[0];
        let written = self.write_node(done, level, page, rising.header);
        if let Err(e) = written {
            self.env.space.unclaim(&claimed);
            return Err(e);
        }
        observe(AllocationEvent::Used(page, 1))?;
        observe(AllocationEvent::Done)?;
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

    /// Writes what each level has left, from the leaves up: the uppermost node is the root.
    fn finish_all(
        &self,
        mut rising: Rising,
        last: Header,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<(), TreeError> {
        let mut level = 0u8;
        // A leaf has a node above it always: the root stays where it is, and is written last.
        while level == 0 || usize::from(level) + 1 < rising.levels.len() {
            let Some(place) = rising.levels.get_mut(usize::from(level)) else { break };
            let done = std::mem::take(place);
            let page = self.finish(&done, level, &mut rising, observe)?;
            self.add_child(level + 1, done.first_key, page, &mut rising, observe)?;
            level += 1;
        }
        let root = if level == 0 { None } else { rising.levels.pop() };
        self.commit_root(root.as_ref(), level, last, observe)
    }

    fn commit_root(
        &self,
        root: Option<&Building>,
        level: u8,
        last: Header,
        observe: &mut AllocationObserver<'_>,
    ) -> Result<(), TreeError> {
        observe(AllocationEvent::Before((self.env.pool.page_size() + 256) as u64))?;
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
