//! What is read of a tree: which keys, which way, and with which locks.
use crate::key::after_prefix;

/// Keys from one, itself included, up to another, itself excluded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRange {
    /// The least.
    pub from: Vec<u8>,
    /// Above the greatest; `None`: no bound.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        KeyRange { from: prefix.to_vec(), to: after_prefix(prefix) }
    }
}

/// Which way to walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the least key on.
    Up,
    /// From the greatest key on.
    Down,
}

/// How a walk reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// As the isolation level says, at most levels without locks.
    Plain,
    /// What is committed last, with locks that others may share; from REPEATABLE READ on no
    /// transaction adds to the range walked over.
    Share,
    /// As [`Lock::Share`], with locks for this transaction alone.
    Update,
}
