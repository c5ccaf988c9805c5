//! Trees made dense while others read and write them: `weir_btree` knows each step, `compactor.rs`
//! when it comes (`docs/decisions/compact.md`).
use weir_btree::TreeError;

use crate::compactor::{CompactOptions, Compacted, Compactor};
use crate::config::Background;
use crate::engine::Engine;
use crate::error::Error;
use crate::tree::Tree;

impl Tree {
    /// Makes the tree dense: leaves that deletions have left half empty are joined, and lie at the
    /// beginning of the file, as far as there is room, as long values do. Others read and write
    /// the tree meanwhile; each wait is one for a page or two. What is free goes back to the file
    /// system after the next checkpoint, as ever. Older versions stay where they are, and so do
    /// long values of more than sixteen pages (fewer with a small pool), and those of rows that a
    /// snapshot may see otherwise. `progress` is asked after each step whether to go on. A crash in
    /// the middle of it leaves a sound database, and what was done.
    ///
    /// # Errors
    /// [`Error::NoTree`] when the tree is dropped meanwhile; [`Error::Damaged`], [`Error::Io`],
    /// [`Error::Halted`] and others as [`Tree::put`]. The tree has the same rows in any case.
    pub fn compact(
        &self,
        options: &CompactOptions,
        progress: &mut dyn FnMut(&Compacted) -> bool,
    ) -> Result<Compacted, Error> {
        self.engine.check_writable()?;
        // Where a compaction stands may be one byte longer than a key: just behind that one.
        let from = &options.from[..options.from.len().saturating_sub(1)];
        self.raw.check_key(from)?;
        // What is only marked deleted goes first.
        self.engine.background.purge(usize::MAX);
        let mut progress = |done: &Compacted| {
            let goes_on = self.engine.check_open();
            goes_on.map(|()| progress(done)).map_err(|e| TreeError::Stopped(e.to_string()))
        };
        let done = self.engine.compactor().run(&self.raw, options, &mut progress);
        done.map_err(|e| self.engine.check_here().err().unwrap_or_else(|| self.engine.failed(e)))
    }
}

impl Engine {
    pub(crate) fn compactor(&self) -> Compactor {
        Compactor {
            context: self.context.clone(),
            pool: self.pool.clone(),
            checkpointer: self.checkpointer.clone(),
            clock: self.clock.clone(),
            is_paced: self.config.background == Background::Threads,
        }
    }
}
