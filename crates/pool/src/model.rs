//! A page's latch for the loom models of those that hold one while they look at something else.
use crate::latch::{Latch, Word};

/// The latch of a page, without the page.
pub struct PageLatch(Latch);

/// What a reader has seen of it.
#[derive(Clone, Copy)]
pub struct SeenWord(Word);

impl PageLatch {
    /// One that no thread holds.
    #[must_use]
    #[allow(clippy::new_without_default)] // Loom's objects belong to a run of the model.
    pub fn new() -> Self {
        PageLatch(Latch::new())
    }

    /// A reader begins; `None`: a writer holds it.
    #[must_use]
    pub fn read(&self) -> Option<SeenWord> {
        let word = self.0.load();
        (!word.is_exclusive()).then_some(SeenWord(word))
    }

    /// Whether what a reader has read since it began was one state.
    #[must_use]
    pub fn is_still(&self, seen: SeenWord) -> bool {
        self.0.still(seen.0)
    }

    /// A writer takes it.
    #[must_use]
    pub fn take(&self, seen: SeenWord) -> bool {
        self.0.try_exclusive(seen.0)
    }

    /// The writer gives it back.
    pub fn release(&self, seen: SeenWord, changed: bool) {
        self.0.release(seen.0, seen.0.frame(), changed);
    }
}
