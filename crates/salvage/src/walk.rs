//! From a tree's root down to its leaves, as far as inner nodes can be read: which leaves are part
//! of the tree, and which range of keys each has. Leaves are not read.
use std::collections::BTreeSet;

use weir_base::{AlignedBuf, Lsn, PageNo, TreeId};
use weir_page::{Kind, Node, check};
use weir_pool::PageStore;

use crate::bits::Bits;
use crate::error::SalvageError;
use crate::harvest::{Bound, Claim, Harvest};
use crate::survey::{MapSays, Survey};

/// What all trees' walks come to.
#[derive(Default)]
pub(crate) struct Walked {
    /// Leaves that a node of their tree names.
    pub(crate) linked: Bits,
    /// Inner nodes that were visited.
    inner: Bits,
    /// Trees of which a leaf is missing.
    pub(crate) wanting: BTreeSet<TreeId>,
}

/// A node to be visited.
struct Visit {
    page: PageNo,
    /// `None`: a root may have any.
    level: Option<u8>,
    low: Bound,
    high: Bound,
    lsn: Lsn,
}

/// A walk through one tree.
pub(crate) struct Walk<'a> {
    pub(crate) store: &'a dyn PageStore,
    pub(crate) survey: &'a Survey,
    pub(crate) harvest: &'a mut Harvest,
    pub(crate) walked: &'a mut Walked,
    pub(crate) tree: TreeId,
}

impl Walk<'_> {
    /// Down from the root, which the catalog names; then from inner nodes in use that no node above
    /// leads to, because that one is damaged: what lies beyond the first and the last of their
    /// children is not known.
    pub(crate) fn run(&mut self, root: Option<PageNo>) -> Result<(), SalvageError> {
        if let Some(page) = root {
            let (low, high) = (Bound::End, Bound::End);
            self.down(Visit { page, level: None, low, high, lsn: Lsn(u64::MAX) })?;
        }
        let (survey, tree) = (self.survey, self.tree);
        let from = survey.inner.partition_point(|inner| inner.tree < tree);
        for inner in survey.inner[from..].iter().take_while(|inner| inner.tree == tree) {
            if self.walked.inner.has(inner.page) || survey.maps.says(inner.page) != MapSays::Used {
                continue;
            }
            let (low, high) = (Bound::Unknown, Bound::Unknown);
            self.down(Visit { page: inner.page, level: None, low, high, lsn: Lsn(u64::MAX) })?;
        }
        Ok(())
    }

    fn down(&mut self, from: Visit) -> Result<(), SalvageError> {
        let mut waiting = vec![from];
        let mut page = AlignedBuf::zeroed(self.store.page_size());
        while let Some(visit) = waiting.pop() {
            let is_read = self.store.read(visit.page, &mut page).is_ok() && check(&page).is_ok();
            let node = Node::new(&page[..]);
            let fits = is_read
                && node.tree() == self.tree
                && visit.level.is_none_or(|level| node.level() == level);
            match node.kind() {
                Some(Kind::Leaf) if fits && visit.level.is_none() => self.leaf(visit)?,
                Some(Kind::Inner) if fits && self.walked.inner.is_new(visit.page) => {
                    self.children(node, &visit, &mut waiting)?;
                }
                _ => self.lost(visit)?,
            }
        }
        Ok(())
    }

    fn children(
        &mut self,
        node: Node<&[u8]>,
        above: &Visit,
        waiting: &mut Vec<Visit>,
    ) -> Result<(), SalvageError> {
        let (count, lsn) = (node.count(), above.lsn.min(node.lsn()));
        for index in 0..=count {
            let low = match index {
                0 => above.low.clone(),
                _ => Bound::At(node.key(index - 1)),
            };
            let high = if index == count { above.high.clone() } else { Bound::At(node.key(index)) };
            let level = Some(node.level() - 1);
            let visit = Visit { page: node.child(index), level, low, high, lsn };
            if node.level() == 1 {
                self.leaf(visit)?;
            } else {
                waiting.push(visit);
            }
        }
        Ok(())
    }

    fn leaf(&mut self, visit: Visit) -> Result<(), SalvageError> {
        let is_kept = self.survey.leaves.has(visit.page);
        if is_kept {
            self.walked.linked.set(visit.page);
        } else {
            self.walked.wanting.insert(self.tree);
        }
        self.claim(visit, 0, is_kept)
    }

    fn lost(&mut self, visit: Visit) -> Result<(), SalvageError> {
        let level = visit.level.unwrap_or(u8::MAX);
        self.claim(visit, level, false)
    }

    fn claim(&mut self, visit: Visit, level: u8, is_kept: bool) -> Result<(), SalvageError> {
        let Visit { page, low, high, lsn, .. } = visit;
        let claim = Claim { tree: self.tree, low, high, page, lsn, level, is_kept };
        claim.push(&mut self.harvest.claims)
    }
}
