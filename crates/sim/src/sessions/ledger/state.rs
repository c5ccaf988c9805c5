//! What the ledger keeps: all versions, and what sessions have done and locked.
use std::collections::{BTreeMap, BTreeSet};

use weir::Isolation;

use super::expected::{ExpectedLock, Range};
use super::key::Key;
use crate::model::{Contents, Digest};

/// What a session has done so far.
pub(super) struct Session {
    pub(super) isolation: Isolation,
    pub(super) snapshot: Option<u64>,
    pub(super) changes: Vec<(Key, Option<Digest>)>,
    pub(super) savepoints: Vec<usize>,
}

/// All that is known.
pub struct Ledger {
    /// By the trees' own numbers, names included.
    pub(super) latest: Contents,
    /// Of each tree, what its rows add up to.
    pub(super) sums: BTreeMap<u8, u64>,
    pub(super) commits: u64,
    pub(super) next_tree: u8,
    /// Trees that are there no more, and the commit that dropped them; `None`: no other session
    /// ever saw them.
    pub(super) gone: BTreeMap<u8, Option<u64>>,
    /// Those that were found prepared: what they use is not known to the letter.
    pub(super) recovered: BTreeSet<u8>,
    /// By commit number; a row that was not there at first has no version of number 0.
    pub(super) versions: BTreeMap<Key, Vec<(u64, Option<Digest>)>>,
    /// All keys that ever were or may yet be.
    pub(super) keys: BTreeSet<Key>,
    pub(super) sessions: BTreeMap<u8, Session>,
    pub(super) locks: BTreeMap<Key, BTreeMap<u8, ExpectedLock>>,
    pub(super) ranges: Vec<Range>,
}

impl Ledger {
    pub(super) fn session(&self, session: u8) -> Option<&Session> {
        self.sessions.get(&session)
    }

    pub(super) fn session_mut(&mut self, session: u8) -> Option<&mut Session> {
        self.sessions.get_mut(&session)
    }
}
