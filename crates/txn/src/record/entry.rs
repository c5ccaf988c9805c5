//! One thing to roll back: as the log tells it, whole, and as a transaction remembers it, by the
//! number of the change.
use weir_base::{PageNo, TreeId};
use weir_change::{Before, FlipsBuf, Op, Stored};
use weir_page::{Flags, Stamp};

use crate::record::purge_task::NOTE_BYTES;

/// One thing to roll back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoEntry {
    /// A row was changed.
    Row {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
        /// The number of the change within its transaction.
        seq: u32,
        /// What was there: its marks, writer and bytes, `None` when nothing.
        before: Option<(Flags, Stamp, Vec<u8>)>,
    },
    /// Bits of a row's value were flipped, or its marks.
    Flip {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
        /// The number of the change within its transaction.
        seq: u32,
        /// Its marks.
        flags: Flags,
        /// Its writer.
        stamp: Stamp,
        /// Which bits.
        flips: FlipsBuf,
    },
    /// A tree was made.
    Tree {
        /// The tree.
        tree: TreeId,
        /// Its root.
        root: PageNo,
    },
    /// Pages were taken into use.
    Pages {
        /// The first.
        first: PageNo,
        /// How many, one after another.
        count: u32,
        /// How many records of the log say so.
        notes: u32,
    },
    /// Older ones, in pages of their own.
    Stored(Stored),
}

impl UndoEntry {
    /// From the record that recovery finds; `None` when the record is not one of undo.
    #[must_use]
    pub fn from_op(op: &Op<'_>) -> Option<Self> {
        match *op {
            Op::Undo { tree, key, seq, before } => {
                let key = key.to_vec();
                Some(match before {
                    Before::Absent => UndoEntry::Row { tree, key, seq, before: None },
                    Before::Row { flags, stamp, bytes } => {
                        let before = Some((flags, stamp, bytes.to_vec()));
                        UndoEntry::Row { tree, key, seq, before }
                    }
                })
            }
            Op::Flip { tree, key, seq, old_flags, stamp, flips, .. } => {
                let (key, flips) = (key.to_vec(), flips.into());
                Some(UndoEntry::Flip { tree, key, seq, flags: old_flags, stamp, flips })
            }
            Op::UndoTree { tree, root } => Some(UndoEntry::Tree { tree, root }),
            Op::UndoPages { first, count } => Some(UndoEntry::Pages { first, count, notes: 1 }),
            Op::UndoStored(stored) => Some(UndoEntry::Stored(stored)),
            _ => None,
        }
    }

    /// As the record that recovery would read, of what memory holds: there, rows are whole.
    pub(crate) fn to_op(&self) -> Op<'_> {
        match self {
            UndoEntry::Row { tree, key, seq, before } => {
                let before = match before {
                    None => Before::Absent,
                    Some((flags, stamp, bytes)) => {
                        Before::Row { flags: *flags, stamp: *stamp, bytes }
                    }
                };
                Op::Undo { tree: *tree, key, seq: *seq, before }
            }
            UndoEntry::Flip { .. } => unreachable!("recovery looks its row up"),
            UndoEntry::Tree { tree, root } => Op::UndoTree { tree: *tree, root: *root },
            UndoEntry::Pages { first, count, .. } => Op::UndoPages { first: *first, count: *count },
            UndoEntry::Stored(stored) => Op::UndoStored(*stored),
        }
    }

    /// The tree of the row that it rolls back.
    pub(crate) fn tree(&self) -> Option<TreeId> {
        match *self {
            UndoEntry::Row { tree, .. } | UndoEntry::Flip { tree, .. } => Some(tree),
            UndoEntry::Tree { .. } | UndoEntry::Pages { .. } | UndoEntry::Stored(_) => None,
        }
    }

    /// The number of the change of a row that it rolls back.
    #[must_use]
    pub fn seq(&self) -> Option<u32> {
        match *self {
            UndoEntry::Row { seq, .. } | UndoEntry::Flip { seq, .. } => Some(seq),
            UndoEntry::Tree { .. } | UndoEntry::Pages { .. } | UndoEntry::Stored(_) => None,
        }
    }

    /// About how many bytes of log it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            UndoEntry::Row { key, before, .. } => {
                32 + key.len() as u64 + before.as_ref().map_or(0, |(_, _, b)| b.len() as u64)
            }
            UndoEntry::Flip { key, flips, .. } => 32 + (key.len() + flips.len()) as u64,
            UndoEntry::Tree { .. } | UndoEntry::Pages { .. } => 16,
            UndoEntry::Stored(_) => NOTE_BYTES,
        }
    }
}

/// One thing to roll back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo {
    /// The change of this number, a row's.
    Row(u32),
    /// A tree was made.
    Tree { tree: TreeId, root: PageNo },
    /// Pages taken into use.
    Pages { first: PageNo, count: u32, notes: u32 },
}

impl Undo {
    /// How many records of the log say so.
    pub(crate) fn notes(&self) -> u32 {
        match self {
            Undo::Pages { notes, .. } => *notes,
            Undo::Row(_) | Undo::Tree { .. } => 1,
        }
    }

    /// It has been written again, as one record.
    pub(crate) fn is_one_note(&mut self) {
        if let Undo::Pages { notes, .. } = self {
            *notes = 1;
        }
    }
}
