//! All leaves in the order of their keys, tree by tree. Where several have the same range, one of
//! them decides: what it lacks there has been moved or removed since the others were written.
use std::collections::BTreeSet;

use weir::Sorted;
use weir_base::{AlignedBuf, Lsn, TreeId};
use weir_page::{Node, check};
use weir_pool::PageStore;

use crate::error::SalvageError;
use crate::harvest::{Bound, Claim, Leaf};
use crate::survey::{MapSays, Survey};
use crate::walk::Walked;

/// How sure it is that a leaf is part of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Its page was given back.
    Freed,
    /// Nothing says.
    Unknown,
    /// Its page is in use.
    Used,
    /// A node of its tree names it.
    Linked,
}

/// What is known of the database as a whole, and of its pages.
pub(crate) struct Known<'a> {
    pub(crate) store: &'a dyn PageStore,
    pub(crate) survey: &'a Survey,
    pub(crate) walked: &'a Walked,
    /// Pages are as of one moment: the log was applied to its end.
    pub(crate) is_whole: bool,
}

impl Known<'_> {
    fn standing(&self, leaf: &Leaf) -> Standing {
        let says = self.survey.maps.says(leaf.page);
        let is_linked = self.walked.linked.has(leaf.page);
        match says {
            // A parent may be older than the map then.
            MapSays::Free(lsn) if !self.is_whole && lsn >= leaf.lsn => Standing::Freed,
            _ if is_linked => Standing::Linked,
            MapSays::Used => Standing::Used,
            MapSays::Free(_) if self.is_whole => Standing::Freed,
            MapSays::Free(_) | MapSays::Nothing => Standing::Unknown,
        }
    }
}

/// A leaf that is read, at one of its rows.
pub(crate) struct Active {
    pub(crate) leaf: Leaf,
    pub(crate) standing: Standing,
    bytes: AlignedBuf,
    slot: usize,
    key: Vec<u8>,
}

impl Active {
    pub(crate) fn node(&self) -> Node<&[u8]> {
        Node::new(&self.bytes[..])
    }

    /// Where its row at the present key lies.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// To the next row; `false`: there is none.
    fn advance(&mut self) -> bool {
        self.slot += 1;
        if self.slot >= self.node().count() {
            return false;
        }
        let slot = self.slot;
        Node::new(&self.bytes[..]).key_into(slot, &mut self.key);
        true
    }

    /// What it is compared by: where pages are as of one moment, how sure it is that it belongs to
    /// the tree; else by its age alone, as parents and maps may be older than it.
    fn authority(&self, is_whole: bool) -> (Standing, Lsn) {
        let standing = match self.standing {
            Standing::Freed => Standing::Freed,
            standing if is_whole => standing,
            _ => Standing::Unknown,
        };
        (standing, self.leaf.lsn)
    }
}

/// What is reported of rows and ranges, in the order of keys.
pub(crate) trait Sink {
    /// A tree begins. `false`: nothing of it is wanted.
    fn begin(&mut self, tree: TreeId) -> Result<bool, SalvageError>;
    /// The row under this key is where `from` stands. `is_stray`: it is reported as one that may be
    /// older, or removed since.
    fn row(&mut self, key: &[u8], from: &Active, is_stray: bool) -> Result<(), SalvageError>;
    /// A row was left out, because a newer leaf of its range does not have it.
    fn superseded(&mut self);
    /// A node that is named is not there; rows of its range found elsewhere.
    fn missing(&mut self, claim: &Claim, found: u64);
    /// The tree is over.
    fn end(&mut self) -> Result<(), SalvageError>;
}

/// A claim whose range the sweep is in.
struct Open {
    claim: Claim,
    found: u64,
}

impl Open {
    fn has_bounds(&self) -> bool {
        self.claim.low != Bound::Unknown && self.claim.high != Bound::Unknown
    }
}

/// The sweep through one harvest.
pub(crate) struct Sweep<'a> {
    known: &'a Known<'a>,
    leaves: Sorted,
    claims: Sorted,
    next_leaf: Option<Leaf>,
    next_claim: Option<Claim>,
    active: Vec<Active>,
    open: Vec<Open>,
    /// Trees of which a leaf is missing: what was freed may be all that is left of it.
    wanting: &'a BTreeSet<TreeId>,
    done: u64,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(
        known: &'a Known<'a>,
        leaves: Sorted,
        claims: Sorted,
        wanting: &'a BTreeSet<TreeId>,
    ) -> Result<Self, SalvageError> {
        let (active, open) = (Vec::new(), Vec::new());
        let (next_leaf, next_claim) = (None, None);
        let mut sweep =
            Sweep { known, leaves, claims, next_leaf, next_claim, active, open, wanting, done: 0 };
        sweep.take_leaf()?;
        sweep.take_claim()?;
        Ok(sweep)
    }

    fn take_leaf(&mut self) -> Result<Option<Leaf>, SalvageError> {
        let next = self.leaves.step()?.and_then(Leaf::of);
        Ok(std::mem::replace(&mut self.next_leaf, next))
    }

    fn take_claim(&mut self) -> Result<Option<Claim>, SalvageError> {
        let next = self.claims.step()?.and_then(Claim::of);
        Ok(std::mem::replace(&mut self.next_claim, next))
    }

    /// Through all trees.
    pub(crate) fn run(
        mut self,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), SalvageError> {
        loop {
            let of_leaf = self.next_leaf.as_ref().map(|leaf| leaf.tree);
            let of_claim = self.next_claim.as_ref().map(|claim| claim.tree);
            let Some(tree) = of_leaf.into_iter().chain(of_claim).min() else { return Ok(()) };
            if sink.begin(tree)? {
                self.tree(tree, sink, progress)?;
                sink.end()?;
            } else {
                self.skip(tree)?;
            }
        }
    }

    fn skip(&mut self, tree: TreeId) -> Result<(), SalvageError> {
        while self.next_leaf.as_ref().is_some_and(|leaf| leaf.tree == tree) {
            self.take_leaf()?;
        }
        while self.next_claim.as_ref().is_some_and(|claim| claim.tree == tree) {
            self.take_claim()?;
        }
        Ok(())
    }

    fn tree(
        &mut self,
        tree: TreeId,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), SalvageError> {
        while let Some(key) = self.next_key(tree) {
            self.reach(tree, Some(&key), sink)?;
            // What has come may begin before.
            self.decide(&key, sink)?;
            self.active.retain_mut(|active| active.key != key || active.advance());
            self.done += 1;
            if self.done.is_multiple_of(1 << 12) {
                progress(self.done);
            }
        }
        self.reach(tree, None, sink)?;
        for open in self.open.drain(..) {
            close(&open, sink);
        }
        Ok(())
    }

    /// The lowest key of any leaf that is not done.
    fn next_key(&self, tree: TreeId) -> Option<Vec<u8>> {
        let coming = self.next_leaf.as_ref().filter(|leaf| leaf.tree == tree);
        let keys = self.active.iter().map(|active| &active.key);
        keys.chain(coming.map(|leaf| &leaf.first)).min().cloned()
    }

    /// Takes in the leaves and claims of this tree that begin up to `key`, or all.
    fn reach(
        &mut self,
        tree: TreeId,
        key: Option<&[u8]>,
        sink: &mut dyn Sink,
    ) -> Result<(), SalvageError> {
        let is_reached = |of: TreeId, from: &[u8]| of == tree && key.is_none_or(|key| from <= key);
        while self.next_leaf.as_ref().is_some_and(|leaf| is_reached(leaf.tree, &leaf.first)) {
            if let Some(leaf) = self.take_leaf()? {
                self.activate(leaf);
            }
        }
        while self.next_claim.as_ref().is_some_and(|claim| is_reached(claim.tree, claim.from())) {
            if let Some(claim) = self.take_claim()? {
                self.open.push(Open { claim, found: 0 });
            }
        }
        self.open.retain(|open| {
            let is_over = key.is_some_and(|key| open.claim.ends_before(key));
            if is_over {
                close(open, sink);
            }
            !is_over
        });
        Ok(())
    }

    fn activate(&mut self, leaf: Leaf) {
        let standing = self.known.standing(&leaf);
        if standing == Standing::Freed && !self.wanting.contains(&leaf.tree) {
            return;
        }
        let mut bytes = AlignedBuf::zeroed(self.known.store.page_size());
        // It could be read a moment ago; what cannot be read any more is missing.
        if self.known.store.read(leaf.page, &mut bytes).is_err() || check(&bytes).is_err() {
            return;
        }
        let key = leaf.first.clone();
        self.active.push(Active { leaf, standing, bytes, slot: 0, key });
    }

    fn decide(&mut self, key: &[u8], sink: &mut dyn Sink) -> Result<(), SalvageError> {
        let is_whole = self.known.is_whole;
        let is_in_lost = self.open.iter().any(|open| is_lost_leaf(open) && open.has_bounds());
        // A freed leaf has a say only where the leaf that had its rows is missing.
        let has_say = |active: &&Active| active.standing != Standing::Freed || is_in_lost;
        let all = self.active.iter().filter(has_say);
        let Some(best) = all.max_by_key(|active| active.authority(is_whole)) else { return Ok(()) };
        let is_claimed_by_other = |open: &Open| {
            let claim = &open.claim;
            claim.is_kept
                && open.has_bounds()
                && claim.page != best.leaf.page
                && match is_whole {
                    true => best.standing < Standing::Linked,
                    false => claim.lsn > best.leaf.lsn,
                }
        };
        if best.key != key || self.open.iter().any(is_claimed_by_other) {
            // Reported once a key; freed leaves are reported nowhere.
            let live = |active: &&Active| active.standing != Standing::Freed && active.key == key;
            if self.active.iter().any(|active| live(&active)) {
                sink.superseded();
            }
            return Ok(());
        }
        let is_stray = best.standing <= Standing::Unknown;
        sink.row(key, best, is_stray)?;
        for open in self.open.iter_mut().filter(|open| !open.claim.is_kept) {
            open.found += 1;
        }
        Ok(())
    }
}

fn is_lost_leaf(open: &Open) -> bool {
    open.claim.level == 0 && !open.claim.is_kept
}

fn close(open: &Open, sink: &mut dyn Sink) {
    if !open.claim.is_kept {
        sink.missing(&open.claim, open.found);
    }
}
