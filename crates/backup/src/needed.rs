//! Which pages a backup needs, beside those in use: a decision from the log alone.
//!
//! Recovery applies what the log has of a page to what lies on disk. A page that was in use at the
//! checkpoint and has been freed since is in use no more when the backup comes by, but the log has
//! changes of it: it must be there all the same. One that the log itself makes need not be.
use weir_base::PageNo;

/// A set of pages: a bit for each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageSet(Vec<u64>);

impl PageSet {
    /// Adds a page; `false`: it is there already.
    pub fn insert(&mut self, page: PageNo) -> bool {
        let (word, bit) = (page.0 as usize / 64, 1 << (page.0 % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Whether it is there.
    #[must_use]
    pub fn contains(&self, page: PageNo) -> bool {
        self.0.get(page.0 as usize / 64).is_some_and(|word| word & (1 << (page.0 % 64)) != 0)
    }

    /// As bytes, a bit for each.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// As [`PageSet::to_bytes`] made them; zeros may follow.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> PageSet {
        let words = bytes.chunks(8).map(|chunk| {
            u64::from_le_bytes(std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0)))
        });
        PageSet(words.collect())
    }

    /// Those that are not in `other`, ascending.
    pub fn without<'a>(&'a self, other: &'a PageSet) -> impl Iterator<Item = PageNo> + 'a {
        let words = self
            .0
            .iter()
            .enumerate()
            .map(|(i, word)| (i as u32 * 64, word & !other.0.get(i).copied().unwrap_or(0)));
        words.flat_map(|(first, word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| PageNo(first + bit))
        })
    }
}

/// What the log from the checkpoint on needs of the pages.
#[derive(Default)]
pub struct Needed {
    named: PageSet,
    /// Those whose first change makes them.
    made: PageSet,
}

impl Needed {
    /// Takes the next group of the log.
    ///
    /// # Errors
    /// A change that cannot be read.
    pub fn take(&mut self, body: &[u8]) -> Result<(), weir_change::DecodeError> {
        let (_, ops) = weir_change::decode(body)?;
        for op in ops {
            let op = op?;
            let Some(page) = op.page() else { continue };
            if self.named.insert(page) && op.makes_page() {
                self.made.insert(page);
            }
        }
        Ok(())
    }

    /// Whether the log makes the page: what lies on disk of it does not matter.
    #[must_use]
    pub fn is_made(&self, page: PageNo) -> bool {
        self.made.contains(page)
    }

    /// Pages that recovery needs and that are not in `copied`, ascending.
    #[must_use]
    pub fn missing(&self, copied: &PageSet) -> Vec<PageNo> {
        self.named.without(copied).filter(|page| !self.made.contains(*page)).collect()
    }
}
