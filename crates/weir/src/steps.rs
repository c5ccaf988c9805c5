//! How much is done in one step of background work.

/// So many changes of a loser are rolled back in one step.
pub(crate) const STEP_ROWS: usize = 256;

/// Pages that have pending redo are brought up to date so many at a time.
pub(crate) const REDO_PAGES: usize = 32;
