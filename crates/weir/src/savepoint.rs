//! Savepoints that are good for one transaction, and only as long as what they stand on is there.
use std::cell::{Cell, RefCell};

use weir_base::unique_number;

use crate::error::Error;
use crate::txn::Txn;

/// A point of a transaction to go back to ([`Txn::rollback_to`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    raw: weir_txn::Savepoint,
    /// Of the transaction.
    mark: u64,
    /// How many its transaction had made before.
    serial: u64,
}

impl Savepoint {
    /// Its number, for callers that cannot hold it: of two of one transaction the later has the
    /// greater one, and those of other transactions have others.
    #[must_use]
    pub fn number(&self) -> u64 {
        // Of 4 billion transactions, and 4 billion savepoints of each.
        self.mark << 32 | self.serial & 0xffff_ffff
    }
}

/// By what a transaction knows its savepoints, and its cursors.
#[derive(Default)]
pub(crate) struct Marks {
    /// No two transactions of this process have the same; 0: none was needed yet.
    mark: Cell<u64>,
    /// Savepoints made so far.
    made: Cell<u64>,
    /// Which of them are good for nothing any more, from one number up to before another,
    /// ascending: made after a savepoint that was gone back to since.
    gone: RefCell<Vec<(u64, u64)>>,
}

impl Marks {
    /// The transaction's own mark.
    pub(crate) fn mark(&self) -> u64 {
        if self.mark.get() == 0 {
            self.mark.set(unique_number());
        }
        self.mark.get()
    }

    fn next(&self) -> u64 {
        self.made.replace(self.made.get() + 1)
    }

    fn is_good(&self, serial: u64) -> bool {
        let gone = self.gone.borrow();
        let at = gone.partition_point(|(_, to)| *to <= serial);
        serial < self.made.get() && gone.get(at).is_none_or(|(from, _)| serial < *from)
    }

    /// The transaction has gone back to this one, which is kept.
    fn gone_back_to(&self, serial: u64) {
        let mut gone = self.gone.borrow_mut();
        let (from, to) = (serial + 1, self.made.get());
        gone.retain(|(known, _)| *known < from);
        match gone.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ if from < to => gone.push((from, to)),
            _ => {}
        }
    }
}

impl Txn {
    /// A point to go back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        let (mark, serial) = (self.marks.mark(), self.marks.next());
        Savepoint { raw: self.raw.savepoint(), mark, serial }
    }

    /// Rolls back what was changed since the savepoint, which is kept; those made after it are good
    /// for nothing any more. Explicit locks are kept, too; a row that nothing but a change had
    /// locked is free again.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a savepoint of another transaction, or one made after a savepoint
    /// that was gone back to since: nothing is rolled back. [`Error::Transaction`] when it has
    /// ended; after others it can only be rolled back as a whole.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), Error> {
        self.engine.check_here()?;
        if savepoint.mark != self.marks.mark() {
            return Err(Error::Foreign("the savepoint is of another transaction"));
        }
        if !self.marks.is_good(savepoint.serial) {
            return Err(Error::Foreign(
                "the savepoint is gone: what was changed before it was made has been rolled back",
            ));
        }
        let done = self.raw.rollback_to(&self.engine.context, savepoint.raw);
        done.map_err(|e| self.engine.failed(e.into()))?;
        self.marks.gone_back_to(savepoint.serial);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn going_back_again_and_again_remembers_little() {
        let marks = Marks::default();
        let first = marks.next();
        for _ in 0..1000 {
            marks.gone_back_to(marks.next());
        }
        assert_eq!(*marks.gone.borrow(), []);
        for _ in 0..1000 {
            marks.next();
            marks.gone_back_to(first);
        }
        assert_eq!(*marks.gone.borrow(), [(1, 2001)]);
    }

    proptest! {
        /// As a stack of savepoints has it: going back takes those above away.
        #[test]
        fn good_are_those_of_a_stack(acts in proptest::collection::vec(0..12usize, 0..200)) {
            let marks = Marks::default();
            let mut stack: Vec<u64> = Vec::new();
            for act in acts {
                if act < 6 {
                    stack.push(marks.next());
                } else if let Some(at) = stack.len().checked_sub(act - 5) {
                    stack.truncate(at + 1);
                    marks.gone_back_to(stack[at]);
                }
                for serial in 0..marks.made.get() + 2 {
                    prop_assert_eq!(marks.is_good(serial), stack.contains(&serial), "{}", serial);
                }
            }
        }
    }
}
