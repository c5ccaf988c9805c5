//! Walking a table's rows, or the entries of an index, in key order.
use weir::{Txn, TxnCursor};

use crate::entry::Parts;
use crate::error::Error;
use crate::fold;
use crate::raw::RawTable;
use crate::run::{Run, Walk};
pub use crate::span::{Direction, KeyRange, Lock};

/// A walk over a range of the rows (or entries) that a transaction sees. After a step that has
/// failed it stands on none, and the next step tries again ([`TxnCursor`]).
pub struct RawScan {
    cursor: TxnCursor,
    range: KeyRange,
    direction: Direction,
    state: State,
    is_index: bool,
    locks: bool,
    /// Of long rows the fronts are enough.
    fronts: bool,
    /// The run of folded keys that it is in.
    run: Option<Box<Run>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    On,
    /// On what the next step is to come to.
    Again,
    After,
}

impl RawTable {
    /// Walks the rows (`None`), or the entries of an index by its place.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::NoIndex`], [`Error::Store`].
    pub fn scan(
        &self,
        txn: &mut Txn,
        index: Option<usize>,
        range: KeyRange,
        direction: Direction,
    ) -> Result<RawScan, Error> {
        self.scan_with(txn, index, range, direction, Lock::Plain)
    }

    /// As [`RawTable::scan`], with locks on what it comes to: of an index, on its entries, not on
    /// their rows.
    ///
    /// # Errors
    /// As [`RawTable::scan`].
    pub fn scan_with(
        &self,
        txn: &mut Txn,
        index: Option<usize>,
        range: KeyRange,
        direction: Direction,
        lock: Lock,
    ) -> Result<RawScan, Error> {
        let (tree, since) = match index {
            None => (&self.primary, self.info.since),
            Some(at) => {
                let index = self.info.indexes.get(at).filter(|index| !index.building);
                let index = index.ok_or_else(|| Error::NoIndex(format!("number {at}")))?;
                (&self.indexes[at], index.since)
            }
        };
        // Made first: a cursor at READ COMMITTED has a snapshot of its own, which must not be
        // younger than what is found out about the definition.
        let mut cursor = match lock {
            Lock::Plain => txn.cursor(tree),
            Lock::Share => txn.cursor_for_share(tree),
            Lock::Update => txn.cursor_for_update(tree),
        };
        if lock == Lock::Plain {
            self.check_view(txn, since)?;
        } else {
            self.lock_definition(txn)?;
        }
        set_bounds(&mut cursor, &range);
        let (is_index, locks) = (index.is_some(), lock != Lock::Plain);
        let (state, run) = (State::Before, None);
        Ok(RawScan { cursor, range, direction, state, is_index, locks, fronts: false, run })
    }

    /// Counts the rows that the transaction sees, by walking the tree that is the least work.
    ///
    /// # Errors
    /// As [`RawTable::scan`].
    pub fn count(&self, txn: &mut Txn) -> Result<u64, Error> {
        let index = self.info.indexes.iter().position(|index| !index.building && !index.several);
        // An older snapshot may not know the index.
        let mut scan = match self.scan(txn, index, KeyRange::all(), Direction::Up) {
            Err(Error::Changed) => self.scan(txn, None, KeyRange::all(), Direction::Up)?,
            scan => scan?,
        };
        scan.set_fronts(true);
        let mut rows = 0;
        while scan.next(txn)? {
            rows += 1;
        }
        Ok(rows)
    }
}

/// Has a cursor see nothing else; the bounds of long keys are those of their fronts.
fn set_bounds(cursor: &mut TxnCursor, range: &KeyRange) {
    let to = range.to.as_deref().and_then(fold::upper);
    cursor.set_bounds(fold::lower(&range.from), to.as_deref());
}

impl RawScan {
    /// Walks another range from its beginning on, with the locks and, at READ COMMITTED, the
    /// snapshot that it has.
    pub fn set_range(&mut self, range: KeyRange) {
        set_bounds(&mut self.cursor, &range);
        (self.range, self.state, self.run) = (range, State::Before, None);
        self.cursor.set_fronts(self.fronts);
    }

    /// Moves on. `false`: there is nothing more.
    ///
    /// # Errors
    /// [`Error::Store`].
    #[allow(clippy::should_implement_trait)] // Rows are borrowed from the cursor: no Iterator.
    pub fn next(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        if self.run.is_some() {
            return self.in_run(txn, Run::next);
        }
        let cursor = &mut self.cursor;
        let on = match (self.state, self.direction) {
            (State::After, _) => return Ok(false),
            (State::Again, _) => !cursor.key().is_empty(),
            (State::Before, Direction::Up) => cursor.seek(txn, fold::lower(&self.range.from))?,
            (State::Before, Direction::Down) => {
                match self.range.to.as_deref().and_then(fold::upper) {
                    Some(to) => cursor.seek_before(txn, &to)?,
                    None => cursor.seek_last(txn)?,
                }
            }
            (State::On, Direction::Up) => cursor.next(txn)?,
            (State::On, Direction::Down) => cursor.prev(txn)?,
        };
        self.settle(txn, on)
    }

    /// Stands on what the cursor has come to, if that is within the range.
    fn settle(&mut self, txn: &mut Txn, mut on: bool) -> Result<bool, Error> {
        let (cursor, range) = (&mut self.cursor, &self.range);
        if on && fold::is_folded(cursor.key()) {
            // What is left of the key stands in front of the value, and may be longer than a front.
            cursor.set_fronts(false);
            self.run = Some(Box::new(Run::at(cursor.key(), self.direction)));
            return self.in_run(txn, Run::next);
        }
        // The bound of the cursor is shorter than that of the walk.
        if on
            && self.direction == Direction::Up
            && fold::is_long(&range.from)
            && cursor.key() < &range.from[..]
        {
            self.state = State::On;
            on = cursor.next(txn)?;
            return self.settle(txn, on);
        }
        let within = on
            && match self.direction {
                Direction::Up => range.to.as_deref().is_none_or(|to| cursor.key() < to),
                Direction::Down => cursor.key() >= &range.from[..],
            };
        self.state = if within { State::On } else { State::After };
        Ok(within)
    }

    /// Takes a step in a run, or to what comes behind it.
    fn in_run(
        &mut self,
        txn: &mut Txn,
        step: fn(&mut Run, &mut Walk<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let Some(run) = &mut self.run else { return Ok(false) };
        let (cursor, range, locks) = (&mut self.cursor, &self.range, self.locks);
        let mut walk = Walk { txn, cursor, range, locks };
        if step(run, &mut walk)? {
            self.state = State::On;
            return Ok(true);
        }
        let on = run.leave(&mut walk)?;
        self.run = None;
        self.cursor.set_fronts(self.fronts);
        self.settle(txn, on)
    }

    /// Whether it shows of long rows only their first bytes ([`TxnCursor::set_fronts`]) from now
    /// on. Does nothing with locks, or to a walk over an index; and rows of folded keys are shown
    /// whole.
    pub fn set_fronts(&mut self, fronts: bool) {
        self.fronts = fronts && !self.is_index && !self.locks;
        if self.run.is_none() {
            self.cursor.set_fronts(self.fronts);
        }
    }

    /// Whether the row stood on is shown in part.
    #[must_use]
    pub fn is_front(&self) -> bool {
        self.run.is_none() && self.is_on() && self.cursor.is_front()
    }

    /// Reads what is left of the row stood on. `false`: it has gone, as a row can at READ
    /// UNCOMMITTED; the next step goes on behind it.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn whole(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        if !self.is_front() {
            return Ok(self.is_on());
        }
        Ok(self.cursor.whole(txn, self.direction == Direction::Down)?)
    }

    /// Passes over what others have locked, instead of waiting (SKIP LOCKED). Does nothing without
    /// locks.
    pub fn skip_locked(&mut self) {
        self.cursor.skip_locked();
    }

    /// Whether it shows a row that others have locked as it was committed last, instead of waiting
    /// for it; [`RawScan::lock_current`] waits. Below REPEATABLE READ only, and only with locks.
    pub fn set_semi_consistent(&mut self, semi_consistent: bool) {
        self.cursor.set_semi_consistent(semi_consistent);
    }

    /// Whether the row stood on is not locked, only shown as it was committed last.
    #[must_use]
    pub fn is_unlocked(&self) -> bool {
        self.is_on() && self.cursor.is_unlocked()
    }

    /// Looks at the row stood on once more, and waits for its lock; if it has gone, moves on.
    /// `false`: there is nothing more.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn lock_current(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        if self.run.is_some() {
            return self.in_run(txn, Run::lock_current);
        }
        let on =
            self.is_on() && self.cursor.lock_current(txn, self.direction == Direction::Down)?;
        self.settle(txn, on)
    }

    /// The next step comes once more to what it stands on: a transaction that was to do something
    /// with it could not.
    pub(crate) fn come_again(&mut self) {
        if let Some(run) = &mut self.run {
            run.come_again();
        } else if self.is_on() {
            self.state = State::Again;
        }
    }

    fn is_on(&self) -> bool {
        match &self.run {
            Some(run) => run.stood().is_some(),
            None => matches!(self.state, State::On | State::Again),
        }
    }

    /// The whole key: the primary key, or of an entry its index key and perhaps the primary key
    /// behind it. Empty when on none.
    #[must_use]
    pub fn tree_key(&self) -> &[u8] {
        self.stood().0
    }

    /// The whole key, and what was given with it.
    fn stood(&self) -> (&[u8], &[u8]) {
        match &self.run {
            Some(run) => run.stood().unwrap_or_default(),
            None if self.is_on() => (self.cursor.key(), self.cursor.value()),
            None => (&[], &[]),
        }
    }

    /// The row; of an index, nothing. Empty when on none.
    #[must_use]
    pub fn row(&self) -> &[u8] {
        if self.is_index { &[] } else { self.stood().1 }
    }

    /// The primary key of the row stood on.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn primary_key(&self) -> Result<&[u8], Error> {
        if self.is_index { Ok(self.parts()?.primary) } else { Ok(self.tree_key()) }
    }

    /// The index key of the entry stood on; of a row, its primary key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn index_key(&self) -> Result<&[u8], Error> {
        if self.is_index { Ok(self.parts()?.key) } else { Ok(self.tree_key()) }
    }

    /// The payload of the entry stood on; of a row, nothing.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn payload(&self) -> Result<&[u8], Error> {
        if self.is_index { Ok(self.parts()?.payload) } else { Ok(&[]) }
    }

    fn parts(&self) -> Result<Parts<'_>, Error> {
        if !self.is_on() {
            return Ok(Parts { key: &[], primary: &[], payload: &[] });
        }
        let (key, value) = self.stood();
        Parts::of(key, value)
    }
}
