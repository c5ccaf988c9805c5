//! Walking over keys that begin with so many same bytes that their trees do not order them
//! ([`crate::fold`]).
use std::collections::BTreeMap;

use weir::{Txn, TxnCursor};

use crate::error::Error;
use crate::fold::{head, is_folded, split_tail};
use crate::key::after_prefix;
use crate::scan::{Direction, KeyRange};

/// Bytes of a run that are in memory at once: a longer one is gone through again for the next.
const RUN_BYTES_MAX: usize = 1 << 20;

/// The walk that goes through a run.
pub(crate) struct Walk<'w> {
    pub(crate) txn: &'w mut Txn,
    pub(crate) cursor: &'w mut TxnCursor,
    pub(crate) range: &'w KeyRange,
    /// Each row is come to by itself, so that the cursor stands on it.
    pub(crate) locks: bool,
}

/// A run that a walk is in.
pub(crate) struct Run {
    head: Vec<u8>,
    direction: Direction,
    /// What is still to come, by its whole key; what is stood on comes first.
    rows: BTreeMap<Vec<u8>, Row>,
    bytes: usize,
    /// Whether the first of `rows` is stood on.
    on: bool,
    /// The whole key of the row come to before.
    last: Option<Vec<u8>>,
    /// Whether others may come behind `rows`.
    more: bool,
    /// Whether the cursor stands on a row behind the run; `None`: it stands elsewhere.
    behind: Option<bool>,
}

/// A row, or an entry.
struct Row {
    tree_key: Vec<u8>,
    stored: Vec<u8>,
    value_at: usize,
}

impl Row {
    /// What the cursor stands on, and its whole key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    fn of(cursor: &TxnCursor) -> Result<(Vec<u8>, Row), Error> {
        let (tree_key, stored) = (cursor.key().to_vec(), cursor.value().to_vec());
        let (tail, value) = split_tail(&stored)?;
        let (key, value_at) = ([head(&tree_key), tail].concat(), stored.len() - value.len());
        Ok((key, Row { tree_key, stored, value_at }))
    }

    fn bytes(&self) -> usize {
        // The whole key is not longer than what the two hold of it.
        2 * (self.tree_key.len() + self.stored.len())
    }
}

impl Run {
    /// The run that a cursor has come to.
    pub(crate) fn at(tree_key: &[u8], direction: Direction) -> Run {
        let (head, rows) = (head(tree_key).to_vec(), BTreeMap::new());
        let (on, last, more, behind) = (false, None, true, None);
        Run { head, direction, rows, bytes: 0, on, last, more, behind }
    }

    /// Key and value, as they were given, of what is stood on.
    pub(crate) fn stood(&self) -> Option<(&[u8], &[u8])> {
        let (key, row) = self.first().filter(|_| self.on)?;
        Some((key, &row.stored[row.value_at..]))
    }

    /// The next step comes again to what is stood on.
    pub(crate) fn come_again(&mut self) {
        self.on = false;
    }

    fn first(&self) -> Option<(&Vec<u8>, &Row)> {
        match self.direction {
            Direction::Up => self.rows.first_key_value(),
            Direction::Down => self.rows.last_key_value(),
        }
    }

    /// Removes what comes next, or of all that is known, what comes last.
    fn remove(&mut self, first: bool) -> Option<Vec<u8>> {
        let (key, row) = match (self.direction, first) {
            (Direction::Up, true) | (Direction::Down, false) => self.rows.pop_first()?,
            (Direction::Up, false) | (Direction::Down, true) => self.rows.pop_last()?,
        };
        self.bytes -= row.bytes();
        Some(key)
    }

    /// Moves on within the run and the range. `false`: there is no more in it.
    ///
    /// # Errors
    /// As the cursor's; then the next call tries again.
    pub(crate) fn next(&mut self, walk: &mut Walk<'_>) -> Result<bool, Error> {
        if std::mem::take(&mut self.on) {
            self.last = self.remove(true);
        }
        loop {
            let Some((_, row)) = self.first() else {
                if !self.more {
                    return Ok(false);
                }
                self.gather(walk)?;
                continue;
            };
            if walk.locks && !self.come_to(walk, row)? {
                // It has gone since.
                self.last = self.remove(true);
                continue;
            }
            if walk.locks {
                self.look(walk)?;
            }
            self.on = true;
            return Ok(true);
        }
    }

    /// Waits for what is stood on (`TxnCursor::lock_current`), or moves on when it has gone.
    /// `false`: there is no more.
    ///
    /// # Errors
    /// As [`Run::next`].
    pub(crate) fn lock_current(&mut self, walk: &mut Walk<'_>) -> Result<bool, Error> {
        if std::mem::take(&mut self.on) {
            let tree_key = walk.cursor.key().to_vec();
            let there = walk.cursor.lock_current(walk.txn, self.direction == Direction::Down)?;
            if there && walk.cursor.key() == tree_key {
                self.look(walk)?;
                self.on = true;
                return Ok(true);
            }
            self.last = self.remove(true);
        }
        self.next(walk)
    }

    /// The first row is what the cursor stands on, which may have changed.
    fn look(&mut self, walk: &Walk<'_>) -> Result<(), Error> {
        self.remove(true);
        let (key, row) = Row::of(walk.cursor)?;
        self.bytes += row.bytes();
        self.rows.insert(key, row);
        Ok(())
    }

    /// Moves to a row. `false`: it is not there.
    fn come_to(&self, walk: &mut Walk<'_>, row: &Row) -> Result<bool, Error> {
        let on = match self.direction {
            Direction::Up => walk.cursor.seek(walk.txn, &row.tree_key)?,
            Direction::Down => walk.cursor.seek_before(walk.txn, &with_zero(&row.tree_key))?,
        };
        Ok(on && walk.cursor.key() == row.tree_key)
    }

    /// Moves to what comes behind the run. `false`: nothing does.
    ///
    /// # Errors
    /// As [`Run::next`].
    pub(crate) fn leave(&self, walk: &mut Walk<'_>) -> Result<bool, Error> {
        if let Some(on) = self.behind {
            return Ok(on);
        }
        Ok(match (self.direction, after_prefix(&self.head)) {
            (Direction::Up, None) => false,
            (Direction::Up, Some(behind)) => walk.cursor.seek(walk.txn, &behind)?,
            (Direction::Down, _) => walk.cursor.seek_before(walk.txn, &with_zero(&self.head))?,
        })
    }

    /// Gathers the next rows of the run.
    fn gather(&mut self, walk: &mut Walk<'_>) -> Result<(), Error> {
        self.behind = None;
        let gathered = self.gather_from_first(walk);
        if gathered.is_err() {
            self.rows.clear();
            (self.bytes, self.more) = (0, true);
        }
        gathered
    }

    fn gather_from_first(&mut self, walk: &mut Walk<'_>) -> Result<(), Error> {
        // A key that is the head itself is not of the run; it comes before it.
        let mut on = match (self.direction, after_prefix(&self.head)) {
            (Direction::Up, _) => walk.cursor.seek(walk.txn, &with_zero(&self.head))?,
            (Direction::Down, Some(end)) => walk.cursor.seek_before(walk.txn, &end)?,
            (Direction::Down, None) => walk.cursor.seek_last(walk.txn)?,
        };
        self.more = false;
        while on && is_folded(walk.cursor.key()) && head(walk.cursor.key()) == self.head {
            let (key, row) = Row::of(walk.cursor)?;
            self.keep(key, row, walk.range);
            on = match self.direction {
                Direction::Up => walk.cursor.next(walk.txn)?,
                Direction::Down => walk.cursor.prev(walk.txn)?,
            };
        }
        if !walk.locks && !self.more {
            self.behind = Some(on);
        }
        Ok(())
    }

    /// Keeps a row if it is to come, and gives up those that come last if there are too many.
    fn keep(&mut self, key: Vec<u8>, row: Row, range: &KeyRange) {
        let is_behind = match (&self.last, self.direction) {
            (None, _) => true,
            (Some(last), Direction::Up) => key > *last,
            (Some(last), Direction::Down) => key < *last,
        };
        if !is_behind || key < range.from || range.to.as_ref().is_some_and(|to| key >= *to) {
            return;
        }
        self.bytes += row.bytes();
        self.rows.insert(key, row);
        while self.bytes > RUN_BYTES_MAX && self.rows.len() > 1 {
            self.remove(false);
            self.more = true;
        }
    }
}

/// The least key above another.
fn with_zero(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
