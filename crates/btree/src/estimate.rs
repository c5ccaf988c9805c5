//! About how many entries lie between two keys, from two walks down: where the paths part, the
//! children between them are counted, and each is taken to hold as many entries as the nodes met on
//! the way would have it ("dives", as MySQL's optimiser calls them).
use std::cell::Cell;

use crate::descend::{DescentTarget, take_place};
use crate::error::TreeError;
use crate::tree::Tree;

/// How often a walk that met changes begins again.
const TRIES_MAX: u32 = 64;

/// What [`DescentTarget::Part`] divides.
const WHOLE: u64 = 1 << 32;

/// Where a walk went through a node.
#[derive(Clone, Copy)]
struct Step {
    /// The child taken, or the entry found.
    at: usize,
    /// How many there are.
    of: usize,
}

impl Tree {
    /// About how many entries have keys from `from` on and below `to` (`None`: to the end), marked
    /// ones included: exact within one leaf, otherwise off by as much as nodes differ in size.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64, TreeError> {
        for _ in 0..TRIES_MAX {
            let first = self.path(DescentTarget::Key(from))?;
            let last = self.path(to.map_or(DescentTarget::Last, DescentTarget::Key))?;
            if first.len() == last.len() {
                return Ok(between(&first, &last));
            }
        }
        Ok(0)
    }

    /// The key that lies about `nth` of `of` equal distances into the tree, in the middle of that
    /// distance; marked entries count. `None`: its leaf has none.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn key_at(&self, nth: u32, of: u32) -> Result<Option<Vec<u8>>, TreeError> {
        let part = Cell::new(0);
        let mut key = Vec::new();
        for _ in 0..TRIES_MAX {
            part.set(
                (((u64::from(nth) * 2 + 1) << 32) / (u64::from(of.max(1)) * 2)).min(WHOLE - 1),
            );
            let Some(leaf) = self.walk(DescentTarget::Part(&part), 0, &mut |_, _| {})? else {
                continue;
            };
            let view = leaf.node.node();
            let count = view.count();
            if count > 0 {
                key.clear();
                view.key_into(take_place(&part, count), &mut key);
            }
            if leaf.node.still() {
                return Ok((count > 0).then_some(key));
            }
        }
        Ok(None)
    }

    /// From the root to the leaf.
    fn path(&self, target: DescentTarget<'_>) -> Result<Vec<Step>, TreeError> {
        loop {
            let mut path = Vec::new();
            let arrived = self.walk(target, 0, &mut |node, index| {
                path.push(Step { at: index, of: node.node().count() + 1 });
            })?;
            let Some(leaf) = arrived else { continue };
            let view = leaf.node.node();
            let at = match target {
                DescentTarget::Key(key) | DescentTarget::Before(key) => match view.search(key) {
                    Ok(slot) | Err(slot) => slot,
                },
                DescentTarget::First | DescentTarget::Remnant => 0,
                DescentTarget::Last | DescentTarget::Part(_) => view.count(),
            };
            let step = Step { at, of: view.count() };
            if leaf.node.still() {
                path.push(step);
                return Ok(path);
            }
        }
    }
}

/// Entries between two paths of the same length.
fn between(first: &[Step], last: &[Step]) -> u64 {
    let Some(part) = (0..first.len()).find(|&level| first[level].at != last[level].at) else {
        return 0;
    };
    let (from, to) = (first[part].at, last[part].at);
    if to < from {
        return 0;
    }
    if part + 1 == first.len() {
        return (to - from) as u64;
    }
    // Entries below one child of a node at `level`.
    let below = |level: usize| -> f64 {
        let fanouts = (level + 1..first.len()).map(|l| (first[l].of + last[l].of) as f64 / 2.0);
        fanouts.product()
    };
    let mut sum = (to - from - 1) as f64 * below(part);
    for level in part + 1..first.len() {
        let is_leaf = level + 1 == first.len();
        let (right, left) = (first[level].of.saturating_sub(first[level].at), last[level].at);
        sum += match is_leaf {
            true => (right + left) as f64,
            false => (right.saturating_sub(1) + left) as f64 * below(level),
        };
    }
    sum as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &[(usize, usize)]) -> Vec<Step> {
        steps.iter().map(|&(at, of)| Step { at, of }).collect()
    }

    #[test]
    fn within_a_leaf_it_is_exact_and_across_leaves_it_is_the_rest_of_both() {
        let count = |a: &[(usize, usize)], b: &[(usize, usize)]| between(&path(a), &path(b));
        assert_eq!(count(&[(3, 10), (5, 20)], &[(3, 10), (5, 20)]), 0);
        assert_eq!(count(&[(3, 10), (5, 20)], &[(3, 10), (9, 20)]), 4);
        assert_eq!(count(&[(3, 10), (5, 20)], &[(4, 10), (2, 20)]), 15 + 2);
        assert_eq!(count(&[(3, 10), (5, 20)], &[(6, 10), (2, 20)]), 15 + 2 + 2 * 20);
        assert_eq!(
            count(&[(6, 10), (5, 20)], &[(3, 10), (2, 20)]),
            0,
            "the keys were turned round"
        );
        let whole = count(&[(0, 3), (0, 10), (0, 20)], &[(2, 3), (9, 10), (20, 20)]);
        assert_eq!(whole, 10 * 20 + 9 * 20 + 9 * 20 + 20 + 20);
    }
}
