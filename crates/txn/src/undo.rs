//! Taking changes back: logically, through the trees, newest first. Each step says in the log that
//! it was done, so that a crash in between goes on where it stopped.
use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Action, Change, Env, Row, Tree, Value};
use weir_change::{Before, Group, Header, Op};
use weir_page::{Flags, Stamp};

use crate::error::TxnError;

/// One thing to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoEntry {
    /// A row was changed.
    Row {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
        /// What was there: its marks, writer and bytes, `None` when nothing.
        before: Option<(Flags, Stamp, Vec<u8>)>,
    },
    /// A stretch of a row's value was changed.
    Delta {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
        /// Who had written it.
        stamp: Stamp,
        /// Where in the value.
        offset: usize,
        /// What was there.
        bytes: Vec<u8>,
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
}

impl UndoEntry {
    /// From the record that recovery finds; `None` when the record is not one of undo.
    #[must_use]
    pub fn from_op(op: &Op<'_>) -> Option<Self> {
        match *op {
            Op::Undo { tree, key, before, .. } => {
                let key = key.to_vec();
                Some(match before {
                    Before::Absent => UndoEntry::Row { tree, key, before: None },
                    Before::Row { flags, stamp, bytes } => {
                        UndoEntry::Row { tree, key, before: Some((flags, stamp, bytes.to_vec())) }
                    }
                    Before::Delta { stamp, offset, bytes, .. } => {
                        UndoEntry::Delta { tree, key, stamp, offset, bytes: bytes.to_vec() }
                    }
                })
            }
            Op::UndoPages { first, count } => Some(UndoEntry::Pages { first, count, notes: 1 }),
            _ => None,
        }
    }

    /// As the record that recovery would read.
    pub(crate) fn to_op(&self) -> Op<'_> {
        match self {
            UndoEntry::Row { tree, key, before } => {
                let before = match before {
                    None => Before::Absent,
                    Some((flags, stamp, bytes)) => {
                        Before::Row { flags: *flags, stamp: *stamp, bytes }
                    }
                };
                Op::Undo { tree: *tree, key, seq: 0, before }
            }
            UndoEntry::Delta { tree, key, stamp, offset, bytes } => {
                let (offset, removed, stamp) = (*offset, bytes.len(), *stamp);
                let before = Before::Delta { offset, removed, bytes, stamp };
                Op::Undo { tree: *tree, key, seq: 0, before }
            }
            UndoEntry::Pages { first, count, .. } => Op::UndoPages { first: *first, count: *count },
        }
    }

    /// About how many bytes of log it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            UndoEntry::Row { key, before, .. } => {
                32 + key.len() as u64 + before.as_ref().map_or(0, |(_, _, b)| b.len() as u64)
            }
            UndoEntry::Delta { key, bytes, .. } => 32 + (key.len() + bytes.len()) as u64,
            UndoEntry::Pages { .. } => 16,
        }
    }
}

/// Finds a tree by its number; `None` when it does not exist (its creation is being taken back too).
pub type TreeOf<'a> = dyn Fn(TreeId) -> Result<Option<Tree>, TxnError> + 'a;

/// Takes back all of `entries`, newest first.
///
/// # Errors
/// [`TxnError`]; what was done so far is in the log, and `entries` holds what is left.
pub fn roll_back(
    env: &Env,
    id: TxnId,
    entries: &mut Vec<UndoEntry>,
    tree_of: &TreeOf<'_>,
    admit: &mut weir_btree::Admit<'_>,
) -> Result<(), TxnError> {
    while let Some(entry) = entries.last() {
        admit(entry.bytes() + 1024)?;
        undo_one(env, id, entry, tree_of)?;
        entries.pop();
    }
    rolled_back(env, id)
}

/// Says in the log that nothing of `id` is left to be taken back.
pub(crate) fn rolled_back(env: &Env, id: TxnId) -> Result<(), TxnError> {
    let header = Header { txn: Some(id), ended: true, ..Header::default() };
    Group::begin(header).commit(env.pool.log())?;
    Ok(())
}

/// Takes one change of `id` back, and says so in the log.
pub(crate) fn undo_one(
    env: &Env,
    id: TxnId,
    entry: &UndoEntry,
    tree_of: &TreeOf<'_>,
) -> Result<(), TxnError> {
    let header = Header { txn: Some(id), ..Header::default() };
    match entry {
        UndoEntry::Row { tree, key, before } => {
            if let Some(tree) = tree_of(*tree)? {
                let before = before.as_ref();
                restore(&tree, key, header, before.map(|(f, s, b)| (*f, *s, b.as_slice())))?;
            }
        }
        UndoEntry::Delta { tree, key, stamp, offset, bytes } => {
            if let Some(tree) = tree_of(*tree)? {
                let mut value = Vec::new();
                if let Some(head) = tree.get_inline(key, &mut value)?
                    && let Some(part) = value.get_mut(*offset..*offset + bytes.len())
                {
                    part.copy_from_slice(bytes);
                    restore(&tree, key, header, Some((head.flags, *stamp, &value)))?;
                }
            }
        }
        UndoEntry::Pages { first, count, notes } => {
            let pages: Vec<PageNo> = (first.0..first.0 + count).map(PageNo).collect();
            let mut group = Group::begin(header);
            env.space.log_free(&mut group, &pages)?;
            // With the freeing itself: done twice, it would free pages that others use now.
            group.note(&Op::Undone { entries: *notes });
            group.commit(env.pool.log())?;
            env.space.unclaim(&pages);
            return Ok(());
        }
    }
    // Rows may be restored twice without harm: they stay locked until the end.
    let mut group = Group::begin(header);
    group.note(&Op::Undone { entries: 1 });
    group.commit(env.pool.log())?;
    Ok(())
}

fn restore(
    tree: &Tree,
    key: &[u8],
    header: Header,
    before: Option<(Flags, Stamp, &[u8])>,
) -> Result<(), TxnError> {
    let mut change = Change::restoring(header);
    if let Some((_, stamp, _)) = before {
        change = change.stamped(stamp);
    }
    tree.write(key, &change, &mut |row: Option<Row<'_>>| match (before, row) {
        (None, None) => Action::Nothing,
        (None, Some(_)) => Action::Remove,
        (Some((flags, _, bytes)), _) => Action::Put(Value { bytes, flags }),
    })?;
    Ok(())
}
