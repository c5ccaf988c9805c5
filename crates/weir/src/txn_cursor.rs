//! Walking over the rows that a transaction sees, or locks.
use std::ops::ControlFlow;

use weir_txn::{LockingCursor, Looker, RowCursor, Snapshot, View};

use crate::error::Error;
use crate::txn::Txn;

/// A position in a tree among the rows that a transaction sees, its own changes included.
pub struct TxnCursor {
    walk: Walk,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    /// It stands on a row within the bounds.
    on_row: bool,
}

pub(crate) enum Walk {
    /// Its rows are those of the snapshot, or else those that the transaction sees.
    Plain(RowCursor, Option<Snapshot>),
    Locking(LockingCursor),
}

/// Where to go.
#[derive(Clone, Copy)]
enum To<'k> {
    Key(&'k [u8]),
    Before(&'k [u8]),
    First,
    Last,
    Next,
    Prev,
    Again { down: bool },
}

impl TxnCursor {
    pub(crate) fn new(walk: Walk) -> Self {
        TxnCursor { walk, from: Vec::new(), to: None, on_row: false }
    }

    /// Looks only at keys from `from` on and below `to` (`None`: to the end) from now on: nothing
    /// else is seen, or locked. To end with a key, give that key with a zero byte behind it.
    pub fn set_bounds(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.from = from.to_vec();
        self.to = to.map(<[u8]>::to_vec);
        if let Walk::Locking(raw) = &mut self.walk {
            raw.set_bounds(from, to);
        }
    }

    /// Passes over rows that others have locked, instead of waiting for them (SKIP LOCKED). Then no
    /// ranges are locked, at any level. Does nothing where no locks are taken.
    pub fn skip_locked(&mut self) {
        if let Walk::Locking(raw) = &mut self.walk {
            raw.skip_locked();
        }
    }

    /// Whether it shows a row that others have locked as it was committed last, instead of waiting
    /// for it; who wants that row asks for it with [`TxnCursor::insist`]. For what goes through
    /// many rows and changes few. Does nothing where no locks are taken, or ranges are.
    pub fn set_guessing(&mut self, guesses: bool) {
        if let Walk::Locking(raw) = &mut self.walk {
            raw.set_guessing(guesses);
        }
    }

    /// Whether the row stood on is not locked, only shown as it was committed last.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        matches!(&self.walk, Walk::Locking(raw) if self.on_row && raw.is_guess())
    }

    /// Looks at the row stood on once more, and waits for its lock; if it has gone, moves to the
    /// next one, when `down` to the one before. `false`: there is none, or it stood on none.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn insist(&mut self, txn: &mut Txn, down: bool) -> Result<bool, Error> {
        self.go(txn, To::Again { down })
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], as all that moves; and when it locks,
    /// [`Error::Transaction`] when a lock cannot be had. After a deadlock ([`Error::is_deadlock`])
    /// the transaction has been rolled back.
    pub fn seek(&mut self, txn: &mut Txn, key: &[u8]) -> Result<bool, Error> {
        self.go(txn, To::Key(key))
    }

    /// Moves to the last row whose key is below `key`. `false`: there is none.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn seek_before(&mut self, txn: &mut Txn, key: &[u8]) -> Result<bool, Error> {
        self.go(txn, To::Before(key))
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn seek_first(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        self.go(txn, To::First)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn seek_last(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        self.go(txn, To::Last)
    }

    /// Moves to the next row. `false`: there is none, or it stood on none.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn next(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        self.go(txn, To::Next)
    }

    /// Moves to the row before. `false`: there is none, or it stood on none.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn prev(&mut self, txn: &mut Txn) -> Result<bool, Error> {
        self.go(txn, To::Prev)
    }

    fn go(&mut self, txn: &mut Txn, to: To<'_>) -> Result<bool, Error> {
        let was_on_row = std::mem::replace(&mut self.on_row, false);
        if matches!(to, To::Next | To::Prev | To::Again { .. }) && !was_on_row {
            return Ok(false);
        }
        self.on_row = match &mut self.walk {
            Walk::Locking(raw) => {
                let engine = txn.engine.clone();
                engine.check_open()?;
                let (txn, w) = (&mut txn.raw, &engine.writer);
                let found = match to {
                    To::Key(key) => raw.seek(txn, w, key),
                    To::Before(key) => raw.seek_before(txn, w, key),
                    To::First => raw.seek_first(txn, w),
                    To::Last => raw.seek_last(txn, w),
                    To::Next => raw.next(txn, w),
                    To::Prev => raw.prev(txn, w),
                    To::Again { down } => raw.insist(txn, w, down),
                };
                found.map_err(|e| engine.failed(e.into()))?
            }
            Walk::Plain(raw, snapshot) => {
                let (by, from, end) = (looker(snapshot, txn), &self.from, self.to.as_deref());
                let found = match (to, end) {
                    (To::Key(key), _) => raw.seek(by, key.max(from))?,
                    (To::First, _) => raw.seek(by, from)?,
                    (To::Before(key), end) => {
                        raw.seek_before(by, end.map_or(key, |end| end.min(key)))?
                    }
                    (To::Last, Some(end)) => raw.seek_before(by, end)?,
                    (To::Last, None) => raw.seek_last(by)?,
                    (To::Next, _) => raw.next(by)?,
                    (To::Prev, _) => raw.prev(by)?,
                    // What a view shows stays.
                    (To::Again { .. }, _) => true,
                };
                found && **from <= *raw.key() && end.is_none_or(|end| raw.key() < end)
            }
        };
        Ok(self.on_row)
    }

    /// Shows `visit` key and value of the row stood on and of those behind it, in order, until it
    /// breaks off (then the cursor stands on that row) or there are no more within the bounds (then
    /// on none). The quickest way through many rows where no locks are taken: nothing of them is
    /// copied one by one. A cursor that locks comes to one row after the other, as with
    /// [`TxnCursor::next`].
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use weir::{Config, Db, Durability, TxnOptions};
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(&dir.path().join("db"), Config::default())?;
    /// # let tree = db.open_tree("birds")?;
    /// # tree.put(b"finch", b"seeds", Durability::Lazy)?;
    /// # tree.put(b"heron", b"fish", Durability::Lazy)?;
    /// let mut txn = db.begin(TxnOptions::default());
    /// txn.put(&tree, b"ibis", b"crabs")?;
    /// let mut cursor = txn.cursor(&tree);
    /// cursor.set_bounds(b"g", Some(b"j"));
    /// let mut bytes = 0;
    /// if cursor.seek_first(&mut txn)? {
    ///     cursor.visit(&mut txn, |key, value| {
    ///         bytes += key.len() + value.len();
    ///         ControlFlow::Continue(())
    ///     })?;
    /// }
    /// assert_eq!(bytes, 18);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn visit(
        &mut self,
        txn: &mut Txn,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        if let Walk::Plain(raw, snapshot) = &mut self.walk {
            let (by, end) = (looker(snapshot, txn), self.to.as_deref());
            let (was_on_row, mut stays) = (std::mem::replace(&mut self.on_row, false), false);
            if was_on_row {
                raw.visit(by, |key, value| {
                    if end.is_some_and(|end| key >= end) {
                        return ControlFlow::Break(());
                    }
                    let flow = visit(key, value);
                    stays = flow.is_break();
                    flow
                })?;
            }
            self.on_row = stays;
            return Ok(());
        }
        while self.on_row && visit(self.key(), self.value()).is_continue() {
            self.next(txn)?;
        }
        Ok(())
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            _ if !self.on_row => &[],
            Walk::Plain(raw, _) => raw.key(),
            Walk::Locking(raw) => raw.key(),
        }
    }

    /// The value of the row stood on; empty when on none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.walk {
            _ if !self.on_row => &[],
            Walk::Plain(raw, _) => raw.value(),
            Walk::Locking(raw) => raw.value(),
        }
    }
}

fn looker<'t>(snapshot: &Option<Snapshot>, txn: &'t mut Txn) -> Looker<'t> {
    let own = txn.raw.id();
    let view = match snapshot {
        Some(snapshot) => View::At(snapshot.number()),
        None => txn.raw.view(&txn.engine.writer),
    };
    Looker::new(&txn.engine.writer, own, view)
}
