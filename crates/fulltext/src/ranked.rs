//! The documents that were found, by how well they fit.
use std::sync::Arc;

/// Documents, the one that fits best first; of two that fit as well, that of the lesser key.
#[derive(Clone, Default, Debug)]
pub struct Ranked {
    all: Vec<(Arc<[u8]>, f32)>,
    /// Places in `all`, in the order of the keys.
    by_key: Vec<u32>,
}

impl Ranked {
    pub(crate) fn of(mut all: Vec<(Arc<[u8]>, f32)>) -> Ranked {
        all.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut by_key: Vec<u32> = (0..all.len() as u32).collect();
        by_key.sort_unstable_by(|&a, &b| all[a as usize].0.cmp(&all[b as usize].0));
        Ranked { all, by_key }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The key of a document by its place, and how well it fits.
    #[must_use]
    pub fn get(&self, nth: usize) -> Option<(&[u8], f32)> {
        self.all.get(nth).map(|(key, rank)| (&key[..], *rank))
    }

    /// How well a document fits. `None`: it does not.
    #[must_use]
    pub fn rank_of(&self, key: &[u8]) -> Option<f32> {
        let found = self.by_key.binary_search_by(|&at| self.all[at as usize].0[..].cmp(key));
        found.ok().map(|at| self.all[self.by_key[at] as usize].1)
    }
}
