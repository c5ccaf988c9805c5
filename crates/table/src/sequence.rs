//! Numbers that only grow, also over crashes and rollbacks: before numbers of a new stretch are
//! given out, the stretch's end is written down (TABLE-5). No transaction waits for that: it lies
//! in the log before whatever is done with the number, and is durable as soon as that is. What a
//! crash leaves of a stretch is a gap, which is little beside what is left.
use weir::{Db, Durability, Tree, Txn};
use weir_base::lock::Mutex;
use weir_base::rank;

use crate::catalog_row::begin;
use crate::error::Error;

/// Of the numbers that are left, one in so many is written down ahead at most. Crashes, however
/// many, do not use a small column up; and for one of 32 bits there is no more to write than for a
/// larger one until it is nearly full.
const LEFT_TO_AHEAD: u64 = 64;

/// One source of numbers, from 1 on.
pub(crate) struct Sequence {
    /// Its row in the catalog: the end of the stretch given out last, little-endian.
    key: Vec<u8>,
    stretch: u64,
    state: Mutex<rank::NumberStretch, State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Numbers below are written down as given out. 0: not read yet.
    end: u64,
}

impl Sequence {
    pub(crate) fn new(key: Vec<u8>, stretch: u64) -> Self {
        Sequence { key, stretch, state: Mutex::default() }
    }

    /// The first of `count` numbers in a row that no other transaction gets, at most `max`.
    ///
    /// # Errors
    /// [`Error::Exhausted`], [`Error::Store`].
    pub(crate) fn take(&self, db: &Db, catalog: &Tree, count: u64, max: u64) -> Result<u64, Error> {
        let mut state = self.state.lock();
        self.load(catalog, &mut state)?;
        let first = state.next;
        let end = first.checked_add(count).ok_or(Error::Exhausted)?;
        if count > 0 && end - 1 > max {
            return Err(Error::Exhausted);
        }
        self.reserve(db, catalog, &mut state, end, max)?;
        state.next = end;
        Ok(first)
    }

    /// Sees to it that all further numbers are above `used`; `max` as in [`Sequence::take`].
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn pass(&self, db: &Db, catalog: &Tree, used: u64, max: u64) -> Result<(), Error> {
        let mut state = self.state.lock();
        self.load(catalog, &mut state)?;
        let end = used.saturating_add(1);
        if end > state.next {
            self.reserve(db, catalog, &mut state, end, max)?;
            state.next = end;
        }
        Ok(())
    }

    /// The number that would be given out next.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn peek(&self, catalog: &Tree) -> Result<u64, Error> {
        let mut state = self.state.lock();
        self.load(catalog, &mut state)?;
        Ok(state.next)
    }

    /// Goes on with `next`, be it lower than what was given out or not. For a table that holds no
    /// number any more: `txn` may be the one that takes the rows away. It is committed, durably.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn reset(&self, txn: Txn, catalog: &Tree, next: u64) -> Result<(), Error> {
        let mut state = self.state.lock();
        let next = next.max(1);
        // Nothing ahead: how much that may be is known to the transaction that takes the first.
        self.write_down(txn, catalog, next, Durability::Synced)?;
        // Not before: what failed has changed nothing.
        *state = State { next, end: next };
        Ok(())
    }

    /// Writes down what really was given out, so that a database closed in order has no gap.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn settle(&self, db: &Db, catalog: &Tree) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.next >= state.end {
            return Ok(());
        }
        let (mut txn, mut written) = (begin(db), Vec::new());
        // If it is another's by now, that has opened the tables again, or gone with its table,
        // nothing may go back.
        if txn.get_for_update(catalog, &self.key, &mut written)?
            && written == state.end.to_le_bytes()
        {
            self.write_down(txn, catalog, state.next, Durability::Synced)?;
            state.end = state.next;
        }
        Ok(())
    }

    fn load(&self, catalog: &Tree, state: &mut State) -> Result<(), Error> {
        if state.end > 0 {
            return Ok(());
        }
        let end = match catalog.get(&self.key)? {
            None => 1,
            Some(bytes) => u64::from_le_bytes(bytes.as_slice().try_into().map_err(|_| {
                Error::Damaged("a counter in the catalog is not 8 bytes long".into())
            })?),
        };
        *state = State { next: end, end };
        Ok(())
    }

    fn reserve(
        &self,
        db: &Db,
        catalog: &Tree,
        state: &mut State,
        end: u64,
        max: u64,
    ) -> Result<(), Error> {
        if end <= state.end {
            return Ok(());
        }
        let end = end.saturating_add(ahead(self.stretch, end, max));
        // Before the number is shown to any transaction.
        self.write_down(begin(db), catalog, end, Durability::Lazy)?;
        state.end = end;
        Ok(())
    }

    /// `txn` is not that of the transaction that needs the number: it may yet be rolled back.
    fn write_down(
        &self,
        mut txn: Txn,
        catalog: &Tree,
        end: u64,
        durability: Durability,
    ) -> Result<(), Error> {
        txn.put(catalog, &self.key, &end.to_le_bytes())?;
        Ok(txn.commit_durably(durability)?)
    }
}

/// How many numbers from `end` on are written down as given out before any transaction wants them.
fn ahead(stretch: u64, end: u64, max: u64) -> u64 {
    stretch.min(max.saturating_sub(end) / LEFT_TO_AHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_ahead_is_little_beside_what_is_left() {
        let cases = [
            ((2, u64::MAX), 1_000),
            ((2, u64::from(u32::MAX)), 1_000),
            ((2, 32_767), 511),
            ((32_000, 32_767), 11),
            ((2, 127), 1),
            ((100, 127), 0),
            ((128, 127), 0),
            // A host whose numbers have gaps may pass beyond.
            ((140, 127), 0),
            ((u64::MAX, u64::MAX), 0),
        ];
        for ((end, max), expected) in cases {
            assert_eq!(ahead(1_000, end, max), expected, "{end} of {max}");
        }
    }

    /// How often a table that is filled one by one waits for that.
    #[test]
    fn a_small_column_is_not_written_down_much_more_often() {
        for (max, most) in [(127, 130), (32_767, 500), (8_388_607, 9_000)] {
            let (mut next, mut times) = (1, 0);
            while next <= max {
                next += 1 + ahead(1_000, next + 1, max);
                times += 1;
            }
            assert!(times <= most, "{times} times to {max}");
        }
    }
}
