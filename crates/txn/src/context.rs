//! What every transaction needs: the environment of all trees, the registry, the lock table,
//! admission to the log, and where trees are found by number.
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use weir_base::lock::RwLock;
use weir_base::{Lsn, TreeId, rank};
use weir_btree::{Env, Tree, TreeError};
use weir_pool::ROOM_KEPT_PAGES;
use weir_redo::Span;

use crate::error::TxnError;
use crate::locks::LockTable;
use crate::planted::PlantedBug;
use crate::record::losers::Losers;
use crate::record::stored::UndoCache;
use crate::versions::registry::Registry;

/// So many waits of a moment, and no room yet: the disk is full.
const ROOM_WAITS_MAX: u32 = 50_000;

/// Waits until `bytes` of redo may be written.
pub type Admission = dyn Fn(u64) -> Result<(), TreeError> + Send + Sync;

/// As [`Admission`], but waits a few milliseconds at most, and says whether it admits.
pub type TryAdmission = dyn Fn(u64) -> Result<bool, TreeError> + Send + Sync;

/// Waits for a moment while dirty pages are written.
pub type PageWait = dyn Fn() -> Result<(), TreeError> + Send + Sync;

/// Finds a tree by its number, also one that an open transaction has made or dropped; `None` when
/// it does not exist.
pub type TreeOf = dyn Fn(TreeId) -> Result<Option<Tree>, TxnError> + Send + Sync;

/// The tree that a row of this tree names, if rows there name trees: the row as it was may name
/// one that [`TreeOf`] does not find any more.
pub type NamedBy = dyn Fn(TreeId, &[u8]) -> Option<Tree> + Send + Sync;

/// What every transaction needs.
pub struct Context {
    env: Arc<Env>,
    undo_cache: Arc<UndoCache>,
    registry: Arc<Registry>,
    locks: LockTable,
    losers: Losers,
    /// Trees that no transaction may touch any more.
    pub(crate) dropped: RwLock<rank::DroppedTrees, HashSet<TreeId>>,
    relogged_bytes: AtomicU64,
    pub(crate) changes_max: u32,
    pub(crate) locks_max_bytes: u64,
    /// Where trees are found that a transaction found by recovery has changed.
    trees: OnceLock<(Box<TreeOf>, Box<NamedBy>)>,
    /// Long background work ends where it is.
    quits: AtomicBool,
    admission: Box<Admission>,
    try_admission: Option<Box<TryAdmission>>,
    wait_for_pages: Option<Box<PageWait>>,
    planted: PlantedBug,
}

/// What a row change takes in the log besides key and value: record, headers, and its share of a
/// cut leaf.
pub(crate) const ROW_BYTES: u64 = 256;

impl Context {
    /// A context over these trees.
    #[must_use]
    pub fn new(env: Arc<Env>, registry: Arc<Registry>, admission: Box<Admission>) -> Self {
        Context {
            undo_cache: Arc::new(UndoCache::new(env.clone())),
            env,
            registry,
            locks: LockTable::new(),
            losers: Losers::default(),
            dropped: RwLock::default(),
            relogged_bytes: AtomicU64::new(0),
            changes_max: u32::MAX,
            locks_max_bytes: u64::MAX,
            trees: OnceLock::new(),
            quits: AtomicBool::new(false),
            admission,
            try_admission: None,
            wait_for_pages: None,
            planted: PlantedBug::Nothing,
        }
    }

    /// Gives open transactions a way to wait for admission in small steps. Needed wherever several
    /// threads write: a transaction that waits holds the checkpoint, and must look now and then
    /// whether it is what every transaction waits for (TXN-4).
    #[must_use]
    pub fn with_try_admission(self, try_admission: Box<TryAdmission>) -> Self {
        Context { try_admission: Some(try_admission), ..self }
    }

    /// Has threads that find the disk full wait this way while dirty pages are written.
    #[must_use]
    pub fn with_page_wait(self, wait: Box<PageWait>) -> Self {
        Context { wait_for_pages: Some(wait), ..self }
    }

    /// Lets what transactions hold of locks take about so many bytes of memory; without it, as many
    /// as there are.
    #[must_use]
    pub fn with_locks_max(self, locks_max_bytes: u64) -> Self {
        Context { locks_max_bytes, ..self }
    }

    /// Lets a transaction make so many changes, for tests; without it, as many as can be numbered.
    #[doc(hidden)]
    #[must_use]
    pub fn with_changes_max(self, changes_max: u32) -> Self {
        Context { changes_max, ..self }
    }

    /// Says where trees are found by number, and by the rows that name them. Needed before
    /// [`Background::resume`](crate::Background::resume).
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
        Context { planted, ..self }
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

    /// Explicit locks and those that wait.
    #[must_use]
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// What all trees share.
    #[must_use]
    pub fn env(&self) -> &Arc<Env> {
        &self.env
    }

    /// Does something to the pages of a tree, which are not freed meanwhile though the tree be
    /// dropped. `None`: they are being freed. `act` must not wait for admission.
    pub fn keep_tree<T>(&self, tree: TreeId, act: impl FnOnce() -> T) -> Option<T> {
        let dropped = self.dropped.read();
        (!dropped.contains(&tree)).then(act)
    }

    /// Where what large transactions have stored is read.
    pub(crate) fn undo_cache(&self) -> &Arc<UndoCache> {
        &self.undo_cache
    }

    /// Whether the page store has room for what users change; `false`: not before dirty pages are
    /// written, and this has waited a moment for that. Some is left for what must be done in any
    /// case: rolling back, purging, writing what is dirty.
    ///
    /// # Errors
    /// [`TreeError::Pool`] when the disk is full, also after too many `waits`: nothing has changed.
    #[inline]
    pub(crate) fn has_room(&self, waits: &mut u32) -> Result<bool, TreeError> {
        if self.env.pool.has_room()? {
            return Ok(true);
        }
        *waits += 1;
        if *waits > ROOM_WAITS_MAX {
            return Ok(self.env.pool.check_room(ROOM_KEPT_PAGES).map(|()| true)?);
        }
        self.check_quit()?;
        match &self.wait_for_pages {
            Some(wait) => wait()?,
            None => std::thread::yield_now(),
        }
        Ok(false)
    }

    /// Waits until `bytes` of redo may be written.
    ///
    /// # Errors
    /// [`TreeError::Stopped`] when the engine has halted.
    pub fn admit(&self, bytes: u64) -> Result<(), TreeError> {
        (self.admission)(bytes)
    }

    /// As [`Context::admit`], but waits a little at most, and says whether it admits.
    ///
    /// # Errors
    /// As [`Context::admit`].
    pub fn try_admit(&self, bytes: u64) -> Result<bool, TreeError> {
        match &self.try_admission {
            Some(try_admission) => try_admission(bytes),
            None => self.admit(bytes).map(|()| true),
        }
    }

    /// Transactions that are to be rolled back in the background.
    pub(crate) fn losers(&self) -> &Losers {
        &self.losers
    }

    pub(crate) fn log_end(&self) -> Lsn {
        self.env.pool.log().end()
    }

    /// So much has named once more what recovery would need.
    pub(crate) fn count_relogged(&self, span: Span) {
        self.relogged_bytes.fetch_add(span.end.bytes_since(span.start), Ordering::Relaxed);
    }

    /// Bytes of log that have named once more what recovery would need of transactions that began
    /// far back.
    #[must_use]
    pub fn relogged_bytes(&self) -> u64 {
        self.relogged_bytes.load(Ordering::Relaxed)
    }
}
