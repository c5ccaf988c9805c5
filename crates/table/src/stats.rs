//! How many rows a range has, nearly: two looks down the tree tell the size; small ranges are then
//! counted, and large ones of a table that was sampled are placed among keys that sampling has kept
//! at even distances (an equi-depth histogram; Piatetsky-Shapiro and Connell, "Accurate estimation
//! of the number of tuples satisfying a condition", SIGMOD 1984).
use std::collections::HashMap;
use std::sync::Arc;
use weir_base::lock::Mutex;
use weir_base::rank;

use weir::{Durability, Isolation, TreeSize, TxnOptions};
use weir_base::varint;

use crate::descriptor::number;
use crate::error::Error;
use crate::fold;
use crate::key::Malformed;
use crate::raw::RawTable;
use crate::row::{put_bytes, take_bytes};
use crate::scan::{Direction, KeyRange};
use crate::shared::key_of;

/// A range that seems to have no more rows than this is counted.
const COUNTED_MAX: u64 = 16;
/// A sample says more than a look at two places of ranges of so many distances.
const WITHIN_DISTANCES: u64 = 16;
/// Sampling keeps between half of this and this many keys of a tree.
const KEPT_MAX: usize = 512;
/// What is kept of a key: enough to tell most apart.
const KEPT_BYTES_MAX: usize = 128;

/// A number of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimate {
    /// Counted.
    Exact(u64),
    /// Estimated: off by about 1 % of the tree's rows when it was sampled, and by what has changed
    /// since.
    Sampled(u64),
    /// From two looks down the tree: off by as much as its pages differ.
    Dived(u64),
}

impl Estimate {
    /// The number, as good as it is known.
    #[must_use]
    pub fn rows(self) -> u64 {
        match self {
            Estimate::Exact(rows) | Estimate::Sampled(rows) | Estimate::Dived(rows) => rows,
        }
    }
}

/// What is known in memory.
#[derive(Default)]
pub(crate) struct Samples(Mutex<rank::Samples, Known>);

#[derive(Default)]
struct Known {
    /// By number of the tree. `None`: there is nothing in the catalog.
    trees: HashMap<u64, Option<Arc<Sample>>>,
    /// How often all was forgotten.
    forgotten: u64,
}

impl Samples {
    pub(crate) fn forget(&self) {
        let mut known = self.0.lock();
        known.trees.clear();
        known.forgotten += 1;
    }

    /// What is known of a tree, or else what `read` finds in the catalog.
    fn get(
        &self,
        tree: u64,
        read: impl FnOnce() -> Result<Option<Sample>, Error>,
    ) -> Result<Option<Arc<Sample>>, Error> {
        let forgotten = {
            let known = self.0.lock();
            if let Some(sample) = known.trees.get(&tree) {
                return Ok(sample.clone());
            }
            known.forgotten
        };
        // Without the lock: it may come from the disk.
        let sample = read()?.map(Arc::new);
        let mut known = self.0.lock();
        // It may be what has been forgotten just now, replaced by another.
        if known.forgotten == forgotten {
            known.trees.insert(tree, sample.clone());
        }
        Ok(sample)
    }
}

/// Every `distance`-th key of a tree, in order, and how many there were.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Sample {
    rows: u64,
    distance: u64,
    keys: Vec<Vec<u8>>,
}

impl Sample {
    fn new() -> Self {
        Sample { rows: 0, distance: 1, keys: Vec::new() }
    }

    fn add(&mut self, key: &[u8]) {
        if self.rows.is_multiple_of(self.distance) {
            if self.keys.len() == KEPT_MAX {
                let mut nth = 0;
                self.keys.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.distance *= 2;
            }
            if self.rows.is_multiple_of(self.distance) {
                self.keys.push(key[..key.len().min(KEPT_BYTES_MAX)].to_vec());
            }
        }
        self.rows += 1;
    }

    /// About how many rows are below `key`.
    fn below(&self, key: &[u8]) -> u64 {
        let kept = self.keys.partition_point(|other| &other[..] < key) as u64;
        // Between the last kept key below and the next: in the middle, for want of knowledge.
        (kept * self.distance).saturating_sub(self.distance / 2).min(self.rows)
    }

    fn within(&self, range: &KeyRange) -> u64 {
        let to = range.to.as_deref().map_or(self.rows, |to| self.below(to));
        let from = if range.from.is_empty() { 0 } else { self.below(&range.from) };
        to.saturating_sub(from)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.rows, self.distance, self.keys.len() as u64] {
            varint::put(&mut out, number);
        }
        self.keys.iter().for_each(|key| put_bytes(&mut out, key));
        out
    }

    fn decode(mut bytes: &[u8]) -> Result<Sample, Malformed> {
        let rest = &mut bytes;
        let (rows, distance, count) = (number(rest)?, number(rest)?, number(rest)?);
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(take_bytes(rest)?.to_vec());
        }
        Ok(Sample { rows, distance, keys })
    }
}

impl RawTable {
    /// Samples all trees of the table by walking them once, and keeps the result in the catalog.
    /// Returns the number of rows met, as open transactions have left them.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn analyze(&self) -> Result<u64, Error> {
        // What is not committed counts: an insert as a row, a delete as none. So a caller that
        // keeps a count from here on adds to it what transactions do, and takes off what they roll
        // back.
        let options = TxnOptions { isolation: Isolation::ReadUncommitted, ..TxnOptions::default() };
        let mut txn = self.shared.db.begin(options);
        self.lock_definition(&mut txn)?;
        let indexes = self.info.indexes.iter().zip(&self.indexes);
        let indexes = indexes.filter(|(index, _)| !index.building);
        let trees = indexes.map(|(index, tree)| (index.tree, tree));
        let mut rows = 0;
        for (number, tree) in trees.chain([(self.info.tree, &self.primary)]) {
            let mut sample = Sample::new();
            let mut cursor = txn.cursor(tree);
            cursor.set_fronts(true);
            let mut on = cursor.seek_first(&mut txn)?;
            while on {
                sample.add(cursor.key());
                on = cursor.next(&mut txn)?;
            }
            rows = sample.rows;
            txn.put(&self.shared.catalog, &self.sample_key(number), &sample.encode())?;
        }
        txn.commit_durably(Durability::Lazy)?;
        self.state.samples.forget();
        Ok(rows)
    }

    /// About how many rows (`None`) or entries of an index lie in a range, committed or not.
    ///
    /// # Errors
    /// [`Error::NoIndex`], [`Error::Changed`], [`Error::Store`].
    pub fn estimate(&self, index: Option<usize>, range: &KeyRange) -> Result<Estimate, Error> {
        let tree = match index {
            None => &self.primary,
            Some(at) => self.indexes.get(at).ok_or_else(|| Error::NoIndex(at.to_string()))?,
        };
        let to = range.to.as_deref().and_then(fold::upper);
        let dived = tree.estimate(fold::lower(&range.from), to.as_deref())?;
        if dived <= COUNTED_MAX {
            return self.count_few(index, range, dived);
        }
        let number = index.map_or(self.info.tree, |at| self.info.indexes[at].tree);
        let sample = self.sample(number)?;
        Ok(match sample.filter(|sample| dived > WITHIN_DISTANCES * sample.distance) {
            Some(sample) => Estimate::Sampled(sample.within(range).max(COUNTED_MAX)),
            None => Estimate::Dived(dived),
        })
    }

    /// About how many pages the tree of the rows (`None`) or of an index has (`weir::Tree::size`).
    ///
    /// # Errors
    /// [`Error::NoIndex`], [`Error::Store`].
    pub fn size(&self, index: Option<usize>) -> Result<TreeSize, Error> {
        let tree = match index {
            None => &self.primary,
            Some(at) => self.indexes.get(at).ok_or_else(|| Error::NoIndex(at.to_string()))?,
        };
        Ok(tree.size()?)
    }

    /// The key in the tree of the rows (`None`) or of an index that lies about `nth` of `of` equal
    /// distances into it: of an index, the index key and perhaps the primary key behind it. Of a
    /// long one its first 1,168 bytes and a sum.
    ///
    /// # Errors
    /// [`Error::NoIndex`], [`Error::Store`].
    pub fn key_at(
        &self,
        index: Option<usize>,
        nth: u32,
        of: u32,
    ) -> Result<Option<Vec<u8>>, Error> {
        let tree = match index {
            None => &self.primary,
            Some(at) => self.indexes.get(at).ok_or_else(|| Error::NoIndex(at.to_string()))?,
        };
        Ok(tree.key_at(nth, of)?)
    }

    /// Counts a range that seems small; one that is not after all is as large as it seemed.
    fn count_few(
        &self,
        index: Option<usize>,
        range: &KeyRange,
        dived: u64,
    ) -> Result<Estimate, Error> {
        let mut txn = self.shared.begin();
        let mut scan = self.scan(&mut txn, index, range.clone(), Direction::Up)?;
        let mut counted = 0;
        while counted <= 2 * COUNTED_MAX && scan.next(&mut txn)? {
            counted += 1;
        }
        let is_whole = counted <= 2 * COUNTED_MAX;
        Ok(if is_whole { Estimate::Exact(counted) } else { Estimate::Dived(dived.max(counted)) })
    }

    fn sample(&self, tree: u64) -> Result<Option<Arc<Sample>>, Error> {
        self.state.samples.get(tree, || {
            let stored = self.shared.catalog.get(&self.sample_key(tree))?;
            Ok(stored.map(|bytes| Sample::decode(&bytes)).transpose()?)
        })
    }

    fn sample_key(&self, tree: u64) -> Vec<u8> {
        [&key_of(b's', self.info.id)[..], &tree.to_be_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_read_before_another_sample_was_taken_is_not_kept() {
        let of = |rows| Ok(Some(Sample { rows, ..Sample::new() }));
        let samples = Samples::default();
        let get = |read: &dyn Fn() -> Result<Option<Sample>, Error>| {
            samples.get(7, read).expect("a sample").map(|sample| sample.rows)
        };
        let overtaken = || {
            samples.forget();
            of(1)
        };
        assert_eq!(get(&overtaken), Some(1));
        assert_eq!(get(&|| of(2)), Some(2));
        assert_eq!(get(&|| of(3)), Some(2), "kept until it is forgotten");
        samples.forget();
        assert_eq!(get(&|| Ok(None)), None);
        assert_eq!(get(&|| of(4)), None, "that there is none is kept as well");
    }

    proptest! {
        #[test]
        fn ranges_are_estimated_within_two_distances(
            rows in 1u64..20_000,
            a in 0u64..20_000,
            b in 0u64..20_000,
        ) {
            let mut sample = Sample::new();
            (0..rows).for_each(|n| sample.add(&n.to_be_bytes()));
            prop_assert!(sample.keys.len() <= KEPT_MAX);
            let (from, to) = (a.min(b), a.max(b));
            let range =
                KeyRange { from: from.to_be_bytes().to_vec(), to: Some(to.to_be_bytes().to_vec()) };
            let really = to.min(rows) - from.min(rows);
            prop_assert!(sample.within(&range).abs_diff(really) <= 2 * sample.distance);
            prop_assert_eq!(Sample::decode(&sample.encode()).expect("well-formed"), sample);
        }

        #[test]
        fn any_bytes_give_a_sample_or_an_error(bytes in prop::collection::vec(0u8..9, 0..30)) {
            if let Ok(sample) = Sample::decode(&bytes) {
                prop_assert_eq!(Sample::decode(&sample.encode()).expect("well-formed"), sample);
            }
        }
    }
}
