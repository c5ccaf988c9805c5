//! What a reader sees of a row: the row itself, or an older version of it.
use std::sync::Arc;

use weir_base::{ThreadCounts, TreeId, TxnId};
use weir_btree::{LeafState, RowHead, Tree, TreeError};
use weir_page::{Flags, Stamp};

use crate::record::txn_record::{State, TxnRecord, Version};
use crate::versions::registry::Registry;

/// Whose changes a reader sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Every transaction's, committed or not (READ UNCOMMITTED).
    Dirty,
    /// What is committed when the row is looked at.
    Latest,
    /// What was committed under this number or a lower one.
    At(u64),
}

/// How much of a row was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// There is none.
    Nothing,
    /// The first bytes of its value; there are more.
    Front,
    /// All of its value.
    Whole,
}

/// What is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// A row with these marks; its bytes are in the buffer.
    Row(Flags),
    /// None.
    Nothing,
    /// The row changed meanwhile: read it again.
    Again,
}

/// A reader.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    /// Where transactions are looked up.
    registry: &'r Registry,
    /// The reader's own transaction, whose changes it sees.
    own: Option<TxnId>,
    /// Whose others'.
    view: View,
    /// What writers below this number wrote stood for good before a row was read. Of one that
    /// became visible to all since, the row may be what was rolled back.
    low: TxnId,
}

impl<'r> Reader<'r> {
    /// One that reads rows from now on: not those that were read before.
    #[inline]
    #[must_use]
    pub fn new(registry: &'r Registry, own: Option<TxnId>, view: View) -> Self {
        Reader { registry, own, view, low: registry.low() }
    }

    /// As if it were made now.
    #[inline]
    pub(crate) fn begin_anew(&mut self) {
        self.low = self.registry.low();
    }

    /// Whether the row as read is what the reader sees, without looking any transaction up. `false`
    /// says nothing.
    #[inline]
    #[must_use]
    pub fn sees_at_once(&self, stamp: Stamp) -> bool {
        stamp.writer < self.low || self.own == Some(stamp.writer) || self.view == View::Dirty
    }

    /// Turns a row of `tree` as read (`head`, and its bytes in `value`) into what the reader sees.
    /// `leaf` is the one it was read in, as it was then.
    ///
    /// # Errors
    /// [`TreeError`] when an older version is stored and cannot be read.
    pub fn see(
        &self,
        tree: TreeId,
        key: &[u8],
        head: RowHead,
        value: &mut Vec<u8>,
        leaf: LeafState<'_>,
    ) -> Result<ReadOutcome, TreeError> {
        let RowHead { mut stamp, mut flags } = head;
        let mut later: Option<(Arc<TxnRecord>, u32)> = None;
        loop {
            if self.sees_at_once(stamp) {
                return Ok(visible(flags));
            }
            let Some(record) = self.registry.find(stamp.writer) else {
                // Every transaction sees it, unless it is archived, or was forgotten because the
                // version was moved, or the row was restored: then what led here has changed. Or
                // its writer changed the row again and has ended since that was met.
                let same = match &later {
                    None => leaf.is_unchanged(),
                    Some((record, seq)) => {
                        record.id() != stamp.writer && record.stamp_before(*seq)? == Some(stamp)
                    }
                };
                return match self.view {
                    _ if !same => Ok(ReadOutcome::Again),
                    View::At(at) if self.registry.archive.hides(at, stamp.writer) => {
                        let version = self.registry.archive.version(at, tree, key, value)?;
                        Ok(version.map_or(ReadOutcome::Nothing, ReadOutcome::Row))
                    }
                    _ => Ok(visible(flags)),
                };
            };
            match (record.state(), self.view) {
                (State::Committed(_), View::Latest) => {
                    // It may have changed the row once more before it committed.
                    let same = match &later {
                        None => leaf.is_unchanged(),
                        Some((record, _)) => record.id() != stamp.writer,
                    };
                    return Ok(if same { visible(flags) } else { ReadOutcome::Again });
                }
                (State::Committed(number), View::At(at)) if number <= at => {
                    return Ok(visible(flags));
                }
                _ => {}
            }
            let seq = stamp.seq;
            ThreadCounts::version_read();
            match record.before(seq, value)? {
                Version::Row { flags: was, stamp: writer } => (flags, stamp) = (was, writer),
                Version::Absent | Version::Unknown => return Ok(ReadOutcome::Nothing),
                Version::Moved => return Ok(ReadOutcome::Again),
            }
            later = Some((record, seq));
        }
    }
}

impl Registry {
    /// Whether the row was written by a transaction that committed behind `at`.
    pub(crate) fn is_newer(&self, stamp: Stamp, at: u64) -> bool {
        !self.is_old(stamp.writer)
            && match self.find(stamp.writer) {
                Some(record) => matches!(record.state(), State::Committed(number) if number > at),
                None => self.archive.hides(at, stamp.writer),
            }
    }
}

/// How often a row may send its reader back to look again. What moves a version moves it to where
/// the next look finds it, so more than a few times is next to impossible.
const RETRIES_MAX: u32 = 10_000;

/// Counts how often a reader had to look at a row again, and gives up when the version that it must
/// see is nowhere.
#[derive(Default)]
pub(crate) struct Retries(u32);

impl Retries {
    /// # Errors
    /// [`TreeError::Damaged`] when it has looked far too often.
    pub(crate) fn again(&mut self, tree: &Tree) -> Result<(), TreeError> {
        self.0 += 1;
        if self.0 < RETRIES_MAX {
            return Ok(());
        }
        let what = "an older version of a row is missing, which its latest one leads to";
        Err(tree.damaged(tree.root(), what))
    }
}

fn visible(flags: Flags) -> ReadOutcome {
    if flags.deleted { ReadOutcome::Nothing } else { ReadOutcome::Row(flags) }
}
