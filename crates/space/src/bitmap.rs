//! One bit a page, in memory.

/// The pages in use.
#[derive(Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
    used: u64,
    /// No free page lies below this word.
    low: usize,
}

impl Bitmap {
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn is_used(&self, page: u32) -> bool {
        self.words.get(page as usize / 64).is_some_and(|w| w >> (page % 64) & 1 == 1)
    }

    /// Whether `count` pages are free, a power of two that is at most 64, from a multiple of it on.
    pub(crate) fn is_free(&self, first: u32, count: u32) -> bool {
        let mask = (u64::MAX >> (64 - count)) << (first % 64);
        self.words.get(first as usize / 64).is_none_or(|word| word & mask == 0)
    }

    /// Marks a page; returns whether that changed anything.
    pub(crate) fn set(&mut self, page: u32, used: bool) -> bool {
        let (word, bit) = (page as usize / 64, 1u64 << (page % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if (self.words[word] & bit != 0) == used {
            return false;
        }
        self.words[word] ^= bit;
        if used {
            self.used += 1;
        } else {
            self.used -= 1;
            self.low = self.low.min(word);
        }
        true
    }

    /// The first free page at or after `from`.
    pub(crate) fn first_free(&mut self, from: u32) -> u32 {
        let start = (from as usize / 64).max(self.low);
        for word in start..self.words.len() {
            let mut free = !self.words[word];
            if word == from as usize / 64 {
                free &= u64::MAX << (from % 64);
            }
            if free != 0 {
                if from as usize <= self.low * 64 {
                    self.low = word;
                }
                return (word * 64) as u32 + free.trailing_zeros();
            }
        }
        from.max((self.words.len() * 64) as u32)
    }

    /// The number behind the last page in use.
    pub(crate) fn end(&self) -> u32 {
        for (i, word) in self.words.iter().enumerate().rev() {
            if *word != 0 {
                return (i * 64) as u32 + 64 - word.leading_zeros();
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(
            steps in proptest::collection::vec((0u32..500, any::<bool>()), 1..300),
        ) {
            let mut bitmap = Bitmap::default();
            let mut model = BTreeSet::new();
            for (page, used) in steps {
                let changed = if used { model.insert(page) } else { model.remove(&page) };
                prop_assert_eq!(bitmap.set(page, used), changed);
                prop_assert_eq!(bitmap.used(), model.len() as u64);
                prop_assert_eq!(bitmap.end(), model.last().map_or(0, |p| p + 1));
                let from = page / 2;
                let free = (from..).find(|p| !model.contains(p)).unwrap_or(0);
                prop_assert_eq!(bitmap.first_free(from), free);
                prop_assert_eq!(bitmap.is_used(page), used);
                for count in [1, 8, 64] {
                    let first = page / count * count;
                    let is_free = model.range(first..first + count).next().is_none();
                    prop_assert_eq!(bitmap.is_free(first, count), is_free);
                }
            }
        }
    }
}
