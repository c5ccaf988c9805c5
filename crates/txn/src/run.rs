//! Running writes: one row as one group of the log, or a batch under a transaction of its own.
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use weir_base::{Lsn, TreeId, TxnId};
use weir_btree::{Action, Change, Env, Row, Tree, TreeError, Value};
use weir_change::Header;
use weir_page::Flags;
use weir_redo::Span;

use crate::change::Intent;
use crate::error::TxnError;
use crate::locks::{Kind, LockTable, Wait};
use crate::planted::PlantedBug;
use crate::registry::Registry;
use crate::relog;
use crate::resumed::{NamedBy, TreeOf};
use crate::see::{Looks, Reader, Seen, View};
use crate::spill::Archivist;
use crate::stored::Shelf;
use crate::txn::{Isolation, Txn};

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum BatchOp {
    /// Insert the row or replace its value.
    Put(Vec<u8>),
    /// Remove the row if it is there.
    Delete,
}

/// Changes that become lasting together or not at all. A later change of a key replaces an earlier
/// one.
#[derive(Clone, Default)]
pub struct Batch {
    trees: BTreeMap<TreeId, Tree>,
    ops: BTreeMap<(TreeId, Vec<u8>), BatchOp>,
}

impl Batch {
    /// Adds a change.
    pub fn add(&mut self, tree: &Tree, key: &[u8], op: BatchOp) {
        self.trees.entry(tree.id()).or_insert_with(|| tree.clone());
        self.ops.insert((tree.id(), key.to_vec()), op);
    }

    /// Keys changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.trees.clear();
    }
}

/// Waits until `bytes` of redo may be written.
pub type Admission = dyn Fn(u64) -> Result<(), TreeError> + Send + Sync;

/// As [`Admission`], but waits a few milliseconds at most, and says whether it admits.
pub type TryAdmission = dyn Fn(u64) -> Result<bool, TreeError> + Send + Sync;

/// Runs writes and reads.
pub struct Writer {
    env: Arc<Env>,
    shelf: Arc<Shelf>,
    registry: Arc<Registry>,
    locks: LockTable,
    /// Trees that nobody may touch any more.
    pub(crate) dropped: RwLock<HashSet<TreeId>>,
    /// Transactions to be taken back: recovery has found them, or a rollback has failed.
    pub(crate) losers: Mutex<VecDeque<Txn>>,
    /// How many they are, and how many transactions are being completed that left much to do.
    pub(crate) losers_left: AtomicUsize,
    pub(crate) completing: AtomicUsize,
    /// Why the last one that could not be completed was not.
    pub(crate) incomplete: Mutex<Option<TxnError>>,
    pub(crate) carried_bytes: AtomicU64,
    /// Held by who takes versions out of memory; shared by who moves them between transactions.
    pub(crate) pruning: RwLock<()>,
    pub(crate) archivist: Mutex<Archivist>,
    pub(crate) versions_max: Option<u64>,
    pub(crate) changes_max: u32,
    pub(crate) locks_max_bytes: u64,
    /// What the next tree is numbered, whoever makes it.
    pub(crate) next_tree: Arc<AtomicU64>,
    /// Where trees are found that a transaction found by recovery has changed.
    trees: OnceLock<(Box<TreeOf>, Box<NamedBy>)>,
    /// Long background work ends where it is.
    quits: AtomicBool,
    admission: Box<Admission>,
    try_admission: Option<Box<TryAdmission>>,
    planted: PlantedBug,
}

/// What a row change takes in the log besides key and value: record, headers, and its share of a
/// cut leaf.
pub(crate) const ROW_BYTES: u64 = 256;

/// How long a change that is a transaction by itself waits for a row.
pub(crate) const LOCK_WAIT: Wait = Wait::Until(Duration::from_secs(50));

impl Writer {
    /// A writer over these trees.
    #[must_use]
    pub fn new(env: Arc<Env>, registry: Arc<Registry>, admission: Box<Admission>) -> Self {
        Writer {
            shelf: Arc::new(Shelf::new(env.clone())),
            env,
            registry,
            locks: LockTable::new(),
            dropped: RwLock::default(),
            losers: Mutex::default(),
            losers_left: AtomicUsize::new(0),
            completing: AtomicUsize::new(0),
            incomplete: Mutex::default(),
            carried_bytes: AtomicU64::new(0),
            pruning: RwLock::default(),
            archivist: Mutex::default(),
            versions_max: None,
            changes_max: u32::MAX,
            locks_max_bytes: u64::MAX,
            next_tree: Arc::new(AtomicU64::new(1 << 32)),
            trees: OnceLock::new(),
            quits: AtomicBool::new(false),
            admission,
            try_admission: None,
            planted: PlantedBug::Nothing,
        }
    }

    /// Gives open transactions a way to wait for admission in small steps. Needed wherever several
    /// threads write: a transaction that waits holds the checkpoint, and must look now and then
    /// whether it is what everybody waits for (TXN-4).
    #[must_use]
    pub fn with_try_admission(self, try_admission: Box<TryAdmission>) -> Self {
        Writer { try_admission: Some(try_admission), ..self }
    }

    /// Lets ended transactions take at most about so many bytes of memory, versions for old
    /// snapshots included; `None`: an eighth of the pool.
    #[must_use]
    pub fn with_versions_max(self, bytes: Option<u64>) -> Self {
        Writer { versions_max: bytes, ..self }
    }

    /// Lets what transactions hold of locks take about so many bytes of memory; without it, as many
    /// as there are.
    #[must_use]
    pub fn with_locks_max(self, locks_max_bytes: u64) -> Self {
        Writer { locks_max_bytes, ..self }
    }

    /// Lets a transaction make so many changes, for tests; without it, as many as can be numbered.
    #[doc(hidden)]
    #[must_use]
    pub fn with_changes_max(self, changes_max: u32) -> Self {
        Writer { changes_max, ..self }
    }

    /// Numbers the trees that the writer makes for itself by this counter: that of all trees, so
    /// that no two ever have the same number. Without it, a writer's own begin at 2 to the 32nd.
    #[must_use]
    pub fn with_tree_numbers(self, next_tree: Arc<AtomicU64>) -> Self {
        Writer { next_tree, ..self }
    }

    /// Says where trees are found by number, and by the rows that name them. Needed before
    /// [`Writer::resume`].
    pub fn find_trees_by(&self, tree_of: Box<TreeOf>, named_by: Box<NamedBy>) {
        let _ = self.trees.set((tree_of, named_by));
    }

    /// The tree that a row of tree `id` names.
    pub(crate) fn named_by(&self, id: TreeId, row: &[u8]) -> Option<Tree> {
        self.trees.get().and_then(|(_, named_by)| named_by(id, row))
    }

    /// The tree of this number, if it exists.
    pub(crate) fn find_tree(&self, id: TreeId) -> Result<Option<Tree>, TxnError> {
        self.trees.get().map_or(Ok(None), |(tree_of, _)| tree_of(id))
    }

    /// Ends long background work, for good: what is left of it is done after the next opening.
    pub fn quit(&self) {
        self.quits.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_quit(&self) -> bool {
        self.quits.load(Ordering::Relaxed)
    }

    pub(crate) fn check_quit(&self) -> Result<(), TreeError> {
        if !self.has_quit() {
            return Ok(());
        }
        Err(TreeError::Stopped("the database is being closed".into()))
    }

    /// With a bug, for the simulator to find.
    #[doc(hidden)]
    #[must_use]
    pub fn with_planted(self, planted: PlantedBug) -> Self {
        Writer { planted, ..self }
    }

    /// Whether this bug was planted.
    #[inline]
    pub(crate) fn has(&self, bug: PlantedBug) -> bool {
        self.planted == bug
    }

    /// Which transactions are known.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Explicit locks and those who wait.
    #[must_use]
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// What all trees share.
    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.env
    }

    /// Where what large transactions have stored is read.
    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Waits until `bytes` of redo may be written.
    ///
    /// # Errors
    /// [`TreeError::Stopped`] when the engine has halted.
    pub fn admit(&self, bytes: u64) -> Result<(), TreeError> {
        (self.admission)(bytes)
    }

    /// As [`Writer::admit`], but waits a little at most, and says whether it admits.
    ///
    /// # Errors
    /// As [`Writer::admit`].
    pub(crate) fn try_admit(&self, bytes: u64) -> Result<bool, TreeError> {
        match &self.try_admission {
            Some(try_admission) => try_admission(bytes),
            None => self.admit(bytes).map(|()| true),
        }
    }

    /// Reads a row as a view shows it into `out`, emptied first. `false`: it shows none.
    ///
    /// # Errors
    /// [`TreeError`].
    #[inline]
    pub fn read(
        &self,
        tree: &Tree,
        key: &[u8],
        own: Option<TxnId>,
        view: View,
        out: &mut Vec<u8>,
    ) -> Result<bool, TreeError> {
        let reader = Reader::new(&self.registry, own, view);
        let mut patience = 8;
        let mut looks = Looks::default();
        loop {
            let Some((head, token)) = tree.look(key, out)? else {
                out.clear();
                return Ok(false);
            };
            let seen = if reader.sees_at_once(head.stamp) {
                if head.flags.deleted { Seen::Nothing } else { Seen::Row(head.flags) }
            } else {
                reader.see(tree.id(), key, head, out, &mut || self.env.pool.is_still(token))?
            };
            match seen {
                Seen::Row(flags) if !flags.overflow => return Ok(true),
                Seen::Row(_) => {
                    if tree.fetch(out)? {
                        return Ok(true);
                    }
                    // Freed since: the row names another one now, or the page is damaged.
                    patience -= 1;
                    if patience == 0 {
                        return Ok(tree.get(key, out)?.is_some_and(|row| !row.flags.deleted));
                    }
                }
                Seen::Nothing => {
                    out.clear();
                    return Ok(false);
                }
                Seen::Again => looks.again(tree)?,
            }
        }
    }

    /// Inserts a row or replaces its value. Returns the end of its log: durable once the log is
    /// durable up to there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<Lsn, TxnError> {
        let end = if value.len() > tree.max_inline_value(key.len()) {
            self.auto(tree, key, Intent::Put(value))?.1
        } else {
            let short = Value { bytes: value, flags: Flags::NONE };
            match self.one(tree, key, value.len(), &mut |_| Action::Put(short))? {
                One::Done(end) => end,
                One::Refused => self.auto(tree, key, Intent::Put(value))?.1,
            }
        };
        Ok(end.unwrap_or_else(|| self.log_end()))
    }

    /// Removes a row. `None`: it was not there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<Option<Lsn>, TxnError> {
        let mut was_there = false;
        let one = self.one(tree, key, 0, &mut |row| match row {
            Some(row) if !row.flags.deleted => {
                was_there = true;
                Action::Remove
            }
            _ => {
                was_there = false;
                Action::Nothing
            }
        })?;
        let end = match one {
            One::Done(end) => end,
            One::Refused => {
                let (did, end) = self.auto(tree, key, Intent::Delete)?;
                was_there = did;
                end
            }
        };
        Ok(end.filter(|_| was_there))
    }

    /// One row, one group: a transaction that needs no undo, and leaves no older version. Refused
    /// when somebody may need one, or has the row.
    fn one<'a>(
        &self,
        tree: &Tree,
        key: &[u8],
        value_len: usize,
        decide: &mut dyn FnMut(Option<Row<'_>>) -> Action<'a>,
    ) -> Result<One, TxnError> {
        if self.registry.gate.is_closed() {
            return Ok(One::Refused);
        }
        self.admit(ROW_BYTES + (key.len() + value_len) as u64)?;
        let id = self.registry.number()?;
        let header = Header { txn: Some(id), commits: true, ..Header::default() };
        let (inside, mut refused) = (Cell::new(None), false);
        let mut decide = |row: Option<Row<'_>>| {
            let entered = self.registry.gate.enter();
            refused = entered.is_none()
                // TXN-1
                || row.is_some_and(|r| self.registry.is_open(r.stamp.writer))
                // What it leaves to be freed is for a transaction with a name.
                || row.is_some_and(|r| r.flags.overflow)
                || self.locks.blocks(id, tree.id(), key, Kind::Exclusive);
            inside.set(entered);
            if refused { Action::Nothing } else { decide(row) }
        };
        // Nobody's snapshot waits while the tree does.
        let mut lets_go = || drop(inside.take());
        let change = Change::single(header);
        let written = tree.write_telling(key, &change, &mut decide, &mut lets_go)?;
        drop(inside);
        Ok(if refused { One::Refused } else { One::Done(written.span.map(|span| span.end)) })
    }

    /// One change as a transaction of its own.
    fn auto(
        &self,
        tree: &Tree,
        key: &[u8],
        intent: Intent<'_>,
    ) -> Result<(bool, Option<Lsn>), TxnError> {
        let mut did = false;
        let end = self.transact(|txn| {
            did = txn.change(self, tree, key, intent)?;
            Ok(())
        })?;
        Ok((did, end))
    }

    /// Applies a batch. Returns the end of its log.
    ///
    /// # Errors
    /// [`TxnError`]; all rows are as they were.
    pub fn write(&self, batch: &Batch) -> Result<Lsn, TxnError> {
        let end = self.transact(|txn| {
            for ((id, key), op) in &batch.ops {
                let intent = match op {
                    BatchOp::Put(value) => Intent::Put(value),
                    BatchOp::Delete => Intent::Delete,
                };
                txn.change(self, &batch.trees[id], key, intent)?;
            }
            Ok(())
        })?;
        Ok(end.unwrap_or_else(|| self.log_end()))
    }

    pub(crate) fn log_end(&self) -> Lsn {
        self.env.pool.log().end()
    }

    /// So much has named once more what recovery would need.
    pub(crate) fn count_carried(&self, span: Span) {
        self.carried_bytes.fetch_add(span.end.bytes_since(span.start), Ordering::Relaxed);
    }

    /// Bytes of log that have named once more what recovery would need of transactions that began
    /// far back.
    #[must_use]
    pub fn carried_bytes(&self) -> u64 {
        self.carried_bytes.load(Ordering::Relaxed)
    }

    /// Writes again what recovery would need of transactions that began far back, so that the log
    /// before may go. Whoever waits for the user, or for a reader's snapshot, never holds the
    /// checkpoint.
    ///
    /// # Errors
    /// [`TxnError`] when the log refuses.
    pub fn carry_forward_all(&self) -> Result<(), TxnError> {
        relog::carry_forward_all(self)
    }

    /// Runs `work` as a transaction and commits it; if it fails all is taken back.
    fn transact(
        &self,
        work: impl FnOnce(&mut Txn) -> Result<(), TxnError>,
    ) -> Result<Option<Lsn>, TxnError> {
        let mut txn = Txn::new(Isolation::ReadCommitted, LOCK_WAIT);
        match work(&mut txn).and_then(|()| txn.commit(self)) {
            Ok(end) => Ok(end),
            Err(first) => Err(self.undone(&mut txn, first)),
        }
    }

    /// Takes everything back after a failure. Tells of it, and of what else failed.
    pub(crate) fn undone(&self, txn: &mut Txn, first: TxnError) -> TxnError {
        match txn.rollback(self) {
            Ok(()) => first,
            // Rows stay locked meanwhile: nobody may build on changes that will be taken back.
            Err(then) => TxnError::RollbackFailed { first: first.into(), then: then.into() },
        }
    }
}

/// What became of a change of one row.
enum One {
    /// Done, with the end of its log when something was changed.
    Done(Option<Lsn>),
    /// It has to be done as a transaction.
    Refused,
}
