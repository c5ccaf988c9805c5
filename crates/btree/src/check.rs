//! Checking a whole tree: every page's bytes, the order of all keys, the range of every leaf, the
//! levels, and every overflow chain.
use std::collections::BTreeSet;

use weir_base::PageNo;
use weir_page::{Node, check};

use crate::descend::{DescentTarget, Fences};
use crate::error::TreeError;
use crate::overflow::ChainHead;
use crate::tree::Tree;

/// What a tree consists of.
#[derive(Clone, Debug, Default)]
pub struct TreeReport {
    /// Live rows.
    pub rows: u64,
    /// Delete-marked rows.
    pub marked_rows: u64,
    /// Leaves.
    pub leaves: u64,
    /// Nodes above the leaves.
    pub inner_nodes: u64,
    /// Overflow pages.
    pub overflow_pages: u64,
    /// Levels, leaves included.
    pub height: u32,
    /// Bytes in use on leaves, headers included.
    pub leaf_bytes_used: u64,
    /// All pages of the tree.
    pub pages: BTreeSet<PageNo>,
}

impl Tree {
    /// Checks the whole tree and says what it consists of. `visit` is called with each leaf's
    /// number of rows, for progress.
    ///
    /// # Errors
    /// The first damage found: [`TreeError::Damaged`] or [`TreeError::Pool`], which name the page.
    pub fn check(&self, visit: &mut dyn FnMut(u64)) -> Result<TreeReport, TreeError> {
        let mut report = TreeReport::default();
        let mut low: Option<Vec<u8>> = None;
        let mut ahead = Ahead::default();
        loop {
            let (path, fences) = self.path_copy(low.as_deref())?;
            if fences.low != low {
                let page = path.last().map_or(self.root, |(page, _)| *page);
                return Err(
                    self.damaged(page, "a leaf's range does not begin where the one before ends")
                );
            }
            report.height = path.len() as u32;
            for (depth, (page, bytes)) in path.iter().enumerate() {
                let is_leaf = depth + 1 == path.len();
                if report.pages.insert(*page) {
                    self.check_node(*page, bytes, (path.len() - 1 - depth) as u8)?;
                    if !is_leaf {
                        report.inner_nodes += 1;
                    }
                } else if is_leaf {
                    return Err(self.damaged(*page, "a leaf is reached twice"));
                }
            }
            ahead.bring_in(self, &path);
            let Some((page, leaf)) = path.last() else { break };
            self.check_leaf(*page, leaf, &fences, &mut report)?;
            visit(Node::new(&leaf[..]).count() as u64);
            match fences.high {
                Some(high) => low = Some(high),
                None => break,
            }
        }
        Ok(report)
    }

    /// Copies of all nodes on the way to the leaf whose range begins at `low`, each still the
    /// child of the one above when it was copied.
    #[allow(clippy::type_complexity)]
    fn path_copy(&self, low: Option<&[u8]>) -> Result<(Vec<(PageNo, Vec<u8>)>, Fences), TreeError> {
        let target = low.map_or(DescentTarget::First, DescentTarget::Key);
        'again: loop {
            let mut fences = Fences::default();
            let Some(arrived) = self.try_descend_fenced(target, &mut fences)? else { continue };
            if !arrived.node.still() {
                continue;
            }
            let mut path = Vec::new();
            let mut level = 0;
            // The levels above, found by going down to each: a change in between shows in the
            // fences of a second look.
            loop {
                let Some(at) = self.try_descend(target, level)? else { continue 'again };
                let mut bytes = vec![0; self.env.pool.page_size()];
                at.node.copy_to(&mut bytes);
                if !at.node.still() {
                    continue 'again;
                }
                path.push((at.node.page(), bytes));
                if at.parent.is_none() {
                    break;
                }
                level += 1;
            }
            path.reverse();
            let mut again = Fences::default();
            let Some(_) = self.try_descend_fenced(target, &mut again)? else { continue };
            if again.low == fences.low && again.high == fences.high && arrived.node.still() {
                return Ok((path, fences));
            }
        }
    }

    fn check_node(&self, page: PageNo, bytes: &[u8], level: u8) -> Result<(), TreeError> {
        check(bytes).map_err(|found| self.damaged(page, found.to_string()))?;
        let node = Node::new(bytes);
        if node.tree() != self.id {
            return Err(self.damaged(page, format!("it belongs to tree {}", node.tree())));
        }
        if node.level() != level || node.is_inner() != (level > 0) {
            return Err(self.damaged(page, format!("it is not a node of level {level}")));
        }
        Ok(())
    }

    fn check_leaf(
        &self,
        page: PageNo,
        leaf: &[u8],
        fences: &Fences,
        report: &mut TreeReport,
    ) -> Result<(), TreeError> {
        let node = Node::new(leaf);
        report.leaves += 1;
        report.leaf_bytes_used += node.used_bytes() as u64;
        if node.count() > 0 {
            let below = fences.low.as_ref().is_some_and(|low| node.key(0) < *low);
            let above =
                fences.high.as_ref().is_some_and(|high| node.key(node.count() - 1) >= *high);
            if below || above {
                return Err(self.damaged(page, "a key lies outside its leaf's range"));
            }
        }
        for slot in 0..node.count() {
            if node.is_deleted(slot) {
                report.marked_rows += 1;
            } else {
                report.rows += 1;
            }
            if node.is_overflow(slot) {
                let head = ChainHead::decode(node.value(slot)).ok_or_else(|| {
                    self.damaged(page, "a row's pointer to its overflow pages is malformed")
                })?;
                self.check_chain(page, &head, report)?;
            }
        }
        Ok(())
    }

    fn check_chain(
        &self,
        leaf: PageNo,
        head: &ChainHead,
        report: &mut TreeReport,
    ) -> Result<(), TreeError> {
        for page in self.chains().page_list(head)? {
            report.overflow_pages += 1;
            if !report.pages.insert(page) {
                return Err(
                    self.damaged(page, format!("an overflow page of leaf {leaf} is used twice"))
                );
            }
        }
        Ok(())
    }
}

/// Leaves read at a time, in the order in which they lie in the file: one after the other, as the
/// walk comes to them, a disk would do one thing at a time.
const AHEAD_PAGES: u64 = 64;
/// And no more than this part of a small pool.
const AHEAD_POOL_SHARE: u64 = 8;

/// How far the leaves that the walk comes to next have been read in.
#[derive(Default)]
struct Ahead {
    /// Below this node,
    parent: Option<PageNo>,
    /// those before this one.
    until: usize,
}

impl Ahead {
    /// Reads in the next leaves below the same node, when the walk is where the last ones end, and
    /// the first overflow pages of the leaf where it is.
    fn bring_in(&mut self, tree: &Tree, path: &[(PageNo, Vec<u8>)]) {
        let pool = &tree.env.pool;
        let most = (pool.residence().frames / AHEAD_POOL_SHARE).clamp(1, AHEAD_PAGES) as usize;
        let mut pages = Vec::new();
        if let [.., (parent, bytes), (leaf, _)] = path {
            let node = Node::new(&bytes[..]);
            let children = node.count() + 1;
            let at = (0..children).find(|&index| node.child(index) == *leaf).unwrap_or(0);
            if self.parent != Some(*parent) || at + 1 >= self.until {
                let until = (at + 1 + most).min(children);
                pages.extend((at + 1..until).map(|index| node.child(index)));
                (self.parent, self.until) = (Some(*parent), until);
            }
        }
        if let Some((_, bytes)) = path.last() {
            let node = Node::new(&bytes[..]);
            let long = (0..node.count()).filter(|&slot| node.is_overflow(slot));
            let heads = long.filter_map(|slot| ChainHead::decode(node.value(slot)));
            pages.extend(heads.map(|head| head.first));
        }
        pages.sort_unstable();
        // What cannot be read is reported where the walk comes to it.
        let _ = pool.bring_in(&pages);
    }
}
