//! The two ways to touch a page: optimistically, and alone.
use weir_base::held::HeldRank;
use weir_base::{Lsn, PageNo, rank};
use weir_page::{Bytes, Node, RawPage};
use weir_redo::Span;

use crate::latch::Word;
use crate::pool::Pool;

/// A look at a page without holding anything. What is read through it is meaningless until
/// [`Optimistic::still`] has said that the page did not change meanwhile.
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) page: PageNo,
    pub(crate) word: Word,
    pub(crate) frame: u32,
}

impl<'p> Optimistic<'p> {
    /// Which page.
    #[must_use]
    pub fn page(&self) -> PageNo {
        self.page
    }

    /// The page's bytes as another thread may be changing them: all reads are total and copy.
    #[inline]
    #[must_use]
    pub fn raw(&self) -> RawPage {
        self.pool.raw(self.frame)
    }

    /// The page as a tree node.
    #[inline]
    #[must_use]
    pub fn node(&self) -> Node<RawPage> {
        Node::new(self.raw())
    }

    /// Whether the page is still as it was when this look began: what was read since is one state.
    #[inline]
    #[must_use]
    pub fn still(&self) -> bool {
        self.pool.latch(self.page).is_some_and(|latch| latch.still(self.word))
    }

    /// Takes the page for this thread alone, if it is still as it was.
    #[must_use]
    pub fn upgrade(self) -> Option<Exclusive<'p>> {
        let taken = self.pool.latch(self.page)?.try_exclusive(self.word);
        taken.then(|| Exclusive::new(self.pool, self.page, self.word, self.frame))
    }

    /// Copies the whole page, which counts only if it is [`Optimistic::still`] the same afterwards.
    pub fn copy_to(&self, out: &mut [u8]) {
        self.raw().copy_to(0, out);
    }

    /// A name for this state of the page that may be kept without borrowing the pool.
    #[must_use]
    pub fn token(&self) -> PageToken {
        PageToken { page: self.page, word: self.word }
    }

    /// Notes the use for replacement.
    #[inline]
    pub fn touch(&self) {
        self.pool.frames.meta(self.frame).touch();
    }
}

/// A state that a page was seen in.
#[derive(Clone, Copy, Debug)]
pub struct PageToken {
    page: PageNo,
    word: Word,
}

impl Pool {
    /// Whether the page is still in the state that the token names.
    #[must_use]
    pub fn is_still(&self, token: PageToken) -> bool {
        self.latch(token.page).is_some_and(|latch| latch.still(token.word))
    }

    /// Takes the page for this thread alone, if it is still in the state that the token names.
    #[must_use]
    pub fn exclusive_if_still(&self, token: PageToken) -> Option<Exclusive<'_>> {
        let frame = token.word.frame()?;
        let taken = self.latch(token.page)?.try_exclusive(token.word);
        taken.then(|| Exclusive::new(self, token.page, token.word, frame))
    }
}

/// A page held by this thread alone, until dropped.
pub struct Exclusive<'p> {
    pool: &'p Pool,
    page: PageNo,
    word: Word,
    frame: u32,
    changed: bool,
    bump: bool,
    held: Option<HeldRank>,
}

impl<'p> Exclusive<'p> {
    pub(crate) fn new(pool: &'p Pool, page: PageNo, word: Word, frame: u32) -> Self {
        let held = Some(HeldRank::got::<rank::PageLatch>());
        Exclusive { pool, page, word, frame, changed: false, bump: false, held }
    }

    /// Which page.
    #[must_use]
    pub fn page(&self) -> PageNo {
        self.page
    }

    pub(crate) fn frame(&self) -> u32 {
        self.frame
    }

    /// Makes all that looked at the page before look again, although no byte changes: its place in
    /// the tree is another, or it has just been read in.
    pub fn invalidate(&mut self) {
        self.bump = true;
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: this guard is the page's exclusive latch, and `bytes_mut` borrows it alone.
        unsafe { self.pool.frames.bytes(self.frame) }
    }

    /// The page as a tree node.
    #[must_use]
    pub fn node(&self) -> Node<&[u8]> {
        Node::new(self.bytes())
    }

    /// The bytes, to be changed. The change must be logged by [`Exclusive::log_change`] before the
    /// guard is dropped (POOL-3).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.changed = true;
        // SAFETY: this guard is the page's exclusive latch, borrowed alone for as long.
        unsafe { self.pool.frames.bytes_mut(self.frame) }
    }

    /// Whether the bytes were taken for change.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Says which stretch of the log describes the change: sets the page's LSN and puts it on the
    /// dirty list. Called between the reservation of `span` and its publication.
    pub fn log_change(&mut self, span: Span) {
        weir_page::set_lsn(self.bytes_mut(), span.end);
        let meta = self.pool.frames.meta(self.frame);
        if meta.first_lsn().is_none() {
            meta.set_first_lsn(Some(span.start));
            self.pool.dirty.add(self.page, span.start);
            self.pool.note_gives_back(self.page, self.frame);
        }
    }

    /// The LSN of the last change.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        weir_page::lsn(self.bytes())
    }

    /// Lets go, and keeps looking: the optimistic view of what this guard leaves behind.
    #[must_use]
    pub fn downgrade(self) -> Optimistic<'p> {
        let (pool, page, frame) = (self.pool, self.page, self.frame);
        let word = self.let_go();
        Optimistic { pool, page, word, frame }
    }

    fn release(&mut self) -> Word {
        self.held = None;
        let latch = self.pool.latch(self.page).expect("POOL-6: a held page has a word");
        latch.release(self.word, Some(self.frame), self.changed || self.bump)
    }

    fn let_go(mut self) -> Word {
        let word = self.release();
        std::mem::forget(self);
        word
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.release();
    }
}
