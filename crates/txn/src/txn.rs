//! A transaction that goes on over many calls: reads by its isolation level, changes rows in place,
//! and is committed or taken back as a whole or to a savepoint. One thread at a time uses it.
use std::cell::Cell;
use std::sync::Arc;

use weir_base::{Lsn, TreeId, TxnId};
use weir_btree::Tree;
use weir_change::{Group, Header, Op};

use crate::back::{free_empty, take_back};
use crate::decide::EditBuffers;
use crate::entry::Undo;
use crate::error::TxnError;
use crate::locks::{Kind, Owner, Wait};
use crate::past::Past;
use crate::planted::PlantedBug;
use crate::prepared_note::no_longer_prepared;
use crate::registry::Snapshot;
use crate::relog;
use crate::run::{ROW_BYTES, Writer};
use crate::see::View;
use crate::todo::Todo;
use crate::undo::rolled_back;
use crate::work::Work;

/// What a transaction sees of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// Also what is not committed.
    ReadUncommitted,
    /// What is committed when each read begins.
    ReadCommitted,
    /// Reads come from one snapshot; locking reads and writes work on what is committed now, as
    /// users of MariaDB know it.
    #[default]
    RepeatableRead,
    /// As `RepeatableRead`, and a write to a row that somebody has changed since the snapshot
    /// fails: snapshot isolation.
    Snapshot,
    /// All reads lock what they read for sharing, rows and their absence, and see what is
    /// committed now: as if transactions ran one after the other.
    Serializable,
}

/// A point to go back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    undo: usize,
    todo: usize,
}

/// A transaction. Must be ended by [`Txn::commit`] or [`Txn::rollback`]: dropped otherwise, its
/// rows stay locked.
pub struct Txn {
    past: Option<Arc<Past>>,
    /// Itself, as the lock table knows it.
    pub(crate) owner: Option<Arc<Owner>>,
    pub(crate) isolation: Isolation,
    pub(crate) wait: Wait,
    snapshot: Option<Snapshot>,
    pinned: bool,
    pub(crate) over: bool,
    pub(crate) chains: u64,
    pub(crate) undo_bytes: u64,
    /// Bytes of log that naming the pieces stored takes.
    pub(crate) named_bytes: u64,
    /// How much there was to take back at the newest savepoint.
    pub(crate) savepoint_at: Cell<usize>,
    pub(crate) buffers: EditBuffers,
}

impl Txn {
    /// A transaction that has done nothing yet.
    #[must_use]
    pub fn new(isolation: Isolation, wait: Wait) -> Self {
        Txn {
            past: None,
            owner: None,
            isolation,
            wait,
            snapshot: None,
            pinned: false,
            over: false,
            chains: 0,
            undo_bytes: 0,
            named_bytes: 0,
            savepoint_at: Cell::new(0),
            buffers: EditBuffers::default(),
        }
    }

    /// One that recovery has found, or whose session could not take it back.
    pub(crate) fn resumed(past: Arc<Past>, isolation: Isolation) -> Self {
        Txn { past: Some(past), pinned: true, ..Txn::new(isolation, Wait::No) }
    }

    pub(crate) fn past(&self) -> Option<&Arc<Past>> {
        self.past.as_ref()
    }

    /// Its number, once it has changed or locked something.
    #[must_use]
    pub fn id(&self) -> Option<TxnId> {
        self.past.as_ref().map(|past| past.id())
    }

    /// What it sees of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// How long it waits for locks from now on. Returns how long it did.
    pub fn set_wait(&mut self, wait: Wait) -> Wait {
        std::mem::replace(&mut self.wait, wait)
    }

    /// Whether it has ended: by itself, when it was chosen to resolve a deadlock.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Takes over a snapshot of another session, if it has none yet and has not ended.
    pub fn share(&mut self, snapshot: &Snapshot) {
        if !self.over {
            self.snapshot.get_or_insert_with(|| snapshot.clone());
        }
    }

    /// Its snapshot, taken if it has none yet; `None` at levels that hold none, and when it has
    /// ended.
    pub fn snapshot(&mut self, w: &Writer) -> Option<&Snapshot> {
        match self.isolation {
            _ if self.over => None,
            Isolation::ReadUncommitted | Isolation::ReadCommitted | Isolation::Serializable => None,
            Isolation::RepeatableRead | Isolation::Snapshot => {
                Some(self.snapshot.get_or_insert_with(|| w.registry().snapshot()))
            }
        }
    }

    /// What it sees of single rows.
    pub fn view(&mut self, w: &Writer) -> View {
        match self.isolation {
            Isolation::ReadUncommitted => View::Dirty,
            Isolation::ReadCommitted => View::Latest,
            _ => {
                let too_new = u64::from(w.has(PlantedBug::SnapshotTooNew));
                self.snapshot(w).map_or(View::Latest, |s| View::At(s.number() + too_new))
            }
        }
    }

    /// Reads a row by the isolation level into `out`, emptied first. `false`: it sees none.
    ///
    /// # Errors
    /// [`TxnError`]; at SERIALIZABLE as [`Txn::get_locked`].
    pub fn get(
        &mut self,
        w: &Writer,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, TxnError> {
        self.check()?;
        if self.isolation == Isolation::Serializable {
            return self.get_locked(w, tree, key, Kind::Share, out);
        }
        let view = self.view(w);
        Ok(w.read(tree, key, self.id(), view, out)?)
    }

    /// Makes an empty tree, which is freed again if the transaction is taken back. Whoever asks
    /// writes down its number and root in a row of the same transaction.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was made.
    pub fn make_tree(&mut self, w: &Writer, id: TreeId) -> Result<Tree, TxnError> {
        let past = self.start(w)?;
        self.make_way(w, &past, 4096)?;
        self.pin(w, &past);
        let mut work = past.work.lock();
        let made = new_tree(w, past.id(), id);
        match &made {
            Ok(tree) => {
                work.undo.push(Undo::Tree { tree: id, root: tree.root() });
                work.undo_bytes += 16;
            }
            Err(_) => self.unpin_if_clean(w, &past, &work),
        }
        made
    }

    /// Frees a tree's pages once the transaction has committed and no snapshot from before is held.
    /// Whoever asks has removed the row that names it, in the same transaction. Waits for all who
    /// have changed or locked rows of the tree, and keeps others from that.
    ///
    /// # Errors
    /// As [`Txn::get_locked`]; the tree is not dropped, and may be locked.
    pub fn drop_tree(&mut self, w: &Writer, tree: &Tree) -> Result<(), TxnError> {
        let past = self.start(w)?;
        if !w.has(PlantedBug::DropNotLocked) {
            self.lock_tree(w, &past, tree)?;
        }
        self.drop_own_tree(w, tree)
    }

    /// As [`Txn::drop_tree`], of a tree that nobody else ever locks or changes: not even somebody
    /// of whom recovery does not know what he has changed is waited for.
    ///
    /// # Errors
    /// [`TxnError::Over`]
    pub(crate) fn drop_own_tree(&mut self, w: &Writer, tree: &Tree) -> Result<(), TxnError> {
        let past = self.start(w)?;
        if w.has(PlantedBug::DroppedTreeNotFreed) {
            return Ok(());
        }
        past.work.lock().push_todo(Todo::Tree { tree: tree.id(), root: tree.root() });
        Ok(())
    }

    /// Before its first record is in the log (TXN-3).
    pub(crate) fn pin(&mut self, w: &Writer, past: &Past) {
        if !self.pinned {
            if !w.has(PlantedBug::PinForgotten) {
                w.registry().pin(past, w.env().pool.log().end());
            }
            self.pinned = true;
        }
    }

    /// Where to go back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        self.past.as_ref().map_or(Savepoint { undo: 0, todo: 0 }, |past| {
            let work = past.work.lock();
            self.savepoint_at.set(work.depth());
            Savepoint { undo: work.depth(), todo: work.todos() }
        })
    }

    /// Takes back what was changed since the savepoint. Explicit locks are kept; a row that nothing
    /// but a change had locked is free again.
    ///
    /// # Errors
    /// [`TxnError`]: then the transaction can only be rolled back as a whole.
    pub fn rollback_to(&mut self, w: &Writer, savepoint: Savepoint) -> Result<(), TxnError> {
        self.check()?;
        let Some(past) = self.past.clone() else { return Ok(()) };
        take_back(w, &past, savepoint.undo, true)?;
        past.work.lock().truncate_todos(savepoint.todo);
        self.back_to(w, &past, savepoint.undo)
    }

    pub(crate) fn back_to(&mut self, w: &Writer, past: &Past, keep: usize) -> Result<(), TxnError> {
        take_back(w, past, keep, true)?;
        free_empty(w, past, false)?;
        let work = past.work.lock();
        self.undo_bytes = work.undo_bytes;
        self.named_bytes = work.pieces.named_bytes();
        self.unpin_if_clean(w, past, &work);
        drop(work);
        self.weigh(w, past);
        Ok(())
    }

    /// Commits. Others see the changes when it returns; they are durable once the log is durable up
    /// to the position returned; `None`: nothing was changed.
    ///
    /// # Errors
    /// [`TxnError`] when the log refuses: the engine has halted, and the outcome shows when it is
    /// opened again. Anything else leaves the transaction open.
    pub fn commit(&mut self, w: &Writer) -> Result<Option<Lsn>, TxnError> {
        self.check()?;
        let Some(past) = self.past.clone() else {
            self.finish();
            return Ok(None);
        };
        if !self.pinned {
            w.locks().end(past.id());
            w.registry().end(past.id());
            self.finish();
            return Ok(None);
        }
        relog::admit_carried(w, &past, ROW_BYTES)?;
        let mut work = past.work.lock();
        let dropped = work.dropped_trees(w.env())?;
        if !work.pieces.is_empty() {
            let tail = std::mem::take(&mut work.todo);
            work.todo = work.pieces.take().chain(tail).collect();
        }
        let header = Header { txn: Some(past.id()), commits: true, ..Header::default() };
        let mut group = Group::begin(header);
        if !w.has(PlantedBug::CleanupNotNoted) {
            work.todo.iter().map(Todo::to_cleanup).for_each(|todo| group.note(&Op::Cleanup(todo)));
        }
        let span = group.commit(w.env().pool.log())?;
        if !work.todo.is_empty() {
            w.registry().pin(&past, span.start);
        }
        // It looks open until the registry knows better.
        work.sealed = true;
        drop(work);
        dropped.into_iter().for_each(|tree| w.locks().tree_dropped(tree));
        self.committed(w, &past);
        Ok(Some(span.end))
    }

    /// The commit is in the log.
    pub(crate) fn committed(&mut self, w: &Writer, past: &Arc<Past>) {
        let number = w.registry().commit(past, w.spent_for(past));
        w.locks().end(past.id());
        self.finish();
        // What leaves something to do keeps its pin.
        if past.first().is_some() || number.is_multiple_of(PURGE_EVERY) {
            w.purge_some(PURGE_MAX, false);
        }
        if w.registry().gate.is_closed() && past.id().0.is_multiple_of(PRUNE_EVERY) {
            w.prune(2 * PRUNE_EVERY as usize);
            w.archive_if_behind();
        }
    }

    /// Takes everything back.
    ///
    /// # Errors
    /// [`TxnError`] when that fails: it has ended all the same, and [`Writer::tidy`] goes on with
    /// it. What is not taken back yet stays locked until then, or until the next opening has.
    pub fn rollback(&mut self, w: &Writer) -> Result<(), TxnError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let done = self.take_all_back(w);
        if let (Err(_), Some(past)) = (&done, &self.past) {
            w.add_loser(Txn::resumed(past.clone(), self.isolation), true);
            self.finish();
        }
        done
    }

    /// Takes back what is not taken back yet, and ends it. Goes on where it stopped, if it has
    /// failed before.
    pub(crate) fn take_all_back(&mut self, w: &Writer) -> Result<(), TxnError> {
        let Some(past) = self.past.clone() else {
            self.finish();
            return Ok(());
        };
        if self.pinned {
            // Before the first row is restored: half of it must not be found prepared.
            no_longer_prepared(w.env(), &past)?;
            take_back(w, &past, 0, false)?;
            free_empty(w, &past, true)?;
            past.work.lock().todo.clear();
            rolled_back(w.env(), past.id())?;
            w.registry().abort(&past);
        } else {
            w.registry().end(past.id());
        }
        w.locks().end(past.id());
        self.finish();
        w.purge_some(PURGE_MAX, false);
        Ok(())
    }

    /// A session that waits for its user with nothing to take back holds no log.
    pub(crate) fn unpin_if_clean(&mut self, w: &Writer, past: &Past, work: &Work) {
        if work.is_clean() {
            w.registry().unpin(past);
            self.pinned = false;
        }
    }

    fn finish(&mut self) {
        self.over = true;
        self.past = None;
        self.owner = None;
        self.snapshot = None;
    }

    pub(crate) fn check(&self) -> Result<(), TxnError> {
        if self.over { Err(TxnError::Over) } else { Ok(()) }
    }

    /// Its number and its place in the registry, from the first change or lock on.
    pub(crate) fn start(&mut self, w: &Writer) -> Result<Arc<Past>, TxnError> {
        self.check()?;
        if let Some(past) = &self.past {
            return Ok(past.clone());
        }
        let past = w.registry().open()?;
        self.owner = Some(w.locks().register(past.id()));
        Ok(self.past.insert(past).clone())
    }

    /// The commit number behind which a row must not have been changed.
    pub(crate) fn conflict_point(&mut self, w: &Writer) -> Option<u64> {
        match self.isolation {
            Isolation::Snapshot => self.snapshot(w).map(Snapshot::number),
            _ => None,
        }
    }

    /// Waits for admission of a change, unless the transaction is too large for one. Never holds
    /// the checkpoint for long while it does: what it waits for may be that the checkpoint moves
    /// on (TXN-4).
    pub(crate) fn make_way(&mut self, w: &Writer, past: &Past, bytes: u64) -> Result<(), TxnError> {
        let max = w.env().pool.log().limit_bytes() / 8;
        let undo_bytes = self.undo_bytes + self.named_bytes;
        if undo_bytes > max {
            return Err(TxnError::TooLarge { undo_bytes, max });
        }
        relog::admit_carried(w, past, bytes)
    }
}

/// One commit in so many looks after those that ended before, and each that leaves something to do:
/// whoever looks takes the registry's mutex. Where nobody commits a background thread does.
const PURGE_EVERY: u64 = 8;
/// And after three times as many as have come meanwhile, so that the history becomes shorter.
const PURGE_MAX: usize = 3 * PURGE_EVERY as usize;

/// And one commit in so many after the versions of twice as many.
const PRUNE_EVERY: u64 = 64;

/// Makes an empty tree in the name of `own`, and says in the log how to take that back.
fn new_tree(w: &Writer, own: TxnId, id: TreeId) -> Result<Tree, TxnError> {
    let env = w.env();
    let claimed = env.space.claim(1)?;
    let root = claimed[0];
    let mut group = Group::begin(Header { txn: Some(own), undo: true, ..Header::default() });
    if let Err(e) = Tree::create(env, &mut group, id, root) {
        env.space.unclaim(&claimed);
        return Err(e.into());
    }
    group.note(&Op::UndoTree { tree: id, root });
    group.commit(env.pool.log())?;
    Ok(Tree::at(env.clone(), id, root))
}
