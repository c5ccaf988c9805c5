//! Forgetting: ended transactions that every snapshot sees the end of, and versions between two
//! that no snapshot needs. Steps of bounded length; each commit makes a few, a background thread
//! the rest.
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_base::lock::{Mutex, RwLock, RwLockWriteGuard};
use weir_base::{TreeId, TxnId, rank};
use weir_btree::{Ahead, Tree, TreeError};
use weir_change::Purge;

use crate::background::purge_tasks::{TaskContext, run_tasks};
use crate::context::Context;
use crate::error::TxnError;
use crate::record::purge_task::PurgeTasks;
use crate::record::txn_record::{State, TxnRecord};
use crate::undo::relog;

/// How many commits a version is old before it is looked at whether it is needed: short snapshots
/// have gone by then.
const PRUNE_LAG: u64 = 1024;

/// Completes transactions and forgets them.
#[derive(Default)]
pub(crate) struct Purger {
    /// How many threads are at completing transactions that left something to do.
    completing: AtomicUsize,
    /// Why the last one that could not be completed was not.
    incomplete: Mutex<rank::PurgeFailure, Option<TxnError>>,
    /// Held while versions are taken out of memory; shared while they are moved between
    /// transactions.
    pruning: RwLock<rank::VersionMoves, ()>,
}

impl Purger {
    /// Completes and forgets up to `max` transactions; unless `heavy`, it leaves out those that may
    /// take long. Returns how many.
    pub(crate) fn purge(&self, cx: &Context, max: usize, heavy: bool) -> usize {
        // First, so that a thread that waits for all to be done sees this or what is in the list.
        self.completing.fetch_add(1, Ordering::SeqCst);
        let mut ready = Vec::new();
        cx.registry().take_purgeable(max, heavy, &mut ready);
        let (mut done, mut count) = (Vec::new(), 0);
        for record in ready {
            if record.takes_long() {
                // It waits for admission, which those that are done must not hold up.
                cx.registry().forget(&done);
                done.clear();
            }
            // One that is not complete keeps its place in the log.
            if self.complete(cx, &record) {
                count += 1;
                done.push(record);
            }
        }
        if !done.is_empty() {
            cx.registry().forget(&done);
        }
        self.completing.fetch_sub(1, Ordering::SeqCst);
        count
    }

    /// Does what the commit left to do. The commit stands whatever becomes of that. `false`: not
    /// all could be done. It stays to be done, by the background later, or, where the engine
    /// quits or has halted, at the next opening.
    fn complete(&self, cx: &Context, record: &Arc<TxnRecord>) -> bool {
        let Err(error) = try_complete(cx, record) else { return true };
        if !cx.has_quit() {
            *self.incomplete.lock() = Some(error);
            cx.registry().complete_later(record);
        }
        false
    }

    /// Why what a commit left to do could not be done, if that has happened since the last call.
    pub(crate) fn take_incomplete(&self) -> Option<TxnError> {
        self.incomplete.lock().take()
    }

    /// Retries through up to `max` ended transactions for versions that no snapshot needs, and
    /// gives their memory back ("Scalable garbage collection for in-memory MVCC systems", Boettcher
    /// et al., VLDB 2019). Returns how many it looked through.
    pub(crate) fn prune(&self, cx: &Context, max: usize) -> usize {
        let Some(_pruning) = self.pruning.try_read() else { return 0 };
        let (some, snapshots) = cx.registry().take_prunable(max, PRUNE_LAG);
        let mut hollow = Vec::new();
        for record in &some {
            prune_one(cx, record, &snapshots, &mut hollow);
        }
        cx.registry().drop_hollow(&hollow);
        some.len()
    }

    /// Keeps versions where they are, as long as it is held.
    pub(crate) fn hold_versions(&self) -> RwLockWriteGuard<'_, ()> {
        self.pruning.write()
    }

    /// Whether some thread is at what an ended transaction has left to do.
    pub(crate) fn is_completing(&self) -> bool {
        self.completing.load(Ordering::SeqCst) > 0
    }
}

fn try_complete(cx: &Context, record: &TxnRecord) -> Result<(), TxnError> {
    if record.tasks() == 0 {
        return Ok(());
    }
    let takes_long = record.takes_long();
    // Held all the while: no other thread logs it again, and what is done is not done twice.
    let mut work = record.work.lock();
    if work.tasks.is_empty() {
        return Ok(());
    }
    let trees = work.dropped_trees(cx.env())?;
    // Keeps others off the trees whose pages are about to be freed.
    if !trees.is_empty() {
        cx.dropped.write().extend(&trees);
    }
    let tasks = std::mem::take(&mut work.tasks);
    let work = RefCell::new(&mut *work);
    let tree_of = |id| {
        let mut work = work.borrow_mut();
        work.know(id, &|id| cx.find_tree(id))?;
        let tree = work.trees.iter().find(|tree| tree.id() == id).cloned();
        if tree.is_some() { Ok(tree) } else { dropped_by_open(cx, record.id(), id) }
    };
    let half_freed: Cell<Option<Purge<'static>>> = Cell::new(None);
    // Little is not admitted, as a rollback is not (TXN-4); much waits like other changes.
    let mut go_on = |ahead: Ahead| loop {
        half_freed.set(ahead.rest.or(half_freed.get()));
        if takes_long {
            cx.check_quit()?;
        }
        relog::relog_tasks(cx, record, &tasks, half_freed.get())?;
        if !takes_long || cx.try_admit(ahead.bytes)? {
            return Ok(());
        }
    };
    let is_visible_to_all = |id| cx.registry().is_visible_to_all(id);
    let (env, id, dropped) = (cx.env(), record.id(), &cx.dropped);
    let f =
        TaskContext { env, id, tree_of: &tree_of, is_visible_to_all: &is_visible_to_all, dropped };
    let finished = run_tasks(&f, &tasks, &mut go_on);
    if finished.is_ok() {
        trees.iter().for_each(|tree| cx.locks().forget_tree(*tree));
    } else {
        // From the beginning again, but for the chain that is not whole any more.
        let mut tasks = PurgeTasks::from(tasks);
        if let Some(rest) = half_freed.get() {
            tasks.add(&rest);
        }
        work.into_inner().tasks = tasks.into_vec();
    }
    finished
}

/// A tree that no name leads to, because a transaction that recovery has found open has dropped it.
/// It may be rolled back, and then what is left to do in that tree must be done.
fn dropped_by_open(cx: &Context, own: TxnId, id: TreeId) -> Result<Option<Tree>, TxnError> {
    for other in cx.registry().others(own) {
        // Not waited for: it may wait for what the caller holds.
        let Some(work) = other.work.try_lock() else {
            let what = format!("tree {id} may be of transaction {}, which is at work", other.id());
            return Err(TreeError::Stopped(what).into());
        };
        if let Some(tree) = work.trees.iter().find(|tree| tree.id() == id) {
            return Ok(Some(tree.clone()));
        }
    }
    Ok(None)
}

/// Moves to `record` what only it leads to; transactions emptied so go to `hollow`.
fn prune_one(
    cx: &Context,
    record: &Arc<TxnRecord>,
    snapshots: &[u64],
    hollow: &mut Vec<Arc<TxnRecord>>,
) {
    let State::Committed(number) = record.state() else { return };
    if snapshots.iter().all(|&at| at >= number) {
        // It will be forgotten as a whole.
        return;
    }
    // What is stored takes no memory.
    for seq in record.stored_changes() + 1..=record.changes() {
        while let Some(stamp) = record.stamp_in_memory(seq) {
            let Some(older) = cx.registry().find(stamp.writer) else { break };
            let State::Committed(from) = older.state() else { break };
            // New snapshots are newer than `number`: the interval stays empty.
            if snapshots.iter().any(|at| (from..number).contains(at)) {
                break;
            }
            if !record.take_from(seq, &older, stamp.seq) {
                break;
            }
            if !Arc::ptr_eq(record, &older) && older.is_hollow() {
                hollow.push(older);
            }
        }
    }
    // It is being completed otherwise, or has something left.
    if record.work.try_lock().is_some_and(|work| work.tasks.is_empty()) {
        record.shrink();
    }
}
