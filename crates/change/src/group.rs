//! A group: changes to one or more pages that reach the log, and so survive a crash, together or
//! not at all (a mini-transaction).
use std::cell::RefCell;

use smallvec::SmallVec;
use weir_base::{TreeId, TxnId};
use weir_pool::Exclusive;
use weir_redo::{Log, RedoError, Span};

use crate::apply::{ApplyError, apply_at};
use crate::op::{Before, Header, Op};

thread_local! {
    /// The last group's body, emptied: a group in the making costs no allocation.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A page held by a group, by its place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldPage(usize);

/// A group in the making. It holds its pages' latches until it is committed, and must be committed
/// once it has changed a page (CHANGE-1): there is no undoing of bytes, so everything that can
/// fail is asked before the first change.
pub struct Group<'p> {
    body: Vec<u8>,
    writer: TxnId,
    pages: SmallVec<[Exclusive<'p>; 4]>,
    applied: bool,
}

impl<'p> Group<'p> {
    /// A group with this header.
    #[must_use]
    pub fn begin(header: Header) -> Self {
        let mut body = SPARE.take();
        body.clear();
        header.encode(&mut body);
        let writer = header.writer();
        Group { body, writer, pages: SmallVec::new(), applied: false }
    }

    /// Takes a page into the group.
    pub fn hold(&mut self, page: Exclusive<'p>) -> HeldPage {
        self.pages.push(page);
        HeldPage(self.pages.len() - 1)
    }

    /// A page of the group.
    #[must_use]
    pub fn page(&self, held: HeldPage) -> &Exclusive<'p> {
        &self.pages[held.0]
    }

    /// Whether the group already holds this page, and where.
    #[must_use]
    pub fn find(&self, page: weir_base::PageNo) -> Option<HeldPage> {
        self.pages.iter().position(|p| p.page() == page).map(HeldPage)
    }

    /// Changes a page of the group and notes the change for the log.
    ///
    /// # Panics
    /// When the change does not apply: the caller has checked under the same latch that it does, so
    /// memory or the program is broken, and going on would spread the damage.
    pub fn apply(&mut self, held: HeldPage, op: &Op<'_>) {
        self.apply_at(held, op, None);
    }

    /// As [`Group::apply`], with the slot that a search under this latch has given.
    ///
    /// # Panics
    /// As [`Group::apply`].
    pub fn apply_at(&mut self, held: HeldPage, op: &Op<'_>, slot: Option<usize>) {
        op.encode(&mut self.body);
        self.applied = true;
        let page = &mut self.pages[held.0];
        let number = page.page();
        let done: Result<(), ApplyError> = apply_at(op, self.writer, page.bytes_mut(), slot);
        if let Err(e) = done {
            panic!("CHANGE-1: a checked change did not apply to page {number}: {e}");
        }
    }

    /// Notes something for recovery that changes no page.
    pub fn note(&mut self, op: &Op<'_>) {
        op.encode(&mut self.body);
    }

    /// Notes how to roll back the change `seq` of a row in `tree`: `op`, which must come next.
    pub fn note_undo(
        &mut self,
        tree: TreeId,
        key: &[u8],
        seq: u32,
        before: Before<'_>,
        op: &Op<'_>,
    ) {
        if op.change() == Some((key, seq)) {
            before.encode_for_next(tree, &mut self.body);
        } else {
            self.note(&Op::Undo { tree, key, seq, before });
        }
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether nothing but the header is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.applied
    }

    /// Appends the group to the log and lets go of its pages.
    ///
    /// # Errors
    /// [`RedoError`] when the log has halted: the pages in memory are then ahead of the log for
    /// good, which is why a halted engine writes no page any more.
    pub fn commit(self, log: &Log) -> Result<Span, RedoError> {
        let Group { mut body, mut pages, .. } = self;
        Op::pad(&mut body);
        let span = log.append(&body, |span| {
            for page in pages.iter_mut().filter(|p| p.is_changed()) {
                page.log_change(span);
            }
        });
        drop(pages);
        SPARE.set(body);
        span
    }
}
