//! When the steps of a compaction come: after admission, and at a pace.
use std::sync::Arc;

use weir_base::Clock;
use weir_btree::{CompactStep, Moves, Tree as RawTree, TreeError};
use weir_change::Header;
use weir_checkpoint::Checkpointer;
use weir_page::Stamp;
use weir_pool::Pool;
use weir_txn::Context;

use crate::backup_pace::{BackupLoad, bytes_per_second};
use crate::error::Error;

/// Pages that a step changes at most, besides their parent.
const STEP_PAGES: u64 = 3;
/// It is rested at most so long at a time, so that a caller that wants it to end need not wait.
const REST_MICROS_MAX: u64 = 100_000;
/// Less than that is not rested: it comes together with what follows.
const REST_MICROS_MIN: u64 = 1_000;

/// How a tree is compacted.
#[derive(Clone, Debug, Default)]
pub struct CompactOptions {
    /// It begins at the leaf that has this key: [`Compacted::next`] of a call that was ended.
    pub from: Vec<u8>,
    /// Bytes of pages that are read and changed per second, at most. `None`: a tenth of what the
    /// disk is believed to take, so that those that work hardly notice; `u64::MAX`: as fast as can
    /// be.
    pub bytes_per_second: Option<u64>,
}

/// What a compaction has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Leaves that are as full as can be.
    pub leaves: u64,
    /// Pages that are free.
    pub pages_freed: u64,
    /// Pages whose content has moved to one further in front in the file.
    pub pages_moved: u64,
    /// Where another call goes on ([`CompactOptions::from`]); `None`: all of the tree was gone
    /// through.
    pub next: Option<Vec<u8>>,
}

/// What a compaction needs of a database.
#[derive(Clone)]
pub(crate) struct Compactor {
    pub(crate) context: Arc<Context>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) clock: Arc<dyn Clock>,
    /// A simulation has no time.
    pub(crate) is_paced: bool,
}

/// Which chains may move.
struct Settled<'a> {
    context: &'a Context,
}

impl Moves for Settled<'_> {
    fn is_settled(&self, stamp: Stamp) -> bool {
        // Its writer is known no more: no snapshot finds an older version behind the row, no undo
        // brings one back, and what the commit left to do was done.
        self.context.registry().is_old(stamp.writer)
    }

    fn header(&self) -> Result<Header, TreeError> {
        let id = self.context.registry().number();
        let id = id.map_err(|e| TreeError::Stopped(e.to_string()))?;
        Ok(Header { txn: Some(id), commits: true, ..Header::default() })
    }
}

impl Compactor {
    /// Compacts a tree until all of it was gone through, or `progress` says that it is enough.
    ///
    /// # Errors
    /// As [`crate::Tree::compact`].
    pub(crate) fn run(
        &self,
        tree: &RawTree,
        options: &CompactOptions,
        progress: &mut dyn FnMut(&Compacted) -> Result<bool, TreeError>,
    ) -> Result<Compacted, Error> {
        let page_size = self.pool.page_size() as u64;
        // In segments a page's number says nothing of where it lies.
        let moves = self.pool.store().room_pages().is_none();
        let settled = Settled { context: &self.context };
        let moves: Option<&dyn Moves> = if moves { Some(&settled) } else { None };
        // Pages of redo that a step wrote beyond those that it was admitted for.
        let mut owed_pages = 0;
        let mut done = Compacted { next: Some(options.from.clone()), ..Compacted::default() };
        let mut due_micros = self.clock.now_micros();
        while done.next.is_some() {
            if !self.admit(owed_pages, &done, progress)? {
                return Ok(done);
            }
            let Some(key) = &mut done.next else { break };
            let step = self.step(tree, key, moves)?;
            let pages = match step {
                CompactStep::Passed => 1,
                CompactStep::Joined | CompactStep::Moved => 2,
                CompactStep::Filled => STEP_PAGES,
                CompactStep::ChainMoved(pages) => 2 * u64::from(pages) + 1,
                CompactStep::ChainPassed(pages) => u64::from(pages),
                CompactStep::Again | CompactStep::Done => 0,
            };
            owed_pages = 0;
            match step {
                CompactStep::ChainMoved(pages) => {
                    owed_pages = u64::from(pages).saturating_sub(STEP_PAGES);
                    done.pages_moved += u64::from(pages);
                }
                CompactStep::ChainPassed(_) => {}
                CompactStep::Passed => done.leaves += 1,
                CompactStep::Joined => done.pages_freed += 1,
                CompactStep::Moved => done.pages_moved += 1,
                CompactStep::Filled | CompactStep::Again => {}
                CompactStep::Done => {
                    done.leaves += 1;
                    done.next = None;
                }
            }
            due_micros += self.micros_of(pages * page_size, options.bytes_per_second);
            loop {
                if !progress(&done)? {
                    return Ok(done);
                }
                let now = self.clock.now_micros();
                // What was not used of the time is not made up for later.
                due_micros = due_micros.max(now.saturating_sub(REST_MICROS_MIN));
                match due_micros.saturating_sub(now) {
                    0..REST_MICROS_MIN => break,
                    rest => self.clock.sleep_micros(rest.min(REST_MICROS_MAX)),
                }
            }
        }
        Ok(done)
    }

    /// Waits until a step's redo, and so many pages more, may be written; `false`: `progress` says
    /// that it is enough.
    fn admit(
        &self,
        more_pages: u64,
        done: &Compacted,
        progress: &mut dyn FnMut(&Compacted) -> Result<bool, TreeError>,
    ) -> Result<bool, Error> {
        let bytes = (STEP_PAGES + more_pages) * self.pool.page_size() as u64;
        if !self.is_paced {
            return Ok(self.context.admit(bytes).map(|()| true)?);
        }
        while !self.context.try_admit(bytes)? {
            if !progress(done)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step(
        &self,
        tree: &RawTree,
        key: &mut Vec<u8>,
        moves: Option<&dyn Moves>,
    ) -> Result<CompactStep, Error> {
        let id = tree.id();
        let is_dropped = || self.context.locks().is_dropped(id);
        if is_dropped() {
            return Err(TreeError::Gone(id).into());
        }
        // Dropped meanwhile, it is what is left of a tree that is being freed. A chain that moves
        // must not be freed besides.
        let step = self.context.keep_tree(id, || tree.compact_next(key, moves));
        step.unwrap_or(Err(TreeError::Gone(id))).map_err(|e| match is_dropped() {
            true => TreeError::Gone(id).into(),
            false => e.into(),
        })
    }

    /// How long so many bytes are to take.
    fn micros_of(&self, bytes: u64, asked: Option<u64>) -> u64 {
        if !self.is_paced || asked == Some(u64::MAX) {
            return 0;
        }
        let pages = self.checkpointer.verdict().capacity_pages_per_second;
        let rate = bytes_per_second(BackupLoad {
            capacity_bytes_per_second: pages * self.pool.page_size() as f64,
            is_idle: false,
            is_waited_for: true,
            asked_bytes_per_second: asked,
        });
        (bytes as f64 / rate * 1e6) as u64
    }
}
