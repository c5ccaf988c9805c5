//! Moving versions out of memory: what ended transactions remember for old snapshots goes into
//! trees of the store, as far as a snapshot needs it, and what they left to do goes into chains of
//! pages, together for many of them. So memory keeps to its bound however long a snapshot is held.
//! `docs/decisions/old-versions.md`.
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::{TreeId, TxnId, rank};
use weir_btree::{Change, Tree, Value};
use weir_change::Header;
use weir_page::{Flags, Stamp};

use crate::background::purge::Purger;
use crate::background::sweep::Sweep;
use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::planted::PlantedBug;
use crate::record::entry::UndoEntry;
use crate::record::purge_task::PurgeTask;
use crate::record::stored::{self, Body};
use crate::record::txn_record::{State, TxnRecord, Version};
use crate::session::txn::{Isolation, Txn};
use crate::versions::archive::{Archive, OldReadView, SnapshotGroup};
use crate::versions::registry::Archivable;

/// So many transactions are archived in a step.
const BATCH: usize = 1024;

/// The newest so many stay in memory: short snapshots have gone by then.
const LAG: u64 = 1024;

/// Each version lies in at most so many trees. The snapshots of a tree go together: one more tree
/// is one more copy of what all need, one less keeps what some needed for longer.
const GROUPS_MAX: usize = 4;

/// Moves versions out of memory, one thread at a time.
pub(crate) struct Archivist {
    /// How much memory ended transactions may take; `None`: an eighth of the pool.
    pub(crate) versions_max: Option<u64>,
    /// The number of the next tree, whichever part of the engine makes it.
    pub(crate) next_tree: Arc<AtomicU64>,
    archiving: Mutex<rank::Archiving, Archiving>,
}

/// What is archived, and what is not yet.
#[derive(Default)]
struct Archiving {
    /// Those that made the archive's trees: still open, so that after a crash the trees are freed
    /// like all that an open transaction has made. As many as there are groups, in their order.
    makers: Vec<Maker>,
    /// Those whose versions are archived, but not yet what they have left to do.
    left: Vec<Arc<TxnRecord>>,
}

/// The transaction that made a tree.
struct Maker {
    txn: Txn,
    sweep: Sweep,
}

/// Versions to be written into one tree.
type Records = BTreeMap<Vec<u8>, Vec<u8>>;

impl Default for Archivist {
    fn default() -> Self {
        let next_tree = Arc::new(AtomicU64::new(1 << 32));
        Archivist { versions_max: None, next_tree, archiving: Mutex::default() }
    }
}

impl Archivist {
    /// How much memory ended transactions may take before their versions are moved out.
    fn versions_max_bytes(&self, cx: &Context) -> u64 {
        self.versions_max.unwrap_or_else(|| {
            let pool = &cx.env().pool;
            (pool.residence().frames * pool.page_size() as u64 / 8).max(1 << 20)
        })
    }

    /// Moves versions of some ended transactions out of memory if they take too much of it, and
    /// drops archives that no snapshot needs. `false`: there is nothing to do, or another thread is
    /// at it.
    ///
    /// # Errors
    /// [`TxnError`]; what was not moved stays in memory.
    pub(crate) fn archive(&self, cx: &Context, purger: &Purger) -> Result<bool, TxnError> {
        let Some(mut archiving) = self.archiving.try_lock() else { return Ok(false) };
        if leave_old(cx, &mut archiving, |view| !view.is_held())? {
            return Ok(true);
        }
        if gather_if_much(cx)? {
            return Ok(true);
        }
        let is_much = cx.registry().version_bytes() > self.versions_max_bytes(cx);
        match is_much.then(|| cx.registry().archivable(BATCH, LAG)).flatten() {
            Some(found) => self.archive_batch(cx, purger, &mut archiving, &found).map(|()| true),
            None => self.sweep_any(cx, &mut archiving),
        }
    }

    /// Goes on through a tree that much has gone from.
    fn sweep_any(&self, cx: &Context, archiving: &mut Archiving) -> Result<bool, TxnError> {
        let due_from = self.sweep_due_from(cx);
        let groups = cx.registry().archive.groups();
        for (group, maker) in groups.iter().zip(&mut archiving.makers) {
            if maker.sweep.go_on(cx, &mut maker.txn, group, due_from, 4 * BATCH)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops all archives: no transaction holds a snapshot any more, nor will.
    ///
    /// # Errors
    /// [`TxnError`]; the next opening drops what is left.
    pub(crate) fn leave_all(&self, cx: &Context) -> Result<(), TxnError> {
        let mut archiving = self.archiving.lock();
        while leave_old(cx, &mut archiving, |_| true)? {}
        Ok(())
    }

    fn archive_batch(
        &self,
        cx: &Context,
        purger: &Purger,
        archiving: &mut Archiving,
        found: &Archivable,
    ) -> Result<(), TxnError> {
        let moves = |record: &&Arc<TxnRecord>| !record.is_heavy() && record.stored_changes() == 0;
        let batch: Vec<Arc<TxnRecord>> = found.batch.iter().filter(moves).cloned().collect();
        self.welcome(cx, archiving, found)?;
        let due_from = self.sweep_due_from(cx);
        let groups = cx.registry().archive.groups();
        let all = collect(cx, purger, &batch, &groups)?;
        for ((group, records), maker) in groups.iter().zip(all).zip(&mut archiving.makers) {
            if !cx.has(PlantedBug::VersionsNotArchived) {
                write_records(cx, &mut maker.txn, &group.tree, &records)?;
            }
            cx.registry().archive.count(records.len() as u64);
            maker.sweep.count(records.len());
            // Faster than the tree grows.
            let some = BATCH + 4 * records.len();
            maker.sweep.go_on(cx, &mut maker.txn, group, due_from, some)?;
        }
        cx.registry().set_archived(found.looked);
        let is_done = |record: &Arc<TxnRecord>| record.work.lock().tasks.is_empty();
        let (done, left): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_done);
        cx.registry().forget_archived(&done);
        archiving.left.extend(left);
        let left: u64 = archiving.left.iter().map(|record| record.memory_bytes()).sum();
        if left > self.versions_max_bytes(cx) / 4 {
            gather_tasks(cx, &archiving.left)?;
            cx.registry().forget_archived(&archiving.left);
            archiving.left.clear();
        }
        Ok(())
    }

    /// Gives snapshots a view that have become old (TXN-12), and takes those away of which the
    /// snapshots have been dropped: what lies under their numbers is found without them.
    fn welcome(
        &self,
        cx: &Context,
        archiving: &mut Archiving,
        found: &Archivable,
    ) -> Result<(), TxnError> {
        let mut groups = cx.registry().archive.groups();
        let known: HashSet<u64> =
            groups.iter().flat_map(|group| &group.views).map(|view| view.at).collect();
        let new = found.snapshots.iter().filter(|(at, _)| !known.contains(at));
        let new: Vec<Arc<OldReadView>> =
            new.map(|&(at, bound)| Arc::new(cx.registry().view_of(at, bound))).collect();
        for (group, maker) in groups.iter_mut().zip(&mut archiving.makers) {
            let before = group.views.len();
            group.views.retain(|view| view.is_held());
            if group.views.len() < before {
                maker.sweep.note_left();
            }
        }
        if !new.is_empty() && groups.len() < GROUPS_MAX {
            // One that a crash has left may still be freed under its number, so it stays its own.
            let id = TreeId(self.next_tree.fetch_add(1, Ordering::SeqCst));
            let mut maker = Txn::new(Isolation::ReadCommitted, crate::Wait::No);
            let tree = match maker.make_tree(cx, id) {
                Ok(tree) => tree,
                Err(e) => {
                    maker.rollback(cx)?;
                    return Err(e);
                }
            };
            archiving.makers.push(Maker { txn: maker, sweep: Sweep::default() });
            groups.push(SnapshotGroup { tree, views: Vec::new() });
        }
        if let Some(youngest) = groups.last_mut() {
            youngest.views.extend(new.iter().cloned());
            youngest.views.sort_by_key(|view| view.at);
        }
        cx.registry().archive.set_groups(groups);
        // A snapshot that is dropped from now on says so itself.
        let is_gone = |view: &&Arc<OldReadView>| !cx.registry().is_held(view.at);
        new.iter().filter(is_gone).for_each(|view| view.leave());
        Ok(())
    }

    /// Whether it is so far behind that a committing thread is to help.
    pub(crate) fn is_behind(&self, cx: &Context) -> bool {
        cx.registry().version_bytes() > 2 * self.versions_max_bytes(cx)
            || cx.registry().left_bytes() > 2 * left_max_bytes(cx)
    }

    /// A tree is gone through only with so many versions in it: fewer take no more room than
    /// versions in memory may.
    fn sweep_due_from(&self, cx: &Context) -> u64 {
        self.versions_max_bytes(cx) / 256
    }
}

/// Drops the trees of which no snapshot is held any more.
fn leave_old(
    cx: &Context,
    archiving: &mut Archiving,
    is_left: impl Fn(&OldReadView) -> bool,
) -> Result<bool, TxnError> {
    let archive = &cx.registry().archive;
    let mut groups = archive.groups();
    let is_spent = |group: &SnapshotGroup| group.views.iter().all(|view| is_left(view));
    let Some(at) = groups.iter().position(is_spent) else {
        return Ok(false);
    };
    let SnapshotGroup { tree, .. } = groups.remove(at);
    let mut maker = archiving.makers.remove(at).txn;
    archive.set_groups(groups);
    // Its pages are freed as those of any dropped tree.
    maker.drop_own_tree(cx, &tree)?;
    maker.commit(cx)?;
    Ok(true)
}

/// The versions that old snapshots need and would not find without `batch`, for each group.
fn collect(
    cx: &Context,
    purger: &Purger,
    batch: &[Arc<TxnRecord>],
    groups: &[SnapshotGroup],
) -> Result<Vec<Records>, TxnError> {
    // Nothing moves between transactions meanwhile.
    let _held = purger.hold_versions();
    let moved: HashSet<TxnId> = batch.iter().map(|record| record.id()).collect();
    let mut all: Vec<Records> = groups.iter().map(|_| Records::new()).collect();
    for record in batch.iter().filter(|record| matches!(record.state(), State::Committed(_))) {
        for seq in 1..=record.changes() {
            // Most have only followed one that is archived.
            let Some(stamp) = record.stamp_in_memory(seq) else { continue };
            if !is_wanted(cx, record, stamp, groups, &moved) {
                continue;
            }
            let Some(UndoEntry::Row { tree, key, before: Some(before), .. }) = record.entry(seq)
            else {
                continue;
            };
            for (group, records) in groups.iter().zip(&mut all) {
                collect_row(cx, record, (tree, &key), &before, group, &moved, records)?;
            }
        }
    }
    Ok(all)
}

/// Whether a snapshot may need what was before a change of `record`, or what that leads to.
fn is_wanted(
    cx: &Context,
    record: &TxnRecord,
    before: Stamp,
    groups: &[SnapshotGroup],
    moved: &HashSet<TxnId>,
) -> bool {
    let views = groups.iter().flat_map(|group| &group.views);
    let mut blind = views.filter(|view| view.is_held() && view.hides(record.id())).peekable();
    blind.peek().is_some()
        && (blind.any(|view| !view.hides(before.writer))
            || (!moved.contains(&before.writer) && cx.registry().find(before.writer).is_some()))
}

/// Goes down from what a row was before `record` changed it, through transactions that stay in
/// memory, as far as a snapshot of the group needs: what comes below those that do not stay
/// they have written themselves.
fn collect_row(
    cx: &Context,
    record: &TxnRecord,
    (tree, key): (TreeId, &[u8]),
    before: &(Flags, Stamp, Vec<u8>),
    group: &SnapshotGroup,
    moved: &HashSet<TxnId>,
    records: &mut Records,
) -> Result<(), TxnError> {
    let blind = group.views.iter().filter(|view| view.is_held() && view.hides(record.id()));
    let mut blind: Vec<&Arc<OldReadView>> = blind.collect();
    let &(mut flags, mut stamp, ref first) = before;
    let mut bytes = std::borrow::Cow::Borrowed(first);
    loop {
        let newest = blind.iter().rev().find(|view| !view.hides(stamp.writer));
        if let Some(view) = newest.filter(|_| !flags.deleted) {
            let place = cx.registry().archive.key(&group.tree, view.at, tree, key);
            records.insert(place, Archive::record(flags, stamp.writer, &bytes));
        }
        blind.retain(|view| view.hides(stamp.writer));
        if blind.is_empty() || moved.contains(&stamp.writer) {
            return Ok(());
        }
        let Some(older) = cx.registry().find(stamp.writer) else { return Ok(()) };
        match older.before(stamp.seq, bytes.to_mut())? {
            Version::Row { flags: was, stamp: writer } => (flags, stamp) = (was, writer),
            Version::Absent | Version::Unknown | Version::Moved => return Ok(()),
        }
    }
}

fn write_records(
    cx: &Context,
    maker: &mut Txn,
    tree: &Tree,
    records: &Records,
) -> Result<(), TxnError> {
    let Some(record) = maker.record().cloned() else { return Err(TxnError::Ended) };
    let header = Header { txn: Some(record.id()), ..Header::default() };
    for (key, bytes) in records {
        maker.reserve_log(cx, &record, ROW_BYTES + (key.len() + bytes.len()) as u64)?;
        let value = Value { bytes, flags: Flags::NONE };
        tree.put(key, &Change::restoring(header), value)?;
    }
    Ok(())
}

/// How much of the log may say what committed transactions have left to do before it is
/// gathered: while a snapshot is held, it is logged again and again.
fn left_max_bytes(cx: &Context) -> u64 {
    cx.env().pool.log().age_limit_bytes() / 32
}

/// Gathers what transactions have left to do that a snapshot keeps from being completed, if it is
/// much. Their versions stay in memory. The archivist's mutex is held.
fn gather_if_much(cx: &Context) -> Result<bool, TxnError> {
    if cx.registry().left_bytes() <= left_max_bytes(cx) {
        return Ok(false);
    }
    let Some(batch) = cx.registry().to_gather(4 * BATCH) else { return Ok(false) };
    gather_tasks(cx, &batch)?;
    for record in &batch {
        // Unless it is being completed: then nothing is left of it soon.
        if let Some(mut work) = record.work.try_lock()
            && !work.tasks.is_empty()
        {
            work.tasks.clear();
            record.set_left(false, 0);
            cx.registry().settle(record);
        }
    }
    Ok(true)
}

/// Takes over what the transactions of `batch` have left to do, in pages and under one name:
/// the log need not log it again for each of them.
fn gather_tasks(cx: &Context, batch: &[Arc<TxnRecord>]) -> Result<(), TxnError> {
    let mut tasks: Vec<PurgeTask> = Vec::new();
    let mut trees: Vec<Tree> = Vec::new();
    for record in batch {
        let work = record.work.lock();
        tasks.extend(work.tasks.iter().cloned());
        for tree in work.trees.iter().filter(|_| !work.tasks.is_empty()) {
            if !trees.iter().any(|known| known.id() == tree.id()) {
                trees.push(tree.clone());
            }
        }
    }
    if tasks.is_empty() {
        return Ok(());
    }
    let mut carrier = Txn::new(Isolation::ReadCommitted, crate::Wait::No);
    let stored = store_tasks(cx, &mut carrier, &stored::bodies_of(&tasks), trees);
    match stored.and_then(|()| carrier.commit(cx)) {
        Ok(_) => Ok(()),
        Err(first) => Err(carrier.rolled_back_after(cx, first)),
    }
}

fn store_tasks(
    cx: &Context,
    carrier: &mut Txn,
    bodies: &[Body],
    trees: Vec<Tree>,
) -> Result<(), TxnError> {
    let record = carrier.start(cx)?;
    let segments = carrier.write_segments(cx, &record, bodies)?;
    let mut work = record.work.lock();
    for segment in segments {
        record.push_task(&mut work, PurgeTask::Stored(segment));
    }
    work.trees = trees.into();
    Ok(())
}
