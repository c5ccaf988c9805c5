//! Walking over the rows that a transaction sees, or locks.
use std::ops::ControlFlow;

use weir_txn::{LockingCursor, ReadView, RowCursor, Snapshot, TxnError, View};

use crate::error::Error;
use crate::txn::Txn;

/// A position in a tree among the rows that a transaction sees, its own changes included.
///
/// After a move that has failed, other than for a reason that was plain before it began, it stands
/// on no row, but between those that it has come by and those that it has not: the next move the
/// same way tries again, and one the other way comes back. So a walk that goes on after an error,
/// a lock timeout say, passes over nothing, and does not end early.
pub struct TxnCursor {
    walk: Walk,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    stands: Stands,
    /// Of the transaction that moves it.
    mark: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Nowhere,
    /// On a row within the bounds.
    OnRow,
    /// On none: a move has failed.
    Between,
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
    pub(crate) fn new(walk: Walk, mark: u64) -> Self {
        TxnCursor { walk, from: Vec::new(), to: None, stands: Stands::Nowhere, mark }
    }

    /// Retries only at keys from `from` on and below `to` (`None`: to the end) from now on: nothing
    /// else is seen, or locked. To end with a key, give that key with a zero byte behind it.
    pub fn set_bounds(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.from = from.to_vec();
        self.to = to.map(<[u8]>::to_vec);
        match &mut self.walk {
            Walk::Locking(raw) => raw.set_bounds(from, to),
            Walk::Plain(raw, _) => raw.expect_range(from, to),
        }
    }

    /// As [`crate::Cursor::expect_rows`].
    pub fn expect_rows(&mut self, rows: u64) {
        match &mut self.walk {
            Walk::Locking(raw) => raw.expect_rows(rows),
            Walk::Plain(raw, _) => raw.expect_rows(rows),
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
    /// for it; a caller that wants that row asks for it with [`TxnCursor::lock_current`]. For what
    /// goes through many rows and changes few. Does nothing where no locks are taken, or ranges
    /// are.
    pub fn set_semi_consistent(&mut self, semi_consistent: bool) {
        if let Walk::Locking(raw) = &mut self.walk {
            raw.set_semi_consistent(semi_consistent);
        }
    }

    /// Whether it reads of long values only their **fronts** from now on: the first bytes, which
    /// lie beside the key, at least 128. A value that is shown in part is [`TxnCursor::is_front`],
    /// and [`TxnCursor::whole`] reads the rest of it. Does nothing where locks are taken.
    pub fn set_fronts(&mut self, fronts: bool) {
        if let Walk::Plain(raw, _) = &mut self.walk {
            raw.set_fronts(fronts);
        }
    }

    /// Whether the value of the row stood on has more bytes than are shown.
    #[must_use]
    pub fn is_front(&self) -> bool {
        matches!(&self.walk, Walk::Plain(raw, _) if self.is_on_row() && raw.is_front())
    }

    /// Reads what is left of the value of the row stood on, to which a move up, or `down`, has
    /// come. `false`: it stands on none, or at READ UNCOMMITTED the row has gone.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn whole(&mut self, txn: &mut Txn, down: bool) -> Result<bool, Error> {
        if !self.is_front() {
            return Ok(self.is_on_row());
        }
        self.check(txn)?;
        let Walk::Plain(raw, snapshot) = &mut self.walk else { return Ok(true) };
        let whole = raw.whole(looker(snapshot, txn), down);
        if !matches!(whole, Ok(true)) {
            self.stands = Stands::Between;
        }
        Ok(whole?)
    }

    /// Whether the row stood on is not locked, only shown as it was committed last.
    #[must_use]
    pub fn is_unlocked(&self) -> bool {
        matches!(&self.walk, Walk::Locking(raw) if self.is_on_row() && raw.is_unlocked())
    }

    /// Retries at the row stood on once more, and waits for its lock; if it has gone, moves to the
    /// next one, when `down` to the one before. `false`: there is none, or it stood on none.
    ///
    /// # Errors
    /// As [`TxnCursor::seek`].
    pub fn lock_current(&mut self, txn: &mut Txn, down: bool) -> Result<bool, Error> {
        self.go(txn, To::Again { down })
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], as all that moves; [`Error::Transaction`] when the
    /// transaction has ended, and when it locks, when a lock cannot be had. After a deadlock
    /// ([`Error::is_deadlock`]) the transaction has been rolled back. [`Error::Foreign`] with
    /// another transaction than the one that made it.
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
        self.check(txn)?;
        let stays = matches!(to, To::Next | To::Prev | To::Again { .. });
        if stays && self.stands == Stands::Nowhere {
            return Ok(false);
        }
        let moved = self.moved(txn, to);
        self.stands = match moved {
            Ok(true) => Stands::OnRow,
            Ok(false) => Stands::Nowhere,
            Err(_) => Stands::Between,
        };
        moved
    }

    /// What forbids any move, and leaves the cursor as it is.
    fn check(&self, txn: &Txn) -> Result<(), Error> {
        if self.mark != txn.marks.mark() {
            return Err(Error::Foreign(
                "the cursor is of another transaction, or over a tree of another database",
            ));
        }
        match &self.walk {
            Walk::Locking(_) => txn.engine.check_open()?,
            Walk::Plain(..) => txn.engine.check_here()?,
        }
        if txn.has_ended() { Err(Error::Transaction(TxnError::Ended)) } else { Ok(()) }
    }

    fn moved(&mut self, txn: &mut Txn, to: To<'_>) -> Result<bool, Error> {
        match &mut self.walk {
            Walk::Locking(raw) => {
                let engine = txn.engine.clone();
                let (by, w) = (&mut txn.raw, &engine.context);
                let found = match to {
                    To::Key(key) => raw.seek(by, w, key),
                    To::Before(key) => raw.seek_before(by, w, key),
                    To::First => raw.seek_first(by, w),
                    To::Last => raw.seek_last(by, w),
                    To::Next => raw.next(by, w),
                    To::Prev => raw.prev(by, w),
                    To::Again { down } => raw.lock_current(by, w, down),
                };
                txn.outcome(found)
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
                    // What a view shows stays.
                    (To::Again { .. }, _) if self.stands == Stands::OnRow => true,
                    (To::Next | To::Again { down: false }, _) => raw.next(by)?,
                    (To::Prev | To::Again { down: true }, _) => raw.prev(by)?,
                };
                Ok(found && **from <= *raw.key() && end.is_none_or(|end| raw.key() < end))
            }
        }
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
        self.check(txn)?;
        if self.stands == Stands::Between {
            self.next(txn)?;
        }
        if !self.is_on_row() {
            return Ok(());
        }
        if let Walk::Plain(raw, snapshot) = &mut self.walk {
            let (by, end, mut stays) = (looker(snapshot, txn), self.to.as_deref(), false);
            let visited = raw.visit(by, |key, value| {
                if end.is_some_and(|end| key >= end) {
                    return ControlFlow::Break(());
                }
                let flow = visit(key, value);
                stays = flow.is_break();
                flow
            });
            self.stands = match &visited {
                Err(_) => Stands::Between,
                Ok(()) if stays => Stands::OnRow,
                Ok(()) => Stands::Nowhere,
            };
            return Ok(visited?);
        }
        while self.is_on_row() && visit(self.key(), self.value()).is_continue() {
            self.next(txn)?;
        }
        Ok(())
    }

    fn is_on_row(&self) -> bool {
        self.stands == Stands::OnRow
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            _ if !self.is_on_row() => &[],
            Walk::Plain(raw, _) => raw.key(),
            Walk::Locking(raw) => raw.key(),
        }
    }

    /// The value of the row stood on; empty when on none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.walk {
            _ if !self.is_on_row() => &[],
            Walk::Plain(raw, _) => raw.value(),
            Walk::Locking(raw) => raw.value(),
        }
    }
}

fn looker<'t>(snapshot: &Option<Snapshot>, txn: &'t mut Txn) -> ReadView<'t> {
    let own = txn.raw.id();
    let view = match snapshot {
        Some(snapshot) => View::At(snapshot.number()),
        None => txn.raw.view(&txn.engine.context),
    };
    ReadView::new(&txn.engine.context, own, view)
}
