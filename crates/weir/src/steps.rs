//! How much is done in one step of background work.

/// So many changes of a loser are taken back in one step.
pub(crate) const STEP_ROWS: usize = 256;

/// Pages that are owed redo are brought forward so many at a time.
pub(crate) const REDO_PAGES: usize = 32;
