//! Going back to a savepoint.
use crate::context::Context;
use crate::error::TxnError;
use crate::session::txn::Txn;
use crate::undo::rollback::roll_back_to;

/// A point to go back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    undo: usize,
    tasks: usize,
}

impl Txn {
    /// Where to go back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        self.record.as_ref().map_or(Savepoint { undo: 0, tasks: 0 }, |record| {
            let work = record.work.lock();
            self.savepoint_at.set(work.depth());
            Savepoint { undo: work.depth(), tasks: work.tasks() }
        })
    }

    /// Rolls back what was changed since the savepoint. Explicit locks are kept; a row that nothing
    /// but a change had locked is free again.
    ///
    /// # Errors
    /// [`TxnError`]: then the transaction can only be rolled back as a whole.
    pub fn rollback_to(&mut self, cx: &Context, savepoint: Savepoint) -> Result<(), TxnError> {
        self.check()?;
        let Some(record) = self.record.clone() else { return Ok(()) };
        roll_back_to(cx, &record, savepoint.undo, true)?;
        record.work.lock().truncate_tasks(savepoint.tasks);
        self.roll_back_partly(cx, &record, savepoint.undo)
    }
}
