//! What is gathered before rows are read: leaves, the ranges that their parents promise them, and
//! what losers had changed, each sorted by tree and key. As entries to sort.
use weir::{Db, Sorter};
use weir_base::{Lsn, PageNo, TreeId};

use crate::error::SalvageError;

/// The three, for some trees.
pub(crate) struct Harvest {
    pub(crate) leaves: Sorter,
    pub(crate) claims: Sorter,
    pub(crate) undo: Sorter,
}

impl Harvest {
    /// Sorted in files of the new database, two of these and the log's changes at once.
    pub(crate) fn new(target: &Db) -> Harvest {
        let sorter = || target.sorter(SORTERS);
        Harvest { leaves: sorter(), claims: sorter(), undo: sorter() }
    }
}

/// Sorters in use together.
pub(crate) const SORTERS: usize = 7;

/// The tree's number before the key: trees come one after the other.
pub(crate) fn key_of(tree: TreeId, key: &[u8]) -> Vec<u8> {
    [&tree.0.to_be_bytes()[..], key].concat()
}

/// The tree and the key of an entry.
pub(crate) fn split(entry: &[u8]) -> Option<(TreeId, &[u8])> {
    let (tree, key) = entry.split_first_chunk()?;
    Some((TreeId(u64::from_be_bytes(*tree)), key))
}

/// A leaf that has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) tree: TreeId,
    pub(crate) first: Vec<u8>,
    pub(crate) last: Vec<u8>,
    pub(crate) page: PageNo,
    pub(crate) lsn: Lsn,
}

impl Leaf {
    pub(crate) fn push(&self, to: &mut Sorter) -> Result<(), SalvageError> {
        let mut value = Vec::with_capacity(12 + self.last.len());
        value.extend_from_slice(&self.page.0.to_be_bytes());
        value.extend_from_slice(&self.lsn.0.to_be_bytes());
        value.extend_from_slice(&self.last);
        Ok(to.push(&key_of(self.tree, &self.first), &value)?)
    }

    pub(crate) fn of((key, value): (&[u8], &[u8])) -> Option<Leaf> {
        let (tree, first) = split(key)?;
        let (page, rest) = value.split_first_chunk()?;
        let (lsn, last) = rest.split_first_chunk()?;
        Some(Leaf {
            tree,
            first: first.to_vec(),
            last: last.to_vec(),
            page: PageNo(u32::from_be_bytes(*page)),
            lsn: Lsn(u64::from_be_bytes(*lsn)),
        })
    }
}

/// Where a range ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// At this key.
    At(Vec<u8>),
    /// With the tree.
    End,
    /// What would say so is damaged.
    Unknown,
}

/// What a node promises of a child: its range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) tree: TreeId,
    pub(crate) low: Bound,
    pub(crate) high: Bound,
    pub(crate) page: PageNo,
    /// The oldest LSN on the way down to it.
    pub(crate) lsn: Lsn,
    /// 0: a leaf.
    pub(crate) level: u8,
    /// The child is there.
    pub(crate) is_kept: bool,
}

impl Claim {
    pub(crate) fn push(&self, to: &mut Sorter) -> Result<(), SalvageError> {
        let (low, low_kind) = parts(&self.low);
        let (high, high_kind) = parts(&self.high);
        let mut value = self.page.0.to_be_bytes().to_vec();
        value.extend_from_slice(&self.lsn.0.to_be_bytes());
        value.extend_from_slice(&[self.level, u8::from(self.is_kept), low_kind, high_kind]);
        value.extend_from_slice(high);
        Ok(to.push(&key_of(self.tree, low), &value)?)
    }

    pub(crate) fn of((key, value): (&[u8], &[u8])) -> Option<Claim> {
        let (tree, low) = split(key)?;
        let (page, rest) = value.split_first_chunk()?;
        let (lsn, rest) = rest.split_first_chunk()?;
        let (&[level, is_kept, low_kind, high_kind], high) = rest.split_first_chunk()?;
        Some(Claim {
            tree,
            low: bound(low, low_kind),
            high: bound(high, high_kind),
            page: PageNo(u32::from_be_bytes(*page)),
            lsn: Lsn(u64::from_be_bytes(*lsn)),
            level,
            is_kept: is_kept != 0,
        })
    }

    /// The key that it is sorted by.
    pub(crate) fn from(&self) -> &[u8] {
        parts(&self.low).0
    }

    /// Whether the range ends before this key.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        matches!(&self.high, Bound::At(high) if high.as_slice() <= key)
    }
}

fn parts(bound: &Bound) -> (&[u8], u8) {
    match bound {
        Bound::At(key) => (key, 0),
        Bound::End => (&[], 1),
        Bound::Unknown => (&[], 2),
    }
}

fn bound(key: &[u8], kind: u8) -> Bound {
    match kind {
        0 => Bound::At(key.to_vec()),
        1 => Bound::End,
        _ => Bound::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_and_leaves_come_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), weir::Config::default()).expect("a database");
        let mut harvest = Harvest::new(&db);
        let leaf = Leaf {
            tree: TreeId(7),
            first: b"a".to_vec(),
            last: b"mm".to_vec(),
            page: PageNo(9),
            lsn: Lsn(1 << 40),
        };
        leaf.push(&mut harvest.leaves).expect("taken");
        let mut leaves = harvest.leaves.sorted().expect("sorted");
        assert_eq!(leaves.step().expect("read").and_then(Leaf::of), Some(leaf));
        let bounds = [Bound::End, Bound::At(b"k".to_vec()), Bound::Unknown];
        for (low, high) in bounds.iter().flat_map(|low| bounds.iter().map(move |high| (low, high)))
        {
            let mut sorter = db.sorter(1);
            let claim = Claim {
                tree: TreeId(1 << 33),
                low: low.clone(),
                high: high.clone(),
                page: PageNo(3),
                lsn: Lsn(77),
                level: 2,
                is_kept: true,
            };
            claim.push(&mut sorter).expect("taken");
            let mut sorted = sorter.sorted().expect("sorted");
            assert_eq!(sorted.step().expect("read").and_then(Claim::of), Some(claim));
        }
    }
}
