//! What the engine must answer to a request, and what locks are known of.
use std::ops::{Bound, RangeBounds};

use super::key::Key;

/// Why a change or a lock is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another session has the row.
    Locked,
    /// A transaction has changed the row since the snapshot.
    Conflict,
    /// The row is there already.
    Duplicate,
}

/// What the engine must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Must it be refused, and why?
    pub(crate) must: Result<(), Refusal>,
    /// It may also be refused because of a lock that another session may still have.
    pub(crate) may_be_locked: bool,
}

/// How sure a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedLock {
    Shared,
    Exclusive,
    /// Exclusive, or not at all: the row was changed and that was rolled back, or it was looked at
    /// for a change.
    Maybe,
}

/// The keys that a cursor passes in one step.
#[derive(Clone)]
pub(crate) struct Span {
    pub(super) tree: u8,
    pub(super) from: Bound<Vec<u8>>,
    pub(super) to: Bound<Vec<u8>>,
}

impl Span {
    pub(super) fn has(&self, key: &Key) -> bool {
        let bounds = (self.from.as_ref(), self.to.as_ref());
        self.tree == key.0 && bounds.contains(&key.1)
    }
}

/// What one has locked besides the rows that it has changed.
#[derive(Clone, Default)]
pub(crate) struct Locks {
    pub(super) keys: Vec<(Key, ExpectedLock)>,
    pub(super) ranges: Vec<Range>,
}

/// Keys that are locked, whether or not rows are there.
#[derive(Clone)]
pub(super) struct Range {
    pub(super) session: u8,
    pub(super) span: Span,
    /// Not only a part of it, or nothing.
    pub(super) is_sure: bool,
    /// No other session may share it.
    pub(super) alone: bool,
}
