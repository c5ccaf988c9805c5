//! The words of a text, and what an index keeps of each: the places at which it stands.
//!
//! A word is known by its key: bytes that two words share which the caller's collation calls
//! equal. A place is the number of the word in its document times the number of columns that the
//! index has, and the number of the column it stands in: so two words stand side by side in one
//! column if their places differ by just the number of columns.
//!
//! An index keeps, for a word and a document, the first place and the distances to each next one
//! as varints.
use weir_base::varint;

/// Whether a word is looked for in an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// It is in the index.
    Indexed,
    /// It has fewer characters than words of the index have.
    Short,
    /// It has more.
    Long,
    /// It is one of those that say nothing.
    Stopword,
}

/// A word of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word<'w> {
    /// What equal words have in common.
    pub key: &'w [u8],
    /// What all words have in common that begin as this one does: see [`Words::push`].
    pub beginning: &'w [u8],
    /// Where it stands.
    pub place: u64,
    /// Whether it is in the index.
    pub fit: Fit,
}

/// The words of a text, in memory that is used again.
#[derive(Clone, Default, Debug)]
pub struct Words {
    bytes: Vec<u8>,
    all: Vec<Kept>,
    /// For [`Words::each_indexed`].
    places: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    at: usize,
    key_len: usize,
    beginning_len: usize,
    place: u64,
    fit: Fit,
}

impl Words {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.all.clear();
    }

    /// Adds a word. `beginning_len`: so many bytes of the key begin the keys of all words that
    /// begin as this one does.
    pub fn push(&mut self, key: &[u8], beginning_len: usize, place: u64, fit: Fit) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let beginning_len = beginning_len.min(key.len());
        self.all.push(Kept { at, key_len: key.len(), beginning_len, place, fit });
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

    /// All of them, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Word<'_>> {
        self.all.iter().map(|&kept| self.word(kept))
    }

    fn word(&self, kept: Kept) -> Word<'_> {
        let key = &self.bytes[kept.at..kept.at + kept.key_len];
        let beginning = &key[..kept.beginning_len];
        Word { key, beginning, place: kept.place, fit: kept.fit }
    }

    /// Shows each different word that is in the index, in the order of their keys, with its places
    /// as the index keeps them ([`Positions`]).
    pub fn each_indexed(&mut self, mut visit: impl FnMut(&[u8], &[u8])) {
        let bytes = &self.bytes;
        let key = |kept: &Kept| &bytes[kept.at..kept.at + kept.key_len];
        self.all.retain(|kept| kept.fit == Fit::Indexed);
        self.all.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(a.place.cmp(&b.place)));
        for same in self.all.chunk_by(|a, b| key(a) == key(b)) {
            self.places.clear();
            let mut before = 0;
            for kept in same {
                varint::put(&mut self.places, kept.place - before);
                before = kept.place;
            }
            visit(key(&same[0]), &self.places);
        }
    }
}

/// The places of a word in a document, as an index keeps them. What is malformed ends them.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'p>(pub &'p [u8]);

impl Positions<'_> {
    /// How often the word is in the document.
    #[must_use]
    pub fn count(self) -> u64 {
        self.0.iter().filter(|&&byte| byte < 0x80).count() as u64
    }

    /// The places, ascending.
    #[must_use]
    pub fn places(mut self) -> Vec<u64> {
        let (mut places, mut place) = (Vec::new(), 0u64);
        while let Some(distance) = varint::take(&mut self.0) {
            place = place.saturating_add(distance);
            places.push(place);
        }
        places
    }
}
