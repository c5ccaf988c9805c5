//! A bit for each page.
use weir_base::PageNo;

/// Which pages: grows as it is asked to.
#[derive(Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn set(&mut self, page: PageNo) {
        let word = page.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (page.0 % 64);
    }

    pub(crate) fn has(&self, page: PageNo) -> bool {
        self.words.get(page.0 as usize / 64).is_some_and(|word| word >> (page.0 % 64) & 1 == 1)
    }

    /// Sets it; whether it was not set before.
    pub(crate) fn is_new(&mut self, page: PageNo) -> bool {
        let is_new = !self.has(page);
        self.set(page);
        is_new
    }
}
