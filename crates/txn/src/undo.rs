//! Taking changes back: logically, through the trees, newest first. Each step says in the log that
//! it was done, so that a crash in between goes on where it stopped.
use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Action, Change, Env, Row, Tree, Value};
use weir_change::{Before, Group, Header, Op};
use weir_page::Flags;

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
        /// What was there: its marks and bytes, `None` when nothing.
        before: Option<(Flags, Vec<u8>)>,
    },
    /// A stretch of a row's value was changed.
    Delta {
        /// In this tree.
        tree: TreeId,
        /// At this key.
        key: Vec<u8>,
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
                    Before::Row { flags, bytes, .. } => {
                        UndoEntry::Row { tree, key, before: Some((flags, bytes.to_vec())) }
                    }
                    Before::Delta { offset, bytes, .. } => {
                        UndoEntry::Delta { tree, key, offset, bytes: bytes.to_vec() }
                    }
                })
            }
            Op::UndoPages { first, count } => Some(UndoEntry::Pages { first, count, notes: 1 }),
            _ => None,
        }
    }

    /// As the record that recovery would read.
    pub(crate) fn to_op(&self) -> Op<'_> {
        let stamp = weir_page::Stamp::default();
        match self {
            UndoEntry::Row { tree, key, before } => {
                let before = match before {
                    None => Before::Absent,
                    Some((flags, bytes)) => Before::Row { flags: *flags, stamp, bytes },
                };
                Op::Undo { tree: *tree, key, seq: 0, before }
            }
            UndoEntry::Delta { tree, key, offset, bytes } => {
                let before = Before::Delta { offset: *offset, removed: bytes.len(), bytes, stamp };
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
                32 + key.len() as u64 + before.as_ref().map_or(0, |(_, b)| b.len() as u64)
            }
            UndoEntry::Delta { key, bytes, .. } => 32 + (key.len() + bytes.len()) as u64,
            UndoEntry::Pages { .. } => 16,
        }
    }
}

/// Takes back all of `entries`, newest first. `tree_of` finds a tree by its number, `None` when it
/// does not exist (its creation is being taken back too).
///
/// # Errors
/// [`TxnError`]; what was done so far is in the log, and `entries` holds what is left.
pub fn roll_back(
    env: &Env,
    id: TxnId,
    entries: &mut Vec<UndoEntry>,
    tree_of: &dyn Fn(TreeId) -> Result<Option<Tree>, TxnError>,
    admit: &mut weir_btree::Admit<'_>,
) -> Result<(), TxnError> {
    let header = Header { txn: Some(id), ..Header::default() };
    while let Some(entry) = entries.last() {
        admit(entry.bytes() + 1024)?;
        match entry {
            UndoEntry::Row { tree, key, before } => {
                if let Some(tree) = tree_of(*tree)? {
                    restore(&tree, key, header, before.as_ref())?;
                }
            }
            UndoEntry::Delta { tree, key, offset, bytes } => {
                if let Some(tree) = tree_of(*tree)? {
                    let mut value = Vec::new();
                    if let Some(head) = tree.get_inline(key, &mut value)?
                        && let Some(part) = value.get_mut(*offset..*offset + bytes.len())
                    {
                        part.copy_from_slice(bytes);
                        restore(&tree, key, header, Some(&(head.flags, value)))?;
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
                entries.pop();
                continue;
            }
        }
        // Rows may be restored twice without harm: they stay locked until the end.
        let mut group = Group::begin(header);
        group.note(&Op::Undone { entries: 1 });
        group.commit(env.pool.log())?;
        entries.pop();
    }
    let group = Group::begin(Header { ended: true, ..header });
    group.commit(env.pool.log())?;
    Ok(())
}

fn restore(
    tree: &Tree,
    key: &[u8],
    header: Header,
    before: Option<&(Flags, Vec<u8>)>,
) -> Result<(), TxnError> {
    let change = Change::restoring(header);
    tree.write(key, &change, &mut |row: Option<Row<'_>>| match (before, row) {
        (None, None) => Action::Nothing,
        (None, Some(_)) => Action::Remove,
        (Some((flags, bytes)), _) => Action::Put(Value { bytes, flags: *flags }),
    })?;
    Ok(())
}
