//! What a transaction needs itself: to be rolled back, and to be completed.
use std::sync::Arc;

use smallvec::SmallVec;
use weir_base::TreeId;
use weir_btree::{Env, Tree, TreeError};

use crate::error::TxnError;
use crate::record::entry::Undo;
use crate::record::purge_task::PurgeTask;
use crate::record::stored::{self, UndoSegments};

/// The name of a prepared transaction. A server's own are short.
pub type Xid = SmallVec<[u8; 40]>;

/// Finds the tree of a number, if it exists.
pub(crate) type FindTree<'a> = dyn Fn(TreeId) -> Result<Option<Tree>, TxnError> + 'a;

/// What a transaction needs itself: to be rolled back, and to be completed.
#[derive(Default)]
pub(crate) struct Work {
    /// The trees that it changed.
    pub(crate) trees: SmallVec<[Tree; 1]>,
    /// It may have changed others besides: recovery has not looked.
    pub(crate) changed_more: bool,
    /// What to roll back first of all, and to do last after the commit: it is stored in pages.
    pub(crate) segments: UndoSegments,
    /// What to roll back besides, oldest first.
    pub(crate) undo: SmallVec<[Undo; 1]>,
    /// What its commit leaves to do besides.
    pub(crate) tasks: Vec<PurgeTask>,
    /// It drops a tree.
    pub(crate) drops_tree: bool,
    /// Its commit, or pages that it takes into use, are about to be in the log or are there
    /// already, and nothing here says so yet: it is not to be logged again now.
    pub(crate) sealed: bool,
    /// The name under which it is prepared.
    pub(crate) xid: Option<Xid>,
    /// What it had locked when it was prepared, as `kept.rs` writes it, if it is to keep that.
    pub(crate) held: Vec<u8>,
}

/// What a commit leaves to do, in numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// It drops a tree, or what is to do is stored.
    pub(crate) is_heavy: bool,
    /// So many purge tasks.
    pub(crate) tasks: usize,
    /// Bytes of log that naming them takes.
    pub(crate) bytes: u64,
}

impl Work {
    /// What a commit leaves to do now.
    pub(crate) fn left(&self) -> Left {
        let bytes = self.tasks.iter().map(PurgeTask::bytes).sum();
        Left { is_heavy: self.is_heavy(), tasks: self.tasks.len(), bytes }
    }

    /// How much there is to roll back.
    pub(crate) fn depth(&self) -> usize {
        self.segments.entries() + self.undo.len()
    }

    /// How much a commit would leave to do.
    pub(crate) fn tasks(&self) -> usize {
        self.segments.tasks() + self.tasks.len()
    }

    /// Forgets what a commit would leave to do behind the first `count`.
    pub(crate) fn truncate_tasks(&mut self, count: usize) {
        self.tasks.truncate(count.saturating_sub(self.segments.tasks()));
        self.segments.truncate_tasks(count);
    }

    /// Nothing is to be rolled back, and nothing holds pages for that.
    pub(crate) fn is_clean(&self) -> bool {
        self.undo.is_empty() && self.segments.is_empty()
    }

    /// Whether the first thing that rolling it back does is to free a tree.
    pub(crate) fn frees_tree(&self) -> bool {
        matches!(self.undo.last(), Some(Undo::Tree { .. }))
    }

    /// Whether a tree is to be freed, or what is left to do is stored: it is in pages already, and
    /// completing it may take long.
    pub(crate) fn is_heavy(&self) -> bool {
        self.drops_tree || self.tasks.iter().any(|task| matches!(task, PurgeTask::Stored(_)))
    }

    /// Whether it may have changed rows of this tree.
    pub(crate) fn may_use(&self, id: TreeId) -> bool {
        self.changed_more || self.trees.iter().any(|tree| tree.id() == id)
    }

    /// The trees that are dropped when it commits.
    ///
    /// # Errors
    /// [`TreeError`] when what is stored cannot be read.
    pub(crate) fn dropped_trees(&self, env: &Arc<Env>) -> Result<Vec<TreeId>, TreeError> {
        let mut trees = Vec::new();
        let mut look = |task: &PurgeTask| match task {
            PurgeTask::Tree { tree, .. } => trees.push(*tree),
            PurgeTask::Chain { .. } | PurgeTask::Row { .. } | PurgeTask::Stored(_) => {}
        };
        if self.drops_tree {
            self.tasks.iter().for_each(&mut look);
            let listed = self.tasks.iter().filter_map(|task| match task {
                PurgeTask::Stored(stored) => Some(stored),
                _ => None,
            });
            for stored in self.segments.iter().chain(listed).filter(|stored| stored.tasks > 0) {
                if let Some(segment) = stored::read(env, stored)? {
                    segment.tasks.iter().for_each(&mut look);
                }
            }
        }
        Ok(trees)
    }

    /// Retries a tree up once that it has changed before recovery.
    pub(crate) fn know(&mut self, id: TreeId, find: &FindTree<'_>) -> Result<(), TxnError> {
        if !self.trees.iter().any(|tree| tree.id() == id) {
            self.trees.extend(find(id)?);
        }
        Ok(())
    }

    /// Adds a thing to do after the commit, which `TxnRecord::push_task` weighs.
    pub(super) fn push_task(&mut self, task: PurgeTask) {
        self.drops_tree |= matches!(task, PurgeTask::Tree { .. });
        self.tasks.push(task);
    }
}
