//! Opening with a log that is larger than the memory for it (`weir_recovery::Windows`): window by
//! window its pages are brought up to date and written, and the checkpoint follows, so that a crash
//! in between leaves less to do.
use std::sync::Arc;

use weir_base::{Clock, Lsn};
use weir_checkpoint::{Checkpointer, Control, ControlFile};
use weir_pool::{PageStore, Pool, PoolConfig};
use weir_recovery::{Collected, Progress, Window, Windows};
use weir_redo::Log;
use weir_txn::PlantedBug;

use crate::error::Error;
use crate::steps::REDO_PAGES;

/// What a window's pages are brought up to date with.
pub(crate) struct CatchUp<'a> {
    pub(crate) log: &'a Arc<Log>,
    pub(crate) store: &'a Arc<dyn PageStore>,
    pub(crate) control: &'a Arc<ControlFile>,
    pub(crate) clock: &'a Arc<dyn Clock>,
    /// The pool as it will be: each window has one, and there is one at a time.
    pub(crate) sizes: &'a PoolConfig,
    /// At least one.
    pub(crate) threads: usize,
    pub(crate) planted: PlantedBug,
}

impl CatchUp<'_> {
    /// Goes through all windows; what is left is pending as after any crash.
    ///
    /// # Errors
    /// Those of reading the log and of reading and writing pages.
    pub(crate) fn run(
        &self,
        mut windows: Windows,
        tell: &dyn Fn(Progress),
    ) -> Result<Collected, Error> {
        while let Some(window) = windows.next(&mut |p| tell(p))? {
            self.apply_pending(window, &windows)?;
        }
        Ok(windows.rest(self.log.checkpoint())?)
    }

    fn apply_pending(&self, window: Window, windows: &Windows) -> Result<(), Error> {
        let pool = Arc::new(Pool::new(self.sizes, self.store.clone(), self.log.clone())?);
        pool.begin_at(self.log.checkpoint());
        window.set_pending(&pool)?;
        std::thread::scope(|scope| {
            let bring = || -> Result<(), Error> {
                while pool.apply_pending(REDO_PAGES)? {}
                Ok(())
            };
            let others: Vec<_> = (1..self.threads).map(|_| scope.spawn(bring)).collect();
            let first = bring();
            // A panic aborts the process before any thread could see it here.
            others.into_iter().filter_map(|other| other.join().ok()).fold(first, Result::and)
        })?;
        let (held, next_txn, next_tree) = windows.checkpoint();
        let held = match self.planted {
            PlantedBug::WindowsForgetOpen => windows.at(),
            _ => held,
        };
        let refresh = move |control: &mut Control| {
            control.next_txn = control.next_txn.max(next_txn);
            control.next_tree = control.next_tree.max(next_tree);
        };
        let holds: Box<dyn Fn() -> Option<Lsn> + Send + Sync> = Box::new(move || Some(held));
        let (control, clock) = (self.control.clone(), self.clock.clone());
        let checkpointer = Checkpointer::new(pool, control, clock, holds, Box::new(refresh));
        if self.planted == PlantedBug::WindowNotWritten {
            return Ok(checkpointer.write_control(|control| control.checkpoint = held)?);
        }
        Ok(checkpointer.flush_all()?)
    }
}
