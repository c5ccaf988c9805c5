//! Walking in key order over the rows that a reader sees.
use std::ops::ControlFlow;

use weir_base::TxnId;
use weir_btree::{ChainHead, Cursor as RawCursor, Tree, TreeError};

use crate::context::Context;
use crate::versions::see::{ReadOutcome, Reader, Retries, View};

/// A position among the rows that a view shows. After a move that has failed it stands on no row,
/// but where the same move tries again, and the other way it comes back.
pub struct RowCursor {
    raw: RawCursor,
    on: On,
    /// The value of a row that does not lie whole in the leaf as it is seen.
    value: Vec<u8>,
    /// Of long values the fronts are enough.
    fronts: bool,
    /// What continues the front in the buffer.
    rest: Option<ChainHead>,
}

/// What the cursor stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    /// Between rows: a move has failed.
    Between,
    /// A row whose value lies in the raw cursor's copy of the leaf.
    Leaf,
    /// A row whose value, or its front, is in the buffer: an older version of it, or a long one.
    Buffer,
}

/// How often a row's overflow pages may have been freed when a cursor comes to them, before it asks
/// in earnest whether they are damaged.
const TRIES: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The reader, and what it sees: made anew for each move.
#[derive(Clone, Copy)]
pub struct ReadView<'w> {
    reader: Reader<'w>,
}

impl<'w> ReadView<'w> {
    /// The transaction `own` looks, and sees so much of others.
    #[inline]
    #[must_use]
    pub fn new(context: &'w Context, own: Option<TxnId>, view: View) -> Self {
        ReadView { reader: Reader::new(context.registry(), own, view) }
    }
}

impl RowCursor {
    /// A cursor that stands nowhere.
    #[must_use]
    pub fn new(tree: Tree) -> Self {
        let (raw, value) = (RawCursor::with_marked(tree), Vec::new());
        RowCursor { raw, on: On::Nothing, value, fronts: false, rest: None }
    }

    /// As [`RawCursor::expect_range`].
    pub fn expect_range(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.raw.expect_range(from, to);
    }

    /// As [`RawCursor::expect_rows`].
    pub fn expect_rows(&mut self, rows: u64) {
        self.raw.expect_rows(rows);
    }

    /// Whether it reads of long values only their fronts from now on: what lies beside the key. A
    /// caller that needs all of one asks for it with [`RowCursor::whole`].
    pub fn set_fronts(&mut self, fronts: bool) {
        self.fronts = fronts;
    }

    /// Whether the value of the row stood on has more bytes than are shown.
    #[must_use]
    pub fn is_front(&self) -> bool {
        self.is_on_row() && self.rest.is_some()
    }

    /// Reads what is left of the value of the row stood on, to which a move up, or `down`, has
    /// come. `false`: it is on none, or has gone, as a row can where the view is not a snapshot's,
    /// or is passed over because it cannot be read.
    ///
    /// # Errors
    /// [`TreeError`]; then the same move comes to this row again.
    pub fn whole(&mut self, by: ReadView<'_>, down: bool) -> Result<bool, TreeError> {
        if !self.is_front() {
            return Ok(self.is_on_row());
        }
        let rest = self
            .rest
            .take()
            .map_or(Ok(true), |rest| self.raw.tree().chains().fetch(&rest, &mut self.value));
        match rest {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(e) => {
                let is_passed = self.raw.tree().passes_over(&e);
                self.raw.leave(down != is_passed);
                self.on = On::Between;
                return if is_passed { Ok(false) } else { Err(e) };
            }
        }
        // As `ReadOutcome::Again`: the row names another chain now.
        let way = if down { Way::Down } else { Way::Up };
        let (key, fronts) = (self.raw.key().to_vec(), std::mem::take(&mut self.fronts));
        let again = self.look_again(way);
        let on = self.settle(by, again, way);
        self.fronts = fronts;
        if on? && self.raw.key() == key {
            return Ok(true);
        }
        // The same move comes to what is stood on now.
        if self.is_on_row() {
            self.raw.leave(down);
            self.on = On::Between;
        }
        Ok(false)
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`TreeError`], as all that moves.
    pub fn seek(&mut self, by: ReadView<'_>, key: &[u8]) -> Result<bool, TreeError> {
        let on = self.raw.seek(key);
        self.settle(by, on, Way::Up)
    }

    /// Moves to the last row whose key is below `key`.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_before(&mut self, by: ReadView<'_>, key: &[u8]) -> Result<bool, TreeError> {
        let on = self.raw.seek_before(key);
        self.settle(by, on, Way::Down)
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_first(&mut self, by: ReadView<'_>) -> Result<bool, TreeError> {
        let on = self.raw.seek_first();
        self.settle(by, on, Way::Up)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn seek_last(&mut self, by: ReadView<'_>) -> Result<bool, TreeError> {
        let on = self.raw.seek_last();
        self.settle(by, on, Way::Down)
    }

    /// Moves to the next row.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn next(&mut self, by: ReadView<'_>) -> Result<bool, TreeError> {
        if self.on == On::Nothing {
            return Ok(false);
        }
        let on = self.raw.next();
        self.settle(by, on, Way::Up)
    }

    /// Moves to the row before.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn prev(&mut self, by: ReadView<'_>) -> Result<bool, TreeError> {
        if self.on == On::Nothing {
            return Ok(false);
        }
        let on = self.raw.prev();
        self.settle(by, on, Way::Down)
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.is_on_row() { self.raw.key() } else { &[] }
    }

    /// The value of the row stood on; empty when on none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match self.on {
            On::Nothing | On::Between => &[],
            On::Leaf => self.raw.inline_bytes(),
            On::Buffer => &self.value,
        }
    }

    /// Shows key and value of the row stood on and of those behind it, in order, until `visit`
    /// breaks off (then the cursor stands on that row) or there are no more (then on none). Rows
    /// are lent from the cursor's copy of their leaf. So those of one leaf are seen as they were
    /// when the cursor came to the first of them.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn visit(
        &mut self,
        mut by: ReadView<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        let mut on = if self.on == On::Between { self.next(by)? } else { self.is_on_row() };
        // Its leaf was copied before: what has changed there since, by itself perhaps, is met anew.
        if on && !self.raw.is_fresh() {
            if visit(self.raw.key(), self.value()).is_break() {
                return Ok(());
            }
            on = self.next(by)?;
        }
        while on {
            if visit(self.raw.key(), self.value()).is_break() {
                return Ok(());
            }
            on = loop {
                let Some(head) = self.raw.next_in_leaf() else {
                    by.reader.begin_anew();
                    let on = self.raw.next_leaf();
                    break self.settle(by, on, Way::Up)?;
                };
                if !by.reader.sees_at_once(head.stamp) || head.flags.overflow {
                    break self.settle(by, Ok(true), Way::Up)?;
                }
                if !head.flags.deleted {
                    (self.on, self.rest) = (On::Leaf, None);
                    if visit(self.raw.key(), self.raw.inline_bytes()).is_break() {
                        return Ok(());
                    }
                }
            };
        }
        Ok(())
    }

    fn is_on_row(&self) -> bool {
        matches!(self.on, On::Leaf | On::Buffer)
    }

    /// Goes on from where the raw cursor has moved to, to a row that is seen.
    fn settle(
        &mut self,
        by: ReadView<'_>,
        moved: Result<bool, TreeError>,
        way: Way,
    ) -> Result<bool, TreeError> {
        self.on = On::Nothing;
        self.rest = None;
        let mut settled = moved.and_then(|on| self.settle_from(by, on, way));
        // A row that cannot be read, a long value of it say, is passed over where that is done.
        while let Err(e) = &settled
            && self.raw.head().is_some()
            && self.raw.tree().passes_over(e)
        {
            let moved = if way == Way::Up { self.raw.next() } else { self.raw.prev() };
            settled = moved.and_then(|on| self.settle_from(by, on, way));
        }
        if settled.is_err() {
            // If it stands on a row, that is the one that could not be read.
            self.raw.leave(way == Way::Down);
            self.on = On::Between;
        }
        settled
    }

    fn settle_from(&mut self, by: ReadView<'_>, mut on: bool, way: Way) -> Result<bool, TreeError> {
        let reader = by.reader;
        let (mut tries_left, mut retries) = (TRIES, Retries::default());
        while on {
            let Some(head) = self.raw.head() else { return Ok(false) };
            let at_once = reader.sees_at_once(head.stamp);
            if at_once && !head.flags.deleted && !head.flags.overflow {
                self.on = On::Leaf;
                return Ok(true);
            }
            self.raw.inline(&mut self.value);
            let seen = if at_once {
                if head.flags.deleted { ReadOutcome::Nothing } else { ReadOutcome::Row(head.flags) }
            } else {
                let raw = &self.raw;
                let tree = raw.tree().id();
                reader.see(tree, raw.key(), head, &mut self.value, raw.leaf_state())?
            };
            on = match seen {
                ReadOutcome::Row(flags) if !flags.overflow => {
                    self.on = On::Buffer;
                    return Ok(true);
                }
                ReadOutcome::Row(_) if self.fronts => {
                    self.rest = Some(self.raw.tree().fetch_front(&mut self.value)?);
                    self.on = On::Buffer;
                    return Ok(true);
                }
                ReadOutcome::Row(_) => {
                    if self.raw.tree().fetch(&mut self.value)? {
                        self.on = On::Buffer;
                        return Ok(true);
                    }
                    // Freed since: the row names another one now, or it is damaged.
                    tries_left -= 1;
                    if tries_left == 0 {
                        let key = self.raw.key().to_vec();
                        let now = self.raw.tree().get(&key, &mut self.value)?;
                        if now.is_some_and(|row| !row.flags.deleted) {
                            self.on = On::Buffer;
                            return Ok(true);
                        }
                        tries_left = TRIES;
                    }
                    self.look_again(way)?
                }
                ReadOutcome::Again => {
                    retries.again(self.raw.tree())?;
                    self.look_again(way)?
                }
                ReadOutcome::Nothing => {
                    retries = Retries::default();
                    if way == Way::Up { self.raw.next()? } else { self.raw.prev()? }
                }
            };
        }
        Ok(false)
    }

    /// Finds the row stood on once more, or what comes after it.
    fn look_again(&mut self, way: Way) -> Result<bool, TreeError> {
        let mut key = self.raw.key().to_vec();
        match way {
            Way::Up => self.raw.seek(&key),
            Way::Down => {
                key.push(0);
                self.raw.seek_before(&key)
            }
        }
    }
}
