//! Taking changes back: logically, through the trees, newest first. Each step says in the log that
//! it was done, so that a crash in between goes on where it stopped.
use std::sync::Arc;

use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Action, Change, Env, Row, Tree, Value};
use weir_change::{Before, FlipsBuf, Group, Header, Op, Stored};
use weir_page::{Flags, Stamp};

use crate::error::TxnError;
use crate::stored;

/// One thing to take back.
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
        /// Who had written it.
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
            UndoEntry::Flip { .. } => unreachable!("who takes it over looks its row up"),
            UndoEntry::Tree { tree, root } => Op::UndoTree { tree: *tree, root: *root },
            UndoEntry::Pages { first, count, .. } => Op::UndoPages { first: *first, count: *count },
            UndoEntry::Stored(stored) => Op::UndoStored(*stored),
        }
    }

    /// The tree of the row that it takes back.
    pub(crate) fn tree(&self) -> Option<TreeId> {
        match *self {
            UndoEntry::Row { tree, .. } | UndoEntry::Flip { tree, .. } => Some(tree),
            UndoEntry::Tree { .. } | UndoEntry::Pages { .. } | UndoEntry::Stored(_) => None,
        }
    }

    /// The number of the change of a row that it takes back.
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
            UndoEntry::Stored(_) => stored::NOTE_BYTES,
        }
    }
}

/// Finds a tree by its number; `None`: it is not to be touched any more.
pub(crate) type Trees<'a> = dyn Fn(TreeId) -> Result<Option<Tree>, TxnError> + 'a;

/// Says in the log that nothing of `id` is left to be taken back.
pub(crate) fn rolled_back(env: &Env, id: TxnId) -> Result<(), TxnError> {
    let header = Header { txn: Some(id), ended: true, ..Header::default() };
    Group::begin(header).commit(env.pool.log())?;
    Ok(())
}

/// A row as it was: marks, writer, bytes in the leaf.
type Was<'b> = (Flags, Stamp, &'b [u8]);

/// What to restore: of a row that another transaction has marked deleted only the mark, since the
/// chain that it named may be freed by now, and readers find its bytes elsewhere. What `own` has
/// marked stays as it was: its mark may be taken back next, and says nothing of the bytes
/// (`Op::Flip`).
fn without_garbage(own: TxnId, was: Was<'_>) -> Was<'_> {
    match was {
        (flags, stamp, _) if flags.deleted && stamp.writer != own => {
            (Flags { deleted: true, ..Flags::NONE }, stamp, &[])
        }
        live => live,
    }
}

/// Takes one change of `id` back, and says so in the log. `is_everybodys`: whether all snapshots
/// see what that transaction did.
pub(crate) fn undo_one(
    env: &Arc<Env>,
    id: TxnId,
    entry: &UndoEntry,
    tree_of: &Trees<'_>,
    is_everybodys: &dyn Fn(TxnId) -> bool,
) -> Result<(), TxnError> {
    // BTREE-7: a halted engine takes nothing back; the next opening does.
    env.pool.log().check()?;
    let header = Header { txn: Some(id), ..Header::default() };
    let is_said = match entry {
        UndoEntry::Row { tree, key, before, .. } => match tree_of(*tree)? {
            Some(tree) => {
                let before = before.as_ref().map(|(f, s, b)| (*f, *s, b.as_slice()));
                restore(&tree, key, header, before, is_everybodys)?
            }
            None => false,
        },
        UndoEntry::Flip { tree, key, flags, stamp, flips, .. } => match tree_of(*tree)? {
            Some(tree) => restore_bits(&tree, key, header, (*flags, *stamp, flips), is_everybodys)?,
            None => false,
        },
        // Its pages have been freed before this (`back.rs`). When a crash comes between, its root
        // is free, or another tree's.
        UndoEntry::Tree { .. } => false,
        UndoEntry::Pages { first, count, notes } => {
            let pages: Vec<PageNo> = (first.0..first.0 + count).map(PageNo).collect();
            let mut group = Group::begin(header);
            env.space.log_free(&mut group, &pages)?;
            // With the freeing itself: done twice, it would free pages that others use now.
            group.note(&Op::Undone { entries: *notes });
            group.commit(env.pool.log())?;
            env.space.unclaim(&pages);
            true
        }
        UndoEntry::Stored(stored) => {
            stored::free(env, stored, header)?;
            true
        }
    };
    if !is_said {
        let mut group = Group::begin(header);
        group.note(&Op::Undone { entries: 1 });
        group.commit(env.pool.log())?;
    }
    Ok(())
}

fn restore_bits(
    tree: &Tree,
    key: &[u8],
    header: Header,
    (flags, stamp, flips): (Flags, Stamp, &FlipsBuf),
    is_everybodys: &dyn Fn(TxnId) -> bool,
) -> Result<bool, TxnError> {
    let mut value = Vec::new();
    if tree.get_inline(key, &mut value)?.is_none() || !flips.flip(&mut value) {
        return Ok(false);
    }
    restore(tree, key, header, Some((flags, stamp, &value)), is_everybodys)
}

/// Restores a row, and says so in the same group (TXN-6): with the writer before in its stamp it is
/// free for others, whose changes must not be taken back in the place of this one. `false`: there
/// was nothing to do, and nothing is said.
fn restore(
    tree: &Tree,
    key: &[u8],
    header: Header,
    before: Option<Was<'_>>,
    is_everybodys: &dyn Fn(TxnId) -> bool,
) -> Result<bool, TxnError> {
    let own = header.writer();
    let before = before.map(|was| without_garbage(own, was));
    let mut change = Change::restoring(header).undone();
    if let Some((_, stamp, _)) = before {
        change = change.stamped(stamp);
    }
    let is_purged = |(flags, stamp, _): &Was<'_>| {
        flags.deleted && stamp.writer != own && is_everybodys(stamp.writer)
    };
    let written = tree.write(key, &change, &mut |row: Option<Row<'_>>| {
        // Asked with the leaf held: whoever was to remove the marked row, and has found ours in its
        // place, came when this was so already; whoever comes later finds the mark (TXN-15).
        match (before.filter(|was| !is_purged(was)), row) {
            (None, None) => Action::Nothing,
            (None, Some(_)) => Action::Remove,
            (Some((flags, _, bytes)), _) => Action::Put(Value { bytes, flags }),
        }
    })?;
    Ok(written.span.is_some())
}
