//! Walking in key order and locking on the way. A step locks the range up to the row that it comes
//! to, then looks again whether that row is still the next one: a transaction that writes in the
//! range from then on waits, and one that has written before is met as a row.
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use weir_base::{TreeId, TxnId};
use weir_btree::{Cursor as RawCursor, RowHead, Tree};

use crate::context::Context;
use crate::error::TxnError;
use crate::locks::{Kind, LockError, Place, Wait};
use crate::planted::PlantedBug;
use crate::record::txn_record::TxnRecord;
use crate::session::txn::{Isolation, Txn};
use crate::versions::see::{ReadOutcome, Reader, View};

/// A position among the rows that a transaction locks as it comes to them: as committed now, or as
/// changed by itself. From REPEATABLE READ on it locks everything that it passes, rows and their
/// absence; below only the rows, unless
/// it has locked so many that there is little memory left for more: ranges that touch take as much
/// as one. After a move that has failed it stands on no row, but where the
/// same move tries again, and the other way it comes back.
pub struct LockingCursor {
    raw: RawCursor,
    value: Vec<u8>,
    stands: Stands,
    kind: Kind,
    skip_locked: bool,
    semi_consistent: bool,
    /// The row stood on is as committed last, and another transaction's.
    unlocked: bool,
    /// What writers below this number wrote stood for good when the leaf was copied.
    low: TxnId,
    /// Nothing below is looked at.
    from: Vec<u8>,
    /// Nothing from here on is looked at.
    to: Option<Vec<u8>>,
}

enum Stands {
    Nowhere,
    OnRow,
    /// Between rows, where a move has failed: in front of the key (`None`: behind all rows). What
    /// lies between it and the row that it could not come to may be locked, or not.
    Before {
        edge: Option<Vec<u8>>,
        /// Waits for this row.
        lock_current: Option<Vec<u8>>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// How far a step has got.
#[derive(Clone, PartialEq, Eq)]
enum Reach {
    Key(Vec<u8>),
    /// To the end of what the cursor looks at.
    End,
}

/// One step of a cursor: what it has locked so far, and where it goes on.
struct Step<'a> {
    txn: &'a mut Txn,
    cx: &'a Context,
    record: Arc<TxnRecord>,
    way: Way,
    /// Up: the lowest key that comes into question. Down: what those are below; `None`: all do.
    edge: Option<Vec<u8>>,
    /// What the edge was before the first row that was passed.
    start: Option<Option<Vec<u8>>>,
    /// The range is locked from the edge to here.
    locked: Option<Reach>,
    /// This row is locked, since this mark.
    row: Option<Vec<u8>>,
    mark: usize,
    /// No row counts on its absence: the locks of rows that have gone are released.
    frees_gone: bool,
    /// The row stood on has been passed: the next one can be taken from the same leaf.
    on: bool,
    /// This row is waited for, whatever others are.
    lock_current: Option<Vec<u8>>,
    ranges: bool,
    snapshot: Option<u64>,
}

impl LockingCursor {
    /// A cursor that stands nowhere.
    #[must_use]
    pub fn new(tree: Tree, kind: Kind) -> Self {
        LockingCursor {
            raw: RawCursor::with_marked(tree),
            value: Vec::new(),
            stands: Stands::Nowhere,
            kind,
            skip_locked: false,
            semi_consistent: false,
            unlocked: false,
            low: TxnId(0),
            from: Vec::new(),
            to: None,
        }
    }

    /// Passes over rows that others have locked, instead of waiting for them. Ranges are not locked
    /// then at any level: what is passed over is not read.
    pub fn skip_locked(&mut self) {
        self.skip_locked = true;
    }

    /// Whether it shows a row that others have locked as it was committed last, without a lock,
    /// instead of waiting for it: a caller that does not want it so goes on, and one that does asks
    /// for it with
    /// [`LockingCursor::lock_current`]. From REPEATABLE READ on it waits all the same.
    pub fn set_semi_consistent(&mut self, semi_consistent: bool) {
        self.semi_consistent = semi_consistent;
    }

    /// Whether the row stood on is not locked, only shown as it was committed last.
    #[must_use]
    pub fn is_unlocked(&self) -> bool {
        self.unlocked
    }

    /// Retries at the row stood on once more, and waits for its lock; if it has gone, moves to the
    /// one behind it, before it in the other direction. `false`: there is none.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn lock_current(
        &mut self,
        txn: &mut Txn,
        cx: &Context,
        down: bool,
    ) -> Result<bool, TxnError> {
        let way = if down { Way::Down } else { Way::Up };
        let (edge, key) = match &self.stands {
            Stands::Nowhere => return Ok(false),
            Stands::OnRow => {
                let key = self.raw.key().to_vec();
                (Some(if down { successor(&key) } else { key.clone() }), Some(key))
            }
            // Nothing is behind all rows.
            Stands::Before { edge: None, .. } if !down => return Ok(false),
            Stands::Before { edge, lock_current } => (edge.clone(), lock_current.clone()),
        };
        self.step(txn, cx, way, edge, false, key)
    }

    /// Retries only at keys from `from` on and below `to`: nothing else is seen or locked.
    pub fn set_bounds(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.from = from.to_vec();
        self.to = to.map(<[u8]>::to_vec);
        self.raw.expect_range(from, to);
    }

    /// As [`RawCursor::expect_rows`].
    pub fn expect_rows(&mut self, rows: u64) {
        self.raw.expect_rows(rows);
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`TxnError`], as all that moves: [`TxnError::Lock`] when a lock cannot be had; after a
    /// deadlock the transaction has been rolled back.
    pub fn seek(&mut self, txn: &mut Txn, cx: &Context, key: &[u8]) -> Result<bool, TxnError> {
        let from = key.max(&self.from).to_vec();
        self.step(txn, cx, Way::Up, Some(from), false, None)
    }

    /// Moves to the last row whose key is below `key`.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn seek_before(
        &mut self,
        txn: &mut Txn,
        cx: &Context,
        key: &[u8],
    ) -> Result<bool, TxnError> {
        let end = self.to.as_deref().map_or(key, |to| to.min(key)).to_vec();
        self.step(txn, cx, Way::Down, Some(end), false, None)
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn seek_first(&mut self, txn: &mut Txn, cx: &Context) -> Result<bool, TxnError> {
        let from = self.from.clone();
        self.step(txn, cx, Way::Up, Some(from), false, None)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn seek_last(&mut self, txn: &mut Txn, cx: &Context) -> Result<bool, TxnError> {
        let to = self.to.clone();
        self.step(txn, cx, Way::Down, to, false, None)
    }

    /// Moves to the next row.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn next(&mut self, txn: &mut Txn, cx: &Context) -> Result<bool, TxnError> {
        let (from, on) = match &self.stands {
            Stands::OnRow => (successor(self.raw.key()), true),
            Stands::Before { edge: Some(edge), .. } => (edge.clone(), false),
            Stands::Nowhere | Stands::Before { edge: None, .. } => return Ok(false),
        };
        self.step(txn, cx, Way::Up, Some(from), on, None)
    }

    /// Moves to the row before.
    ///
    /// # Errors
    /// As [`LockingCursor::seek`].
    pub fn prev(&mut self, txn: &mut Txn, cx: &Context) -> Result<bool, TxnError> {
        let (end, on) = match &self.stands {
            Stands::OnRow => (Some(self.raw.key().to_vec()), true),
            Stands::Before { edge, .. } => (edge.clone(), false),
            Stands::Nowhere => return Ok(false),
        };
        self.step(txn, cx, Way::Down, end, on, None)
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.is_on_row() { self.raw.key() } else { &[] }
    }

    /// The value of the row stood on; empty when on none.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.is_on_row() { &self.value } else { &[] }
    }

    /// Walks to the next row; `lock_current`: the key of one that is waited for although it
    /// semi_consistent.
    fn step(
        &mut self,
        txn: &mut Txn,
        cx: &Context,
        way: Way,
        edge: Option<Vec<u8>>,
        on: bool,
        lock_current: Option<Vec<u8>>,
    ) -> Result<bool, TxnError> {
        let record = txn.start(cx)?;
        self.unlocked = false;
        let snapshot = txn.conflict_point(cx);
        let locks_rows =
            matches!(txn.isolation(), Isolation::ReadUncommitted | Isolation::ReadCommitted);
        let ranges = !self.skip_locked && (!locks_rows || txn.locks_much(cx));
        let (start, locked, row) = (None, None, None);
        let mut step = Step {
            txn,
            cx,
            record,
            way,
            edge,
            start,
            locked,
            row,
            mark: 0,
            frees_gone: locks_rows,
            on,
            lock_current,
            ranges,
            snapshot,
        };
        loop {
            match self.look(&mut step) {
                Ok(Continue(())) => {}
                Ok(Break(found)) => {
                    self.stands = if found { Stands::OnRow } else { Stands::Nowhere };
                    return Ok(found);
                }
                Err(e) => {
                    // From the beginning: it may itself write a row among those that it passed.
                    let edge = step.start.unwrap_or(step.edge);
                    self.stands = Stands::Before { edge, lock_current: step.lock_current };
                    return Err(e);
                }
            }
        }
    }

    fn is_on_row(&self) -> bool {
        matches!(self.stands, Stands::OnRow)
    }

    /// Finds the next row, locks what is not locked yet, and says whether that was all.
    fn look(&mut self, step: &mut Step<'_>) -> Result<ControlFlow<bool>, TxnError> {
        let (copies, stepped) = (self.raw.copies(), step.on);
        let low = step.cx.registry().low();
        let found = self.find(step)?;
        if self.raw.copies() != copies {
            self.low = low;
        }
        step.on = false;
        step.keep_lock_of(self.raw.tree().id(), found.then(|| self.raw.key()));
        if step.ranges {
            let reach = if found { Reach::Key(self.raw.key().to_vec()) } else { Reach::End };
            if !step.has_locked(&reach) {
                self.lock_up_to(step, &reach)?;
                step.locked = Some(reach);
                // Nothing can come between any more; but it may have before.
                let in_one_leaf = found && stepped && self.raw.copies() == copies;
                if !in_one_leaf || !self.raw.is_fresh() {
                    return Ok(Continue(()));
                }
            }
        }
        let head = if found { self.raw.inline(&mut self.value) } else { None };
        let Some(head) = head else { return Ok(Break(false)) };
        let own = step.record.id();
        let writer = head.stamp.writer;
        let open = (writer != own && step.cx.registry().is_open(writer)).then_some(writer);
        // Its writer when it was copied may have ended since, and left it as it was before.
        let was_final = writer == own || writer < self.low;
        if open.is_none() && !was_final && !self.raw.is_fresh() {
            return Ok(Continue(()));
        }
        if open.is_none() && head.flags.deleted {
            step.check(head)?;
            return Ok(self.pass(step));
        }
        let is_locked = step.ranges
            // TXN-1
            || writer == own
            || step.row.as_deref() == Some(self.raw.key());
        if open.is_some() || !is_locked {
            if !self.lock_row(step, open)? {
                if self.skip_locked {
                    return Ok(self.pass(step));
                }
                return self.show_committed(step, head);
            }
            if open.is_some() || !self.raw.is_fresh() {
                return Ok(Continue(()));
            }
        }
        self.take(step, head)
    }

    /// Reads the row stood on, which is locked.
    fn take(&mut self, step: &Step<'_>, head: RowHead) -> Result<ControlFlow<bool>, TxnError> {
        step.check(head)?;
        // A chain that is gone belonged to a row that has changed since it was copied.
        if head.flags.overflow && !self.raw.tree().fetch(&mut self.value)? {
            return Ok(Continue(()));
        }
        Ok(Break(true))
    }

    /// Shows the row stood on, which another transaction has, as it was committed last.
    fn show_committed(
        &mut self,
        step: &mut Step<'_>,
        head: RowHead,
    ) -> Result<ControlFlow<bool>, TxnError> {
        let (registry, own) = (step.cx.registry(), Some(step.record.id()));
        let reader = Reader::new(registry, own, View::Latest);
        let (raw, tree) = (&self.raw, self.raw.tree().id());
        if !raw.is_fresh() {
            // It was read before.
            return Ok(Continue(()));
        }
        match reader.see(tree, raw.key(), head, &mut self.value, raw.leaf_state())? {
            ReadOutcome::Nothing => return Ok(self.pass(step)),
            ReadOutcome::Again => return Ok(Continue(())),
            ReadOutcome::Row(flags) if flags.overflow && !raw.tree().fetch(&mut self.value)? => {
                return Ok(Continue(()));
            }
            ReadOutcome::Row(_) => {}
        }
        self.unlocked = true;
        Ok(Break(true))
    }

    /// Goes on behind the row stood on.
    fn pass(&self, step: &mut Step<'_>) -> ControlFlow<bool> {
        let key = self.raw.key();
        let behind = if step.way == Way::Up { successor(key) } else { key.to_vec() };
        let before = step.edge.replace(behind);
        step.start.get_or_insert(before);
        step.on = true;
        Continue(())
    }

    /// Moves to the next row that comes into question, delete-marked ones included.
    fn find(&mut self, step: &Step<'_>) -> Result<bool, TxnError> {
        let on = match (step.way, &step.edge) {
            (Way::Up, _) if step.on => self.raw.next()?,
            (Way::Down, _) if step.on => self.raw.prev()?,
            (Way::Up, Some(from)) => self.raw.seek(from)?,
            (Way::Up, None) => self.raw.seek_first()?,
            (Way::Down, Some(end)) => self.raw.seek_before(end)?,
            (Way::Down, None) => self.raw.seek_last()?,
        };
        let key = self.raw.key();
        Ok(on
            && match step.way {
                Way::Up => self.to.as_deref().is_none_or(|to| key < to),
                Way::Down => *self.from <= *key,
            })
    }

    fn lock_up_to(&self, step: &mut Step<'_>, reach: &Reach) -> Result<(), TxnError> {
        let (low, high);
        match step.way {
            Way::Up => {
                low = step.edge.clone().unwrap_or_default();
                high = match reach {
                    Reach::Key(key) => Some(successor(key)),
                    Reach::End => self.to.clone(),
                };
            }
            Way::Down => {
                low = match reach {
                    Reach::Key(key) => key.clone(),
                    Reach::End => self.from.clone(),
                };
                high = step.edge.clone();
            }
        }
        if step.cx.has(PlantedBug::RangesNotLocked) {
            return Ok(());
        }
        let place = Place::Range { from: &low, to: high.as_deref() };
        step.lock(self.raw.tree(), place, self.kind, None)
    }

    /// Locks the row stood on, which `writer` has changed, if it is given. `false`: others have it,
    /// and it is not waited for.
    fn lock_row(&self, step: &mut Step<'_>, writer: Option<TxnId>) -> Result<bool, TxnError> {
        let key = self.raw.key();
        let semi_consistent =
            self.semi_consistent && !step.ranges && step.lock_current.as_deref() != Some(key);
        let waits = !self.skip_locked && !semi_consistent;
        let mark = step.txn.lock_mark();
        let usual = (!waits).then(|| step.txn.set_wait(Wait::No));
        let got = step.lock(self.raw.tree(), Place::Key(key), self.kind, writer);
        if let Some(usual) = usual {
            step.txn.set_wait(usual);
        }
        match got {
            Err(TxnError::Lock(LockError::WouldWait { .. })) if !waits => {
                return Ok(false);
            }
            got => got?,
        }
        if step.row.as_deref() != Some(key) {
            (step.row, step.mark) = (Some(key.to_vec()), mark);
        }
        Ok(true)
    }
}

impl Step<'_> {
    /// Refuses a row that was changed, or removed, since the transaction's snapshot.
    fn check(&self, head: RowHead) -> Result<(), TxnError> {
        let is_newer = self.snapshot.is_some_and(|at| self.cx.registry().is_newer(head.stamp, at));
        if is_newer { Err(TxnError::Conflict) } else { Ok(()) }
    }

    /// Releases the lock of any other row than that at `key`: it was waited for, and has gone.
    /// Another transaction may insert one there.
    fn keep_lock_of(&mut self, tree: TreeId, key: Option<&[u8]>) {
        if self.frees_gone && self.row.is_some() && self.row.as_deref() != key {
            let marks = self.mark..self.txn.lock_mark();
            self.txn.release_between(self.cx, marks, |of| of == tree);
            self.row = None;
        }
    }

    fn has_locked(&self, reach: &Reach) -> bool {
        match (&self.locked, reach) {
            (None, _) => false,
            (Some(Reach::End), _) => true,
            (Some(Reach::Key(_)), Reach::End) => false,
            (Some(Reach::Key(locked)), Reach::Key(key)) => match self.way {
                Way::Up => key <= locked,
                Way::Down => key >= locked,
            },
        }
    }

    fn lock(
        &mut self,
        tree: &Tree,
        place: Place<'_>,
        kind: Kind,
        writer: Option<TxnId>,
    ) -> Result<(), TxnError> {
        self.txn.lock_place(self.cx, &self.record, tree.id(), place, kind, writer)
    }
}

/// The key directly behind `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}
