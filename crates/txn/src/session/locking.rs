//! How a transaction asks for locks, and reads rows that it locks.
use std::ops::Range;
use std::sync::Arc;

use weir_base::{TreeId, TxnId};
use weir_btree::{Tree, TreeError};

use crate::context::Context;
use crate::error::TxnError;
use crate::locks::{Kind, LockError, Place, Wait};
use crate::record::txn_record::TxnRecord;
use crate::session::change::YIELDS_BESIDE_QUEUE;
use crate::session::txn::Txn;
use crate::versions::see::View;

/// A transaction that has got fewer locks is not refused one because others have so many.
const MANY_LOCKS: u64 = 1_000;

/// Keys here are trees: a transaction that waits for all that have changed rows of one is in no
/// other's way.
const NO_TREE: TreeId = TreeId(0);

impl Txn {
    /// Its number, by which others can end its wait for a lock; given now if it has none yet.
    ///
    /// # Errors
    /// [`TxnError::Ended`].
    pub fn number(&mut self, cx: &Context) -> Result<TxnId, TxnError> {
        Ok(self.start(cx)?.id())
    }

    /// Locks a key, whether or not a row is there, and reads the row as committed last (or changed
    /// by this transaction) into `out`. `false`: there is none.
    ///
    /// # Errors
    /// [`TxnError::Lock`] when the lock cannot be had: after a deadlock the transaction has been
    /// rolled back; [`TxnError::Conflict`].
    pub fn get_locked(
        &mut self,
        cx: &Context,
        tree: &Tree,
        key: &[u8],
        kind: Kind,
        out: &mut Vec<u8>,
    ) -> Result<bool, TxnError> {
        tree.check_key(key)?;
        let record = self.start(cx)?;
        let at = self.conflict_point(cx);
        let mut locked = false;
        loop {
            // A look before the lock: a request behind a writer waits, and leaves nothing if it
            // fails. A look after it: a transaction that writes from then on sees the lock.
            let low = cx.registry().low();
            let found = tree.look(key, out)?;
            let (found, token) = (found.map(|(head, _)| head), found.map(|(_, token)| token));
            let writer = found.map(|head| head.stamp.writer);
            if writer == Some(record.id()) {
                // Its own already (TXN-1); the lock is for when it goes back to a savepoint.
                let place = Place::Key(key);
                let _ = cx.locks().acquire(record.id(), tree.id(), place, kind, None, Wait::No);
            } else {
                let open = writer.filter(|&id| cx.registry().is_open(id));
                if open.is_some() || !locked {
                    self.lock(cx, &record, tree, key, kind, open)?;
                    locked = true;
                    // What was read before the lock is what is there now, if no transaction has
                    // written to the page since; a transaction that does from now on sees the lock.
                    if open.is_some() || !token.is_some_and(|token| cx.env().pool.is_still(token)) {
                        continue;
                    }
                }
                // Its writer when it was read may have ended since, and left it as it was before.
                let was_final = writer.is_none_or(|id| id < low);
                if !was_final && !token.is_some_and(|token| cx.env().pool.is_still(token)) {
                    continue;
                }
            }
            if at.is_some_and(|at| found.is_some_and(|row| cx.registry().is_newer(row.stamp, at))) {
                return Err(TxnError::Conflict);
            }
            let Some(head) = found.filter(|head| !head.flags.deleted) else {
                out.clear();
                return Ok(false);
            };
            if head.flags.overflow {
                return Ok(cx.read(tree, key, Some(record.id()), View::Latest, out)?);
            }
            return Ok(true);
        }
    }

    /// Whether it has many locks, and all locks together take more than half of the memory that
    /// they may: then it locks ranges in the place of rows where it can.
    pub(crate) fn locks_much(&self, cx: &Context) -> bool {
        let many = self.owner.as_ref().is_some_and(|owner| owner.grants() >= MANY_LOCKS);
        many && cx.locks().bytes() > cx.locks_max_bytes / 2
    }

    /// A point for [`Txn::release_between`].
    #[must_use]
    pub fn lock_mark(&self) -> usize {
        self.owner.as_ref().map_or(0, |owner| owner.mark())
    }

    /// Releases the locks of keys (not of ranges) that it has come to hold between two marks, in
    /// trees of which `wanted` is true. For rows that were looked at and not changed; at the levels
    /// below REPEATABLE READ, where no transaction counts on their staying as they are.
    pub fn release_between(
        &self,
        cx: &Context,
        marks: Range<usize>,
        wanted: impl Fn(TreeId) -> bool,
    ) {
        if let Some(owner) = &self.owner {
            cx.locks().release_between(owner, marks, wanted);
        }
    }

    /// Gives the processor away while the row is taken, as long as `yields_left` lasts. Returns
    /// whether it seems to be free.
    pub(crate) fn yields(
        &self,
        cx: &Context,
        record: &TxnRecord,
        tree: &Tree,
        key: &[u8],
        writer: Option<TxnId>,
        yields_left: &mut u32,
    ) -> bool {
        if self.wait == Wait::No {
            return false;
        }
        while *yields_left > 0 {
            if *yields_left > YIELDS_BESIDE_QUEUE && cx.locks().may_be_wanted(tree.id(), key) {
                *yields_left = YIELDS_BESIDE_QUEUE;
            }
            *yields_left -= 1;
            std::thread::yield_now();
            let is_taken = match writer {
                Some(id) => cx.registry().is_open(id),
                None => cx.locks().blocks(record.id(), tree.id(), key, Kind::Exclusive),
            };
            if !is_taken {
                return true;
            }
        }
        false
    }

    /// Takes the lock of a key, and if need be waits for it; `writer` has written its row.
    pub(crate) fn lock(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        tree: &Tree,
        key: &[u8],
        kind: Kind,
        writer: Option<TxnId>,
    ) -> Result<(), TxnError> {
        self.lock_place(cx, record, tree.id(), Place::Key(key), kind, writer)
    }

    /// Locks a whole tree, and waits for all that have changed rows of it, so that its pages can be
    /// freed: what they would roll back, or complete, is in it. TXN-11.
    pub(crate) fn lock_tree(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        tree: &Tree,
    ) -> Result<(), TxnError> {
        self.lock_place(cx, record, tree.id(), Place::ALL, Kind::Exclusive, None)?;
        // A transaction that begins from now on meets the lock; one that writes just now has its
        // work locked. The tree's number stands for all that the other has.
        let number = tree.id().0.to_be_bytes();
        let uses = |other: &Arc<TxnRecord>| other.work.lock().may_use(tree.id());
        while let Some(other) = cx.registry().others(record.id()).into_iter().find(uses) {
            let place = Place::Key(&number);
            self.lock_place(cx, record, NO_TREE, place, Kind::Exclusive, Some(other.id()))?;
        }
        Ok(())
    }

    /// Takes a lock, and if need be waits for it.
    pub(crate) fn lock_place(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        tree: TreeId,
        place: Place<'_>,
        kind: Kind,
        writer: Option<TxnId>,
    ) -> Result<(), TxnError> {
        let got = match &self.owner {
            Some(owner) => {
                let (bytes, max) = (cx.locks().bytes(), cx.locks_max_bytes);
                if bytes > max && owner.grants() >= MANY_LOCKS {
                    return Err(TxnError::TooManyLocks { bytes, max });
                }
                // The transaction that has changed least pays for a deadlock; all that are in one
                // have come by here.
                owner.set_work(u64::from(record.changes()));
                cx.locks().acquire_as(owner, tree, place, kind, writer, self.wait)
            }
            None => cx.locks().acquire(record.id(), tree, place, kind, writer, self.wait),
        };
        match got {
            // Granted by the transaction that dropped the tree, to one that had waited for that.
            Ok(()) if cx.locks().is_dropped(tree) => Err(TreeError::Gone(tree).into()),
            Ok(()) => Ok(()),
            Err(LockError::Dropped) => Err(TreeError::Gone(tree).into()),
            Err(refused) => {
                let ends = matches!(refused, LockError::Deadlock { .. });
                let refused = TxnError::Lock(refused);
                Err(if ends { self.rolled_back_after(cx, refused) } else { refused })
            }
        }
    }
}
