//! About how many pages a tree has: a few walks down, evenly spread, tell how many children nodes
//! of each level have, and how many pages the long values of a leaf take.
use std::cell::Cell;

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::overflow::ChainHead;
use crate::tree::Tree;

/// So many walks, each of a page a level.
const WALKS: u64 = 16;
/// How often a walk that met changes begins again.
const TRIES_MAX: u32 = 64;

/// About how many pages a tree has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeSize {
    /// Leaves.
    pub leaf_pages: u64,
    /// Nodes above the leaves.
    pub inner_pages: u64,
    /// Pages of long values.
    pub value_pages: u64,
}

impl TreeSize {
    /// All of them.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.leaf_pages + self.inner_pages + self.value_pages
    }
}

/// What one walk has met: the children of each node, the root's first, and pages of long values of
/// its leaf.
struct Met {
    children: Vec<u64>,
    value_pages: u64,
}

impl Tree {
    /// About how many pages the tree has: exact up to two levels, but for long values; otherwise
    /// off by as much as nodes differ. Reads 16 leaves and what is above them.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn size(&self) -> Result<TreeSize, TreeError> {
        let mut met: Vec<Met> = Vec::new();
        for nth in 0..WALKS {
            let Some(walk) = self.meet(((nth * 2 + 1) << 32) / (WALKS * 2))? else { continue };
            // The root has split, or gone down to its child, meanwhile.
            if met.last().is_some_and(|last| last.children.len() != walk.children.len()) {
                met.clear();
            }
            met.push(walk);
        }
        Ok(extrapolate(&met))
    }

    fn meet(&self, part: u64) -> Result<Option<Met>, TreeError> {
        let (mut value, left) = (Vec::new(), Cell::new(0));
        for _ in 0..TRIES_MAX {
            left.set(part);
            let mut walk = Met { children: Vec::new(), value_pages: 0 };
            let arrived = self.walk(DescentTarget::Part(&left), 0, &mut |node, _| {
                walk.children.push(node.node().count() as u64 + 1);
            })?;
            let Some(leaf) = arrived else { continue };
            let view = leaf.node.node();
            for slot in (0..view.count()).filter(|&slot| view.is_overflow(slot)) {
                value.clear();
                view.value_into(slot, &mut value);
                // What is malformed was read while it changed, or is for the check to tell.
                let len = ChainHead::decode(&value).map_or(0, |head| head.len);
                walk.value_pages = walk.value_pages.saturating_add(self.chains().pages(len));
            }
            if leaf.node.still() {
                return Ok(Some(walk));
            }
        }
        Ok(None)
    }
}

fn extrapolate(met: &[Met]) -> TreeSize {
    let Some(height) = met.first().map(|walk| walk.children.len()) else {
        return TreeSize { leaf_pages: 1, ..TreeSize::default() };
    };
    let mean = |of: &dyn Fn(&Met) -> u64| {
        met.iter().map(|walk| of(walk) as f64).sum::<f64>() / met.len() as f64
    };
    let (mut nodes, mut inner) = (1.0, 0.0);
    for level in 0..height {
        inner += nodes;
        nodes *= mean(&|walk| walk.children.get(level).copied().unwrap_or(1));
    }
    let value_pages = nodes * mean(&|walk| walk.value_pages);
    TreeSize {
        leaf_pages: nodes.round() as u64,
        inner_pages: inner.round() as u64,
        value_pages: value_pages.round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_multiplied() {
        let met = |children: &[u64], value_pages| Met { children: children.to_vec(), value_pages };
        let size = |met: &[Met]| {
            let size = extrapolate(met);
            (size.leaf_pages, size.inner_pages, size.value_pages)
        };
        assert_eq!(size(&[]), (1, 0, 0));
        assert_eq!(size(&[met(&[], 3)]), (1, 0, 3));
        assert_eq!(size(&[met(&[7], 0), met(&[7], 4)]), (7, 1, 14));
        assert_eq!(size(&[met(&[3, 10], 1), met(&[3, 20], 1)]), (45, 1 + 3, 45));
    }
}
