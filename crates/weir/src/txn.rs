//! Transactions as users see them.
use std::sync::Arc;

use weir_base::{TxnId, lines};
use weir_pool::PageCodec;
use weir_txn::{
    Extent, Intent, Isolation, Kind, LockingCursor, NewRow, RowCursor, Snapshot, View, Wait,
    WaitListener,
};

use crate::db::Db;
use crate::engine::Engine;
use crate::error::Error;
use crate::savepoint::Marks;
use crate::tree::Tree;
use crate::txn_cursor::{TxnCursor, Walk};
use crate::txn_options::TxnOptions;

/// A transaction: its changes become visible to others together, or not at all. Dropped without
/// [`Txn::commit`], it is rolled back. Reading takes no lock and writes no log, except at
/// SERIALIZABLE, where it locks what it reads.
pub struct Txn {
    pub(crate) engine: Arc<Engine>,
    pub(crate) raw: weir_txn::Txn,
    /// At READ COMMITTED, what all reads of the present statement come from.
    statement: Option<Snapshot>,
    /// Names of trees whose codec it changes, which the store is to know when it commits.
    pub(crate) codecs: Vec<String>,
    /// By which its cursors and savepoints know it.
    pub(crate) marks: Marks,
}

/// The mark of a cursor that no transaction moves.
const NO_TRANSACTION: u64 = u64::MAX;

impl Db {
    /// Begins a transaction. It costs nothing until it does something.
    #[must_use]
    pub fn begin(&self, options: TxnOptions) -> Txn {
        let raw = weir_txn::Txn::new(options.isolation, options.lock_wait);
        lines::wrote("the engine's reference count");
        Txn::wrap(self.engine.clone(), raw)
    }

    /// Ends the wait for a lock of the transaction of this number ([`Txn::number`]), or its next
    /// one: the call that waits fails. Does nothing if there is no such transaction.
    pub fn cancel_lock_wait(&self, number: TxnId) {
        self.engine.context.locks().kill(number);
    }

    /// Tells `listener` of all waits for locks from now on. `false`: there is one already.
    pub fn on_wait(&self, listener: Arc<dyn WaitListener>) -> bool {
        self.engine.context.locks().set_listener(listener)
    }

    /// A snapshot that transactions of several sessions can share ([`Txn::share`]).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.registry.snapshot()
    }
}

impl Txn {
    pub(crate) fn wrap(engine: Arc<Engine>, raw: weir_txn::Txn) -> Self {
        Txn { engine, raw, statement: None, codecs: Vec::new(), marks: Marks::default() }
    }

    /// What it sees of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.raw.isolation()
    }

    /// Reads from this snapshot, if it has not taken one of its own yet.
    ///
    /// # Errors
    /// [`Error::Foreign`] when it is of another database.
    pub fn share(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        if !snapshot.is_of(&self.engine.registry) {
            return Err(Error::Foreign("the snapshot is of another database"));
        }
        self.raw.share(snapshot);
        Ok(())
    }

    /// How something went that may have waited for a lock. If a deadlock has ended the transaction
    /// in the middle of a statement, the statement holds back no cleaning.
    pub(crate) fn outcome<T>(&mut self, done: Result<T, impl Into<Error>>) -> Result<T, Error> {
        if self.raw.has_ended() {
            self.statement = None;
        }
        done.map_err(|e| self.engine.failed(e.into()))
    }

    fn owns(&self, tree: &Tree) -> bool {
        Arc::ptr_eq(&self.engine, &tree.engine)
    }

    fn check_owns(&self, tree: &Tree) -> Result<(), Error> {
        if self.owns(tree) {
            return Ok(());
        }
        Err(Error::Foreign("the tree is of another database than the transaction"))
    }

    /// By what a cursor over a tree knows which transaction may move it.
    fn mark_for(&mut self, tree: &Tree) -> u64 {
        if !self.owns(tree) {
            return NO_TRANSACTION;
        }
        self.marks.mark()
    }

    /// Takes the snapshot now that the first read would take (START TRANSACTION WITH CONSISTENT
    /// SNAPSHOT). Levels below REPEATABLE READ hold none.
    pub fn take_snapshot(&mut self) {
        let _ = self.raw.snapshot(&self.engine.context);
    }

    /// Begins a statement of a READ COMMITTED transaction: until the next one, or until
    /// [`Txn::end_statement`], all its reads without locks come from one snapshot taken now, so
    /// that what an index says of a row and the row agree. Other levels need no such thing.
    pub fn begin_statement(&mut self) {
        if self.raw.isolation() == Isolation::ReadCommitted && !self.raw.has_ended() {
            self.statement = Some(self.engine.registry.snapshot());
        }
        if let Some(id) = self.raw.id() {
            self.engine.context.locks().clear_kill(id);
        }
    }

    /// Gives the snapshot of [`Txn::begin_statement`] up.
    pub fn end_statement(&mut self) {
        self.statement = None;
    }

    /// Its number, for [`Db::cancel_lock_wait`]; given now if it has none yet.
    ///
    /// # Errors
    /// [`Error::Transaction`] when it has ended.
    pub fn number(&mut self) -> Result<TxnId, Error> {
        Ok(self.raw.number(&self.engine.context)?)
    }

    /// The number of the commit up to which its reads without locks see others, taken now if they
    /// have none yet; `None`: they see whatever is committed when they come to it.
    pub fn snapshot_sequence(&mut self) -> Option<u64> {
        if let Some(snapshot) = &self.statement {
            return Some(snapshot.number());
        }
        self.raw.snapshot(&self.engine.context).map(Snapshot::number)
    }

    /// A snapshot with all that its reads without locks see of others; where they see whatever is
    /// committed when they come to it, one of now.
    pub(crate) fn snapshot_seen(&mut self) -> Snapshot {
        let held = self.statement.as_ref().or_else(|| self.raw.snapshot(&self.engine.context));
        held.cloned().unwrap_or_else(|| self.engine.registry.snapshot())
    }

    /// How long it waits for locks from now on.
    pub fn set_lock_wait(&mut self, wait: Wait) {
        self.raw.set_wait(wait);
    }

    /// At REPEATABLE READ: whether a write, or a read that locks, of a row that another transaction
    /// has changed since the snapshot fails from now on, as at
    /// [`Snapshot`](weir_txn::Isolation::Snapshot), but with the snapshot of the first read
    /// without a lock: before that, nothing is too new. Off unless asked for.
    pub fn set_first_updater_wins(&mut self, wins: bool) {
        self.raw.set_first_updater_wins(wins);
    }

    /// Whether it has ended; a deadlock may have ended it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.raw.has_ended()
    }

    /// The value at `key` by the isolation level, `None` when it sees none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`]; [`Error::Transaction`] when it has ended;
    /// [`Error::Foreign`] for a tree of another database, as all that is given one. At SERIALIZABLE
    /// as [`Txn::get_for_share`].
    pub fn get(&mut self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// As [`Txn::get`], into memory of the caller's, emptied first. `false`: it sees none.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn get_into(&mut self, tree: &Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        self.engine.check_here()?;
        self.check_owns(tree)?;
        if let Some(snapshot) = self.statement.as_ref().filter(|_| !self.raw.has_ended()) {
            let (own, view) = (self.raw.id(), View::At(snapshot.number()));
            return Ok(self.engine.context.read(&tree.raw, key, own, view, out)?);
        }
        let found = self.raw.get(&self.engine.context, &tree.raw, key, out);
        self.outcome(found)
    }

    /// As [`Txn::get_into`], of a long value only its front ([`TxnCursor::set_fronts`]).
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn get_front(
        &mut self,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Extent, Error> {
        self.engine.check_here()?;
        self.check_owns(tree)?;
        if let Some(snapshot) = self.statement.as_ref().filter(|_| !self.raw.has_ended()) {
            let (own, view) = (self.raw.id(), View::At(snapshot.number()));
            return Ok(self.engine.context.read_extent(&tree.raw, key, own, view, true, out)?);
        }
        let found = self.raw.get_front(&self.engine.context, &tree.raw, key, out);
        self.outcome(found)
    }

    /// Locks the key for this transaction alone, whether or not a row is there, and reads the row
    /// as committed last into `out`. `false`: there is none.
    ///
    /// # Errors
    /// As [`Txn::get`]; [`Error::Transaction`] when the lock cannot be had. After a deadlock
    /// ([`Error::is_deadlock`]) the transaction has been rolled back.
    pub fn get_for_update(
        &mut self,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.get_locked(tree, key, Kind::Exclusive, out)
    }

    /// As [`Txn::get_for_update`], with a lock that others may share.
    ///
    /// # Errors
    /// As [`Txn::get_for_update`].
    pub fn get_for_share(
        &mut self,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.get_locked(tree, key, Kind::Share, out)
    }

    /// As [`Txn::get_for_update`], and waits only as `wait` says: [`Wait::No`] is NOWAIT.
    ///
    /// # Errors
    /// As [`Txn::get_for_update`].
    pub fn get_for_update_with(
        &mut self,
        tree: &Tree,
        key: &[u8],
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.waiting(wait, |txn| txn.get_locked(tree, key, Kind::Exclusive, out))
    }

    /// As [`Txn::get_for_share`], and waits only as `wait` says.
    ///
    /// # Errors
    /// As [`Txn::get_for_update`].
    pub fn get_for_share_with(
        &mut self,
        tree: &Tree,
        key: &[u8],
        wait: Wait,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.waiting(wait, |txn| txn.get_locked(tree, key, Kind::Share, out))
    }

    /// Does one thing that waits for locks only as `wait` says.
    fn waiting<T>(&mut self, wait: Wait, act: impl FnOnce(&mut Self) -> T) -> T {
        let usual = self.raw.set_wait(wait);
        let done = act(self);
        self.raw.set_wait(usual);
        done
    }

    fn get_locked(
        &mut self,
        tree: &Tree,
        key: &[u8],
        kind: Kind,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.engine.check_open()?;
        self.check_owns(tree)?;
        let found = self.raw.get_locked(&self.engine.context, &tree.raw, key, kind, out);
        self.outcome(found)
    }

    /// Inserts a row or replaces its value.
    ///
    /// # Errors
    /// As [`Txn::get_for_update`]; [`Error::Input`], [`Error::DiskFull`], [`Error::Halted`]. The
    /// row is as it was.
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.change(tree, key, Intent::Put(value)).map(|_| ())
    }

    /// As [`Txn::put`], of a row that this transaction has read with a lock as `old`: what the two
    /// values have in common on overflow pages is not written again.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn replace(
        &mut self,
        tree: &Tree,
        key: &[u8],
        old: &[u8],
        new: &[u8],
    ) -> Result<(), Error> {
        // Only then may there be any.
        if old.len().min(new.len()) <= tree.raw.max_inline_value(key.len()) {
            return self.put(tree, key, new);
        }
        let replaced = self.change(tree, key, Intent::Replace { old, new })?;
        if replaced { Ok(()) } else { self.put(tree, key, new) }
    }

    /// Inserts a row that is not there yet.
    ///
    /// # Errors
    /// As [`Txn::put`]; [`Error::Duplicate`] when there is one.
    pub fn insert(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.change(tree, key, Intent::Insert(value)).map(|_| ())
    }

    /// Inserts rows, keys and values, that are not there yet: as [`Txn::insert`] one by one, and
    /// quicker where they come in the order of their keys and several go to one place.
    ///
    /// # Errors
    /// As [`Txn::insert`]; the rows before the one that fails are inserted.
    pub fn insert_all(&mut self, tree: &Tree, rows: &[NewRow<'_>]) -> Result<(), Error> {
        self.engine.check_writable()?;
        self.check_owns(tree)?;
        let done = self.raw.insert_all(&self.engine.context, &tree.raw, rows);
        self.outcome(done)
    }

    /// Makes a row's value from the old one, as committed last, in one step: `edit` gets the old
    /// bytes and an empty buffer, and says whether to write what it has left there. No latch is
    /// held meanwhile, so `edit` may read and write other rows, through the database or another
    /// transaction; it is called again when the row has changed before the new value could be
    /// written. `false`: there is no row.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn update(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mut edit: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<bool, Error> {
        self.change(tree, key, Intent::Edit(&mut edit))
    }

    /// Removes a row. `false`: there was none.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<bool, Error> {
        self.change(tree, key, Intent::Delete)
    }

    fn change(&mut self, tree: &Tree, key: &[u8], intent: Intent<'_>) -> Result<bool, Error> {
        self.engine.check_writable()?;
        self.check_owns(tree)?;
        let changed = self.raw.change(&self.engine.context, &tree.raw, key, intent);
        self.outcome(changed)
    }

    /// The tree of this name, `None` when there is none: as committed now, or made by this
    /// transaction.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Damaged`], [`Error::Io`].
    pub fn tree(&mut self, name: &str) -> Result<Option<Tree>, Error> {
        let raw = self.engine.find_tree(name, self.raw.id())?;
        Ok(raw.map(|raw| Tree { engine: self.engine.clone(), raw }))
    }

    /// Makes an empty tree, for others when this transaction commits; rolled back, it is gone.
    ///
    /// # Errors
    /// [`Error::Name`] when there is one of that name, or the name is not possible; as
    /// [`Txn::put`].
    pub fn create_tree(&mut self, name: &str) -> Result<Tree, Error> {
        self.create_tree_with(name, None)
    }

    /// As [`Txn::create_tree`], of a tree whose pages are packed by this codec wherever that saves
    /// a sixteenth, rather than as the store chooses. Where pages are not packed
    /// ([`Db::packs_pages`]) it is kept, for a copy that does, and has no effect.
    ///
    /// # Errors
    /// As [`Txn::create_tree`].
    pub fn create_tree_with(
        &mut self,
        name: &str,
        codec: Option<PageCodec>,
    ) -> Result<Tree, Error> {
        let made = self.engine.make_tree(&mut self.raw, name, codec);
        let raw = self.outcome(made)?;
        Ok(Tree { engine: self.engine.clone(), raw })
    }

    /// Has pages of a tree packed by another codec, or as the store chooses, when this transaction
    /// has committed: from their next write on, and none is written for that. `false`: there is no
    /// such tree.
    ///
    /// # Errors
    /// As [`Txn::put`].
    pub fn set_codec(&mut self, name: &str, codec: Option<PageCodec>) -> Result<bool, Error> {
        let asked = self.engine.ask_codec(&mut self.raw, name, codec);
        let is_there = self.outcome(asked)?;
        self.codecs.extend(is_there.then(|| name.to_owned()));
        Ok(is_there)
    }

    /// The codec that a tree asks for, as committed now or by this transaction; `None`: there is no
    /// such tree.
    ///
    /// # Errors
    /// As [`Txn::tree`].
    pub fn codec(&mut self, name: &str) -> Result<Option<Option<PageCodec>>, Error> {
        self.engine.codec_of(name, self.raw.id())
    }

    /// Drops a tree when this transaction commits. Waits for all that have changed or locked rows
    /// of it, and locks all of it; what becomes of other handles is said at [`Db::drop_tree`].
    /// `false`: there was none.
    ///
    /// # Errors
    /// As [`Txn::put`]; the tree is not dropped, and may be locked.
    pub fn drop_tree(&mut self, name: &str) -> Result<bool, Error> {
        let dropped = self.engine.unmake_tree(&mut self.raw, name);
        self.outcome(dropped)
    }

    /// Gives a tree another name, for others when this transaction commits. `false`: there was none
    /// of the old name.
    ///
    /// # Errors
    /// [`Error::Name`] when there is one of the new name; as [`Txn::put`].
    pub fn rename_tree(&mut self, from: &str, to: &str) -> Result<bool, Error> {
        let renamed = self.engine.rename_tree(&mut self.raw, from, to);
        let renamed = self.outcome(renamed)?;
        // Under both: the renaming may be rolled back to a savepoint.
        if renamed && self.codecs.iter().any(|name| name == from) {
            self.codecs.push(to.to_owned());
        }
        Ok(renamed)
    }

    /// A cursor over the rows that the isolation level shows: at READ COMMITTED, those committed
    /// now; at SERIALIZABLE as [`Txn::cursor_for_share`]. It moves with this transaction, and no
    /// other, as an argument, so that rows can be changed between.
    pub fn cursor(&mut self, tree: &Tree) -> TxnCursor {
        let isolation = self.raw.isolation();
        if isolation == Isolation::Serializable {
            return self.cursor_for_share(tree);
        }
        let own_snapshot = (isolation == Isolation::ReadCommitted && !self.raw.has_ended())
            .then(|| self.statement.clone().unwrap_or_else(|| self.engine.registry.snapshot()));
        let walk = Walk::Plain(RowCursor::new(tree.raw.clone()), own_snapshot);
        TxnCursor::new(walk, self.mark_for(tree))
    }

    /// A cursor over the rows as committed now, and as changed by this transaction, which locks
    /// them for this transaction alone as it comes to them. From REPEATABLE READ on it locks all
    /// that it passes: no other transaction changes, removes or inserts rows from where it began up
    /// to the row that it stands on, and to its upper bound when it has run off
    /// ([`TxnCursor::set_bounds`]). Below, it locks the rows only.
    pub fn cursor_for_update(&mut self, tree: &Tree) -> TxnCursor {
        self.locking_cursor(tree, Kind::Exclusive)
    }

    /// As [`Txn::cursor_for_update`], with locks that others may share.
    pub fn cursor_for_share(&mut self, tree: &Tree) -> TxnCursor {
        self.locking_cursor(tree, Kind::Share)
    }

    fn locking_cursor(&mut self, tree: &Tree, kind: Kind) -> TxnCursor {
        let raw = LockingCursor::new(tree.raw.clone(), kind);
        TxnCursor::new(Walk::Locking(raw), self.mark_for(tree))
    }

    /// A point for [`Txn::release_between`].
    #[must_use]
    pub fn lock_mark(&self) -> usize {
        self.raw.lock_mark()
    }

    /// Releases the locks of keys, not of ranges, that it has come to hold between two marks, in
    /// these trees: of rows that it has read for a change and does not want after all. For the
    /// levels below REPEATABLE READ.
    pub fn release_between<'a>(
        &self,
        marks: std::ops::Range<usize>,
        trees: impl Iterator<Item = &'a Tree> + Clone,
    ) {
        let wanted = |id| trees.clone().any(|tree| tree.raw.id() == id && self.owns(tree));
        self.raw.release_between(&self.engine.context, marks, wanted);
    }

    /// Rolls everything back.
    ///
    /// # Errors
    /// [`Error`] when that fails: the background goes on with it, and the next opening if the
    /// engine has halted. What is not rolled back yet stays locked until then.
    pub fn rollback(mut self) -> Result<(), Error> {
        self.engine.check_here()?;
        let done = self.raw.rollback(&self.engine.context);
        self.engine.rolled_back(done)
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        lines::wrote("the engine's reference count");
        // Of a database that has been closed, the next opening rolls it back.
        if !self.raw.has_ended() && self.engine.check_here().is_ok() {
            // What fails is tried again in the background, or has halted the engine; the next
            // opening rolls it back then.
            let done = self.raw.rollback(&self.engine.context);
            let _ = self.engine.rolled_back(done);
        }
    }
}
