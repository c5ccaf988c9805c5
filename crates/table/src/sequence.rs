//! Numbers that only grow, also over crashes and rollbacks: before numbers of a new stretch are
//! given out, the stretch's end is written down durably (TABLE-5). What a crash leaves of a stretch
//! is a gap.
use parking_lot::Mutex;
use weir::{Db, Durability, Isolation, Tree, TxnOptions};

use crate::error::Error;

/// One source of numbers, from 1 on.
pub(crate) struct Sequence {
    /// Its row in the catalog: the end of the stretch given out last, little-endian.
    key: Vec<u8>,
    stretch: u64,
    state: Mutex<State>,
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

    /// The first of `count` numbers in a row that nobody else gets, at most `max`.
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
        self.reserve(db, catalog, &mut state, end)?;
        state.next = end;
        Ok(first)
    }

    /// Sees to it that all further numbers are above `used`.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn pass(&self, db: &Db, catalog: &Tree, used: u64) -> Result<(), Error> {
        let mut state = self.state.lock();
        self.load(catalog, &mut state)?;
        let end = used.saturating_add(1);
        if end > state.next {
            self.reserve(db, catalog, &mut state, end)?;
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
    /// number any more.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn reset(&self, db: &Db, catalog: &Tree, next: u64) -> Result<(), Error> {
        let mut state = self.state.lock();
        let mut reset = State { next, end: 1 };
        self.reserve(db, catalog, &mut reset, next.max(2))?;
        // Not before: what failed has changed nothing.
        *state = reset;
        Ok(())
    }

    /// Writes down what really was given out, so that a database closed in order has no gap.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn settle(&self, db: &Db, catalog: &Tree) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.next < state.end {
            Self::write_down(db, catalog, &self.key, state.next)?;
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

    fn reserve(&self, db: &Db, catalog: &Tree, state: &mut State, end: u64) -> Result<(), Error> {
        if end <= state.end {
            return Ok(());
        }
        let end = end.saturating_add(self.stretch);
        Self::write_down(db, catalog, &self.key, end)?;
        state.end = end;
        Ok(())
    }

    fn write_down(db: &Db, catalog: &Tree, key: &[u8], end: u64) -> Result<(), Error> {
        // A transaction of its own: whoever needs the number may yet be rolled back. It is durable
        // before the number is shown to anybody.
        let isolation = Isolation::ReadCommitted;
        let mut txn = db.begin(TxnOptions { isolation, ..TxnOptions::default() });
        txn.put(catalog, key, &end.to_le_bytes())?;
        txn.commit_durably(Durability::Synced)?;
        Ok(())
    }
}
