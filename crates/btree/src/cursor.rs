//! Walking in key order, both ways, while others change the tree.
//!
//! The cursor works on a copy of one leaf, together with the range of keys that the leaf stood for.
//! Before each step it asks whether the leaf is still as copied; if not, it finds its place again
//! by key. The next leaf is found by going down to the end of the range: no links between leaves.
//! A move that fails leaves it where it would have gone on, so that the same move tries again.
//!
//! Where pages are only looked at (`PageUse::LookedAt`), leaves that cannot be read are passed
//! over: the node above them knows their range.
use std::ops::Range;

use weir_base::PageNo;
use weir_page::{Flags, Node, Stamp};
use weir_pool::PageToken;

use crate::descend::{DescentTarget, Fences};
use crate::error::TreeError;
use crate::read_ahead::{ReadAhead, Way};
use crate::tree::{LeafState, RowHead, Tree};

/// A position in a tree. Delete-marked rows are passed over unless asked for. After a move that has
/// failed it stands on no row, but between those that it has passed and those that it has not come
/// to: the same move tries again, and the other way it comes back.
pub struct Cursor {
    pub(crate) tree: Tree,
    leaf: Vec<u8>,
    copies: u64,
    token: Option<PageToken>,
    pub(crate) fences: Fences,
    pub(crate) ahead: ReadAhead,
    /// Rows that will be asked for: from this key on,
    pub(crate) expected_from: Vec<u8>,
    /// and below this one.
    pub(crate) expected_to: Option<Vec<u8>>,
    /// How many rows will be asked for after a seek, and how many of these lie behind the leaves
    /// that the cursor has left; 0: nothing is known.
    pub(crate) rows_expected: u64,
    pub(crate) rows_left: u64,
    /// Where the cursor came into the leaf.
    pub(crate) entered: usize,
    /// The rows of the leaf that are shown: all but where its range is not what the node above
    /// says.
    pub(crate) rows: Range<usize>,
    slot: usize,
    /// The key of the row stood on; kept apart because the leaf's copy may be replaced.
    key: Vec<u8>,
    stands: Stands,
    with_marked: bool,
    value: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Nowhere,
    OnRow,
    /// On none; in front of `key`.
    Before,
    /// On none; behind all rows.
    AtEnd,
}

/// Where to stand after finding a leaf.
enum Stand<'k> {
    AtOrAfter(&'k [u8]),
    After(&'k [u8]),
    Before(&'k [u8]),
    First,
    Last,
}

impl Cursor {
    /// A cursor that stands nowhere.
    #[must_use]
    pub fn new(tree: Tree) -> Self {
        Cursor {
            tree,
            leaf: Vec::new(),
            copies: 0,
            token: None,
            fences: Fences::default(),
            ahead: ReadAhead::default(),
            expected_from: Vec::new(),
            expected_to: None,
            rows_expected: 0,
            rows_left: 0,
            entered: 0,
            rows: 0..0,
            slot: 0,
            key: Vec::new(),
            stands: Stands::Nowhere,
            with_marked: false,
            value: Vec::new(),
        }
    }

    /// As [`Cursor::new`], but stands on delete-marked rows too.
    #[must_use]
    pub fn with_marked(tree: Tree) -> Self {
        Cursor { with_marked: true, ..Self::new(tree) }
    }

    /// The tree walked.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Copies the bytes of the row stood on as they lie in the leaf (the value, or the
    /// [`crate::ChainHead`] of a long one) into `out`, emptied first. `None`: it stands on none.
    pub fn inline(&self, out: &mut Vec<u8>) -> Option<RowHead> {
        let head = self.head()?;
        out.clear();
        self.node().value_into(self.slot, out);
        Some(head)
    }

    fn node(&self) -> Node<&[u8]> {
        Node::new(&self.leaf)
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.is_on_row() { &self.key } else { &[] }
    }

    /// What is known of the row stood on, as it was when the cursor came to it.
    #[must_use]
    pub fn head(&self) -> Option<RowHead> {
        let node = self.node();
        self.is_on_row()
            .then(|| RowHead { stamp: node.stamp(self.slot), flags: node.flags(self.slot) })
    }

    /// The writer of the row stood on.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        self.head().map(|head| head.stamp)
    }

    /// The value of the row stood on, `None` when on none, or when a long value was replaced or
    /// removed since the cursor came to it and nothing is there any more.
    ///
    /// # Errors
    /// [`TreeError`] when overflow pages cannot be read.
    pub fn value(&mut self) -> Result<Option<&[u8]>, TreeError> {
        let Some(head) = self.head() else { return Ok(None) };
        let node = Node::new(&self.leaf[..]);
        self.value.clear();
        node.value_into(self.slot, &mut self.value);
        if head.flags.overflow && !self.tree.fetch(&mut self.value)? {
            // Replaced meanwhile: the row as it is now.
            let now = self.tree.get(&self.key, &mut self.value)?;
            if now.is_none_or(|head| head.flags.deleted) {
                return Ok(None);
            }
        }
        Ok(Some(&self.value))
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, TreeError> {
        self.find_anew(&Stand::AtOrAfter(key))
    }

    /// Moves to the last row whose key is below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool, TreeError> {
        self.find_anew(&Stand::Before(key))
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_first(&mut self) -> Result<bool, TreeError> {
        self.find_anew(&Stand::First)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_last(&mut self) -> Result<bool, TreeError> {
        self.find_anew(&Stand::Last)
    }

    /// Moves to the row behind the one stood on.
    ///
    /// # Errors
    /// [`TreeError`].
    #[allow(clippy::should_implement_trait)] // Not an iterator: rows are borrowed from the cursor.
    pub fn next(&mut self) -> Result<bool, TreeError> {
        if self.is_on_row() && self.is_fresh() {
            let moved = self.forward(self.slot + 1);
            return self.left_on_failure(moved, true);
        }
        let key = std::mem::take(&mut self.key);
        match self.stands {
            Stands::OnRow => self.find(&Stand::After(&key)),
            Stands::Before => self.find(&Stand::AtOrAfter(&key)),
            Stands::Nowhere | Stands::AtEnd => Ok(false),
        }
    }

    /// Moves to the row before the one stood on.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn prev(&mut self) -> Result<bool, TreeError> {
        if self.is_on_row() && self.is_fresh() {
            let moved = self.backward(self.slot);
            return self.left_on_failure(moved, false);
        }
        let key = std::mem::take(&mut self.key);
        match self.stands {
            Stands::OnRow | Stands::Before => self.find(&Stand::Before(&key)),
            Stands::AtEnd => self.find(&Stand::Last),
            Stands::Nowhere => Ok(false),
        }
    }

    /// Stands between rows from now on: behind the one stood on, or in front of it. For a caller
    /// that cannot do with that row what is to be done.
    pub fn leave(&mut self, behind: bool) {
        if !self.is_on_row() {
            return;
        }
        if behind {
            self.key.push(0);
        }
        self.stands = Stands::Before;
    }

    fn left_on_failure<T>(
        &mut self,
        moved: Result<T, TreeError>,
        behind: bool,
    ) -> Result<T, TreeError> {
        if moved.is_err() {
            self.leave(behind);
        }
        moved
    }

    fn is_on_row(&self) -> bool {
        self.stands == Stands::OnRow
    }

    /// Whether the leaf stood on is still as the cursor copied it.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.leaf_state().is_unchanged()
    }

    /// The leaf stood on, as the cursor copied it.
    #[must_use]
    pub fn leaf_state(&self) -> LeafState<'_> {
        LeafState { tree: &self.tree, token: self.token }
    }

    /// How many leaves it has copied so far: as long as this stays the same, all that it shows
    /// comes from one copy.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Moves to the next row of the copied leaf, or to nothing at its end, without asking whether
    /// the leaf has changed since it was copied: [`Cursor::next_leaf`] goes on from there. `None`
    /// also when it stands on none.
    #[inline]
    pub fn next_in_leaf(&mut self) -> Option<RowHead> {
        if !self.is_on_row() {
            return None;
        }
        let node = Node::new(&self.leaf[..]);
        for slot in self.slot + 1..self.rows.end {
            if !self.with_marked && node.is_deleted(slot) {
                continue;
            }
            self.slot = slot;
            // The key stood on is of this leaf: it begins alike.
            self.key.truncate(node.prefix_len());
            self.key.extend_from_slice(node.suffix(slot));
            return Some(RowHead { stamp: node.stamp(slot), flags: node.flags(slot) });
        }
        None
    }

    /// Moves to the first row behind the range of keys that the copied leaf stood for, whatever has
    /// become of it since: no row behind that range is passed over or met twice.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn next_leaf(&mut self) -> Result<bool, TreeError> {
        if !self.is_on_row() {
            return Ok(false);
        }
        let moved = self.forward(self.rows.end);
        self.left_on_failure(moved, true)
    }

    /// The bytes of the row stood on as they lie in the leaf (the value, or the
    /// [`crate::ChainHead`] of a long one); empty when on none.
    #[inline]
    #[must_use]
    pub fn inline_bytes(&self) -> &[u8] {
        if self.is_on_row() { self.node().value(self.slot) } else { &[] }
    }

    /// Copies the leaf that `target` leads to.
    fn load(&mut self, target: DescentTarget<'_>) -> Result<(), TreeError> {
        match self.copy_leaf(target) {
            Ok(()) if self.tree.env.pool.is_looked_at() => self.keep_to_range(),
            Ok(()) => self.rows = 0..self.node().count(),
            Err(e) => self.pass_over(e)?,
        }
        Ok(())
    }

    /// Goes on as if the leaf that cannot be read, or all leaves below a node that cannot, were one
    /// that is empty.
    ///
    /// # Errors
    /// `found`, where that is not to be done, or nothing of the tree would be left.
    #[cold]
    fn pass_over(&mut self, found: TreeError) -> Result<(), TreeError> {
        let is_all = self.fences.low.is_none() && self.fences.high.is_none();
        if is_all || !self.tree.passes_over(&found) {
            return Err(found);
        }
        self.leaf.clear();
        self.leaf.resize(self.tree.env.pool.page_size(), 0);
        self.rows = 0..0;
        Ok(())
    }

    /// Shows of the leaf what lies in the range that the nodes above give it: they may be of
    /// another moment than it is, and a row is to be shown once.
    #[cold]
    fn keep_to_range(&mut self) {
        let (node, Fences { low, high, .. }) = (Node::new(&self.leaf[..]), &self.fences);
        let at = |key: &Vec<u8>| match node.search(key) {
            Ok(slot) | Err(slot) => slot,
        };
        let end = high.as_ref().map_or(node.count(), at);
        self.rows = low.as_ref().map_or(0, at).min(end)..end;
    }

    fn copy_leaf(&mut self, target: DescentTarget<'_>) -> Result<(), TreeError> {
        self.token = None;
        loop {
            let Some(arrived) = self.tree.try_descend_fenced(target, &mut self.fences)? else {
                continue;
            };
            let look = arrived.node;
            self.leaf.resize(self.tree.env.pool.page_size(), 0);
            look.copy_to(&mut self.leaf);
            if !look.still() {
                continue;
            }
            self.token = Some(look.token());
            self.copies += 1;
            return Ok(());
        }
    }

    /// As [`Cursor::find`], from wherever the caller wants to be: if that is in another leaf, what
    /// was known of the leaves behind this one means nothing there.
    fn find_anew(&mut self, stand: &Stand<'_>) -> Result<bool, TreeError> {
        self.rows_left = self.rows_expected;
        let (was, copied) = (self.token.map(|_| self.page()), self.copies);
        let found = self.find(stand);
        if self.copies != copied + 1 || Some(self.page()) != was {
            self.ahead.begin_anew();
        }
        found
    }

    fn find(&mut self, stand: &Stand<'_>) -> Result<bool, TreeError> {
        self.stands = Stands::Nowhere;
        let found = self.find_leaf(stand);
        if found.is_err() {
            self.key.clear();
            self.stands = Stands::Before;
            match *stand {
                Stand::AtOrAfter(key) | Stand::Before(key) => self.key.extend_from_slice(key),
                Stand::After(key) => {
                    self.key.extend_from_slice(key);
                    self.key.push(0);
                }
                Stand::First => {}
                Stand::Last => self.stands = Stands::AtEnd,
            }
        }
        found
    }

    fn find_leaf(&mut self, stand: &Stand<'_>) -> Result<bool, TreeError> {
        match *stand {
            Stand::AtOrAfter(key) => {
                self.load(DescentTarget::Key(key))?;
                let (Ok(slot) | Err(slot)) = self.node().search(key);
                self.enter_up(slot)
            }
            Stand::After(key) => {
                self.load(DescentTarget::Key(key))?;
                let slot = match self.node().search(key) {
                    Ok(slot) => slot + 1,
                    Err(slot) => slot,
                };
                self.enter_up(slot)
            }
            Stand::Before(key) => {
                self.load(DescentTarget::Before(key))?;
                let (Ok(slot) | Err(slot)) = self.node().search(key);
                self.enter_down(slot)
            }
            Stand::First => {
                self.load(DescentTarget::First)?;
                self.enter_up(0)
            }
            Stand::Last => {
                self.load(DescentTarget::Last)?;
                self.enter_down(self.rows.end)
            }
        }
    }

    /// As [`Cursor::forward`], in a leaf that the cursor has come to.
    fn enter_up(&mut self, slot: usize) -> Result<bool, TreeError> {
        self.entered = slot;
        self.forward(slot)
    }

    /// As [`Cursor::backward`], in a leaf that the cursor has come to.
    fn enter_down(&mut self, slot: usize) -> Result<bool, TreeError> {
        self.entered = slot;
        self.backward(slot)
    }

    /// Stands on the first live row at or behind `slot`, in this leaf or a later one.
    fn forward(&mut self, mut slot: usize) -> Result<bool, TreeError> {
        loop {
            while slot < self.rows.end {
                if self.with_marked || !self.node().is_deleted(slot) {
                    return Ok(self.stand_on(slot));
                }
                slot += 1;
            }
            let Some(high) = self.fences.high.take() else {
                self.stands = Stands::Nowhere;
                return Ok(false);
            };
            self.read_ahead(Way::Up, &high);
            self.load(DescentTarget::Key(&high))?;
            if self.fences.high.as_ref().is_some_and(|next| *next <= high) {
                return Err(self.tree.damaged(self.page(), "its range ends before it begins"));
            }
            // It goes on this way: while this leaf's rows are looked at, the next one comes.
            if let Some(behind) = self.fences.behind {
                self.tree.env.pool.prefetch(behind);
            }
            // The leaf may have been joined with the one before: begin where the last one ended.
            slot = match self.node().search(&high) {
                Ok(slot) | Err(slot) => slot,
            };
            self.entered = slot;
        }
    }

    /// Stands on the last live row before `slot`, in this leaf or an earlier one.
    fn backward(&mut self, mut slot: usize) -> Result<bool, TreeError> {
        loop {
            while slot > self.rows.start {
                slot -= 1;
                if self.with_marked || !self.node().is_deleted(slot) {
                    return Ok(self.stand_on(slot));
                }
            }
            let Some(low) = self.fences.low.take() else {
                self.stands = Stands::Nowhere;
                return Ok(false);
            };
            self.read_ahead(Way::Down, &low);
            self.load(DescentTarget::Before(&low))?;
            if self.fences.low.as_ref().is_some_and(|next| *next >= low) {
                return Err(self.tree.damaged(self.page(), "its range ends before it begins"));
            }
            if let Some(before) = self.fences.before {
                self.tree.env.pool.prefetch(before);
            }
            slot = match self.node().search(&low) {
                Ok(slot) | Err(slot) => slot,
            };
            self.entered = slot;
        }
    }

    fn stand_on(&mut self, slot: usize) -> bool {
        self.slot = slot;
        self.stands = Stands::OnRow;
        let node = Node::new(&self.leaf[..]);
        self.key.clear();
        node.key_into(slot, &mut self.key);
        true
    }

    /// The page that the cursor's copy was taken from.
    #[must_use]
    pub fn page(&self) -> PageNo {
        self.node().page_no()
    }

    /// The marks of the row stood on.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.head().map_or(Flags::NONE, |head| head.flags)
    }
}
